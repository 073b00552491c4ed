"""The lessons of the lab."""

from __future__ import annotations

import functools

from mlsysim_course.labs.parallelism_paradox.design import OPTIONS, best
from mlsysim_course.labs.parallelism_paradox.scaling import MAIL, STORY, solve
from mlsysim_course.labs.words import milliseconds, percent

__all__ = ["lessons"]


@functools.cache
def lessons() -> tuple[str, ...]:
    """Return the paragraphs that end the lab."""
    few, many = solve(MAIL.on(STORY[1])), solve(MAIL)
    wide, right = best("wide").result, best("balanced").result
    lost = (
        ""
        if wide is None or right is None
        else (
            f" In this lab, the MFU is {percent(right.mfu)} with TP = {OPTIONS['balanced'].tp} and "
            f"{percent(wide.mfu)} with TP = {OPTIONS['wide'].tp}."
        )
    )
    option = OPTIONS["balanced"]
    return (
        "Adding GPUs to a fixed batch makes the gradient exchange only a little longer, but it "
        "shrinks the compute between exchanges. In Act I, it fell from "
        f"{milliseconds(few.compute_latency)} on {STORY[1]} GPUs to "
        f"{milliseconds(many.compute_latency)} on {STORY[2]}, while the exchange took "
        f"{milliseconds(few.dp_communication_latency)} and then "
        f"{milliseconds(many.dp_communication_latency)}. A larger batch, a faster network and "
        "overlapping the exchange with compute all help, but each has a limit.",
        "Tensor parallelism belongs inside a server, where each layer's all-reduces run over "
        f"NVLink.{lost} Between servers, use pipeline stages, which send little, and data "
        "parallelism, which sends gradients once per step.",
        "A split must use all GPUs, fit in memory and keep the pipeline full, all at once. "
        f"TP {option.tp} × PP {option.pp} is the best of the four options, but not of all designs: "
        "the configurator has a few that do slightly better. For another model, another GPU or "
        "another batch size, run the numbers again.",
    )
