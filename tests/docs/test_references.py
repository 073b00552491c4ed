"""Papers that formulas cite are in the bibliography, under the address that they print."""

from __future__ import annotations

import re

import pytest

from mlsysim.core import formulas  # noqa: F401 - fills the registry of formulas
from mlsysim.core.formula import FORMULAS
from mlsysim.core.provenance import cited_works
from tests.conftest import ROOT

BIBLIOGRAPHY = (ROOT / "docs/references.bib").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^@\w+\{(\w+),(.*?)^\}", BIBLIOGRAPHY, re.DOTALL | re.MULTILINE)
WORKS = cited_works(FORMULAS.values())


@pytest.mark.parametrize(
    "address", [url for url in WORKS if "arxiv.org" in url or "doi.org" in url]
)
def test_a_cited_paper_has_an_entry(address: str) -> None:
    assert f"{{{address}}}" in BIBLIOGRAPHY, (
        f"docs/references.bib has no entry with this address; {WORKS[address][0]} cites it"
    )


@pytest.mark.parametrize(("key", "text"), ENTRIES)
def test_entries_are_complete_and_keyed_by_author_and_year(key: str, text: str) -> None:
    fields = dict(re.findall(r"^\s+(\w+)\s*=\s*\{(.+)\},?$", text, re.MULTILINE))
    assert {"author", "title", "year", "url"} <= set(fields)
    surname = fields["author"].split(",")[0].lower()
    assert key == f"{surname}{fields['year']}"


def test_keys_and_addresses_are_unique() -> None:
    addresses = re.findall(r"url\s*=\s*\{([^}]+)\}", BIBLIOGRAPHY)
    assert len(set(addresses)) == len(addresses) == len({key for key, _ in ENTRIES})
