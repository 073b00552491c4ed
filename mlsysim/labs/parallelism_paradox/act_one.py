"""Act I: the wall that data parallelism runs into."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mlsysim.core.derivation import Derivation
from mlsysim.labs.blocks import (
    Block,
    alert,
    chart,
    controls,
    derivation,
    heading,
    locked,
    message,
    question,
    readout,
    readouts,
    series,
    text,
)
from mlsysim.labs.parallelism_paradox import reveals_one as reveals
from mlsysim.labs.parallelism_paradox.scaling import (
    GPUS,
    HIDING,
    MAIL,
    MODELS,
    STORY,
    Run,
    daily_cost,
    solve,
)
from mlsysim.labs.parallelism_paradox.state import (
    DERIVATION_1,
    EXPLORER,
    PREDICTION_1,
    REFLECTION_1,
)
from mlsysim.labs.words import gigabytes, milliseconds, percent
from mlsysim.solvers import DistributedResult

__all__ = ["blocks", "run"]

_GOOD, _POOR = 0.45, 0.25
"""Utilization from which on it is shown as good, and below which as bad."""


def blocks(state: Mapping[str, Any]) -> list[Block]:
    """Return what Act I shows."""
    answer = state[PREDICTION_1.id]
    found = [
        heading("a1_heading", 2, "Act I: the data-parallel wall"),
        _mail(),
        _framing(),
        question(PREDICTION_1, answer, answer and reveals.prediction(answer)),
    ]
    if answer is None:
        return [*found, locked("a1_locked", "Answer first: the instruments follow.")]
    return [*found, reveals.causes(), *_instruments(state), *_reflection(state)]


def run(state: Mapping[str, Any]) -> Run:
    """Return the run that the explorer is set to."""
    gpus = state["gpus"]
    batch = state["global_batch"] if state["held"] == "global" else state["gpu_batch"] * gpus
    return Run(
        model=state["model"],
        fabric=state["fabric"],
        gpus=gpus,
        batch=batch,
        hides=state["exchange"] == "during",
    )


def _mail() -> Block:
    small, middle, large = (solve(MAIL.on(n)) for n in STORY)
    waste = daily_cost() * (1 - large.mfu / small.mfu)
    return message(
        "a1_mail",
        "Training lead",
        f"We train {MODELS[MAIL.model].name} with data parallelism on servers of eight H100, "
        "joined by 100 Gbit/s Ethernet. Every GPU holds the whole model, and once in a step they "
        "all sum up their gradients.",
        f"On {STORY[0]} GPUs we measured an MFU of {percent(small.mfu, 0)}. On {STORY[1]} it was "
        f"{percent(middle.mfu, 0)}, and on {STORY[2]} it is {percent(large.mfu, 0)}. The model is "
        f"the same, the code is the same, and so is the global batch of {MAIL.batch} sequences. "
        "We added GPUs and nothing else.",
        f"Compared with one server, about ${round(waste, -2):,.0f} a day now pay for waiting. Why "
        "does the utilization fall?",
    )


def _framing() -> Block:
    return text(
        "a1_framing",
        "The lead and the mail are invented, its numbers are not: they are what mlsysim's "
        "DistributedSolver says of such a cluster. It times every operator with constants of the "
        f'row "{HIDING.name}", fitted on published runs; this framework exchanges gradients after '
        "the backward pass. The money is an estimate, from a price of the servers that no vendor "
        "publishes.",
        "MFU, model FLOPs utilization, is the share of the GPUs' peak rate that the model's own "
        "operations use. In data parallelism each replica works on its part of the global batch. "
        "Then an all-reduce sums up the gradients of all replicas, so that they take the same "
        "step. A GPU that waits for the all-reduce computes nothing.",
        "Decide before you see the instruments. The answer cannot be changed afterwards.",
    )


def _instruments(state: Mapping[str, Any]) -> list[Block]:
    chosen = run(state)
    result = solve(chosen)
    off = "gpu_batch" if state["held"] == "global" else "global_batch"
    is_open = state[DERIVATION_1.id]
    return [
        heading("a1_explorer_heading", 3, "The explorer"),
        text(
            "a1_explorer_text",
            f"The mail's cluster is set, on {GPUS[0]} GPUs. Add GPUs and watch the two times: the "
            "arithmetic of one GPU, and the exchange that is in sight. Then keep the batch of each "
            "GPU instead of the global batch, or change the network.",
        ),
        controls("a1_controls", EXPLORER, state, disabled=[off]),
        _readouts(chosen, result),
        *_alerts(chosen, result),
        _chart(state, chosen, result),
        derivation(DERIVATION_1, is_open, _explained(chosen) if is_open else None),
    ]


@functools.lru_cache(maxsize=32)
def _explained(chosen: Run) -> Derivation:
    return solve(chosen).explain("mfu", "dp_communication_latency", depth=3)


def tone(mfu: float) -> str:
    """Return how a utilization is shown."""
    return "good" if mfu >= _GOOD else "warn" if mfu >= _POOR else "bad"


def band(result: DistributedResult) -> str:
    """Say how sure a step time is."""
    low, high = result.step_latency_low, result.step_latency_high
    if low is None or high is None:
        return "no published run to compare with"
    return f"four of five comparable runs: {milliseconds(low)} to {milliseconds(high)}"


def _readouts(chosen: Run, result: DistributedResult) -> Block:
    exchange, compute = result.dp_communication_latency, result.compute_latency
    ratio = (exchange / compute).to("").magnitude
    return readouts(
        "a1_readouts",
        readout("MFU", f"{100 * result.mfu:.1f}", "%", tone(result.mfu), "of the dense peak rate"),
        readout(
            "Arithmetic",
            milliseconds(compute),
            hint=f"{chosen.sequences:g} sequences per GPU and step",
        ),
        readout("Exchange in sight", milliseconds(exchange), hint="nothing hides it"),
        readout(
            "Exchange over arithmetic",
            f"{ratio:.2f}",
            tone="good" if ratio < 0.1 else "warn" if ratio < 0.5 else "bad",
            hint="lower is better",
        ),
        readout("Step", milliseconds(result.step_latency_total), hint=band(result)),
        readout(
            "Memory",
            gigabytes(result.memory),
            tone="good" if result.fits_memory else "bad",
            hint=f"a GPU has {gigabytes(result.memory_capacity)}",
        ),
    )


def _alerts(chosen: Run, result: DistributedResult) -> list[Block]:
    found = []
    if not result.fits_memory:
        found.append(
            alert(
                "a1_memory",
                "bad",
                "Out of memory",
                f"Every GPU holds all of {MODELS[chosen.model].name}: {gigabytes(result.memory)} "
                f"are needed, {gigabytes(result.memory_capacity)} are there. More replicas share "
                "out the optimizer's state; weights and gradients stay. The times are those of "
                "GPUs with enough memory.",
            )
        )
    if not result.whole_microbatches:
        found.append(
            alert(
                "a1_batch",
                "bad",
                "Fewer sequences than GPUs",
                f"{chosen.batch} sequences cannot be dealt out to {chosen.gpus:,} GPUs: a sequence "
                "cannot be halved. Take fewer GPUs or a larger global batch.",
            )
        )
    if chosen.gpus > GPUS[0]:
        here = all(solve(chosen.on(n)).whole_microbatches for n in (GPUS[0], chosen.gpus))
        if here and result.mfu < solve(chosen.on(GPUS[0])).mfu / 2:
            found.append(
                alert(
                    "a1_wall",
                    "warn",
                    "The wall",
                    f"These {chosen.gpus:,} GPUs are used less than half as well as one server "
                    f"with the same global batch: {percent(result.mfu)} against "
                    f"{percent(solve(chosen.on(GPUS[0])).mfu)}.",
                )
            )
    return found


def _chart(state: Mapping[str, Any], chosen: Run, result: DistributedResult) -> Block:
    points = []
    for gpus in GPUS:
        found = solve(run({**state, "gpus": gpus}))
        if found.whole_microbatches:
            points.append((gpus, 100 * found.mfu))
    mail = [(gpus, 100 * solve(MAIL.on(gpus)).mfu) for gpus in STORY]
    least, most = min(y for _, y in points), max(y for _, y in points)
    held = (
        f"a global batch of {state['global_batch']:,} sequences"
        if state["held"] == "global"
        else f"{state['gpu_batch']} sequences per GPU"
    )
    return chart(
        "a1_chart",
        caption=f"MFU over the number of GPUs, for {MODELS[chosen.model].name} with {held}. The "
        "marker is the setting above, the points are those of the mail.",
        alt=f"MFU between {least:.0f}% and {most:.0f}% for {points[0][0]} to {points[-1][0]:,} "
        f"GPUs; {100 * result.mfu:.0f}% on the {chosen.gpus:,} that are set.",
        x={"label": "GPUs", "scale": "log2", "ticks": list(GPUS)},
        y={"label": "MFU (%)", "min": 0, "max": 60},
        lines=[series("Your setting", points), series("The mail", mail, "warn")],
        marker={"x": chosen.gpus, "y": 100 * result.mfu, "label": percent(result.mfu)},
    )


def _reflection(state: Mapping[str, Any]) -> list[Block]:
    answer = state[REFLECTION_1.id]
    return [question(REFLECTION_1, answer, answer and reveals.reflection(answer))]
