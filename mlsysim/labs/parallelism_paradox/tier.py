"""The tier that a student has reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsysim.labs.parallelism_paradox import configurator
from mlsysim.labs.parallelism_paradox.design import BUBBLE_CEILING, TARGET_MFU
from mlsysim.labs.parallelism_paradox.state import PREDICTION_1, PREDICTION_2
from mlsysim.labs.words import percent

__all__ = ["TIER_RULE", "tier"]

TIER_RULE = (
    "The tier is optimal if both predictions are right and the current design runs, keeps tensor "
    f"parallelism within a server, idles for at most {percent(BUBBLE_CEILING, 0)} of its time and "
    f"reaches an MFU of {percent(TARGET_MFU, 0)}. It is partial if at least one prediction is "
    "right or the design meets all of this, and developing otherwise."
)


def tier(full: Mapping[str, Any]) -> str:
    """Return the tier of a state, by the rule in `TIER_RULE`."""
    asked = (PREDICTION_1, PREDICTION_2)
    right = [question.verdict(full[question.id]) == "right" for question in asked]
    answered = all(full[question.id] is not None for question in asked)
    done = [*right, answered and configurator.outcome(full).accepted]
    return "optimal" if all(done) else "partial" if any(done) else "developing"
