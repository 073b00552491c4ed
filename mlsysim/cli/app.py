"""The commands.

Exit codes: 0, success; 1, the output cannot be written; 2, the input is invalid; 3, a limit is
violated: one of the scenario's, or the memory of a device; 4, a limit cannot be checked; 130, the
command was interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem

import mlsysim
from mlsysim import validation
from mlsysim.cli.formats import flat, formatted, print_json, show
from mlsysim.cli.group import BROKEN, FAILED, INTERRUPTED, NOT_KNOWN, Commands, NotWritten
from mlsysim.cli.options import Names
from mlsysim.cli.plans import advise, contrast, diagnose
from mlsysim.cli.questions import explain, solve, sweep
from mlsysim.cli.services import capacity, compare, serve_plan
from mlsysim.cli.zoo import support, zoo
from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.result import plain
from mlsysim.core.table import Column, Table
from mlsysim.core.types import Calibration
from mlsysim.registry.names import entries
from mlsysim.scenario import Scenario, Scenarios
from mlsysim.scenario.config import SimulationConfig
from mlsysim.scenario.scorecard import FAIL, UNKNOWN, Scorecard
from mlsysim.scenario.scorecard import evaluate as evaluate_scenario
from mlsysim.validation.columns import KINDS
from mlsysim.validation.forecasts import read_forecasts, score

SECTIONS = {
    "Look up": ("zoo", "support", "forecast"),
    "Ask a question": ("solve", "explain", "sweep"),
    "Plan training": ("advise", "diagnose", "contrast"),
    "Plan a service": ("serve-plan", "capacity", "compare"),
    "Check files": ("evaluate", "validate", "calibrate", "schema"),
    "Teach a course": ("assign", "grade"),
}
# Another distribution offers these as entry points.
COURSE = dict.fromkeys(("assign", "grade"), "mlsysim-course")


@click.group(
    cls=Commands,
    sections=SECTIONS,
    neighbors=COURSE,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 success; 1 the output cannot be written; 2 invalid input; 3 a limit is "
    "violated; 4 a limit cannot be checked; 130 interrupted.",
)
@click.version_option(mlsysim.__version__, prog_name="mlsysim")
def app() -> None:
    """Closed-form physics of machine-learning systems."""


for _command in (
    *(zoo, support, solve, explain, sweep),
    *(advise, diagnose, contrast, serve_plan, capacity, compare),
):
    app.add_command(_command)


class _File(Names):
    """A scenario's name, or a file."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the names of scenarios, and leave file names to the shell."""
        named = super().shell_complete(ctx, param, incomplete) if incomplete else []
        return named or [CompletionItem(incomplete, type="file")]


@app.command()
@click.argument("file", metavar="FILE", type=_File(lambda _: Scenarios.names()))
@formatted
@click.pass_context
def evaluate(ctx: click.Context, file: str, form: str) -> None:
    """Check a scenario against its limits.

    FILE is a configuration in YAML or JSON, or the name of a built-in scenario.
    """
    card = evaluate_scenario(_scenario(file))
    show(form, card, table=lambda: _checks(card), markdown=card._repr_markdown_)
    ctx.exit({FAIL: BROKEN, UNKNOWN: NOT_KNOWN}.get(card.status, 0))


def _checks(card: Scorecard) -> Table:
    """Return one row per check or figure, with numbers and units in separate columns."""
    rows = [row for level in card.levels for row in level.rows]
    values = flat({index: plain(row.like_limit) for index, row in enumerate(rows)})
    limits = flat({index: plain(row.limit) for index, row in enumerate(rows)})
    columns = {
        "level": [row.level for row in rows],
        "metric": [row.metric for row in rows],
        "status": [row.status or None for row in rows],
        "value": values["value"],
        "unit": values["unit"],
        "bound": [row.bound or None for row in rows],
        "limit": limits["value"],
        "reason": [row.reason for row in rows],
    }
    return Table({name: Column(cells) for name, cells in columns.items()}, limit=None)


@app.command()
@click.argument("file", type=click.Path())
@click.option(
    "--kind",
    help=f"{', '.join(KINDS)}; by default, inferred from the columns.",
)
@click.option("--output", type=click.Path(), help="Write every comparison to this CSV file.")
@click.option(
    "--calibration",
    metavar="NAME",
    type=Names(lambda _: entries(Calibration)),
    help="Training constants: a name, or the YAML file that `mlsysim calibrate` wrote.",
)
@formatted
def validate(
    file: str, kind: str | None, output: str | None, calibration: str | None, form: str
) -> None:
    """Compare the model with measurements in a CSV FILE.

    Its columns have the names of the arguments of `mlsysim solve`, and measured columns those of
    the fields of its result, with their unit: ttft (ms).
    """
    _check_output(file, output)
    report = validation.validate(file, kind=kind, calibration=calibration)
    _write(report.to_csv, output)
    show(form, report)


@app.command()
@click.argument("results", required=False, type=click.Path())
@click.option(
    "--file",
    type=click.Path(),
    help="CSV file of forecasts; by default, the built-in ones.",
)
@formatted
def forecast(results: str | None, file: str | None, form: str) -> None:
    """List dated forecasts, and score them against published results.

    RESULTS is a CSV file with the columns id, value and unit.
    """
    show(form, score(read_forecasts(file), [] if results is None else results))


@app.command()
@click.argument("file", type=click.Path())
@click.option("--output", type=click.Path(), help="Write the calibration to this YAML file.")
@click.option(
    "--base",
    metavar="NAME",
    type=Names(lambda _: entries(Calibration)),
    help="Constants to start from; by default, those of the column calibration or of the device.",
)
@formatted
def calibrate(file: str, output: str | None, base: str | None, form: str) -> None:
    """Fit the training constants to the measured runs of your cluster.

    FILE is a CSV file of step times, with the columns that `mlsysim validate` reads for training.
    """
    _check_output(file, output)
    name = Path(file if output is None else output).stem
    calibration = mlsysim.calibrate(file, base=base, name=name)
    _write(calibration.save, output)
    show(form, calibration)


def _check_output(file: str, output: str | None) -> None:
    """Reject to overwrite the measurements."""
    overwrites = False
    with suppress(OSError, ValueError):  # a path that does not exist, or that cannot be read
        overwrites = output is not None and Path(file).samefile(output)
    if overwrites:
        raise ConfigError(
            f"--output {shown(output)} is the file of measurements, and the report would "
            "replace it: name another file",
            argument="output",
        )


def _write(write: Callable[[str], object], output: str | None) -> None:
    """Write a file, if one is named; if it cannot be written, the command exits with a code."""
    try:
        if output is not None:
            write(output)
    except ConfigError as fault:
        raise NotWritten(fault.message) from fault


@app.command()
def schema() -> None:
    """Print the JSON Schema of configurations, for editors."""
    print_json(SimulationConfig.json_schema())


def _scenario(file: str) -> Scenario:
    if file in Scenarios:
        scenario: Scenario = Scenarios[file]
        return scenario
    if not Path(file).suffix and not Path(file).exists():
        raise UnknownEntryError.build(file, "file or scenario", Scenarios.names())
    return SimulationConfig.from_file(file).scenario()


def main() -> None:
    """Run the command line."""
    # A terminal that cannot print "≈" or "Québec" shows replacement characters.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    if sys.stdout is None:  # `mlsysim zoo >&-`: click would silently print nothing
        click.echo("Error: the output cannot be written: standard output is closed", err=True)
        sys.exit(FAILED)
    try:
        status = app(prog_name="mlsysim", standalone_mode=False)
    except click.ClickException as fault:
        fault.show()
        status = fault.exit_code
    except (KeyboardInterrupt, click.Abort):
        status = INTERRUPTED
    except OSError as fault:
        # The reader of a pipe may close it early; a full disk needs a message.
        if not isinstance(fault, BrokenPipeError):
            click.echo(f"Error: the output cannot be written: {fault.strerror or fault}", err=True)
        sys.stdout = None
        status = FAILED
    sys.exit(status)
