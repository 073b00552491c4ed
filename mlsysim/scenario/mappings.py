"""Mappings in a document, for readers that stop at the first fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlsysim.core.errors import ConfigError
from mlsysim.core.units import Quantity, read_amount
from mlsysim.scenario.files import Document, KeyPath, kind_of

__all__ = ["Part"]


class Part:
    """A mapping in a document, and its location. Anything unexpected is an error."""

    def __init__(self, document: Document, path: KeyPath, data: Any) -> None:
        self._document, self._path = document, path
        if not isinstance(data, Mapping):
            raise self._refusal(path, f"is {kind_of(data)}: write keys and values")
        self.data = data

    @property
    def name(self) -> str:
        """The last key of its path."""
        return str(self._path[-1])

    def only(self, *keys: str, optional: Sequence[str] = ()) -> None:
        """Reject unknown or missing keys."""
        known = (*keys, *optional)
        for key in self.data:
            if key not in known:
                raise self.refusal(key, f"unknown key; known: {', '.join(known)}")
        for key in keys:
            self._value(key)

    def has(self, key: str) -> bool:
        """Return whether a key has a value."""
        return self._value(key) is not None

    def part(self, key: str) -> Part:
        """Return the mapping below a key."""
        return Part(self._document, (*self._path, key), self._value(key))

    def parts(self, key: str | None = None) -> list[Part]:
        """Return the mappings in the list below a key; without one, those below all keys."""
        if key is None:
            return [self.part(each) for each in self.data]
        path, items = (*self._path, key), self._items(key)
        return [Part(self._document, (*path, place), each) for place, each in enumerate(items)]

    def texts(self, key: str) -> list[str]:
        """Return the texts in the list below a key."""
        return [str(each) for each in self._items(key)]

    def text(self, key: str) -> str:
        """Return the text below a key."""
        value = self._value(key)
        if not isinstance(value, str):
            raise self.refusal(key, f"is {kind_of(value)}: write text")
        return value

    def number(self, key: str) -> float:
        """Return the number below a key."""
        value = self._value(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refusal(key, f"is {kind_of(value)}: write a number")
        return float(value)

    def numbers(self, *keys: str) -> dict[str, float]:
        """Return the numbers below several keys."""
        return {key: self.number(key) for key in keys}

    def amount(self, key: str, unit: str) -> Quantity:
        """Return the quantity below a key."""
        text = self.text(key)
        try:
            amount: Quantity = read_amount(text, unit, key)
        except ConfigError as fault:
            raise self.refusal(key, fault.message) from None
        return amount

    def _items(self, key: str) -> list[Any]:
        value = self._value(key)
        if not isinstance(value, list):
            raise self.refusal(key, f"is {kind_of(value)}: write a list")
        return value

    def _value(self, key: str) -> Any:
        if key not in self.data:
            raise self.refusal(key, "is missing")
        return self.data[key]

    def refusal(self, key: str, message: str) -> ConfigError:
        """Compose the error for the value of a key."""
        return self._refusal((*self._path, key), message)

    def _refusal(self, path: KeyPath, message: str) -> ConfigError:
        return self._document.stop(message, self._document.line_of(path), path)
