"""Worked answers run on their own, and compute what the checkers accept."""

from __future__ import annotations

import contextlib
import io
import math
import re
from pathlib import Path

import pytest

from mlsysim_course.answers import AmountAsked
from mlsysim_course.exercises import EXERCISES
from tools.pages.answers import WIDTH, cell
from tools.pages.pages import Cell, read_page, split_page


@pytest.mark.parametrize("name", EXERCISES)
def test_a_worked_answer_runs_alone_and_is_right(name: str) -> None:
    (block,) = split_page(Path("one.qmd"), cell(name)).cells
    names: dict[str, object] = {"__name__": "answer"}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(block.code, names)
    exercise = EXERCISES[name]
    right = {part: names[part] for part in exercise.parts}
    assert exercise.verdict({part: "never" if x == math.inf else x for part, x in right.items()})
    # Each part is printed, in the unit in which the checker asks for it.
    lines = dict(line.split(": ") for line in printed.getvalue().splitlines())
    assert list(lines) == list(exercise.parts)
    for part, asked in exercise.parts.items():
        if isinstance(asked, AmountAsked) and math.isfinite(asked.truth):
            shown = asked.admit(lines[part].replace(",", ""))
            assert shown == pytest.approx(asked.truth, rel=0.01)


@pytest.mark.parametrize("name", EXERCISES)
def test_a_worked_answer_is_code_that_readers_can_copy(name: str) -> None:
    code = cell(name)
    for private in ("mlsysim_course.answers", "mlsysim_course.exercises", "check(", "yield"):
        assert private not in code
    assert not re.search(r"(?<![\w.])_[A-Za-z]\w*", code)
    assert max(map(len, re.sub(r'""".*?"""', "", code).splitlines())) <= WIDTH + 4


def test_lines_after_an_included_answer_keep_their_numbers(tmp_path: Path) -> None:
    text = "A\n\n{{< include /build/answers/failures-1.qmd >}}\n\nB\n\n```{python}\n1\n```\n"
    (tmp_path / "one.qmd").write_text(text, encoding="utf-8")
    page = read_page(Path("one.qmd"), tmp_path)
    _, answer, between, last, after = page.parts
    assert isinstance(answer, Cell)
    assert isinstance(last, Cell)
    assert (answer.source, answer.line) == (cell("failures-1"), 3)
    assert (between.line, last.line, last.code_line, after.line) == (4, 7, 8, 10)
