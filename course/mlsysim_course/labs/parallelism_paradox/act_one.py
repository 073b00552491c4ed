"""Act I: the limit of data parallelism."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

from mlsysim.solvers import DistributedResult
from mlsysim_course.labs.acts import Act
from mlsysim_course.labs.blocks import Block, message, table, text
from mlsysim_course.labs.parallelism_paradox import explorer
from mlsysim_course.labs.parallelism_paradox.scaling import (
    FABRICS,
    GPUS,
    HIDING,
    MAIL,
    MODELS,
    STORY,
    all_reduce_volume,
    daily_cost,
    solve,
    undone,
)
from mlsysim_course.labs.parallelism_paradox.state import (
    DERIVATION_1,
    EXPLORER,
    PREDICTION_1,
    REFLECTION_1,
)
from mlsysim_course.labs.words import gigabytes, milliseconds, percent

__all__ = ["ACT"]


def _opening() -> list[Block]:
    return [_mail(), _framing()]


def _instruments(state: Mapping[str, Any]) -> list[Block]:
    return [_causes(), *explorer.instruments(state)]


def _mail() -> Block:
    return message("a1_mail", "Training lead", *_letter())


@functools.cache
def _letter() -> tuple[str, ...]:
    small, middle, large = (solve(MAIL.on(n)) for n in STORY)
    model = MODELS[MAIL.model]
    waste = daily_cost() * (1 - large.mfu / small.mfu)
    return (
        f"We train {model.name} on sequences of {model.seq_len:,} tokens with data parallelism, on "
        f"servers of eight H100 GPUs connected by {FABRICS[MAIL.fabric].name}. Every GPU holds the "
        "whole model, and once per step all GPUs sum their gradients. The optimizer state is "
        "sharded across them (ZeRO-1), because it would not fit otherwise.",
        f"On {STORY[0]} GPUs we measured an MFU of {percent(small.mfu, 0)}. On {STORY[1]} it was "
        f"{percent(middle.mfu, 0)}, and on {STORY[2]} it is {percent(large.mfu, 0)}. The model, "
        f"the code and the global batch of {MAIL.batch} sequences are the same. All we did was add "
        "GPUs.",
        f"Compared with one server, about ${round(waste, -2):,.0f} of our daily cost now pays for "
        "GPUs that wait. Why does utilization fall?",
    )


def _framing() -> Block:
    return text(
        "a1_framing",
        "The training lead and the email are fictional, but the numbers are not: mlsysim's "
        "DistributedSolver computes them for such a cluster. It times every operator with the "
        f'constants of "{HIDING.name}". The compute constants are fitted to published runs; the '
        "others are estimates. The framework in this story exchanges gradients only after the "
        "backward pass. We know of no published run that does so, so the error of these times is "
        "unknown. The cost also depends on an estimated server price.",
        "MFU (model FLOPs utilization) is the share of the GPUs' peak rate that the model's own "
        "operations use. In data parallelism, each replica processes its part of the global batch. "
        "An all-reduce then sums the gradients of all replicas, so that every replica takes the "
        "same step. While a GPU waits for the all-reduce, it computes nothing.",
        "Commit to an answer before you see the instruments. You cannot change it afterward.",
    )


@functools.cache
def _explain(answer: str) -> str:
    """Explain one answer to the prediction."""
    return _PREDICTION[answer]()


@functools.cache
def _reflect(answer: str) -> str:
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
        f"This effect is real but small. A ring of {MAIL.gpus} GPUs takes {hops:,} hops, and their "
        f"latencies add up to {milliseconds(cost)} out of "
        f"{milliseconds(_large().step_latency_total)} per step. If empty messages took no time, "
        f"the MFU on {MAIL.gpus} GPUs would be {_mfu(without)} instead of {_mfu(_large())}. Most "
        "of the drop would remain."
    )


def _ratio() -> str:
    one, few, many = (solve(MAIL.on(n)) for n in STORY)
    kept = undone(MAIL, "sharing")
    return (
        f"A step has {MAIL.batch} sequences, however many GPUs share them. From {STORY[1]} to "
        f"{MAIL.gpus} GPUs, the compute time of one GPU falls from "
        f"{milliseconds(few.compute_latency)} to {milliseconds(many.compute_latency)} per step. "
        "The gradient exchange does not shrink with it. It takes "
        f"{milliseconds(few.dp_communication_latency)}, then "
        f"{milliseconds(many.dp_communication_latency)}. It became much slower only when it left "
        f"the first server: over NVLink, it took {milliseconds(one.dp_communication_latency)}. "
        f"If each GPU kept the {MAIL.batch // GPUS[0]} sequences that it had on {GPUS[0]} GPUs, "
        f"the MFU on {MAIL.gpus} would be {_mfu(kept)} instead of {_mfu(many)}. That requires a "
        f"global batch of {MAIL.batch // GPUS[0] * MAIL.gpus:,} sequences, and the model may learn "
        "less from each of them."
    )


def _memory() -> str:
    small, large = undone(MAIL.on(GPUS[0]), "memory"), undone(MAIL, "memory")
    return (
        "The work of one GPU per microbatch does not depend on the number of GPUs. It is one "
        "sequence, with the same matrices and the same memory traffic. With memory ten times as "
        f"fast, the MFU would be {_mfu(small)} on {GPUS[0]} GPUs and {_mfu(large)} on {MAIL.gpus}, "
        "so it would still fall."
    )


def _volume() -> str:
    least, most = all_reduce_volume(GPUS[0]), all_reduce_volume(MAIL.gpus)
    size = solve(MAIL).gradient_memory
    return (
        "In a ring, each GPU passes on partial sums, not the separate gradients of all the "
        f"others. On {GPUS[0]} GPUs it sends {least:.2f} times the {gigabytes(size)} of gradients, "
        f"and on {MAIL.gpus} GPUs {most:.2f} times; the limit is 2. If it sent only as many bytes "
        f"as on {GPUS[0]} GPUs, the MFU on {MAIL.gpus} would be {_mfu(undone(MAIL, 'volume'))} "
        f"instead of {_mfu(_large())}."
    )


def _faster() -> str:
    return (
        f"On {MAIL.gpus} GPUs with twice the peak rate, the MFU would fall from {_mfu(_large())} "
        f"to {_mfu(undone(MAIL, 'arithmetic'))}. The step gets a little shorter, but the exchange "
        "takes as long as before, so a larger share of the peak rate is wasted."
    )


def _overlap() -> str:
    now = solve(dataclasses.replace(MAIL, hides=True))
    few = MAIL.on(STORY[1])
    some = solve(dataclasses.replace(few, hides=True))
    estimated = "gradient_overlap" in HIDING.software.estimated
    guess = " and marks this value as an estimate" if estimated else ", fitted to published runs"
    return (
        f"On {STORY[1]} GPUs the MFU rises from {_mfu(solve(few))} to {_mfu(some)}, and on "
        f"{MAIL.gpus} GPUs from {_mfu(_large())} to {_mfu(now)}. The gain on {MAIL.gpus} is "
        "limited because the exchange takes "
        f"{milliseconds(_large().dp_communication_latency)} and the compute of a step can hide "
        f"only {milliseconds(_large().dp_communication_latency - now.dp_communication_latency)}. "
        "(The gradient sums hide behind the backward pass; the updated weights, "
        "which are gathered afterward, hide behind the next forward pass.) How much a framework "
        "hides when there is enough compute must be measured. The package assumes "
        f"{percent(HIDING.software.gradient_overlap, 0)}{guess}."
    )


def _batch() -> str:
    two = dataclasses.replace(MAIL, batch=2 * MAIL.batch)
    return (
        f"There is one gradient per parameter, {gigabytes(_large().gradient_memory)} here, "
        "whatever the batch size. Fewer sequences shorten the compute and leave the exchange as "
        f"it is. With one sequence per GPU instead of two, the MFU on {MAIL.gpus} GPUs falls from "
        f"{_mfu(solve(two))} to {_mfu(_large())}."
    )


def _quantize() -> str:
    return (
        f"It helps: with gradients half as wide, the MFU on {MAIL.gpus} GPUs is "
        f"{_mfu(undone(MAIL, 'bytes'))} instead of {_mfu(_large())}. Only half of the exchange "
        "shrinks, because replicas that shard the optimizer state also gather the updated weights "
        "in 16 bits. But this shortens the exchange instead of hiding it, and it changes the "
        "numbers that the optimizer receives. Whether the model still learns as well must be "
        "tested."
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
    "latency": "Empty messages take no time",
    "sharing": f"Each GPU keeps {MAIL.batch // GPUS[0]} sequences",
    "memory": "GPU memory is ten times as fast",
    "volume": f"Each GPU sends as many bytes as on {GPUS[0]} GPUs",
    "network": f"The network is as fast as {FABRICS['nvlink4'].name}",
}


@functools.cache
def _rows() -> tuple[tuple[str, ...], ...]:
    mail = ("As in the email", *(_mfu(solve(MAIL.on(n))) for n in STORY))
    return mail, *(
        (words, *(_mfu(undone(MAIL.on(n), cause)) for n in STORY))
        for cause, words in _CAUSES.items()
    )


def _causes() -> Block:
    """Return a table of the MFU with one cause removed at a time."""
    return table(
        "a1_causes",
        f"MFU of {MODELS[MAIL.model].name} with one cause removed at a time. It stays high only if "
        "each GPU keeps enough compute between exchanges. A faster network reduces the drop.",
        ["Change", *(f"{n} GPUs" for n in STORY)],
        _rows(),
    )


ACT = Act(
    id="a1",
    title="Act I: the data-parallel wall",
    opening=_opening,
    prediction=PREDICTION_1,
    explain=_explain,
    controls=(*EXPLORER, DERIVATION_1),
    instruments=_instruments,
    reflection=REFLECTION_1,
    reflect=_reflect,
)
