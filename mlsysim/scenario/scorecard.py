"""Scorecards: does a scenario fit, is it fast enough, and what does it cost?"""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mlsysim.core.errors import ConfigError, InfeasibleError, OOMError, SLAViolation
from mlsysim.core.fields import Record, record
from mlsysim.core.files import printable
from mlsysim.core.provenance import escaped
from mlsysim.core.result import Result, plain
from mlsysim.core.table import Column, Table
from mlsysim.core.types import Datacenter
from mlsysim.core.units import Quantity, format_number, is_quantity
from mlsysim.registry.operations import POWER_DRAW
from mlsysim.scenario.scenario import MACRO_FIGURES, Limit, Scenario
from mlsysim.solvers import (
    EconomicsResult,
    EconomicsSolver,
    SustainabilityResult,
    SustainabilitySolver,
)
from mlsysim.solvers.arguments import Noun

__all__ = ["FAIL", "PASS", "UNKNOWN", "Check", "Level", "Scorecard", "evaluate", "worst"]


R = TypeVar("R", bound=Result)
PASS, FAIL, UNKNOWN = "pass", "fail", "unknown"


def worst(statuses: Iterable[str | None]) -> str | None:
    """Return the status of several checks: one fail fails all, and an unknown one does not pass."""
    present = set(statuses)
    return next((status for status in (FAIL, UNKNOWN, PASS) if status in present), None)


@record
class Check(Record):
    """One metric and its limit.

    Attributes
    ----------
    level : str
        ``"feasibility"``, ``"performance"`` or ``"macro"``.
    metric : str
        The field of the result.
    status : str or None
        ``"pass"``, ``"fail"``, or ``"unknown"`` if the value is not known or the system could not
        run; `None` if there is no limit and the value is only for information.
    value : Quantity, float or None
        The solver's value.
    bound : str
        ``"at_most"`` or ``"at_least"``; empty if there is no numeric limit.
    limit : Quantity, float or None
        The limit.
    reason : str
        The reason for the status.
    """

    level: str
    metric: str
    status: str | None
    value: Quantity | float | None = None
    bound: str = ""
    limit: Quantity | float | None = None
    reason: str = ""

    @property
    def ratio(self) -> float | None:
        """The value divided by its limit; `None` if either is not known, or the limit is zero."""
        if self.value is None or not self.limit:
            return None
        ratio = self.like_limit / self.limit
        return float(ratio.to("").magnitude if is_quantity(ratio) else ratio)

    @property
    def like_limit(self) -> Any:
        """The value in the unit of its limit, if there is one."""
        comparable = hasattr(self.value, "units") and hasattr(self.limit, "units")
        return self.value.to(self.limit.units) if comparable else self.value  # type: ignore[union-attr]

    @property
    def value_text(self) -> str:
        """The value in words, in the unit of its limit."""
        if self.value is None or self.limit is None:
            return format_number(self.value)
        return _exactly(self.like_limit)

    @property
    def limit_text(self) -> str:
        """The limit in words."""
        return f"{self.bound.replace('_', ' ')} {_exactly(self.limit)}" if self.bound else ""

    def __repr__(self) -> str:
        return f"<Check {self.metric}: {self.status}>"


def _exactly(limit: Any) -> str:
    """Print an amount in its own unit, so that a value compares with its limit at a glance."""
    if not hasattr(limit, "units"):
        return format_number(limit)
    return f"{format_number(limit.magnitude)} {limit.units:~P}".rstrip()


@record
class Level(Record):
    """The checks of one kind, and figures without a limit.

    Attributes
    ----------
    name : str
        ``"feasibility"``, ``"performance"`` or ``"macro"``.
    checks : tuple of Check
        The checks of limits.
    figures : tuple of Check
        Values for information; they have no status.
    """

    name: str
    checks: tuple[Check, ...] = ()
    figures: tuple[Check, ...] = ()

    @property
    def rows(self) -> tuple[Check, ...]:
        """The checks, and then the figures."""
        return (*self.checks, *self.figures)

    @property
    def status(self) -> str | None:
        """The worst status of its checks; `None` if there are no limits."""
        return worst(check.status for check in self.checks)


@record
class Scorecard(Record):
    """Result of `evaluate`, on three levels.

    `print` shows it as text; in a notebook or on a page it is shown as a table.

    Attributes
    ----------
    scenario : Scenario
        The evaluated scenario.
    result : Result
        The result of the task's solver, which can show its work.
    sustainability : SustainabilityResult or None
        Energy, carbon and water; `None` if the scenario lacks the data.
    economics : EconomicsResult or None
        Cost; `None` if the scenario lacks the data.
    feasibility : Level
        Does it fit the memory, and can it be scheduled?
    performance : Level
        Does the solver's result meet the scenario's limits?
    macro : Level
        Do energy, carbon, water and cost meet theirs?
    """

    scenario: Scenario
    result: Result
    sustainability: SustainabilityResult | None
    economics: EconomicsResult | None
    feasibility: Level
    performance: Level
    macro: Level

    @property
    def name(self) -> str:
        """The scenario's name."""
        return self.scenario.name

    @property
    def levels(self) -> tuple[Level, Level, Level]:
        """The three levels, in the order in which they matter."""
        return self.feasibility, self.performance, self.macro

    @property
    def checks(self) -> tuple[Check, ...]:
        """Every check, level by level."""
        return tuple(check for level in self.levels for check in level.checks)

    @property
    def status(self) -> str:
        """``"pass"`` if every limit is met, ``"fail"`` if one is violated, else ``"unknown"``."""
        return worst(check.status for check in self.checks) or UNKNOWN

    def require(self) -> Scorecard:
        """Raise an error unless every limit is met.

        Returns
        -------
        Scorecard
            The scorecard itself.

        Raises
        ------
        OOMError
            If the memory is too small.
        InfeasibleError
            If the system is not feasible for another reason.
        SLAViolation
            If a limit is violated, or it is not known whether it is met.
        """
        for check in sorted(self.checks, key=lambda check: check.status != FAIL):
            if check.status != PASS:
                raise self._error(check)
        return self

    def _error(self, check: Check) -> InfeasibleError:
        if check.level != "feasibility":
            state = "is not known" if check.value is None else f"is {check.value_text}"
            return SLAViolation(
                f"{self.name}: {check.metric} {state}, and {check.limit_text} was promised: "
                f"{check.reason}",
                metric=check.metric,
                value=check.value,
                limit=check.limit,
            )
        if check.limit is None:
            return InfeasibleError(f"{self.name}: {check.reason}")
        return OOMError(
            f"{self.name}: {check.metric} is {check.value_text}, and the device has "
            f"{check.limit_text.removeprefix('at most ')}: {check.reason}",
            required=check.value,
            available=check.limit,
            by_component=self._components(),
        )

    def _components(self) -> dict[str, Any]:
        """Return the memory by purpose, if the solver reports it."""
        names = (
            "weights_memory",
            "gradient_memory",
            "optimizer_memory",
            "activation_memory",
            "model_weights_size",
            "kv_cache_size",
        )
        components = {name: self.result[name] for name in names if name in self.result}
        metric = self.scenario.question.memory
        return components or {metric: self.result[metric]}

    def table(self) -> Table:
        """Return one row per check or figure."""
        rows = [row for level in self.levels for row in level.rows]
        columns = {
            "level": [row.level for row in rows],
            "metric": [row.metric for row in rows],
            "status": [row.status or "–" for row in rows],
            "value": [row.value_text for row in rows],
            "limit": [row.limit_text or "–" for row in rows],
            "reason": [row.reason for row in rows],
        }
        return Table({name: Column(values) for name, values in columns.items()}, limit=None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data: numbers with their units, statuses, reasons."""
        return {
            "scenario": self.name,
            "description": self.scenario.description,
            "task": self.scenario.task,
            "workload": self.scenario.workload.name,
            "system": self.scenario.system.name,
            "status": self.status,
            "levels": {
                level.name: {
                    "status": level.status,
                    "checks": [_plain_check(check) for check in level.checks],
                    "figures": [_plain_check(check) for check in level.figures],
                }
                for level in self.levels
            },
            "result": plain(self.result),
            "sustainability": plain(self.sustainability),
            "economics": plain(self.economics),
        }

    def __repr__(self) -> str:
        return f"<Scorecard {self.name}: {self.status}>"

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.status}"]
        if self.scenario.description:
            lines.append(f"  {self.scenario.description}")
        cells = [_cells(row) for level in self.levels for row in level.rows]
        widths = [max(map(len, texts)) for texts in zip(*cells, strict=True)]
        for level in self.levels:
            lines.append(f"  {level.name}: {level.status or 'nothing promised'}")
            for row in level.rows:
                padded = map(str.ljust, _cells(row), widths)
                lines.append(f"    {'  '.join(padded)}  {row.reason}".rstrip())
        return printable("\n".join(lines), lines=True)

    def _repr_markdown_(self) -> str:
        return f"**{escaped(self.name)}: {self.status}**\n\n{self.table()._repr_markdown_()}"

    def _repr_html_(self) -> str:
        title = f"<p><strong>{html.escape(self.name)}: {self.status}</strong></p>"
        return f"{title}\n{self.table()._repr_html_()}"


def _cells(row: Check) -> tuple[str, str, str, str]:
    return row.status or "", row.metric, row.value_text, row.limit_text


def _plain_check(check: Check) -> dict[str, Any]:
    return {
        "metric": check.metric,
        "status": check.status,
        "value": plain(check.like_limit),
        "bound": check.bound or None,
        "limit": plain(check.limit),
        "ratio": plain(check.ratio),
        "reason": check.reason,
    }


def evaluate(scenario: Scenario) -> Scorecard:
    """Compare a scenario with its limits.

    Parameters
    ----------
    scenario
        The workload, the system, and the limits.

    Returns
    -------
    Scorecard
        One status for each limit, for each level, and overall. A limit is not met if the value is
        unknown or the system could not run.

    Raises
    ------
    ConfigError
        If `scenario` is not a scenario.

    Examples
    --------
    >>> from mlsysim import Scenarios, evaluate
    >>> card = evaluate(Scenarios.Autonomous_Vehicle)
    >>> card.status, card.performance.status
    ('pass', 'pass')
    """
    Noun(kinds=(Scenario,), hint="Scenarios.Smart_Doorbell").admit("scenario", scenario)
    result = scenario.solve()
    costs = _macro(scenario, result)
    runs = bool(result.feasible)
    return Scorecard(
        scenario=scenario,
        result=result,
        sustainability=costs.result(SustainabilityResult),
        economics=costs.result(EconomicsResult),
        feasibility=Level(name="feasibility", checks=tuple(_feasibility(scenario, result))),
        performance=Level(
            name="performance",
            checks=tuple(
                check
                for limit in scenario.limits
                for check in _checks("performance", limit, result[limit.metric], runs)
            ),
        ),
        macro=_macro_level(scenario, costs, runs),
    )


def _feasibility(scenario: Scenario, result: Result) -> Iterator[Check]:
    """Compare the result with the memory, and with its other reasons."""
    metric = scenario.question.memory
    reasons = {
        "microbatch_size" if reason.startswith("microbatches:") else metric: reason
        for reason in result["reasons"]
    }
    limit = Limit(metric=metric, at_most=result["memory_capacity"].to_compact())
    for check in _checks("feasibility", limit, result[metric]):
        reason = reasons.get(metric, check.reason) if check.status == FAIL else check.reason
        yield dataclasses.replace(check, reason=reason)
    if "microbatch_size" in result:
        whole = result["whole_microbatches"]
        yield Check(
            level="feasibility",
            metric="microbatch_size",
            status=PASS if whole else FAIL,
            value=result["microbatch_size"],
            reason="whole sequences" if whole else reasons.get("microbatch_size", ""),
        )


def _checks(
    level: str, limit: Limit, value: Any, runs: bool = True, missing: str = "not known"
) -> Iterator[Check]:
    """Yield one check for each bound of a limit."""
    for bound, amount in limit.bounds():
        check = Check(
            level=level, metric=limit.metric, status=None, value=value, bound=bound, limit=amount
        )
        status, reason = PASS, _distance(check)
        if value is None:
            status, reason = UNKNOWN, missing
        elif not Limit(metric=limit.metric, **{bound: amount}).allows(value):
            status = FAIL
        elif not runs:
            status = UNKNOWN
            reason = "would be met, but the system is not feasible: see feasibility"
        yield dataclasses.replace(check, status=status, reason=reason)


def _distance(check: Check) -> str:
    """Describe how far a value is from its limit."""
    ratio = check.ratio
    if ratio is None:
        return ""
    if ratio >= 2:
        return f"{format_number(ratio, 3)} times the limit"
    if ratio > 1:
        return f"{format_number((ratio - 1) * 100, 2)}% above the limit"
    if check.bound == "at_most" or ratio == 1:
        return f"{format_number(ratio * 100, 3)}% of the limit"
    return f"{format_number((1 - ratio) * 100, 2)}% below the limit"


def _macro_level(scenario: Scenario, costs: Macro, runs: bool) -> Level:
    checks: list[Check] = []
    for limit in scenario.macro_limits:
        value, reason = costs.figure(limit.metric)
        checks += _checks("macro", limit, value, runs, reason)
    figures = []
    if scenario.duration_days is not None:
        # Energy and its cost depend on the assumed utilization of the devices.
        used = POWER_DRAW.utilization if costs.utilization is None else costs.utilization
        promised = {check.metric for check in checks}
        known = {name: costs.figure(name) for name in MACRO_FIGURES if name not in promised}
        figures = [
            Check(level="macro", metric=metric, status=None, value=value, reason=reason)
            for metric, (value, reason) in (known | {"utilization": (used, costs.basis)}).items()
        ]
    return Level(name="macro", checks=tuple(checks), figures=tuple(figures))


@dataclass
class Macro:
    """Results of the macro solvers."""

    utilization: float | None
    """The value that they used."""
    basis: str
    """Where it comes from."""
    answers: dict[type[Result], Result | str] = field(default_factory=dict)
    """Each result, or why there is none."""

    def figure(self, metric: str) -> tuple[Any, str]:
        """Return a metric, or `None` and why it is not known."""
        kinds = [kind for kind in self.answers if metric in kind._fields()]
        results = (self.result(kind) for kind in kinds)
        value = next((result[metric] for result in results if result is not None), None)
        if value is not None:
            return value, ""
        for kind in kinds:
            if isinstance(reason := self.answers[kind], str):
                return None, reason
        if SustainabilityResult in kinds:
            return None, "not known: there is no embodied-carbon figure for a standalone device"
        return None, "not known: it needs a unit_price or a rate that is not given"

    def result(self, kind: type[R]) -> R | None:
        """Return the result of a kind, if there is one."""
        answer = self.answers[kind]
        return answer if isinstance(answer, kind) else None


def _macro(scenario: Scenario, result: Result) -> Macro:
    """Compute energy, carbon, water and cost, if the scenario has the data."""
    costs = Macro(*_utilization(scenario, result))
    if scenario.duration_days is None:
        reason = "not known: the scenario has no duration (duration_days)"
        costs.answers = {SustainabilityResult: reason, EconomicsResult: reason}
        return costs
    common: dict[str, Any] = {
        "fleet": scenario.fleet,
        "duration_days": scenario.duration_days,
        "utilization": costs.utilization,
    }
    costs.answers[SustainabilityResult] = (
        "not known: the scenario has no location (region)"
        if scenario.region is None
        else _known(SustainabilitySolver.solve, **common, datacenter=scenario.region)
    )
    prices = _prices(scenario, result)
    costs.answers[EconomicsResult] = _known(_economics, **common, **prices)
    return costs


def _known(solve: Callable[..., Any], **arguments: Any) -> Result | str:
    """Return an answer, or why there is none."""
    try:
        answer: Result = solve(**arguments)
    except ConfigError as fault:
        return f"not known: {fault}"
    return answer


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
    prices = (
        arguments["unit_price"],
        arguments["rental_price"],
        arguments["fleet"].node.unit_price,
    )
    if any(price is not None for price in prices):
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
    prices = {
        item.name: getattr(scenario, item.name)
        for item in dataclasses.fields(scenario)
        if not item.metadata.get("plain", True)
    }
    tokens = _token_throughput(scenario, result)
    return {place: scenario.region, **prices, "token_throughput": tokens}


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
