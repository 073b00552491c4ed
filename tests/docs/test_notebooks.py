"""Downloaded notebooks work without an address of their site, and link to it if they have one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("nbformat", reason="the docs extra is not installed")

import matplotlib.pyplot as plt
from IPython.core.inputtransformer2 import TransformerManager

from mlsysim_course.exercises import EXERCISES
from tests.conftest import ROOT, TUTORIALS
from tools.pages.answers import cell as answer
from tools.pages.notebooks import notebook, with_numbers
from tools.pages.pages import read_page, split_page
from tools.pages.students import for_students

WHEEL = "mlsysim-9.8.7-py3-none-any.whl"
COURSE = "mlsysim_course-9.8.7-py3-none-any.whl"
PAGE = """\
---
title: One
---

Download this page [as a notebook](one.ipynb) and, into
the same folder, [the package](/dist/{{< var wheel >}}).

See [two](two.qmd#there), [`three`](../api/three.qmd), [here](#below), [four](/docs/four.qmd) and
[a paper](https://example.org/paper).
"""
QUESTIONS = """\
# One

::: {.callout-important}
## Predict
How long?
:::

::: {.callout-tip collapse="true"}
## Compare with your prediction

```{python}
total = 6 * 7
print(total)
```

```{python}
#| echo: false
seen = total
assert seen == 42
```

It takes `{python} seen` seconds.

::: {.other}
```{python}
"::: not the end"
```
:::
:::

**1.** Twice as long?

::: {.callout-tip collapse="true"}
## Answer to 1

```{python}
answer = 2 * total
```

It is `{python} answer`.
:::

```{python}
#| echo: false
again = seen
assert again
```

```{python}
print(again)
```
"""
WITHIN = re.compile(r"\]\((?!https://)[^)]*\)")


@pytest.fixture
def page(tmp_path: Path) -> Any:
    folder = tmp_path / "docs" / "tutorials"
    folder.mkdir(parents=True)
    (folder / "one.qmd").write_text(PAGE, encoding="utf-8")
    return read_page(Path("docs/tutorials/one.qmd"), tmp_path)


def sources(page: Any, root: Path, **website: str) -> list[str]:
    variables = {"wheel": WHEEL, "course": COURSE, "version": "9.8.7"}
    project = SimpleNamespace(root=root, website=website, variables=variables)
    return [cell.source for cell in notebook(page, project).cells]  # type: ignore[arg-type]


def test_without_an_address_no_link_stays_within_the_site(page: Any, tmp_path: Path) -> None:
    _, about, text = sources(page, tmp_path)
    assert not WITHIN.search(text)
    assert "See two, `three`, here, four and\n[a paper](https://example.org/paper)." in text
    assert "Download" not in text
    assert "left out" in about


def test_with_an_address_every_link_is_absolute(page: Any, tmp_path: Path) -> None:
    address = {"site-url": "https://example.org/course"}
    install, about, text = sources(page, tmp_path, **address)
    folder = "https://example.org/course/dist"
    assert install.split("\n")[0].endswith(f" {folder}/{WHEEL} {folder}/{COURSE}")
    assert not WITHIN.search(text)
    for address in (
        "tutorials/two.html#there", "api/three.html", "tutorials/one.html#below", "four.html",
    ):  # fmt: skip
        assert f"](https://example.org/course/docs/{address})" in text
    assert "left out" not in about


@pytest.mark.parametrize(("there", "importable"), [(False, False), (False, True), (True, True)])
def test_the_first_cell_installs_the_wheel_or_says_what_to_do(
    page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool, importable: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    if there:
        (tmp_path / WHEEL).touch()
        (tmp_path / COURSE).touch()
    if not importable:
        monkeypatch.setitem(sys.modules, "mlsysim_course", None)
    ran: list[tuple[str, str]] = []
    shell = SimpleNamespace(run_line_magic=lambda name, line: ran.append((name, line)))
    code = TransformerManager().transform_cell(sources(page, tmp_path)[0])
    namespace = {"get_ipython": lambda: shell}
    if importable:
        with plt.rc_context():  # the style is for notebooks, not for the tests after this one
            exec(code, namespace)
            assert plt.rcParams["figure.figsize"] == [5.4, 3.3]
    else:
        with pytest.raises(ModuleNotFoundError) as caught:
            exec(code, namespace)
        assert WHEEL in str(caught.value)
        assert COURSE in str(caught.value)
        assert os.fspath(tmp_path) in str(caught.value)
    assert ran == ([("pip", "install --quiet {package} {course}")] if there else [])


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_every_tutorial_offers_both_files(path: Path) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert f"]({path.stem}.ipynb)" in text
    for wheel in ("wheel", "course"):
        assert f"](/dist/{{{{< var {wheel} >}}}})" in text


def test_students_get_predictions_and_cells_but_no_answers() -> None:
    page = for_students(split_page(Path("one.qmd"), QUESTIONS))
    # The hidden cells stay because what is shown needs them.
    assert [cell.code for cell in page.cells] == [
        "total = 6 * 7\nprint(total)",
        "seen = total\nassert seen == 42",
        '"::: not the end"',
        "again = seen\nassert again",
        "print(again)",
    ]
    words = "".join(text.text for text in page.texts)
    assert "How long?" in words
    assert "**1.** Twice as long?" in words
    assert "{python}" not in words
    opened = re.findall(r"^:::.+", words, flags=re.MULTILINE)
    assert len(opened) == 2 == len(re.findall(r"^:::$", words, flags=re.MULTILINE))


def test_a_hidden_check_that_nothing_needs_is_left_out() -> None:
    alone = QUESTIONS.partition("**1.**")[0]
    page = for_students(split_page(Path("one.qmd"), alone))
    assert len(page.cells) == 2


def test_a_page_keeps_its_lines_when_it_gets_its_numbers(tmp_path: Path) -> None:
    text = QUESTIONS.replace("`{python} seen`", "42").replace("`{python} answer`", "84")
    assert with_numbers(split_page(Path("one.qmd"), QUESTIONS), tmp_path).source == text


def test_no_cell_for_students_needs_an_answer(tmp_path: Path) -> None:
    for path in TUTORIALS:
        whole = read_page(path, ROOT)
        page = for_students(whole)
        stem = path.stem.replace("_", "-")
        answers = {answer(name) for name in EXERCISES if name.startswith(f"{stem}-")}
        assert answers, path
        assert answers <= {cell.source for cell in whole.cells}, path
        assert not answers & {cell.source for cell in page.cells}, path
        code = "\n\n".join(cell.code for cell in page.cells if cell.language == "python")
        (tmp_path / f"{path.stem}.py").write_text(code, encoding="utf-8")
    words = ["ruff", "check", "--isolated", "--no-cache", "--select=F821", tmp_path]
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()
