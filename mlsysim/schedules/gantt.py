"""A timeline in letters, for terminals."""

from __future__ import annotations

import math
from fractions import Fraction

from mlsysim.core.errors import ConfigError, shown
from mlsysim.schedules.checks import stage_times
from mlsysim.schedules.timeline import Event, Time, Timeline

__all__ = ["gantt"]

_WIDEST = 2000


def gantt(timeline: Timeline, tick: Time | None) -> str:
    """Draw a line for each stage; see `Timeline.gantt`."""
    (tick,) = stage_times("tick", _tick(timeline) if tick is None else tick, 1)
    if timeline.makespan / tick > _WIDEST:
        raise ConfigError(
            f"tick = {shown(tick)} does not divide a makespan of {timeline.makespan} into columns: "
            f"give a time above zero, of at least a {_WIDEST}th of the makespan",
            argument="tick",
        )
    labels = {event: _label(event, timeline) for event in timeline.events}
    width = max(map(len, labels.values())) + 1
    columns = round(timeline.makespan / tick)
    name = len(f"stage {timeline.pp_size}")
    lines = []
    for stage in range(timeline.pp_size):
        cells = ["."] * columns
        for event in timeline.stage(stage):
            start, end = round(event.start / tick), round(event.end / tick)
            cells[start:end] = [labels[event], *["-" * (width - 1)] * (end - start - 1)][
                : end - start
            ]
        row = "".join(cell.ljust(width) for cell in cells).rstrip()
        lines.append(f"{f'stage {stage + 1}':<{name}}  {row}")
    return "\n".join(lines)


def _label(event: Event, timeline: Timeline) -> str:
    chunk = chr(ord("a") + event.chunk % 26) if timeline.virtual_stages > 1 else ""
    return f"{event.kind}{event.microbatch + 1}{chunk}"


def _tick(timeline: Timeline) -> Time:
    """Longest time that divides every start and every end; for floats, the shortest pass."""
    times = [time for event in timeline.events for time in (event.start, event.end)]
    if any(isinstance(time, float) for time in times):
        return min(event.duration for event in timeline.events if event.duration)
    fractions = [Fraction(time) for time in times]
    scale = math.lcm(*(time.denominator for time in fractions))
    return Fraction(math.gcd(*(int(time * scale) for time in fractions)), scale)
