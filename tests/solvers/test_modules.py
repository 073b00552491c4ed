"""Recomputation by module and by layer, and optimizers, by hand."""

import dataclasses

import pytest

from mlsysim import Calibrations, ConfigError, DistributedSolver, Models, Systems
from tests.networks import fleet_of

FLEET = fleet_of(
    1, dataclasses.replace(Systems.Nodes.DGX_H100, accelerators_per_node=1, nics_per_node=1)
)
LLAMA = {"model": Models.Llama3_8B, "fleet": FLEET, "batch_size": 1, "precision": "bf16"}
SMALL = dataclasses.replace(
    Models.DeepSeek_V3, layers=2, moe_layers=1, mtp_layers=0, parameters=None
)


def solve(**plan):
    return DistributedSolver.solve(**LLAMA | plan)


def kept(**plan):
    return solve(**plan).activation_memory.to("byte").magnitude


# Elements per token that need not be kept: Llama 3 8B has 32 layers of two norms 4096 wide and a
# nonlinearity of 14,336.
@pytest.mark.parametrize(
    ("recompute", "elements"),
    [
        ("norms", 32 * 2 * 4096),
        ("swiglu", 32 * 14_336),
        ("norms+swiglu", 32 * (2 * 4096 + 14_336)),
        ("selective+norms+swiglu", 32 * (2 * 4096 + 14_336)),
    ],
)
def test_modules_of_llama(recompute, elements):
    saved = kept(recompute="none") - kept(recompute=recompute)
    assert saved == pytest.approx(2 * 8192 * elements)
    none, again = (solve(recompute=kind) for kind in ("none", recompute))
    assert again.compute_latency > none.compute_latency
    assert again.hfu == pytest.approx(none.hfu * none.step_latency_total / again.step_latency_total)


# DeepSeek-V3, a dense layer and one of experts: norms of 7168, and of the short vectors of 1,536
# and 512; nonlinearities of 18,432, and of eight experts of 2,048 and a shared one; queries and
# keys of 192 and values of 128 for 128 heads.
@pytest.mark.parametrize(
    ("recompute", "elements"),
    [
        ("norms", 2 * (2 * 7168 + 1536 + 512)),
        ("swiglu", 18_432 + 9 * 2048),
        ("mla_up", 2 * 128 * (192 + 192 + 128)),
    ],
)
def test_modules_of_deepseek(recompute, elements):
    plan = {"model": SMALL, "precision": "bf16"}
    saved = kept(**plan, recompute="none") - kept(**plan, recompute=recompute)
    assert saved == pytest.approx(2 * 4096 * elements)


def test_heads_that_are_made_again_count_as_operations():
    none, up = (solve(model=SMALL, recompute=kind) for kind in ("none", "mla_up"))
    # Two layers of 1536 x 128 x 192 + 512 x 128 x 256 weights, two operations each per token
    more = 4096 * 2 * 2 * (1536 * 128 * 192 + 512 * 128 * 256)
    assert (up.device_flops - none.device_flops).to("flop").magnitude == pytest.approx(more)


def test_heads_of_a_model_without_latent_attention_are_refused():
    with pytest.raises(ConfigError, match="mla_up") as fault:
        solve(recompute="norms+mla_up")
    assert fault.value.argument == "recompute"


def test_some_layers_of_a_stage_recompute():
    none, some, full = (
        solve(recompute=kind, recompute_layers=layers)
        for kind, layers in (("none", None), ("full", 8), ("full", None))
    )
    assert some.activation_memory.to("GB").magnitude == pytest.approx(
        (0.75 * none.activation_memory + 0.25 * full.activation_memory).to("GB").magnitude
    )
    assert some.device_flops.to("TFLOP").magnitude == pytest.approx(
        (0.75 * none.device_flops + 0.25 * full.device_flops).to("TFLOP").magnitude
    )
    assert none.compute_latency < some.compute_latency < full.compute_latency
    assert dict(solve(recompute="full", recompute_layers=32)) == dict(full)


# Bytes of state per parameter of Llama 3 8B: 6.98e9 in layers, 1.05e9 in two tables; four of a
# master weight, and 8 (two moments), 2 and two scales per block of 256, 4, none, 4. Tables keep
# two moments with Adam in 8 bits and with Muon.
@pytest.mark.parametrize(
    ("optimizer", "layers", "tables"),
    [
        ("adamw", 12, 12),
        ("adamw_8bit", 6.03125, 12),
        ("muon", 8, 12),
        ("adafactor", 4, 4),
        ("sgd", 8, 8),
    ],
)
def test_states_of_optimizers(optimizer, layers, tables):
    r = solve(optimizer=optimizer)
    table = 2 * 128_256 * 4096
    whole = Models.Llama3_8B.si("parameters")
    held = layers * (whole - table) + tables * table
    assert r.optimizer_memory.to("byte").magnitude == pytest.approx(held, rel=1e-4)
    sharded = solve(
        fleet=Systems.Clusters.Research_256, batch_size=256, optimizer=optimizer, zero_stage=1
    )
    assert sharded.optimizer_memory.to("byte").magnitude == pytest.approx(held / 256, rel=1e-4)


def test_updates_move_what_optimizers_keep():
    adam, sgd = (solve(optimizer=kind) for kind in ("adamw", "sgd"))
    # Adam: 2 x (8 + 4) + 2 + 2 bytes per parameter; SGD with momentum: 2 x (4 + 4) + 4
    ratio = (sgd.optimizer_latency / adam.optimizer_latency).to("").magnitude
    assert ratio == pytest.approx(20 / 28)


def cube(short, long):
    """Multiplications of an iteration of Muon: two products with the longer side, one without."""
    return short * short * (2 * long + short)


# Llama 3 8B: queries and output, keys and values, three matrices of the feed-forward block. Of the
# two layers of DeepSeek-V3, one has a block of 18,432, the other 256 experts and a shared one whose
# shorter side is 2,048; latent attention has five matrices: 1,536 and 512 are the ranks of queries
# and keys, and heads have 192, 128 and 128. A matrix of rank 16 is two of 16 by one of its sides.
LLAMA_LAYER = [(4096, 4096, 2), (1024, 4096, 2), (4096, 14_336, 3)]
LATENT = [
    (1536, 7168, 1),
    (1536, 128 * 192, 1),
    (576, 7168, 1),
    (512, 128 * 256, 1),
    (7168, 128 * 128, 1),
]
EXPERTS = [(2048, 7168, 3 * 257)]


@pytest.mark.parametrize(
    ("plan", "matrices"),
    [
        ({}, 32 * LLAMA_LAYER),
        ({"model": SMALL}, 2 * LATENT + [(7168, 18_432, 3), *EXPERTS]),
        ({"model": SMALL, "precision": "fp8"}, 2 * LATENT + [(7168, 18_432, 3), *EXPERTS]),
        (
            {"lora_rank": 16},
            32 * [(16, side, count) for *sides, count in LLAMA_LAYER for side in sides],
        ),
    ],
)
def test_muon_works_on_the_shorter_side_of_each_matrix(plan, matrices):
    sgd, muon = (solve(optimizer=kind, **plan) for kind in ("sgd", "muon"))
    work = (muon.optimizer_latency - sgd.optimizer_latency).to("s").magnitude
    # Five iterations of two operations, in 16 bits: 989 TFLOP/s, of which products reach a share.
    flops = 5 * 2 * sum(count * cube(short, long) for short, long, count in matrices)
    c = Calibrations.H100_Megatron
    rate = c.software.gemm_speed * c.machine.gemm("bf16") * 989.4e12
    assert work == pytest.approx(flops / rate, rel=1e-6)


def test_devices_that_share_a_matrix_share_the_work_of_muon():
    def work(**plan):
        plan = {"model": SMALL, "fleet": Systems.Clusters.Research_256, "batch_size": 256} | plan
        sgd, muon = (solve(optimizer=kind, **plan) for kind in ("sgd", "muon"))
        return (muon.optimizer_latency - sgd.optimizer_latency).to("s").magnitude

    alone = work()
    assert work(zero_stage=1) == pytest.approx(alone / 256)
    assert work(tp_size=8) == pytest.approx(alone / 8)
    # A device has four of 256 experts, and all of the rest.
    rest = sum(count * cube(*sides) for *sides, count in [*2 * LATENT, (7168, 18_432, 3)])
    rest, one = rest + 3 * cube(2048, 7168), 3 * cube(2048, 7168)
    assert work(ep_size=64) == pytest.approx(alone * (rest + 4 * one) / (rest + 256 * one))
