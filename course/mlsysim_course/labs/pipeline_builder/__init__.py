"""Lab: pipeline builder. How long a pipeline idles, and which schedule is best on a slow network.

Act I simulates schedules pass by pass. Act II builds a pipeline of eight servers on slow Ethernet,
timed by the operator-level model of `DistributedSolver`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mlsysim_course.labs.acts import ActLab
from mlsysim_course.labs.pipeline_builder import act_one, act_two
from mlsysim_course.labs.pipeline_builder.model import MAIL, TARGET, accepted, best, idle, solve
from mlsysim_course.labs.words import gigabytes, percent

__all__ = ["LAB", "ledger", "restore", "view"]


@functools.cache
def _lessons() -> tuple[str, ...]:
    (_, right), (_, deep), (_, old) = best("zb-h1"), best("interleaved_5"), best("gpipe")
    share = idle(MAIL)
    return (
        "A pipeline of p stages with m microbatches idles for (p − 1) / (m + p − 1) of its time: "
        f"{'–' if share is None else percent(share)} for {MAIL.stages} stages and "
        f"{MAIL.microbatches} microbatches. GPipe and 1F1B share that formula. 1F1B saves only "
        f"memory, but without that saving this model does not fit: GPipe needs at least "
        f"{gigabytes(old.memory)} per GPU.",
        "A smaller bubble is not a faster step. Interleaving with 5 chunks has a bubble of "
        f"{percent(deep.bubble_fraction)} and an MFU of {percent(deep.mfu)}, because it sends five "
        "times as often. The zero-bubble schedule sends no more than 1F1B and reaches "
        f"{percent(right.mfu)}.",
        "On a fast network the order changes: interleaving pays off there, and fewer stages are "
        "often better. Run the numbers again for your own cluster.",
    )


def _status(full: Mapping[str, Any], second: bool) -> dict[str, str]:
    names = ("Pipeline", "Idle", "MFU")
    if full[act_one.PREDICTION.id] is None:
        return dict.fromkeys(names, "–")
    if not second:
        line = act_one.line(full)
        share = idle(line)
        sizes = f"{line.stages} stages, {line.microbatches} microbatches"
        shown = (sizes, "invalid" if share is None else percent(share), "–")
        return dict(zip(names, shown, strict=True))
    design = act_two.plan(full)
    result = solve(design)
    sizes = f"{design.stages} stages, {design.microbatches} microbatches"
    if isinstance(result, str):
        return dict(zip(names, (f"{sizes}: invalid", "–", "–"), strict=True))
    mfu = percent(result.mfu) if result.feasible else "does not run"
    return dict(zip(names, (sizes, percent(result.bubble_fraction), mfu), strict=True))


def _design(full: Mapping[str, Any]) -> dict[str, Any]:
    design = act_two.plan(full)
    return {
        "stages": design.stages,
        "schedule": design.schedule,
        "microbatches": design.microbatches,
    }


def _result(full: Mapping[str, Any]) -> dict[str, Any]:
    design = act_two.plan(full)
    found = solve(design)
    result = None if isinstance(found, str) else found
    return {
        "mfu": None if result is None else result.mfu,
        "memory_gb": None if result is None else result.memory.to("GB").magnitude,
        "bubble": None if result is None else result.bubble_fraction,
        "feasible": result is not None and result.feasible,
        "accepted": accepted(design),
    }


LAB = ActLab(
    name="pipeline_builder",
    title="Pipeline builder",
    minutes=35,
    acts=(act_one.ACT, act_two.ACT),
    lessons=_lessons,
    requirements=f"fits in memory with whole sequences and reaches an MFU of {percent(TARGET, 0)}",
    design=_design,
    result=_result,
    status=_status,
)
view, ledger, restore = LAB.view, LAB.ledger, LAB.restore
