"""Lab: the parallelism paradox. Why adding GPUs lowers utilization, and how to split a model.

Act I finds out why the utilization of a data-parallel run falls as GPUs are added. Act II splits
GPT-3 across 1,024 GPUs. All numbers, including those in the emails, come from the operator-level
model of `DistributedSolver`, with constants fitted to published runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsysim.core.units import Quantity
from mlsysim.labs.parallelism_paradox import act_one, act_two, closing, configurator, explorer
from mlsysim.labs.parallelism_paradox.ledger import ledger, restore
from mlsysim.labs.parallelism_paradox.scaling import solve
from mlsysim.labs.parallelism_paradox.state import CONTROLS, PREDICTION_1, PREDICTION_2
from mlsysim.labs.parallelism_paradox.tier import tier
from mlsysim.labs.words import gigabytes, percent

__all__ = ["CONTROLS", "MINUTES", "TITLE", "change", "ledger", "restore", "view"]

TITLE = "The parallelism paradox"
MINUTES = 40


def view(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything that the lab shows for a state.

    Parameters
    ----------
    state
        What the student has set: a mapping from the name of a control to its value. ``{}`` is the
        start.

    Returns
    -------
    dict
        ``title``, ``minutes``, ``blocks`` in reading order, ``act`` (the heading where a student
        continues), ``status`` and ``ledger``, all as plain data. `mlsysim.labs.blocks` describes
        the blocks.

    Raises
    ------
    ConfigError
        If the state has an unknown key or a value out of range; the message names it.

    Examples
    --------
    >>> from mlsysim.labs.parallelism_paradox import view
    >>> [block["type"] for block in view({})["blocks"]]
    ['heading', 'message', 'text', 'question', 'locked']
    """
    full = CONTROLS.complete(state)
    blocks = act_one.blocks(full)
    if full[PREDICTION_1.id] is not None:
        blocks += act_two.blocks(full)
    if full[PREDICTION_2.id] is not None:
        blocks += closing.blocks(full)
    return {
        "title": TITLE,
        "minutes": MINUTES,
        "blocks": blocks,
        "act": "a2_heading" if _act(full) == "II" else "a1_heading",
        "status": _status(full),
        "ledger": ledger(state),
    }


def change(state: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """Return the state with one control changed.

    Parameters
    ----------
    state
        What the student has set so far.
    name, value
        The control and its new value.

    Raises
    ------
    ConfigError
        If the state or the value is out of range, or if `name` is a prediction that has already
        been answered.
    """
    return CONTROLS.change(state, name, value)


def _status(full: Mapping[str, Any]) -> list[dict[str, str]]:
    act = _act(full)
    items = {"Lab": TITLE, "Act": act, **(_second(full) if act == "II" else _first(full))}
    for number, question in (("I", PREDICTION_1), ("II", PREDICTION_2)):
        items[f"Prediction {number}"] = question.verdict(full[question.id]) or "open"
    items["Tier"] = tier(full)
    return [{"label": label, "value": value} for label, value in items.items()]


def _act(full: Mapping[str, Any]) -> str:
    return "II" if full[PREDICTION_1.id] and full[PREDICTION_2.id] else "I"


def _first(full: Mapping[str, Any]) -> dict[str, str]:
    if full[PREDICTION_1.id] is None:
        return {"Configuration": "–", "MFU": "–", "Memory": "–"}
    result = solve(explorer.run(full))
    return {
        "Configuration": f"{result.dp_size:,} GPUs, DP {result.dp_size:,}",
        "MFU": percent(result.mfu),
        "Memory": _memory(result.memory, result.fits_memory),
    }


def _second(full: Mapping[str, Any]) -> dict[str, str]:
    found = configurator.outcome(full)
    design, result = found.design, found.result
    if result is None:
        sizes = f"TP {design.tp} × PP {design.pp}: invalid"
        return {"Configuration": sizes, "MFU": "–", "Memory": "–"}
    return {
        "Configuration": f"TP {design.tp} × PP {design.pp} × DP {result.dp_size:,}",
        "MFU": percent(result.mfu) if result.feasible else "does not run",
        "Memory": _memory(result.memory, result.fits_memory),
    }


def _memory(need: Quantity, fits: bool) -> str:
    return gigabytes(need) + ("" if fits else ", too much")
