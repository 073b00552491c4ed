"""Lab: the roofline. What limits a device, and which device is cheapest for a rate.

Act I finds the batch at which an H100 reaches its ridge. Act II rents devices that deliver a
token rate within a budget. `SingleNodeSolver` computes all times with the textbook's roofline.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlsysim_course.labs.acts import ActLab
from mlsysim_course.labs.roofline import act_one, act_two
from mlsysim_course.labs.roofline.model import (
    BUDGET,
    LONGEST_MS,
    MAIL,
    RATE,
    accepted,
    crossing,
    devices,
    dollars_per_hour,
    dollars_per_million,
    milliseconds,
    solve,
    tokens,
)
from mlsysim_course.labs.words import percent

__all__ = ["LAB", "ledger", "restore", "view"]


@functools.cache
def _lessons() -> tuple[str, ...]:
    large, narrow = replace(MAIL, batch=256), replace(MAIL, precision="int8")
    return (
        "On the slope of the roofline, more sequences are free: from a batch of "
        f"{MAIL.batch} to the ridge at {crossing(MAIL)}, a pass takes about "
        f"{milliseconds(MAIL):.1f} ms, and tokens get cheaper in proportion: from "
        f"${dollars_per_million(MAIL):.2f} to ${dollars_per_million(large):.3f} per million.",
        "Beyond the ridge, each further sequence makes every user wait longer and makes no token "
        f"cheaper. At 256 sequences, the MFU is {percent(solve(large).mfu)}, all that the model "
        "allows.",
        "Lower precision helps on both sides of the ridge but hardly moves it: it is at a batch of "
        f"{crossing(MAIL)} in 16 bits and {crossing(narrow)} in 8. Compare devices by what limits "
        "you: bandwidth per dollar on the slope, compute per dollar under the flat roof. Real "
        "servers also read a KV cache for every sequence, which grows with the conversation and "
        "keeps them on the slope for longer.",
    )


def _status(full: Mapping[str, Any], second: bool) -> dict[str, str]:
    if full[act_one.PREDICTION.id] is None:
        return {"Setup": "–", "Limit": "–", "Tokens per second": "–"}
    chosen = act_two.plan(full) if second else act_one.setup(full)
    return {
        "Setup": f"{chosen.offer.accelerator.name}, {chosen.precision}, batch {chosen.batch}",
        "Limit": solve(chosen).bottleneck,
        "Tokens per second": f"{tokens(chosen):,.0f}",
    }


def _design(full: Mapping[str, Any]) -> dict[str, Any]:
    chosen = act_two.plan(full)
    return {"device": chosen.device, "precision": chosen.precision, "batch": chosen.batch}


def _result(full: Mapping[str, Any]) -> dict[str, Any]:
    chosen = act_two.plan(full)
    return {
        "tokens_per_second": tokens(chosen),
        "token_ms": milliseconds(chosen),
        "devices": devices(chosen),
        "usd_per_hour": dollars_per_hour(chosen),
        "feasible": solve(chosen).feasible,
        "accepted": accepted(chosen),
    }


LAB = ActLab(
    name="roofline",
    title="Roofline",
    minutes=30,
    acts=(act_one.ACT, act_two.ACT),
    lessons=_lessons,
    requirements=f"gives {RATE:,} tokens per second with at most {LONGEST_MS} ms between two "
    f"tokens of a user, for at most ${BUDGET:g} per hour",
    design=_design,
    result=_result,
    status=_status,
)
view, ledger, restore = LAB.view, LAB.ledger, LAB.restore
