"""Plans of training jobs: find the best one, diagnose one, and compare two."""

from __future__ import annotations

from typing import Any

import click

from mlsysim.cli.arguments import Signature, signature_of
from mlsysim.cli.formats import flat, formatted, records, show
from mlsysim.cli.group import BROKEN
from mlsysim.cli.options import Asking, answer_fields
from mlsysim.cli.progress import progress_bar
from mlsysim.cli.questions import ROWS, show_rows
from mlsysim.core.files import printable
from mlsysim.core.table import Column, Table
from mlsysim.planner import Advice, Alternative, Contrast, Diagnosis, Odds
from mlsysim.planner import advise as find_plan
from mlsysim.planner import contrast as compare
from mlsysim.planner import diagnose as find_faults
from mlsysim.scenario.scorecard import plain
from mlsysim.solvers import DistributedResult, DistributedSolver

__all__ = ["advise", "contrast", "diagnose"]

_PLAN = signature_of(DistributedSolver)
_SEARCH = Signature.of(find_plan)


@click.command(cls=Asking, signature=_SEARCH)
@click.option(
    "--limit", type=click.IntRange(1), default=ROWS, show_default=True, help="Plans to list."
)
@answer_fields
@formatted
def advise(
    settings: tuple[str, ...],
    fields: tuple[str, ...],
    limit: int,
    form: str,
    **words: tuple[str, ...],
) -> None:
    """Find the best way to split a training job, by trying all of them.

    Levers that you leave out are searched over all sensible values. A single value fixes a lever,
    and comma-separated values limit it. CSV and Markdown list the best plans.
    """
    arguments = _SEARCH.read(words, settings, axes=True)
    with progress_bar() as progress:
        advice = find_plan(**arguments, progress=progress)
    plans = advice.plans.select(*fields) if fields else advice.plans
    if form in ("csv", "md"):
        show_rows(form, plans, limit)
        return
    show(
        form,
        text=lambda: "\n".join([str(advice), *_forced(advice)]),
        data=lambda: _advice_data(advice, plans.take(range(min(limit, len(plans))))),
        table=lambda: plans,
    )


def _forced(advice: Advice) -> list[str]:
    """Return lines about anti-patterns in the best plan that the limits of the search force."""
    found = [f"- {item}" for item in advice.diagnoses]
    return ["Anti-patterns that the limits force on it:", *found] if found else []


def _advice_data(advice: Advice, plans: Table) -> dict[str, Any]:
    return {
        "goal": advice.goal,
        "searched": advice.searched,
        "can_run": len(advice.plans),
        "configuration": plain(advice.configuration),
        "best": plain(advice.best),
        "plans": list(records(plans)),
        "front": list(records(advice.front)),
        "alternatives": [_alternative_data(item) for item in advice.alternatives],
        "diagnoses": [_diagnosis_data(item) for item in advice.diagnoses],
        "odds": {lever: _odds_data(item) for lever, item in advice.odds.items()},
        "quarter": None if advice.quarter is None else _alternative_data(advice.quarter),
        "reliability": None if advice.reliability is None else plain(advice.reliability),
        "bill": None if advice.bill is None else plain(advice.bill),
        "band": None if advice.band is None else plain(list(advice.band)),
        "published": None if advice.published is None else plain(advice.published),
        "times_published": advice.times_published,
        "prices": {
            fleet: {"rented": price.rented, "amount": price.amount, "source": price.source}
            for fleet, price in advice.prices.items()
        },
        "reserve": plain(advice.reserve),
        "tight": advice.tight,
    }


def _alternative_data(item: Alternative) -> dict[str, Any]:
    return {
        "lever": item.lever,
        "value": plain(item.value),
        "configuration": plain(item.configuration),
        "loss": plain(item.loss),
        "words": item.words,
    }


def _odds_data(item: Odds) -> dict[str, Any]:
    return {
        "probability": item.probability,
        "margin": item.margin,
        "feasible": item.feasible,
        "notes": list(item.notes),
        "hinge": item.hinge,
        "flips_at": plain(item.flips_at),
        "words": item.words,
    }


def _diagnosis_data(item: Diagnosis) -> dict[str, Any]:
    return {
        "name": item.name,
        "evidence": item.evidence,
        "change": item.change,
        "configuration": plain(item.configuration),
        "gain": plain(item.gain),
    }


@click.command(cls=Asking, signature=_PLAN)
@formatted
@click.pass_context
def diagnose(
    ctx: click.Context, /, settings: tuple[str, ...], form: str, **words: tuple[str, ...]
) -> None:
    """Name the anti-patterns of a training plan, with the change that fixes each."""
    plan = DistributedSolver.solve(**_PLAN.read(words, settings))
    found = find_faults(plan)
    show(
        form,
        text=lambda: "\n".join(map(str, found)) or "None of the changes tried is faster.",
        data=lambda: [_diagnosis_data(item) for item in found],
        table=lambda: _diagnosis_table(found),
    )
    _end(ctx, plan)


def _diagnosis_table(found: tuple[Diagnosis, ...]) -> Table:
    columns = ("name", "gain", "evidence", "change")
    return Table(
        {name: Column([getattr(item, name) for item in found]) for name in columns}, limit=None
    )


@click.command(cls=Asking, signature=_PLAN)
@click.option(
    "--against",
    metavar="KEY=VALUE",
    multiple=True,
    required=True,
    help="An argument that differs in the other plan; may be repeated.",
)
@formatted
@click.pass_context
def contrast(
    ctx: click.Context,
    /,
    settings: tuple[str, ...],
    against: tuple[str, ...],
    form: str,
    **words: tuple[str, ...],
) -> None:
    """Compare a training plan with another: where one spends more time than the other.

    The arguments describe the plan. --against gives the arguments that differ in the other plan:
    --against tp_size=4.
    """
    given = _PLAN.read(words, settings)
    changes = _PLAN.changes(against)
    plan = DistributedSolver.solve(**given)
    other = DistributedSolver.solve(**given | changes)
    found = compare(plan, other)
    data = {
        "loss": found.loss,
        "extra_memory": plain(found.extra_memory),
        "parts": plain(found.parts),
        "words": found.words,
    }
    show(
        form,
        text=lambda: f"{found}\n\n{_parts_table(found, other)}",
        data=lambda: data,
        table=lambda: flat(data),
    )
    _end(ctx, plan, other)


def _parts_table(found: Contrast, other: DistributedResult) -> Table:
    """Return the parts of the step that differ by more than rounding."""
    least = 1e-9 * other.step_latency_total.to("ms").magnitude
    times = {name: value.to("ms").magnitude for name, value in found.parts.items()}
    shown = {name: time for name, time in times.items() if abs(time) > least}
    columns = {"part": Column(list(shown)), "extra_time": Column(list(shown.values()), "ms")}
    return Table(columns, limit=None)


def _end(
    ctx: click.Context, plan: DistributedResult, other: DistributedResult | None = None
) -> None:
    """Print which plans are not feasible, and exit with the matching code."""
    codes = [0]
    for name, result in (("The plan", plan), ("The other plan", other)):
        if result is not None and not result.feasible:
            reasons = printable("; ".join(result.reasons))
            click.echo(f"{name} is not feasible: {reasons}", err=True)
            codes.append(BROKEN)
    ctx.exit(max(codes))
