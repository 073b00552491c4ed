"""Questions: one command for each solver, generated from the solver's declaration."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import click

import mlsysim
from mlsysim.cli.formats import MACHINE, attributes, flat, formatted, show
from mlsysim.cli.group import BROKEN, Commands
from mlsysim.cli.options import Asking, answer_fields, signature_of
from mlsysim.cli.progress import progress_bar
from mlsysim.core.derivation import Derivation
from mlsysim.core.result import plain
from mlsysim.core.table import Column, Table
from mlsysim.solvers import QUESTIONS
from mlsysim.solvers.base import Solver

__all__ = ["QUESTIONS", "ROWS", "explain", "show_rows", "solve", "sweep"]

ROWS = 20
"""Rows to show without a limit."""


def _by_question(command: click.Command, *, axes: bool = False) -> Commands:
    """Convert a command to a group: one command per question, with its solver's arguments."""
    callback = cast(Callable[..., Any], command.callback)  # click allows none
    group = Commands(
        command.name,
        help=command.help,
        subcommand_metavar="QUESTION [ARGUMENTS]...",
        epilog=f"`mlsysim {command.name} QUESTION --help` lists the arguments of a question.",
        member="question",
    )
    for question, solver in QUESTIONS.items():
        summary = inspect.cleandoc(solver.__doc__ or "").partition("\n\n")[0]
        group.add_command(
            Asking(
                signature_of(solver),
                name=question,
                params=command.params,
                axes=axes,
                callback=partial(callback, question=question, solver=solver),
                help=f"{command.help}\n\n{summary}",
                short_help=summary,
            )
        )
    return group


@_by_question
@click.command()
@formatted
@click.pass_context
def solve(
    ctx: click.Context,
    question: str,
    solver: type[Solver[Any, Any]],
    arguments: dict[str, Any],
    form: str,
) -> None:
    """Answer one question."""
    result = solver.solve(**arguments)
    show(
        form,
        result,
        data=lambda: {"question": question, "result": plain(result)},
        table=lambda: flat(plain(result)),
        markdown=result._repr_markdown_,
    )
    if "feasible" in result and not result["feasible"]:
        ctx.exit(BROKEN)


@_by_question
@click.command()
@click.option("--field", "fields", multiple=True, help="A field to derive; may be repeated.")
@click.option(
    "--depth", type=click.IntRange(1), help="Levels of steps; by default, as many as fit on a page."
)
@formatted
def explain(
    question: str,
    solver: type[Solver[Any, Any]],
    arguments: dict[str, Any],
    fields: tuple[str, ...],
    depth: int | None,
    form: str,
) -> None:
    """Derive an answer step by step."""
    derivation = solver.solve(**arguments).explain(*fields, depth=depth)
    show(
        form,
        derivation,
        data=lambda: {"question": question} | _derived(derivation),
        table=lambda: _steps(derivation),
        markdown=derivation._repr_markdown_,
    )


def _derived(derivation: Derivation) -> dict[str, Any]:
    steps = [
        {
            "name": step.name,
            "formula": step.formula.name if step.formula else "",
            "summary": step.summary,
            "equation": step.formula.documentation.equation if step.formula else step.line,
            "arguments": plain(step.arguments),
            "value": plain(step.value),
            "references": step.formula.plain_references if step.formula else "",
        }
        for step in derivation.steps
    ]
    inputs = [
        attributes(
            item,
            *("name", "value", "origin", "source", "address", "estimated"),
            source=str(item.source or ""),
            address=item.source.url if item.source else "",
        )
        for item in derivation.inputs
    ]
    return {"steps": steps, "inputs": inputs}


def _steps(derivation: Derivation) -> Table:
    """Return the steps of a derivation followed by its inputs, one row each."""
    data = _derived(derivation)
    steps, inputs = data["steps"], data["inputs"]
    amounts = flat({index: node["value"] for index, node in enumerate([*steps, *inputs])})
    columns = {
        "kind": ["step"] * len(steps) + ["input"] * len(inputs),
        "name": [node["name"] for node in (*steps, *inputs)],
        "value": amounts["value"],
        "unit": amounts["unit"],
        "from": [step["formula"] for step in steps] + [item["origin"] for item in inputs],
        "source": [step["references"] for step in steps] + [item["source"] for item in inputs],
    }
    return Table({name: Column(values) for name, values in columns.items()}, limit=None)


@partial(_by_question, axes=True)
@click.command()
@click.option(
    "--invalid",
    type=click.Choice(["raise", "mark", "drop"]),
    default="raise",
    help="What to do with invalid configurations.",
)
@click.option("--sort", metavar="FIELD", help="Sort by this field, smallest first.")
@answer_fields
@click.option(
    "--limit",
    type=click.IntRange(1),
    help=f"Rows to show; without it {ROWS}, and all of them in JSON and CSV.",
)
@formatted
def sweep(
    question: str,
    solver: type[Solver[Any, Any]],
    arguments: dict[str, Any],
    invalid: str,
    sort: str | None,
    fields: tuple[str, ...],
    limit: int | None,
    form: str,
) -> None:
    """Answer one question for many configurations. Comma-separated values are an axis."""
    with progress_bar() as progress:
        table: Any = mlsysim.sweep(solver, invalid=invalid, progress=progress, **arguments)
    if sort:
        table = table.sort(sort)
    show_rows(form, table.select(*fields) if fields else table, limit)


def show_rows(form: str, table: Table, limit: int | None) -> None:
    """Print the first rows of a table, and the number of further rows."""
    most = limit or (len(table) if form in MACHINE else ROWS)
    part = table.take(range(most)) if len(table) > most else table
    hidden = len(table) - len(part)
    more = [f"... and {hidden:,} more rows (--limit)"] if hidden else []
    show(
        form,
        part,
        text=lambda: "\n".join([str(_unlimited(part)), *more]),
        markdown=lambda: "\n\n".join([_unlimited(part)._repr_markdown_(), *more]),
    )


def _unlimited(table: Table) -> Table:
    """Return a table that prints all of its rows; a sweep prints only the first ones."""
    return Table(
        {
            name: Column(getattr(table[name], "magnitude", table[name]), table.units.get(name, ""))
            for name in table.columns
        },
        limit=None,
    )
