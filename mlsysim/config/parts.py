"""Parts shared by the sections of a configuration: keys, names, amounts and limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from mlsysim.config.document import Document
from mlsysim.config.faults import KeyPath
from mlsysim.core.errors import ConfigError
from mlsysim.scenario.amounts import read_amount
from mlsysim.scenario.limits import Limit
from mlsysim.scenario.names import find_entry

__all__ = ["BOUNDS", "Parts", "kind_of"]

BOUNDS = ("at_most", "at_least")


def kind_of(value: Any) -> str:
    """Describe the type of a value, for a message."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {value[:60]!r}"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    return "a list" if isinstance(value, list) else "a group of keys"


class Parts:
    """Reads parts of a document and records their faults."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def section(
        self, path: KeyPath, data: Any, keys: Iterable[str], required: Iterable[str] = ()
    ) -> Mapping[str, Any] | None:
        """Check that a value is a mapping with only known keys and all required ones."""
        known = tuple(keys)
        if not isinstance(data, Mapping):
            shown = "is empty" if data is None else f"is {kind_of(data)}"
            self._document.fault(path, f"{shown}: write keys and values: {', '.join(known)}")
            return None
        for key in data:
            if key not in known:
                near = get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(known)}"
                self._document.fault((*path, key), f"unknown key; {hint}")
        for key in required:
            if key not in data:
                self._document.fault((*path, key), "is missing", self._document.line_of(path))
        return data

    def entry(self, path: KeyPath, value: Any, kinds: tuple[type, ...], label: str) -> Any:
        """Look up a registry row by name."""
        if not isinstance(value, str):
            self._document.fault(path, f"is {kind_of(value)}: write the name of a {label}")
            return None
        try:
            return find_entry(value, kinds, label)
        except ConfigError as fault:
            self._document.fault(path, str(fault))
            return None

    def limits(self, path: KeyPath, data: Any, metrics: Mapping[str, str]) -> tuple[Limit, ...]:
        """Read limits on any of `metrics`, which are given with their units."""
        if self.section(path, data, metrics) is None:
            return ()
        found = (
            self._limit((*path, metric), metric, bounds, metrics[metric])
            for metric, bounds in data.items()
            if metric in metrics
        )
        return tuple(limit for limit in found if limit is not None)

    def _limit(self, path: KeyPath, metric: str, data: Any, unit: str) -> Limit | None:
        bounds = self.section(path, data, BOUNDS)
        if bounds is None:
            return None
        if not any(name in bounds for name in BOUNDS):
            self._document.fault(path, "has no bound: give at_most or at_least")
            return None
        amounts = {
            name: self.amount((*path, name), bounds[name], unit)
            for name in BOUNDS
            if name in bounds
        }
        if any(amount is None for amount in amounts.values()):
            return None
        try:
            return Limit(metric=metric, **amounts)
        except ConfigError as fault:
            self._document.fault(path, str(fault))
            return None

    def amount(self, path: KeyPath, value: Any, unit: str) -> Any:
        """Read a bound or a price: text with a unit, or a plain number if there is no unit."""
        name = str(path[-1])
        try:
            if isinstance(value, str):
                amount = read_amount(value, unit, name)
                return amount if unit else amount.to("").magnitude
            if type(value) in (int, float) and not unit:
                return value
        except ConfigError as fault:
            self._document.fault(path, str(fault))
            return None
        wanted = f'write a number and a unit, as in "5 {unit}"' if unit else "write a number"
        self._document.fault(path, f"is {kind_of(value)}: {wanted}")
        return None
