"""Act II: a pipeline of real servers on a slow network."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mlsysim.core.derivation import Derivation
from mlsysim.solvers import DistributedResult
from mlsysim_course.controls import Question, Selector, Slider, Toggle
from mlsysim_course.labs.acts import Act
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
    table,
    text,
)
from mlsysim_course.labs.pipeline_builder.act_one import NAMES
from mlsysim_course.labs.pipeline_builder.model import (
    BATCH,
    FLEET,
    MICROBATCHES,
    MODEL,
    SCHEDULES,
    TARGET,
    Pipeline,
    accepted,
    best,
    solve,
)
from mlsysim_course.labs.words import band, count, gigabytes, percent, ratio, seconds

__all__ = ["ACT", "plan"]

PREDICTION = Question(
    id="act2_prediction",
    label=f"Your prediction: on these servers, with {FLEET.count} stages, which schedule reaches "
    "the highest MFU and fits in memory?",
    options={key: f"{NAMES[key]}." for key in SCHEDULES if key != "interleaved_2"},
    right="zb-h1",
    locks=True,
)
REFLECTION = Question(
    id="act2_reflection",
    label="Reflection: interleaving with 5 chunks has the smallest bubble here. Why is it slow?",
    options={
        "sends": "Each microbatch crosses the network once per chunk instead of once per stage.",
        "memory": "It keeps so many activations that it runs out of memory.",
        "compute": "Smaller chunks compute with lower efficiency.",
        "bubble": "Its bubble grows when the network is slow.",
    },
    right="sends",
)
DERIVATION = Toggle(id="show_derivation_2", label="How the bubble and MFU follow from the inputs")
CONTROLS = (
    Slider(id="plan_stages", label="Stages", values=(1, 2, 4, 8), first=1),
    Selector(id="plan_schedule", label="Schedule", options=NAMES, first="gpipe"),
    Slider(id="plan_microbatches", label="Microbatches per replica", values=MICROBATCHES, first=8),
)


def plan(state: Mapping[str, Any]) -> Pipeline:
    """Return the design that the controls describe."""
    return Pipeline(state["plan_stages"], state["plan_schedule"], state["plan_microbatches"])


def _opening() -> list[Block]:
    return [
        message("a2_mail", "Head of the lab", *_letter()),
        text(
            "a2_framing",
            "Every layer is split across the GPUs of one server (TP = "
            f"{FLEET.node.accelerators_per_node}). Stages times replicas is the number of servers. "
            "Replicas exchange their gradients once per step and shard the optimizer state. Stages "
            "send activations to each other for every microbatch.",
            "The times come from the operator-level model of mlsysim's DistributedSolver, with "
            "constants fitted to published runs on faster networks. We know of no published run "
            "on a network this slow, so trust the order of the designs more than their times.",
            "Commit to an answer before you see the instruments. You cannot change it afterward.",
        ),
    ]


@functools.cache
def _letter() -> tuple[str, ...]:
    gpu, alone = FLEET.node.accelerator, solve(Pipeline(1, "1f1b", 8))
    now = "" if isinstance(alone, str) else f" Data parallelism reaches {percent(alone.mfu)}."
    return (
        f"We inherited {FLEET.count} servers of {FLEET.node.accelerators_per_node} {gpu.name} "
        f"GPUs, each with {gigabytes(gpu.memory.capacity)}. Only old Ethernet connects them: "
        f"{FLEET.fabric.bandwidth.m_as('GB/s'):g} GB/s per GPU. We want to train {MODEL.name} with "
        f"{BATCH} sequences per step.{now}",
        f"Build a pipeline with an MFU of at least {percent(TARGET, 0)} that fits in memory. New "
        "switches are not in the budget.",
    )


def _explain(answer: str) -> str:
    design, result = best(answer)
    _, right = best(PREDICTION.right)
    numbers = (
        f"At its best, with {count(design.microbatches, 'microbatch', 'es')}, its bubble is "
        f"{percent(result.bubble_fraction)} and a GPU needs {gigabytes(result.memory)}."
    )
    if not result.feasible:
        return (
            f"{numbers} That does not fit: each stage keeps the activations of all microbatches, "
            "however small they are."
        )
    if answer == PREDICTION.right:
        return (
            f"{numbers} Its MFU is {percent(result.mfu)}. It fills gaps with work that no other "
            "stage waits for, and it sends no more than 1F1B does."
        )
    sends = seconds(result.pp_communication_latency)
    if result.pp_communication_latency == right.pp_communication_latency:
        return (
            f"{numbers} Its MFU is {percent(result.mfu)}, and {percent(right.mfu)} is possible. It "
            f"sends as little as any schedule, {sends} per step, so the bubble is all that is left "
            "to save."
        )
    return (
        f"{numbers} Its MFU is {percent(result.mfu)}, and {percent(right.mfu)} is possible. Its "
        f"stages wait {sends} of {seconds(result.step_latency_total)} for each other's activations "
        f"to arrive, compared with {seconds(right.pp_communication_latency)}."
    )


def _reflect(answer: str) -> str:
    (_, deep), (_, plain) = best("interleaved_5"), best("1f1b")
    wait = (
        f"The time for sending grows from {seconds(plain.pp_communication_latency)} with 1F1B to "
        f"{seconds(deep.pp_communication_latency)} per step"
    )
    if answer == "sends":
        return (
            f"{wait}, while the bubble shrinks from {percent(plain.bubble_fraction)} to "
            f"{percent(deep.bubble_fraction)}. On this network, that is a bad trade."
        )
    if answer == "memory":
        return (
            f"It needs {gigabytes(deep.memory)} of {gigabytes(deep.memory_capacity)}, so it fits. "
            f"{wait}."
        )
    if answer == "compute":
        return (
            f"The layers are the same. Computing takes {seconds(deep.compute_latency)} per step, "
            f"compared with {seconds(plain.compute_latency)} with 1F1B. {wait}."
        )
    return f"Its bubble is {percent(deep.bubble_fraction)}, the smallest of all. {wait}."


def _instruments(state: Mapping[str, Any]) -> list[Block]:
    design = plan(state)
    result = solve(design)
    is_open = state[DERIVATION.id] and not isinstance(result, str)
    return [
        _options(),
        heading("a2_builder_heading", 3, "The builder"),
        text(
            "a2_builder_text",
            "The builder starts without a pipeline: every server is a replica. Build a pipeline "
            "that meets the email's requirements, and watch the time that the network takes each "
            "time.",
        ),
        controls("a2_controls", CONTROLS, state),
        _chart(design, result),
        _readouts(result),
        *_alerts(design, result),
        derivation(DERIVATION, is_open, _explained(design) if is_open else None),
    ]


@functools.lru_cache(maxsize=16)
def _explained(design: Pipeline) -> Derivation | None:
    result = solve(design)
    return None if isinstance(result, str) else result.explain("bubble_fraction", "mfu", depth=2)


def _options() -> Block:
    rows = []
    for key, (name, chunks) in SCHEDULES.items():
        design, result = best(key)
        rows.append(
            [
                name + (f", {chunks} chunks" if chunks > 1 else ""),
                f"{design.microbatches}",
                percent(result.bubble_fraction),
                seconds(result.pp_communication_latency),
                gigabytes(result.memory) + ("" if result.fits_memory else " (too much)"),
                percent(result.mfu) if result.feasible else "does not run",
            ]
        )
    return table(
        "a2_options",
        f"Each schedule, with {FLEET.count} stages and its best number of microbatches.",
        ["Schedule", "Microbatches", "Bubble", "Sending", "Memory per GPU", "MFU"],
        rows,
    )


def _readouts(result: DistributedResult | str) -> Block:
    if isinstance(result, str):
        names = ("MFU", "Memory per GPU", "Bubble", "Sending", "Gradient exchange", "Step")
        return readouts("a2_readouts", *(readout(name, "–", tone="bad") for name in names))
    full = ratio(result.memory, result.memory_capacity)
    return readouts(
        "a2_readouts",
        readout(
            "MFU",
            f"{100 * result.mfu:.1f}",
            "%",
            "good" if result.mfu >= TARGET and result.feasible else "bad",
            f"target: {percent(TARGET, 0)} or more",
        ),
        readout(
            "Memory per GPU",
            gigabytes(result.memory),
            tone="bad" if full > 1 else "warn" if full > 0.9 else "good",
            hint=f"capacity: {gigabytes(result.memory_capacity)}",
        ),
        readout("Bubble", f"{100 * result.bubble_fraction:.1f}", "%"),
        readout("Sending", seconds(result.pp_communication_latency), hint="between stages"),
        readout(
            "Gradient exchange",
            seconds(result.dp_communication_latency),
            hint=count(result.dp_size, "replica"),
        ),
        readout("Step", seconds(result.step_latency_total), hint=band(result, seconds)),
    )


def _alerts(design: Pipeline, result: DistributedResult | str) -> list[Block]:
    if isinstance(result, str):
        return [alert("a2_sizes", "bad", "These sizes do not work", f"{result}.")]
    found = []
    if not result.fits_memory:
        found.append(
            alert(
                "a2_memory",
                "bad",
                "Out of memory",
                f"Each GPU has {gigabytes(result.memory_capacity)} and needs "
                f"{gigabytes(result.memory)}. Activations take "
                f"{gigabytes(result.activation_memory)} of that.",
            )
        )
    if not result.whole_microbatches:
        found.append(
            alert(
                "a2_microbatches",
                "bad",
                "Fractions of a sequence",
                f"{count(result.dp_size, 'replica')} with "
                f"{count(design.microbatches, 'microbatch', 'es')} each have "
                f"{result.microbatch_size:.4g} sequences per microbatch. Use fewer microbatches.",
            )
        )
    if accepted(design):
        found.append(
            alert(
                "a2_accepted",
                "info",
                "This pipeline meets the requirements",
                f"It reaches an MFU of {percent(result.mfu)} with {gigabytes(result.memory)} per "
                "GPU.",
            )
        )
    return found


def _chart(design: Pipeline, result: DistributedResult | str) -> Block:
    def points(schedule: str) -> list[tuple[float, float]]:
        found = [(m, solve(Pipeline(design.stages, schedule, m))) for m in MICROBATCHES]
        return [(m, 100 * one.mfu) for m, one in found if not isinstance(one, str)]

    own = points(design.schedule)
    plain = points("1f1b")
    # A schedule that runs with no number of microbatches has no line. 1F1B takes any sizes.
    lines = [series("Your schedule", own)] if own else []
    lines += [series("1F1B", plain)] if design.schedule != "1f1b" else []
    here = None if isinstance(result, str) else 100 * result.mfu
    shown = own or plain
    said = "not possible" if here is None else f"{here:.1f}%"
    return chart(
        "a2_chart",
        caption=f"MFU by number of microbatches, for {count(design.stages, 'stage')}, whether or "
        "not the design fits in memory. The ring marks your setting.",
        alt=f"MFU goes from {shown[0][1]:.0f}% with {shown[0][0]} microbatches to "
        f"{shown[-1][1]:.0f}% with {shown[-1][0]}. It is {said} for your setting.",
        x={"label": "Microbatches", "scale": "log2", "ticks": list(MICROBATCHES)},
        y={"label": "MFU (%)", "unit": "%", "min": 0, "max": 50},
        lines=lines,
        marker=None
        if here is None
        else {"x": design.microbatches, "y": here, "label": f"{here:.1f}%"},
        rule={"y": 100 * TARGET, "label": f"target: {percent(TARGET, 0)}"},
    )


ACT = Act(
    id="a2",
    title="Act II: build a pipeline",
    opening=_opening,
    prediction=PREDICTION,
    explain=_explain,
    controls=(*CONTROLS, DERIVATION),
    instruments=_instruments,
    reflection=REFLECTION,
    reflect=_reflect,
)
