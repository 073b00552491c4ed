"""`python -m mlsysim.labs` opens a lab on this machine, as a marimo app."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import click

from mlsysim.labs.catalog import LABS

APP = Path(__file__).parent / "apps" / "lab.py"


@click.command(epilog=f"LAB is one of {', '.join(LABS)}; without it, {LABS[0]}.")
@click.argument("lab", type=click.Choice(LABS), default=LABS[0], metavar="[LAB]")
@click.option(
    "--ledger",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for your answers; by default LAB_ledger.json in this folder.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Port of the local server.")
@click.option("--headless", is_flag=True, help="Do not open a browser.")
def main(lab: str, ledger: Path | None, port: int | None, headless: bool) -> None:
    """Open LAB in a browser. It runs on this machine and does not use the network."""
    if importlib.util.find_spec("marimo") is None:
        raise click.ClickException(
            "the labs need marimo, which is not installed: pip install marimo"
        )
    kept = (ledger or Path(f"{lab}_ledger.json")).absolute()
    options = [*(["--port", str(port)] if port else []), *(["--headless"] if headless else [])]
    command = [sys.executable, "-m", "marimo", "run", *options, str(APP)]
    _become([*command, "--", "--lab", lab, "--ledger", str(kept)])


def _become(command: list[str]) -> NoReturn:
    """Run a command instead of this one, so that signals reach it."""
    if os.name == "posix":
        os.execv(command[0], command)
    raise SystemExit(subprocess.call(command))


if __name__ == "__main__":
    main(prog_name="python -m mlsysim.labs")
