"""Slides of a page: what is shown, in which order, and what is left to the speaker."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pypandoc", reason="the docs extra is not installed")

from tests.conftest import ROOT
from tools.dev import quarto
from tools.pages.pages import read_page
from tools.pages.project import Project, load
from tools.slides.__main__ import render
from tools.slides.deck import Deck, Slide

PAGE = """\
---
title: One
subtitle: How long?
---

Before everything.

## The question

A story.

1. A first thing?

## The equation {#sum}

It has a reason. See [two](two.qmd).

It is this sum:

$$ a = b + c $$ {#eq-sum}

## Predict

The case.

::: {.callout-important}
## Before you run anything
How long?
:::

::: {.callout-tip collapse="true"}
## Compare

```{python}
print("42 s")
```

```{python}
#| label: fig-line
#| fig-cap: "A line."
#| fig-alt: "It \\"rises\\"."
import matplotlib.pyplot as plt

plt.plot([1, 2])
plt.show()
```

Forty-two, by @eq-sum.
:::

## Nothing to see

Only words.

## Takeaways

::: {.callout-note}
## Rules
- One rule.
:::

## Exercises

::: {.callout-tip collapse="true"}
## Answer to 1
Secret.
:::
"""


@pytest.fixture(scope="module")
def deck(tmp_path_factory: pytest.TempPathFactory) -> Deck:
    root = tmp_path_factory.mktemp("project")
    (root / "one.qmd").write_text(PAGE, encoding="utf-8")
    project: Any = SimpleNamespace(
        root=root, variables={"version": "9.8.7", "wheel": "", "course": ""}
    )
    return Deck(read_page(Path("one.qmd"), root), project)


def kinds(slide: Slide) -> list[str]:
    return [block["t"] for block in slide.shown]


def test_a_prediction_is_a_slide_and_its_answer_the_next(deck: Deck) -> None:
    assert [(slide.title, slide.kind, kinds(slide)) for slide in deck.slides] == [
        ("The question", "", ["Para", "OrderedList"]),
        ("The equation", "", ["Para", "Para"]),
        ("Before you run anything", "predict", ["Para", "Para"]),
        ("Compare", "answer", ["Div"]),
        ("Compare", "answer", ["RawBlock", "Para"]),
        ("Compare", "answer", ["Para"]),
        ("Takeaways", "", ["BulletList"]),
    ]


def test_words_that_are_not_shown_are_notes(deck: Deck) -> None:
    assert [len(slide.notes) for slide in deck.slides] == [0, 1, 0, 0, 0, 0, 0]


def test_the_deck_has_the_numbers_of_the_page_and_no_answers_to_exercises(deck: Deck) -> None:
    text = deck.markdown()
    assert "42 s" in text
    assert "by Equation 1." in text
    assert "9.8.7" in text
    assert "Secret" not in text
    assert "two.qmd" not in text
    assert "{#eq-sum}" not in text
    assert 'alt="It &quot;rises&quot;."' in text


def test_pictures_are_written_next_to_the_deck(deck: Deck, tmp_path: Path) -> None:
    source = deck.write(tmp_path, "one")
    [name] = deck.images
    assert (tmp_path / name).read_bytes().startswith(b"<?xml")
    assert f'src="{name}"' in source.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project(built_site: Path) -> Project:
    return load(ROOT, [])


TUTORIALS = [
    path for path in sorted((ROOT / "docs/tutorials").glob("*.qmd")) if path.stem != "index"
]


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_every_tutorial_makes_slides_with_predictions_and_takeaways(
    path: Path, project: Project
) -> None:
    deck = Deck(project.pages[path.relative_to(ROOT).as_posix()], project)
    found = [slide.kind for slide in deck.slides]
    answered = sum(pair == ("predict", "answer") for pair in itertools.pairwise(found))
    assert answered >= 2
    assert "Takeaways" in [slide.title for slide in deck.slides]
    assert len(deck.slides) > 8
    assert deck.markdown().count("\n## ") == len(deck.slides)


@pytest.mark.quarto
def test_quarto_renders_a_deck_without_other_hosts(tmp_path: Path, root: Path) -> None:
    program = quarto.present()
    if program is None:
        pytest.skip(f"no Quarto here; get it from {quarto.WHERE}")
    [made] = render(program, ["docs/tutorials/failures.qmd"], tmp_path)
    text = made.read_text(encoding="utf-8")
    assert text.count('<section class="title-slide') + text.count("<section id=") > 8
    assert 'class="slide level2 predict' in text
    assert not [line for line in text.split("\n") if 'src="http' in line]
