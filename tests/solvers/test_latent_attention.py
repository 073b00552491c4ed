"""Multi-head latent attention: DeepSeek-V3's and Kimi K2's, by hand."""

import dataclasses

import pytest

from mlsysim import DistributedSolver, Hardware, Models, ServingSolver, Systems
from mlsysim.solvers.work import kv_cache, token_flops
from tests.networks import fleet_of

# Per layer, DeepSeek-V3 (128 heads) and Kimi K2 (64 heads), both 7,168 wide:
# 7168 x 1536 + 1536 x 128 x 192 + 7168 x 576 + 512 x 128 x 256 + 128 x 128 x 7168
PARAMETERS = {"DeepSeek_V3": 187_105_280, "Kimi_K2": 101_122_048}
# Elements per token: each head keeps a query and a key of 192, a value and an output of 128, which
# makes 640; 1,536 of the queries' vector before and after its norm, 576 and 512 of the other.
KEPT = {"DeepSeek_V3": 128 * 640 + 2 * 1536 + 576 + 512, "Kimi_K2": 64 * 640 + 4160}
names = pytest.mark.parametrize("name", PARAMETERS)


def solve(**plan):
    return DistributedSolver.solve(
        **{"fleet": fleet_of(1), "batch_size": 8, "precision": "bf16"} | plan
    )


@names
def test_parameters(name):
    model = Models[name]
    assert model.groups[0].attention_parameters(model.hidden_dim) == PARAMETERS[name]
    counted = dataclasses.replace(model, parameters=None)
    # What is stated has routers and norms too.
    assert counted.si("parameters") == pytest.approx(model.si("parameters"), rel=2e-4)


@names
def test_kept_activations(name):
    assert KEPT == {"DeepSeek_V3": 86_080, "Kimi_K2": 45_120}
    # One dense layer, alone: 2 x 7168 of norms in and out twice, the attention, 3 x 18,432 of the
    # gated block, and a statistic of 4 bytes per head.
    model = dataclasses.replace(Models[name], layers=2, moe_layers=1, mtp_layers=0, parameters=None)
    r = solve(model=model, recompute="none")
    dense = 2 * (4 * 7168 + KEPT[name] + 3 * 18_432) + 4 * model.heads
    experts = 2 * (4 * 7168 + KEPT[name] + 8 * (7168 + 3 * 2048) + 3 * 2048) + 4 * model.heads
    assert r.activation_memory.to("byte").magnitude == pytest.approx(4096 * (dense + experts))


def test_tensor_ranks_split_heads_but_not_the_short_vectors():
    model = dataclasses.replace(
        Models.DeepSeek_V3, layers=2, moe_layers=1, mtp_layers=0, parameters=None
    )
    one, two, parallel = (
        solve(model=model, recompute="none", microbatch_count=8 // (8 // n), **plan)
        .activation_memory.to("byte")
        .magnitude
        for n, plan in (
            (1, {}),
            (2, {"tp_size": 2}),
            (2, {"tp_size": 2, "sequence_parallel": True}),
        )
    )
    # Per layer and token, 4,160 elements and 4 x 7168 of the norms are on every rank.
    alone = 2 * 2 * 4096 * (4160 + 4 * 7168)
    assert two == pytest.approx((one - alone) / 2 + alone)
    assert parallel == pytest.approx(one / 2)


@names
def test_operations(name):
    model = Models[name]
    flops = token_flops(model, 4096, 2)
    visited = 3 * 7168 * 2048 * 9
    dense = model.layers - model.moe_layers
    matrices = model.layers * PARAMETERS[name] + model.moe_layers * visited
    matrices += dense * 3 * 7168 * 18_432
    assert flops.matrix == 2 * matrices
    # A score of 192 and a value of 128 for each of half the positions.
    assert flops.score == 2 * model.layers * model.heads * (192 + 128) * 4096 / 2


def test_keys_and_values_that_go_round():
    """Ring attention sends those of all heads: 128 x (192 + 128) elements per token."""
    a = Models.DeepSeek_V3.groups[0].attention
    assert 2 * a.kv_heads * a.head_dim == 128 * (192 + 128) == 40_960


@names
def test_a_server_keeps_the_short_vector(name):
    model = Models[name]
    assert kv_cache(model, 1, 1, 2, 2) == 2 * 61 * 576
    r, split = (
        ServingSolver.solve(
            model=model, hardware=Systems.DGX_H100, seq_len=8192, tp_size=n, efficiency=0.5
        )
        for n in (1, 8)
    )
    cache = r.kv_cache_size.to("byte").magnitude
    own = [x.total_memory_required.to("byte").magnitude for x in (r, split)]
    weights = 2 * model.si("parameters")
    assert own[0] - weights == pytest.approx(cache, rel=1e-3)
    assert own[1] - weights / 8 == pytest.approx(cache, rel=1e-3)  # every device keeps it


def test_decode_attends_to_the_short_vectors():
    """Absorbed: 128 heads x (576 + 512) multiply-accumulates per cached token and layer."""
    a = Models.DeepSeek_V3.groups[0].attention
    assert 2 * 2 * a.heads * a.decode_dim == 278_528
    peak = Hardware.H200.compute.fp16.to("flop/s").magnitude
    given = {"model": Models.DeepSeek_V3, "hardware": Hardware.H200, "efficiency": 1e-4}
    itl = [
        ServingSolver.solve(**given, batch_size=64, output_len=2, seq_len=n).itl.to("s").magnitude
        for n in (4096, 8192)
    ]
    assert itl[1] - itl[0] == pytest.approx(64 * 61 * 278_528 * 4096 / (1e-4 * peak))
