"""A scorecard as a picture: every limit, and how much of it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsysim.core.errors import ConfigError, shown
from mlsysim.scenario.scorecard import Check, Scorecard
from mlsysim.viz.style import axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Distinct in shape as well as color. The colors are those of figures.mplstyle.
_MARKS = {
    "pass": ("o", "#5a9a73", "kept"),
    "fail": ("X", "#c43716", "broken"),
    "unknown": ("D", "#6b737c", "not known"),
}
_WIDEST = 1e3


def plot_scorecard(scorecard: Scorecard, *, ax: Axes | None = None) -> tuple[Figure, Axes]:
    """Draw each check as a point at its share of the limit, which is the line at 1.

    Left of the line a limit is met, right of it violated. For a lower limit the share is inverted:
    limit over value. The axis is logarithmic and ends at 1,000 times the limit.

    Parameters
    ----------
    scorecard
        The result of `evaluate`.
    ax
        Axes to draw on; `None` makes a new figure.

    Returns
    -------
    figure, axes
        The matplotlib objects, which you can change or save.

    Raises
    ------
    ConfigError
        If `scorecard` is not a scorecard.
    """
    if not isinstance(scorecard, Scorecard):
        raise ConfigError(
            f"scorecard = {shown(scorecard)} is not a Scorecard; pass what evaluate() returned",
            argument="scorecard",
        )
    checks = [check for check in scorecard.checks if check.limit is not None]
    figure, ax = axes_for(ax, height=1.4 + 0.45 * len(checks))
    ax.axvline(1, color="0.5", lw=1.5)
    shares = [_share(check) for check in checks]
    named: set[str] = set()
    for row, (check, share) in enumerate(zip(checks, shares, strict=True)):
        status = str(check.status)
        marker, color, label = _MARKS[status]
        # List each status once in the legend; matplotlib skips labels that begin with an
        # underscore.
        label = f"_{label}" if status in named else label
        named.add(status)
        ax.plot([share, 1], [row, row], color=color, lw=2, alpha=0.5, label="_line")
        ax.plot([share], [row], marker, color=color, ms=9, label=label)
    low = min([0.1, *(share / 2 for share in shares)])
    high = max([10.0, *(share * 2 for share in shares)])
    ax.set(
        xscale="log",
        xlim=(low, high),
        ylim=(len(checks) - 0.5, -0.5) if checks else (0.5, -0.5),
        xlabel="Share of the limit",
        title=f"{scorecard.name}: {scorecard.status}",
    )
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_yticks(range(len(checks)), [_words(check) for check in checks])
    if checks:
        ax.legend(frameon=False, loc="best")
    return figure, ax


def _share(check: Check) -> float:
    """Return how much of the limit is used; unknown values are on the line."""
    ratio = check.ratio
    if ratio is None:
        return 1.0
    used = ratio if check.bound == "at_most" else (1 / ratio if ratio else _WIDEST)
    return min(max(used, 1 / _WIDEST), _WIDEST)


def _words(check: Check) -> str:
    return f"{check.metric}\n{check.value_text}, {check.limit_text}"
