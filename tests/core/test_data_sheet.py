"""A formula's data sheet: what pages and notebooks show of it."""

from __future__ import annotations

import re

import pytest

from mlsysim.core import formulas
from mlsysim.core.bibliography import address
from mlsysim.core.formula import FORMULAS, Formula
from mlsysim.core.provenance import cited_works

SHEETS = pytest.mark.parametrize("item", FORMULAS.values(), ids=lambda item: item.name)


@SHEETS
def test_a_sheet_has_equation_symbols_and_source(item: Formula) -> None:
    text = item.to_markdown()
    assert text == item._repr_markdown_()
    assert f"$$ {item.documentation.equation} $$" in text
    assert "*Source:* " in text
    rows = [line for line in text.splitlines() if line.startswith("| $")]
    assert len(rows) == len(item.signature.parameters) + 1
    assert "*result*" in rows[-1]
    assert all(row.count("|") == 5 for row in rows)


@SHEETS
def test_every_publication_is_a_link_to_its_address(item: Formula) -> None:
    linked = re.findall(r"\]\(([^)]*)\)", item.references)
    assert set(linked) == {address(key) for key in item.works}


def test_works_are_gathered_over_formulas() -> None:
    chosen = [FORMULAS["ridge_point"], FORMULAS["memory_time"]]
    assert cited_works(chosen) == {"williams2009": ["ridge_point", "memory_time"]}
    assert formulas.ridge_point(8, 2) == 4
