"""What the built site offers to machines: page cards, redirects, search, llms.txt, its address."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT
from tools.dev import publish, versions
from tools.pages.project import Project, load
from tools.pages.scan import requests
from tools.site import cards


@pytest.fixture(scope="module")
def project(built_site: Path) -> Project:
    return load(ROOT, [])


@pytest.fixture(scope="module")
def published(built_site: Path) -> Path:
    """The site as Quarto built it; the preview has nothing for other programs."""
    if built_site.name != "_site":
        pytest.skip("the preview has no metadata")
    return built_site


def test_every_written_page_has_a_description_of_its_own(project: Project) -> None:
    described: dict[str, str] = {}
    for page in project.pages.values():
        if "api" in page.path.parts or page.path.name == "404.qmd":
            continue
        text = str(page.meta.get("description", ""))
        assert 40 <= len(text) <= 200, f"{page.path}: {len(text)} characters"
        assert described.setdefault(text, str(page.path)) == str(page.path)


def test_every_folder_of_pages_names_a_card(tmp_path: Path) -> None:
    cards.write(tmp_path)
    named = [ROOT / "_quarto.yml", *ROOT.glob("docs/*/_metadata.yml")]
    for path in named:
        image = Path(yaml.safe_load(path.read_text(encoding="utf-8"))["image"])
        assert image.parent == Path("/docs/assets/cards")
        data = (tmp_path / image.name).read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", data[16:24]) == cards.SIZE
        assert len(data) < 100_000
    assert len(named) == len(cards.CARDS)


def test_an_address_becomes_the_address_of_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "ADDRESS", tmp_path / "address.yml")
    monkeypatch.setattr(publish, "VARIABLES", tmp_path / "variables.yml")
    for given, website in (
        ("https://example.org/course/", {"site-url": "https://example.org/course"}),
        ("", {}),
    ):
        monkeypatch.setenv(versions.ADDRESS, given)
        publish.write_variables()
        written = (tmp_path / "address.yml").read_text(encoding="utf-8")
        assert yaml.safe_load(written) == {"website": website}


@pytest.mark.quarto
def test_every_page_has_a_card_and_a_copy_as_markdown(project: Project, published: Path) -> None:
    listed = (published / "llms.txt").read_text(encoding="utf-8")
    for href in project.pages.keys() - {"404.qmd"}:
        name = href.removesuffix(".qmd")
        head = (published / f"{name}.html").read_text(encoding="utf-8").partition("</head>")[0]
        [image] = re.findall(r'<meta property="og:image" content="([^"]*)">', head)
        assert (published / image.partition("docs/")[1] / image.partition("docs/")[2]).is_file()
        assert f"{name}.llms.md)" in listed
        assert (published / f"{name}.llms.md").stat().st_size > 0


@pytest.mark.quarto
def test_old_addresses_lead_to_pages(project: Project, published: Path) -> None:
    old = [name for page in project.pages.values() for name in page.meta.get("aliases", [])]
    assert "/docs/tutorials/llm_serving.html" in old
    assert all((published / name.lstrip("/")).is_file() for name in old)


def test_requests_to_other_hosts_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        '<link rel="canonical" href="https://a.org/"><a href="https://b.org">b</a>'
        '<script src="site.js"></script><script defer src="https://c.org/c.js"></script>'
        '<link href="//d.org/d.css" rel="stylesheet"><img alt="" src="http://e.org/e.png">'
    )
    assert requests(page) == ["https://c.org/c.js", "//d.org/d.css", "http://e.org/e.png"]


def test_quartos_search_gets_an_index_of_the_pages_that_are_there(
    built_site: Path, tmp_path: Path
) -> None:
    names = {"index.html", "docs/getting-started.html"}
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((built_site / name).read_bytes())
    (tmp_path / "search.json").write_text("[]", encoding="utf-8")  # as Quarto leaves one
    subprocess.run([sys.executable, "-m", "tools.site", tmp_path], cwd=ROOT, check=True)
    items = json.loads((tmp_path / "search.json").read_text(encoding="utf-8"))
    assert {item["href"].split("#")[0] for item in items} == names
    assert len({item["objectID"] for item in items}) == len(items)
    assert all(isinstance(item["text"], str) and "<" not in item["text"] for item in items)
