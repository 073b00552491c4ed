"""The commands `mlsysim assign` and `mlsysim grade`, which the command line loads by name."""

from __future__ import annotations

from pathlib import Path

import click

from mlsysim.cli.formats import formatted, show
from mlsysim_course.assign import assign as problem_sets
from mlsysim_course.grading import grade as graded


@click.command()
@click.argument("students", nargs=-1, required=True, metavar="STUDENT...")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Where to write; the current directory by default.",
)
@click.option("--solution", is_flag=True, help="Fill in the answers.")
def assign(students: tuple[str, ...], folder: Path, solution: bool) -> None:
    """Write a notebook with a problem set for each STUDENT. The numbers depend on the name."""
    for path in problem_sets(students, folder, solution=solution):
        click.echo(path)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@formatted
def grade(folder: Path, form: str) -> None:
    """Grade the problem sets and lab ledgers that students submitted in FOLDER.

    The name of a file up to the first dot, or of its folder, is the name of the student. The result
    has one row for each problem and each lab, and a total. Only answers are read from the files;
    everything else is computed again, and no notebook is run. Use `--format csv` for a spreadsheet.
    """
    show(form, graded(folder))
