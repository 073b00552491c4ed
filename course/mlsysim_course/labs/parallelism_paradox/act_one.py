"""Act I: the limit of data parallelism."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mlsysim_course.labs.blocks import Block, message, text
from mlsysim_course.labs.lab import Act
from mlsysim_course.labs.parallelism_paradox import explorer
from mlsysim_course.labs.parallelism_paradox import reveals_one as reveals
from mlsysim_course.labs.parallelism_paradox.scaling import (
    FABRICS,
    HIDING,
    MAIL,
    MODELS,
    STORY,
    daily_cost,
    solve,
)
from mlsysim_course.labs.parallelism_paradox.state import (
    DERIVATION_1,
    EXPLORER,
    PREDICTION_1,
    REFLECTION_1,
)
from mlsysim_course.labs.words import percent

__all__ = ["ACT"]


def _opening() -> list[Block]:
    return [_mail(), _framing()]


def _instruments(state: Mapping[str, Any]) -> list[Block]:
    return [reveals.causes(), *explorer.instruments(state)]


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


ACT = Act(
    id="a1",
    title="Act I: the data-parallel wall",
    opening=_opening,
    prediction=PREDICTION_1,
    explain=reveals.prediction,
    controls=(*EXPLORER, DERIVATION_1),
    instruments=_instruments,
    reflection=REFLECTION_1,
    reflect=reveals.reflection,
)
