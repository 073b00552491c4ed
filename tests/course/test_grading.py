"""Grading a folder: honest files, forged ones, and files that are neither notebook nor ledger."""

import csv
import io
import json
import unicodedata

import pytest
from click.testing import CliRunner

from mlsysim import ConfigError, UnknownEntryError, __version__
from mlsysim.cli.app import app
from mlsysim_course.answers import AmountAsked
from mlsysim_course.assign import assign, notebook
from mlsysim_course.grading import COLUMNS, STATUSES, grade
from mlsysim_course.labs.catalog import LABS, find
from mlsysim_course.problems import PROBLEMS, answer, draw, problem_set

STUDENTS = [f"s{number}" for number in range(60)]
POINTS = sum(problem.points for problem in PROBLEMS.values())
RIGHT = {
    "act1_prediction": 20,
    "act1_reflection": "root",
    "act2_prediction": "lifetime",
    "act2_reflection": "failures",
    "plan_bandwidth": 200,
    "plan_interval": 12,
}


def write(path, kept):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(kept if isinstance(kept, str) else json.dumps(kept), encoding="utf-8")


def rows(folder):
    return {(row["student"], row["item"]): row for row in grade(folder)}


def row(folder, item="checkpointing", student="ada"):
    return rows(folder)[student, item]


def points(folder):
    return {
        student: row["points"] for (student, item), row in rows(folder).items() if item == "total"
    }


def ledger(**changes):
    return find("checkpointing").ledger(RIGHT | changes)


def cells(*sources):
    return {"cells": [{"cell_type": "code", "source": source} for source in sources]}


def solution(student, name):
    """Return the cell with the right call for a problem."""
    found = notebook(student, solution=True)["cells"]
    return next(cell["source"] for cell in found if f'answer("{name}"' in cell["source"])


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=list(PROBLEMS))
def test_values_are_a_students_own_and_stay_so(problem):
    drawn = [tuple(map(str, draw(problem, student).values())) for student in STUDENTS]
    assert drawn == [tuple(map(str, draw(problem, s).values())) for s in STUDENTS]
    assert len(set(drawn)) >= 0.25 * len(STUDENTS)
    for position, options in enumerate(problem.choices.values()):
        assert {one[position] for one in drawn} == set(map(str, options))


def test_every_combination_has_an_answer():
    for student in STUDENTS:
        for task in problem_set(student).values():
            for asked in task.parts.values():
                assert isinstance(asked, AmountAsked)
                assert asked.truth > 0


def test_the_solution_gets_every_point(tmp_path):
    assign(STUDENTS[:12], tmp_path)
    for student in STUDENTS[:12]:
        write(tmp_path / f"{student}.ipynb", notebook(student, solution=True))
    assert points(tmp_path) == dict.fromkeys(STUDENTS[:12], POINTS)


def test_a_neighbors_answers_are_worth_little(tmp_path):
    write(tmp_path / "s1.ipynb", notebook("s2", solution=True))
    assert points(tmp_path)["s1"] < POINTS / 2


def test_parts_share_the_points(tmp_path):
    right = solution("s3", "failures")
    write(tmp_path / "s3.ipynb", cells(right, "answer('cache', cache='2 s')"))
    write(tmp_path / "s4.ipynb", cells(solution("s4", "failures").replace("interval=", "other=")))
    write(tmp_path / "s5.ipynb", cells("answer('failures', interval=3, between='1 s')"))
    assert row(tmp_path, "failures", "s3")["points"] == PROBLEMS["failures"].points
    assert row(tmp_path, "failures", "s3")["status"] == "complete"
    assert row(tmp_path, "cache", "s3")["points"] == 0
    assert "dimension" in row(tmp_path, "cache", "s3")["note"]
    assert row(tmp_path, "failures", "s4")["status"] == "incomplete"
    assert "no part" in row(tmp_path, "failures", "s4")["note"]
    assert "between: Too small" in row(tmp_path, "failures", "s5")["note"]
    assert "interval: Add the unit" in row(tmp_path, "failures", "s5")["note"]


def test_half_of_an_answer_is_half_of_the_points(tmp_path):
    half = solution("s3", "failures").partition("interval=")[0] + ")"
    write(tmp_path / "s3.ipynb", cells(half))
    found = row(tmp_path, "failures", "s3")
    assert found["points"] == PROBLEMS["failures"].points / 2
    assert found["status"] == "incomplete"
    assert found["answer"].startswith("between = ")
    assert found["note"] == "interval: no answer"


def test_notebooks_are_read_and_not_run(tmp_path):
    touched = tmp_path / "touched"
    write(
        tmp_path / "s4.ipynb",
        cells(
            f"open({str(touched)!r}, 'w')\nanswer('cache', '1 GB')",
            f"%matplotlib inline\n{solution('s4', 'cache')}",
            "this is not Python (",
            "size = '2 GB'\nanswer('states', plain=size)",
            "answer('decode', time=None)\nanswer()\nanswer(size)\nanswer([], 3)",
        ),
    )
    found = {item: row for (_, item), row in rows(tmp_path).items()}
    assert set(found) == {*PROBLEMS, "total"}
    assert found["cache"]["points"] == PROBLEMS["cache"].points
    assert found["states"]["points"] == 0
    assert "variable" in found["states"]["note"]
    assert found["decode"]["note"] == "no answer"
    assert not touched.exists()


def test_a_right_play_through_is_graded_as_one(tmp_path):
    write(tmp_path / "ada/checkpointing-ledger.json", ledger())
    assert row(tmp_path) == {
        "student": "ada",
        "item": "checkpointing",
        "points": 3,
        "of": 3,
        "status": "complete",
        "answer": "act1_prediction = 20; act2_prediction = lifetime",
        "note": "act1_prediction right; act2_prediction right; design accepted; tier optimal",
        "file": "ada/checkpointing-ledger.json",
    }


@pytest.mark.parametrize("name", LABS)
def test_every_lab_can_be_graded(name, tmp_path):
    lab = find(name)
    answers = {asked.id: asked.truth() for asked in lab.predictions}
    write(tmp_path / "start.json", lab.ledger({}))
    write(tmp_path / "played.json", lab.ledger(answers))
    start, played = row(tmp_path, name, "start"), row(tmp_path, name, "played")
    assert (start["status"], start["points"]) == ("incomplete", 0)
    assert (played["status"], played["points"]) == ("complete", 2)


def test_a_student_is_a_file_or_a_folder_and_an_item_counts_once(tmp_path):
    write(tmp_path / "ada.first.json", ledger(plan_interval=48))
    write(tmp_path / "ada.second.json", ledger())
    write(tmp_path / "ada/third.json", ledger(act1_prediction=120))
    write(tmp_path / "ada/.ipynb_checkpoints/old.ipynb", notebook("ada", solution=True))
    write(tmp_path / "ben.solution.ipynb", notebook("ben", solution=True))
    found = list(grade(tmp_path))
    assert [row["points"] for row in found] == [2, 2, 3, 3]
    assert {row["student"] for row in found} == {"ada"}
    assert found[-1] == dict.fromkeys(COLUMNS) | {
        "student": "ada",
        "item": "total",
        "points": 3,
        "of": 3,
    }


def test_numbers_of_another_machine_may_differ_in_the_last_digits_only(tmp_path):
    near, far = ledger(), ledger()
    near["result"]["readings"]["Goodput"] *= 1 + 1e-12
    far["result"]["readings"]["Goodput"] *= 1 + 1e-6
    write(tmp_path / "near.json", near)
    write(tmp_path / "far.json", far)
    assert row(tmp_path, student="near")["status"] == "complete"
    assert row(tmp_path, student="far")["status"] == "differs"
    assert "result not as computed" in row(tmp_path, student="far")["note"]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("tier", "optimal"),
        ("tier", None),
        ("predictions", {}),
        ("design", None),
        ("result", {"goodput": 1.0}),
        ("tier_rule", "The tier is optimal."),
    ],
)
def test_a_forged_ledger_earns_what_its_answers_earn(part, value, tmp_path):
    write(tmp_path / "ada.json", ledger(plan_interval=48) | {part: value})
    found = row(tmp_path)
    assert (found["status"], found["points"]) == ("differs", 2)
    assert found["note"].endswith(f"design not accepted; tier partial; {part} not as computed")


def test_another_version_is_noted_and_its_answers_still_count(tmp_path):
    write(tmp_path / "ada.json", ledger() | {"version": "0.0.1"})
    found = row(tmp_path)
    assert (found["status"], found["points"]) == ("complete", 3)
    assert found["note"].endswith(f"graded by version {__version__}")


@pytest.mark.parametrize("end", ["json", "ipynb"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        "3",
        "{}",
        '{"lab": 3}',
        '{"lab": "another"}',
        '{"lab": "checkpointing", "format": 2}',
        '{"lab": "checkpointing", "format": 3, "state": {"plan_interval": 7}}',
        '{"lab": "checkpointing", "format": 3, "state": {"act2_prediction": "often"}}',
        "[" * 100_000,
    ],
)
def test_files_that_are_neither_get_a_row_with_the_reason(text, end, tmp_path):
    write(tmp_path / f"bad.{end}", text)
    write(tmp_path / "ada.json", ledger())
    found = row(tmp_path, f"bad.{end}", "bad")
    assert (found["status"], found["points"], found["of"]) == ("unreadable", 0, 0)
    assert found["note"]
    assert row(tmp_path)["status"] == "complete"


def test_bytes_that_are_no_text_are_unreadable(tmp_path):
    (tmp_path / "bad.json").write_bytes(b"\xff\xfe")
    assert row(tmp_path, "bad.json", "bad")["status"] == "unreadable"


@pytest.mark.parametrize(
    "code",
    [
        "-" * 100_000 + "1",
        "not " * 30_000 + "1",
        "lambda:" * 15_000 + "1",
        "1 if 1 else " * 10_000 + "1",
        f"answer('states', 0x{'f' * 50_000})",
        f"answer('states', {'-' * 50_000}1)",
        [1, 2],
        {"a": 1},
        None,
    ],
    ids=lambda code: str(code)[:12],
)
def test_a_hostile_cell_costs_only_its_own_answers(code, tmp_path):
    write(tmp_path / "eve.ipynb", cells(code, solution("eve", "cache")))
    write(tmp_path / "ana.ipynb", notebook("ana", solution=True))
    assert points(tmp_path) == {"ana": POINTS, "eve": PROBLEMS["cache"].points}


@pytest.mark.parametrize("code", ["1\n" * 100_000, ["answer('cache', 1)\n"] * 10_000])
def test_more_code_than_a_person_writes_is_unreadable(code, tmp_path):
    write(tmp_path / "eve.ipynb", cells(code))
    assert row(tmp_path, "eve.ipynb", "eve")["status"] == "unreadable"


def test_a_defect_of_one_file_is_that_students_alone(tmp_path, monkeypatch):
    def fail(student):
        if student == "eve":
            raise ZeroDivisionError
        return problem_set(student)

    monkeypatch.setattr("mlsysim_course.grading.problem_set", fail)
    for student in ("ana", "eve"):
        write(tmp_path / f"{student}.ipynb", notebook(student, solution=True))
    assert points(tmp_path) == {"ana": POINTS, "eve": 0}
    found = row(tmp_path, "eve.ipynb", "eve")
    assert (found["status"], found["note"]) == ("unreadable", "ZeroDivisionError")


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_accents_of_a_file_name_may_be_written_in_two_ways(form, tmp_path):
    (path,) = assign(["José"], tmp_path / "made", solution=True)
    name = unicodedata.normalize(form, "José")
    write(tmp_path / "in" / f"{name}.ipynb", path.read_text("utf-8"))
    assert points(tmp_path / "in") == {unicodedata.normalize("NFC", name): POINTS}


def test_one_name_is_one_student(tmp_path):
    assert assign("ana", str(tmp_path)) == [tmp_path / "ana.ipynb"]
    for students, folder in (([5], tmp_path), (5, tmp_path), ("ana", 5)):
        with pytest.raises(ConfigError):
            assign(students, folder)


def test_a_folder_with_nothing_to_grade_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="nothing to grade"):
        grade(tmp_path)
    with pytest.raises(ConfigError, match="is not a folder"):
        grade(tmp_path / "missing")


def test_the_commands_go_from_handouts_to_a_table_that_a_spreadsheet_reads_as_text(tmp_path):
    folder = str(tmp_path / "course" / "handed-in")
    call = CliRunner().invoke
    done = call(app, ["assign", "ana", "=1+1", "--folder", folder])
    assert done.exit_code == 0, done.output
    assert [line[-6:] for line in done.stdout.split()] == [".ipynb", ".ipynb"]
    assert call(app, ["assign", "ana", "--folder", folder, "--solution"]).exit_code == 0
    write(tmp_path / "course/handed-in/bob.json", "{}")
    done = call(app, ["grade", folder, "--format", "csv"])
    assert done.exit_code == 0, done.output
    printed = list(csv.DictReader(io.StringIO(done.stdout)))
    assert list(printed[0]) == list(COLUMNS)
    assert {row["status"] for row in printed} == {"incomplete", "unreadable", ""}
    assert {row["status"] for row in printed} <= {*STATUSES, ""}
    assert {row["student"] for row in printed} == {"ana", "bob", "'=1+1"}
    assert {row["points"] for row in printed if row["item"] == "total"} == {"0.0"}


@pytest.mark.parametrize("student", ["", " ", "j.doe", "../ana", "a\\b"])
def test_a_name_that_no_file_would_give_back_is_refused(student, tmp_path):
    with pytest.raises(ConfigError, match="dots"):
        assign(["ana", student], tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_command_refuses_a_missing_folder(tmp_path):
    done = CliRunner().invoke(app, ["grade", str(tmp_path / "missing")])
    assert done.exit_code == 2
    assert "not a folder" in done.output


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
