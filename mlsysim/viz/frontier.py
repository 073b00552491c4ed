"""The frontier of a service's plans: tokens per second and device over those per user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.table import Table
from mlsysim.viz.style import axes_for, label_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_USER, _DEVICE = "tokens_per_s_per_user", "tokens_per_s_per_device"


class Plan(Protocol):
    """An answer with a table of plans, as of `plan_serving`."""

    @property
    def plans(self) -> Any:
        """Plans with their hardware and tokens per second; it can select those on the frontier."""


def plot_frontier(
    plan: Plan, measured: Table | None = None, *, ax: Axes | None = None
) -> tuple[Figure, Axes]:
    """Draw the frontier of plans on each kind of hardware, and measured runs as points.

    A curve connects the plans that no other plan on this hardware beats both in tokens per second
    and user and in tokens per second and device. Its band is meant to contain four of five measured
    runs. Measured runs have the color of their devices, and are filled if they were held out of the
    fit. They have their own engines, lengths and numbers of clients, so compare each with the
    prediction for it, to which a gray line leads.

    Parameters
    ----------
    plan
        The answer of `plan_serving`.
    measured
        Runs that `plan.measured` returned; `None` draws none.
    ax
        Axes to draw on; `None` makes a new figure.

    Returns
    -------
    figure, axes
        The matplotlib objects, which you can change or save.

    Raises
    ------
    ConfigError
        If `plan` is not a `ServingPlan`, or `measured` is not a table of its runs.
    """
    plans = getattr(plan, "plans", None)
    if not (isinstance(plans, Table) and {"hardware", _USER, _DEVICE} <= set(plans.columns)):
        raise ConfigError(
            f"plan = {shown(plan)} is not a ServingPlan; pass what plan_serving() returned",
            argument="plan",
        )
    if measured is not None and not (
        isinstance(measured, Table) and {"run", "device"} <= set(measured.columns)
    ):
        raise ConfigError(
            f"measured = {shown(measured)} is not a table of runs; pass what plan.measured() "
            "returned",
            argument="measured",
        )
    figure, ax = axes_for(ax)
    kinds, colors = np.asarray(plan.plans["hardware"]), {}
    for spot, kind in enumerate(dict.fromkeys(kinds.tolist())):
        front, color = plan.plans.take(np.flatnonzero(kinds == kind)).front(), f"C{spot}"
        colors[plan.plans.devices[kind]] = color
        users, devices = _numbers(front, _USER), _numbers(front, _DEVICE)
        ax.plot(users, devices, "-", color=color, label=kind)
        edges = (_numbers(front, f"{_USER}_{edge}") for edge in ("low", "high"))
        ax.fill_betweenx(devices, *edges, color=color, alpha=0.2, lw=0)
    if measured is not None and len(measured):
        points = [_numbers(measured, name) for name in (_USER, _DEVICE)]
        predicted = [_numbers(measured, f"predicted_{name}") for name in (_USER, _DEVICE)]
        ax.plot(*np.stack([points, predicted], axis=1), "-", color="0.7", lw=0.8, zorder=1)
        device, split = np.asarray(measured["device"]), np.asarray(measured["split"])
        for name, color in colors.items():
            for held_out in (False, True):
                some = (device == name) & ((split == "check") == held_out)
                face = color if held_out else "none"
                ax.plot(*(axis[some] for axis in points), "o", color=color, mfc=face, ms=4)
    ax.set(
        xlim=(0, None),
        ylim=(0, None),
        xlabel="Tokens per second and user",
        ylabel="Tokens per second and device",
    )
    label_lines(ax)
    return figure, ax


def _numbers(table: Table, name: str) -> Any:
    return np.asarray(table[name].magnitude, float)
