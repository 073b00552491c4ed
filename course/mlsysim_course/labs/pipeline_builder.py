"""Lab: pipeline builder. How long a pipeline idles, and which schedule is best on a slow network.

Act I simulates stages of equal length pass by pass. A backward pass takes twice as long as a
forward pass. Act II trains Llama 3 70B on eight servers of H100 GPUs, connected by slow Ethernet,
with the operator-level model of `DistributedSolver`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlsysim.core.errors import ConfigError, ParallelismError
from mlsysim.core.numeric import Value
from mlsysim.core.recording import Input
from mlsysim.core.types import Fleet
from mlsysim.core.units import Q_
from mlsysim.registry import Models, Systems
from mlsysim.schedules import Timeline, simulate_pipeline
from mlsysim.solvers import DistributedResult, DistributedSolver
from mlsysim_course.controls import Choice, Estimate, Selector, Slider, true_claim
from mlsysim_course.explorers.charts import axis, bars, line, lines, mark, part, rule
from mlsysim_course.explorers.declare import Alert, Answer, Explorer, Reading, by_formula, read
from mlsysim_course.explorers.pipeline import schedule_chart
from mlsysim_course.labs.lab import Lab
from mlsysim_course.labs.words import (
    band,
    count,
    gigabytes,
    memory_reading,
    percent,
    seconds,
    utilization_reading,
)

SCHEDULES: dict[str, tuple[str, int]] = {
    "gpipe": ("gpipe", 1),
    "1f1b": ("1f1b", 1),
    "interleaved_2": ("1f1b", 2),
    "interleaved_5": ("1f1b", 5),
    "zb-h1": ("zb-h1", 1),
}
"""Name of the schedule, and chunks of layers per stage."""

MODEL = Models.Llama3_70B
FLEET = Fleet(
    name="64 H100 on slow Ethernet",
    node=Systems.Nodes.DGX_H100,
    count=8,
    fabric=Systems.Fabrics.Ethernet_10G,
)
BATCH = 64
"""Sequences per step in Act II."""
SEQUENCE = 8192
MICROBATCHES = (8, 16, 32, 64)
TARGET = 0.33
"""Utilization that the email of Act II requires."""


@dataclass(frozen=True)
class Line:
    """Stages of equal length: how many, the schedule, and microbatches per step."""

    stages: int = 8
    schedule: str = "1f1b"
    microbatches: int = 16


MAIL = Line()


@functools.lru_cache(maxsize=512)
def simulate(line: Line) -> Timeline | str:
    """Simulate a step pass by pass, or return why the schedule cannot run it."""
    schedule, chunks = SCHEDULES[line.schedule]
    try:
        return simulate_pipeline(
            schedule,
            pp_size=line.stages,
            microbatch_count=line.microbatches,
            virtual_stages=chunks,
        )
    except ConfigError as error:
        return error.message


@functools.lru_cache(maxsize=512)
def idle(line: Line) -> float | None:
    """Return the share of the time that stages idle; `None` if the schedule cannot run."""
    played = simulate(line)
    return None if isinstance(played, str) else float(played.bubble_fraction)


@dataclass(frozen=True)
class Pipeline:
    """A design for Act II: stages, the schedule, and microbatches per replica."""

    stages: int
    schedule: str
    microbatches: int


@functools.lru_cache(maxsize=256)
def solve(design: Pipeline) -> DistributedResult | str:
    """Time a step of a design, or return why there is none."""
    schedule, chunks = SCHEDULES[design.schedule]
    try:
        return DistributedSolver.solve(
            model=MODEL,
            fleet=FLEET,
            batch_size=BATCH,
            precision="bf16",
            tp_size=FLEET.node.accelerators_per_node,
            pp_size=design.stages,
            microbatch_count=design.microbatches,
            virtual_stages=chunks,
            schedule=schedule,
            sequence_parallel=True,
            zero_stage=1,
            seq_len=SEQUENCE,
        )
    except ParallelismError as error:
        return error.message


def accepted(design: Pipeline) -> bool:
    """Return whether a design meets the requirements of the email."""
    result = solve(design)
    return (
        not isinstance(result, str)
        and result.feasible
        and result.whole_microbatches
        and result.mfu >= TARGET
    )


@functools.lru_cache(maxsize=16)
def best(schedule: str) -> tuple[Pipeline, DistributedResult]:
    """Return the fastest design of a schedule with eight stages that fits in memory.

    If none fits, return the one that needs the least memory.
    """
    designs = []
    for microbatches in MICROBATCHES:
        design = Pipeline(FLEET.count, schedule, microbatches)
        result = solve(design)
        if not isinstance(result, str):
            designs.append((design, result))
    return max(designs, key=lambda pair: _rank(pair[1]))


def _rank(result: DistributedResult) -> tuple[bool, float]:
    fits = result.feasible
    return fits, result.mfu if fits else -result.memory.to("GB").magnitude


NAMES = {
    "gpipe": "GPipe: all forward passes, then all backward passes",
    "1f1b": "1F1B: one forward, one backward in turn",
    "interleaved_2": "Interleaved 1F1B, 2 chunks per stage",
    "interleaved_5": "Interleaved 1F1B, 5 chunks per stage",
    "zb-h1": "Zero-bubble H1: weight gradients fill the gaps",
}
_COUNTS = (2, 4, 8, 16, 32)


def _played(line: Line) -> Timeline:
    """Simulate a step, or raise if the schedule cannot run it."""
    played = simulate(line)
    if isinstance(played, str):
        raise ConfigError(played)
    return played


def _timed(design: Pipeline) -> DistributedResult:
    """Time a step of a design, or raise if there is none."""
    result = solve(design)
    if isinstance(result, str):
        raise ConfigError(result)
    return result


def _change() -> str:
    """Return what changes from GPipe to 1F1B, the only true one of the options."""
    old, new = _played(replace(MAIL, schedule="gpipe")), _played(MAIL)
    less_idle = new.bubble_fraction < old.bubble_fraction
    less_memory = new.peak_activations[0] < old.peak_activations[0]
    return true_claim(
        {
            "memory": less_memory and not less_idle,
            "idle": less_idle and not less_memory,
            "both": less_idle and less_memory,
            "none": not less_idle and not less_memory,
        }
    )


def _fastest() -> str:
    return max(PREDICTION_2.options, key=lambda schedule: _rank(best(schedule)[1]))


def _slow() -> str:
    """Return why many chunks are slow here, the only true one of the options."""
    (_, deep), (_, plain) = best("interleaved_5"), best("1f1b")
    return true_claim(
        {
            "sends": deep.pp_communication_latency > 4 * plain.pp_communication_latency,
            "memory": not deep.fits_memory,
            "compute": deep.compute_latency > 1.01 * plain.compute_latency,
            "bubble": deep.bubble_fraction > plain.bubble_fraction,
        }
    )


PREDICTION_1 = Estimate(
    id="act1_prediction",
    truth=lambda: 100 * float(_played(MAIL).bubble_fraction),
    unit="percent",
    low=0.1,
    high=100,
    factor=1.15,
    reply=lambda answer: f"Your answer is {answer:g}%.",
)
REFLECTION_1 = Choice(
    id="act1_reflection", options=("memory", "idle", "both", "none"), truth=_change
)
PREDICTION_2 = Choice(
    id="act2_prediction",
    options=tuple(schedule for schedule in SCHEDULES if schedule != "interleaved_2"),
    truth=_fastest,
    locks=True,
)
REFLECTION_2 = Choice(
    id="act2_reflection", options=("sends", "memory", "compute", "bubble"), truth=_slow
)


def _idle_share(idle_time: Value, pp_size: Value, step_time: Value) -> Value:
    """Return the share of the time in which stages wait."""
    return idle_time / (pp_size * step_time)


def _simulated(simulated: Value) -> Value:
    """Return a number of the simulation as it is."""
    return 1 * simulated


def _counted(label: str, number: float, origin: str, unit: str) -> Reading:
    given = {"simulated": Input("simulated", Q_(number, ""), "", origin)}
    return by_formula(label, _simulated, "", given, shown=unit)


def _idle_curve(chosen: Line) -> dict[str, Any]:
    """Return a chart of the idle share by microbatches, for a schedule and for two others."""

    def points(schedule: str) -> list[tuple[float, float]]:
        shares = [(m, idle(replace(chosen, schedule=schedule, microbatches=m))) for m in _COUNTS]
        return [(m, 100 * share) for m, share in shares if share is not None]

    others = [("1f1b", "1F1B"), ("zb-h1", "Zero-bubble H1")]
    here = 100 * float(_played(chosen).bubble_fraction)
    return lines(
        axis("Microbatches", log=True),
        axis("Idle (%)", zero=True),
        [
            line("Your schedule", points(chosen.schedule)),
            *(line(name, points(key)) for key, name in others if key != chosen.schedule),
        ],
        marks=[mark(chosen.microbatches, here, f"{here:.1f}%")],
    )


def _explore(state: Mapping[str, Any]) -> Answer:
    chosen = Line(state["stages"], state["schedule"], state["microbatches"])
    played = _played(chosen)
    chunks = "chunks" if chosen.schedule.startswith("interleaved") else "microbatches"
    times = {
        "idle_time": Input(
            "idle_time", Q_(float(sum(played.idle_times)), ""), "", "idle time of all stages"
        ),
        "pp_size": chosen.stages,
        "step_time": Input("step_time", Q_(float(played.makespan), ""), "", "time of the step"),
    }
    activations = [
        part(f"stage {number}", f"activations of {chunks}", kept)
        for number, kept in enumerate(played.peak_activations, start=1)
    ]
    return Answer(
        f"{NAMES[chosen.schedule].partition(':')[0]} with {count(chosen.stages, 'stage')} and "
        f"{chosen.microbatches} microbatches: the stages idle for "
        f"{percent(float(played.bubble_fraction))} of the time, and the fullest one keeps the "
        f"activations of {max(played.peak_activations)} {chunks}.",
        (
            by_formula("Idle", _idle_share, "", times, scale=100),
            _counted("Step", float(played.makespan), "simulated time of the step", "ticks").judged(
                hint="a forward pass takes 1"
            ),
            _counted(
                "Activations kept",
                max(played.peak_activations),
                "most that a stage keeps at once",
                chunks,
            ).judged(hint="by the fullest stage"),
        ),
        (
            _idle_curve(chosen),
            schedule_chart(played, "Ticks"),
            bars(axis(f"Activations kept ({chunks})"), activations),
        ),
    )


def _plan(state: Mapping[str, Any]) -> Pipeline:
    return Pipeline(state["plan_stages"], state["plan_schedule"], state["plan_microbatches"])


def _readings(result: DistributedResult) -> tuple[Reading, ...]:
    return (
        utilization_reading(result, TARGET),
        memory_reading(result),
        read("Bubble", result, "bubble_fraction", scale=100, shown="%"),
        read("Sending", result, "pp_communication_latency", "s").judged(hint="between stages"),
        read("Gradient exchange", result, "dp_communication_latency", "s").judged(
            hint=count(result.dp_size, "replica")
        ),
        read("Step", result, "step_latency_total", "s").judged(hint=band(result, seconds)),
    )


def _alerts(design: Pipeline, result: DistributedResult) -> list[Alert]:
    alerts = []
    if not result.fits_memory:
        text = (
            f"Each GPU has {gigabytes(result.memory_capacity)} and needs "
            f"{gigabytes(result.memory)}. Activations take {gigabytes(result.activation_memory)} "
            "of that."
        )
        alerts.append(Alert("memory", "bad", "Out of memory", text))
    if not result.whole_microbatches:
        text = (
            f"{count(result.dp_size, 'replica')} with "
            f"{count(design.microbatches, 'microbatch', 'es')} each have "
            f"{result.microbatch_size:.4g} sequences per microbatch. Use fewer microbatches."
        )
        alerts.append(Alert("microbatches", "bad", "Fractions of a sequence", text))
    if accepted(design):
        text = (
            f"It reaches an MFU of {percent(result.mfu)} with {gigabytes(result.memory)} per GPU."
        )
        alerts.append(Alert("accepted", "good", "This pipeline meets the requirements", text))
    return alerts


def _speed_curve(design: Pipeline, result: DistributedResult) -> dict[str, Any]:
    """Return a chart of the utilization by microbatches, for a schedule and for 1F1B."""

    def points(schedule: str) -> list[tuple[float, float]]:
        results = [(m, solve(Pipeline(design.stages, schedule, m))) for m in MICROBATCHES]
        return [(m, 100 * one.mfu) for m, one in results if not isinstance(one, str)]

    others = [] if design.schedule == "1f1b" else [line("1F1B", points("1f1b"))]
    return lines(
        axis("Microbatches", log=True),
        axis("MFU (%)", zero=True),
        [line("Your schedule", points(design.schedule)), *others],
        marks=[mark(design.microbatches, 100 * result.mfu, percent(result.mfu))],
        rules=[rule(100 * TARGET, f"target: {percent(TARGET, 0)}")],
    )


def _build(state: Mapping[str, Any]) -> Answer:
    design = _plan(state)
    result = _timed(design)
    return Answer(
        f"{count(design.stages, 'stage')} under {NAMES[design.schedule].partition(':')[0]} with "
        f"{design.microbatches} microbatches per replica: the MFU is {percent(result.mfu)}, "
        f"whether or not the {gigabytes(result.memory)} per GPU fit.",
        _readings(result),
        (_speed_curve(design, result),),
        alerts=tuple(_alerts(design, result)),
    )


SCHEDULE = Explorer(
    "pipeline_builder/schedule",
    "The explorer",
    "One training step of equal stages. A backward pass takes twice as long as a forward pass, and "
    "sending takes no time.",
    (
        Slider("stages", "Stages", MAIL.stages, (2, 4, 8)),
        Selector(
            "schedule",
            "Schedule",
            "gpipe",
            {key: name for key, name in NAMES.items() if key != "interleaved_5"},
        ),
        Slider("microbatches", "Microbatches", MAIL.microbatches, _COUNTS),
    ),
    _explore,
)
PLAN = Explorer(
    "pipeline_builder/plan",
    "The builder",
    f"{MODEL.name} on {FLEET.name}: {BATCH} sequences of {SEQUENCE:,} tokens per step.",
    (
        Slider("plan_stages", "Stages", 1, (1, 2, 4, 8)),
        Selector("plan_schedule", "Schedule", "gpipe", NAMES),
        Slider("plan_microbatches", "Microbatches per replica", 8, MICROBATCHES),
    ),
    _build,
)
LAB = Lab(
    name="pipeline_builder",
    title="Pipeline builder",
    minutes=35,
    questions=(PREDICTION_1, REFLECTION_1, PREDICTION_2, REFLECTION_2),
    explorers=(SCHEDULE, PLAN),
    requirements=f"fits in memory with whole sequences and reaches an MFU of {percent(TARGET, 0)}",
)
