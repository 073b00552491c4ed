"""The design ledger: what a student predicted, designed and got, as a record to keep."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.labs.parallelism_paradox import configurator
from mlsysim.labs.parallelism_paradox.state import (
    CONTROLS,
    PREDICTION_1,
    PREDICTION_2,
    REFLECTION_1,
    REFLECTION_2,
)
from mlsysim.labs.parallelism_paradox.tier import TIER_RULE, tier

__all__ = ["LAB", "ledger", "restore"]

LAB = "parallelism_paradox"
FORMAT = 1
MAX_CHARACTERS = 64 * 1024
MAX_DEPTH = 20


def ledger(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a state.

    Parameters
    ----------
    state
        What the student did: a control's value by the control's name.

    Returns
    -------
    dict
        Predictions and reflections with their verdicts, the design, its result, the tier and its
        rule, the package's version, and the state itself, from which `restore` continues.

    Raises
    ------
    ConfigError
        If the state has an unknown key, or a value out of range.
    """
    from mlsysim import __version__

    full = CONTROLS.complete(state)
    found = configurator.outcome(full)
    result = found.result
    shown = full[PREDICTION_1.id] is not None and full[PREDICTION_2.id] is not None
    return {
        "lab": LAB,
        "format": FORMAT,
        "version": __version__,
        "state": CONTROLS.check(state),
        "predictions": {
            question.id: _answer(question, full) for question in (PREDICTION_1, PREDICTION_2)
        },
        "reflections": {
            question.id: _answer(question, full) for question in (REFLECTION_1, REFLECTION_2)
        },
        "design": {
            "tp": found.design.tp,
            "pp": found.design.pp,
            "dp": None if result is None else result.dp_size,
            "microbatches": found.design.microbatches,
            "zero": int(found.design.sharded),
        }
        if shown
        else None,
        "result": {
            "mfu": None if result is None else result.mfu,
            "memory_gb": None if result is None else result.memory.to("GB").magnitude,
            "bubble": None if result is None else result.bubble_fraction,
            "feasible": result is not None and result.feasible,
            "failures": list(found.failures),
            "accepted": found.accepted,
        }
        if shown
        else None,
        "tier": tier(full),
        "tier_rule": TIER_RULE,
    }


def _answer(question: Any, full: Mapping[str, Any]) -> dict[str, str | None]:
    answer = full[question.id]
    return {"answer": answer, "verdict": question.verdict(answer)}


def restore(text: str) -> dict[str, Any]:
    """Return the state that a saved ledger holds.

    Verdicts, results and the tier in the text are ignored, because they follow from the state.

    Parameters
    ----------
    text
        A ledger as JSON.

    Raises
    ------
    ConfigError
        If the text is not JSON, not a ledger of this lab, of another format, or holds an impossible
        state.
    """
    try:
        _check_size(text)
        found = json.loads(text)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"the ledger is damaged: it is not JSON ({error}). Use another copy, or start again",
            argument="text",
        ) from error
    if not isinstance(found, dict) or found.get("lab") != LAB:
        raise ConfigError(
            f"this is not a ledger of the lab {LAB}: use the file that the lab wrote",
            argument="text",
        )
    if found.get("format") != FORMAT:
        raise ConfigError(
            f"format = {shown(found.get('format'))} of the ledger is not {FORMAT}, which mlsysim "
            "reads: open it with the version that wrote it, or start again",
            argument="format",
        )
    if "state" not in found:
        raise ConfigError(
            "the ledger is damaged: it holds no state. Use another copy, or start again",
            argument="state",
        )
    state = CONTROLS.check(found["state"])
    if state.get(PREDICTION_1.id) is None and state.get(PREDICTION_2.id) is not None:
        raise ConfigError(
            f"the ledger is damaged: it answers {PREDICTION_2.id} before {PREDICTION_1.id}. Take "
            "another copy, or start again",
            argument=PREDICTION_2.id,
        )
    return state


def _check_size(text: str) -> None:
    """Refuse text that cannot be a ledger, before the JSON reader runs out of stack."""
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"longer than {MAX_CHARACTERS:,} characters")
    steps = ((char in "[{") - (char in "]}") for char in text)
    if max(accumulate(steps, initial=0)) > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
