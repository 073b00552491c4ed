"""The parts of an explorer: controls, and a function from their values to an answer.

An answer holds readings, charts and a sentence. `view` turns one into plain data for a page to
draw. Each reading keeps the derivation of its number, which `derivation` opens.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from mlsysim.core.derivation import Derivation, Input, Step, value_text
from mlsysim.core.errors import ConfigError
from mlsysim.core.errors import shown as printed
from mlsysim.core.recording import Recorded, watching
from mlsysim.core.units import Q_, Quantity, is_quantity
from mlsysim_course.controls import Controls, Setting


@dataclass(frozen=True)
class Reading:
    """One number of an answer.

    Attributes
    ----------
    label : str
        What it is.
    value : float
        The number in `unit`; it must be finite.
    unit : str
        The unit as a reader sees it, or an empty text.
    derive : Callable
        Returns its derivation.
    measured : str
        The unit of the package's number; empty for a plain number.
    scale : float
        Factor of the displayed number, such as 100 for a share in percent.
    tone : str
        ``"good"``, ``"warn"`` or ``"bad"`` for a number that meets or misses a goal.
    hint : str
        A few words to compare the number with, such as a limit.
    """

    label: str
    value: float
    unit: str
    derive: Callable[[], Derivation]
    measured: str = ""
    scale: float = 1
    tone: str = "plain"
    hint: str = ""

    @property
    def text(self) -> str:
        """The number with three significant digits, and its unit."""
        if self.unit.startswith("$"):
            return f"${figure(self.value)}{self.unit[1:]}"
        if self.unit == "%" and 0 < self.value < 1e-4:
            return "below 0.0001%"
        return f"{figure(self.value)} {self.unit}".rstrip().replace(" %", "%")

    def judged(self, tone: str = "plain", hint: str = "") -> Reading:
        """Return the same reading with a tone and a hint."""
        return replace(self, tone=tone, hint=hint)


@dataclass(frozen=True)
class Alert:
    """A state that fails or succeeds: its name, tone (as of a reading), title and a sentence."""

    name: str
    tone: str
    title: str
    text: str


@dataclass(frozen=True)
class Answer:
    """What an explorer shows for one setting.

    Attributes
    ----------
    sentence : str
        The result in words, which is also the text alternative of the charts.
    readings : tuple of Reading
        Its numbers.
    charts : tuple of dict
        What to draw, as `charts` describes.
    tone : str
        ``"good"``, ``"bad"`` for a setting that cannot run, or ``"plain"``.
    alerts : tuple of Alert
        What is wrong with the setting, or that it meets all requirements.
    unused : tuple of str
        Controls that have no effect in this setting.
    """

    sentence: str
    readings: tuple[Reading, ...]
    charts: tuple[dict[str, Any], ...] = ()
    tone: str = "plain"
    alerts: tuple[Alert, ...] = ()
    unused: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explorer:
    """One figure that a reader can change.

    Attributes
    ----------
    name : str
        Its name in pages and addresses.
    title : str
        What it explores.
    job : str
        What is solved besides the controls: every fixed input that changes the numbers.
    controls : tuple of Selector, Slider or Paste
        What a reader can set.
    answer : Callable
        Computes the answer from the value of every control.
    """

    name: str
    title: str
    job: str
    controls: tuple[Setting, ...]
    answer: Callable[[Mapping[str, Any]], Answer] = field(repr=False)

    def solve(self, state: Mapping[str, Any]) -> Answer:
        """Answer for a setting; controls that it does not name have their first value.

        Raises
        ------
        ConfigError
            If the setting has an unknown name or value, or if the package refuses it.
        """
        return self.answer(Controls(self.controls).complete(state))

    def view(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer for a setting as plain data.

        Examples
        --------
        >>> from mlsysim_course.explorers import EXPLORERS
        >>> [item["text"] for item in EXPLORERS["kv-wall"].view({"context": 2048})["readings"]]
        ['238', '0.268 GB', '16.1 GB']
        """
        answer = self.solve(state)
        return {
            "sentence": answer.sentence,
            "tone": answer.tone,
            "readings": [
                {
                    "label": item.label,
                    "text": item.text,
                    "value": item.value,
                    "tone": item.tone,
                    "hint": item.hint,
                }
                for item in answer.readings
            ],
            "charts": list(answer.charts),
            "alerts": [asdict(alert) for alert in answer.alerts],
            "unused": list(answer.unused),
        }

    def derivation(self, state: Mapping[str, Any], index: int) -> dict[str, Any]:
        """Return how one reading is computed, step by step, with the sources of its inputs.

        Raises
        ------
        ConfigError
            If there is no reading of that index.
        """
        readings = self.solve(state).readings
        if type(index) is not int or not 0 <= index < len(readings):
            raise ConfigError(
                f"index = {printed(index)} is not one of the numbers of {self.name}: give 0 to "
                f"{len(readings) - 1}",
                argument="index",
            )
        derived = readings[index].derive()
        names: dict[int, str] = {}
        for step in derived.steps:
            for parent, part in step.parents.items():
                names.setdefault(id(part), parent)
        return {
            "label": readings[index].label,
            "steps": [_step(step, names.get(id(step), step.name)) for step in derived.steps],
            "inputs": [_input(item) for item in derived.inputs],
        }

    def declaration(self) -> dict[str, Any]:
        """Return the title, the job and the controls as plain data, for a form."""
        return {
            "title": self.title,
            "job": self.job,
            "controls": [item.declaration() for item in self.controls],
        }


_ADDRESS = re.compile(r"https?://[^\s,;]+[^\s,;.]")


def _step(step: Step, name: str) -> dict[str, Any]:
    cited = step.formula.plain_references if step.formula else ""
    return {
        "name": name,
        "value": step.value_text,
        "meaning": step.summary,
        "equation": step.equation_text,
        "numbers": step.numbers_text,
        "omitted": step.omission,
        "source": cited,
        "addresses": _ADDRESS.findall(cited),
    }


def _input(item: Input) -> dict[str, Any]:
    source = item.source
    return {
        "name": item.label,
        "value": value_text(item),
        "estimated": item.estimated,
        "from": item.origin,
        "source": str(source or ""),
        "address": source.url if source else "",
    }


def figure(value: float) -> str:
    """Format a number with three significant digits, without an exponent below 10^15."""
    if value == 0:
        return "0"
    if abs(value) >= 1e15 or abs(value) < 1e-4:
        return f"{value:.2e}"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def amount(quantity: Any, unit: str = "") -> float:
    """Return a quantity as a number in a unit."""
    if is_quantity(quantity):
        return float(quantity.to(unit).magnitude)
    return float(quantity)


def read(
    label: str, result: Any, name: str, unit: str = "", *, shown: str = "", scale: float = 1
) -> Reading:
    """Read one field of a solver's result, with its derivation.

    Parameters
    ----------
    label
        What it is.
    result
        Answer of a solver.
    name
        The field.
    unit
        Unit of the number; empty for a plain number.
    shown
        The unit as a reader sees it, if that is another word.
    scale
        Factor of a plain number, such as 100 for a share in percent.
    """
    value = amount(getattr(result, name), unit)
    derive = partial(result.explain, name)
    return Reading(label, value * scale, shown or unit, derive, unit, scale)


def by_formula(
    label: str,
    formula: Callable[..., Any],
    unit: str,
    given: Mapping[str, Any],
    *,
    shown: str = "",
    scale: float = 1,
) -> Reading:
    """Read what a formula returns for inputs, with its derivation.

    Parameters
    ----------
    label
        What it is.
    formula
        One of the package's formulas, or a function of an explorer that uses them.
    unit
        Unit of the number.
    given
        Its arguments by name: quantities, numbers, or `Input` with a source.
    shown
        What a reader sees as the unit, where that is another word.
    scale
        Factor of a plain number; 100 shows a share in percent.
    """
    inputs = {
        name: value if isinstance(value, Input) else Input(name, _quantity(value), "", name)
        for name, value in given.items()
    }
    value = formula(**{name: item.value for name, item in inputs.items()})
    derive = partial(_recorded, formula, inputs)
    seen = shown or ("%" if scale == 100 else unit)
    return Reading(label, amount(value, unit) * scale, seen, derive, unit, scale)


def _quantity(value: Any) -> Quantity:
    return value if is_quantity(value) else Q_(float(value), "")


def _recorded(formula: Callable[..., Any], inputs: Mapping[str, Input]) -> Derivation:
    numbers = {name: Recorded(item.value, origin=item) for name, item in inputs.items()}
    name = getattr(formula, "func", formula).__name__.strip("_")
    with watching("mlsysim_course.explorers"):
        found = {name: formula(**numbers)}
    return Derivation(found)


def options(rows: Any, names: Iterable[str]) -> dict[str, str]:
    """Return the names of catalog entries, and the label of each."""
    return {name: getattr(rows, name).name for name in names}
