"""Blocks of a sweep that is never a table: computed anywhere, reduced, and written as Parquet.

A block is a sweep of about a million rows. A worker computes it, writes it to a file of its own,
and returns only its reductions. The file has a temporary name until it is complete, so a block
whose file has its final name is not computed again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from mlsysim import __version__
from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import Record
from mlsysim.core.table import Column
from mlsysim.core.units import is_quantity
from mlsysim.sweeps.columns import Head, columns_of, unknown, valid_rows
from mlsysim.sweeps.grid import Grid
from mlsysim.sweeps.reductions import ROW, Reduction, Rows, joined
from mlsysim.sweeps.slices import Executors, Progress, Slice, computed, cut, reporter

# A file of a million rows has 8 MB per column, and takes about a second to compute.
_ROWS = 2**20
# Readers of Parquet pass over files whose names begin with "_" or ".".
_MANIFEST = "_sweep.json"


@dataclass(frozen=True)
class Block(Slice):
    """The rows of a block."""

    @property
    def file(self) -> str:
        """Name of the block's file; the names are in the order of the rows."""
        return f"{self.rows.start:015}.parquet"

    def of(self, inputs: Any) -> Any:
        """Return the block and its part of the grid."""
        return self, inputs.within(self.box)

    def checked(self, outputs: Any, names: set[str]) -> dict[str, Any]:
        """Reject anything but the reductions of these rows."""
        if not isinstance(outputs, dict) or set(outputs) != {"refused", "reduced"}:
            raise TypeError(f"the result of a block is not its reductions: {shown(outputs)}")
        return outputs


@dataclass(frozen=True)
class Work:
    """What to do with each block: the task that travels to the workers."""

    heads: Mapping[str, Head]
    invalid: str
    reductions: Sequence[Reduction]
    folder: Path | None

    def __call__(self, block: tuple[Block, Grid]) -> dict[str, Any]:
        """Compute a block or read its file, and return its reductions."""
        piece, grid = block
        file = None if self.folder is None else self.folder / piece.file
        rows = {ROW: Column(np.arange(piece.rows.start, piece.rows.stop))}
        if file is not None and file.exists():
            rows |= self._read(file)
            return {"refused": False, "reduced": self._reduced(rows)}
        parts = grid.parts()
        valid = valid_rows(grid, parts)
        if self.invalid == "raise" and not valid.all():
            return {"refused": True, "reduced": []}
        columns = columns_of(grid, parts, valid, self.heads)
        for name, head in self.heads.items():
            if name not in rows:  # a model of other blocks may have more outputs
                absent = Column(unknown(grid.size, head.kind), head.unit)
                rows[name] = columns.get(name, absent)
        if self.invalid == "drop":
            rows = {name: column.picked(np.flatnonzero(valid)) for name, column in rows.items()}
        if file is not None:
            self._write(file, rows)
        return {"refused": False, "reduced": self._reduced(rows)}

    def _reduced(self, rows: Rows) -> list[Rows]:
        return [reduction.reduced(rows) for reduction in self.reductions]

    def _write(self, file: Path, rows: Rows) -> None:
        pyarrow, parquet = needed_pyarrow()
        arrays, fields = [], []
        for name, head in self.heads.items():
            values, words = rows[name].values, head.kind.kind in "UO"
            kind = pyarrow.string() if words else pyarrow.from_numpy_dtype(head.kind)
            try:
                array = pyarrow.array(values, kind)
            except pyarrow.ArrowTypeError:  # names and numbers on one axis: all become text
                texts = [None if value is None else str(value) for value in values]
                array = pyarrow.array(texts, kind)
            arrays.append(array)
            fields.append(pyarrow.field(name, kind, metadata={"unit": head.unit}))
        table = pyarrow.Table.from_arrays(arrays, schema=pyarrow.schema(fields))
        partial = file.with_name(f".{file.name}.{uuid4().hex}")
        parquet.write_table(table, partial)
        partial.replace(file)

    def _read(self, file: Path) -> dict[str, Column]:
        _, parquet = needed_pyarrow()
        table = parquet.ParquetFile(file).read()
        return {name: Column(table[name].to_numpy(), h.unit) for name, h in self.heads.items()}


def run_blocks(
    grid: Grid,
    work: Work,
    arguments: Mapping[str, Any],
    executor: Executors | None,
    progress: Progress,
) -> list[Rows]:
    """Run all blocks, and return the merged reductions.

    Blocks whose files are complete are only read, or passed over if there is nothing to reduce.

    Raises
    ------
    ConfigError
        If the folder has anything else, or a row is invalid and must not be.
    """
    report = reporter(progress)
    blocks = [Block(item.rows, item.box, item.shape) for item in cut(grid.shape, _ROWS)]
    left = blocks
    if work.folder is not None:
        _claim(work.folder, _manifest(grid, work, arguments))
        if not work.reductions:
            left = [block for block in blocks if not (work.folder / block.file).exists()]
    done = grid.size - sum(map(_length, left))
    merged: list[Rows] = []
    with closing(computed(work, grid, left, executor)) as answers:
        for block, outputs in answers:
            if outputs["refused"]:
                part = grid.within(block.box)
                part.refuse(valid_rows(part, part.parts()))
            new = outputs["reduced"]
            pairs = zip(work.reductions, merged, new, strict=True) if merged else ()
            merged = [item.merged(joined(old, added)) for item, old, added in pairs] or new
            done += _length(block)
            report(done, grid.size)
    if work.folder is not None:
        for partial in work.folder.glob(".*.parquet.*"):  # of workers that were killed
            partial.unlink()
    return merged


def _length(block: Block) -> int:
    return int(block.rows.stop - block.rows.start)


def needed_pyarrow() -> tuple[Any, Any]:
    """Return the modules that write Parquet.

    Raises
    ------
    ConfigError
        If they are not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as fault:
        raise ConfigError(
            "into needs pyarrow to write Parquet: pip install pyarrow, on the workers "
            "too, or leave `into` out and pass `reduce`",
            argument="into",
        ) from fault
    return pyarrow, pyarrow.parquet


def _manifest(grid: Grid, work: Work, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the files of a folder must have in common."""
    return {
        "mlsysim": __version__,
        "solver": grid.cls.__name__,
        "rows": grid.size,
        "rows_per_file": _ROWS,
        "how": grid.how,
        "invalid": work.invalid,
        "columns": {name: head.unit for name, head in work.heads.items()},
        "arguments": {name: _digest(value) for name, value in arguments.items()},
    }


def _claim(folder: Path, manifest: dict[str, Any]) -> None:
    """Prepare a folder for a sweep, or check that it is the folder of this one."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / _MANIFEST
    if file.exists():
        earlier = json.loads(file.read_text(encoding="utf-8"))
        differing = [key for key in manifest if earlier.get(key) != manifest[key]]
        if "arguments" in differing:
            before, now = earlier["arguments"], manifest["arguments"]
            differing = [name for name in now if before.get(name) != now[name]] or differing
        if differing:
            raise ConfigError(
                f"into = {shown(folder.name)} has the files of another sweep, which differs in "
                f"{', '.join(differing)}: give a new folder, or resume with the same arguments",
                argument="into",
            )
        return
    if any(folder.iterdir()):
        raise ConfigError(
            f"into = {shown(folder.name)} has other files: give a new or an empty folder",
            argument="into",
        )
    partial = folder / f".{_MANIFEST}.{uuid4().hex}"
    partial.write_text(json.dumps(manifest, indent=2), encoding="utf-8")
    partial.replace(file)


def _digest(value: Any) -> str:
    text = json.dumps(_canonical(value))
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(value: Any) -> Any:
    """Return a value in a form whose text is the same in every process."""
    if isinstance(value, Record):
        names = [item.name for item in dataclasses.fields(value)]
        return [type(value).__name__, *([name, _canonical(getattr(value, name))] for name in names)]
    if is_quantity(value):
        return [_canonical(value.magnitude), str(value.units)]
    if isinstance(value, Mapping):
        return sorted([str(key), _canonical(item)] for key, item in value.items())
    if isinstance(value, set | frozenset):
        return sorted(repr(item) for item in value)
    if isinstance(value, np.ndarray) and value.dtype != object:
        return [value.dtype.str, hashlib.sha256(value.tobytes()).hexdigest()]
    if isinstance(value, list | tuple | np.ndarray):
        return [_canonical(item) for item in value]
    return repr(value)
