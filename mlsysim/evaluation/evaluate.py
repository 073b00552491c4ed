"""Evaluates a scenario on three levels: does it fit, is it fast enough, what does it cost?"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.result import Result
from mlsysim.core.units import format_number
from mlsysim.evaluation.checks import FAIL, PASS, UNKNOWN, Check, Level
from mlsysim.evaluation.macro import Macro, macro
from mlsysim.evaluation.scorecard import Scorecard
from mlsysim.registry.operations import POWER_DRAW
from mlsysim.scenario.accounts import MACRO_FIGURES
from mlsysim.scenario.limits import Limit
from mlsysim.scenario.scenario import Scenario

__all__ = ["evaluate"]


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
    if not isinstance(scenario, Scenario):
        raise ConfigError(
            f"scenario = {shown(scenario)} is not a Scenario; pass one such as "
            "Scenarios.Smart_Doorbell",
            argument="scenario",
        )
    result = scenario.solve()
    costs = macro(scenario, result)
    runs = bool(result.feasible)
    return Scorecard(
        scenario=scenario,
        result=result,
        sustainability=costs.sustainability,
        economics=costs.economics,
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
        one = Limit(metric=limit.metric, **{bound: amount})
        check = Check(
            level=level, metric=limit.metric, status=None, value=value, bound=bound, limit=amount
        )
        status, reason = _judged(check, one, runs, missing)
        yield dataclasses.replace(check, status=status, reason=reason)


def _judged(check: Check, limit: Limit, runs: bool, missing: str) -> tuple[str, str]:
    if check.value is None:
        return UNKNOWN, missing
    if not limit.allows(check.value):
        return FAIL, _distance(check)
    if not runs:
        return UNKNOWN, "would be met, but the system is not feasible: see feasibility"
    return PASS, _distance(check)


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
    checks = tuple(
        check
        for limit in scenario.macro_limits
        for check in _checks(
            "macro", limit, costs.value(limit.metric), runs, costs.missing(limit.metric)
        )
    )
    if scenario.duration_days is None:
        return Level(name="macro", checks=checks)
    promised = {check.metric for check in checks}
    figures = tuple(
        Check(
            level="macro",
            metric=metric,
            status=None,
            value=costs.value(metric),
            reason=costs.missing(metric) if costs.value(metric) is None else "",
        )
        for metric in MACRO_FIGURES
        if metric not in promised
    )
    return Level(name="macro", checks=checks, figures=(*figures, _power_figure(costs)))


def _power_figure(costs: Macro) -> Check:
    """Return the assumed utilization of the devices, on which energy and its cost depend."""
    used = POWER_DRAW.utilization if costs.utilization is None else costs.utilization
    return Check(level="macro", metric="utilization", status=None, value=used, reason=costs.basis)
