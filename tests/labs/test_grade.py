"""Problem sets differ by student, and the grader recomputes every point."""

from __future__ import annotations

import csv
import io
import json

import pytest

from mlsysim import ConfigError, UnknownEntryError
from mlsysim.labs import assign, grade
from mlsysim.labs.answers import AmountAsked
from mlsysim.labs.parallelism_paradox import ledger
from mlsysim.labs.problems import PROBLEMS, answer, draw, problem_set

STUDENTS = [f"s{number}" for number in range(60)]
POINTS = sum(problem.points for problem in PROBLEMS.values())
LEDGER = {
    "act1_prediction": "ratio",
    "gpus": 512,
    "act1_reflection": "overlap",
    "act2_prediction": "balanced",
    "act2_reflection": "every_layer",
    "tp": 8,
    "pp": 4,
    "microbatches": 48,
    "zero": "sharded",
}


def solved(student):
    return {
        name: {part: assign._shown(asked) for part, asked in task.parts.items()}
        for name, task in problem_set(student).items()
    }


def points(folder, item="total"):
    return {mark.student: mark.points for mark in grade.grade(folder) if mark.item == item}


def notebook(*sources):
    return {"cells": [{"cell_type": "code", "source": source} for source in sources]}


def put(folder, name, data):
    (folder / name).write_text(data if isinstance(data, str) else json.dumps(data), "utf-8")


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=list(PROBLEMS))
def test_values_are_a_students_own_and_stay_so(problem):
    drawn = [tuple(map(str, draw(problem, student).values())) for student in STUDENTS]
    assert drawn == [tuple(map(str, draw(problem, s).values())) for s in STUDENTS]
    assert len(set(drawn)) >= 0.25 * len(STUDENTS)
    for position, options in enumerate(problem.choices.values()):
        assert {one[position] for one in drawn} == set(map(str, options))


@pytest.mark.parametrize("student", STUDENTS[:12])
def test_the_solution_gets_every_point(student, tmp_path):
    put(tmp_path, f"{student}.ipynb", assign.notebook(student, solution=True))
    assert points(tmp_path) == {student: POINTS}


def test_every_combination_has_an_answer():
    for student in STUDENTS:
        for task in problem_set(student).values():
            for asked in task.parts.values():
                assert isinstance(asked, AmountAsked)
                assert asked.truth() > 0


def test_a_neighbors_answers_are_worth_little(tmp_path):
    put(tmp_path, "s1.json", solved("s2"))
    assert points(tmp_path)["s1"] < POINTS / 2


def test_parts_share_the_points(tmp_path):
    right = solved("s3")["failures"]
    put(tmp_path, "s3.json", {"failures": right | {"interval": "1 s"}})
    mark = next(mark for mark in grade.grade(tmp_path) if mark.item == "failures")
    assert mark.points == PROBLEMS["failures"].points / 2
    assert mark.note.startswith("interval: Too small")


def test_notebooks_are_read_and_not_run(tmp_path):
    right = solved("s4")["cache"]["cache"]
    touched = tmp_path / "touched"
    put(
        tmp_path,
        "s4.ipynb",
        notebook(
            f"open({str(touched)!r}, 'w')\nanswer('cache', '1 GB')",
            f"%matplotlib inline\nanswer('cache', {right!r})",
            "this is not Python (",
            "size = '2 GB'\nanswer('states', plain=size)",
            "answer('decode', time=None)",
        ),
    )
    marks = {mark.item: mark for mark in grade.grade(tmp_path)}
    assert marks["cache"].points == PROBLEMS["cache"].points
    assert marks["states"].points == 0
    assert "variable" in marks["states"].note
    assert marks["decode"].note == "no answer"
    assert not touched.exists()


def test_ledgers_are_replayed(tmp_path):
    found = ledger(LEDGER)
    put(tmp_path, "ana.ledger.json", found)
    put(tmp_path, "ben.ledger.json", ledger(LEDGER | {"tp": 16}) | {"tier": found["tier"]})
    marks = points(tmp_path, "parallelism_paradox")
    assert marks["ana"] == grade.TIERS["optimal"] > marks["ben"]


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, '{"lab": "another"}', "\x00", "3"])
def test_broken_files_are_marks_with_a_note(tmp_path, text):
    put(tmp_path, "s5.json", text)
    put(tmp_path, "s6.json", solved("s6"))
    marks = grade.grade(tmp_path)
    assert next(mark for mark in marks if mark.student == "s5").note.startswith("cannot be read")
    assert points(tmp_path)["s6"] == POINTS


def test_the_command_writes_a_table(tmp_path, capsys):
    handed_in = tmp_path / "course" / "handed-in"
    assert assign.main(["ana", "ben", "--folder", str(handed_in)]) == 0
    assert assign.main(["ana", "--folder", str(handed_in), "--solution"]) == 0
    capsys.readouterr()
    assert grade.main([str(handed_in)]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["student"] for row in rows} == {"ana", "ben"}
    assert [row["points"] for row in rows if row["item"] == "total"] == ["0", "0"]
    assert grade.main([str(tmp_path / "nothing")]) == 2


def test_answers_of_the_wrong_kind_are_refused_in_the_notebook():
    assert answer("cache", "2 GB") == "cache: cache recorded"
    assert answer("failures", between=None, interval=None).endswith("nothing recorded")
    with pytest.raises(ConfigError, match="dimension"):
        answer("cache", "2 s")
    with pytest.raises(ConfigError, match="several parts"):
        answer("failures", "2 h")
    with pytest.raises(ConfigError, match="no part"):
        answer("failures", carbon="2 kg")
    with pytest.raises(UnknownEntryError):
        answer("cash", "2 GB")
    with pytest.raises(ConfigError, match="name"):
        draw(PROBLEMS["cache"], " ")
