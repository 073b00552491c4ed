"""Forecasts stay as they were made, and are scored against results."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from mlsysim import ConfigError, UnknownEntryError
from mlsysim.cli.app import app
from mlsysim.validation.forecasts import FROZEN, Forecast, Outcome, read_forecasts, score
from mlsysim.validation.rows import Row
from research.forecasts import QUESTIONS, made_today

# A new date adds a line here. A line that is here never changes, nor does its file.
DIGESTS = {
    "2026-11-22.csv": "a0deb6672153291da15fe881a268178447cfbb3bde39287c1531e482ddd54933",
}
BAND = Forecast("one", "2026-11-22", "0.1.0", "time", "a paper", "s", 2.0, 1.0, 4.0, 0.8, "model")


def test_frozen_files_are_as_they_were():
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in FROZEN.glob("*.csv")
    }
    assert found == DIGESTS


def test_forecasts_of_a_file_were_made_on_its_date():
    for path in FROZEN.glob("*.csv"):
        assert {forecast.made for forecast in read_forecasts(path)} == {path.stem}


def test_every_question_is_frozen_and_still_has_an_answer():
    frozen = {forecast.id: forecast for forecast in read_forecasts()}
    assert {question.id for question in QUESTIONS} <= set(frozen)
    for question in QUESTIONS:
        now = made_today(question)
        assert now.unit == frozen[question.id].unit
        assert 0 < now.low <= now.predicted <= now.high


@pytest.mark.parametrize(
    ("measured", "held", "miss"),
    [(1.0, True, 0.0), (4.0, True, 0.0), (0.5, False, math.log(2)), (8.0, False, math.log(2))],
)
def test_a_miss_is_fined_by_its_distance(measured, held, miss):
    outcome = Outcome(BAND, measured)
    assert outcome.within_band is held
    assert outcome.interval_score == pytest.approx(math.log(4) + 10 * miss)
    assert outcome.ratio == measured / 2


def result(**cells):
    return Row({"id": "one", "value": "3", "unit": "s"} | cells)


def test_scores_count_what_is_known():
    other = Forecast(**{**vars(BAND), "id": "other"})
    scores = score([BAND, other], [result()])
    assert [outcome.measured for outcome in scores.outcomes] == [3.0]
    assert scores.open == [other]
    assert scores.coverage == 1
    assert scores.median_factor == pytest.approx(1.5)
    assert len(scores.table()) == 2
    nothing = score([BAND], [])
    assert (nothing.coverage, nothing.median_factor, nothing.interval_score) == (None,) * 3


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([result(id="two")], UnknownEntryError),
        ([result(unit="ms")], ConfigError),
        ([result(value="fast")], ConfigError),
        ([result(value="-3")], ConfigError),
        ([result(value="")], ConfigError),
        ([result(), result()], ConfigError),
    ],
    ids=["unknown", "unit", "word", "negative", "empty", "twice"],
)
def test_results_that_settle_nothing_are_refused(rows, error):
    with pytest.raises(error):
        score([BAND], rows)


@pytest.mark.parametrize(
    ("change", "word"),
    [({"low": "3"}, "low <="), ({"coverage": "1"}, "coverage"), ({"basis": ""}, "basis"),
     ({"high": "wide"}, "not a number")],
    ids=["order", "coverage", "missing", "word"],
)  # fmt: skip
def test_broken_forecasts_are_refused(tmp_path, change, word):
    cells = {name: str(value) for name, value in vars(BAND).items()} | change
    path = tmp_path / "own.csv"
    path.write_text(f"{','.join(cells)}\n{','.join(cells.values())}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=word):
        read_forecasts(path)


def run(*words):
    return CliRunner().invoke(app, ["forecast", *words])


def test_the_command_lists_and_scores(tmp_path: Path):
    listed = json.loads(run("--json").output)
    assert listed["results"] == 0
    assert listed["open"] == len(read_forecasts())
    first = listed["forecasts"][0]
    path = tmp_path / "results.csv"
    path.write_text(f"id,value,unit\n{first['id']},{first['high']},{first['unit']}\n", "utf-8")
    scored = json.loads(run(str(path), "--json").output)
    assert (scored["results"], scored["coverage"]) == (1, 1.0)
    assert scored["outcomes"][0]["ratio"] == pytest.approx(first["high"] / first["predicted"])
    assert "1 with a result" in run(str(path)).output
