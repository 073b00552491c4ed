"""Charts of explorers as plain data; `docs/labs/plot.js` draws each kind.

lines
    `series` of `points`, with `marks` (points with a label) and `rules` (lines across the chart).
bars
    Horizontal stacks: `parts` with the `bar` that each is in, its `part` and its `value`.
gantt
    `blocks` from `start` to `end` in a `row`, of a `kind`, with a short `text`.
cells
    A grid: each of the `cells` has a place, a `value` from 0 to 1 and a `text`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Chart = dict[str, Any]


def axis(label: str, *, log: bool = False, zero: bool = False) -> Chart:
    """Return an axis; a linear one may have to start at zero."""
    return {"label": label, "log": log, "zero": zero}


def line(name: str, points: Iterable[tuple[float, float]], *, dashed: bool = False) -> Chart:
    """Return one line, in the order of its points."""
    return {"name": name, "points": [list(point) for point in points], "dashed": dashed}


def mark(x: float, y: float, label: str) -> Chart:
    """Return a point that stands out."""
    return {"x": x, "y": y, "label": label}


def rule(value: float, label: str, *, of: str = "y") -> Chart:
    """Return a line across the chart, at a value of one axis."""
    return {"of": of, "value": value, "label": label}


def lines(
    x: Chart,
    y: Chart,
    series: Sequence[Chart],
    *,
    marks: Sequence[Chart] = (),
    rules: Sequence[Chart] = (),
) -> Chart:
    """Return a line chart. The first series is the reader's own."""
    return {
        "kind": "lines",
        "x": x,
        "y": y,
        "series": list(series),
        "marks": list(marks),
        "rules": list(rules),
    }


def part(bar: str, name: str, value: float) -> Chart:
    """Return one part of a bar."""
    return {"bar": bar, "part": name, "value": value}


def bars(x: Chart, parts: Iterable[Chart], *, rules: Sequence[Chart] = ()) -> Chart:
    """Return horizontal stacks, one for each bar."""
    return {"kind": "bars", "x": x, "parts": list(parts), "rules": list(rules)}


def gantt(x: Chart, blocks: Iterable[Chart]) -> Chart:
    """Return a schedule, with a row for each stage."""
    return {"kind": "gantt", "x": x, "blocks": list(blocks)}


def cells(x: Chart, y: Chart, found: Iterable[Chart]) -> Chart:
    """Return a grid of values."""
    return {"kind": "cells", "x": x, "y": y, "cells": list(found)}
