"""Lab: checkpointing under failures. How often to save a long run, and on which storage.

Act I finds the interval between checkpoints that loses the least time on 16,384 GPUs. Act II
chooses the interval and the storage within a budget. `ReliabilitySolver` and `EconomicsSolver`
compute all numbers except the price of storage, which is part of the story.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mlsysim_course.labs.checkpointing import act_one, act_two
from mlsysim_course.labs.checkpointing.model import BUDGET, MAIL, TARGET, accepted, solve, waste
from mlsysim_course.labs.lab import Lab
from mlsysim_course.labs.words import hours, millions, minutes, percent, seconds

__all__ = ["LAB", "ledger", "restore", "view"]


@functools.cache
def _lessons() -> tuple[str, ...]:
    best, often = solve(MAIL.best), solve(act_two.CHANGES["often"]())
    faster = solve(act_two.CHANGES["storage"]())
    return (
        f"A large run fails often even though each GPU fails rarely: with {MAIL.gpus:,} GPUs that "
        f"each last {best.device_mtbf.to('year').magnitude:.1f} years, one fails every "
        f"{hours(best.fleet_mtbf)}.",
        "The best interval between checkpoints is the square root of twice the time to write one "
        f"times the time between failures, here {minutes(best.checkpoint_interval)}. The curve is "
        f"flat near it: half the interval costs only {percent(best.goodput - often.goodput)} of "
        "the time. So you do not need to know the failure rate exactly.",
        "Fast storage has diminishing returns. Twice the bandwidth cuts a checkpoint from "
        f"{seconds(best.checkpoint_time)} to {seconds(faster.checkpoint_time)} but raises goodput "
        f"only from {percent(best.goodput)} to {percent(faster.goodput)}. Fewer failures and "
        "shorter restarts are worth as much attention. Systems that write in the background while "
        "training continues lose less than this model, in which training waits.",
    )


def _status(full: Mapping[str, Any], second: bool) -> dict[str, str]:
    if full[act_one.PREDICTION.id] is None:
        return {"Interval": "–", "Goodput": "–", "Cost": "–"}
    chosen = act_two.plan(full) if second else act_one.plan(full)
    return {
        "Interval": f"{chosen.interval:g} minutes, {chosen.bandwidth:g} GB/s",
        "Goodput": percent(solve(chosen).goodput),
        "Cost": millions(waste(chosen).total) if second else "–",
    }


def _design(full: Mapping[str, Any]) -> dict[str, Any]:
    chosen = act_two.plan(full)
    return {"bandwidth_gb_per_s": chosen.bandwidth, "interval_minutes": chosen.interval}


def _result(full: Mapping[str, Any]) -> dict[str, Any]:
    chosen = act_two.plan(full)
    return {
        "goodput": solve(chosen).goodput,
        "cost_usd": waste(chosen).total,
        "feasible": solve(chosen).feasible,
        "accepted": accepted(chosen),
    }


LAB = Lab(
    name="checkpointing",
    title="Checkpointing under failures",
    minutes=30,
    acts=(act_one.ACT, act_two.ACT),
    lessons=_lessons,
    requirements=f"has a goodput of {percent(TARGET, 0)} or more and costs at most "
    f"{millions(BUDGET)} for lost time and storage together",
    design=_design,
    result=_result,
    status=_status,
)
view, ledger, restore = LAB.view, LAB.ledger, LAB.restore
