"""What a page asks of the package: text in, text out, and nothing that stops the page."""

import json
import re
import subprocess
import sys

import pytest

from mlsysim import UnknownEntryError
from mlsysim_course.answers import ChoiceAsked
from mlsysim_course.bridge import QUESTIONS, ask, run
from mlsysim_course.exercises import EXERCISES
from mlsysim_course.labs.catalog import explorer
from tests.conftest import ROOT
from tests.course.test_exercises import WITH_NUMPY


def asked(question, **given):
    return json.loads(ask(question, json.dumps(given)))


def test_an_explorer_is_asked():
    assert asked("explore", name="ring", state={"step": 2}) == {
        "value": explorer("ring").view({"step": 2})
    }
    assert "fp8" in asked("explore", name="roofline", state={"precision": "fp8"})["refused"]
    assert asked("derive", name="ring", state={}, index=0)["value"]["steps"]


def test_questions_are_known():
    with pytest.raises(UnknownEntryError, match="explore"):
        ask("explor", "{}")
    assert {"view", "restore", "explore", "derive", "run", "check"} == set(QUESTIONS)


def test_blocks_of_a_page_share_their_names():
    assert run("one", "x = 2\nprint('two')\nx + 1") == {
        "output": "two\n3\n",
        "error": "",
        "needs": "",
        "figures": [],
    }
    assert run("one", "x * 10;")["output"] == ""
    assert run("one", "x * 10")["output"] == "20\n"
    assert "NameError" in run("another", "x")["error"]


def test_errors_say_the_line():
    assert (
        run("errors", "a = 1\nb = a / 0")["error"] == "line 2: ZeroDivisionError: division by zero"
    )
    assert run("errors", "a = (")["error"].startswith("line 1: SyntaxError")
    assert run("errors", "print(1)\nraise ValueError('no')") == {
        "output": "1\n",
        "error": "line 2: ValueError: no",
        "needs": "",
        "figures": [],
    }


def test_a_missing_package_is_named_only_where_it_is_used():
    first = run("missing", "import nothing_here as nh, math\nfrom mlsysim import Models")
    assert first == {"output": "", "error": "", "needs": "", "figures": []}
    assert run("missing", "math.floor(1.5)")["output"] == "1\n"
    assert run("missing", "nh.zeros(3)")["needs"] == "nothing_here"
    assert run("missing", "nh(3)")["needs"] == "nothing_here"


def test_a_block_returns_what_it_draws():
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    (figure,) = run("drawing", code)["figures"]
    assert figure.rstrip().endswith("</svg>")
    assert run("drawing", "print(1)")["figures"] == []


def test_an_answer_is_checked_as_it_was_typed():
    assert asked("check", name="hello-world-2", answers={})["value"]["right"] is False
    right = asked("check", name="hello-world-1", answers={"batch": "2"})["value"]
    assert right["right"] is False
    assert right["hint"]
    assert (
        "not an amount"
        in asked("check", name="hello-world-1", answers={"batch": "many"})["refused"]
    )
    stays = asked("check", name="hello-world-3", answers={"throughput": "2", "bottleneck": 1})
    changes = asked("check", name="hello-world-3", answers={"throughput": "2", "bottleneck": 0})
    assert [stays["value"]["right"], changes["value"]["right"]].count(True) == 1
    assert "does not exist" in asked("check", name="hello-world", answers={})["refused"]


def test_a_form_gets_hints_that_name_its_fields():
    """Hints for Python name arguments and quantities, which a form does not have."""
    for name, exercise in EXERCISES.items():
        choices = {part: isinstance(one, ChoiceAsked) for part, one in exercise.parts.items()}
        answers = {part: 0 if choice else "7" for part, choice in choices.items()}
        for given in ({}, answers):
            hint = asked("check", name=name, answers=given)["value"]["hint"]
            assert not re.search(r"Give `|Q_\(", hint), name
            if len(exercise.parts) > 1 and not given:
                labels = [one.asks.lower() for one in exercise.parts.values()]
                assert all(label in hint.lower() for label in labels)


def test_a_checker_that_needs_numpy_says_so():
    code = """
import sys
sys.modules["numpy"] = None
import json
from mlsysim_course.bridge import ask
from mlsysim_course.exercises import EXERCISES
for name in EXERCISES:
    found = json.loads(ask("check", json.dumps({"name": name, "answers": {}})))
    print(name, found.get("needs"))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True)
    found = dict(line.split() for line in done.stdout.decode().splitlines())
    needs = {name for name, package in found.items() if package == "numpy"}
    assert needs <= {name for name in EXERCISES if name.startswith(WITH_NUMPY)}
    assert {"strategy-1", "tensor-parallel-1"} <= needs


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("exit()", "SystemExit"),
        ("import sys\nsys.exit('done')", "SystemExit"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("class Halt(BaseException): ...\nraise Halt", "Halt"),
    ],
)
def test_a_block_that_exits_ends_alone(code, error):
    assert error in run("exits", code)["error"]
    assert run("exits", "1 + 1")["output"] == "2\n"


def test_an_option_that_does_not_exist_is_refused():
    name, part = next(
        (name, part)
        for name, exercise in EXERCISES.items()
        for part, asked_part in exercise.parts.items()
        if isinstance(asked_part, ChoiceAsked)
    )
    others = dict.fromkeys(EXERCISES[name].parts, "1")
    for at in (-1, 99):
        assert part in asked("check", name=name, answers={**others, part: at})["refused"]
