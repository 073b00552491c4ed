"""The model supports the story: the emails' numbers, the right answers, the ways out."""

from __future__ import annotations

import dataclasses
import re

import pytest

from mlsysim import DistributedSolver
from mlsysim.core.types import RECOMPUTE
from mlsysim.registry import Systems
from mlsysim.registry.conventions import CONVENTIONS
from mlsysim_course.labs.parallelism_paradox import design, scaling, view
from mlsysim_course.labs.parallelism_paradox.design import (
    BUBBLE_CEILING,
    OPTIONS,
    TARGET_MFU,
    Design,
    best,
    solve,
)
from mlsysim_course.labs.parallelism_paradox.scaling import MAIL, STORY, all_reduce_volume, undone
from mlsysim_course.labs.parallelism_paradox.state import DESIGN, PREDICTION_1, PREDICTION_2

CAUSES = {"software": "latency", "ratio": "sharing", "memory": "memory", "volume": "volume"}


def mfu(gpus, **changes):
    return scaling.solve(dataclasses.replace(MAIL, gpus=gpus, **changes)).mfu


def test_the_email_has_the_solvers_numbers():
    mail = view({})["blocks"][1]["paragraphs"][1]
    told = [int(figure) for figure in re.findall(r"(\d+)%", mail)]
    assert told == [round(100 * mfu(gpus)) for gpus in STORY]


def test_utilization_falls_and_falls_further():
    small, middle, large = (mfu(gpus) for gpus in STORY)
    assert small > 0.5
    assert 0.35 < middle < 0.45
    assert large < small / 2.5
    curve = [mfu(gpus) for gpus in scaling.GPUS if gpus <= MAIL.batch]
    assert curve == sorted(curve, reverse=True)
    assert len(curve) == 7


def test_the_runs_of_the_email_are_feasible():
    assert all(scaling.solve(MAIL.on(gpus)).feasible for gpus in STORY)


def test_without_zero_it_would_not_fit_as_the_email_says():
    alone = DistributedSolver.solve(
        model=scaling.MODELS["7b"],
        fleet=dataclasses.replace(Systems.Clusters.Research_256, count=64),
        batch_size=MAIL.batch,
        precision="bf16",
    )
    assert not alone.fits_memory


def test_the_right_prediction_is_the_largest_cause():
    """Each answer names a cause. Taking the right one away brings back most, by far."""
    assert set(CAUSES) == set(PREDICTION_1.options)
    lost = mfu(STORY[0]) - mfu(STORY[-1])
    back = {
        answer: (undone(MAIL, cause).mfu - mfu(STORY[-1])) / lost
        for answer, cause in CAUSES.items()
    }
    assert max(back, key=lambda answer: back[answer]) == PREDICTION_1.right
    assert back[PREDICTION_1.right] > 0.9
    assert max(share for answer, share in back.items() if answer != PREDICTION_1.right) < 0.1


def test_only_the_right_cause_stops_the_fall():
    """With faster memory the smallest cluster gains too, so the fall is as deep."""
    for cause in [*CAUSES.values(), "network"]:
        small, large = (undone(MAIL.on(gpus), cause).mfu for gpus in (STORY[0], STORY[-1]))
        assert (large > 0.95 * small) == (cause == CAUSES[PREDICTION_1.right])


def test_a_faster_network_makes_the_fall_smaller():
    networks = ["ethernet_100g", "infiniband_hdr", "infiniband_ndr", "nvlink4"]
    found = [mfu(STORY[-1], fabric=fabric) for fabric in networks]
    assert found == sorted(found)
    assert undone(MAIL, "network").mfu == found[-1]


def test_the_volume_of_a_ring_saturates():
    volumes = [all_reduce_volume(gpus) for gpus in scaling.GPUS]
    assert volumes == sorted(volumes)
    assert volumes[0] == pytest.approx(1.75)
    assert volumes[-1] < 2


def test_the_batch_of_each_gpu_held_the_fall_ends_after_the_first_server():
    first, *rest = (mfu(gpus, batch=8 * gpus) for gpus in scaling.GPUS)
    assert max(rest) < first
    assert max(rest) - min(rest) < 0.1 * first


def test_overlap_never_hides_more_than_there_is():
    assert 0 < scaling.HIDING.software.gradient_overlap < 1
    waits, hides = scaling.solve(MAIL), scaling.solve(dataclasses.replace(MAIL, hides=True))
    assert hides.mfu > waits.mfu
    hidden = waits.dp_communication_latency - hides.dp_communication_latency
    assert hidden < 1.1 * waits.compute_latency
    assert waits.step_latency_low is None
    assert hides.step_latency_low is not None


def test_the_other_reflections_are_wrong_as_stated():
    now = scaling.solve(MAIL)
    assert undone(MAIL, "arithmetic").mfu < now.mfu
    assert undone(MAIL, "arithmetic").step_latency_total < now.step_latency_total
    assert mfu(MAIL.gpus, batch=2 * MAIL.batch) > now.mfu
    quantized = undone(MAIL, "bytes")
    assert now.mfu < quantized.mfu < scaling.solve(dataclasses.replace(MAIL, hides=True)).mfu


def test_the_price_behind_the_waste_is_an_estimate():
    assert "unit_price" in Systems.Nodes.DGX_H100.estimated


def test_a_cause_that_nobody_named_is_refused():
    with pytest.raises(KeyError):
        undone(MAIL, "gremlins")


# Act II


def test_the_right_design_is_the_best_of_the_four():
    found = {name: best(name) for name in OPTIONS}
    runs = {name: one.result.mfu for name, one in found.items() if one.result.feasible}
    assert max(runs, key=lambda name: runs[name]) == PREDICTION_2.right
    assert found[PREDICTION_2.right].accepted
    assert sum(one.accepted for one in found.values()) == 1


def test_every_option_uses_all_gpus():
    for option in OPTIONS.values():
        assert option.tp * option.pp * option.dp == design.FLEET.total_accelerators


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


def test_no_number_of_microbatches_saves_a_wrong_option():
    """`best` looks at few; this looks at all that divide the batch."""
    right = best(PREDICTION_2.right).result.mfu
    for name, option in OPTIONS.items():
        own = design.BATCH // option.dp
        for count in (m for m in range(1, own + 1) if own % m == 0):
            outcome = solve(Design(option.tp, option.pp, count, True))
            if name == PREDICTION_2.right:
                assert not outcome.accepted or outcome.result.mfu <= right + 1e-12
            else:
                assert not outcome.accepted
                assert not outcome.result.feasible or outcome.result.mfu < right


def test_the_sizes_alone_do_not_make_it_fit():
    option, count = OPTIONS["balanced"], best("balanced").design.microbatches
    assert solve(Design(option.tp, option.pp, count, False)).failures == ("memory",)


def test_some_designs_do_better_as_the_closing_says():
    tps, pps, counts, _ = DESIGN
    found = [
        solve(Design(tp, pp, m, True))
        for tp in tps.values
        for pp in pps.values
        for m in counts.values
    ]
    accepted = [one for one in found if one.accepted]
    right = best("balanced").result.mfu
    assert 0 < sum(one.result.mfu > right for one in accepted) < 10
    assert max(one.result.mfu for one in accepted) < 1.08 * right
    assert all(one.result.mfu >= TARGET_MFU for one in accepted)
    assert all(one.result.bubble_fraction <= BUBBLE_CEILING for one in accepted)
    kinds = {failure for one in found for failure in one.failures}
    assert kinds == {"sizes", "memory", "microbatches", "servers", "bubble"}


def test_tensor_parallelism_over_servers_is_slow_because_of_its_all_reduces():
    inside, across = (solve(Design(tp, pp, 96, True)).result for tp, pp in ((8, 8), (16, 4)))
    longer = across.tp_communication_latency - inside.tp_communication_latency
    assert longer > 0.5 * (across.step_latency_total - inside.step_latency_total)
    assert across.mfu < inside.mfu


def test_the_words_about_all_reduces_and_bytes_are_the_packages():
    assert RECOMPUTE["selective"].all_reduces_per_layer == 4
    framing = next(
        one for one in view({"act1_prediction": "ratio"})["blocks"] if one["id"] == "a2_framing"
    )
    numbers = [int(figure) for figure in re.findall(r"\d+", framing["paragraphs"][1])]
    state = (CONVENTIONS.moment_bytes + CONVENTIONS.master_bytes).to("byte").magnitude
    assert numbers == [16, 2, 2, state, 1]
