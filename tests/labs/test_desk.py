"""The lab on the desk, without a browser: the ledger's file, the elements, what is drawn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mlsysim.labs import parallelism_paradox as lab
from mlsysim.labs.desk import Keeper
from mlsysim.labs.desk.plot import plot

ROOT = Path(__file__).resolve().parents[2]
RIGHT = {
    "act1_prediction": "ratio",
    "act1_reflection": "overlap",
    "act2_prediction": "balanced",
    "act2_reflection": "every_layer",
    "pp": 4,
    "microbatches": 48,
    "zero": "sharded",
}


@pytest.fixture
def keeper(tmp_path):
    return Keeper(tmp_path / "ledger.json", lab.restore)


# The ledger's file


def test_what_is_saved_comes_back(keeper):
    assert keeper.load() == {}
    saved, words = keeper.save(lab.ledger(RIGHT))
    assert saved
    assert str(keeper.path) in words
    assert Keeper(keeper.path, lab.restore).load() == RIGHT
    assert [path.name for path in keeper.path.parent.iterdir()] == ["ledger.json"]


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b'{"lab": "another"}', b""])
def test_a_file_that_is_no_ledger_is_left_alone(keeper, content):
    keeper.path.write_bytes(content)
    assert keeper.load() == {}
    saved, words = keeper.save(lab.ledger(RIGHT))
    assert not saved
    assert "is left unchanged" in words
    assert "another --ledger" in words
    assert keeper.path.read_bytes() == content


def test_a_folder_that_is_not_there_is_told(tmp_path):
    keeper = Keeper(tmp_path / "nowhere" / "ledger.json", lab.restore)
    assert keeper.load() == {}
    saved, words = keeper.save(lab.ledger({}))
    assert not saved
    assert "cannot be written" in words


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/"])
def test_what_is_no_file_is_left_alone(path):
    keeper = Keeper(Path(path), lab.restore)
    assert keeper.load() == {}
    assert keeper.fault
    assert not keeper.save(lab.ledger({}))[0]


def test_a_repaired_file_is_read_again(keeper):
    keeper.path.write_text("{", encoding="utf-8")
    keeper.load()
    keeper.path.write_text(json.dumps(lab.ledger(RIGHT)), encoding="utf-8")
    assert keeper.load() == RIGHT
    assert keeper.save(lab.ledger({}))[0]


# Pictures


@pytest.mark.parametrize("name", ["a1_chart", "a2_chart"])
def test_a_chart_becomes_a_picture(name):
    (block,) = (one for one in lab.view(RIGHT)["blocks"] if one["id"] == name)
    picture = plot(block)
    assert picture.startswith("<svg")
    assert picture.rstrip().endswith("</svg>")
    assert plot(block | {"marker": None, "rule": None}).startswith("<svg")


# marimo


@pytest.fixture
def desk():
    pytest.importorskip("marimo", reason="marimo is not installed: pip install marimo")
    from mlsysim.labs import desk

    return desk


@pytest.mark.parametrize("state", [{}, RIGHT, RIGHT | {"tp": 16, "pp": 3, "gpus": 1024}])
def test_every_block_is_drawn(desk, state):
    answer = lab.view(state)
    elements = desk.elements(lab.LAB.controls, state, lambda name, value: None)
    drawn = desk.draw(answer, elements).text
    assert answer["title"] in drawn
    for block in answer["blocks"]:
        if block["type"] in ("heading", "alert"):
            assert (block.get("text") if block["type"] == "heading" else block["title"]) in drawn


def test_text_is_never_taken_for_code(desk):
    answer = {
        "title": "<b>",
        "blocks": [
            {"type": "text", "id": "t", "paragraphs": ["<script>alert(1)</script> $9 and $8"]},
            {"type": "alert", "id": "a", "tone": "bad", "title": "<i>", "text": "<u>"},
            {"type": "table", "id": "r", "caption": "<p>", "head": ["<a>"], "rows": [["<td>"]]},
        ],
        "status": [{"label": "<x>", "value": "<y>"}],
    }
    drawn = desk.draw(answer, {}).text
    for tag in ("<script", "<i>", "<u>", "<a>", "<x>", "<y>"):
        assert tag not in drawn


def test_elements_report_their_control(desk):
    changes = []
    elements = desk.elements(lab.LAB.controls, {"gpus": 64}, lambda *change: changes.append(change))
    assert set(elements) == set(lab.LAB.controls.by_id)
    assert elements["gpus"].value == 64
    assert elements["model"].value == "7b"
    for name, value in (("gpus", 512), ("model", "13b"), ("show_derivation_1", True)):
        elements[name]._on_change(value)
        assert changes[-1] == (name, value)


def test_the_command_says_what_it_needs():
    code = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name: None if name == 'marimo' else find(name)\n"
        "from mlsysim.labs.__main__ import main; main([])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "pip install marimo" in done.stderr
    helped = subprocess.run(
        [sys.executable, "-m", "mlsysim.labs", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "parallelism_paradox" in helped.stdout
