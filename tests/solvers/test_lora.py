"""Low-rank adapters of frozen matrices, by hand."""

from __future__ import annotations

import pytest

from mlsysim import ConfigError, DistributedSolver, Models, Systems

# Llama 3 8B, rank 16, all matrices of the layers: 32 x 16 x (4 x 4096 for the inputs of attention's
# four matrices, of which the output has 4096 columns more; 4096 + 2 x 1024 for the outputs of the
# others; 3 x (4096 + 14,336)) = 41,943,040, as PEFT prints it.
ADAPTERS = 41_943_040
LLAMA = Models.Llama3_8B
TABLE = 128_256 * 4096
LAYERS = 32 * (2 * 4096 * 128 * 40 + 3 * 4096 * 14_336)
JOB = {
    "model": LLAMA,
    "fleet": Systems.Clusters.Research_256,
    "batch_size": 256,
    "precision": "bf16",
}


def solve(**plan):
    return DistributedSolver.solve(**JOB | plan)


def count(memory, each):
    return memory.to("byte").magnitude / each


def test_adapters_alone_have_gradients_and_state():
    r, whole = solve(lora_rank=16), solve()
    assert count(r.gradient_memory, 2) == pytest.approx(ADAPTERS)
    assert count(r.optimizer_memory, 12) == pytest.approx(ADAPTERS)
    assert count(r.weights_memory, 2) == pytest.approx(LLAMA.si("parameters") + ADAPTERS)
    assert r.activation_memory == whole.activation_memory


def test_frozen_weights_take_four_operations():
    r = solve(lora_rank=16)
    tokens = 256 * 8192
    scores = 3 * 4 * 32 * 32 * 128 * 8192 / 2
    flops = tokens * (4 * (LAYERS + TABLE) + 6 * ADAPTERS + scores)
    assert r.model_flops.to("flop").magnitude == pytest.approx(flops)


@pytest.mark.parametrize("efficiency", [None, 0.5])
def test_adapters_are_faster_and_exchange_little(efficiency):
    plan = {"efficiency": efficiency, "gradient_overlap": None if efficiency else 0.0}
    r, whole = solve(lora_rank=16, **plan), solve(**plan)
    assert 2 / 3 < (r.compute_latency / whole.compute_latency).to("").magnitude < 0.9
    less = (r.dp_communication_latency / whole.dp_communication_latency).to("").magnitude
    assert less < 0.05


def test_sharded_weights_are_gathered_whole():
    """ZeRO-3 gathers what is frozen as well, twice, and scatters gradients of adapters only.

    Of three exchanges two are left, and the latency of the third.
    """
    plan = {"zero_stage": 3, "efficiency": 0.5}
    r, whole = solve(lora_rank=16, **plan), solve(**plan)
    ratio = (r.dp_communication_latency / whole.dp_communication_latency).to("").magnitude
    assert 2 / 3 < ratio < 0.8


def test_experts_have_adapters_too():
    # Mixtral 8x7B: 32 x 16 x 8 x 3 x (4096 + 14,336) on experts, split over eight devices
    model = Models.Mixtral_8x7B
    r = solve(model=model, lora_rank=16, ep_size=8)
    attention = 32 * 16 * (4 * 4096 + 2 * 4096 + 2 * 1024)
    experts = 32 * 16 * 8 * 3 * (4096 + 14_336)
    assert count(r.gradient_memory, 2) == pytest.approx(attention + experts / 8)


def test_a_rank_above_that_of_the_matrices_is_refused():
    assert solve(lora_rank=4096).feasible is not None
    with pytest.raises(ConfigError, match="hidden_dim") as fault:
        solve(lora_rank=4097)
    assert fault.value.argument == "lora_rank"
