"""Anti-patterns are found where they are, and mended by what is said."""

from dataclasses import replace

import pytest

from mlsysim import ConfigError, DistributedSolver, Fleet, Models, Systems, diagnose

ETHERNET = Systems.Clusters.Research_256
NDR = replace(ETHERNET, name="256 on NDR", fabric=Systems.Fabrics.InfiniBand_NDR)
RACKS = Fleet(
    name="racks",
    node=Systems.Nodes.GB200_NVL72,
    count=8,
    fabric=Systems.Fabrics.InfiniBand_NDR,
)
LARGE = {"model": Models.Llama3_70B, "fleet": ETHERNET, "batch_size": 256, "seq_len": 2048}
LITTLE = {"model": Models.Llama3_8B, "fleet": NDR, "batch_size": 2048, "seq_len": 2048}
BAD = {
    "tensor parallelism over a slow link": LARGE
    | {"tp_size": 16, "pp_size": 4, "microbatch_count": 32},
    "groups that straddle nodes": LARGE
    | {"fleet": RACKS, "batch_size": 288, "tp_size": 16, "pp_size": 2, "microbatch_count": 16},
    "tensor groups wider than needed": LITTLE
    | {"tp_size": 8, "zero_stage": 1, "microbatch_count": 8},
    "small batch on many replicas": LITTLE
    | {"fleet": ETHERNET, "batch_size": 256, "zero_stage": 1},
    "few microbatches": LARGE
    | {"tp_size": 8, "pp_size": 16, "microbatch_count": 4, "sequence_parallel": True},
    "accumulation without need": LITTLE
    | {"tp_size": 2, "zero_stage": 1, "microbatch_count": 16, "sequence_parallel": True},
    "recomputation without need": LARGE
    | {"tp_size": 8, "pp_size": 4, "microbatch_count": 32, "recompute": "full"},
}
GOOD = LARGE | {
    "fleet": NDR,
    "tp_size": 4,
    "pp_size": 4,
    "microbatch_count": 16,
    "virtual_stages": 5,
    "sequence_parallel": True,
    "zero_stage": 1,
}


@pytest.mark.parametrize("name", BAD)
def test_a_pattern_is_found_and_its_change_mends_it(name):
    found = {item.name: item for item in diagnose(BAD[name])}
    assert name in found
    item = found[name]
    before = DistributedSolver.solve(**BAD[name])
    after = DistributedSolver.solve(**item.configuration)
    gain = (after.token_throughput / before.token_throughput).to("").magnitude - 1
    assert item.gain == pytest.approx(gain)
    assert gain >= 0.01
    assert after.feasible or not before.feasible
    # The change names each argument that differs, and the mended plan has the pattern no more.
    for argument, value in item.configuration.items():
        if value != BAD[name].get(argument):
            assert f"{argument} = {value}" in item.change or argument in BAD[name] or value == 1
    left = {again.name: again.gain for again in diagnose(item.configuration)}
    assert left.get(name, 0) < item.gain


def test_evidence_holds_the_solver_s_numbers():
    name = "tensor parallelism over a slow link"
    result = DistributedSolver.solve(**BAD[name])
    (item,) = (d for d in diagnose(result) if d.name == name)
    share = (result.tp_communication_latency / result.step_latency_total).to("").magnitude
    assert f"{share:.0%} of the step" in item.evidence
    # Eight devices of a node have a port of 12.5 GB/s each.
    assert "100 GB/s" in item.evidence


def test_patterns_are_silent_where_they_do_not_apply():
    names = {item.name for item in diagnose(GOOD)}
    assert names.isdisjoint(
        {
            "tensor parallelism over a slow link",
            "groups that straddle nodes",
            "small batch on many replicas",
            "accumulation without need",
            "recomputation without need",
        }
    )


def test_replicas_without_sequences_are_a_small_batch():
    plan = LARGE | {"batch_size": 64, "zero_stage": 3}
    found = {item.name: item for item in diagnose(plan)}
    item = found["small batch on many replicas"]
    assert "0.25 each" in item.evidence
    assert item.configuration["batch_size"] >= 256


def test_greatest_gain_comes_first():
    gains = [item.gain for item in diagnose(BAD["accumulation without need"])]
    assert len(gains) > 1
    assert gains == sorted(gains, reverse=True)


@pytest.mark.parametrize("plan", [None, 3, "plan"])
def test_what_is_no_plan_is_refused(plan):
    with pytest.raises(ConfigError, match="is not a plan"):
        diagnose(plan)
