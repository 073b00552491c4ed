"""Plans of training jobs: find the best one, diagnose one, and compare two."""

from __future__ import annotations

from typing import Any

import click

from mlsysim.cli.formats import attributes, flat, formatted, show
from mlsysim.cli.group import BROKEN
from mlsysim.cli.options import Asking, Signature, answer_fields, signature_of
from mlsysim.cli.progress import progress_bar
from mlsysim.cli.questions import ROWS, show_rows
from mlsysim.core.files import printable
from mlsysim.core.result import plain
from mlsysim.core.table import Column, Table
from mlsysim.planner import Contrast
from mlsysim.planner import advise as find_plan
from mlsysim.planner import contrast as compare
from mlsysim.planner import diagnose as find_faults
from mlsysim.solvers import DistributedResult, DistributedSolver

_PLAN = signature_of(DistributedSolver)
_ADVICE = (
    *("goal", "searched", "can_run", "configuration", "best", "plans", "front", "alternatives"),
    *("diagnoses", "odds", "quarter", "reliability", "bill", "band", "published"),
    *("times_published", "prices", "reserve", "tight"),
)
_ODDS = ("probability", "margin", "feasible", "notes", "hinge", "flips_at", "words")


@click.command(cls=Asking, signature=Signature.of(find_plan), axes=True)
@click.option(
    "--limit", type=click.IntRange(1), default=ROWS, show_default=True, help="Plans to list."
)
@answer_fields
@formatted
def advise(arguments: dict[str, Any], fields: tuple[str, ...], limit: int, form: str) -> None:
    """Find the best way to split a training job, by trying all of them.

    Levers that you leave out are searched over all sensible values. A single value fixes a lever,
    and comma-separated values limit it. CSV and Markdown list the best plans.
    """
    with progress_bar() as progress:
        advice = find_plan(**arguments, progress=progress)
    plans = advice.plans.select(*fields) if fields else advice.plans
    if form in ("csv", "md"):
        show_rows(form, plans, limit)
        return
    forced = [f"- {item}" for item in advice.diagnoses]
    if forced:
        forced.insert(0, "Anti-patterns that the limits force on it:")
    show(
        form,
        advice,
        text=lambda: "\n".join([str(advice), *forced]),
        data=lambda: attributes(
            advice,
            *_ADVICE,
            can_run=len(advice.plans),
            plans=plans.take(range(min(limit, len(plans)))),
            odds={lever: attributes(item, *_ODDS) for lever, item in advice.odds.items()},
            prices={
                fleet: attributes(price, "rented", "amount", "source")
                for fleet, price in advice.prices.items()
            },
        ),
    )


@click.command(cls=Asking, signature=_PLAN)
@formatted
@click.pass_context
def diagnose(ctx: click.Context, arguments: dict[str, Any], form: str) -> None:
    """Name the anti-patterns of a training plan, with the change that fixes each."""
    plan = DistributedSolver.solve(**arguments)
    faults = find_faults(plan)
    columns = ("name", "gain", "evidence", "change")
    show(
        form,
        faults,
        text=lambda: "\n".join(map(str, faults)) or "None of the changes tried is faster.",
        data=lambda: plain(faults),
        table=lambda: Table(
            {name: Column([getattr(item, name) for item in faults]) for name in columns},
            limit=None,
        ),
    )
    _end(ctx, plan)


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
    ctx: click.Context, arguments: dict[str, Any], against: tuple[str, ...], form: str
) -> None:
    """Compare a training plan with another: where one spends more time than the other.

    The arguments describe the plan. --against gives the arguments that differ in the other plan:
    --against tp_size=4.
    """
    changes = _PLAN.changes(against)
    plan = DistributedSolver.solve(**arguments)
    other = DistributedSolver.solve(**arguments | changes)
    comparison = compare(plan, other)
    data = attributes(comparison, "loss", "extra_memory", "parts", "words")
    show(
        form,
        comparison,
        text=lambda: f"{comparison}\n\n{_parts_table(comparison, other)}",
        data=lambda: data,
        table=lambda: flat(data),
    )
    _end(ctx, plan, other)


def _parts_table(comparison: Contrast, other: DistributedResult) -> Table:
    """Return the parts of the step that differ by more than rounding."""
    least = 1e-9 * other.step_latency_total.to("ms").magnitude
    times = {name: value.to("ms").magnitude for name, value in comparison.parts.items()}
    differences = {name: time for name, time in times.items() if abs(time) > least}
    columns = {
        "part": Column(list(differences)),
        "extra_time": Column(list(differences.values()), "ms"),
    }
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
