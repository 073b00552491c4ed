"""The bibliography: complete entries, each of them cited."""

import re

import pytest

from mlsysim import UnknownEntryError
from mlsysim.core import formulas  # noqa: F401 - fills the registry of formulas
from mlsysim.core.bibliography import PATH, address, entries, name
from mlsysim.core.formula import FORMULAS
from mlsysim.core.types import cite
from tests.conftest import ROOT

PAPERS = {key: entry for key, entry in entries().items() if "author" in entry}
PLACES = ("mlsysim/**/*.py", "mlsysim/registry/data/**/*.*", "course/**/*.py", "docs/**/*.qmd")


def test_every_entry_is_read():
    text = PATH.read_text(encoding="utf-8")
    assert len(entries()) == len(re.findall(r"^@", text, re.MULTILINE))
    fields = [line for line in text.splitlines() if re.match(r" +\w", line)]
    assert sum(map(len, entries().values())) == len(fields)


def test_a_paper_is_complete_and_its_key_is_author_and_year():
    for key, paper in PAPERS.items():
        assert {"title", "url"} <= set(paper), key
        author = paper["author"].split(",")[0].lower()
        assert re.fullmatch(f"{author}{paper['year']}[b-z]?", key), key


def test_addresses_are_unique():
    addresses = [entry["url"] for entry in entries().values() if "url" in entry]
    assert len(set(addresses)) == len(addresses)


def test_files_of_repositories_are_those_of_a_commit_or_a_release():
    """A branch changes; LLVM's file was read in a transcription that states no commit."""
    urls = {key: entry.get("url", "") for key, entry in entries().items()}
    files = {key: re.search(r"github\.com/.*/blob/([^/]+)/", url) for key, url in urls.items()}
    branches = {
        key
        for key, found in files.items()
        if found and not re.fullmatch(r"[0-9a-f]{7,40}|v[0-9.]+", found[1])
    }
    assert branches == {"mi455x_cycles"}


def test_every_entry_is_cited():
    text = "".join(
        path.read_text(encoding="utf-8") for place in PLACES for path in ROOT.glob(place)
    )
    words = set(re.findall(r"\w+", text)) | {entry.get("work") for entry in entries().values()}
    assert [key for key in entries() if key not in words] == []


def test_formulas_cite_by_key():
    for formula in FORMULAS.values():
        assert "://" not in formula.documentation.references, formula
        for key in formula.works:
            assert f"[{name(key)}]({address(key)})" in formula.references, formula
            assert f"{name(key)}, {address(key)}" in formula.plain_references, formula


@pytest.mark.parametrize(
    ("key", "start"),
    [
        ("dao2023", "Dao (2023), FlashAttention-2: "),
        ("patarasuk2009", "Patarasuk and Yuan (2009), "),
        ("williams2009", "Williams, Waterman and Patterson (2009), Roofline: "),
        ("vaswani2017", "Vaswani et al. (2017), "),
        ("nccl", "NVIDIA, NCCL"),
    ],
)
def test_the_name_of_a_publication(key, start):
    assert name(key).startswith(start)


def test_a_source_has_the_address_of_its_work():
    source = cite("selene")
    assert source.url == PAPERS["narayanan2021"]["url"]
    assert source.locator == "section 5"
    assert cite("selene") is source


def test_marks_of_latex_are_not_shown():
    assert cite("b200_aic").title == "NVIDIA, aiconfigurator, system b200_sxm"


def test_an_unknown_key_is_an_error():
    with pytest.raises(UnknownEntryError):
        cite("selena")
