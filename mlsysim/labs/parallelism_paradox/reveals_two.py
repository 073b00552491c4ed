"""What Act II says about each answer, with the numbers that the solver gives."""

from __future__ import annotations

import functools
from collections.abc import Callable

from mlsysim.labs.blocks import Block, table
from mlsysim.labs.parallelism_paradox.design import (
    BUBBLE_CEILING,
    FLEET,
    MODEL,
    OPTIONS,
    Design,
    Outcome,
    best,
    solve,
)
from mlsysim.labs.words import gigabytes, milliseconds, percent, ratio, seconds
from mlsysim.solvers import DistributedResult

__all__ = ["options", "prediction", "reflection"]


@functools.cache
def prediction(answer: str) -> str:
    """Explain one answer to the prediction."""
    return _PREDICTION[answer]()


@functools.cache
def reflection(answer: str) -> str:
    """Explain one answer to the reflection."""
    return _REFLECTION[answer]()


def of(outcome: Outcome) -> DistributedResult:
    """Return the result of a design whose sizes are known to multiply up."""
    if outcome.result is None:
        raise ValueError(outcome.refusal)
    return outcome.result


def _share(result: DistributedResult) -> str:
    waits = ratio(result.tp_communication_latency, result.step_latency_total)
    return f"{seconds(result.tp_communication_latency)} of a step of " + (
        f"{seconds(result.step_latency_total)}, {percent(waits, 0)}"
    )


def _wide() -> str:
    here, right = of(best("wide")), of(best("balanced"))
    servers = OPTIONS["wide"].tp // FLEET.node.accelerators_per_node
    return (
        f"It runs: it needs {gigabytes(here.memory)}. But a group of {OPTIONS['wide'].tp} GPUs "
        f"spans {servers} servers, and all of its all-reduces cross the network. In sight are "
        f"{_share(here)}. The MFU is {percent(here.mfu)} at best, and "
        f"{percent(right.mfu)} for TP {OPTIONS['balanced'].tp} × PP {OPTIONS['balanced'].pp}, "
        f"where {_share(right)} are in sight."
    )


def _balanced() -> str:
    outcome = best("balanced")
    here = of(outcome)
    option, count = OPTIONS["balanced"], outcome.design.microbatches
    whole = of(solve(Design(option.tp, option.pp, count, False)))
    return (
        f"All-reduces stay on NVLink, {MODEL.layers // option.pp} layers make a stage, and "
        f"{count} microbatches keep the bubble at {percent(here.bubble_fraction)}. The MFU is "
        f"{percent(here.mfu)}, the best of the four. The sizes alone do not make it fit: with the "
        f"optimizer's state in every replica a GPU would need {gigabytes(whole.memory)}; shared "
        f"out it needs {gigabytes(here.memory)}."
    )


def _deep() -> str:
    outcome = best("deep")
    here, option = of(outcome), OPTIONS["deep"]
    return (
        "No layer waits for an all-reduce, that is true. But the first stage holds the "
        f"activations of {option.pp} microbatches before the first of them comes back, whole "
        f"ones, as no GPU shares a layer: {gigabytes(here.memory)} are needed, "
        f"{gigabytes(here.memory_capacity)} are there. And with {outcome.design.microbatches} "
        f"microbatches for {option.pp} stages the bubble is {percent(here.bubble_fraction)}, "
        f"where the mail allows {percent(BUBBLE_CEILING, 0)}."
    )


def _flat() -> str:
    here, option = of(best("flat")), OPTIONS["flat"]
    return (
        f"There is no bubble and no slow all-reduce. But an eighth of the model for each GPU is "
        f"{gigabytes(here.weights_memory)} of weights and as much of gradients: "
        f"{gigabytes(here.memory)} in all, where there are {gigabytes(here.memory_capacity)}. "
        f"More replicas do not help, as each of the {option.dp} holds the whole model on its "
        "eight GPUs."
    )


def _software() -> str:
    return (
        "They can. A group is a list of ranks, and the same all-reduce runs over any network. The "
        f"solver times it too: {percent(of(best('wide')).mfu)} MFU at best with "
        f"{OPTIONS['wide'].tp} GPUs to a layer. It is slow, not impossible."
    )


def _every_layer() -> str:
    inside, across = _pair()
    first, second = _PAIR
    return (
        "Four all-reduces for each layer and microbatch, two forward and two backward. Within a "
        f"server most of their time hides under the layer's products: TP {first.tp} × PP "
        f"{first.pp} waits {_wait(first, inside)} for a layer and microbatch. Over two servers "
        f"nothing hides them: TP {second.tp} × PP {second.pp}, as many GPUs to a replica, waits "
        f"{_wait(second, across)}. The MFU falls from {percent(inside.mfu)} to "
        f"{percent(across.mfu)}."
    )


def _wait(design: Design, result: DistributedResult) -> str:
    """Return how long a layer waits for its all-reduces, for one microbatch."""
    layers = MODEL.layers // design.pp
    return milliseconds(result.tp_communication_latency / (layers * design.microbatches), 2)


# As many GPUs to a replica, and as many sequences to a microbatch.
_PAIR = (Design(8, 8, 96, True), Design(16, 4, 96, True))


def _pair() -> tuple[DistributedResult, DistributedResult]:
    return of(solve(_PAIR[0])), of(solve(_PAIR[1]))


def _shared_memory() -> str:
    return (
        "It does not. Each GPU has its part of every matrix in its own memory, and sends partial "
        "results as messages, over NVLink or over a network. What differs is the time in sight: "
        f"{_share(_pair()[0])} within a server, {_share(_pair()[1])} over two."
    )


def _numerics() -> str:
    return (
        "The numbers are summed in the same format on either path. The order of a sum may differ "
        "with the number of ranks, and it may within a server too. What the network changes is "
        f"the time: an MFU of {percent(_pair()[0].mfu)} within a server, "
        f"{percent(_pair()[1].mfu)} over two."
    )


_PREDICTION: dict[str, Callable[[], str]] = {
    "wide": _wide,
    "balanced": _balanced,
    "deep": _deep,
    "flat": _flat,
}
_REFLECTION: dict[str, Callable[[], str]] = {
    "software": _software,
    "every_layer": _every_layer,
    "shared_memory": _shared_memory,
    "numerics": _numerics,
}


@functools.cache
def _rows() -> tuple[tuple[str, ...], ...]:
    rows = []
    for name, option in OPTIONS.items():
        outcome = best(name)
        result = of(outcome)
        rows.append(
            (
                f"{option.tp} × {option.pp} × {option.dp}",
                str(outcome.design.microbatches),
                gigabytes(result.memory) + ("" if result.fits_memory else " (too much)"),
                percent(result.bubble_fraction),
                percent(result.mfu) if result.feasible else "does not run",
            )
        )
    return tuple(rows)


def options() -> Block:
    """Return the table of the four answers, each at its best."""
    return table(
        "a2_options",
        "The four answers, each with the number of microbatches that serves it best and with the "
        "optimizer's state shared out.",
        ["TP × PP × DP", "Microbatches", "Memory per GPU", "Bubble", "MFU"],
        _rows(),
    )
