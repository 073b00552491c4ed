"""Traces of requests in CSV, with errors that name the row."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.files import named, read_bytes

__all__ = ["COLUMNS", "Trace", "read_trace"]

COLUMNS = ("arrival_s", "input_tokens", "output_tokens")
_MAX_BYTES = 256 * 1024**2
_UNIX = 1e8
"""Most seconds: larger times count from 1970, not from the start of a trace."""
_LONGEST = 1e8
"""Most tokens: ten times the longest context of any model."""
_SILENCE = 0.5
"""Largest share of the duration that one gap may take; beyond it, a mean rate is meaningless."""
_FEW = 10


@dataclass(frozen=True)
class Trace:
    """Requests in order of arrival."""

    arrivals: NDArray[Any]
    """Arrival time of each request, in seconds."""
    prompts: NDArray[Any]
    """Tokens of each prompt."""
    answers: NDArray[Any]
    """Tokens of each answer."""

    def __len__(self) -> int:
        return len(self.arrivals)


def read_trace(path: str | Path, only: Mapping[str, str] | None = None) -> Trace:
    """Read a trace: a CSV file with the columns `arrival_s`, `input_tokens`, `output_tokens`.

    Arrivals are seconds from any start, in ascending order. Lengths are whole numbers of tokens.

    Parameters
    ----------
    path
        The file.
    only
        Values of other columns, by column name: only rows with these values count.

    Returns
    -------
    Trace
        The requests.

    Raises
    ------
    ConfigError
        If the file cannot be read, a column is missing, or a row is wrong. The message names the
        line of the file, the problem, and what to give.
    """
    name, wanted = named(path), dict(only or {})
    try:
        text = read_bytes(path, _MAX_BYTES).decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        head = [column.strip() for column in reader.fieldnames or ()]
        reader.fieldnames = head
        missing = [column for column in (*COLUMNS, *wanted) if column not in head]
        if missing:
            raise ConfigError(
                f"{name} has no column {', '.join(missing)}: its header is "
                f"{shown(', '.join(head))}; give {', '.join(COLUMNS)}",
                argument="trace",
            )
        rows = [
            (reader.line_num, row)
            for row in reader
            if all((row[column] or "").strip() == word for column, word in wanted.items())
        ]
    except (UnicodeDecodeError, csv.Error) as fault:
        raise ConfigError(f"{name} cannot be read as a table: {fault}", argument="trace") from fault
    if len(rows) < 2:
        which = f" with {', '.join(f'{c} = {w}' for c, w in wanted.items())}" if wanted else ""
        raise ConfigError(
            f"{name} has {len(rows)} request(s){which}: a rate needs at least two", argument="trace"
        )
    return _checked(name, rows)


def _checked(name: str, rows: list[tuple[int, dict[str, Any]]]) -> Trace:
    found: dict[str, list[float]] = {column: [] for column in COLUMNS}
    for line, row in rows:
        if None in row or None in row.values():
            raise _fault(name, line, "it has more or fewer cells than the header")
        for column in COLUMNS:
            found[column].append(_number(name, line, column, row[column]))
        at = found["arrival_s"]
        if len(at) > 1 and at[-1] < at[-2]:
            raise _fault(
                name,
                line,
                f"arrival_s = {at[-1]:g} is before {at[-2]:g} of the row above: sort the rows, or "
                f"if the file holds several traces, choose one with only={{column: value}}",
            )
    _check_silence(name, rows, found["arrival_s"])
    return Trace(*(np.array(found[column]) for column in COLUMNS))


def _number(name: str, line: int, column: str, cell: str) -> float:
    text = cell.strip()
    if not text:
        raise _fault(name, line, f"{column} is empty: give a number, or leave out the row")
    try:
        value = float(text.replace("_", "?"))
    except ValueError:
        unit = "seconds from the start" if column == "arrival_s" else "a whole number of tokens"
        raise _fault(
            name, line, f"{column} = {shown(text)} is not a number: give {unit}, without a unit"
        ) from None
    if not math.isfinite(value) or value < 0:
        raise _fault(name, line, f"{column} = {text} must be finite and zero or more")
    if column == "arrival_s":
        if value > _UNIX:
            raise _fault(
                name,
                line,
                f"arrival_s = {text} is more than three years: convert times since 1970 and "
                "milliseconds to seconds from the start of the trace",
            )
        return value
    if value != int(value):
        raise _fault(name, line, f"{column} = {text} must be a whole number of tokens")
    if not 1 <= value <= _LONGEST:
        raise _fault(
            name, line, f"{column} = {text} is out of range: give 1 to {_LONGEST:,.0f} tokens"
        )
    return value


def _check_silence(name: str, rows: list[tuple[int, Any]], arrivals: list[float]) -> None:
    """Reject a trace that is mostly one gap, because its rate would describe neither part."""
    gaps = np.diff(arrivals)
    span, longest = float(gaps.sum()), int(gaps.argmax())
    if len(gaps) >= _FEW and gaps[longest] > _SILENCE * span > 0:
        raise _fault(
            name,
            rows[longest + 1][0],
            f"it comes {gaps[longest]:,.6g} s after the one above, which is "
            f"{gaps[longest] / span:.0%} of the trace: its rate would describe neither part; "
            "split the trace at the gap",
        )


def _fault(name: str, line: int, words: str) -> ConfigError:
    return ConfigError(f"{name}, line {line}: {words}", argument="trace")
