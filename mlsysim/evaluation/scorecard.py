"""The scorecard: which limits a scenario meets."""

from __future__ import annotations

import html
from typing import Any

from mlsysim.core.errors import InfeasibleError, OOMError, SLAViolation
from mlsysim.core.fields import Record, record
from mlsysim.core.files import printable
from mlsysim.core.provenance import escaped
from mlsysim.core.result import Result
from mlsysim.core.table import Column, Table
from mlsysim.evaluation.checks import FAIL, PASS, UNKNOWN, Check, Level, worst
from mlsysim.evaluation.plain import plain
from mlsysim.scenario.scenario import Scenario
from mlsysim.solvers import EconomicsResult, SustainabilityResult

__all__ = ["Scorecard"]


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
        found = {name: self.result[name] for name in names if name in self.result}
        metric = self.scenario.question.memory
        return found or {metric: self.result[metric]}

    def table(self) -> Table:
        """Return one row per check or figure."""
        rows = [row for level in self.levels for row in (*level.checks, *level.figures)]
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
        rows = [row for level in self.levels for row in (*level.checks, *level.figures)]
        widths = [
            max(len(text) for text in texts)
            for texts in zip(*(_cells(row) for row in rows), strict=True)
        ]
        for level in self.levels:
            lines.append(f"  {level.name}: {level.status or 'nothing promised'}")
            for row in (*level.checks, *level.figures):
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
