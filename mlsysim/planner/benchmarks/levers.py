"""Settings of a server that its operator can change, and what each change is worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mlsysim.core.errors import MLSysError
from mlsysim.core.types import PRECISIONS
from mlsysim.planner.sensitivities.questions import Question, question_behind, question_of
from mlsysim.solvers import OpenLoopResult, ServingResult

_DRAFTS, _ACCEPTED = 3, 2.0
_CACHED = 0.5


@dataclass(frozen=True)
class Lever:
    """One change of an engine's settings or of its load, and the predicted times with it."""

    words: str
    change: Mapping[str, Any]
    result: Any
    devices: int
    """Devices of the engine."""

    @property
    def sure(self) -> bool:
        """Whether it serves the same requests, and its gain does not depend on their content."""
        return not {"arrival_rate", "cached_share", "draft_tokens"} & self.change.keys()


def levers_of(result: OpenLoopResult | ServingResult) -> Iterator[Lever]:
    """Predict the same service with one setting changed at a time.

    Changes that the solver refuses, or that do not fit in memory, are left out.
    """
    solver, given = result.__dict__["_origin"]
    question = question_of(solver, given)
    for words, change in _changes(question, isinstance(result, OpenLoopResult)):
        try:
            changed = solver.solve(**{**given, **change})
            if changed.feasible:
                yield Lever(words, change, changed, devices_of(changed))
        except MLSysError:
            continue


def _changes(question: Question, opened: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the changes to try, in words and as arguments."""
    given = question.given
    i: Any = question.inputs.plain()
    yield f"tp_size {i.tp_size:.0f} → {2 * i.tp_size:.0f}", {"tp_size": int(2 * i.tp_size)}
    precision = given["precision"]
    weights = given["weight_precision"] or precision
    cache = given["kv_precision"] or precision
    for name, now, formats in (
        ("precision", precision, ("fp8",)),
        ("weight_precision", weights, ("fp8", "int4")),
        ("kv_precision", cache, ("fp8",)),
    ):
        for narrow in formats:
            known = now in PRECISIONS
            if known and PRECISIONS[now].bits > PRECISIONS[narrow].bits:
                yield f"{name} {now} → {narrow}", {name: narrow}
    if not opened and given["efficiency"] is not None:
        yield from _load(i, opened)
        return
    budget = given["token_budget"] or i.calibration.pass_tokens
    limit = "batch_limit" if opened else "max_sequences"
    sizes = [("token_budget", int(budget))]
    if given[limit] is not None:
        sizes.append((limit, int(given[limit])))
    elif i.batch_size >= 2:
        few = int(i.batch_size) // 2
        yield f"{limit} unlimited → {few}", {limit: few}
    for name, now in sizes:
        for value in (now // 2, 2 * now):
            if value >= 1:
                yield f"{name} {now} → {value}", {name: value}
    if given["turns"] == 1 and not given["cached_share"]:
        yield f"cached_share 0 → {_CACHED:g}, if prompts repeat", {"cached_share": _CACHED}
    if not given["draft_tokens"]:
        yield (
            f"draft_tokens 0 → {_DRAFTS}, if acceptance_length is {_ACCEPTED:g}",
            {"draft_tokens": _DRAFTS, "acceptance_length": _ACCEPTED},
        )
    yield from _load(i, opened)


def _load(i: Any, opened: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    if opened:
        half = i.arrival_rate / 2
        yield f"arrival_rate {i.arrival_rate:g} → {half:g} per second", {"arrival_rate": half}
    elif i.batch_size >= 2:
        few = int(i.batch_size) // 2
        yield f"batch_size {i.batch_size:.0f} → {few}", {"batch_size": few}


def devices_of(result: Any) -> int:
    """Return the devices of a result's engine."""
    inputs: Any = question_behind(result).inputs.plain()
    return int(inputs.replica_devices)
