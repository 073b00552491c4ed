"""Timelines: when each pass of a pipeline ran, with bubble and peak activations."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import Record, record
from mlsysim.schedules.orders import Kind

Time: TypeAlias = float | Fraction
"""A time in the caller's unit. Whole numbers and fractions stay exact."""

_WIDEST = 2000
"""Most columns of a drawing in letters."""


def exact(value: Time) -> Time:
    """Return a fraction as an integer if it is one."""
    whole = isinstance(value, Fraction) and value.denominator == 1
    return int(value) if whole else value


def stage_times(
    name: str, given: Time | Sequence[Time], stages: int, *, zero: bool = False
) -> list[Time]:
    """Return one finite time for each stage: above zero, or with `zero` also zero."""
    if hasattr(given, "magnitude"):
        raise ConfigError(
            f"{name} = {given} has a unit: give plain numbers, all times in one unit of your "
            f"choice, such as {name}.to('ms').magnitude",
            argument=name,
        )
    plain: Any = given.tolist() if hasattr(given, "tolist") else given  # NumPy's
    values = list(plain) if isinstance(plain, list | tuple) else [plain] * stages
    if len(values) != stages:
        raise ConfigError(
            f"{name} has {len(values)} values for {stages} stages: give one each, or one number",
            argument=name,
        )
    for value in values:
        number = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
        # In this order, because an integer may be too large for a float.
        finite = number and abs(value) <= sys.float_info.max
        if not finite or value < 0 or (value == 0 and not zero):
            limit = "of zero or more" if zero else "above zero"
            raise ConfigError(
                f"{name} = {shown(value)}: give a finite number {limit}", argument=name
            )
    return values


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
        (tick,) = stage_times("tick", self._tick() if tick is None else tick, 1)
        if self.makespan / tick > _WIDEST:
            raise ConfigError(
                f"tick = {shown(tick)} does not divide a makespan of {self.makespan} into "
                f"columns: give a time above zero, of at least a {_WIDEST}th of the makespan",
                argument="tick",
            )
        labels = {event: self._label(event) for event in self.events}
        width = max(map(len, labels.values())) + 1
        columns = round(self.makespan / tick)
        name = len(f"stage {self.pp_size}")
        lines = []
        for stage in range(self.pp_size):
            cells = ["."] * columns
            for event in self.stage(stage):
                start, end = round(event.start / tick), round(event.end / tick)
                dashes = ["-" * (width - 1)] * (end - start - 1)
                cells[start:end] = [labels[event], *dashes][: end - start]
            row = "".join(cell.ljust(width) for cell in cells).rstrip()
            lines.append(f"{f'stage {stage + 1}':<{name}}  {row}")
        return "\n".join(lines)

    def _label(self, event: Event) -> str:
        chunk = chr(ord("a") + event.chunk % 26) if self.virtual_stages > 1 else ""
        return f"{event.kind}{event.microbatch + 1}{chunk}"

    def _tick(self) -> Time:
        """Longest time that divides every start and every end; for floats, the shortest pass."""
        times = [time for event in self.events for time in (event.start, event.end)]
        if any(isinstance(time, float) for time in times):
            return min(event.duration for event in self.events if event.duration)
        fractions = [Fraction(time) for time in times]
        scale = math.lcm(*(time.denominator for time in fractions))
        return Fraction(math.gcd(*(int(time * scale) for time in fractions)), scale)
