"""Act I: the wall that data parallelism runs into."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mlsysim.labs.blocks import Block, heading, locked, message, question, text
from mlsysim.labs.parallelism_paradox import explorer
from mlsysim.labs.parallelism_paradox import reveals_one as reveals
from mlsysim.labs.parallelism_paradox.scaling import (
    FABRICS,
    HIDING,
    MAIL,
    MODELS,
    STORY,
    daily_cost,
    solve,
)
from mlsysim.labs.parallelism_paradox.state import (
    PREDICTION_1,
    REFLECTION_1,
)
from mlsysim.labs.words import percent

__all__ = ["blocks"]


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
    return [*found, reveals.causes(), *explorer.instruments(state), *_reflection(state)]


def _mail() -> Block:
    return message("a1_mail", "Training lead", *_letter())


@functools.cache
def _letter() -> tuple[str, ...]:
    small, middle, large = (solve(MAIL.on(n)) for n in STORY)
    model = MODELS[MAIL.model]
    waste = daily_cost() * (1 - large.mfu / small.mfu)
    return (
        f"We train {model.name} on sequences of {model.seq_len:,} tokens, with data parallelism on "
        f"servers of eight H100, joined by {FABRICS[MAIL.fabric].name}. Every GPU holds the whole "
        "model, and once in a step they all sum up their gradients. They share out the optimizer's "
        "state (ZeRO-1), or it would not fit.",
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
        "DistributedSolver says of such a cluster. It times every operator, with the constants of "
        f'"{HIDING.name}": those of arithmetic are fitted on published runs, others are estimates. '
        "This framework exchanges gradients after the backward pass. No published run that we "
        "know does so, and the error is not known. The money follows from a price of the servers "
        "that is an estimate as well.",
        "MFU, model FLOPs utilization, is the share of the GPUs' peak rate that the model's own "
        "operations use. In data parallelism each replica works on its part of the global batch. "
        "Then an all-reduce sums up the gradients of all replicas, so that they take the same "
        "step. A GPU that waits for the all-reduce computes nothing.",
        "Decide before you see the instruments. The answer cannot be changed afterwards.",
    )


def _reflection(state: Mapping[str, Any]) -> list[Block]:
    answer = state[REFLECTION_1.id]
    return [question(REFLECTION_1, answer, answer and reveals.reflection(answer))]
