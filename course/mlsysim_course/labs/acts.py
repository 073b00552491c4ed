"""Labs whose words are in Python: acts of blocks, which `blocks` describes.

An act opens with a story and a prediction. The prediction locks, and then the instruments and a
reflection follow. The second act requires a design, which the ledger records with its results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlsysim_course.controls import Control, Controls, Question
from mlsysim_course.labs.blocks import Block, heading, locked, question, text
from mlsysim_course.labs.lab import Ledgered

__all__ = ["Act", "ActLab"]

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
    prediction : Question
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
    prediction: Question
    explain: Callable[[str], str]
    controls: tuple[Control, ...]
    instruments: Callable[[State], list[Block]]
    reflection: Question
    reflect: Callable[[str], str]

    def blocks(self, full: State) -> list[Block]:
        """Return what the act shows for the values of all controls."""
        answer = full[self.prediction.id]
        blocks = [heading(f"{self.id}_heading", 2, self.title), *self.opening()]
        blocks.append(question(self.prediction, answer, self.explain))
        if answer is None:
            how_to_unlock = "Answer the question to unlock the instruments."
            return [*blocks, locked(f"{self.id}_locked", how_to_unlock)]
        reflection = question(self.reflection, full[self.reflection.id], self.reflect)
        return [*blocks, *self.instruments(full), reflection]


@dataclass(frozen=True, kw_only=True)
class ActLab(Ledgered):
    """A lab of two acts of blocks.

    Attributes
    ----------
    acts : tuple of Act
        The acts, in order.
    lessons : Callable
        Returns the paragraphs that end the lab.
    """

    acts: tuple[Act, Act]
    lessons: Callable[[], Sequence[str]]

    @cached_property
    def controls(self) -> Controls:
        """Everything that a student can set, in the order of the acts."""
        return Controls(
            control
            for act in self.acts
            for control in (act.prediction, *act.controls, act.reflection)
        )

    @property
    def predictions(self) -> tuple[Question, ...]:
        """The questions before the instruments, in order."""
        return tuple(act.prediction for act in self.acts)

    @property
    def reflections(self) -> tuple[Question, ...]:
        """The questions after the instruments, in order."""
        return tuple(act.reflection for act in self.acts)

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
        current = self.acts[1 if self.finished(full) else 0]
        return {
            "title": self.title,
            "minutes": self.minutes,
            "blocks": blocks,
            "act": f"{current.id}_heading",
            "status": self.status_bar(full),
            "ledger": self.ledger(state),
        }

    def _closing(self, full: State) -> list[Block]:
        return [
            heading("end_heading", 2, "What to remember"),
            text("end_text", *self.lessons()),
            text("end_tier", f"Your tier is {self.tier(full)}. {self.tier_rule}"),
        ]
