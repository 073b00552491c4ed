"""Traces of requests in CSV or JSON Lines, with errors that name the row.

Nothing in a file is guessed or left out: the name of a column gives its unit, and a column that
nothing reads is an error until the caller ignores it.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.files import named, read_bytes
from mlsysim.solvers.arguments import Choice, Whole

COLUMNS = ("arrival_s", "input_tokens", "output_tokens")
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Units of a column `timestamp`, in seconds."""
_TIMES: dict[str, str | None] = {
    "arrival_s": "s",
    "arrival_ms": "ms",
    "timestamp": None,
    "TIMESTAMP": None,
}
"""Columns with the time of arrival, and the unit that each name states."""
_TOKENS = {
    "input_tokens": ("input_tokens", "input_length", "ContextTokens"),
    "output_tokens": ("output_tokens", "output_length", "GeneratedTokens"),
}
"""Columns with lengths: our names, and those of Mooncake's and Azure's traces."""
_CACHED = ("cached_tokens", "hash_ids")
_KNOWN = (*_TIMES, *_TOKENS["input_tokens"], *_TOKENS["output_tokens"], *_CACHED)
_MAX_BYTES = 256 * 1024**2
_LONGEST_S = 1e8
"""Most seconds from the start of a trace."""
_LONGEST = 1e8
"""Most tokens: ten times the longest context of any model."""
_SILENCE = 0.5
"""Largest share of the duration that one gap may take; beyond it, a mean rate is meaningless."""
_FEW = 10
_USUAL_GAP = (1e-4, 10.0)
"""Mean seconds between requests that need no confirmation of the unit. Milliseconds that are read
as seconds are 1,000 times as far apart."""

_Row = Mapping[str, Any]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Trace:
    """Requests in order of arrival."""

    arrivals: NDArray[Any]
    """Arrival time of each request, in seconds."""
    prompts: NDArray[Any]
    """Tokens of each prompt."""
    answers: NDArray[Any]
    """Tokens of each answer."""
    cached: NDArray[Any] | None = None
    """Tokens of each prompt that are in the prefix cache; `None` if the trace does not contain
    them."""

    def __len__(self) -> int:
        return len(self.arrivals)

    @property
    def new_tokens(self) -> NDArray[Any]:
        """Tokens of each prompt that an engine computes, as `simulate` takes them.

        It always computes the last token of a prompt, because the answer follows from that.
        """
        if self.cached is None:
            return self.prompts
        new: NDArray[Any] = np.maximum(self.prompts - self.cached, 1)
        return new


def read_trace(
    path: str | Path,
    only: Mapping[str, str] | None = None,
    *,
    ignore: str | Sequence[str] = (),
    time_unit: str | None = None,
    hash_block: int | None = None,
    cache_blocks: int | None = None,
) -> Trace:
    """Read a trace: a CSV file with the columns `arrival_s`, `input_tokens`, `output_tokens`.

    Arrivals are in ascending order, in seconds from any start, and lengths are whole numbers of
    tokens. A file may have `arrival_ms` instead of `arrival_s`, or `timestamp` with dates or with
    numbers in `time_unit`. It may also state how much of each prompt is in the prefix cache: as
    `cached_tokens`, or as `hash_ids`, a list of the hashes of the prompt's blocks. Azure's traces
    (`TIMESTAMP`, `ContextTokens`, `GeneratedTokens`) and Mooncake's, which have one JSON object per
    line (`timestamp`, `input_length`, `output_length`, `hash_ids`), are read as published.

    Parameters
    ----------
    path
        The file.
    only
        Values of other columns, by column name: only rows with these values count.
    ignore
        Columns to leave out. Any other column that is not read is an error.
    time_unit
        Unit of the numbers in a column `timestamp`: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``.
        Mooncake's traces need ``"ms"``. With `arrival_s` or `arrival_ms`, it confirms the unit of a
        trace with unusually few or many requests: fewer than 0.1 per second on average, or more
        than 10,000.
    hash_block
        Tokens in each block of `hash_ids`; `None` takes 512, as in Mooncake's traces. A prompt must
        have one hash for each block; the last block may be partial, and its hash left out.
    cache_blocks
        Blocks that the cache keeps, the most recently used ones; `None` keeps all. A prompt is
        cached from its arrival on, but never a partial block of it. All rows use the same cache.
        This describes replicas only if they share one, or if each request goes to the replica that
        has its prefix.

    Returns
    -------
    Trace
        The requests.

    Raises
    ------
    ConfigError
        If the file cannot be read, a column is missing or unknown, or a row is wrong. The message
        names the line of the file, the problem, and what to give.
    """
    if only is not None and not isinstance(only, Mapping):
        raise ConfigError(
            f"only = {shown(only)} is not a mapping: give values by column, as in "
            "{'trace': 'code'}",
            argument="only",
        )
    name, wanted = named(path), dict(only or {})
    ignored = [ignore] if isinstance(ignore, str) else ignore
    if not isinstance(ignored, Sequence) or any(not isinstance(item, str) for item in ignored):
        raise ConfigError(
            f"ignore = {shown(ignore)} is not a list of columns: give names, as in ['user']",
            argument="ignore",
        )
    Choice.among(UNITS, optional=True).admit("time_unit", time_unit)
    blocks = Whole(optional=True)
    hash_block = blocks.admit("hash_block", hash_block)
    cache_blocks = blocks.admit("cache_blocks", cache_blocks)
    try:
        text = read_bytes(path, _MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise ConfigError(f"{name} is not text in UTF-8: {fault}", argument="trace") from fault
    table = _objects(name, text) if text.lstrip().startswith("{") else _cells(name, text)
    head = next(table)[1]
    columns = _columns(name, head, wanted, ignored)
    _check_used(columns, hash_block, cache_blocks)
    rows = [
        (line, row)
        for line, row in table
        if all(str(row[column]).strip() == word for column, word in wanted.items())
    ]
    if len(rows) < 2:
        which = f" with {', '.join(f'{c} = {w}' for c, w in wanted.items())}" if wanted else ""
        raise ConfigError(
            f"{name} has too few requests{which} ({len(rows)}): a rate needs at least two",
            argument="trace",
        )

    def each(column: str, read: Callable[[Any], _T]) -> list[_T]:
        """Read a column, with errors that name the line."""
        found = []
        for line, row in rows:
            try:
                found.append(read(row[columns[column]]))
            except _CellError as fault:
                raise _fault(name, line, f"{columns[column]} {fault}") from None
        return found

    clock = columns["arrival"]
    arrivals = _arrivals(name, clock, [line for line, _ in rows], each, time_unit)
    prompts, answers = each("input_tokens", _tokens), each("output_tokens", _tokens)
    cached = None
    if "cached_tokens" in columns:
        cached = each("cached_tokens", lambda cell: _tokens(cell, least=0))
        for (line, _), known, tokens in zip(rows, cached, prompts, strict=True):
            if known > tokens:
                raise _fault(
                    name,
                    line,
                    f"cached_tokens = {known:g} is more than the prompt has: give at most "
                    f"{columns['input_tokens']} = {tokens:g}",
                )
    elif "hash_ids" in columns:
        block = BLOCK if hash_block is None else hash_block
        hashes = each("hash_ids", _hashes)
        for (line, _), own, tokens in zip(rows, hashes, prompts, strict=True):
            if len(own) not in (tokens // block, math.ceil(tokens / block)):
                raise _fault(
                    name,
                    line,
                    f"hash_ids has {len(own)} blocks, but {tokens:g} tokens are "
                    f"{math.ceil(tokens / block)} blocks of {block}: set hash_block to the tokens "
                    "in a block, or correct the row",
                )
        cached = cached_by_blocks(hashes, prompts, block, cache_blocks)
    return Trace(
        arrivals,
        np.array(prompts),
        np.array(answers),
        None if cached is None else np.array(cached),
    )


class _CellError(Exception):
    """What is wrong with a cell, as the rest of a sentence that begins with its column."""


def _cells(name: str, text: str) -> Iterator[tuple[int, Any]]:
    """Yield the header of a CSV file, and then the line and the cells of each row by column."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    blank = 0
    head: list[str] | None = None
    try:
        for cells in reader:
            if not cells:  # allowed only at the end of the file
                blank = blank or reader.line_num
                continue
            if blank:
                raise _empty(name, blank)
            if head is None:
                head = [column.strip() for column in cells]
                yield reader.line_num, head
            elif len(cells) != len(head):
                raise _fault(name, reader.line_num, "it has more or fewer cells than the header")
            else:
                yield reader.line_num, dict(zip(head, cells, strict=True))
    except csv.Error as fault:
        raise _fault(name, reader.line_num, f"it cannot be read as a table: {fault}") from None
    if head is None:
        yield 0, []


def _objects(name: str, text: str) -> Iterator[tuple[int, Any]]:
    """Yield the keys of the first of several JSON objects, and then the line and each object."""
    blank, head = 0, None
    for line, words in enumerate(text.split("\n"), 1):
        if not words.strip():
            blank = blank or line
            continue
        if blank:
            raise _empty(name, blank)
        try:
            row = json.loads(words)
        except (ValueError, RecursionError) as fault:
            raise _fault(name, line, f"it is not a JSON object: {fault}") from None
        if not isinstance(row, dict):
            raise _fault(name, line, f"it is not a JSON object: {shown(words)}")
        if head is None:
            head = row.keys()
            yield line, list(head)
        if row.keys() != head:
            raise _fault(
                name,
                line,
                f"its keys are {', '.join(row)}, but those of the first row are {', '.join(head)}",
            )
        yield line, row


def _empty(name: str, line: int) -> ConfigError:
    return _fault(name, line, "it is empty: leave it out, or give the request that is missing")


def _columns(
    name: str, head: Sequence[str], wanted: Mapping[str, str], ignored: Sequence[str]
) -> dict[str, str]:
    """Return the file's column for each of ours, after checking that every column is used."""
    if twice := sorted({column for column in head if head.count(column) > 1}):
        raise ConfigError(f"{name} has the column {twice[0]} more than once", argument="trace")
    unknown = [column for column in ignored if column not in head]
    if unknown:
        raise ConfigError(
            f"{name} has no column {', '.join(unknown)} to ignore: its header is "
            f"{shown(', '.join(head))}",
            argument="ignore",
        )
    missing = [column for column in wanted if column not in head]
    read = [column for column in head if column not in ignored]
    found: dict[str, str] = {}
    for column, names in {"arrival": tuple(_TIMES), **_TOKENS}.items():
        match [item for item in names if item in read]:
            case []:
                missing.append("arrival_s" if column == "arrival" else column)
            case [one]:
                found[column] = one
            case several:
                raise _twice(name, several)
    if missing:
        other = " (or arrival_ms or timestamp)" if "arrival" not in found else ""
        raise ConfigError(
            f"{name} has no column {', '.join(missing)}{other}: its header is "
            f"{shown(', '.join(head))}; give {', '.join(COLUMNS)}",
            argument="trace",
        )
    found |= {column: column for column in _CACHED if column in read}
    if all(column in found for column in _CACHED):
        raise _twice(name, _CACHED)
    if idle := [column for column in read if column not in (*found.values(), *wanted)]:
        raise ConfigError(
            f"{name} has columns that are not read: {shown(', '.join(idle))}. Leave them out with "
            f"ignore, or choose rows by them with only. A trace may have {', '.join(_KNOWN)}",
            argument="trace",
        )
    return found


def _twice(name: str, columns: Sequence[str]) -> ConfigError:
    return ConfigError(
        f"{name} has {' and '.join(columns)}, which give the same information: choose one, and "
        "leave out the other with ignore",
        argument="trace",
    )


def _check_used(
    columns: Mapping[str, str], hash_block: int | None, cache_blocks: int | None
) -> None:
    """Reject arguments about blocks for a trace without them."""
    for argument, value in (("hash_block", hash_block), ("cache_blocks", cache_blocks)):
        if value is not None and "hash_ids" not in columns:
            raise ConfigError(
                f"{argument} = {value} has no effect, because the trace has no column hash_ids: "
                "leave it out",
                argument=argument,
            )


def _arrivals(
    name: str,
    clock: str,
    lines: Sequence[int],
    each: Callable[[str, Callable[[Any], Any]], list[Any]],
    unit: str | None,
) -> NDArray[Any]:
    """Return arrivals in seconds, after checking their order and that their unit is plausible."""
    own = _TIMES[clock]
    dates = own is None and unit is None
    if own is not None and unit not in (None, own):
        raise ConfigError(
            f"time_unit = {unit} contradicts the column {clock}: leave time_unit out, or name the "
            "column timestamp",
            argument="time_unit",
        )
    scale = UNITS[unit or own or "s"]
    if dates:
        times = each("arrival", _date)
        for line, time in zip(lines, times, strict=True):
            if (time.utcoffset() is None) != (times[0].utcoffset() is None):
                raise _fault(name, line, f"{clock} has a time zone in some rows but not in all")
        at = np.array([(time - times[0]).total_seconds() for time in times])
    elif own is None:
        times = each("arrival", _time)
        # Differences of times since 1970 in nanoseconds are exact only before they are scaled.
        at = np.array([scale * (time - times[0]) for time in times])
    else:
        times = each("arrival", lambda cell: _time(cell, _LONGEST_S / scale))
        at = np.array([scale * time for time in times])
    for row in np.flatnonzero(np.diff(at) < 0)[:1] + 1:
        late, early = (str(times[k]) if dates else f"{times[k]:g}" for k in (row, row - 1))
        raise _fault(
            name,
            lines[row],
            f"{clock} = {late} is before {early} of the row above: sort the rows, or if the file "
            "holds several traces, choose one with only={column: value}",
        )
    _check_silence(name, lines, at)
    if own is not None and unit is None:
        _check_unit(name, clock, lines, at)
    return at


def _check_unit(name: str, clock: str, lines: Sequence[int], at: NDArray[Any]) -> None:
    """Reject a rate that suggests another unit, unless the caller has confirmed the unit."""
    low, high = _USUAL_GAP
    gap = float(at[-1] - at[0]) / (len(at) - 1)
    if low <= gap <= high or gap == 0:
        return
    own = _TIMES[clock]
    other, column = ("milliseconds", "arrival_ms") if own == "s" else ("seconds", "arrival_s")
    raise _fault(
        name,
        lines[-1],
        f"this request comes {at[-1] - at[0]:,.6g} s after the first, so requests are {gap:.3g} s "
        f"apart on average. If the times are in {other}, name the column {column}; if they are in "
        f"{own}, confirm it with time_unit = {own}",
    )


def _number(cell: Any, wanted: str) -> float:
    text = "" if cell is None else str(cell).strip()
    if not text:
        raise _CellError("is empty: give a number, or leave out the row")
    try:
        value = float(text.replace("_", "?"))
    except ValueError:
        raise _CellError(
            f"= {shown(text)} is not a number: give {wanted}, without a unit"
        ) from None
    if not math.isfinite(value) or value < 0:
        raise _CellError(f"= {text} is out of range: give {wanted}, finite and not negative")
    return value


def _time(cell: Any, most: float = math.inf) -> float:
    value = _number(cell, "a time from the start")
    if value > most:
        raise _CellError(
            f"= {str(cell).strip()} is more than three years from the start: for times since 1970, "
            "name the column timestamp and set time_unit"
        )
    return value


def _date(cell: Any) -> datetime:
    text = "" if cell is None else str(cell).strip()
    if not text:
        raise _CellError("is empty: give a date or a time, or leave out the row")
    try:
        float(text)
    except ValueError:
        pass
    else:
        raise _CellError(
            f"= {text} has no unit: set time_unit to one of {', '.join(UNITS)} (ms for Mooncake's "
            "traces), or name the column arrival_s or arrival_ms"
        )
    try:
        if text[10:11] not in ("", " ", "T"):  # any character would separate the time of day
            raise ValueError
        return datetime.fromisoformat(text)
    except ValueError:
        raise _CellError(
            f"= {shown(text)} is not a date such as 2023-11-16 18:17:03.97, or a number with "
            "time_unit"
        ) from None


def _tokens(cell: Any, least: int = 1) -> float:
    value = _number(cell, "a whole number of tokens")
    if value != int(value):
        raise _CellError(f"= {value} must be a whole number of tokens")
    if not least <= value <= _LONGEST:
        raise _CellError(f"= {value:g} is out of range: give {least} to {_LONGEST:,.0f} tokens")
    return value


def _hashes(cell: Any) -> list[Any]:
    """Return the hashes of a prompt's blocks, from a list or from its text in JSON."""
    found = cell
    if isinstance(cell, str):
        try:
            found = json.loads(cell)
        except (ValueError, RecursionError):
            found = None
    if not isinstance(found, list) or not all(type(item) in (int, str) for item in found):
        raise _CellError(f"= {shown(cell)} is not a list of whole numbers or texts, as in [4, 17]")
    return found


def _check_silence(name: str, lines: Sequence[int], arrivals: NDArray[Any]) -> None:
    """Reject a trace that is mostly one gap, because its rate would describe neither part."""
    gaps = np.diff(arrivals)
    span, longest = float(gaps.sum()), int(gaps.argmax())
    if len(gaps) >= _FEW and gaps[longest] > _SILENCE * span > 0:
        raise _fault(
            name,
            lines[longest + 1],
            f"this request comes {gaps[longest]:,.6g} s after the one above, a gap of "
            f"{gaps[longest] / span:.0%} of the trace: a mean rate would describe neither part; "
            "split the trace at the gap",
        )


def _fault(name: str, line: int, words: str) -> ConfigError:
    return ConfigError(f"{name}, line {line}: {words}", argument="trace")


BLOCK = 512
"""Tokens in a block of Mooncake's traces."""


def cached_by_blocks(
    hashes: Sequence[Sequence[Hashable]],
    prompts: Sequence[float],
    block: int,
    capacity: int | None = None,
) -> list[float]:
    """Return the tokens of each prompt that a cache holds from earlier requests.

    These are the leading blocks that are in the cache. Only full blocks are stored. A hash is that
    of a block with everything before it. The cache keeps the most recently used blocks, up to its
    `capacity`, or all of them.
    """
    kept: OrderedDict[Hashable, None] = OrderedDict()  # in order of use
    found = []
    for own, tokens in zip(hashes, prompts, strict=True):
        full = own[: int(tokens // block)]
        hits = 0
        while hits < len(full) and full[hits] in kept:
            hits += 1
        found.append(float(hits * block))
        # A block is of use only after those before it, so the first one is used last.
        for item in reversed(full):
            kept[item] = None
            kept.move_to_end(item)
        if capacity is not None:
            while len(kept) > capacity:
                kept.popitem(last=False)
    return found
