"""What Act I says about each answer, with the numbers that the solver gives."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

from mlsysim.labs.blocks import Block, table
from mlsysim.labs.parallelism_paradox.scaling import (
    FABRICS,
    GPUS,
    HIDING,
    MAIL,
    MODELS,
    STORY,
    all_reduce_volume,
    solve,
    undone,
)
from mlsysim.labs.words import gigabytes, milliseconds, percent
from mlsysim.solvers import DistributedResult

__all__ = ["causes", "prediction", "reflection"]


@functools.cache
def prediction(answer: str) -> str:
    """Explain one answer to the prediction."""
    return _PREDICTION[answer]()


@functools.cache
def reflection(answer: str) -> str:
    """Explain one answer to the reflection."""
    return _REFLECTION[answer]()


def _large() -> DistributedResult:
    return solve(MAIL)


def _mfu(result: DistributedResult) -> str:
    return percent(result.mfu)


def _software() -> str:
    without = undone(MAIL, "latency")
    hops = 2 * (MAIL.gpus - 1)
    cost = hops * FABRICS[MAIL.fabric].latency
    return (
        "There is some truth in it, but it is the smaller part. A ring of "
        f"{MAIL.gpus} GPUs takes {hops:,} hops, and their latencies add up to "
        f"{milliseconds(cost)} of a step of {milliseconds(_large().step_latency_total)}. If "
        f"messages of no size took no time, the MFU on {MAIL.gpus} GPUs would be "
        f"{_mfu(without)} instead of {_mfu(_large())}. Most of the fall would still be there."
    )


def _ratio() -> str:
    one, few, many = (solve(MAIL.on(n)) for n in STORY)
    kept = undone(MAIL, "sharing")
    return (
        f"The step has {MAIL.batch} sequences, however many GPUs share them. From 64 to "
        f"{MAIL.gpus} GPUs the arithmetic of one GPU falls from "
        f"{milliseconds(few.compute_latency)} to {milliseconds(many.compute_latency)} per step. "
        f"The exchange of gradients does not shrink with it: "
        f"{milliseconds(few.dp_communication_latency)}, then "
        f"{milliseconds(many.dp_communication_latency)}. It got much slower once, from "
        f"{milliseconds(one.dp_communication_latency)}, when it left the server and its NVLink; "
        "after that only waits are added. "
        f"If each GPU kept the {MAIL.batch // GPUS[0]} sequences that it had on {GPUS[0]} GPUs, "
        f"the MFU on {MAIL.gpus} would be {_mfu(kept)} instead of {_mfu(many)}. That needs a "
        "global batch of "
        f"{MAIL.batch // GPUS[0] * MAIL.gpus:,} sequences, and a model may learn less from it."
    )


def _memory() -> str:
    small, large = undone(MAIL.on(GPUS[0]), "memory"), undone(MAIL, "memory")
    return (
        "What a GPU does at a time does not depend on how many there are: one sequence, the same "
        f"matrices, the same traffic. With memory ten times as fast the MFU would be "
        f"{_mfu(small)} on {GPUS[0]} GPUs and {_mfu(large)} on {MAIL.gpus}: it would fall all the "
        "same."
    )


def _volume() -> str:
    least, most = all_reduce_volume(GPUS[0]), all_reduce_volume(MAIL.gpus)
    size = solve(MAIL).gradient_memory
    return (
        "In a ring, each GPU passes on partial sums, never the gradients of all others. It sends "
        f"{least:.2f} times the {gigabytes(size)} of gradients on {GPUS[0]} GPUs and {most:.2f} "
        f"times on {MAIL.gpus}; the limit is 2. With the bytes of {GPUS[0]} GPUs, the MFU on "
        f"{MAIL.gpus} would be {_mfu(undone(MAIL, 'volume'))} instead of {_mfu(_large())}."
    )


def _faster() -> str:
    return (
        f"On {MAIL.gpus} GPUs with twice the rate the MFU would fall from {_mfu(_large())} to "
        f"{_mfu(undone(MAIL, 'arithmetic'))}. The step is a little shorter, but the exchange takes "
        "as long as before, and more of what was paid for waits for it."
    )


def _overlap() -> str:
    now = solve(dataclasses.replace(MAIL, hides=True))
    some = solve(dataclasses.replace(MAIL.on(64), hides=True))
    return (
        f"On 64 GPUs the MFU rises from {_mfu(solve(MAIL.on(64)))} to {_mfu(some)}, on {MAIL.gpus} "
        f"from {_mfu(_large())} to {_mfu(now)}. No more: there, a GPU is busy for "
        f"{milliseconds(_large().dp_communication_latency - now.dp_communication_latency)} in a "
        "step, and of an exchange of "
        f"{milliseconds(_large().dp_communication_latency)} no more can hide. (The sums of "
        "gradients hide under the backward pass, the new weights that follow them under the next "
        "forward pass.) How much a framework hides where there is enough to hide behind is a "
        "constant that no published run told us; "
        f"the package takes {percent(HIDING.gradient_overlap, 0)} and marks it as an estimate."
    )


def _batch() -> str:
    two = dataclasses.replace(MAIL, batch=2 * MAIL.batch)
    return (
        f"Gradients are as many as the model has parameters, {gigabytes(_large().gradient_memory)} "
        "here, whatever the batch. Fewer sequences make the arithmetic shorter and leave the "
        f"exchange: from two sequences per GPU to one, the MFU on {MAIL.gpus} GPUs falls from "
        f"{_mfu(solve(two))} to {_mfu(_large())}."
    )


def _quantize() -> str:
    return (
        f"It helps: gradients half as wide give an MFU of {_mfu(undone(MAIL, 'bytes'))} on "
        f"{MAIL.gpus} GPUs instead of {_mfu(_large())}. Only half of the exchange shrinks: "
        "replicas that share out the optimizer's state also gather the new weights, in 16 bits. "
        "And it hides nothing: it makes the exchange shorter, and the optimizer gets other numbers "
        "than before. Whether the model still learns as well has to be tried."
    )


_PREDICTION: dict[str, Callable[[], str]] = {
    "software": _software,
    "ratio": _ratio,
    "memory": _memory,
    "volume": _volume,
}
_REFLECTION: dict[str, Callable[[], str]] = {
    "faster": _faster,
    "overlap": _overlap,
    "batch": _batch,
    "quantize": _quantize,
}
_CAUSES = {
    "latency": "Messages of no size take no time",
    "sharing": f"Each GPU keeps {MAIL.batch // GPUS[0]} sequences",
    "memory": "GPU memory ten times as fast",
    "volume": f"The ring sends what it sends on {GPUS[0]} GPUs",
    "network": f"A network as fast as {FABRICS['nvlink4'].name}",
}


@functools.cache
def _rows() -> tuple[tuple[str, ...], ...]:
    mail = ("As in the mail", *(_mfu(solve(MAIL.on(n))) for n in STORY))
    return mail, *(
        (words, *(_mfu(undone(MAIL.on(n), cause)) for n in STORY))
        for cause, words in _CAUSES.items()
    )


def causes() -> Block:
    """Return the table of what the MFU would be with one cause taken away."""
    return table(
        "a1_causes",
        f"MFU of {MODELS[MAIL.model].name} with one cause taken away at a time. Only enough "
        "arithmetic between two exchanges keeps it up. A faster network makes the fall smaller.",
        ["What is changed", *(f"{n} GPUs" for n in STORY)],
        _rows(),
    )
