"""Slices of a sweep: how they are cut, computed, and resubmitted after a failure.

A slice is a range of rows, small enough for its arrays to stay in the processor's cache. The cuts
depend only on the grid, so every slice is computed from the same numbers by the same operations,
here or in another process, and the table is identical to the last bit.
"""

from __future__ import annotations

import itertools
import math
import pickle
import signal
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, wait
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.errors import ConfigError, ExecutorError, shown
from mlsysim.core.forms import mapped

I = TypeVar("I")  # noqa: E741 - models call their inputs `i`
S = TypeVar("S", bound="Slice")

Executors: TypeAlias = Executor | Callable[[], Executor]
"""An executor, or a function that creates one, and another one after its workers have died."""

Progress: TypeAlias = bool | Callable[[int, int], None]
"""Whether to draw a progress bar, or a function that is called with the rows done and the total."""

_Model: TypeAlias = Callable[[Any], dict[str, Any]]

# Rows of a slice: a few dozen arrays of this length stay in cache. A million rows at once would
# go through memory for every formula, and take several times as long as the arithmetic.
_CACHED = 16_384
# How many times a slice is submitted before it counts as lost.
_ATTEMPTS = 3
# Seconds to wait for running slices when a sweep is stopped.
_PATIENCE = 5.0
_BAR = 40


@dataclass(frozen=True)
class Chosen:
    """An input with few values: the values, and which of them each row has."""

    values: NDArray[Any]
    case: NDArray[np.intp]


@dataclass(frozen=True)
class Slice:
    """A range of rows, and their position in the grid."""

    rows: slice
    box: tuple[slice, ...]
    shape: tuple[int, ...]

    def of(self, inputs: I) -> I:
        """Return the part of the inputs that these rows need."""
        return mapped(inputs, self._part)

    def checked(self, outputs: Any, names: set[str]) -> dict[str, Any]:
        """Reject anything but a model's outputs for these rows, with the names of other slices."""
        if not isinstance(outputs, dict) or not outputs:
            raise TypeError(f"the result of a slice is not a dict of columns: {shown(outputs)}")
        if names and set(outputs) != names:
            raise TypeError(
                f"the result of a slice has other columns: {shown(sorted(names ^ set(outputs)))}"
            )
        for name, value in outputs.items():
            try:
                np.broadcast_to(np.asarray(value), self.shape)
            except ValueError as fault:
                raise ValueError(
                    f"{shown(name)} does not have the shape of its rows: {fault}"
                ) from fault
        return outputs

    def _part(self, value: Any) -> Any:
        if isinstance(value, Chosen):
            return value.values[self._part(value.case)]
        if not isinstance(value, np.ndarray) or value.ndim == 0:
            return value
        # Shapes are aligned from the right, as in broadcasting.
        box = self.box[len(self.box) - value.ndim :]
        spots = [s if size > 1 else slice(None) for s, size in zip(box, value.shape, strict=True)]
        # A copy sent to a worker is contiguous. A view of the same numbers may not be, and NumPy
        # may process it differently.
        return np.ascontiguousarray(value[tuple(spots)])


def run_slices(
    model: _Model,
    inputs: Any,
    shape: tuple[int, ...],
    executor: Executors | None = None,
    progress: Progress = False,
) -> dict[str, NDArray[Any]]:
    """Run a model on all rows of a grid, slice by slice.

    An output that does not vary along an axis has a length of 1 there.
    """
    report = reporter(progress)
    lengths = _varying(inputs, shape)
    slices = cut(lengths, _CACHED)
    rows, total = math.prod(shape), math.prod(lengths)
    done = 0
    columns: dict[str, NDArray[Any]] = {}
    extents: dict[str, tuple[int, ...]] = {}
    if len(slices) > 1:
        extents = _extents(model, inputs, lengths)
    with closing(computed(model, inputs, slices, executor)) as answers:
        for piece, outputs in answers:
            for name, value in outputs.items():
                column = np.asarray(value)
                if name in extents:
                    _place(columns, name, extents[name], piece, column)
                else:
                    columns[name] = column
            done += piece.rows.stop - piece.rows.start
            report(done * rows // total, rows)
    return columns


def computed(
    model: _Model, inputs: Any, slices: Sequence[S], executor: Executors | None
) -> Generator[tuple[S, dict[str, Any]]]:
    """Run a model on slices, here or on an executor, and yield the outputs of each of them once.

    Close the generator after an error, which stops the workers at once.
    """
    if executor is None:
        return ((piece, _solve(model, piece.of(inputs))) for piece in slices)
    return _submitted(_maker(executor), model, inputs, slices)


def _varying(inputs: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the lengths of the axes along which any input varies, and 1 for the others."""
    shapes: set[tuple[int, ...]] = set()

    def note(value: Any) -> Any:
        if isinstance(value, Chosen | np.ndarray):
            shapes.add((value.case if isinstance(value, Chosen) else value).shape)
        return value

    mapped(inputs, note)
    joint = np.broadcast_shapes(*shapes)
    return (*(1 for _ in shape[len(joint) :]), *joint)


def _extents(model: _Model, inputs: Any, lengths: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the lengths of the axes along which each output varies, from a corner of the grid.

    These axes do not depend on values, because `where` evaluates both of its branches.
    """
    box = tuple(slice(0, min(2, length)) for length in lengths)
    size = tuple(part.stop for part in box)
    corner = Slice(slice(0, math.prod(size)), box, size)
    extents = {}
    for name, value in _solve(model, corner.of(inputs)).items():
        corner_shape = np.shape(value)
        corner_shape = (*(1 for _ in lengths[len(corner_shape) :]), *corner_shape)
        extents[name] = tuple(
            length if seen > 1 else 1 for length, seen in zip(lengths, corner_shape, strict=True)
        )
    return extents


def holding(
    conditions: list[Callable[[Any], Any]], inputs: Any, shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Return the rows of a grid in which all conditions on the inputs hold, as a mask."""
    lengths = _varying(inputs, shape)
    valid = np.empty(lengths, bool)
    for piece in cut(lengths, _CACHED):
        part = piece.of(inputs)
        good: Any = True
        for holds in conditions:
            good = good & holds(part)
        valid[piece.box] = good
    return np.broadcast_to(valid, shape).reshape(-1)


def cut(shape: tuple[int, ...], most: int) -> list[Slice]:
    """Cut a grid into ranges of at most so many rows, along the first axis with small parts."""
    axis = 0
    while math.prod(shape[axis + 1 :]) > most:
        axis += 1
    length, inner = math.prod(shape[axis : axis + 1]), math.prod(shape[axis + 1 :])
    pieces = -(-length // (most // inner))
    edges = [length * piece // pieces for piece in range(pieces + 1)]
    slices: list[Slice] = []
    start = 0
    for outer in itertools.product(*map(range, shape[:axis])):
        for low, high in itertools.pairwise(edges):
            stop = start + (high - low) * inner
            box = (*(slice(i, i + 1) for i in outer), slice(low, high))
            box = (*box, *(slice(None) for _ in shape[axis + 1 :]))[: len(shape)]
            size = (*(1 for _ in outer), high - low, *shape[axis + 1 :])[: len(shape)]
            slices.append(Slice(slice(start, stop), box, size))
            start = stop
    return slices


def _place(
    columns: dict[str, NDArray[Any]],
    name: str,
    extent: tuple[int, ...],
    piece: Slice,
    value: NDArray[Any],
) -> None:
    """Write the values of a slice to their place, in a column with a wide enough type."""
    column = columns.get(name)
    if column is None:
        column = np.empty(extent, value.dtype)
    # Words differ in length, and a slice may hold only whole numbers.
    columns[name] = column = column.astype(np.result_type(column, value), copy=False)
    place = zip(piece.box, extent, strict=True)
    column[tuple(part if length > 1 else slice(None) for part, length in place)] = value


def _solve(model: _Model, inputs: Any, attempt: int = 0) -> dict[str, Any]:
    """Run the model on one slice: the task that travels to the workers.

    Dask identifies tasks by their arguments, and repeats the failure of a task that failed before.
    The attempt number makes it a different task.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return model(inputs)


def _solve_to_file(folder: str, model: _Model, inputs: Any, attempt: int) -> str:
    """Run the model on one slice, and return the path of a file with its outputs.

    Ctrl-C reaches workers too. If it interrupts a worker that is returning a result, the pool's
    pipe can stay locked forever. Workers therefore ignore it, and the sweeping process stops them.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with NamedTemporaryFile(dir=folder, delete=False) as file:
        pickle.dump(_solve(model, inputs, attempt), file)
    return file.name


def _from_file(path: str) -> dict[str, Any]:
    with Path(path).open("rb") as file:
        outputs: dict[str, Any] = pickle.load(file)
    Path(path).unlink()
    return outputs


@contextmanager
def _carrier(executor: Executor) -> Iterator[tuple[Callable[..., Any], Callable[[Any], Any]]]:
    """Choose the task, and the function that turns its result into outputs.

    Workers of a process pool share one pipe for results. If a worker is killed while it writes
    megabytes, half a message stays in the pipe, and the pool waits forever for the rest. A path is
    short enough to be written at once. Writing files takes longer; a thread pool is faster.
    """
    if isinstance(executor, ProcessPoolExecutor):
        with TemporaryDirectory(prefix="mlsysim-", ignore_cleanup_errors=True) as folder:
            yield partial(_solve_to_file, folder), _from_file
    else:
        yield _solve, lambda outputs: outputs


def _submitted(
    make: Callable[[], Any], model: _Model, inputs: Any, slices: Sequence[S]
) -> Generator[tuple[S, dict[str, Any]]]:
    """Compute slices on an executor, in any order, and yield each of them once.

    An error in the model would already have been raised in this process. Any exception of a future
    therefore counts as a lost worker, and its slice is submitted again after all others are done.
    """
    left = list(slices)
    fault: Exception | None = None
    names: set[str] = set()
    for attempt in range(_ATTEMPTS):
        lost: list[S] = []
        futures: dict[Future[Any], S] = {}
        # Finished futures are put here, including canceled ones. `as_completed` would wait forever
        # for those that a pool cancels when it shuts down.
        ended: SimpleQueue[Future[Any]] = SimpleQueue()
        with make() as executor, _carrier(executor) as (task, unpacked):
            try:
                for piece in left:
                    try:
                        future = executor.submit(task, model, piece.of(inputs), attempt)
                        if not isinstance(future, Future) or future in futures:
                            raise TypeError(f"submit() returned no new Future: {shown(future)}")
                        # We would wait forever for a future that never reports its end.
                        future.add_done_callback(ended.put)
                        futures[future] = piece
                    except Exception as death:
                        fault = death
                        lost.append(piece)
                while futures:
                    future = ended.get()
                    piece = futures.pop(future)
                    try:
                        outputs = piece.checked(unpacked(future.result()), names)
                        names = set(outputs)
                    except Exception as death:
                        fault = death
                        lost.append(piece)
                        continue
                    yield piece, outputs
            finally:
                running = [future for future in futures if not future.cancel()]
                if isinstance(executor, ProcessPoolExecutor):
                    # The folder cannot be removed while a worker writes into it.
                    wait(running, _PATIENCE)
        left = lost
        if not left:
            return
    rows = min(left, key=lambda piece: piece.rows.start).rows
    more = f", and {len(left) - 1} more slices" if len(left) > 1 else ""
    raise ExecutorError(
        f"the executor lost rows {rows.start} to {rows.stop - 1}{more}, submitted {_ATTEMPTS} "
        f"times: {type(fault).__name__}: {fault}; check that workers have enough memory and this "
        "version of mlsysim; a process pool dies with any of its workers, so pass a function "
        "that makes the pool, such as functools.partial(ProcessPoolExecutor, 4)",
        rows=(rows.start, rows.stop),
        attempts=_ATTEMPTS,
    ) from fault


def _maker(executor: Executors) -> Callable[[], Any]:
    """Return a function that returns the executor of an attempt: the caller's, or a new one."""
    if isinstance(executor, Executor):
        return lambda: nullcontext(executor)
    if not callable(executor):
        raise _no_executor(executor)

    def make() -> Executor:
        made = executor()
        if not isinstance(made, Executor):
            raise _no_executor(made)
        return made

    return make


def _no_executor(value: object) -> ConfigError:
    return ConfigError(
        f"executor = {shown(value)} is not a concurrent.futures.Executor: pass one such as "
        "ProcessPoolExecutor(4), a function that makes one, or the get_executor() of a Dask client",
        argument="executor",
    )


def reporter(progress: Progress) -> Callable[[int, int], None]:
    """Return the function to call with the rows done and the total."""
    if callable(progress):
        return progress
    if not isinstance(progress, bool):
        raise ConfigError(
            f"progress = {shown(progress)} must be True, False, or a function of the rows done and "
            "the total",
            argument="progress",
        )
    return _draw if progress else lambda done, total: None


def _draw(done: int, total: int) -> None:
    """Redraw the progress bar on standard error."""
    bar = "#" * (_BAR * done // total)
    end = "\n" if done == total else ""
    sys.stderr.write(f"\r[{bar:<{_BAR}}] {done:,} of {total:,} rows{end}")
    sys.stderr.flush()
