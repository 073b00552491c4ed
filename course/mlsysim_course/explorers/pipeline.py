"""Explorer of a pipeline schedule, simulated pass by pass."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value
from mlsysim.core.recording import Input
from mlsysim.core.units import Q_
from mlsysim.schedules import Timeline, simulate_pipeline
from mlsysim_course.controls import Selector, Slider
from mlsysim_course.explorers.charts import axis, gantt
from mlsysim_course.explorers.declare import Answer, Explorer, Reading, by_formula, figure

SCHEDULES = {"gpipe": "GPipe", "1f1b": "1F1B", "zb-h1": "ZB-H1"}
KINDS = {"F": "forward", "B": "backward", "W": "weight gradients"}
_PASSES = 3  # a microbatch takes as long as three forward passes on each stage


def _step_time(before: Value, on_last: Value, last_stage: Value) -> Value:
    """Return the time of the longest chain of passes in which each waits for the one before."""
    return before + on_last * last_stage


def _idle_share(
    pp_size: Value, microbatch_count: Value, before: Value, on_last: Value, last_stage: Value
) -> Value:
    """Return the share of the time in which the stages wait."""
    step = _step_time(before, on_last, last_stage)
    work = _PASSES * microbatch_count * (pp_size - 1 + last_stage)
    return 1 - work / (pp_size * step)


def _split_share(pp_size: Value, microbatch_count: Value, pass_time: Value) -> Value:
    """Return that share under ZB-H1, for equal stages and passes of equal length."""
    bubble = f.split_backward_bubble_time(
        pass_time, pass_time, pass_time, pp_size, microbatch_count
    )
    return bubble / (_PASSES * microbatch_count * pass_time + bubble)


def _all(microbatch_count: Value) -> Value:
    """Return all microbatches: GPipe runs every forward before the first backward."""
    return 1 * microbatch_count


def _longest_chain(played: Timeline) -> tuple[float, float]:
    """Return the time of a chain's passes before the last stage, and the time on the last stage."""
    last = played.pp_size - 1
    lengths = [0.0, 0.0]
    now = max(played.events, key=lambda event: event.end)
    while True:
        lengths[now.stage == last] += float(now.duration)
        if now.start == 0:
            return lengths[0], lengths[1]
        waited_for = [
            event
            for event in played.events
            if math.isclose(event.end, now.start)
            and (event.stage == now.stage or event.microbatch == now.microbatch)
        ]
        now = max(waited_for, key=lambda event: event.stage)


def _formula(schedule: str, shape: Mapping[str, float]) -> Reading:
    """Read the idle share that the schedule's formula gives for equal stages."""
    label = "Formula for equal stages"
    if schedule == "zb-h1":
        given = {**shape, "pass_time": Q_(1.0, "s")}
        return by_formula(label, _split_share, "", given, scale=100)
    given = {**shape, "virtual_stages": 1}
    return by_formula(label, f.pipeline_bubble_fraction, "", given, scale=100)


def _readings(schedule: str, shape: Mapping[str, float], played: Timeline, slow: float) -> Any:
    before, on_last = _longest_chain(played)
    chain = {
        name: Input(name, Q_(value, ""), "", origin)
        for name, value, origin in (
            ("before", before, "longest chain of passes before the last stage"),
            ("on_last", on_last / slow, "passes of that chain on the last stage"),
            ("last_stage", slow, "time of the last stage"),
        )
    }
    step = by_formula("Time of the step", _step_time, "", chain, shown="forwards")
    idle = by_formula("Idle share, simulated", _idle_share, "", {**shape, **chain}, scale=100)
    label = "Microbatches held, at most"
    if schedule == "gpipe":
        count = {"microbatch_count": shape["microbatch_count"]}
        held = by_formula(label, _all, "", count)
    else:
        held = by_formula(label, f.microbatches_in_flight, "", shape)
    return idle, _formula(schedule, shape), step, held


def schedule_chart(played: Timeline, label: str) -> dict[str, Any]:
    """Return a chart of the passes of each stage, with a label for its axis of time."""
    return gantt(
        axis(label),
        [
            {
                "row": f"stage {event.stage + 1}",
                "start": float(event.start),
                "end": float(event.end),
                "kind": KINDS[event.kind],
                "text": str(event.microbatch + 1),
            }
            for event in played.events
        ],
    )


def _pipeline(s: Mapping[str, Any]) -> Answer:
    schedule, stages, microbatches = s["schedule"], s["stages"], s["microbatches"]
    last_stage = s["slow"] / 100
    forward = [*[1.0] * (stages - 1), last_stage]
    played = simulate_pipeline(
        schedule,
        pp_size=stages,
        microbatch_count=microbatches,
        forward_time=forward,
        backward_time=[2 * time for time in forward],
    )
    shape = {"pp_size": stages, "microbatch_count": microbatches}
    readings = _readings(schedule, shape, played, last_stage)
    slower = (
        "" if s["slow"] == 100 else f", where the last stage takes {s['slow']}% of the usual time"
    )
    return Answer(
        f"{SCHEDULES[schedule]} with {stages} stages and {microbatches} "
        f"microbatch{'' if microbatches == 1 else 'es'}{slower}: the stages are idle "
        f"{figure(readings[0].value)}% of the time.",
        readings,
        (schedule_chart(played, "Time (1 = forward pass of an ordinary stage)"),),
    )


PIPELINE = Explorer(
    "pipeline",
    "Run your own schedule",
    "One training step. A backward pass takes twice as long as the forward pass of its stage, and "
    "sending takes no time.",
    (
        Selector("schedule", "Schedule", "1f1b", SCHEDULES),
        Slider("stages", "Stages", 4, (2, 3, 4, 6, 8)),
        Slider("microbatches", "Microbatches", 8, (1, 2, 4, 6, 8, 12, 16)),
        Slider("slow", "Time of the last stage", 100, (100, 125, 150, 175, 200), "%"),
    ),
    _pipeline,
)
"""A pipeline schedule, simulated pass by pass."""
