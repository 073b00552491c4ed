"""Slices of a sweep: the same table whoever computes it, and none lost, doubled or misplaced."""

import math
import multiprocessing
import operator
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsysim import (
    Q_,
    ConfigError,
    DistributedSolver,
    ExecutorError,
    Hardware,
    Models,
    SingleNodeSolver,
    Systems,
    sweep,
)
from mlsysim.sweeps import slices
from mlsysim.sweeps.slices import run_slices

PLANS = {
    "model": Models.Llama3_70B,
    "fleet": Systems.Clusters.Research_256,
    "seq_len": 2048,
    "batch_size": np.arange(1, 626) * 32,
    "precision": ["fp16", "fp8"],
    "tp_size": [1, 3, 8],
    "pp_size": [1, 4, 5],
    "microbatch_count": [4, 8, 16, 32, 64],
    "invalid": "mark",
}
NETWORKS = {
    "model": Models.ResNet50,
    "hardware": Hardware.H100,
    "efficiency": np.linspace(0.3, 0.7, 40_000),
    "batch_size": np.arange(40_000) % 300 + 1,
    "how": "zip",
}
threads = partial(ThreadPoolExecutor, 3)
spawned = partial(ProcessPoolExecutor, 2, mp_context=multiprocessing.get_context("spawn"))


def assert_same(table, other):
    """Compare two tables row by row, bit by bit."""
    assert list(table.columns) == list(other.columns)
    assert table.units == other.units
    for name in table.columns:
        ours, theirs = (np.asarray(t._column(name).values) for t in (table, other))
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs, err_msg=name)


@pytest.fixture(scope="module")
def plans():
    table = sweep(DistributedSolver, **PLANS)
    assert len(table) > 3 * slices._CACHED
    return table


@pytest.mark.parametrize("make", [threads, spawned], ids=["threads", "spawned"])
def test_who_computes_does_not_change_a_bit(make, plans):
    networks = sweep(SingleNodeSolver, **NETWORKS)
    with make() as executor:
        assert_same(sweep(DistributedSolver, **PLANS, executor=executor), plans)
        assert_same(sweep(SingleNodeSolver, **NETWORKS, executor=executor), networks)
    assert_same(sweep(SingleNodeSolver, **NETWORKS, executor=make), networks)


def numbers(i):
    """Stand in for a model: its outputs differ in type, shape and width from slice to slice."""
    row, twice = i.row, i.twice
    first = float(np.asarray(row).flat[0])
    return {
        "row": np.asarray(row, int if first == 0 else float),
        "twice": twice + twice,
        "word": np.where(np.asarray(row) >= 0, "none" if first == 0 else "overhead", ""),
    }


@given(shape=st.lists(st.integers(1, 12), max_size=4).map(tuple), cached=st.integers(1, 200))
@settings(deadline=None)
def test_every_row_is_at_its_place(shape, cached):
    """However the grid is cut, and whatever becomes of a column's type on the way."""
    total = math.prod(shape)
    row = np.arange(total, dtype=float).reshape(shape)
    last = np.arange(shape[-1], dtype=float) if shape else np.array(0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "_CACHED", cached)
        cuts = slices.cut(shape, cached)
        found = run_slices(numbers, SimpleNamespace(row=row, twice=last), shape)
    edges = [0, *(cut.rows.stop for cut in cuts)]
    assert [cut.rows.start for cut in cuts] == edges[:-1]
    assert edges[-1] == total
    assert max(cut.rows.stop - cut.rows.start for cut in cuts) <= cached
    assert found["row"].shape == shape
    assert found["row"].ravel().tolist() == list(range(total))
    assert (found["twice"] == 2 * last).all()
    assert found["word"].ravel()[-1] == ("none" if len(cuts) == 1 else "overhead")


class Losing(Executor):
    """Loses slices: `losses` says how often, for each of them in the order of submission."""

    def __init__(self, losses):
        self.losses = losses
        self.submitted = Counter()

    def submit(self, task, *arguments):
        inputs = arguments[1]
        first = float(np.asarray(inputs.batch_size).flat[0])
        self.submitted[first] += 1
        place = list(self.submitted).index(first)
        future = Future()
        if self.submitted[first] > self.losses(place):
            future.set_result(task(*arguments))
        elif place % 2:
            raise RuntimeError("not taken")
        else:
            future.set_exception(RuntimeError("worker died"))
        return future


def test_lost_slices_are_submitted_again(plans):
    executor = Losing(lambda place: place % 3)
    assert_same(sweep(DistributedSolver, **PLANS, executor=executor), plans)
    assert sorted(executor.submitted.values()) == [1, 1, 2, 3]


def test_slices_lost_too_often_are_an_error_that_names_the_rows():
    executor = Losing(lambda place: 9 if place in (1, 2) else 0)
    with pytest.raises(
        ExecutorError, match=r"lost rows 14040 to 28079, and 1 more slices"
    ) as caught:
        sweep(DistributedSolver, **PLANS, executor=executor)
    assert caught.value.rows == (14_040, 28_080)
    assert caught.value.attempts == 3
    assert "worker died" in str(caught.value)
    assert sorted(executor.submitted.values()) == [1, 1, 3, 3]


class Returning(Executor):
    """Returns what `answer` makes of a future of the right outputs."""

    def __init__(self, answer):
        self.answer = answer

    def submit(self, task, *arguments):
        future = Future()
        future.set_result(task(*arguments))
        return self.answer(future)


def done(result):
    future = Future()
    future.set_result(result)
    return future


SAME = done(None)
BROKEN = {
    "nothing": lambda future: None,
    "the outputs themselves": lambda future: future.result(),
    "the same future for all": lambda future: SAME,
    "outputs of None": lambda future: done(None),
    "outputs in a list": lambda future: done([future.result()]),
    "one row less": lambda future: done({n: np.ones(3) for n in future.result()}),
    "no column": lambda future: done({}),
    "ragged rows": lambda future: done({"latency": [[1], [1, 2]]}),
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
def test_an_executor_that_returns_something_else_is_an_error(answer):
    """One that returned no future made a sweep wait forever."""
    with pytest.raises(ExecutorError) as caught:
        sweep(DistributedSolver, **PLANS, executor=Returning(answer))
    assert caught.value.rows[0] == 0
    assert caught.value.attempts == 3


def test_a_slice_without_one_of_the_columns_is_an_error():
    """Its rows would be whatever was in memory."""
    seen = []

    def answer(future):
        seen.append(future)
        return future if len(seen) == 1 else done({"mfu": future.result()["mfu"]})

    with pytest.raises(ExecutorError, match="other columns") as caught:
        sweep(DistributedSolver, **PLANS, executor=Returning(answer))
    assert caught.value.rows[0] > 0


def kill_one(done, total):
    """Kill one worker, as a machine out of memory would."""
    workers = multiprocessing.active_children()
    if workers:
        os.kill(workers[0].pid, signal.SIGKILL)


class Once:
    """Calls a function of the progress the first time only."""

    def __init__(self, action):
        self.action = action
        self.seen = []

    def __call__(self, done, total):
        if not self.seen:
            self.action(done, total)
        self.seen.append((done, total))


LONG = PLANS | {"batch_size": np.arange(1, 10_001) * 32, "precision": "bf16"}


def test_a_new_pool_replaces_one_whose_worker_was_killed():
    kill = Once(kill_one)
    made = []

    def make():
        made.append(spawned())
        return made[-1]

    table = sweep(DistributedSolver, **LONG, executor=make, progress=kill)
    assert len(made) == 2
    assert kill.seen[-1] == (450_000, 450_000)
    assert_same(table, sweep(DistributedSolver, **LONG))


def test_a_pool_of_the_callers_is_not_replaced():
    with spawned() as executor, pytest.raises(ExecutorError, match=r"BrokenProcessPool.* function"):
        sweep(DistributedSolver, **LONG, executor=executor, progress=Once(kill_one))


@pytest.mark.parametrize("executor", [None, threads], ids=["here", "threads"])
def test_progress_counts_rows_to_the_end(executor, plans):
    seen = []

    def note(done, total):
        seen.append((done, total))

    sweep(DistributedSolver, **PLANS, executor=executor, progress=note)
    assert seen == sorted(set(seen))
    assert len(seen) > 3
    assert seen[-1] == (len(plans), len(plans))


def test_a_sweep_that_is_stopped_starts_no_more_slices():
    class EnoughError(Exception):
        pass

    def stop(done, total):
        raise EnoughError

    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(EnoughError):
            sweep(DistributedSolver, **LONG, executor=executor, progress=stop)
        queued = [executor._work_queue.get() for _ in range(executor._work_queue.qsize())]
    assert queued
    assert all(item is None or item.future.cancelled() for item in queued)


@pytest.mark.parametrize("make", [partial(ThreadPoolExecutor, 1), spawned], ids=["thread", "pool"])
def test_a_pool_that_is_shut_down_is_an_error(make):
    """`as_completed` would wait without end for the slices that it cancels."""
    executor = make()
    shut = Once(lambda done, total: executor.shutdown(wait=False, cancel_futures=True))
    with pytest.raises(ExecutorError, match="after shutdown") as caught:
        sweep(DistributedSolver, **LONG, executor=executor, progress=shut)
    assert 0 < caught.value.rows[0] < caught.value.rows[1] <= 450_000


def slowly(i):
    """Stand in for a model that takes its time, and notes when it begins and ends."""
    own = Path(i.diary) / f"{i.rows[0]:g}"
    own.with_suffix(".begun").touch()
    time.sleep(0.3)
    own.with_suffix(".ended").touch()
    return {"rows": i.rows}


def test_what_is_stopped_leaves_no_folder(tmp_path, monkeypatch):
    """Neither a folder of results, nor a worker that still writes into it."""
    diary, folder = tmp_path / "diary", tmp_path / "folder"
    diary.mkdir()
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(slices, "_CACHED", 1)

    def stop(done, total):
        raise KeyboardInterrupt

    inputs = SimpleNamespace(rows=np.arange(20.0), diary=str(diary))
    with spawned() as executor:
        with pytest.raises(KeyboardInterrupt):
            run_slices(slowly, inputs, (20,), executor, stop)
        assert list(folder.iterdir()) == []
        begun, ended = (list(diary.glob(f"*.{what}")) for what in ("begun", "ended"))
        assert 1 < len(begun) == len(ended) < 20


SWEPT = """
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
import numpy as np
from mlsysim import DistributedSolver, Models, Systems, sweep

def wait(done, total):
    # So that the sweep is not over before the signal comes, however busy the machine is.
    print(done, flush=True)
    time.sleep(60)


if __name__ == "__main__":
    # A shell starts commands in the background with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sweep(
        DistributedSolver,
        model=Models.Llama3_70B,
        fleet=Systems.Clusters.Research_256,
        batch_size=np.arange(1, 50_001) * 32,
        tp_size=[1, 8],
        pp_size=[1, 4],
        microbatch_count=[4, 8, 16, 32, 64],
        invalid="mark",
        executor=partial(ProcessPoolExecutor, 2),
        progress=wait,
    )
"""


@pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX's")
def test_ctrl_c_ends_all_and_leaves_no_folder(tmp_path):
    """A terminal sends it to the workers as well."""
    script, folder = tmp_path / "swept.py", tmp_path / "folder"
    script.write_text(SWEPT)
    folder.mkdir()
    root = str(Path(slices.__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, str(script)],
        env=os.environ | {"TMPDIR": str(folder), "PYTHONPATH": root},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        running.stdout.readline()
        os.killpg(running.pid, signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    assert running.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in errors
    assert list(folder.iterdir()) == []


def test_the_bar_is_drawn_on_standard_error(capsys):
    sweep(DistributedSolver, **PLANS, progress=True)
    drawn = capsys.readouterr()
    assert drawn.out == ""
    assert drawn.err.startswith("\r[####")
    assert drawn.err.endswith("#] 56,250 of 56,250 rows\n")
    sweep(DistributedSolver, **PLANS, progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("executor", [4, "threads", lambda: 4])
def test_what_is_no_executor_is_refused(executor):
    with pytest.raises(ConfigError, match="pass one such as ProcessPoolExecutor") as caught:
        sweep(DistributedSolver, **PLANS, executor=executor)
    assert caught.value.argument == "executor"


def test_what_is_no_progress_is_refused():
    with pytest.raises(ConfigError, match="True, False, or a function"):
        sweep(DistributedSolver, **PLANS, progress="yes")


def test_rows_and_quantities_come_back_from_a_fresh_process():
    """They belong to the same registry of units there and here."""
    fleet = Systems.Clusters.Research_256
    small = sweep(SingleNodeSolver, model=Models.ResNet50, hardware=[Hardware.H100])
    capacity_of = operator.attrgetter("node.accelerator.memory.capacity")
    first_of = operator.itemgetter(0)
    with spawned() as executor:
        capacity = executor.submit(capacity_of, fleet).result()
        twin = executor.submit(first_of, [fleet]).result()
        table = executor.submit(first_of, [small]).result()
    assert isinstance(capacity, Q_)
    assert capacity + Q_(1, "GB") == capacity_of(fleet) + Q_(1, "GB")
    assert twin == fleet
    assert table.best("throughput") == small.best("throughput")
