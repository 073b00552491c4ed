"""A tornado plot: the inputs that a result depends on most, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.table import Table
from mlsysim.solvers.arguments import Whole
from mlsysim.viz.style import axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LESS, _MORE = "#5a9a73", "#c43716"
"""Colors of figures.mplstyle, for inputs that lower the result and for those that raise it."""


def plot_sensitivity(
    sensitivity: Table, *, most: int = 12, ax: Axes | None = None
) -> tuple[Figure, Axes]:
    """Draw the elasticities of a result as bars, the strongest on top.

    A bar to the right means that increasing the input raises the result; a bar to the left means
    that it lowers the result. Inputs that the result follows in steps have no bar.

    Parameters
    ----------
    sensitivity
        The result of `sensitivity`.
    most
        Inputs to show.
    ax
        Axes to draw on; `None` makes a new figure.

    Returns
    -------
    figure, axes
        The matplotlib objects, which you can change or save.

    Raises
    ------
    ConfigError
        If `sensitivity` is not a `Sensitivity`, or `most` is not a whole number of one or more.
    """
    if not (
        isinstance(sensitivity, Table)
        and {"input", "elasticity", "note"} <= set(sensitivity.columns)
    ):
        raise ConfigError(
            f"sensitivity = {shown(sensitivity)} is not a Sensitivity; pass what sensitivity() "
            "returned",
            argument="sensitivity",
        )
    most = Whole().admit("most", most)
    rows = [
        (row["input"], row["elasticity"])
        for row in sensitivity
        if row["elasticity"] and "steps" not in row["note"]
    ][:most]
    figure, ax = axes_for(ax, height=1.2 + 0.32 * len(rows))
    colors = [_MORE if value > 0 else _LESS for _, value in rows]
    ax.barh(range(len(rows)), [value for _, value in rows], color=colors, height=0.7)
    ax.axvline(0, color="0.5", lw=1)
    ax.set(
        ylim=(len(rows) - 0.5, -0.5) if rows else (0.5, -0.5),
        xlabel="Elasticity (% per %)",
        title=getattr(sensitivity, "field", ""),
    )
    ax.set_yticks(range(len(rows)), [".".join(name.split(".")[-2:]) for name, _ in rows])
    return figure, ax
