"""The macro level: energy, carbon, water and cost of the whole system."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from mlsysim.core.errors import ConfigError
from mlsysim.core.fields import units_of
from mlsysim.core.result import Result
from mlsysim.core.types import Datacenter
from mlsysim.scenario.accounts import EconomicsSolver, SustainabilitySolver
from mlsysim.scenario.scenario import Scenario
from mlsysim.solvers import EconomicsResult, SustainabilityResult

__all__ = ["Macro", "macro"]


@dataclass
class Macro:
    """Results of the macro solvers, and the reasons for missing ones.

    `utilization` is the value they used; `basis` names its origin.
    """

    utilization: float | None = None
    basis: str = ""
    sustainability: SustainabilityResult | None = None
    economics: EconomicsResult | None = None
    reasons: dict[type[Any], str] = field(default_factory=dict)

    def value(self, metric: str) -> Any:
        """Return a metric; `None` if it is not known."""
        for answer in (self.sustainability, self.economics):
            if answer is not None and metric in answer:
                return answer[metric]
        return None

    def missing(self, metric: str) -> str:
        """Return why a metric is not known."""
        for solver, reason in self.reasons.items():
            if metric in (name for name, _, _ in units_of(solver)):
                return reason
        if metric in (name for name, _, _ in units_of(SustainabilityResult)):
            return "not known: there is no embodied-carbon figure for a standalone device"
        return "not known: it needs a unit_price or a rate that is not given"


def macro(scenario: Scenario, result: Result) -> Macro:
    """Compute energy, carbon, water and cost, if the scenario has the data."""
    utilization, basis = _utilization(scenario, result)
    found = Macro(utilization, basis)
    if scenario.duration_days is None:
        reason = "not known: the scenario has no duration (duration_days)"
        found.reasons = {SustainabilityResult: reason, EconomicsResult: reason}
        return found
    common: dict[str, Any] = {
        "fleet": scenario.fleet,
        "duration_days": scenario.duration_days,
        "utilization": utilization,
    }
    if scenario.region is None:
        reason = "not known: the scenario has no location (region)"
        found.reasons[SustainabilityResult] = reason
    else:
        try:
            found.sustainability = SustainabilitySolver.solve(**common, datacenter=scenario.region)
        except ConfigError as fault:
            found.reasons[SustainabilityResult] = f"not known: {fault}"
    try:
        found.economics = _economics(**common, **_prices(scenario, result))
    except ConfigError as fault:
        found.reasons[EconomicsResult] = f"not known: {fault}"
    return found


def _utilization(scenario: Scenario, result: Result) -> tuple[float | None, str]:
    """Return the devices' position between idle and design power, and its origin.

    Only a task that runs all the time determines the mean power of its system. For a single pass,
    it is not known how often it runs.
    """
    if scenario.utilization is not None:
        return scenario.utilization, "given"
    if scenario.question.unbroken and result["power_utilization"] is not None:
        basis = f"predicted from the workload (power calibration: {result['power_calibration']})"
        return result["power_utilization"], basis
    return None, "assumed: an upper bound"


def _economics(**arguments: Any) -> EconomicsResult:
    """Compute costs; if no price of the hardware is known, only the cost of energy."""
    known = (arguments["unit_price"], arguments["rental_price"], arguments["fleet"].node.unit_price)
    if any(price is not None for price in known):
        return EconomicsSolver.solve(**arguments)
    # The solver requires a purchase price or a rent. We pass a rent of zero and remove it again.
    answer = EconomicsSolver.solve(**{**arguments, "rental_price": 0})
    bare = dataclasses.replace(
        answer, rental_cost=None, rental_cost_per_token=None, rental_training_cost=None
    )
    bare._from(EconomicsSolver, {**arguments, "rental_price": 0})
    return bare


def _prices(scenario: Scenario, result: Result) -> dict[str, Any]:
    """Return the inputs of the cost other than power."""
    place = "datacenter" if isinstance(scenario.region, Datacenter) else "grid"
    return {
        place: scenario.region,
        "kwh_price": scenario.kwh_price,
        "unit_price": scenario.unit_price,
        "rental_price": scenario.rental_price,
        "maintenance_rate": scenario.maintenance_rate,
        "service_life": scenario.service_life,
        "token_throughput": _token_throughput(scenario, result),
    }


def _token_throughput(scenario: Scenario, result: Result) -> Any:
    """Return the tokens per second of the whole system; `None` if the task has none."""
    task = scenario.question
    if not task.tokens or not result[task.tokens]:
        return None
    if task.name == "training":
        return result[task.tokens]
    # The system serves as many copies of the model as it has room for.
    copies = scenario.fleet.total_accelerators // scenario.arguments.get("tp_size", 1)
    return result[task.tokens] * copies
