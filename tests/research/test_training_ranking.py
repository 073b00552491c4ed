"""Of the plans that one job was measured under, the predicted best is near the measured best."""

from pathlib import Path

import numpy as np
import pytest

from research.rows import read_rows

DATA = Path(__file__).resolve().parents[2] / "research/measurements/training.csv"
SAME = (
    "group",
    "model",
    "layers",
    "hidden",
    "heads",
    "vocab",
    "hardware",
    "n_gpus",
    "global_batch",
    "seq_len",
    "precision",
    "flash_attention",
)


@pytest.fixture(scope="module")
def jobs(report_on):
    """Measured and predicted times of jobs with four plans or more, of check rows alone."""
    rows = {row.name: row for row in read_rows(DATA)}
    found = {}
    for item in report_on("training", "check").comparisons:
        key = tuple(rows[item.id].text(column) for column in SAME)
        found.setdefault(key, []).append((item.measured, item.predicted))
    return [np.array(times).T for times in found.values() if len(times) >= 4]


def test_there_are_jobs_enough(jobs):
    assert len(jobs) >= 30


def test_the_pick_loses_little_and_a_tenth_of_what_chance_loses(jobs):
    lost = np.array([m[p.argmin()] / m.min() - 1 for m, p in jobs])
    blind = np.array([m.mean() / m.min() - 1 for m, _ in jobs])
    assert lost.mean() < 0.06
    assert lost.mean() < 0.1 * blind.mean()
    assert (lost == 0).mean() > 0.5


def test_plans_are_ordered_as_they_were_measured(jobs):
    orders = [np.corrcoef(m.argsort().argsort(), p.argsort().argsort())[0, 1] for m, p in jobs]
    assert np.mean(orders) > 0.8
