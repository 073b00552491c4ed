"""Calls that the first edition's distributed-training pages made still work, in both styles.

Results were dictionaries first and attributes later; names, units and print formats are in print.
What the numbers must be is tested elsewhere; here it is the surface, and that the physics is sane.
"""

from __future__ import annotations

import itertools

import pytest

import mlsysim
from mlsysim import DistributedModel, DistributedSolver, Fleet, Models, NetworkFabric, Systems

MODEL = mlsysim.Models.Llama3_70B
CLUSTER = mlsysim.Systems.Clusters.Research_256
SIZES = {"tp_size": 1, "pp_size": 1}


@pytest.fixture(params=[DistributedSolver(), DistributedModel()], ids=["solver", "model"])
def solver(request):
    return request.param


def solve(solver, fleet=CLUSTER, **sizes):
    return solver.solve(
        model=MODEL, fleet=fleet, batch_size=256, precision="fp16", **{**SIZES, **sizes}
    )


def test_names_and_formats_of_the_registries():
    assert MODEL is Models.Language.Llama3_70B
    assert (MODEL.layers, MODEL.hidden_dim, MODEL.heads, MODEL.kv_heads) == (80, 8192, 64, 8)
    assert f"{MODEL.parameters.to('Gparam'):.0f}" == "71 Gparam"
    assert (CLUSTER.count, CLUSTER.node.accelerators_per_node) == (32, 8)
    assert CLUSTER.total_accelerators == 256
    assert isinstance(CLUSTER.fabric, NetworkFabric)
    assert f"{CLUSTER.fabric.bandwidth.to('GB/s'):>10.0f~}".split() == ["12", "GB", "/", "s"]


def test_dictionary_and_attributes_are_the_same_objects(solver):
    r = solve(solver)
    for name in (
        "dp_communication_latency",
        "tp_communication_latency",
        "communication_latency",
        "pipeline_bubble_latency",
        "bubble_fraction",
        "step_latency_total",
        "scaling_efficiency",
        "effective_throughput",
        "parallelism",
    ):
        assert r[name] is getattr(r, name)
    assert r["node_performance"] is r.node_profile
    assert r.node_performance.latency is r.compute_latency
    assert dict(r)["parallelism"]["dp"] == 256
    assert (r["parallelism"]["tp"], r["parallelism"]["pp"]) == (1, 1)
    assert type(r.scaling_efficiency) is type(r.bubble_fraction) is float
    assert f"{r.pipeline_bubble_latency.to('ms'):>10.1f~}".split() == ["0.0", "ms"]
    assert r.effective_throughput.magnitude == pytest.approx(
        256 / r.step_latency_total.to("s").magnitude
    )
    assert not r.feasible, "a 70B model does not train on one device"


def test_a_faster_fabric_shortens_the_all_reduce_between_nodes(solver):
    names = ("Ethernet_100G", "InfiniBand_HDR", "InfiniBand_NDR")
    results = [
        solve(
            solver,
            Fleet(
                name="Custom",
                node=Systems.Nodes.DGX_H100,
                count=32,
                fabric=Systems.Fabrics[name],
            ),
        )
        for name in names
    ]
    times = [r["dp_communication_latency"].to("s").magnitude for r in results]
    # Eight ports a node make up for one link within it, and no more.
    assert 1.8 < times[0] / times[1] <= 2.05
    assert 1 < times[1] / times[2] <= 2.05
    efficiency = [r["scaling_efficiency"] for r in results]
    assert efficiency == sorted(efficiency)


def test_the_pipeline_sweep(solver):
    table = {
        (stages, microbatches): solve(solver, pp_size=stages, microbatch_count=microbatches)
        for stages, microbatches in itertools.product((1, 2, 4, 8), (1, 4, 16))
    }
    for (stages, microbatches), r in table.items():
        assert r.bubble_fraction == pytest.approx((stages - 1) / (stages - 1 + microbatches))
        assert r.parallelism.dp * stages == 256
        assert 0 < r.scaling_efficiency < 1
    # With one microbatch a deeper pipeline wastes more, which the first edition had the other way.
    assert table[8, 1].scaling_efficiency < table[4, 1].scaling_efficiency
    assert table[4, 1].scaling_efficiency < table[2, 1].scaling_efficiency
    # Sixteen microbatches of two stages leave an eighth of a sequence each: said, not refused.
    assert any("0.125" in reason for reason in table[2, 16].reasons)


def test_sizes_that_do_not_tile_are_a_value_error(solver):
    with pytest.raises(ValueError, match="does not divide the fleet's 256 devices"):
        solve(solver, tp_size=3)
