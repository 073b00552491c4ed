"""The minutes that a tutorial promises are those that its words take."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT, TUTORIALS
from tools.pages.pages import INLINE, Cell, read_page

WORDS_PER_MINUTE = 150  # 25 in ten seconds
MINUTES_PER_EXERCISE = 5
MOST_WORDS = 3_000


def reading_minutes(path: Path) -> float:
    """Minutes to read the prose and the code that is shown, up to the exercises."""
    words = 0
    for part in read_page(path, ROOT).parts:
        if isinstance(part, Cell):
            hidden = part.options.get("echo") is False or part.options.get("code-fold")
            words += 0 if hidden else len(part.code.split())
            continue
        text, exercises, _ = part.text.partition("\n## Exercises")
        text = re.sub(r"```\{=html\}.*?```", "", text, flags=re.DOTALL)
        words += len(re.sub(INLINE, "1", text).split())
        if exercises:
            break
    return words / WORDS_PER_MINUTE


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_the_minutes_are_true(path: Path) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    stated = re.search(r"\*\*About (\d+) minutes to read, (\d+) for the exercises\.\*\*", text)
    assert stated, "no minutes"
    exercises = len(re.findall(r"^\*\*(?:\d+\.|Self-check\.)\*\*", text, flags=re.MULTILINE))
    minutes = reading_minutes(path)
    assert int(stated[1]) % 5 == 0
    assert minutes - 1 <= int(stated[1]) <= minutes + 4  # rounded up
    assert WORDS_PER_MINUTE * minutes <= MOST_WORDS
    assert int(stated[2]) == MINUTES_PER_EXERCISE * exercises


def test_teachers_read_the_same_minutes() -> None:
    rows = re.findall(
        r"\(tutorials/([\w-]+)\.qmd\) \| (\d+) min \| (\d+) min \|",
        (ROOT / "docs/for-teachers.qmd").read_text(encoding="utf-8"),
    )
    assert len(rows) > 5
    assert {name for name, *_ in rows} <= {path.stem for path in TUTORIALS}
    for name, *minutes in rows:
        text = (ROOT / f"docs/tutorials/{name}.qmd").read_text(encoding="utf-8")
        assert f"About {minutes[0]} minutes to read, {minutes[1]} for the exercises" in text


def test_the_list_of_tutorials_states_the_same_minutes() -> None:
    index = (ROOT / "docs/tutorials/index.qmd").read_text(encoding="utf-8")
    rows = dict(re.findall(r"\(([\w-]+)\.qmd\)\.[^*]*\*About\s+(\d+)", index))
    assert set(rows) == {path.stem for path in TUTORIALS}
    for name, minutes in rows.items():
        text = (ROOT / f"docs/tutorials/{name}.qmd").read_text(encoding="utf-8")
        assert f"About {minutes} minutes to read" in text, name


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_exercises_have_stars_and_end_with_an_open_task(path: Path) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    exercises = re.findall(r"^\*\*(?:\d+\.|Self-check\.)\*\*(.*)", text, flags=re.MULTILINE)
    stars = [re.match(r" (★{1,3}) ", line) for line in exercises]
    assert all(stars), "an exercise without stars"
    assert {len(found[1]) for found in stars if found} >= {1, 3}
    assert len(re.findall(r"^\*\*Open design task\*\* ★★★ ", text, flags=re.MULTILINE)) == 1


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_predictions_come_before_folded_answers(path: Path) -> None:
    """A fold follows each prediction before the next one."""
    text = (ROOT / path).read_text(encoding="utf-8").split("\n## Exercises")[0]
    kinds = re.findall(r"^::: \{\.callout-(important|tip collapse)", text, flags=re.MULTILINE)
    assert kinds[:1] == ["important"]
    assert all(pair != ("important", "important") for pair in itertools.pairwise(kinds))
    assert kinds[-1] == "tip collapse"
