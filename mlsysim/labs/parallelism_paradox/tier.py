"""How far a student got."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsysim.labs.parallelism_paradox import configurator
from mlsysim.labs.parallelism_paradox.design import BUBBLE_CEILING, TARGET_MFU
from mlsysim.labs.parallelism_paradox.state import PREDICTION_1, PREDICTION_2
from mlsysim.labs.words import percent

__all__ = ["TIER_RULE", "tier"]

TIER_RULE = (
    "optimal: both predictions right, and the design that is set runs, keeps tensor parallelism "
    f"within a server, idles at most {percent(BUBBLE_CEILING, 0)} and reaches an MFU of "
    f"{percent(TARGET_MFU, 0)}; partial: one of these three; developing: none yet"
)


def tier(full: Mapping[str, Any]) -> str:
    """Return how far a student got, by the rule in `TIER_RULE`."""
    asked = (PREDICTION_1, PREDICTION_2)
    right = [question.verdict(full[question.id]) == "right" for question in asked]
    answered = all(full[question.id] is not None for question in asked)
    done = [*right, answered and configurator.outcome(full).accepted]
    return "optimal" if all(done) else "partial" if any(done) else "developing"
