"""The check of wording finds what it lists; `dev.py check` runs it on every page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.dev import wording


@pytest.mark.parametrize(
    ("line", "hits"),
    [
        ("Nobody has fitted on it anew.", 3),
        ("It is next to the ring, compared with a tree.", 0),
        ("a [page](somebody.qmd#in-the-mean) {#nobody}", 0),
        ("`{python} nobody` GPUs to a layer", 1),
    ],
)
def test_a_line(line: str, hits: int, tmp_path: Path) -> None:
    page = tmp_path / "page.qmd"
    page.write_text(f"first\n{line}\n", encoding="utf-8")
    found = list(wording.hits(page))
    assert len(found) == hits
    assert {hit.line for hit in found} <= {2}


def test_the_list_of_words_is_not_checked_itself() -> None:
    checked = {path.name for path in wording.pages()}
    assert {"README.md", "hello_world.qmd"} <= checked
    assert "wording.py" not in checked
