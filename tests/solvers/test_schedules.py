"""Schedules of a pipeline in the solver: bubbles and memory, by hand."""

from dataclasses import replace

import pytest

from mlsysim import DistributedSolver, Fleet, Models, ParallelismError, Systems
from tests.networks import fleet_of

FLEET = fleet_of(1)
JOB = {
    "model": Models.Llama3_70B,
    "fleet": FLEET,
    "batch_size": 16,
    "precision": "bf16",
    "pp_size": 8,
    "microbatch_count": 16,
}


def solve(**plan):
    return DistributedSolver.solve(**JOB | plan)


def bubble(**plan):
    return solve(**plan).pipeline_bubble_latency.to("s").magnitude


# Of a microbatch's time in a stage, T, each pass takes a third: 1F1B waits 7 T. ZB-H1 waits
# 7 (F + B - W) = 7/3 T, DualPipe (8/2 - 1)(F + 2 x 2F - 3F) = 3 x 2/3 T.
@pytest.mark.parametrize(
    ("schedule", "share"), [("1f1b", 7), ("gpipe", 7), ("zb-h1", 7 / 3), ("dualpipe", 2)]
)
def test_bubbles_of_the_textbook(schedule, share):
    r = solve(schedule=schedule, efficiency=0.5, recompute="none")
    busy = r.compute_latency + r.pp_communication_latency
    waiting = (r.pipeline_bubble_latency / busy).to("").magnitude
    assert waiting == pytest.approx(share / 16)
    assert r.bubble_fraction == pytest.approx(share / (share + 16))


def test_bubbles_of_operators_are_near_those():
    """Attention, norms and launches have no gradients of weights that could be put off."""
    whole = bubble()
    assert 1 / 3 < bubble(schedule="zb-h1") / whole < 0.6
    assert 2 / 7 < bubble(schedule="dualpipe") / whole < 0.5


def test_a_bidirectional_pipeline_holds_two_stages():
    one, split, both = (solve(schedule=kind) for kind in ("1f1b", "zb-h1", "dualpipe"))
    # Each stage of ZB-H1 holds eight microbatches, also the last one, which has the logits too.
    assert split.activation_memory == one.activation_memory
    assert (one.fullest_stage, split.fullest_stage) == (0, 7)
    # Twenty layers of 2 x 8192 x 128 x 72 + 3 x 8192 x 28,672 weights, and both tables
    layer = 2 * 8192 * 128 * 72 + 3 * 8192 * 28_672
    held = 2 * (20 * layer + 2 * 128_256 * 8192)
    assert both.weights_memory.to("byte").magnitude == pytest.approx(held, rel=1e-3)
    # Activations of p + 1 microbatches for p: eight of the first stage, and one of the last
    ratio = (both.activation_memory / one.activation_memory).to("").magnitude
    assert ratio == pytest.approx(9 / 8)


def test_copies_of_a_stage_share_what_replicas_share():
    plan = {"zero_stage": 1, "fleet": Systems.Clusters.Research_256, "batch_size": 512}
    one, both = (solve(schedule=kind, **plan) for kind in ("1f1b", "dualpipe"))
    ratio = (both.optimizer_memory / one.optimizer_memory).to("").magnitude
    assert ratio == pytest.approx(1, rel=1e-3)  # half of two stages that are as large
    assert (both.gradient_memory / one.gradient_memory).to("").magnitude == pytest.approx(
        2, rel=1e-3
    )


@pytest.mark.parametrize(
    "plan",
    [
        {"schedule": "dualpipe", "microbatch_count": 8},
        {"schedule": "dualpipe", "pp_size": 1},
        {"schedule": "gpipe", "virtual_stages": 2},
        {"schedule": "zb-h1", "virtual_stages": 2},
        {"schedule": "dualpipe", "virtual_stages": 2},
    ],
)
def test_schedules_that_cannot_run_are_refused(plan):
    with pytest.raises(ParallelismError) as fault:
        solve(**plan)
    assert fault.value.argument == "schedule"


@pytest.mark.parametrize(("zero_stage", "once_more"), [(2, 0.05), (3, 1e-9)])
def test_a_microbatch_passes_one_of_a_devices_two_stages(zero_stage, once_more):
    """So its weights are gathered, and its gradients scattered, as often as with one stage.

    With ZeRO-2, both stages' weights are also gathered once per step.
    """
    job = {
        "fleet": Systems.Clusters.Research_256,
        "batch_size": 512,
        "zero_stage": zero_stage,
        "gradient_overlap": 0.0,
    }
    one, both = (solve(**job, schedule=kind) for kind in ("1f1b", "dualpipe"))
    more = (both.dp_communication_latency / one.dp_communication_latency).to("").magnitude
    assert more == pytest.approx(1, abs=once_more)
    assert (more > 1 + 1e-6) == (zero_stage == 2)


# Layers that wait for the host, for tensor parallelism, and for the gathers of their weights
@pytest.mark.parametrize(
    "plan",
    [
        {"model": Models.DeepSeek_V3, "batch_size": 64, "seq_len": 512, "microbatch_count": 4}
        | {"tp_size": 4, "precision": "fp8", "zero_stage": 1, "recompute": "none"},
        {"batch_size": 64, "seq_len": 512, "microbatch_count": 16, "recompute": "full"}
        | {"tp_size": 8, "schedule": "dualpipe", "precision": "fp8"},
        {"model": Models.Mixtral_8x7B, "batch_size": 64, "seq_len": 2048, "zero_stage": 3}
        | {"pp_size": 4, "microbatch_count": 4, "first_stage_layers": 1, "ep_size": 2}
        | {"precision": "fp8", "recompute": "none"},
    ],
)
def test_faster_parts_never_make_a_step_longer(plan):
    """Also when a layer's gradients of weights shrink and the layer takes as long."""
    node, fabric = Systems.Nodes.DGX_B200, Systems.Fabrics.InfiniBand_NDR
    device, link = node.accelerator, node.scale_up
    memory = replace(device.memory, bandwidth=2 * device.memory.bandwidth)
    rates = {name: 2 * getattr(device.compute, name) for name in ("bf16", "fp8")}
    steps = []
    for each in (
        node,
        replace(node, accelerator=replace(device, memory=memory)),
        replace(node, accelerator=replace(device, compute=replace(device.compute, **rates))),
        replace(node, scale_up=replace(link, bandwidth=2 * link.bandwidth)),
    ):
        fleet = Fleet(name="Test", node=each, count=8, fabric=fabric)
        step = solve(**{"schedule": "zb-h1", "fleet": fleet} | plan).step_latency_total
        steps.append(step.to("s").magnitude)
    assert max(steps) <= steps[0] * (1 + 1e-9)


def test_a_host_that_cannot_keep_up_fills_no_bubble_with_the_devices_work():
    """A pipeline whose layers all wait for the host waits for it in the bubble as well."""
    small = {"model": Models.GPT2, "batch_size": 16, "seq_len": 64, "pp_size": 4}
    one, split = (solve(**small, schedule=kind) for kind in ("1f1b", "zb-h1"))
    assert one.launch_latency > 0.5 * one.step_latency_total
    # Per layer, the host launches F, B and W in 1, 1 and 0.5 of the forward pass's time. 1F1B waits
    # 3 (F + B + W), and ZB-H1 waits 3 (F + B - W).
    ratio = (split.pipeline_bubble_latency / one.pipeline_bubble_latency).to("").magnitude
    assert ratio == pytest.approx(1 - 3 / 7.5, abs=0.06)
