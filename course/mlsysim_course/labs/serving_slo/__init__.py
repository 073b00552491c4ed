"""Lab: serving under an SLO. What random traffic does to a p99, and what buys it back.

Act I raises the traffic of ten H100 GPUs until more than 1% of the requests wait for memory.
Act II compares four ways to meet the SLO, and designs a service for a stricter one.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mlsysim_course.labs.acts import ActLab
from mlsysim_course.labs.serving_slo import act_one, act_two
from mlsysim_course.labs.serving_slo.model import (
    BUDGET,
    GROWTH,
    MAIL,
    STRICT,
    accepted,
    possible,
    rent,
    solve,
    span,
)
from mlsysim_course.labs.words import dollars, percent

__all__ = ["LAB", "ledger", "restore", "view"]


@functools.cache
def _lessons() -> tuple[str, ...]:
    before, after = solve(MAIL), solve(GROWTH)
    more, narrow = solve(act_two.CHANGES["replica"]()), solve(act_two.CHANGES["fp8"]())
    return (
        f"Watch the p99, not the mean. From {percent(before.utilization, 0)} to "
        f"{percent(after.utilization, 0)} of capacity, the mean TTFT went from "
        f"{span(before.ttft_mean)} to {span(after.ttft_mean)}, and the p99 from "
        f"{span(before.ttft_p99)} to {span(after.ttft_p99)}. A p99 jumps when more than 1% of the "
        f"requests wait, here for memory: {percent(after.waiting)}.",
        f"A little more capacity fixes the p99: one more GPU for every {GROWTH.gpus} brings it "
        f"to {span(more.ttft_p99)}, and FP8 to {span(narrow.ttft_p99)} without one. Plan for a "
        "load below the cliff rather than for the capacity.",
        "Separate pools are not faster in general. They have less capacity than the same GPUs as "
        "replicas, but no prompt delays a token. So they pay off if the limit per token is strict, "
        "and replicas pay off if it is loose. Find out how strict your SLO is before you choose.",
    )


def _status(full: Mapping[str, Any], second: bool) -> dict[str, str]:
    names = ("Service", "TTFT, p99", "TPOT, p99")
    if full[act_one.PREDICTION.id] is None:
        return dict.fromkeys(names, "–")
    chosen = act_two.plan(full) if second else act_one.service(full)
    words = f"{chosen.gpus} GPUs, {chosen.rate} requests/s"
    if not possible(chosen):
        return dict(zip(names, (words, "–", "–"), strict=True))
    times = solve(chosen)
    return dict(zip(names, (words, span(times.ttft_p99), span(times.tpot_p99)), strict=True))


def _design(full: Mapping[str, Any]) -> dict[str, Any]:
    chosen = act_two.plan(full)
    return {
        "gpus": chosen.gpus,
        "prompt_gpus": chosen.prompt_gpus,
        "precision": chosen.precision,
        "token_budget": chosen.token_budget,
    }


def _result(full: Mapping[str, Any]) -> dict[str, Any]:
    chosen = act_two.plan(full)
    times = solve(chosen) if possible(chosen) else None
    stable = times is not None and times.stable
    return {
        "ttft_p99_ms": 1e3 * times.ttft_p99 if times is not None and stable else None,
        "tpot_p99_ms": 1e3 * times.tpot_p99 if times is not None and stable else None,
        "rent_usd": rent(chosen),
        "feasible": stable,
        "accepted": accepted(chosen),
    }


LAB = ActLab(
    name="serving_slo",
    title="Serving under an SLO",
    minutes=35,
    acts=(act_one.ACT, act_two.ACT),
    lessons=_lessons,
    requirements=f"keeps the p99 of TTFT within {span(STRICT.ttft)} and that of TPOT within "
    f"{span(STRICT.tpot)} for at most {dollars(BUDGET)} a month",
    design=_design,
    result=_result,
    status=_status,
)
view, ledger, restore = LAB.view, LAB.ledger, LAB.restore
