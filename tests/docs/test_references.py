"""Papers that formulas cite are in the bibliography, under the address that they print."""

from __future__ import annotations

import re

from mlsysim.core import formulas  # noqa: F401 - fills the registry of formulas
from mlsysim.core.formula import FORMULAS
from mlsysim.core.provenance import cited_works
from tests.conftest import ROOT

BIBLIOGRAPHY = (ROOT / "docs/references.bib").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^@\w+\{(\w+),(.*?)^\}", BIBLIOGRAPHY, re.DOTALL | re.MULTILINE)
WORKS = cited_works(FORMULAS.values())


def test_every_cited_paper_has_an_entry() -> None:
    papers = [url for url in WORKS if "arxiv.org" in url or "doi.org" in url]
    assert papers
    missing = {url: WORKS[url][0] for url in papers if f"{{{url}}}" not in BIBLIOGRAPHY}
    assert not missing, "docs/references.bib has no entry with this address, which is cited"


def test_entries_are_complete_and_keyed_by_author_and_year() -> None:
    assert ENTRIES
    wrong = []
    for key, text in ENTRIES:
        fields = dict(re.findall(r"^\s+(\w+)\s*=\s*\{(.+)\},?$", text, re.MULTILINE))
        if missing := {"author", "title", "year", "url"} - set(fields):
            wrong.append(f"{key} has no {missing}")
        elif not re.fullmatch(
            f"{fields['author'].split(',')[0].lower()}{fields['year']}[b-z]?", key
        ):
            wrong.append(f"{key} is by {fields['author']}, {fields['year']}")
    assert not wrong


def test_keys_and_addresses_are_unique() -> None:
    addresses = re.findall(r"url\s*=\s*\{([^}]+)\}", BIBLIOGRAPHY)
    assert len(set(addresses)) == len(addresses) == len({key for key, _ in ENTRIES})
