"""Axes of figures, colors with a meaning, and labels next to lines instead of in a legend."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mlsysim.core.errors import ConfigError, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

# The colors themselves are in figures.mplstyle, in this order.
COLORS: Mapping[str, str] = MappingProxyType(
    {
        "compute": "C0",
        "communication": "C1",
        "data": "C1",
        "memory": "C2",
        "tensor": "C3",
        "pipeline": "C4",
        "context": "C6",
        "expert": "C6",
        "idle": "C5",
        "measured": "C6",
    }
)
"""Colors by what they mean: `compute`, `communication`, `memory`, `idle`, `measured`, and the kinds
of parallelism `data`, `tensor`, `pipeline`, `context` and `expert`.

Each is a color of the current cycle, such as `"C0"`. Those of the site's figures come with
`plt.style.use("mlsysim.viz.figures")`.
"""


def axes_for(ax: Any, height: float | None = None) -> tuple[Figure, Axes]:
    """Return the axes given, or those of a new figure with a height in inches, and their figure."""
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes

    if ax is None:
        width, usual = plt.rcParams["figure.figsize"]
        _, ax = plt.subplots(figsize=(width, height or usual), layout="constrained")
    if not isinstance(ax, Axes):
        raise ConfigError(
            f"ax = {shown(ax)} is not axes of matplotlib: give those of plt.subplots(), or None",
            argument="ax",
        )
    figure: Any = ax.get_figure()
    return figure, ax


# Share of the text color mixed into a line's color: letters need more contrast than lines.
_INK = 0.3
_GAP = 6.0


def label_lines(ax: Axes) -> list[Annotation]:
    """Write the label of each line at its last visible point, instead of a legend.

    Labels that would overlap are moved up and down. A line outside the axes gets none. Call it
    when the axes have their final limits and scales.

    Parameters
    ----------
    ax
        Axes with lines that have labels.

    Returns
    -------
    labels
        The texts, from the lowest to the highest.
    """
    import numpy as np
    from matplotlib import colors, rcParams

    ink = np.array(colors.to_rgb(rcParams["text.color"]))
    labels = []
    for line in ax.get_lines():
        name = str(line.get_label())
        if name.startswith("_"):
            continue
        points = np.asarray(line.get_xydata(), dtype=float)
        low, high = np.sort(np.array([ax.get_xlim(), ax.get_ylim()]).T, axis=0)
        # NaN is not visible, either.
        seen = points[((points >= low) & (points <= high)).all(axis=1)]
        if not len(seen):
            continue
        end = seen[-1]
        color = (1 - _INK) * np.array(colors.to_rgb(line.get_color())) + _INK * ink
        labels.append(
            ax.annotate(
                name,
                (end[0], end[1]),
                xytext=(_GAP, 0),
                textcoords="offset points",
                va="center",
                color=tuple(color),
            )
        )
    figure: Any = ax.get_figure()
    figure.draw_without_rendering()
    boxes = {label: label.get_window_extent() for label in labels}
    labels.sort(key=lambda label: boxes[label].y0 + boxes[label].y1)
    middles = [(boxes[label].y0 + boxes[label].y1) / 2 for label in labels]
    heights = [boxes[label].height for label in labels]
    for label, before, after in zip(labels, middles, _apart(middles, heights), strict=True):
        label.xyann = (_GAP, (after - before) * 72 / figure.dpi)
    return labels


def _apart(middles: list[float], heights: list[float]) -> list[float]:
    """Return centers in rising order, moved as little as possible so that no two labels overlap."""
    steps = ((low + high) / 2 for low, high in itertools.pairwise(heights))
    above = list(itertools.accumulate(steps, initial=0.0))[: len(heights)]
    # Each group of touching labels is at the mean of the positions that they would have alone.
    groups: list[list[float]] = []
    for middle, offset in zip(middles, above, strict=True):
        groups.append([middle - offset])
        while len(groups) > 1 and _mean(groups[-2]) > _mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    bases = [_mean(group) for group in groups for _ in group]
    return [base + offset for base, offset in zip(bases, above, strict=True)]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
