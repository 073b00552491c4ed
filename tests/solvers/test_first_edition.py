"""Calls that the first edition's pages made still work: names of arguments and results, formats.

Results were dictionaries first and attributes later; names, units and print formats are in print.
What the numbers must be is tested elsewhere; here it is the surface.
"""

import matplotlib as mpl
import pytest

import mlsysim
from mlsysim import (
    DistributedModel,
    DistributedSolver,
    EconomicsSolver,
    Engine,
    Fleet,
    Infra,
    Models,
    NetworkFabric,
    ReliabilitySolver,
    ServingSolver,
    SustainabilitySolver,
    Systems,
)

MODEL = mlsysim.Models.Llama3_70B
CLUSTER = mlsysim.Systems.Clusters.Research_256
FLEET = Systems.Clusters.Frontier_8K


def test_names_and_formats_of_the_registries():
    assert MODEL is Models.Language.Llama3_70B
    assert (MODEL.layers, MODEL.hidden_dim, MODEL.heads, MODEL.kv_heads) == (80, 8192, 64, 8)
    assert f"{MODEL.parameters.to('Gparam'):.0f}" == "71 Gparam"
    assert (CLUSTER.count, CLUSTER.node.accelerators_per_node) == (32, 8)
    assert CLUSTER.total_accelerators == 256
    assert isinstance(CLUSTER.fabric, NetworkFabric)
    assert f"{CLUSTER.fabric.bandwidth.to('GB/s'):>10.0f~}".split() == ["12", "GB", "/", "s"]


@pytest.mark.parametrize("solver", [DistributedSolver(), DistributedModel()])
def test_dictionary_and_attributes_are_the_same_objects(solver):
    sizes = {"batch_size": 256, "tp_size": 1, "pp_size": 1}
    r = solver.solve(model=MODEL, fleet=CLUSTER, precision="fp16", **sizes)
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


def test_a_pass_on_one_device():
    device = mlsysim.Hardware.Cloud.A100
    profile = Engine.solve(
        model=mlsysim.Models.ResNet50, hardware=device, batch_size=1, precision="fp16"
    )
    assert f"{device.compute.peak_flops.to('TFLOPs/s'):.0f}".startswith("312 TFLOP")
    assert f"{profile.latency.to('ms'):~.3f} {profile.throughput:.0f}"
    assert f"{profile.bottleneck:<16}".strip() in {"compute", "memory", "overhead"}
    full = Engine.solve(
        model=mlsysim.Models.ResNet50, hardware=device, batch_size=1, precision="fp16", efficiency=1
    )
    assert full.compute_time < profile.compute_time
    for name in ("arithmetic_intensity", "energy", "memory", "mfu"):
        assert profile[name]
    mpl.use("Agg")
    figure, axes = mlsysim.plot_roofline(device, workloads=[mlsysim.Models.ResNet50])
    assert axes in figure.axes


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_serving(precision):
    r = ServingSolver().solve(
        model=mlsysim.Models.Llama3_8B,
        hardware=mlsysim.Hardware.Cloud.H100,
        seq_len=8192,
        batch_size=8,
        precision=precision,
    )
    assert r["feasible"]
    assert f"{r['ttft'].to('ms'):>8.1f~} {r['itl'].to('ms'):~.2f}"
    for name in ("kv_cache_size", "model_weights_size", "total_memory_required"):
        assert f"{r[name]:>10.3f~}".endswith("GB")
    assert f"{r['memory_utilization']:.1%}".endswith("%")


def test_a_format_that_is_only_stored_has_an_argument_of_its_own():
    asked = {"model": mlsysim.Models.Llama3_8B, "hardware": mlsysim.Hardware.Cloud.H100}
    with pytest.raises(ValueError, match="weight_precision="):
        ServingSolver.solve(**asked, precision="int4")
    assert ServingSolver.solve(**asked, weight_precision="int4").feasible


@pytest.mark.parametrize("place", [Infra.Quebec, Infra.Grids.Poland, Infra.Hyperscale_US])
def test_sustainability(place):
    r = SustainabilitySolver().solve(fleet=FLEET, duration_days=30, datacenter=place)
    # Energies in kWh were quantities there, carbon and water plain numbers.
    assert r["total_energy_kwh"].magnitude == r.total_energy.to("kWh").magnitude
    assert r["it_energy_kwh"] * r["pue"] == pytest.approx(r["total_energy_kwh"])
    assert f"{r['carbon_footprint_kg']:.1f} {r['water_usage_liters'] / 1000:,.1f}"
    assert f"{r['region_name']:<20} {r['pue']:>5.2f}"


def test_reliability_and_economics():
    fleet = Fleet(
        name="own",
        node=Systems.Nodes.DGX_H100,
        count=16,
        fabric=mlsysim.Systems.Fabrics.InfiniBand_NDR,
    )
    job = ReliabilitySolver().solve(fleet=fleet, job_duration_hours=720, checkpoint_time_s=60)
    assert job["fleet_mtbf"].to("hour").magnitude > 0 < job["expected_failures"]
    assert 0 < job["failure_probability"] < 1
    assert job["optimal_checkpoint_interval"].to("minute").magnitude > 0
    cost = EconomicsSolver().solve(
        fleet=fleet, duration_days=365, kwh_price=0.12, datacenter=None, grid=Infra.Quebec
    )
    parts = ("capex_usd", "opex_energy_usd", "opex_maintenance_usd")
    assert sum(cost[name] for name in parts) == pytest.approx(cost["tco_usd"])
    assert cost["total_opex_usd"] < cost["tco_usd"]
