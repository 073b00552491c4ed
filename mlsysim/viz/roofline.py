"""The roofline of a device, with workloads on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.types import Accelerator, Workload
from mlsysim.core.units import Quantity, strip
from mlsysim.solvers import SingleNodeResult, SingleNodeSolver
from mlsysim.solvers.arguments import Noun, PrecisionName
from mlsysim.viz.style import axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TERA = 1e12


def plot_roofline(
    hardware: Accelerator,
    workloads: Sequence[Workload | tuple[str, SingleNodeResult]] = (),
    *,
    precision: str | None = None,
    batch_size: int = 1,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw a device's roofline, and workloads as points on it.

    The roof is the datasheet's: peak rate and memory bandwidth. A point shows the intensity of a
    workload and the rate that the solver predicts for it.

    Parameters
    ----------
    hardware
        The device.
    workloads
        Models, which are solved at `batch_size`; or pairs of a label and a `SingleNodeSolver`
        result.
    precision
        Number format; `None` takes the device's default.
    batch_size
        Samples per batch for the models.
    ax
        Axes to draw on; `None` makes a new figure.

    Returns
    -------
    figure, axes
        The matplotlib objects, which you can change or save.

    Raises
    ------
    ConfigError
        If `hardware` is not a device, if it cannot compute in `precision`, or if a workload is
        neither a model nor a pair.
    """
    Noun(kinds=(Accelerator,), hint="Hardware.A100").admit("hardware", hardware)
    if isinstance(workloads, Workload | Quantity) or not isinstance(workloads, Iterable):
        raise ConfigError(
            f"workloads = {shown(workloads)} is not a list: give a list of models",
            argument="workloads",
        )
    chosen = PrecisionName(optional=True).admit("precision", precision)
    name = hardware.compute.default_precision if chosen is None else chosen.name
    peak = strip(hardware.compute.rate(name), "flop/s", "peak rate")
    bandwidth = hardware.memory.si("bandwidth")
    ridge = peak / bandwidth
    points = [_point(item, hardware, name, batch_size) for item in workloads]

    figure, ax = axes_for(ax)
    low = min([ridge / 100, *(x / 3 for _, x, _ in points)])
    high = max([ridge * 30, *(x * 3 for _, x, _ in points)])
    ax.plot([low, ridge, high], [low * bandwidth / _TERA, peak / _TERA, peak / _TERA], lw=2)
    ax.axvline(ridge, ls=":", lw=1.5, color="0.5")
    ax.annotate(
        f"ridge point\n{ridge:.0f} FLOP/B",
        (ridge, low * bandwidth / _TERA),
        xytext=(-6, 4),
        textcoords="offset points",
        ha="right",
        va="bottom",
    )
    for label, x, y in points:
        ax.plot([x], [y / _TERA], "o", ms=8, label=label)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="Arithmetic intensity (FLOP/B)",
        ylabel="Rate (TFLOP/s)",
        title=f"{hardware.name}, {name}",
    )
    if points:
        ax.legend(frameon=False, loc="lower right")
    return figure, ax


def _point(
    item: Workload | tuple[str, SingleNodeResult],
    hardware: Accelerator,
    precision: str,
    batch_size: int,
) -> tuple[str, float, float]:
    """Return label, intensity and reached rate, in SI units."""
    if isinstance(item, Workload):
        label = item.name
        result = SingleNodeSolver.solve(
            model=item, hardware=hardware, batch_size=batch_size, precision=precision
        )
    elif isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], SingleNodeResult):
        label, result = item
    else:
        raise ConfigError(
            f"workloads holds {shown(item)}: pass models, or pairs of a label and a "
            "SingleNodeResult",
            argument="workloads",
        )
    rate = strip(result.flops, "flop", "flops") / strip(result.latency, "s", "latency")
    return label, strip(result.arithmetic_intensity, "flop/byte", "intensity"), rate
