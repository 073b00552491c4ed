"""Anti-patterns: common mistakes in a plan, with the change that fixes each.

Each pattern examines a solved plan, solves possible changes, and is reported only if a change is
faster. Its evidence and its gain are therefore the model's numbers, not rules of thumb.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from inspect import signature
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import record
from mlsysim.core.files import printable
from mlsysim.core.result import Result
from mlsysim.planner.cases import Case
from mlsysim.planner.patterns import PATTERNS
from mlsysim.solvers import DistributedResult, DistributedSolver

__all__ = ["Diagnosis", "diagnose"]


@record
class Diagnosis:
    """An anti-pattern, found in a plan.

    Attributes
    ----------
    name : str
        The anti-pattern.
    evidence : str
        The model's numbers that show it.
    change : str
        The change that fixes it.
    configuration : Mapping[str, object]
        Arguments of the improved plan, as `DistributedSolver.solve` takes them.
    gain : float
        Relative gain in tokens per second: 0.1 means 10% more.
    """

    name: str
    evidence: str
    change: str
    configuration: Mapping[str, Any] = dataclasses.field()
    gain: float

    def __str__(self) -> str:
        words = f"{self.name}: {self.evidence}; {self.change}: {self.gain:+.1%} tokens per second"
        return printable(words, lines=True)


def diagnose(plan: DistributedResult | Mapping[str, Any]) -> tuple[Diagnosis, ...]:
    """Name the anti-patterns of a plan.

    Parameters
    ----------
    plan
        A result of `DistributedSolver`, or the arguments of one.

    Returns
    -------
    tuple of Diagnosis
        The anti-patterns found, largest gain first; empty if no change helps.

    Raises
    ------
    ConfigError
        If `plan` is neither.

    Notes
    -----
    The patterns are tensor parallelism over a slow link, groups that straddle nodes, tensor groups
    wider than needed, a small batch on many replicas, few microbatches in a pipeline, needless
    accumulation, and needless recomputation. A change must keep the plan feasible and gain at least
    one percent.

    Examples
    --------
    >>> from mlsysim import Models, Systems, diagnose
    >>> found = diagnose(
    ...     {
    ...         "model": Models.Llama3_70B,
    ...         "fleet": Systems.Clusters.Research_256,
    ...         "batch_size": 256,
    ...         "seq_len": 2048,
    ...         "tp_size": 16,
    ...         "pp_size": 4,
    ...         "microbatch_count": 32,
    ...     }
    ... )
    >>> found[0].name
    'tensor parallelism over a slow link'
    """
    if isinstance(plan, DistributedResult):
        if "_origin" not in plan.__dict__:
            raise ConfigError(
                "plan was not returned by DistributedSolver.solve: give its result, or its "
                "arguments",
                argument="plan",
            )
        case = Case(dict(plan.__dict__["_origin"][1]), plan)
    elif isinstance(plan, Mapping) and not isinstance(plan, Result):
        try:
            signature(DistributedSolver.solve).bind(**plan)
        except TypeError as fault:
            raise ConfigError(
                f"plan = {shown(plan)} does not contain arguments of DistributedSolver.solve: "
                f"{fault}",
                argument="plan",
            ) from fault
        case = Case(dict(plan), DistributedSolver.solve(**plan))
    else:
        raise ConfigError(
            f"plan = {shown(plan)} is not a plan: give a result of DistributedSolver.solve, or its "
            "arguments",
            argument="plan",
        )
    found = []
    for name, pattern in PATTERNS.items():
        answer = pattern(case)
        if answer is not None:
            found.append(
                Diagnosis(
                    name=name,
                    evidence=answer.evidence,
                    change=answer.better.told(case),
                    configuration=answer.better.given,
                    gain=answer.better.gain(case),
                )
            )
    return tuple(sorted(found, key=lambda item: -item.gain))
