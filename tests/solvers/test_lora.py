"""Low-rank adapters of frozen matrices, by hand."""

import pytest

from mlsysim import (
    ConfigError,
    DistributedSolver,
    Hardware,
    Models,
    Systems,
    part_of_server,
    standalone_fleet,
)
from mlsysim.registry.calibration.training import calibration_for

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


# int4 takes half a byte, and 2.5 bytes of scales and zero points for 128 weights.
INT4 = 0.5 + 2.5 / 128


def test_frozen_weights_of_a_32b_model_in_4_bits_fit_on_two_cards():
    # Qwen3 32B: 64 layers of 64 query and 8 key-value heads of 128, and a block of 25,600
    two = standalone_fleet(part_of_server(Systems.Nodes.L40S_Server, 2))
    plan = {"model": Models.Qwen3_32B, "fleet": two, "batch_size": 2, "seq_len": 2048}
    plan |= {"lora_rank": 16, "recompute": "full"}
    r, wide = solve(**plan, weight_precision="int4"), solve(**plan)
    layers = 64 * 5120 * (2 * 64 * 128 + 2 * 8 * 128 + 3 * 25_600)
    tables = 2 * 151_936 * 5120
    adapters = 64 * 16 * (3 * 5120 + 2 * 64 * 128 + 2 * 8 * 128 + 5120 + 3 * (5120 + 25_600))
    weights = layers * INT4 + 2 * (tables + adapters)
    assert count(r.weights_memory, 1) == pytest.approx(weights, rel=1e-4)  # without norms
    assert r.feasible
    assert not wide.fits_memory
    assert (r.gradient_memory, r.activation_memory) == (
        wide.gradient_memory,
        wide.activation_memory,
    )


@pytest.mark.parametrize(("stored", "each"), [("int8", 1), ("fp4", 0.5625), ("int4", INT4)])
def test_frozen_weights_of_70b_leave_the_tables_wide(stored, each):
    plan = {"model": Models.Llama3_70B, "fleet": standalone_fleet(Hardware.H100), "batch_size": 1}
    plan |= {"seq_len": 2048, "lora_rank": 16, "recompute": "full"}
    wide, narrow = solve(**plan), solve(**plan, weight_precision=stored)
    layers = 80 * 8192 * (2 * 8192 + 2 * 1024 + 3 * 28_672)
    assert count(wide.memory, 1e9) == pytest.approx(149.9, abs=0.05)
    saved = count(wide.memory, 1) - count(narrow.memory, 1)
    assert saved == pytest.approx((2 - each) * layers, rel=1e-4)


def test_sharded_weights_are_gathered_as_they_are_stored():
    plan = {"zero_stage": 3, "efficiency": 0.5, "lora_rank": 16, "gradient_precision": "fp32"}
    twice, whole, narrow = (
        solve(**plan | change).dp_communication_latency
        for change in ({"precision": "fp32"}, {}, {"weight_precision": "int8"})
    )
    # Two bytes more for each weight, and one byte less for each weight of the layers
    ratio = ((whole - narrow) / (twice - whole)).to("").magnitude
    assert ratio == pytest.approx(LAYERS / (2 * (LAYERS + 2 * TABLE)), rel=1e-3)


@pytest.mark.parametrize(("recompute", "passes"), [("selective", 2), ("full", 3)])
def test_weights_are_expanded_before_the_products_of_each_microbatch(recompute, passes):
    plan = {"lora_rank": 16, "microbatch_count": 2, "batch_size": 512, "recompute": recompute}
    wide, narrow = solve(**plan), solve(**plan, weight_precision="int4")
    slower = (narrow.compute_latency - wide.compute_latency).to("s").magnitude
    reached = calibration_for(Hardware.H100).machine.memory_efficiency
    bandwidth = reached * Hardware.H100.memory.bandwidth.to("byte/s").magnitude
    assert slower == pytest.approx(2 * passes * LAYERS * (INT4 + 2) / bandwidth, rel=1e-3)
    assert narrow.model_flops == wide.model_flops


def test_the_largest_matrix_is_expanded_in_memory():
    # 4096 x 14,336 of one expert in 16 bits; with a small vocabulary, the peak is in a layer.
    plan = {"model": Models.Mixtral_8x7B, "ep_size": 8, "lora_rank": 16, "loss": "fused"}
    wide, narrow = solve(**plan), solve(**plan, weight_precision="int4")
    more = count(narrow.working_memory, 1) - count(wide.working_memory, 1)
    assert more == pytest.approx(2 * 4096 * 14_336)


def test_weights_in_the_format_of_training_change_nothing():
    plan = {"lora_rank": 16, "zero_stage": 3}
    plain, stated = solve(**plan), solve(**plan, weight_precision="bf16")
    assert (stated.memory, stated.step_latency_total) == (plain.memory, plain.step_latency_total)
    assert stated.outside == plain.outside


def test_no_run_validates_narrow_frozen_weights():
    plain, narrow = solve(lora_rank=16), solve(lora_rank=16, weight_precision="int4")
    (untested,) = set(narrow.outside) - set(plain.outside)
    assert "weight_precision" in untested


@pytest.mark.parametrize(
    "plan",
    [
        {"weight_precision": "int4"},
        {"weight_precision": "fp32", "lora_rank": 16},
        {"weight_precision": "int3", "lora_rank": 16},
        {"weight_precision": "q4_k_m", "lora_rank": 16},
    ],
)
def test_formats_of_frozen_weights_that_are_refused(plan):
    with pytest.raises(ConfigError) as fault:
        solve(**plan)
    assert fault.value.argument == "weight_precision"
