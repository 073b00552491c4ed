"""The lab on parallelism: that its claims follow from the package, and what it shows."""

import re
from dataclasses import replace

import pytest

from mlsysim import ConfigError, DistributedSolver, Systems
from mlsysim.core.types import RECOMPUTE
from mlsysim_course.labs.parallelism_paradox import (
    BATCH,
    BUBBLE_CEILING,
    CAUSES,
    FLEET,
    GPUS,
    HIDING,
    LAB,
    MAIL,
    MODELS,
    OPTIONS,
    PAIR,
    PREDICTION_1,
    PREDICTION_2,
    SPLIT,
    STORY,
    TARGET_MFU,
    Design,
    all_reduce_volume,
    best,
    outcome,
    step,
    undone,
)
from tests.course.instruments import DESIGNS, alerts

RIGHT = DESIGNS["parallelism_paradox"]


def mfu(gpus, **changes):
    return step(replace(MAIL, gpus=gpus, **changes)).mfu


# Act I


def test_utilization_falls_and_falls_further():
    small, middle, large = (mfu(gpus) for gpus in STORY)
    assert small > 0.5
    assert 0.35 < middle < 0.45
    assert large < small / 2.5
    curve = [mfu(gpus) for gpus in GPUS if gpus <= MAIL.batch]
    assert curve == sorted(curve, reverse=True)
    assert len(curve) == 7


def test_the_runs_of_the_email_fit_and_would_not_without_zero():
    assert all(step(MAIL.on(gpus)).feasible for gpus in STORY)
    alone = DistributedSolver.solve(
        model=MODELS["7b"],
        fleet=replace(Systems.Clusters.Research_256, count=64),
        batch_size=MAIL.batch,
        precision="bf16",
    )
    assert not alone.fits_memory


def test_the_right_prediction_is_the_largest_cause():
    """Each answer names a cause. Taking the right one away brings back most, by far."""
    lost = mfu(STORY[0]) - mfu(STORY[-1])
    back = {
        answer: (undone(MAIL, cause).mfu - mfu(STORY[-1])) / lost
        for answer, cause in CAUSES.items()
    }
    assert PREDICTION_1.truth() == "ratio"
    assert back.pop("ratio") > 0.9
    assert max(back.values()) < 0.1


def test_only_the_right_cause_stops_the_fall():
    """With faster memory the smallest cluster gains too, so the fall is as deep."""
    for cause in [*CAUSES.values(), "network"]:
        small, large = (undone(MAIL.on(gpus), cause).mfu for gpus in (STORY[0], STORY[-1]))
        assert (large > 0.95 * small) == (cause == "sharing")


def test_a_faster_network_makes_the_fall_smaller():
    networks = ["ethernet_100g", "infiniband_hdr", "infiniband_ndr", "nvlink4"]
    shares = [mfu(STORY[-1], fabric=fabric) for fabric in networks]
    assert shares == sorted(shares)
    assert undone(MAIL, "network").mfu == shares[-1]


def test_the_volume_of_a_ring_saturates():
    volumes = [all_reduce_volume(gpus) for gpus in GPUS]
    assert volumes == sorted(volumes)
    assert volumes[0] == pytest.approx(1.75)
    assert volumes[-1] < 2


def test_the_batch_of_each_gpu_held_the_fall_ends_after_the_first_server():
    first, *rest = (mfu(gpus, batch=8 * gpus) for gpus in GPUS)
    assert max(rest) < first
    assert max(rest) - min(rest) < 0.1 * first


def test_overlap_never_hides_more_than_there_is():
    assert 0 < HIDING.software.gradient_overlap < 1
    waits, hides = step(MAIL), step(replace(MAIL, hides=True))
    assert hides.mfu > waits.mfu
    hidden = waits.dp_communication_latency - hides.dp_communication_latency
    assert hidden < 1.1 * waits.compute_latency
    assert waits.step_latency_low is None
    assert hides.step_latency_low is not None


def test_the_other_reflections_are_wrong_as_stated():
    now, faster, quantized = step(MAIL), undone(MAIL, "arithmetic"), undone(MAIL, "bytes")
    assert faster.mfu < now.mfu
    assert faster.step_latency_total < now.step_latency_total
    assert mfu(MAIL.gpus, batch=2 * MAIL.batch) > now.mfu
    assert now.mfu < quantized.mfu < step(replace(MAIL, hides=True)).mfu


def test_the_price_behind_the_waste_is_an_estimate():
    assert "unit_price" in Systems.Nodes.DGX_H100.estimated


def test_a_cause_that_nobody_named_is_refused():
    with pytest.raises(KeyError):
        undone(MAIL, "gremlins")


# Act II


@pytest.mark.parametrize(
    ("name", "failures"),
    [
        ("wide", {"servers"}),
        ("balanced", set()),
        ("deep", {"memory", "bubble"}),
        ("flat", {"memory"}),
    ],
)
def test_the_others_fail_for_the_reason_given(name, failures):
    assert set(best(name).failures) == failures
    design = best(name).design
    assert design.tp * design.pp * design.dp == FLEET.total_accelerators


def test_no_number_of_microbatches_saves_a_wrong_option():
    """`best` looks at few; this looks at all that divide the batch."""
    right = best(PREDICTION_2.truth()).result.mfu
    for name, (tp, pp) in OPTIONS.items():
        sequences = BATCH // Design(tp, pp, 1).dp
        for count in (m for m in range(1, sequences + 1) if sequences % m == 0):
            tried = outcome(Design(tp, pp, count))
            if name == "balanced":
                assert not tried.accepted or tried.result.mfu <= right + 1e-12
            else:
                assert not tried.accepted
                assert not tried.result.feasible or tried.result.mfu < right


def test_the_sizes_alone_do_not_make_it_fit():
    assert outcome(replace(best("balanced").design, sharded=False)).failures == ("memory",)


def test_some_designs_do_better_as_the_closing_says():
    tps, pps, counts, _ = SPLIT.controls
    tried = [
        outcome(Design(tp, pp, m)) for tp in tps.values for pp in pps.values for m in counts.values
    ]
    accepted = [one for one in tried if one.accepted]
    right = best("balanced").result.mfu
    assert 0 < sum(one.result.mfu > right for one in accepted) < 10
    assert max(one.result.mfu for one in accepted) < 1.08 * right
    assert all(one.result.mfu >= TARGET_MFU for one in accepted)
    assert all(one.result.bubble_fraction <= BUBBLE_CEILING for one in accepted)
    kinds = {failure for one in tried for failure in one.failures}
    assert kinds == {"sizes", "memory", "microbatches", "servers", "bubble"}


def test_tensor_parallelism_over_servers_is_slow_because_of_its_all_reduces():
    inside, across = (outcome(design).result for design in PAIR)
    longer = across.tp_communication_latency - inside.tp_communication_latency
    assert longer > 0.5 * (across.step_latency_total - inside.step_latency_total)
    assert across.mfu < inside.mfu
    assert RECOMPUTE["selective"].all_reduces_per_layer == 4  # as the page says


# The instruments


@pytest.mark.parametrize(
    ("changes", "name", "numbers"),
    [
        ({"zero": "replicated"}, "memory", {"78.7", "99.1"}),
        ({"tp": 16}, "servers", {"16", "2", "8"}),
        ({"microbatches": 24}, "bubble", {"4", "24", "11.1"}),
        ({"microbatches": 32}, "microbatches", {"1,536", "32", "1.5", "48"}),
        ({"pp": 64}, "layers", {"96", "64", "2"}),
        ({}, "accepted", set()),
    ],
)
def test_every_alert_of_a_design_can_be_met(changes, name, numbers):
    shown = alerts("parallelism_paradox/split", RIGHT | changes)
    assert numbers <= set(re.findall(r"\d[\d,]*(?:\.\d+)?", shown[name]))
    assert ("accepted" in shown) == (name == "accepted")


def test_advice_about_memory_depends_on_what_does_not_fit():
    def advice(changes):
        return re.sub(
            r"[\d.,]+", "", alerts("parallelism_paradox/split", RIGHT | changes)["memory"]
        )

    assert advice({"zero": "replicated"}) == advice({"pp": 1})
    assert advice({"microbatches": 8}) != advice({"pp": 1})


@pytest.mark.parametrize("changes", [{"pp": 3}, {"tp": 128, "pp": 1}, {"tp": 8, "pp": 128}])
def test_sizes_that_do_not_multiply_up_are_refused_and_recorded(changes):
    with pytest.raises(ConfigError):
        SPLIT.view(RIGHT | changes)
    predictions = {asked.id: asked.truth() for asked in LAB.predictions}
    shown = LAB.view(predictions | RIGHT | changes)
    assert shown["ledger"]["result"]["refused"]
    assert not shown["ledger"]["result"]["accepted"]
    assert {"label": "Setting", "value": "impossible"} in shown["status"]


def test_the_chart_leaves_out_what_cannot_run():
    scaling = LAB.explorer("parallelism_paradox/scaling")
    for batch, sizes in (("all-256", GPUS[:6]), ("each-8", GPUS)):
        first = scaling.view({"batch": batch})["charts"][0]["series"][0]
        assert tuple(gpus for gpus, _ in first["points"]) == sizes
