"""A lab, declared once: two acts with their questions and instruments, and its ledger.

An act opens with a story and a prediction. The prediction locks, and then the instruments and a
reflection follow. The second act requires a design, which the ledger records with its results. A
`Lab` builds the view and the ledger from these declarations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim_course.controls import Control, Controls, Estimate, Question
from mlsysim_course.labs.blocks import Block, estimate, heading, locked, question, text

__all__ = ["Act", "Lab", "read_ledger"]

FORMAT = 1
MAX_CHARACTERS = 64 * 1024
MAX_DEPTH = 20

State = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Act:
    """One act of a lab.

    Attributes
    ----------
    id : str
        The prefix of the names of its blocks, such as ``"a1"``.
    title : str
        Its heading.
    opening : Callable
        Returns the story and the facts that a student needs for the prediction.
    prediction : Question or Estimate
        The question before the instruments are shown.
    explain : Callable
        Returns the explanation of an answer to the prediction.
    controls : tuple of Control
        The controls of the instruments.
    instruments : Callable
        Returns the controls and their results for the values of all controls.
    reflection : Question
        The question after the instruments.
    reflect : Callable
        Returns the explanation of an answer to the reflection.
    """

    id: str
    title: str
    opening: Callable[[], list[Block]]
    prediction: Question | Estimate
    explain: Callable[[Any], str]
    controls: tuple[Control, ...]
    instruments: Callable[[State], list[Block]]
    reflection: Question
    reflect: Callable[[str], str]

    def blocks(self, full: State) -> list[Block]:
        """Return what the act shows for the values of all controls."""
        answer = full[self.prediction.id]
        found = [heading(f"{self.id}_heading", 2, self.title), *self.opening()]
        if isinstance(self.prediction, Estimate):
            found.append(estimate(self.prediction, answer, self.explain))
        else:
            found.append(question(self.prediction, answer, self.explain))
        if answer is None:
            words = "Answer the question to unlock the instruments."
            return [*found, locked(f"{self.id}_locked", words)]
        reflection = question(self.reflection, full[self.reflection.id], self.reflect)
        return [*found, *self.instruments(full), reflection]


@dataclass(frozen=True, kw_only=True)
class Lab:
    """A lab of two acts.

    Attributes
    ----------
    name : str
        Its module in `mlsysim_course`.
    title : str
        Its title, as a student sees it.
    minutes : int
        How long it takes.
    acts : tuple of Act
        The acts, in order.
    lessons : Callable
        Returns the paragraphs that end the lab.
    requirements : str
        The requirements on the design of the last act, as the end of a sentence that begins with
        "the current design".
    design : Callable
        Returns the design of the last act as plain data, from the values of all controls.
    result : Callable
        Returns its results as plain data; ``accepted`` says whether it meets the requirements.
    status : Callable
        Returns readings for the status bar, from the values of all controls and whether the last
        act has begun.
    """

    name: str
    title: str
    minutes: int
    acts: tuple[Act, Act]
    lessons: Callable[[], Sequence[str]]
    requirements: str
    design: Callable[[State], dict[str, Any]]
    result: Callable[[State], dict[str, Any]]
    status: Callable[[State, bool], dict[str, str]]

    @cached_property
    def controls(self) -> Controls:
        """Everything that a student can set, in the order of the acts."""
        return Controls(
            control
            for act in self.acts
            for control in (act.prediction, *act.controls, act.reflection)
        )

    @property
    def tier_rule(self) -> str:
        """The rule that determines the tier, in words."""
        return (
            "The tier is optimal if both predictions are right and the current design "
            f"{self.requirements}. It is partial if at least one prediction is right or the design "
            "meets all of these requirements, and developing otherwise."
        )

    def view(self, state: State) -> dict[str, Any]:
        """Return everything that the lab displays for a state.

        Parameters
        ----------
        state
            What the student has set: a mapping from the name of a control to its value. ``{}`` is
            the start.

        Returns
        -------
        dict
            ``title``, ``minutes``, ``blocks`` in reading order, ``act`` (the heading where a
            student continues), ``status`` and ``ledger``, all as plain data.
            `mlsysim_course.labs.blocks` describes the blocks.

        Raises
        ------
        ConfigError
            If the state has an unknown key or a value that is out of range; the message names it.

        Examples
        --------
        >>> from mlsysim_course.labs.parallelism_paradox import view
        >>> [block["type"] for block in view({})["blocks"]]
        ['heading', 'message', 'text', 'question', 'locked']
        """
        full = self.controls.complete(state)
        blocks: list[Block] = []
        for act in self.acts:
            blocks += act.blocks(full)
            if full[act.prediction.id] is None:
                break
        else:
            blocks += self._closing(full)
        current = self.acts[1 if self._finished(full) else 0]
        return {
            "title": self.title,
            "minutes": self.minutes,
            "blocks": blocks,
            "act": f"{current.id}_heading",
            "status": self._status(full),
            "ledger": self.ledger(state),
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
        open_ = self._finished(full)
        return {
            "lab": self.name,
            "format": FORMAT,
            "version": __version__,
            "state": self.controls.check(state),
            "predictions": {act.prediction.id: _answer(act.prediction, full) for act in self.acts},
            "reflections": {act.reflection.id: _answer(act.reflection, full) for act in self.acts},
            "design": self.design(full) if open_ else None,
            "result": self.result(full) if open_ else None,
            "tier": self._tier(full),
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

    def admit(self, found: Any) -> dict[str, Any]:
        """Return the state in a ledger that `read_ledger` returned.

        Raises
        ------
        ConfigError
            If it is not a ledger of this lab, has another format, or contains an impossible state.
        """
        if not isinstance(found, dict) or found.get("lab") != self.name:
            raise ConfigError(
                f"this is not a ledger of the lab {self.name}: use the file that the lab wrote",
                argument="text",
            )
        if found.get("format") != FORMAT:
            raise ConfigError(
                f"format = {shown(found.get('format'))} of the ledger is not {FORMAT}, which "
                "mlsysim reads: open it with the version that wrote it, or start again",
                argument="format",
            )
        if "state" not in found:
            raise ConfigError(
                "the ledger is damaged: it contains no state. Use another copy, or start again",
                argument="state",
            )
        state = self.controls.check(found["state"])
        first, second = (act.prediction.id for act in self.acts)
        if state.get(first) is None and state.get(second) is not None:
            raise ConfigError(
                f"the ledger is damaged: it answers {second} before {first}. Use another copy, "
                "or start again",
                argument=second,
            )
        return state

    def _finished(self, full: State) -> bool:
        """Return whether all predictions have been made."""
        return all(full[act.prediction.id] is not None for act in self.acts)

    def _tier(self, full: State) -> str:
        right = [act.prediction.verdict(full[act.prediction.id]) == "right" for act in self.acts]
        done = [*right, self._finished(full) and bool(self.result(full)["accepted"])]
        return "optimal" if all(done) else "partial" if any(done) else "developing"

    def _closing(self, full: State) -> list[Block]:
        return [
            heading("end_heading", 2, "What to remember"),
            text("end_text", *self.lessons()),
            text("end_tier", f"Your tier is {self._tier(full)}. {self.tier_rule}"),
        ]

    def _status(self, full: State) -> list[dict[str, str]]:
        second = self._finished(full)
        items = {"Lab": self.title, "Act": "II" if second else "I", **self.status(full, second)}
        for number, act in zip(("I", "II"), self.acts, strict=True):
            verdict = act.prediction.verdict(full[act.prediction.id])
            items[f"Prediction {number}"] = verdict or "open"
        items["Tier"] = self._tier(full)
        return [{"label": label, "value": value} for label, value in items.items()]


def _answer(asked: Question | Estimate, full: State) -> dict[str, Any]:
    answer = full[asked.id]
    return {"answer": answer, "verdict": asked.verdict(answer)}


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
