"""Calls of the command line."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from mlsysim.cli.app import app


def call(*words: object) -> Result:
    """Run a command; errors that it does not expect are raised here."""
    return CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)


def printed(*words: object, code: int = 0) -> str:
    """Return the output of a command."""
    done = call(*words)
    assert done.exit_code == code, done.output
    return done.stdout


def data(*words: object, code: int = 0) -> Any:
    """Return the output of a command as JSON."""
    return json.loads(printed(*words, "--json", code=code))


def settings(*pairs: str) -> list[str]:
    """Return options that set arguments by their Python names."""
    return [word for pair in pairs for word in ("--set", pair)]
