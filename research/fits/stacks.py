"""Measured runs as arrays of a model's inputs, for fitting constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.fields import Record
from mlsysim.core.forms import contents, mapped, structure
from mlsysim.core.inputs import Inputs

I = TypeVar("I", bound=Inputs)  # noqa: E741 - models call their inputs `i`
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Stack(Generic[I]):
    """Inputs of runs, those of one structure together, each with the places of its runs."""

    parts: tuple[tuple[NDArray[np.intp], I], ...]
    size: int

    @staticmethod
    def of(inputs: Sequence[I]) -> Stack[I]:
        """Stack admitted inputs."""
        forms = [each.plain() for each in inputs]
        kinds: dict[Any, list[int]] = {}
        for place, form in enumerate(forms):
            kinds.setdefault(structure(form), []).append(place)
        parts = [
            (np.array(places), type(forms[0]).stacked([forms[p] for p in places], np.array))
            for places in kinds.values()
        ]
        return Stack(tuple(parts), len(forms))

    def take(self, mask: NDArray[np.bool_]) -> Stack[I]:
        """Return some of the runs."""
        moved = np.cumsum(mask) - 1
        parts = []
        for places, form in self.parts:
            own = mask[places]
            if own.any():
                parts.append((moved[places[own]], mapped(form, partial(_taken, own))))
        return Stack(tuple(parts), int(mask.sum()))

    def run(
        self, model: Callable[[I], Mapping[str, Any]], change: Callable[[I, Any], I]
    ) -> dict[str, Floats]:
        """Run a model on all runs, whose inputs are changed first; `change` gets their places."""
        found: dict[str, Floats] = {}
        for places, form in self.parts:
            for name, value in model(change(form, places)).items():
                if np.asarray(value).dtype.kind in "fiu":
                    found.setdefault(name, np.full(self.size, np.nan))[places] = value
        return found

    def plans(self) -> NDArray[np.intp]:
        """Return a number for each run, the same for runs of one configuration."""
        keys: list[Any] = [None] * self.size
        for part, (places, form) in enumerate(self.parts):
            table = [np.broadcast_to(value, len(places)) for value in _numbers(form)]
            for row, place in enumerate(places):
                keys[place] = (part, *(float(np.nan_to_num(column[row])) for column in table))
        known: dict[Any, int] = {}
        return np.array([known.setdefault(key, len(known)) for key in keys])


@dataclass(frozen=True)
class MeasuredRuns(Generic[I]):
    """Inputs of measured runs; other fields that are arrays have a value for each run."""

    inputs: Stack[I]

    def take(self, mask: NDArray[np.bool_]) -> Self:
        """Return some of the runs."""
        columns = {name: _taken(mask, column) for name, column in vars(self).items()}
        return replace(self, **columns | {"inputs": self.inputs.take(mask)})


def _taken(rows: NDArray[np.bool_], value: Any) -> Any:
    return value[rows] if isinstance(value, np.ndarray) else value


def _numbers(form: Any) -> list[Any]:
    found: list[Any] = []
    for _, value in contents(form):
        if isinstance(value, Record):
            found += _numbers(value)
        elif isinstance(value, float | np.ndarray):
            found.append(value)
    return found
