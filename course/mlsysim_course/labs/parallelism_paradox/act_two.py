"""Act II: three kinds of parallelism at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from mlsysim.registry.conventions import CONVENTIONS
from mlsysim.solvers import DistributedResult
from mlsysim_course.labs.acts import Act
from mlsysim_course.labs.blocks import Block, message, table, text
from mlsysim_course.labs.parallelism_paradox import configurator
from mlsysim_course.labs.parallelism_paradox.design import (
    BATCH,
    BUBBLE_CEILING,
    FLEET,
    MODEL,
    OPTIONS,
    TARGET_MFU,
    Design,
    Outcome,
    best,
    solve,
    states,
)
from mlsysim_course.labs.parallelism_paradox.state import (
    DERIVATION_2,
    DESIGN,
    PREDICTION_2,
    REFLECTION_2,
)
from mlsysim_course.labs.words import gigabytes, milliseconds, percent, ratio, seconds

__all__ = ["ACT"]


def _opening() -> list[Block]:
    return [_mail(), _framing()]


def _instruments(state: Mapping[str, Any]) -> list[Block]:
    return [_options(), *configurator.instruments(state)]


def _mail() -> Block:
    return message("a2_mail", "Architect", *_letter())


@functools.cache
def _letter() -> tuple[str, ...]:
    gpu = FLEET.node.accelerator
    alone = solve(Design(1, 1, 1, False)).result
    need = (
        ""
        if alone is None
        else (
            " The weights, gradients and optimizer state of one replica take "
            f"{gigabytes(states(alone))}."
        )
    )
    return (
        f"We train {MODEL.name} with {MODEL.parameters.to('Gparam').magnitude:.0f} billion "
        f"parameters on {FLEET.total_accelerators:,} {gpu.name} GPUs: {FLEET.count} servers of "
        f"{FLEET.node.accelerators_per_node}, connected by {FLEET.fabric.name}. Each GPU has "
        f"{gigabytes(gpu.memory.capacity)} of memory.{need}",
        "Split the model three ways: across the GPUs that share a layer, across pipeline stages, "
        f"and across replicas. The global batch is {BATCH:,} sequences of {MODEL.seq_len:,} "
        f"tokens. I want an MFU of at least {percent(TARGET_MFU, 0)}, no GPU out of memory, and a "
        f"pipeline that idles for at most {percent(BUBBLE_CEILING, 0)} of its time. Do not split a "
        "layer across servers: the network is for pipelines and replicas.",
    )


def _framing() -> Block:
    return text(
        "a2_framing",
        "Tensor parallelism (TP) splits every layer across several GPUs, at the cost of four "
        "all-reduces per layer and microbatch. Part of their time is hidden behind the layer's own "
        "compute, and the layer waits for the rest. Pipeline parallelism (PP) groups the layers "
        "into stages. It sends little, but stages wait while the pipeline fills and drains. This "
        "bubble takes a share (p − 1) / (m + p − 1) of the time for p stages and m microbatches. "
        f"Data parallelism (DP) uses the other GPUs: TP × PP × DP = {FLEET.total_accelerators:,}.",
        "Training in 16 bits keeps 2 bytes of weights and 2 bytes of gradients per parameter, plus "
        f"{_state_bytes():.0f} bytes of optimizer state. TP and PP divide all of these. DP divides "
        "none of them unless the replicas shard the optimizer state (ZeRO-1). The GPUs that share "
        "a layer also split its norms and dropouts (sequence parallelism), which sends the same "
        "number of bytes and stores fewer.",
        "Commit to an answer before you see the instruments. You cannot change it afterward. Each "
        "option uses ZeRO-1 and its best number of microbatches.",
    )


def _state_bytes() -> float:
    size: float = (CONVENTIONS.moment_bytes + CONVENTIONS.master_bytes).to("byte").magnitude
    return size


@functools.cache
def _explain(answer: str) -> str:
    """Explain one answer to the prediction."""
    return _PREDICTION[answer]()


@functools.cache
def _reflect(answer: str) -> str:
    """Explain one answer to the reflection."""
    return _REFLECTION[answer]()


def _result_of(outcome: Outcome) -> DistributedResult:
    """Return the result of a design with valid sizes."""
    if outcome.result is None:
        raise ValueError(outcome.refusal)
    return outcome.result


def _share(result: DistributedResult) -> str:
    waits = ratio(result.tp_communication_latency, result.step_latency_total)
    return (
        f"{seconds(result.tp_communication_latency)} out of "
        f"{seconds(result.step_latency_total)} per step ({percent(waits, 0)})"
    )


def _wide() -> str:
    here, right = _result_of(best("wide")), _result_of(best("balanced"))
    servers = OPTIONS["wide"].tp // FLEET.node.accelerators_per_node
    return (
        f"This design runs and needs {gigabytes(here.memory)} per GPU. But a group of "
        f"{OPTIONS['wide'].tp} GPUs spans {servers} servers, so all of its all-reduces cross the "
        f"network. GPUs wait {_share(here)}, and the MFU is {percent(here.mfu)} at "
        f"best. With TP {OPTIONS['balanced'].tp} × PP {OPTIONS['balanced'].pp}, they wait "
        f"{_share(right)}, and the MFU is {percent(right.mfu)}."
    )


def _balanced() -> str:
    outcome = best("balanced")
    here = _result_of(outcome)
    option, count = OPTIONS["balanced"], outcome.design.microbatches
    whole = _result_of(solve(Design(option.tp, option.pp, count, False)))
    return (
        f"All-reduces stay on NVLink, each stage has {MODEL.layers // option.pp} layers, and "
        f"{count} microbatches keep the bubble at {percent(here.bubble_fraction)}. The MFU is "
        f"{percent(here.mfu)}, the best of the four. The sizes alone do not make it fit: with a "
        f"replicated optimizer state, a GPU would need {gigabytes(whole.memory)}; with a sharded "
        f"one, it needs {gigabytes(here.memory)}."
    )


def _deep() -> str:
    outcome = best("deep")
    here, option = _result_of(outcome), OPTIONS["deep"]
    return (
        "It is true that no layer waits for an all-reduce. But the first stage holds the "
        f"activations of {option.pp} microbatches before the first one comes back. They are "
        "full-size, because no layer is split across GPUs, so a GPU needs "
        f"{gigabytes(here.memory)} and has {gigabytes(here.memory_capacity)}. Also, with "
        f"{outcome.design.microbatches} microbatches for {option.pp} stages, the bubble is "
        f"{percent(here.bubble_fraction)}. The limit is {percent(BUBBLE_CEILING, 0)}."
    )


def _flat() -> str:
    here, option = _result_of(best("flat")), OPTIONS["flat"]
    return (
        "There is no bubble and no slow all-reduce. But each GPU holds an eighth of the model, "
        f"which is {gigabytes(here.weights_memory)} of weights and as much again of gradients. In "
        f"total it needs {gigabytes(here.memory)} and has {gigabytes(here.memory_capacity)}. More "
        f"replicas do not help, because each of the {option.dp} replicas holds the whole model on "
        "its eight GPUs."
    )


def _software() -> str:
    return (
        "They can. A group is a list of ranks, and the same all-reduce runs over any network. The "
        f"solver times it too: with TP = {OPTIONS['wide'].tp}, the MFU is "
        f"{percent(_result_of(best('wide')).mfu)} at best. It is slow, not impossible."
    )


def _every_layer() -> str:
    inside, across = _pair()
    first, second = _PAIR
    return (
        "Each layer and microbatch needs four all-reduces, two forward and two backward. Within a "
        "server, part of their time is hidden behind the layer's matrix products: TP "
        f"{first.tp} × PP {first.pp} waits {_wait(first, inside)} per layer and microbatch. Across "
        f"two servers, they are not hidden: TP {second.tp} × PP {second.pp}, with as many GPUs per "
        f"replica, waits {_wait(second, across)}. The MFU falls from {percent(inside.mfu)} to "
        f"{percent(across.mfu)}."
    )


def _wait(design: Design, result: DistributedResult) -> str:
    """Return the time that a layer waits for its all-reduces per microbatch."""
    layers = MODEL.layers // design.pp
    return milliseconds(result.tp_communication_latency / (layers * design.microbatches), 2)


# The same number of GPUs per replica and of sequences per microbatch.
_PAIR = (Design(8, 8, 96, True), Design(16, 4, 96, True))


def _pair() -> tuple[DistributedResult, DistributedResult]:
    return _result_of(solve(_PAIR[0])), _result_of(solve(_PAIR[1]))


def _shared_memory() -> str:
    return (
        "It does not. Each GPU keeps its part of every matrix in its own memory and sends partial "
        "results as messages, over NVLink or over a network. The difference is the time that GPUs "
        f"wait: {_share(_pair()[0])} within a server, {_share(_pair()[1])} across two."
    )


def _numerics() -> str:
    return (
        "The numbers are summed in the same format on either path. The order of a sum can change "
        "with the number of ranks, but that also happens within a server. What the network changes "
        f"is the time: the MFU is {percent(_pair()[0].mfu)} within a server and "
        f"{percent(_pair()[1].mfu)} across two."
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
        result = _result_of(outcome)
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


def _options() -> Block:
    """Return a table of the four options, each at its best."""
    return table(
        "a2_options",
        "The four options, each with a sharded optimizer state and its best number of "
        "microbatches.",
        ["TP × PP × DP", "Microbatches", "Memory per GPU", "Bubble", "MFU"],
        _rows(),
    )


ACT = Act(
    id="a2",
    title="Act II: split three ways",
    opening=_opening,
    prediction=PREDICTION_2,
    explain=_explain,
    controls=(*DESIGN, DERIVATION_2),
    instruments=_instruments,
    reflection=REFLECTION_2,
    reflect=_reflect,
)
