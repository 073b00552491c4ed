"""What a student takes along, and how far they got."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mlsysim.labs.blocks import Block, heading, text
from mlsysim.labs.parallelism_paradox.design import OPTIONS, best
from mlsysim.labs.parallelism_paradox.scaling import MAIL, STORY, solve
from mlsysim.labs.parallelism_paradox.tier import TIER_RULE, tier
from mlsysim.labs.words import milliseconds, percent

__all__ = ["blocks"]


def blocks(state: Mapping[str, Any]) -> list[Block]:
    """Return the end of the lab."""
    return [
        heading("end_heading", 2, "What to take along"),
        text("end_text", *_lessons()),
        text("end_tier", f"Your tier is {tier(state)}. The rule: {TIER_RULE}."),
    ]


@functools.cache
def _lessons() -> tuple[str, ...]:
    few, many = solve(MAIL.on(STORY[1])), solve(MAIL)
    wide, right = best("wide").result, best("balanced").result
    lost = (
        ""
        if wide is None or right is None
        else (f" In this lab that is an MFU of {percent(right.mfu)} against {percent(wide.mfu)}.")
    )
    option = OPTIONS["balanced"]
    return (
        "Adding GPUs to a fixed batch hardly makes the exchange of gradients longer. It takes "
        "away the arithmetic that pays for it: from "
        f"{milliseconds(few.compute_latency)} to {milliseconds(many.compute_latency)} in Act I, "
        f"for an exchange of {milliseconds(few.dp_communication_latency)} and "
        f"{milliseconds(many.dp_communication_latency)}. A larger batch, a faster network and an "
        "exchange that hides under the passes all help; none of them helps without limit.",
        "Tensor parallelism belongs inside a server, where each layer's all-reduces run over "
        f"NVLink.{lost} Between servers go the stages of a pipeline, which send little, and the "
        "gradients of the replicas, which are sent once in a step.",
        "A split has to multiply up, to fit the memory and to keep the pipeline full, all at once. "
        f"TP {option.tp} × PP {option.pp} is the best of the four answers, not of all designs: the "
        "configurator has some that do a little better. With another model, other GPUs or another "
        "batch, look again.",
    )
