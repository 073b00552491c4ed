"""Act I: how long a pipeline idles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlsysim_course.controls import Estimate, Question, Selector, Slider
from mlsysim_course.labs.acts import Act
from mlsysim_course.labs.blocks import (
    Block,
    alert,
    chart,
    controls,
    heading,
    message,
    readout,
    readouts,
    series,
    table,
    text,
)
from mlsysim_course.labs.pipeline_builder.model import MAIL, Line, idle, simulate
from mlsysim_course.labs.words import count, percent

__all__ = ["ACT", "NAMES", "line"]

NAMES = {
    "gpipe": "GPipe: all forward passes, then all backward passes",
    "1f1b": "1F1B: one forward, one backward in turn",
    "interleaved_2": "Interleaved 1F1B, 2 chunks per stage",
    "interleaved_5": "Interleaved 1F1B, 5 chunks per stage",
    "zb-h1": "Zero-bubble H1: weight gradients fill the gaps",
}
_COUNTS = (2, 4, 8, 16, 32)


def _share() -> float:
    found = idle(MAIL)
    return 0.0 if found is None else 100 * found


PREDICTION = Estimate(
    id="act1_prediction",
    label="Your prediction: what share of the time does a GPU in this pipeline idle?",
    truth=_share,
    unit="percent",
    low=0.1,
    high=100,
    factor=1.15,
)
REFLECTION = Question(
    id="act1_reflection",
    label="Reflection: stages of equal length switch from GPipe to 1F1B, with as many microbatches "
    "as before. What changes?",
    options={
        "memory": "Stages keep the activations of fewer microbatches and idle as long as before.",
        "idle": "Stages idle less and keep the activations of the same number of microbatches.",
        "both": "Stages idle less and keep the activations of fewer microbatches.",
        "none": "Nothing: it is the same work in another order.",
    },
    right="memory",
)
CONTROLS = (
    Slider(id="stages", label="Stages", values=(2, 4, 8), first=MAIL.stages),
    Selector(
        id="schedule",
        label="Schedule",
        options={key: words for key, words in NAMES.items() if key != "interleaved_5"},
        first="gpipe",
    ),
    Slider(id="microbatches", label="Microbatches", values=_COUNTS, first=MAIL.microbatches),
)


def line(state: Mapping[str, Any]) -> Line:
    """Return the stages that the controls describe."""
    return Line(state["stages"], state["schedule"], state["microbatches"])


def _opening() -> list[Block]:
    return [
        message(
            "a1_mail",
            "Performance engineer",
            f"Our model is split by depth into {MAIL.stages} stages that take equally long. Each "
            f"step cuts its batch into {MAIL.microbatches} microbatches. They go forward through "
            "all stages, and their gradients come back. A backward pass takes twice as long as a "
            "forward pass.",
            "At the start of a step, the last stage waits for the first microbatch. At the end, "
            "the first stage waits for the last gradient. How much time does that cost?",
        ),
        text(
            "a1_framing",
            "The engineer and the email are fictional. The numbers come from "
            "mlsysim.simulate_pipeline, which simulates every pass of every stage. A pass runs as "
            "soon as its stage is free and its inputs have arrived. In this act, sending takes no "
            "time.",
            "A schedule is the order in which a stage runs its passes. Between the forward and the "
            "backward pass of a microbatch, a stage has to keep its activations in memory.",
            "Commit to a number before you see the instruments. You cannot change it afterward.",
        ),
    ]


def _explain(answer: float) -> str:
    p, m = MAIL.stages, MAIL.microbatches
    twice = idle(replace(MAIL, microbatches=2 * m))
    return (
        f"The simulation has {_share():.1f}% of idle time; your answer is {answer:g}%. Each stage "
        f"works for the time of {m} microbatches and waits for that of {p - 1}, because the other "
        f"stages work while the pipeline fills and drains. So the share is ({p} − 1) / "
        f"({m} + {p} − 1). With {2 * m} microbatches, it is {_words(twice)}."
    )


def _words(share: float | None) -> str:
    return "not possible" if share is None else percent(share)


def _reflect(answer: str) -> str:
    old, new = replace(MAIL, schedule="gpipe"), MAIL
    same = f"Both idle for {_words(idle(old))} of the time"
    kept = (
        f"the first stage keeps the activations of {_kept(old)} microbatches with GPipe and of "
        f"{_kept(new)} with 1F1B"
    )
    if answer == "memory":
        return (
            f"{same}, but {kept}. So 1F1B has room for more microbatches, and those cut idle time."
        )
    if answer == "idle":
        return f"Only the memory changes. {same}, and {kept}."
    if answer == "both":
        return f"Half of that is right: {kept}. But {same[0].lower()}{same[1:]}."
    return f"The order does matter for memory: {kept}. {same}."


def _kept(one: Line) -> int:
    found = simulate(one)
    return 0 if isinstance(found, str) else found.peak_activations[0]


def _instruments(state: Mapping[str, Any]) -> list[Block]:
    chosen = line(state)
    found = simulate(chosen)
    blocks = [
        heading("a1_explorer_heading", 3, "The explorer"),
        text(
            "a1_explorer_text",
            "The explorer starts with the stages in the email under GPipe. Change the schedule, "
            "and watch the idle time and the activations of each stage. Which schedules idle less, "
            "and which ones only need less memory?",
        ),
        controls("a1_controls", CONTROLS, state),
        _chart(chosen),
    ]
    if isinstance(found, str):
        missing = alert("a1_sizes", "bad", "This schedule needs other sizes", f"{found}.")
        return [*blocks, missing]
    chunks = "chunks" if chosen.schedule.startswith("interleaved") else "microbatches"
    return [
        *blocks,
        readouts(
            "a1_readouts",
            readout("Idle", f"{100 * float(found.bubble_fraction):.1f}", "%"),
            readout("Step", f"{float(found.makespan):g}", "ticks", hint="a forward pass takes 1"),
            readout(
                "Activations kept",
                f"{max(found.peak_activations)}",
                chunks,
                hint="by the fullest stage",
            ),
        ),
        table(
            "a1_stages",
            "How long each stage idles, and how many microbatches' activations it keeps.",
            ["Stage", "Idle ticks", f"Activations ({chunks})"],
            [
                [f"{number}", f"{float(wait):g}", f"{kept}"]
                for number, (wait, kept) in enumerate(
                    zip(found.idle_times, found.peak_activations, strict=True), start=1
                )
            ],
        ),
    ]


def _chart(chosen: Line) -> Block:
    def points(schedule: str) -> list[tuple[float, float]]:
        shares = [(m, idle(replace(chosen, schedule=schedule, microbatches=m))) for m in _COUNTS]
        return [(m, 100 * share) for m, share in shares if share is not None]

    own, here = points(chosen.schedule), idle(chosen)
    others = [("1f1b", "1F1B"), ("zb-h1", "Zero-bubble H1")]
    return chart(
        "a1_chart",
        caption=f"Idle share by number of microbatches, for {count(chosen.stages, 'stage')}. The "
        "ring marks your setting.",
        alt=f"The idle share falls from {own[0][1]:.0f}% with {own[0][0]} microbatches to "
        f"{own[-1][1]:.0f}% with {own[-1][0]}. It is {_words(here)} for your setting.",
        x={"label": "Microbatches", "scale": "log2", "ticks": list(_COUNTS)},
        y={"label": "Idle (%)", "unit": "%", "min": 0, "max": 100},
        lines=[
            series("Your schedule", own),
            *(series(name, points(key)) for key, name in others if key != chosen.schedule),
        ],
        marker=None
        if here is None
        else {"x": chosen.microbatches, "y": 100 * here, "label": percent(here)},
    )


ACT = Act(
    id="a1",
    title="Act I: fill and drain",
    opening=_opening,
    prediction=PREDICTION,
    explain=_explain,
    controls=CONTROLS,
    instruments=_instruments,
    reflection=REFLECTION,
    reflect=_reflect,
)
