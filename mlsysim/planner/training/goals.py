"""Goals of a search: throughput, time, cost or carbon, each a column of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.errors import ConfigError
from mlsysim.core.table import Column
from mlsysim.core.types import Fleet, TransformerModel
from mlsysim.planner.prices import Price
from mlsysim.registry.operations import RECOVERY
from mlsysim.solvers import (
    EconomicsSolver,
    ReliabilityResult,
    ReliabilitySolver,
    SustainabilitySolver,
)
from mlsysim.solvers.arguments import Choice
from mlsysim.sweeps import Sweep, sweep

GOALS = ("throughput", "time", "cost", "carbon", "fewest_devices")

MILLION = 1e6
_UNKNOWN_RUN = 1.0
"""Assumed days of a run of unknown length; the share of lost time does not depend on it."""


class Goal:
    """A goal, and the prices of the fleets or the data center for it.

    `column` is the name of the quantity; for all but throughput, less is better. Cost and carbon
    are those of the whole training run, or of a million tokens if no run is given. With `failures`,
    time, cost and carbon include the time lost to failures and checkpoints.
    """

    def __init__(
        self,
        name: str,
        tokens: float | None,
        prices: Mapping[str, Price],
        place: Any,
        *,
        kwh_price: Any,
        failures: bool,
        within: float,
    ) -> None:
        Choice.among(GOALS).admit("goal", name)
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
        self.within = within
        names = {"throughput": "token_throughput", "time": "training_time"}
        self.column = names.get(name, "devices" if name == "fewest_devices" else name)
        self._failures = failures and (tokens is not None or name in ("cost", "carbon"))
        self._known: dict[str, ReliabilityResult] = {}
        self._tokens = tokens
        self._prices = prices
        self._kwh_price = kwh_price
        self._place = place

    @property
    def against(self) -> tuple[str, str]:
        """The two columns of the Pareto front."""
        if self.name in ("cost", "carbon"):
            return "time_per_token", self.column
        if self.name == "fewest_devices":
            return "time_per_token", self.column
        return ("time_per_token" if self.name == "throughput" else self.column), "memory"

    def reliability(
        self, fleet: Fleet, model: TransformerModel, precision: Any, days: float | None = None
    ) -> ReliabilityResult | None:
        """Return the effect of failures and checkpoints on a run; `None` if they are not counted.

        Each device brings its share of a large job's storage.
        """
        if not self._failures:
            return None
        if days is None and fleet.name in self._known:
            return self._known[fleet.name]
        answer = ReliabilitySolver.solve(
            fleet=fleet,
            job_duration_hours=24 * (days or _UNKNOWN_RUN),
            model=model,
            precision=precision,
            storage_bandwidth=RECOVERY.storage_bandwidth * fleet.total_accelerators,
        )
        self._known.setdefault(fleet.name, answer)
        return answer

    def columns(
        self, fleet: Fleet, answers: Sweep, model: TransformerModel, precision: Any
    ) -> dict[str, Column]:
        """Return the goal's columns for feasible rows."""
        rate = np.asarray(answers["token_throughput"].to("token/s").magnitude)
        columns = {"time_per_token": Column(1e6 / rate, "us")}
        if self.name == "fewest_devices":
            columns["devices"] = Column(np.full(len(rate), fleet.total_accelerators))
        reliability = self.reliability(fleet, model, precision)
        if reliability is not None:
            columns["goodput"] = Column(np.full(len(rate), reliability.goodput))
        progress = rate * (1.0 if reliability is None else reliability.goodput)
        days = (self._tokens or MILLION) / progress / 86_400
        if self._tokens is not None:
            columns["training_time"] = Column(days, "day")
        counted = {"cost": self._cost, "carbon": self._carbon}.get(self.name)
        if counted is not None:
            values, unit = counted(fleet, answers, days)
            per = "" if self._tokens is not None else "/Mtoken"
            columns[self.name] = Column(values, unit + per)
        return columns

    def order(self, columns: Mapping[str, Column], factor: NDArray[Any]) -> tuple[Any, ...]:
        """Return the sort keys of plans, the most important first.

        For sorting, a plan counts as `factor` times as slow or as expensive as it is.
        """
        if self.name not in ("throughput", "fewest_devices"):
            return (_rounded(columns[self.column].values * factor),)
        rate = np.asarray(columns["token_throughput"].values) / factor
        if self.name == "throughput":
            return (-_rounded(rate),)
        # First those that are fast enough, then all others
        slow = rate < (1 - self.within) * rate.max()
        return (slow, np.where(slow, 0, columns["devices"].values), -_rounded(rate))

    def cost(self, fleet: Fleet, days: NDArray[Any], utilization: NDArray[Any]) -> NDArray[Any]:
        """Return the cost of a fleet with a price for some days, in USD."""
        column = self._prices[fleet.name].column
        return np.asarray(self.costs(fleet, days, utilization)[column].to("USD").magnitude)

    def costs(self, fleet: Fleet, days: NDArray[Any], utilization: NDArray[Any]) -> Sweep:
        """Return all costs of a fleet with a price for some days."""
        price = self._prices[fleet.name]
        axes: dict[str, Any] = {"duration_days": days}
        more = dict(price.arguments)
        if not price.rented:  # the rent includes electricity
            axes["utilization"] = _drawn(fleet, utilization)
            more |= {"kwh_price": self._kwh_price, "datacenter": self._place}
        costs: Sweep = sweep(EconomicsSolver, how="zip", fleet=fleet, **axes, **more)
        return costs

    def _cost(self, fleet: Fleet, answers: Sweep, days: NDArray[Any]) -> tuple[NDArray[Any], str]:
        drawn = np.asarray(answers["power_utilization"], dtype=float)
        return self.cost(fleet, days, drawn), "USD"

    def _carbon(self, fleet: Fleet, answers: Sweep, days: NDArray[Any]) -> tuple[NDArray[Any], str]:
        table = self.footprints(fleet, days, np.asarray(answers["power_utilization"], dtype=float))
        every = np.asarray(table["total_carbon"].to("kg").magnitude)
        fuel = np.asarray(table["carbon_footprint"].to("kg").magnitude)
        return np.where(np.isnan(every), fuel, every), "kg"

    def footprints(self, fleet: Fleet, days: NDArray[Any], utilization: NDArray[Any]) -> Sweep:
        """Return the energy and carbon of a fleet for some days."""
        axes: dict[str, Any] = {"duration_days": days, "utilization": _drawn(fleet, utilization)}
        place = self._place
        table: Sweep = sweep(SustainabilitySolver, how="zip", fleet=fleet, datacenter=place, **axes)
        return table


def _drawn(fleet: Fleet, utilization: NDArray[Any]) -> NDArray[Any]:
    """Return the position of the power of devices, which must be known."""
    if np.isnan(utilization).any():
        raise ConfigError(
            f"fleet: the design power of {fleet.node.accelerator.name} is not known, so "
            "neither is its energy: choose another goal, or a fleet whose accelerator has one",
            argument="fleet",
        )
    return utilization


def _rounded(values: Any) -> NDArray[Any]:
    """Return logarithms without their last digits: plans that differ by rounding are equal."""
    return np.asarray(np.round(np.log(values), 9))
