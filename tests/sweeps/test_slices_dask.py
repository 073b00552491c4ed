"""Sweeps on a Dask cluster: workers that are killed change nothing in the table."""

import os
import signal
from types import SimpleNamespace

import numpy as np
import pytest

from mlsysim import Best, DistributedSolver, ExecutorError, Models, Systems, sweep
from mlsysim.sweeps import blocks
from mlsysim.sweeps.slices import run_slices

distributed = pytest.importorskip("distributed", reason="needs the extra mlsysim[cluster]")

PLANS = {
    "model": Models.Llama3_70B,
    "fleet": Systems.Clusters.Research_256,
    "seq_len": 2048,
    "batch_size": np.arange(1, 10_001) * 32,
    "tp_size": [1, 3, 8],
    "pp_size": [1, 4, 5],
    "microbatch_count": [4, 8, 16, 32, 64],
    "invalid": "mark",
}


@pytest.fixture
def cluster():
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",  # any free port: None means 8787
    ) as local:
        yield local


def test_killed_workers_lose_and_double_nothing(cluster):
    alone = sweep(DistributedSolver, **PLANS)
    killed = set()
    seen = []

    def kill(done, total):
        """Kill the first workers, one after a few slices and the other half way."""
        seen.append(done)
        share = done / total
        if len(killed) < (share > 0.1) + (share > 0.5):
            alive = {worker.pid for worker in cluster.workers.values() if worker.pid}
            victim = min(alive - killed)
            os.kill(victim, signal.SIGKILL)
            killed.add(victim)

    with distributed.Client(cluster) as client:
        table = sweep(DistributedSolver, **PLANS, executor=client.get_executor(), progress=kill)
    assert len(killed) == 2
    assert seen == sorted(set(seen))
    assert seen[-1] == len(alone) == 450_000
    assert list(table.columns) == list(alone.columns)
    for name in alone.columns:
        np.testing.assert_array_equal(
            table._column(name).values, alone._column(name).values, err_msg=name
        )


def test_killed_workers_leave_the_files_of_an_uninterrupted_sweep(cluster, tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra mlsysim[parquet]")
    monkeypatch.setattr(blocks, "_ROWS", 2_000)
    asked = PLANS | {"columns": ["mfu"], "reduce": Best("mfu", count=5)}
    asked["batch_size"] = PLANS["batch_size"][:1000]
    alone = sweep(DistributedSolver, **asked, into=tmp_path / "alone")
    killed = []

    def kill(done, total):
        if not killed:
            killed.append(min(worker.pid for worker in cluster.workers.values()))
            os.kill(killed[0], signal.SIGKILL)

    with distributed.Client(cluster) as client:
        best = sweep(
            DistributedSolver,
            **asked,
            into=tmp_path / "cluster",
            executor=client.get_executor(),
            progress=kill,
        )
    assert len(killed) == 1
    assert list(best) == list(alone)
    files, others = (sorted((tmp_path / name).iterdir()) for name in ("cluster", "alone"))
    assert [file.name for file in files] == [file.name for file in others]
    assert len(files) == 23 + 1
    for file, other in zip(files[:-1], others[:-1], strict=True):
        tables = (parquet.read_table(path).to_pydict() for path in (file, other))
        np.testing.assert_equal(*tables)  # plans that rules refuse have NaN


def fatal(i):
    """Stand in for a model that no worker survives."""
    with open(i.diary, "a") as lines:  # noqa: PTH123 - sent as code, which brings no imports
        lines.write("x")
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_slice_that_kills_its_workers_is_given_up(cluster, tmp_path):
    """Dask gives up after one worker, and the sweep after three times of that."""
    fatal.__module__ = "__main__"  # workers cannot import tests
    cluster.scheduler.allowed_failures = 0  # each worker that is lost takes a second to replace
    inputs = SimpleNamespace(rows=np.arange(3), diary=str(tmp_path / "diary"))
    lost = r"rows 0 to 2, submitted 3 times: KilledWorker"
    with (
        distributed.Client(cluster) as client,
        pytest.raises(ExecutorError, match=lost) as caught,
    ):
        run_slices(fatal, inputs, (3,), client.get_executor())
    assert caught.value.rows == (0, 3)
    assert len((tmp_path / "diary").read_text()) == 3
