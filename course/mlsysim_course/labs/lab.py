"""A lab: its questions, its instruments and its ledger. Its story is a page in `docs/labs`.

The page asks a prediction in each of two acts. A prediction locks, and then instruments, which are
explorers, and a reflection follow. The second act requires a design, which the ledger records with
its results.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar

from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim_course.controls import Choice, Controls, Estimate
from mlsysim_course.explorers.declare import Answer, Explorer

MAX_CHARACTERS = 64 * 1024
MAX_DEPTH = 20
SHOWN = 3
"""Readings of an instrument that the status bar repeats."""

State = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Lab:
    """What a lab asks, computes and saves. Its words are in its page.

    Attributes
    ----------
    name : str
        Its module in `mlsysim_course.labs`.
    title : str
        Its title, as a student sees it.
    minutes : int
        How long it takes.
    questions : tuple of Choice or Estimate
        The questions of the page, in order. Those that lock are the predictions.
    explorers : tuple of Explorer
        The instruments of the page, one in each act. No two of their controls have the same name.
    requirements : str
        The requirements on the design, which is the setting of the last instrument, as the end of a
        sentence that begins with "the current design". The instrument tells by an alert with the
        name ``"accepted"`` that the setting meets them.
    """

    name: str
    title: str
    minutes: int
    questions: tuple[Choice | Estimate, ...]
    explorers: tuple[Explorer, ...]
    requirements: str

    format: ClassVar[int] = 3
    """Version of its ledger; another one cannot be restored."""

    @cached_property
    def controls(self) -> Controls:
        """Everything that a student can set: answers and the controls of the instruments."""
        settings = (control for one in self.explorers for control in one.controls)
        return Controls((*self.questions, *settings))

    @property
    def predictions(self) -> tuple[Choice | Estimate, ...]:
        """The questions before the instruments, in order."""
        return tuple(asked for asked in self.questions if asked.locks)

    @property
    def reflections(self) -> tuple[Choice | Estimate, ...]:
        """The questions after the instruments, in order."""
        return tuple(asked for asked in self.questions if not asked.locks)

    @property
    def tier_rule(self) -> str:
        """The rule that determines the tier, in words."""
        return (
            "The tier is optimal if both predictions are right and the current design "
            f"{self.requirements}. It is partial if at least one prediction is right or the design "
            "meets all of these requirements, and developing otherwise."
        )

    def explorer(self, name: str) -> Explorer:
        """Return the instrument of that name.

        Raises
        ------
        UnknownEntryError
            If the lab has no such instrument.
        """
        by_name = {one.name: one for one in self.explorers}
        if name not in by_name:
            raise UnknownEntryError.build(name, "explorer", by_name)
        return by_name[name]

    def declaration(self) -> dict[str, Any]:
        """Return the title and the questions as plain data, for the page's forms."""
        questions = {asked.id: asked.declaration() for asked in self.questions}
        return {"title": self.title, "questions": questions}

    def view(self, state: State) -> dict[str, Any]:
        """Return the verdicts, the status bar and the ledger for a state.

        Parameters
        ----------
        state
            What the student has set: a mapping from the name of a control to its value. ``{}`` is
            the start.

        Returns
        -------
        dict
            ``questions``, ``status`` and ``ledger``, all as plain data. A question has its
            ``answer`` and ``verdict``; ``right``, the name of the right option, once it is locked;
            and ``reply``, a sentence about the answer.

        Raises
        ------
        ConfigError
            If the state has an unknown key or a value that is out of range; the message names it.

        Examples
        --------
        >>> from mlsysim_course.labs.catalog import find
        >>> shown = find("checkpointing").view({"act2_prediction": "storage"})
        >>> shown["questions"]["act2_prediction"]["verdict"]
        'wrong'
        """
        full = self.controls.complete(state)
        ledger = self.ledger(state)
        return {
            "questions": {asked.id: asked.judged(full[asked.id]) for asked in self.questions},
            "status": self.status_bar(full, ledger["tier"]),
            "ledger": ledger,
        }

    def ledger(self, state: State) -> dict[str, Any]:
        """Return the record of a state.

        Parameters
        ----------
        state
            What the student did: a control's value by the control's name.

        Returns
        -------
        dict
            Predictions and reflections with their verdicts, the design, its result, the tier and
            its rule, the package's version, and the state itself, from which `restore` continues.

        Raises
        ------
        ConfigError
            If the state has an unknown key, or a value out of range.
        """
        from mlsysim import __version__

        full = self.controls.complete(state)
        open_ = self.finished(full)
        result = self.result(full) if open_ else None
        return {
            "lab": self.name,
            "format": self.format,
            "version": __version__,
            "state": self.controls.check(state),
            "predictions": _verdicts(self.predictions, full),
            "reflections": _verdicts(self.reflections, full),
            "design": _setting(self.explorers[-1], full) if open_ else None,
            "result": result,
            "tier": self.tier(full, result),
            "tier_rule": self.tier_rule,
        }

    def restore(self, text: str) -> dict[str, Any]:
        """Return the state that a saved ledger holds.

        Verdicts, results and the tier in the text are ignored, because they follow from the state.

        Parameters
        ----------
        text
            A ledger as JSON.

        Raises
        ------
        ConfigError
            If the text is not JSON, is not a ledger of this lab, has another format, or contains an
            impossible state.
        """
        return self.admit(read_ledger(text))

    def admit(self, ledger: Any) -> dict[str, Any]:
        """Return the state in a ledger that `read_ledger` returned.

        Raises
        ------
        ConfigError
            If it is not a ledger of this lab, has another format, or contains an impossible state.
        """
        if not isinstance(ledger, dict) or ledger.get("lab") != self.name:
            raise ConfigError(
                f"this is not a ledger of the lab {self.name}: use the file that the lab wrote",
                argument="text",
            )
        if ledger.get("format") != self.format:
            raise ConfigError(
                f"format = {shown(ledger.get('format'))} of the ledger is not {self.format}, which "
                "mlsysim reads: open it with the version that wrote it, or start again",
                argument="format",
            )
        if "state" not in ledger:
            raise ConfigError(
                "the ledger is damaged: it contains no state. Use another copy, or start again",
                argument="state",
            )
        state = self.controls.check(ledger["state"])
        first, second = (asked.id for asked in self.predictions)
        if state.get(first) is None and state.get(second) is not None:
            raise ConfigError(
                f"the ledger is damaged: it answers {second} before {first}. Use another copy, "
                "or start again",
                argument=second,
            )
        return state

    def finished(self, full: State) -> bool:
        """Return whether all predictions have been made."""
        return all(full[asked.id] is not None for asked in self.predictions)

    def result(self, full: State) -> dict[str, Any]:
        """Return what the last instrument reads for the design, and whether it is accepted."""
        try:
            answer = _answer(self.explorers[-1], full)
        except ConfigError as error:
            return {"accepted": False, "refused": error.message, "readings": {}}
        return {
            "accepted": any(alert.name == "accepted" for alert in answer.alerts),
            "refused": "",
            "readings": {item.label: item.value for item in answer.readings},
        }

    def tier(self, full: State, result: Mapping[str, Any] | None) -> str:
        """Return ``"optimal"``, ``"partial"`` or ``"developing"``, by `tier_rule`."""
        right = [asked.verdict(full[asked.id]) == "right" for asked in self.predictions]
        done = [*right, result is not None and result["accepted"]]
        return "optimal" if all(done) else "partial" if any(done) else "developing"

    def status_bar(self, full: State, tier: str) -> list[dict[str, str]]:
        """Return the items of the status bar, each a label and a value."""
        second = self.finished(full)
        items = {"Lab": self.title, "Act": "II" if second else "I"}
        if full[self.predictions[0].id] is not None:
            items |= _first_readings(self.explorers[second], full)
        for number, asked in zip(("I", "II"), self.predictions, strict=True):
            items[f"Prediction {number}"] = asked.verdict(full[asked.id]) or "open"
        items["Tier"] = tier
        return [{"label": label, "value": value} for label, value in items.items()]


def _verdicts(questions: Iterable[Choice | Estimate], full: State) -> dict[str, Any]:
    answers = {asked: full[asked.id] for asked in questions}
    return {
        asked.id: {"answer": answer, "verdict": asked.verdict(answer)}
        for asked, answer in answers.items()
    }


def _setting(explorer: Explorer, full: State) -> dict[str, Any]:
    return {control.id: full[control.id] for control in explorer.controls}


def _answer(explorer: Explorer, full: State) -> Answer:
    return explorer.solve(_setting(explorer, full))


def _first_readings(explorer: Explorer, full: State) -> dict[str, str]:
    try:
        answer = _answer(explorer, full)
    except ConfigError:
        return {"Setting": "impossible"}
    return {item.label: item.text for item in answer.readings[:SHOWN]}


def read_ledger(text: str) -> Any:
    """Read the JSON of a ledger.

    Parameters
    ----------
    text
        A ledger as JSON.

    Raises
    ------
    ConfigError
        If the text is not JSON, or is too long or too deep to be a ledger.
    """
    try:
        _check_size(text)
        return json.loads(text)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"the ledger is damaged: it is not JSON ({error}). Use another copy, or start again",
            argument="text",
        ) from error


def _check_size(text: str) -> None:
    """Reject text that cannot be a ledger, before the JSON reader runs out of stack."""
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"longer than {MAX_CHARACTERS:,} characters")
    steps = ((char in "[{") - (char in "]}") for char in text)
    if max(accumulate(steps, initial=0)) > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
