"""Act I: how often to write a checkpoint."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlsysim.core.derivation import Derivation
from mlsysim_course.controls import Estimate, Question, Slider, Toggle
from mlsysim_course.labs.blocks import (
    Block,
    alert,
    chart,
    controls,
    derivation,
    heading,
    message,
    readout,
    readouts,
    series,
    text,
)
from mlsysim_course.labs.checkpointing.model import (
    BANDWIDTHS,
    DAYS,
    GPUS,
    INTERVALS,
    MAIL,
    MODEL,
    Plan,
    solve,
    young,
)
from mlsysim_course.labs.lab import Act
from mlsysim_course.labs.words import gigabytes, hours, minutes, percent, seconds

__all__ = ["ACT", "alerts", "curve", "plan", "tone"]

PREDICTION = Estimate(
    id="act1_prediction",
    label="Your prediction: how much work should the run do between checkpoints to lose the "
    "least time?",
    truth=lambda: young(MAIL),
    unit="minutes",
    low=0.1,
    high=10_000,
    factor=1.5,
)
REFLECTION = Question(
    id="act1_reflection",
    label="Reflection: the fleet doubles in size, and its storage bandwidth stays the same. What "
    "happens to the best interval?",
    options={
        "half": "It halves, because failures come twice as often.",
        "root": "It shrinks to about 0.7 times its length.",
        "same": "It stays the same, because a checkpoint takes as long as before.",
        "double": "It doubles, because each checkpoint stops twice as many GPUs.",
    },
    right="root",
)
DERIVATION = Toggle(id="show_derivation_1", label="How this goodput follows from the inputs")
CONTROLS = (
    Slider(id="gpus", label="GPUs", values=GPUS, first=MAIL.gpus),
    Slider(
        id="bandwidth",
        label="Storage bandwidth of the whole fleet",
        values=BANDWIDTHS,
        first=100,
        unit="GB/s",
    ),
    Slider(
        id="interval", label="Work between checkpoints", values=INTERVALS, first=120, unit="minutes"
    ),
)


def plan(state: Mapping[str, Any]) -> Plan:
    """Return the run that the controls describe."""
    return Plan(gpus=state["gpus"], bandwidth=state["bandwidth"], interval=state["interval"])


def _opening() -> list[Block]:
    return [message("a1_mail", "Run manager", *_letter()), _framing()]


@functools.cache
def _letter() -> tuple[str, ...]:
    now = solve(MAIL)
    size = now.checkpoint_size
    holds = "" if size is None else f" A checkpoint takes {gigabytes(size)}."
    return (
        f"We train {MODEL.name} for {DAYS} days on {MAIL.gpus:,} H100 GPUs. When any one of them "
        "fails, the whole run stops, restarts from its last checkpoint and repeats all work since "
        f"then.{holds} Our storage takes {MAIL.bandwidth:g} GB/s, and training waits "
        f"{seconds(now.checkpoint_time)} for each checkpoint.",
        f"That is almost a minute in which {MAIL.gpus:,} GPUs do nothing, so we write a checkpoint "
        f"only every {MAIL.interval:g} minutes. But our goodput, the share of the time that makes "
        f"progress, is {percent(now.goodput)}. The other {hours(now.lost_time)} are lost. How "
        "often should we write?",
    )


def _framing() -> Block:
    now = solve(MAIL)
    years = now.device_mtbf.to("year").magnitude
    return text(
        "a1_framing",
        "The run manager and the email are fictional. The numbers come from mlsysim's "
        f"ReliabilitySolver. It assumes that a GPU, with its share of the server and the network, "
        f"fails once in {years:.1f} years on average, as in the published run of Llama 3 405B. "
        "Failures come at a constant rate, independently of each other. A restart takes "
        f"{minutes(now.restart_time)}, which is an estimate.",
        "If you write rarely, each failure undoes a lot of work. If you write often, the run "
        "spends its time writing.",
        "Commit to a number before you see the instruments. You cannot change it afterward.",
    )


def _explain(answer: float) -> str:
    best, now = solve(MAIL.best), solve(MAIL)
    tried = solve(replace(MAIL, interval=answer))
    return (
        f"The whole fleet fails every {hours(best.fleet_mtbf)} on average, and a checkpoint takes "
        f"{seconds(best.checkpoint_time)}. To first order, the best interval is the square root of "
        f"2 × {seconds(best.checkpoint_time)} × {hours(best.fleet_mtbf)}: "
        f"{minutes(best.checkpoint_interval)}. The goodput is then {percent(best.goodput)}. With "
        f"your {answer:g} minutes, it is {percent(tried.goodput)}. With the "
        f"{MAIL.interval:g} minutes in the email, it is {percent(now.goodput)}."
    )


def _reflect(answer: str) -> str:
    more = replace(MAIL, gpus=2 * MAIL.gpus)
    before, after = solve(MAIL.best), solve(more.best)
    grown = (
        f"With {more.gpus:,} GPUs, a failure comes every {hours(after.fleet_mtbf)} instead of "
        f"every {hours(before.fleet_mtbf)}."
    )
    best = (
        f"the best interval goes from {minutes(before.checkpoint_interval)} to "
        f"{minutes(after.checkpoint_interval)}"
    )
    if answer == "root":
        return f"{grown} The interval follows the square root of that time, so {best}."
    if answer == "half":
        half = solve(replace(more, interval=young(MAIL) / 2))
        return (
            f"{grown} But with half the interval, the run would also write twice as often: goodput "
            f"would be {percent(half.goodput, 2)} rather than {percent(after.goodput, 2)}. The "
            f"square root balances the two, and {best}."
        )
    if answer == "same":
        same = solve(replace(more, interval=young(MAIL)))
        return (
            f"A checkpoint does take {seconds(after.checkpoint_time)}, as before. {grown} With the "
            f"old interval, goodput would be {percent(same.goodput, 2)} rather than "
            f"{percent(after.goodput, 2)}; {best}."
        )
    twice = solve(replace(more, interval=2 * young(MAIL)))
    return (
        "A checkpoint stops more GPUs, but a failure also undoes the work of more GPUs, so their "
        f"number cancels. {grown} With twice the interval, goodput would be "
        f"{percent(twice.goodput)} rather than {percent(after.goodput)}; {best}."
    )


def _instruments(state: Mapping[str, Any]) -> list[Block]:
    chosen = plan(state)
    result = solve(chosen)
    is_open = state[DERIVATION.id]
    return [
        heading("a1_explorer_heading", 3, "The explorer"),
        text(
            "a1_explorer_text",
            "The explorer starts with the run in the email. Find the interval with the highest "
            "goodput, then change the fleet and the storage and find it again. Watch how flat the "
            "curve is near its top, and on which side it falls faster.",
        ),
        controls("a1_controls", CONTROLS, state),
        curve("a1_chart", chosen),
        readouts(
            "a1_readouts",
            readout(
                "Goodput",
                f"{100 * result.goodput:.1f}",
                "%",
                tone(chosen),
                f"best here: {percent(solve(chosen.best).goodput)}",
            ),
            readout("Fleet fails every", hours(result.fleet_mtbf), hint="on average"),
            readout("Best interval", minutes(result.optimal_checkpoint_interval)),
            readout("Checkpoint", seconds(result.checkpoint_time), hint="training waits"),
            readout(
                "Writing",
                hours(result.checkpoint_overhead),
                hint=f"of {DAYS * 24:,} hours",
            ),
            readout(
                "Failures",
                hours(result.failure_loss),
                hint=f"{result.expected_failures:,.0f} of them: repeated work and restarts",
            ),
        ),
        *alerts("a1", chosen),
        derivation(DERIVATION, is_open, _explained(chosen) if is_open else None),
    ]


@functools.lru_cache(maxsize=32)
def _explained(chosen: Plan) -> Derivation:
    return solve(chosen).explain("optimal_checkpoint_interval", "goodput")


def tone(chosen: Plan) -> str:
    """Return the tone of a goodput: good within a point of the best, bad beyond five."""
    missed = solve(chosen.best).goodput - solve(chosen).goodput
    return "good" if missed < 0.01 else "warn" if missed < 0.05 else "bad"


def alerts(act: str, chosen: Plan) -> list[Block]:
    """Return what is wrong with a run."""
    result, best = solve(chosen), solve(chosen.best)
    if not result.feasible:
        return [alert(f"{act}_stuck", "bad", "Hardly any progress", f"{result.reasons[0]}.")]
    if tone(chosen) == "good":
        return []
    rare = result.checkpoint_interval > best.checkpoint_interval
    return [
        alert(
            f"{act}_interval",
            "warn",
            "Checkpoints are too rare" if rare else "Checkpoints are too frequent",
            f"Failures cost {hours(result.failure_loss)} and writing "
            f"{hours(result.checkpoint_overhead)}. At the best interval, failures would cost "
            f"{hours(best.failure_loss)} and writing {hours(best.checkpoint_overhead)}.",
        )
    ]


def curve(name: str, chosen: Plan) -> Block:
    """Return a chart of goodput by interval for a run and for the one in the email."""

    def points(run: Plan) -> list[tuple[float, float]]:
        return [(i, 100 * solve(replace(run, interval=i)).goodput) for i in INTERVALS]

    here, own = 100 * solve(chosen).goodput, points(chosen)
    least, most = min(y for _, y in own), max(y for _, y in own)
    email = replace(MAIL, interval=chosen.interval)
    others = [] if chosen == email else [series("The email", points(MAIL), "warn")]
    return chart(
        name,
        caption=f"Goodput by work between checkpoints, for {chosen.gpus:,} GPUs and "
        f"{chosen.bandwidth:g} GB/s to storage. The ring marks your setting.",
        alt=f"Goodput is between {least:.0f}% and {most:.0f}% for intervals from {INTERVALS[0]} to "
        f"{INTERVALS[-1]} minutes. It is {here:.1f}% for your {chosen.interval:g} minutes.",
        x={
            "label": "Minutes of work between checkpoints",
            "scale": "log2",
            "ticks": [2**k for k in range(1, 9)],
        },
        y={"label": "Goodput (%)", "unit": "%", "min": 0, "max": 100},
        lines=[series("Your setting", own), *others],
        marker={"x": chosen.interval, "y": here, "label": f"{here:.1f}%"},
    )


ACT = Act(
    id="a1",
    title="Act I: how often to save",
    opening=_opening,
    prediction=PREDICTION,
    explain=_explain,
    controls=(*CONTROLS, DERIVATION),
    instruments=_instruments,
    reflection=REFLECTION,
    reflect=_reflect,
)
