"""Explorer of carbon by grid and hour of the day."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsysim.core.types import GridProfile
from mlsysim.registry import Infra, Systems
from mlsysim.solvers import SustainabilitySolver
from mlsysim_course.controls import Selector, Slider
from mlsysim_course.explorers.charts import axis, line, lines, mark, rule
from mlsysim_course.explorers.declare import Answer, Explorer, amount, figure, read

HOURS = 24
_FLEET = Systems.Clusters.Research_256


def _grids() -> dict[str, str]:
    """Return the grids; those with an hourly profile come first."""
    rows = {n: getattr(Infra, n) for n in dir(Infra) if not n.startswith("_")}
    grids = {n: row for n, row in rows.items() if isinstance(row, GridProfile)}
    order = sorted(grids, key=lambda n: (not grids[n].hourly, grids[n].name))
    return {n: grids[n].name + (" (by hour)" if grids[n].hourly else "") for n in order}


def _carbon(s: Mapping[str, Any]) -> Answer:
    grid = getattr(Infra, s["grid"])

    def solve(place: GridProfile) -> Any:
        return SustainabilitySolver.solve(
            fleet=_FLEET,
            duration_days=1,
            datacenter=place,
            utilization=s["load"] / 100,
        )

    length = s["hours"]
    timed = bool(grid.hourly) and length < HOURS
    stop = (s["start"] + length) % HOURS or HOURS
    place = grid.during(s["start"], stop) if timed else grid
    result = solve(place)
    intensity = amount(place.carbon_intensity, "g/kWh")
    mean = amount(grid.carbon_intensity, "g/kWh")
    when = f"from {s['start']}:00 for {length} hours a day" if timed else "at all hours"
    series = (
        [
            line(
                "this grid",
                [
                    (h, amount(grid.during(h, h + 1).carbon_intensity, "g/kWh"))
                    for h in range(HOURS)
                ],
            )
        ]
        if grid.hourly
        else [line("this grid, on average", [(0, mean), (HOURS - 1, mean)])]
    )
    note = (
        ""
        if grid.hourly or length == HOURS
        else " We have no hourly profile of this grid, so the hours make no difference."
    )
    return Answer(
        f"A day's worth of work on 256 H100 GPUs, run {when} on the grid {grid.name}, causes "
        f"{figure(amount(result.carbon_footprint, 'kg'))} kg of CO2 equivalent from electricity, "
        f"at {figure(intensity)} g/kWh.{note}",
        (
            read("Carbon of the electricity", result, "carbon_footprint", "kg"),
            read("Carbon of the hardware", result, "embodied_carbon", "kg"),
            read("Energy", result, "total_energy", "kWh"),
            read("Carbon intensity", result, "carbon_intensity", "g/kWh"),
        ),
        (
            lines(
                axis("Hour of the day"),
                axis("Carbon intensity (g/kWh)", zero=True),
                series,
                marks=[mark(s["start"], series[0]["points"][s["start"]][1], "start")]
                if timed
                else (),
                rules=[rule(intensity, "this run")],
            ),
        ),
    )


CARBON = Explorer(
    "carbon",
    "Move the run to another grid or hour",
    f"{_FLEET.name}: {_FLEET.total_accelerators} GPUs that do a day's worth of work, within the "
    "same hours of every day.",
    (
        Selector("grid", "Grid", "California", _grids()),
        Slider("start", "First hour", 0, tuple(range(HOURS)), "h"),
        Slider("hours", "Hours per day", 8, (1, 2, 4, 8, 12, 24), "h"),
        Slider("load", "GPU load", 100, tuple(range(0, 101, 10)), "%"),
    ),
    _carbon,
)
"""Carbon of a day's work, by the grid and the hours in which it runs."""
