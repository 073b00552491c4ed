"""Derivations as lines for a lab: each step under the name by which the step before it asks.

`result.explain` names a step by its formula. Read from the top, line by line, it helps more to see
`gradient = ...` below `step = busy + gradient`. Parts that are zero are left out, and so is a sum
of one part.
"""

from __future__ import annotations

from typing import Any

from mlsysim.core.derivation import Derivation, Step

__all__ = ["steps"]

_SUM = "time_sum"


def steps(found: Derivation) -> list[dict[str, str]]:
    """Return the steps of a derivation as texts, answers first."""
    roots = {id(node): name for name, node in found.roots.items()}
    names: dict[int, str] = {}
    visible = {id(step) for step in found.steps}
    lines = []
    for step in found.steps:
        name = names.get(id(step), roots.get(id(step), step.name))
        kept = {key: part for key, part in step.parents.items() if not _is_zero(part.value)}
        only = next(iter(kept.values()), None)
        if step.formula.name == _SUM and len(kept) == 1 and id(only) in visible:
            names.setdefault(id(only), name)
            continue
        for key, part in step.parents.items():
            names.setdefault(id(part), step.name if step.formula.name == _SUM else key)
        if _is_zero(step.value) and id(step) not in roots:
            continue
        lines.append(_line(step, name))
    return lines


def _line(step: Step, name: str) -> dict[str, str]:
    return {
        "equation_text": f"{name} = {step.equation_text}",
        "numbers_text": step.numbers_text,
        "value_text": step.value_text,
        "source": step.formula.documentation.references,
    }


def _is_zero(value: Any) -> bool:
    return bool(getattr(value, "magnitude", value) == 0)
