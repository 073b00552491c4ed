"""A pipeline's timeline: a row for each stage, a block for each pass, gaps where it waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsysim.core.errors import ConfigError
from mlsysim.schedules import Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_timeline"]

# Pale, so that black numbers stand out on them, and told apart by lightness as well as by hue.
_KINDS = {
    "F": ("#8cc0e0", "forward"),
    "B": ("#f2cb6c", "backward"),
    "W": ("#c3dfae", "gradients of weights"),
}
_SPLIT = "gradients of inputs"
_EDGE = "0.25"
_LARGEST, _SMALLEST = 10.5, 7.0
# Width of a digit and its margin, in sizes of its font.
_DIGIT = 0.78


def plot_timeline(timeline: Timeline, *, ax: Axes | None = None) -> tuple[Figure, Axes]:
    """Draw each pass as a block with the number of its microbatch; gaps are the bubble.

    Chunks after the first are fainter. Numbers that would not fit their block are left out.

    Parameters
    ----------
    timeline
        What `simulate_pipeline` or `schedules.play` returned.
    ax
        Axes to draw on; `None` makes a new figure.

    Returns
    -------
    figure, axes
        The matplotlib objects, to be changed or saved.

    Raises
    ------
    ConfigError
        If `timeline` is not a timeline.
    """
    if not isinstance(timeline, Timeline):
        raise ConfigError(
            f"timeline = {timeline!r} is not a Timeline; pass what simulate_pipeline() returned",
            argument="timeline",
        )
    import matplotlib.pyplot as plt

    if ax is None:
        height = 0.9 + 0.34 * timeline.pp_size + 0.27 * timeline.virtual_stages
        _, ax = plt.subplots(figsize=(7, height), layout="constrained")
    figure: Any = ax.get_figure()
    makespan = float(timeline.makespan)
    kinds = {event.kind for event in timeline.events}
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
    _write(ax, timeline, figure.get_figwidth() * 72 * 0.85 / makespan)
    ax.set(
        xlim=(0, makespan),
        ylim=(timeline.pp_size + 0.5, 0.5),
        xlabel="time",
        yticks=range(1, timeline.pp_size + 1),
        yticklabels=[f"stage {stage + 1}" for stage in range(timeline.pp_size)],
    )
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "left", "right"]].set_visible(False)
    # Column by column: a kind of pass, and its chunks below each other.
    ax.legend(frameon=False, ncols=len(kinds), loc="lower left", bbox_to_anchor=(0, 1), borderpad=0)
    return figure, ax


def _write(ax: Axes, timeline: Timeline, points: float) -> None:
    """Number the blocks in the size that fits the shortest, at `points` per unit of time.

    Where that would be too small to read, the shortest blocks stay without a number.
    """
    digits = len(str(timeline.microbatch_count))
    shortest = min(float(event.duration) for event in timeline.events if event.duration)
    size = min(max(shortest * points / (digits * _DIGIT), _SMALLEST), _LARGEST)
    for event in timeline.events:
        if float(event.duration) * points >= digits * _DIGIT * size * 0.999:
            ax.text(
                float(event.start + event.end) / 2,
                event.stage + 1,
                str(event.microbatch + 1),
                ha="center",
                va="center_baseline",
                fontsize=size,
            )


def _fainter(color: str, share: float) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(part + (1 - part) * share for part in to_rgb(color))


def _label(words: str, chunk: int, timeline: Timeline) -> str:
    if timeline.virtual_stages == 1:
        return words
    return f"{words}, chunk {chunk + 1}"
