"""Reports on the tables of measurements, each made once for all processes that run tests."""

from __future__ import annotations

import functools
import os
import pickle
from collections.abc import Callable

import pytest

from mlsysim.validation import Report
from research.validate import validate
from tests.conftest import ROOT
from tools.dev.lock import alone


@pytest.fixture(scope="session")
def report_on(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Report]:
    """Return the report on a table by its name and split; the first process that asks makes it."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    @functools.cache
    def report(name: str, split: str | None = None) -> Report:
        path = folder / f"{name} {split}.report"
        with alone(path.with_suffix(".lock"), f"validating {name}"):
            if not path.exists():
                table = ROOT / f"research/measurements/{name}.csv"
                found = validate(table, split=split)
                path.write_bytes(pickle.dumps(found))
        made: Report = pickle.loads(path.read_bytes())
        return made

    return report
