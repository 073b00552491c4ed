"""The commands.

Exit codes: 0, all is well; 1, the output cannot be written; 2, the input is invalid; 3, a limit is
broken: a promise of the scenario, or the memory of a device; 4, a limit cannot be judged; 130, the
command was interrupted.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

import mlsysim
from mlsysim import validation
from mlsysim.cli.questions import QUESTIONS, arguments_of, asking, axes_of, solver_of
from mlsysim.cli.zoo import catalog_of, listing, overview, row_details
from mlsysim.config import SimulationConfig
from mlsysim.core.errors import InfeasibleError, MLSysError, UnknownEntryError
from mlsysim.core.files import UNPRINTABLE, printable
from mlsysim.core.table import Table
from mlsysim.evaluation import evaluate as evaluate_scenario
from mlsysim.evaluation import plain
from mlsysim.evaluation.checks import FAIL, UNKNOWN
from mlsysim.scenario import Scenario, Scenarios

__all__ = ["main"]

FAILED, BAD_INPUT, BROKEN, NOT_KNOWN, INTERRUPTED = 1, 2, 3, 4, 130
_QUESTIONS = f"QUESTION is one of {', '.join(QUESTIONS)}."


class _BadInput(click.ClickException):
    exit_code = BAD_INPUT


class _Broken(click.ClickException):
    exit_code = BROKEN


class _Group(click.Group):
    """Turns the package's errors into messages and exit codes."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MLSysError as fault:
            kind = _Broken if isinstance(fault, InfeasibleError) else _BadInput
            raise kind(printable(fault.message, lines=True)) from fault

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            raise UnknownEntryError.build(args[0], "command", self.commands)
        return super().resolve_command(ctx, args)


_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _print(text: str) -> None:
    """Print text, some of which may come from a file, without letting it drive the terminal."""
    click.echo(printable(text, lines=True))


def _print_json(data: Any) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    # They can only be inside of strings, where JSON has escapes of its own.
    click.echo(UNPRINTABLE.sub(lambda found: json.dumps(found[0])[1:-1], text))


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 well; 1 the output cannot be written; 2 bad input; 3 a limit is broken; "
    "4 a limit cannot be judged; 130 interrupted.",
)
@click.version_option(mlsysim.__version__, prog_name="mlsysim")
def app() -> None:
    """Closed-form physics of machine-learning systems."""


@app.command()
@click.argument("catalog", required=False)
@click.argument("name", required=False)
@_as_json
def zoo(catalog: str | None, name: str | None, as_json: bool) -> None:
    """List the registries, one catalog of them, or one row with its sources.

    CATALOG is one of hardware, models, systems, infra.
    """
    if catalog is None:
        _show_table(overview(), as_json)
        return
    rows = catalog_of(catalog)
    if name is None:
        parts = dict(listing(rows))
        if as_json:
            _print_json({title: _table_rows(table) for title, table in parts.items()})
            return
        click.echo("\n\n".join(f"{title}\n{table}" for title, table in parts.items()))
        return
    details = row_details(rows[name])
    if as_json:
        _print_json({"name": name, "fields": details})
        return
    width = max(len(item["field"]) for item in details)
    for item in details:
        sign = "≈ " if item["estimated"] else ""
        click.echo(f"{item['field']:<{width}}  {sign}{item['text']}  [{item['source']}]")


@app.command(epilog=_QUESTIONS)
@asking
@_as_json
@click.pass_context
def solve(
    ctx: click.Context,
    /,
    question: str,
    settings: tuple[str, ...],
    as_json: bool,
    **nouns: str | None,
) -> None:
    """Answer one question."""
    solver = solver_of(question)
    result = solver.solve(**arguments_of(solver, nouns, settings))
    if as_json:
        _print_json({"question": question, "result": plain(result)})
    else:
        _print(str(result))
    if "feasible" in result and not result["feasible"]:
        ctx.exit(BROKEN)


@app.command(epilog=_QUESTIONS)
@asking
@click.option("--field", "fields", multiple=True, help="A field to derive; may be repeated.")
@_as_json
def explain(
    question: str,
    settings: tuple[str, ...],
    fields: tuple[str, ...],
    as_json: bool,
    **nouns: str | None,
) -> None:
    """Derive an answer step by step."""
    solver = solver_of(question)
    derivation = solver.solve(**arguments_of(solver, nouns, settings)).explain(*fields)
    if not as_json:
        _print(str(derivation))
        return
    steps = [
        {
            "name": step.name,
            "formula": step.formula.name,
            "summary": step.formula.documentation.summary,
            "equation": step.formula.documentation.equation,
            "arguments": plain(step.arguments),
            "value": plain(step.value),
            "references": step.formula.documentation.references,
        }
        for step in derivation.steps
    ]
    inputs = [
        {
            "name": item.name,
            "value": plain(item.value),
            "origin": item.origin,
            "source": str(item.source or ""),
            "address": item.source.url if item.source else "",
            "estimated": item.estimated,
        }
        for item in derivation.inputs
    ]
    _print_json({"question": question, "steps": steps, "inputs": inputs})


@app.command(epilog=_QUESTIONS)
@asking
@click.option(
    "--invalid",
    type=click.Choice(["raise", "mark", "drop"]),
    default="raise",
    help="What to do with configurations that make no sense.",
)
@click.option("--sort", metavar="FIELD", help="Sort by this field, smallest first.")
@click.option("--field", "fields", multiple=True, help="A column to show; may be repeated.")
@click.option("--limit", default=20, type=click.IntRange(1), help="Rows to show.")
@_as_json
def sweep(
    question: str,
    settings: tuple[str, ...],
    invalid: str,
    sort: str | None,
    fields: tuple[str, ...],
    limit: int,
    as_json: bool,
    **nouns: str | None,
) -> None:
    """Answer one question for many configurations: values between commas are an axis."""
    solver = solver_of(question)
    table: Any = mlsysim.sweep(solver, invalid=invalid, **axes_of(solver, nouns, settings))
    if sort:
        table = table.sort(sort)
    if fields:
        table = table.select(*fields)
    if not as_json and len(table) > limit:
        _print(str(table.take(range(limit))))
        click.echo(f"... and {len(table) - limit:,} more rows (--limit)")
        return
    _show_table(table, as_json)


@app.command()
@click.argument("file", metavar="FILE")
@_as_json
@click.pass_context
def evaluate(ctx: click.Context, file: str, as_json: bool) -> None:
    """Hold a scenario against its limits.

    FILE is a configuration in YAML or JSON, or the name of a scenario that comes with the package.
    """
    card = evaluate_scenario(_scenario(file))
    if as_json:
        _print_json(card.to_dict())
    else:
        _print(str(card))
    ctx.exit({FAIL: BROKEN, UNKNOWN: NOT_KNOWN}.get(card.status, 0))


@app.command()
@click.argument("file", type=click.Path())
@click.option(
    "--kind",
    help="training, serving, memory, kernels, passes or energy; by the columns if left out.",
)
@click.option("--output", type=click.Path(), help="Write every comparison to this CSV file.")
@_as_json
def validate(file: str, kind: str | None, output: str | None, as_json: bool) -> None:
    """Hold the model against measurements in a CSV FILE."""
    report = validation.validate(file, kind=kind)
    if output is not None:
        report.to_csv(output)
    if as_json:
        _print_json(report.to_dict())
    else:
        _print(str(report))


@app.command()
def schema() -> None:
    """Print the JSON Schema of configurations, for editors."""
    _print_json(SimulationConfig.json_schema())


def _scenario(file: str) -> Scenario:
    if file in Scenarios:
        found: Scenario = Scenarios[file]
        return found
    if not Path(file).suffix and not Path(file).exists():
        raise UnknownEntryError.build(file, "file or scenario", Scenarios.names())
    return SimulationConfig.from_file(file).scenario()


def _table_rows(table: Table) -> list[dict[str, Any]]:
    return [plain(row) for row in table]


def _show_table(table: Table, as_json: bool) -> None:
    if as_json:
        _print_json(_table_rows(table))
    else:
        _print(str(table))


def main() -> None:
    """Run the command line."""
    # A terminal that cannot print "≈" or "Québec" shows something else in their place.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        status = app(prog_name="mlsysim", standalone_mode=False)
    except click.ClickException as fault:
        fault.show()
        status = fault.exit_code
    except (KeyboardInterrupt, click.Abort):
        status = INTERRUPTED
    except OSError as fault:
        # The reader of a pipe may leave when it has seen enough; a full disk is worth a line.
        if not isinstance(fault, BrokenPipeError):
            click.echo(f"Error: the output cannot be written: {fault.strerror or fault}", err=True)
        sys.stdout = None
        status = FAILED
    sys.exit(status)
