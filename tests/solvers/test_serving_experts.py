"""The textbook's two passes of models with experts: what their tokens visit counts."""

import pytest

from mlsysim import Hardware, Models, ServingSolver, SingleNodeSolver, Systems
from tests.samples import seconds

MIXTRAL, DEEPSEEK = Models.Mixtral_8x7B, Models.DeepSeek_V3
H200 = {"hardware": Hardware.H200, "precision": "bf16", "efficiency": 0.5}
BANDWIDTH, PEAK = 4.8e12, 989.4e12


def solve(model, **arguments):
    return ServingSolver.solve(model=model, **H200 | arguments)


def size(model):
    return model.parameters.to("param").magnitude


def expert(model):
    return 3 * model.hidden_dim * model.expert_ffn_dim


def kv_bytes(model, tokens):
    # Latent attention keeps 512 numbers and the 64 that tell the position, whatever its heads.
    each = 576 if model.latent else 2 * model.kv_heads * model.head_dim
    return 2 * model.layers * each * tokens


@pytest.mark.parametrize("model", [MIXTRAL, DEEPSEEK])
def test_one_sequence_decodes_with_the_experts_of_one_token(model):
    r = solve(model, seq_len=16)
    idle = model.moe_layers * (model.experts - model.experts_per_token) * expert(model)
    read = 2 * (size(model) - idle) + kv_bytes(model, 16)
    assert seconds(r.itl) == pytest.approx(read / BANDWIDTH)
    assert r.itl_bottleneck == "memory"


@pytest.mark.parametrize("batch", [1, 4, 32, 1024])
def test_a_batch_decodes_with_the_experts_that_any_of_it_visits(batch):
    r = solve(MIXTRAL, seq_len=16, batch_size=batch)
    missed = 8 * (1 - 2 / 8) ** batch
    read = 2 * (size(MIXTRAL) - 32 * missed * expert(MIXTRAL)) + kv_bytes(MIXTRAL, 16 * batch)
    matrices = 32 * (2 * 4096 * 128 * (32 + 8) + 2 * expert(MIXTRAL)) + 32_000 * 4096
    work = 2 * batch * matrices + 4 * 32 * 4096 * 16 * batch
    assert seconds(r.itl) == pytest.approx(max(read / BANDWIDTH, work / (0.5 * PEAK)))


@pytest.mark.parametrize("model", [MIXTRAL, DEEPSEEK])
def test_a_prefill_computes_what_a_single_pass_computes(model):
    """The two differ by the logits of all tokens but the last."""
    given = {"model": model, "seq_len": 4096, **H200}
    served, one = ServingSolver.solve(**given), SingleNodeSolver.solve(**given)
    more = 2 * 4095 * model.vocab_size * model.hidden_dim / (0.5 * PEAK)
    assert seconds(one.compute_time) - more == pytest.approx(seconds(served.ttft))
    assert served.ttft_bottleneck == "compute"


def test_utilizations_count_what_is_visited():
    """A decode step alone: nearly all of the time of a long answer to a short prompt."""
    r = solve(MIXTRAL, seq_len=1, output_len=2000)
    assert r.mbu == pytest.approx(1, rel=1e-3)
    active = 32 * (2 * 4096 * 128 * (32 + 8) + 2 * expert(MIXTRAL)) + 32_000 * 4096
    score = 4 * 32 * 4096 * 1001
    assert r.hfu == pytest.approx((2 * active + score) / PEAK / seconds(r.itl), rel=1e-3)
    batch = solve(MIXTRAL, seq_len=1, output_len=2000, batch_size=64)
    assert batch.energy_per_token < r.energy_per_token / 10


@pytest.mark.parametrize("model", [MIXTRAL, DEEPSEEK])
def test_memory_holds_every_expert(model):
    node = {"hardware": Systems.Nodes.HGX_H200, "tp_size": 8}
    for batch in (1, 64):
        r = solve(model, **node, seq_len=128, batch_size=batch)
        assert r.model_weights_size.to("byte").magnitude == pytest.approx(2 * size(model))
        own_share = 1 if model.latent else min(8, model.kv_heads)  # one vector for all heads
        held = 2 * size(model) / 8 + kv_bytes(model, 128 * batch) / own_share
        assert r.total_memory_required.to("byte").magnitude == pytest.approx(held)
