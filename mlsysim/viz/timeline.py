"""A pipeline's timeline: a row per stage, a block per pass, and gaps for the bubble."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.schedules import Timeline
from mlsysim.viz.style import axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Pale, so that black numbers are readable on them, and distinct in lightness as well as hue.
_KINDS = {
    "F": ("#8cc0e0", "forward"),
    "B": ("#f2cb6c", "backward"),
    "W": ("#c3dfae", "weight gradients"),
}
_SPLIT = "input gradients"
_EDGE = "0.25"
# Width of a digit and its margin, in sizes of its font.
_DIGIT = 0.75


def plot_timeline(timeline: Timeline, *, ax: Axes | None = None) -> tuple[Figure, Axes]:
    """Draw each pass as a block with the number of its microbatch; gaps are the bubble.

    Chunks after the first are fainter. Numbers that would not fit their block are left out.

    Parameters
    ----------
    timeline
        The result of `simulate_pipeline` or `schedules.play`.
    ax
        Axes to draw on; `None` makes a new figure.

    Returns
    -------
    figure, axes
        The matplotlib objects, which you can change or save.

    Raises
    ------
    ConfigError
        If `timeline` is not a timeline.
    """
    if not isinstance(timeline, Timeline):
        raise ConfigError(
            f"timeline = {shown(timeline)} is not a Timeline; pass the result of "
            "simulate_pipeline()",
            argument="timeline",
        )
    kinds = {event.kind for event in timeline.events}
    rows = -(-timeline.virtual_stages * len(kinds) // 2)  # of the legend, in two columns
    figure, ax = axes_for(ax, height=0.8 + 0.34 * timeline.pp_size + 0.24 * rows)
    makespan = float(timeline.makespan)
    for kind, (color, label) in _KINDS.items():
        label = _SPLIT if kind == "B" and "W" in kinds else label
        for chunk in range(timeline.virtual_stages):
            events = [e for e in timeline.events if (e.kind, e.chunk) == (kind, chunk)]
            if not events:
                continue
            ax.barh(
                [event.stage + 1 for event in events],
                [float(event.duration) for event in events],
                left=[float(event.start) for event in events],
                height=0.9,
                color=_fainter(color, chunk / timeline.virtual_stages),
                edgecolor=_EDGE,
                linewidth=0.5,
                label=_label(label, chunk, timeline),
            )
    ax.set(
        xlim=(0, makespan),
        ylim=(timeline.pp_size + 0.5, 0.5),
        xlabel="time",
        yticks=range(1, timeline.pp_size + 1),
        yticklabels=[f"stage {stage + 1}" for stage in range(timeline.pp_size)],
    )
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False)
    ax.spines[["top", "left", "right"]].set_visible(False)
    ax.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1), borderpad=0)
    _write(ax, timeline)
    return figure, ax


def _write(ax: Axes, timeline: Timeline) -> None:
    """Number the blocks that are wide enough for it, in the size of all other text."""
    from matplotlib import rcParams

    figure: Any = ax.get_figure()
    figure.draw_without_rendering()  # gives the axes their width
    points = ax.get_window_extent().width * 72 / figure.dpi / float(timeline.makespan)
    for event in timeline.events:
        number = str(event.microbatch + 1)
        if float(event.duration) * points >= len(number) * _DIGIT * rcParams["font.size"]:
            ax.text(
                float(event.start + event.end) / 2,
                event.stage + 1,
                number,
                ha="center",
                va="center_baseline",
            )


def _fainter(color: str, share: float) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(part + (1 - part) * share for part in to_rgb(color))


def _label(words: str, chunk: int, timeline: Timeline) -> str:
    if timeline.virtual_stages == 1:
        return words
    return f"{words}, chunk {chunk + 1}"
