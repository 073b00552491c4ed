"""Timelines: when each pass of a pipeline ran, with bubble and peak activations."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple, TypeAlias

from mlsysim.core.fields import Record, record
from mlsysim.schedules.orders import Kind

__all__ = ["Event", "Time", "Timeline", "exact"]

Time: TypeAlias = float | Fraction
"""A time in the caller's unit. Whole numbers and fractions stay exact."""


def exact(value: Time) -> Time:
    """Return a fraction as an integer if it is one."""
    whole = isinstance(value, Fraction) and value.denominator == 1
    return int(value) if whole else value


class Event(NamedTuple):
    """A pass that ran.

    Attributes
    ----------
    stage, microbatch, chunk : int
        Stage, microbatch and chunk of the pass, counted from zero.
    kind : str
        ``"F"``, ``"B"`` or ``"W"``, as in `Pass`.
    start, end : int, float or Fraction
        Start and end, in the unit of the given times.
    """

    stage: int
    microbatch: int
    chunk: int
    kind: Kind
    start: Time
    end: Time

    @property
    def duration(self) -> Time:
        """Time from start to end."""
        return exact(self.end - self.start)


@record
class Timeline(Record):
    """Every pass of one training step through a pipeline, with its start and its end.

    Times are in the unit of the given times; whole numbers and fractions are exact. Stages and
    microbatches count from zero here, but from one in `gantt` and in pictures.

    Attributes
    ----------
    schedule : str
        Name of the schedule; ``"own"`` for custom orders.
    pp_size, microbatch_count, virtual_stages : int
        Stages, microbatches, and model chunks per stage.
    events : tuple of Event
        All passes by stage, in the order in which each stage ran them.
    """

    schedule: str
    pp_size: int
    microbatch_count: int
    virtual_stages: int
    events: tuple[Event, ...]

    def __repr__(self) -> str:
        sizes = ("pp_size", "microbatch_count", "virtual_stages")
        return f"<Timeline {self.schedule}: {', '.join(f'{n}={getattr(self, n)}' for n in sizes)}>"

    def stage(self, index: int) -> tuple[Event, ...]:
        """Return the passes of one stage, in the order in which they ran."""
        return tuple(event for event in self.events if event.stage == index)

    @property
    def makespan(self) -> Time:
        """Time from the start of the first pass to the end of the last one."""
        return max(event.end for event in self.events)

    @property
    def busy_times(self) -> tuple[Time, ...]:
        """Time in which each stage is busy."""
        busy: list[Time] = [0] * self.pp_size
        for event in self.events:
            busy[event.stage] += event.duration
        return tuple(exact(time) for time in busy)

    @property
    def idle_times(self) -> tuple[Time, ...]:
        """Time in which each stage waits, from the start of the step to its end."""
        makespan = self.makespan
        return tuple(exact(makespan - busy) for busy in self.busy_times)

    @property
    def bubble_time(self) -> Time:
        """Mean time in which a stage waits."""
        return exact(sum(self.idle_times) * Fraction(1, self.pp_size))

    @property
    def bubble_fraction(self) -> float:
        """Share of the stages' time in which they wait."""
        return float(self.bubble_time / self.makespan)

    @property
    def bubble_over_busy(self) -> float:
        """Bubble divided by the busy time of a stage: the relative time that waiting adds."""
        return float(self.bubble_time / (self.makespan - self.bubble_time))

    @property
    def peak_activations(self) -> tuple[int, ...]:
        """Maximum number of microbatches in flight on each stage, counted in chunks.

        A chunk's activations are held from the start of its forward pass to the end of its backward
        pass (of the last part, if backwards are split). With `virtual_stages` chunks, each chunk
        holds that fraction of a stage's activations of a microbatch.
        """
        split = any(event.kind == "W" for event in self.events)
        held, peak = [0] * self.pp_size, [0] * self.pp_size
        for event in self.events:
            if event.kind == "F":
                held[event.stage] += 1
                peak[event.stage] = max(peak[event.stage], held[event.stage])
            elif event.kind == ("W" if split else "B"):
                held[event.stage] -= 1
        return tuple(peak)

    def gantt(self, tick: Time | None = None) -> str:
        """Draw the timeline in letters: a line for each stage, a column for each tick.

        A pass is labeled at its start, ``F1`` or ``B1``, with a letter for its chunk if there are
        several, and continues in dashes. Dots are the bubble.

        Parameters
        ----------
        tick
            Time of a column; `None` takes the longest time that needs no rounding or, for floats,
            the shortest pass.

        Returns
        -------
        text
            The lines, joined.

        Raises
        ------
        ConfigError
            If `tick` is not above zero, or so small that a line would not end.

        Examples
        --------
        >>> from mlsysim.schedules import simulate_pipeline
        >>> print(simulate_pipeline("1f1b", pp_size=2, microbatch_count=3).gantt())
        stage 1  F1 F2 .  .  B1 -- F3 B2 -- .  B3 --
        stage 2  .  F1 B1 -- F2 B2 -- F3 B3 -- .  .
        """
        from mlsysim.schedules.gantt import gantt

        return gantt(self, tick)
