"""The explorer of Act I: a run, its results, and how they change with the number of GPUs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mlsysim.core.derivation import Derivation
from mlsysim.solvers import DistributedResult
from mlsysim_course.labs.blocks import (
    Block,
    alert,
    chart,
    controls,
    derivation,
    heading,
    readout,
    readouts,
    series,
    text,
)
from mlsysim_course.labs.parallelism_paradox.scaling import GPUS, MAIL, MODELS, STORY, Run, solve
from mlsysim_course.labs.parallelism_paradox.state import DERIVATION_1, EXPLORER
from mlsysim_course.labs.words import band, count, gigabytes, milliseconds, percent, ratio

__all__ = ["instruments", "run"]

_GOOD, _POOR = 0.45, 0.25
"""Utilization at or above the first is shown as good; below the second, as bad."""


def run(state: Mapping[str, Any]) -> Run:
    """Return the run that the controls describe."""
    gpus = state["gpus"]
    batch = state["global_batch"] if state["held"] == "global" else state["gpu_batch"] * gpus
    return Run(
        model=state["model"],
        fabric=state["fabric"],
        gpus=gpus,
        batch=batch,
        hides=state["exchange"] == "during",
    )


def instruments(state: Mapping[str, Any]) -> list[Block]:
    """Return the controls and the results of the run that they describe."""
    chosen = run(state)
    result = solve(chosen)
    off = "gpu_batch" if state["held"] == "global" else "global_batch"
    is_open = state[DERIVATION_1.id]
    return [
        heading("a1_explorer_heading", 3, "The explorer"),
        text(
            "a1_explorer_text",
            f"The explorer starts with the email's cluster on {GPUS[0]} GPUs. Add GPUs and compare "
            "two times: the compute time of one GPU, and the exposed communication, which is the "
            "part of the gradient exchange that is not hidden by compute. Then keep the batch per "
            "GPU constant instead of the global batch, or change the network.",
        ),
        controls("a1_controls", EXPLORER, state, disabled=[off]),
        _chart(state, chosen, result),
        _readouts(chosen, result),
        *_alerts(chosen, result),
        derivation(DERIVATION_1, is_open, _explained(chosen) if is_open else None),
    ]


@functools.lru_cache(maxsize=32)
def _explained(chosen: Run) -> Derivation:
    return solve(chosen).explain("mfu", "dp_communication_latency", depth=3)


def _tone(mfu: float) -> str:
    """Return the tone of a utilization."""
    return "good" if mfu >= _GOOD else "warn" if mfu >= _POOR else "bad"


def _readouts(chosen: Run, result: DistributedResult) -> Block:
    exchange, compute = result.dp_communication_latency, result.compute_latency
    waits = ratio(exchange, compute)
    hidden = "the rest is hidden" if chosen.hides else "none is hidden"
    return readouts(
        "a1_readouts",
        readout("MFU", f"{100 * result.mfu:.1f}", "%", _tone(result.mfu), "of the dense peak rate"),
        readout(
            "Compute",
            milliseconds(compute),
            hint=f"{count(chosen.sequences, 'sequence')} per GPU",
        ),
        readout("Exposed communication", milliseconds(exchange), hint=hidden),
        readout(
            "Communication / compute",
            f"{waits:.2f}",
            tone="good" if waits < 0.1 else "warn" if waits < 0.5 else "bad",
            hint="lower is better",
        ),
        readout("Step", milliseconds(result.step_latency_total), hint=band(result, milliseconds)),
        readout(
            "Memory",
            gigabytes(result.memory),
            tone="good" if result.fits_memory else "bad",
            hint=f"capacity: {gigabytes(result.memory_capacity)}",
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
                f"Every GPU holds all of {MODELS[chosen.model].name}. It needs "
                f"{gigabytes(result.memory)} and has {gigabytes(result.memory_capacity)}. Adding "
                "replicas shards only the optimizer state further; every GPU keeps all weights and "
                "gradients. The times shown assume enough memory.",
            )
        )
    if not result.whole_microbatches:
        found.append(
            alert(
                "a1_batch",
                "bad",
                "Fewer sequences than GPUs",
                f"{chosen.batch:,} sequences cannot keep {chosen.gpus:,} GPUs busy, because a GPU "
                "processes whole sequences. Use fewer GPUs or a larger global batch.",
            )
        )
    alone = solve(chosen.on(GPUS[0]))
    if result.whole_microbatches and result.mfu < alone.mfu / 2:
        found.append(
            alert(
                "a1_wall",
                "warn",
                "The wall",
                f"These {chosen.gpus:,} GPUs reach less than half the MFU of one server with the "
                f"same global batch: {percent(result.mfu)} compared with {percent(alone.mfu)}.",
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
        else f"{count(state['gpu_batch'], 'sequence')} per GPU"
    )
    return chart(
        "a1_chart",
        caption=f"MFU by number of GPUs for {MODELS[chosen.model].name} with {held}. The ring "
        "marks your setting.",
        alt=f"MFU is between {least:.0f}% and {most:.0f}% for {points[0][0]} to {points[-1][0]:,} "
        f"GPUs. It is {100 * result.mfu:.0f}% for your setting of {chosen.gpus:,} GPUs.",
        x={"label": "GPUs", "scale": "log2", "ticks": list(GPUS)},
        y={"label": "MFU (%)", "unit": "%", "min": 0, "max": 70},
        lines=[series("Your setting", points), series("The email", mail, "warn")],
        marker={"x": chosen.gpus, "y": 100 * result.mfu, "label": percent(result.mfu)},
    )
