"""Goals of a search: rate, time, cost or carbon, each a column of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.table import Column
from mlsysim.core.types import Fleet
from mlsysim.solvers import EconomicsSolver, SustainabilitySolver
from mlsysim.solvers.base import Solver
from mlsysim.sweeps import Sweep, sweep

__all__ = ["GOALS", "Goal"]

GOALS = ("throughput", "time", "cost", "carbon")

_MILLION = 1e6


class Goal:
    """A goal, and the prices or the data center for it.

    `column` is the name of the goal's column. Less is better, except for throughput. Cost and
    carbon are those of the whole training run, or of a million tokens if no run is given.
    """

    def __init__(
        self, name: str, tokens: float | None, economics: Mapping[str, Any], place: Any
    ) -> None:
        if not isinstance(name, str) or name not in GOALS:
            raise ConfigError(
                f"goal = {shown(name)} is unknown: choose one of {', '.join(GOALS)}",
                argument="goal",
            )
        if name == "time" and tokens is None:
            raise ConfigError(
                "training_tokens is missing: the time to train depends on them; give the tokens "
                "of the run, or choose goal = 'throughput'",
                argument="training_tokens",
            )
        if name == "carbon" and place is None:
            raise ConfigError(
                "datacenter is missing: carbon depends on the grid; pass one such as "
                "Infra.Hyperscale_US or the grid Infra.US_Avg",
                argument="datacenter",
            )
        self.name = name
        self.column = {"throughput": "token_throughput", "time": "training_time"}.get(name, name)
        self._tokens = tokens
        self._economics = {n: v for n, v in economics.items() if v is not None}
        self._place = place

    @property
    def against(self) -> tuple[str, str]:
        """The two columns of the Pareto front."""
        if self.name in ("cost", "carbon"):
            return "time_per_token", self.column
        return ("time_per_token" if self.name == "throughput" else self.column), "memory"

    def columns(self, fleet: Fleet, found: Sweep) -> dict[str, Column]:
        """Return the goal's columns for rows that can run."""
        rate = np.asarray(found["token_throughput"].to("token/s").magnitude)
        columns = {"time_per_token": Column(1e6 / rate, "us")}
        days = (self._tokens or _MILLION) / rate / 86_400
        if self._tokens is not None:
            columns["training_time"] = Column(days, "day")
        counted = {"cost": self._cost, "carbon": self._carbon}.get(self.name)
        if counted is not None:
            values, unit = counted(fleet, found, days)
            per = "" if self._tokens is not None else "/Mtoken"
            columns[self.name] = Column(values, unit + per)
        return columns

    def _run(
        self,
        solver: type[Solver[Any, Any]],
        fleet: Fleet,
        found: Sweep,
        days: NDArray[Any],
        more: Any,
    ) -> Sweep:
        drawn = np.asarray(found["power_utilization"], dtype=float)
        if np.isnan(drawn).any():
            raise ConfigError(
                f"fleet: the design power of {fleet.node.accelerator.name} is not known, so "
                "neither is its energy: choose another goal, or a fleet whose accelerator has one",
                argument="fleet",
            )
        axes: dict[str, Any] = {"duration_days": days, "utilization": drawn}
        return sweep(solver, how="zip", fleet=fleet, **axes, **more)

    def _cost(self, fleet: Fleet, found: Sweep, days: NDArray[Any]) -> tuple[NDArray[Any], str]:
        more = dict(self._economics)
        if self._place is not None:
            more["datacenter"] = self._place
        table = self._run(EconomicsSolver, fleet, found, days, more)
        rented = "rental_price" in self._economics
        cost = table["rental_cost" if rented else "period_cost"]
        return np.asarray(cost.to("USD").magnitude), "USD"

    def _carbon(self, fleet: Fleet, found: Sweep, days: NDArray[Any]) -> tuple[NDArray[Any], str]:
        more = {"datacenter": self._place}
        table = self._run(SustainabilitySolver, fleet, found, days, more)
        every = np.asarray(table["total_carbon"].to("kg").magnitude)
        fuel = np.asarray(table["carbon_footprint"].to("kg").magnitude)
        return np.where(np.isnan(every), fuel, every), "kg"
