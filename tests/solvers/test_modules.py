"""Recomputation by module and by layer, and optimizers, by hand."""

from __future__ import annotations

import dataclasses

import pytest

from mlsysim import ConfigError, DistributedSolver, Fleet, Models, Systems

FLEET = Fleet(
    name="Test",
    node=dataclasses.replace(Systems.Nodes.DGX_H100, accelerators_per_node=1, nics_per_node=1),
    count=1,
    fabric=Systems.Fabrics.InfiniBand_NDR,
)
LLAMA = {"model": Models.Llama3_8B, "fleet": FLEET, "batch_size": 1, "precision": "bf16"}
SMALL = dataclasses.replace(Models.DeepSeek_V3, layers=2, moe_layers=1, parameters=None)
DEEPSEEK = LLAMA | {"model": SMALL}


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
    adam, sgd, muon = (solve(optimizer=kind) for kind in ("adamw", "sgd", "muon"))
    # Adam: 2 x (8 + 4) + 2 + 2 bytes per parameter; SGD with momentum: 2 x (4 + 4) + 4
    ratio = (sgd.optimizer_latency / adam.optimizer_latency).to("").magnitude
    assert ratio == pytest.approx(20 / 28)
    # Muon: 5 x 6 x 4096 operations per parameter, at three quarters of 989 TFLOP/s at most.
    work = (muon.optimizer_latency - sgd.optimizer_latency).to("s").magnitude
    least = 30 * 4096 * Models.Llama3_8B.si("parameters") / 989.4e12
    assert least < work < 2 * least
