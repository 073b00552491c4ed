"""Sweeps that are never a table: their files and reductions are those of the whole table."""

import json
import multiprocessing
import os
import signal
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from mlsysim import (
    Best,
    ConfigError,
    DistributedSolver,
    ExecutorError,
    Hardware,
    Models,
    ParallelismError,
    Pareto,
    Quantiles,
    SingleNodeSolver,
    Systems,
    sweep,
)
from mlsysim.sweeps import blocks

parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra mlsysim[parquet]")

PLANS = {
    "model": [Models.Llama3_70B, Models.GPT3],
    "fleet": Systems.Clusters.Research_256,
    "seq_len": 2048,
    "efficiency": [None, 0.5],
    "batch_size": np.arange(1, 61) * 32,
    "precision": ["fp16", "fp8"],
    "tp_size": [1, 3, 8],
    "pp_size": [1, 4, 5],
    "microbatch_count": [4, 8, 16, 32, 64],
    "invalid": "mark",
}
ROWS = 21_600
REDUCTIONS = [
    Best("effective_throughput", count=3),
    Pareto(largest="effective_throughput", smallest=["memory", "batch_size"]),
    Quantiles("mfu", "step_latency_total", at=(0, 0.25, 0.5, 0.99, 1)),
]
threads = partial(ThreadPoolExecutor, 3)
spawned = partial(ProcessPoolExecutor, 2, mp_context=multiprocessing.get_context("spawn"))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "_ROWS", 1000)


@pytest.fixture(scope="module")
def plans():
    table = sweep(DistributedSolver, **PLANS)
    assert len(table) == ROWS
    return table


def rows_of(table):
    """Return a table's columns as lists, with `None` for what is unknown."""
    columns = {name: np.asarray(table._column(name).values) for name in table.columns}
    return {
        name: np.where(np.isnan(values), None, values).tolist()
        if values.dtype.kind == "f"
        else values.tolist()
        for name, values in columns.items()
    }


def rows_in(folder):
    return {
        name: [None if value != value else value for value in values]
        for name, values in parquet.read_table(folder).to_pydict().items()
    }


@pytest.mark.parametrize("make", [lambda: None, threads, spawned], ids=["here", "threads", "pool"])
def test_files_have_the_rows_of_the_table(make, plans, tmp_path):
    folder = sweep(DistributedSolver, **PLANS, into=tmp_path / "plans", executor=make() or None)
    assert folder == tmp_path / "plans"
    files = sorted(folder.glob("*.parquet"))
    assert len(files) == 24  # 900 rows of each model, mode and six or seven batch sizes
    schema = parquet.read_schema(files[0])
    assert schema.field("step_latency_total").metadata == {b"unit": b"s"}
    assert all(parquet.read_schema(file).equals(schema, check_metadata=True) for file in files)
    assert rows_in(folder) == rows_of(plans)


def test_rows_that_are_dropped_keep_their_numbers(plans, tmp_path):
    chosen = {"columns": ["mfu"], "invalid": "drop"}
    folder = sweep(DistributedSolver, **PLANS | chosen, into=tmp_path / "plans")
    rows = rows_in(folder)
    assert rows["row"] == np.flatnonzero(plans["valid"]).tolist()
    assert rows["mfu"] == plans["mfu"][plans["valid"]].tolist()
    best = sweep(DistributedSolver, **PLANS | chosen, into=folder, reduce=Best("mfu"))
    assert "row" not in best.columns
    assert best.result(0) == plans.best("mfu")


@pytest.mark.parametrize("executor", [None, threads], ids=["here", "threads"])
def test_reductions_are_those_of_the_table(executor, plans):
    best, front, quantiles = sweep(DistributedSolver, **PLANS, reduce=REDUCTIONS, executor=executor)
    good = plans.where(plans["feasible"])
    throughput, memory, batch = (
        np.asarray(good._column(n).values) for n in ("effective_throughput", "memory", "batch_size")
    )
    assert rows_of(best) == rows_of(good.take(np.argsort(-throughput, kind="stable")[:3]))
    assert best.result(0) == plans.best("effective_throughput")
    goals = np.stack([-throughput, memory, batch], axis=1)
    beaten = [((goals <= goal).all(axis=1) & (goals < goal).any(axis=1)).any() for goal in goals]
    front_goals = {tuple(goal) for goal in goals[~np.array(beaten)]}
    got = np.stack(
        [-front["effective_throughput"].magnitude, front["memory"].magnitude, front["batch_size"]],
        axis=1,
    )
    assert 1 < len(got) == len(front_goals)
    assert set(map(tuple, got)) == front_goals
    for name in REDUCTIONS[2].fields:
        values = np.asarray(good._column(name).values)
        exact = np.quantile(values, REDUCTIONS[2].at, method="inverted_cdf")
        assert quantiles._column(name).values == pytest.approx(exact, rel=2**-10)
        assert quantiles.units.get(name) == plans.units.get(name)


def test_chosen_columns_are_the_only_ones(plans):
    table = sweep(DistributedSolver, **PLANS, columns=["mfu", "memory"])
    names = set(table.columns)
    assert names == {n for n in PLANS if n in plans.columns} | {
        "mfu",
        "memory",
        "feasible",
        "valid",
    }
    assert rows_of(table) == {n: v for n, v in rows_of(plans).items() if n in names}
    assert table.best("mfu") == plans.best("mfu")


class StoppedError(Exception):
    """Ends a sweep from its progress."""


def kill_one(done, total):
    """Kill one worker, as a machine out of memory would."""
    os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)


def stop(done, total):
    if done > total / 2:
        raise StoppedError


@pytest.mark.parametrize(
    ("make", "progress", "error"),
    [(spawned, kill_one, ExecutorError), (threads, stop, StoppedError), (None, stop, StoppedError)],
    ids=["killed worker", "stopped threads", "stopped"],
)
def test_what_ended_early_is_resumed(make, progress, error, plans, tmp_path):
    """Complete files are not written again, and the rest is as if nothing had happened."""
    folder, executor = tmp_path / "plans", make and make()
    with pytest.raises(error):
        sweep(DistributedSolver, **PLANS, into=folder, executor=executor, progress=progress)
    if executor is not None:
        executor.shutdown()  # running threads complete their files
    complete = {file: file.stat().st_mtime_ns for file in folder.glob("*.parquet")}
    assert 0 < len(complete) < 24
    (folder / f".{23:015}.parquet.of_a_killed_worker").touch()
    seen = []
    sweep(DistributedSolver, **PLANS, into=folder, progress=lambda *rows: seen.append(rows))
    assert len(seen) == 24 - len(complete)
    assert seen[-1] == (ROWS, ROWS)
    assert {file: file.stat().st_mtime_ns for file in complete} == complete
    assert rows_in(folder) == rows_of(plans)
    assert {file.suffix for file in folder.iterdir()} == {".parquet", ".json"}


def test_files_are_reduced_without_being_computed_again(plans, tmp_path, monkeypatch):
    folder = sweep(DistributedSolver, **PLANS, into=tmp_path / "plans")
    alone = sweep(DistributedSolver, **PLANS, reduce=REDUCTIONS)

    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(blocks, "columns_of", refuse)
    for ours, theirs in zip(
        sweep(DistributedSolver, **PLANS, into=folder, reduce=REDUCTIONS), alone, strict=True
    ):
        assert rows_of(ours) == rows_of(theirs)
        assert ours.units == theirs.units


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"seq_len": 4096}, "seq_len"),
        ({"batch_size": np.arange(2, 62) * 32}, "batch_size"),
        ({"model": [Models.GPT3, Models.Llama3_70B]}, "model"),
        ({"invalid": "drop"}, "invalid"),
        ({"columns": ["mfu"]}, "columns"),
    ],
)
def test_a_folder_is_not_resumed_with_other_arguments(change, name, tmp_path):
    manifest = tmp_path / "_sweep.json"
    few = PLANS | {"batch_size": np.arange(1, 61) * 32, "microbatch_count": 64, "tp_size": 8}
    sweep(DistributedSolver, **few, into=tmp_path)
    before = manifest.read_text()
    with pytest.raises(ConfigError, match=rf"differs in [a-z, ]*{name}") as caught:
        sweep(DistributedSolver, **few | change, into=tmp_path)
    assert caught.value.argument == "into"
    assert manifest.read_text() == before
    assert json.loads(before)["rows"] == 2 * 2 * 60 * 2 * 3


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ConfigError, match="other files") as caught:
        sweep(DistributedSolver, **PLANS, into=tmp_path)
    assert caught.value.argument == "into"


def test_an_invalid_row_is_the_error_of_solve(tmp_path):
    with pytest.raises(ParallelismError) as caught:
        sweep(DistributedSolver, **PLANS | {"invalid": "raise"}, into=tmp_path / "plans")
    assert caught.value.argument == "tp_size"


def test_without_pyarrow_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match="pip install pyarrow") as caught:
        sweep(DistributedSolver, **PLANS, into=tmp_path / "plans")
    assert caught.value.argument == "into"
    assert not (tmp_path / "plans").exists()


def test_axes_of_any_kind_have_one_type_in_all_files(tmp_path):
    """Alone, a value may have another type or other outputs than in its axis."""
    networks = {
        "model": Models.ResNet50,
        "hardware": [Hardware.A100, Hardware.H100],
        "batch_size": [1, 2.0, 4],
        "efficiency": [None, 0.5, 1],
        "seq_len": [None],
    }
    networks = {n: v for n, v in networks.items() if n in SingleNodeSolver.parameters}
    table = sweep(SingleNodeSolver, **networks)
    blocks._ROWS = 1
    folder = sweep(SingleNodeSolver, **networks, into=tmp_path / "networks")
    assert len(list(folder.glob("*.parquet"))) == len(table) == 18
    assert rows_in(folder) == rows_of(table)


def test_more_rows_than_any_memory_has_room_for(tmp_path):
    """Ten billion rows are refused as a table, and begin at once as files."""
    billions = PLANS | {
        "batch_size": np.arange(1, 30_001),
        "seq_len": np.arange(1, 1001),
        "columns": ["mfu"],
    }
    with pytest.raises(ConfigError, match=r"`into`.*`reduce`"):
        sweep(DistributedSolver, **billions)
    blocks._ROWS = 2**20
    with pytest.raises(StoppedError):
        sweep(DistributedSolver, **billions, into=tmp_path / "plans", progress=first)
    assert len(list((tmp_path / "plans").glob("*.parquet"))) == 1


def first(done, total):
    assert total == 10_800_000_000
    raise StoppedError
