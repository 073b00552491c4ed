"""What the built site offers to machines: page cards, sitemap, robots.txt, llms.txt."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit
from xml.etree import ElementTree

import pytest

from tests.conftest import ROOT
from tools.pages.project import load
from tools.site import cards, copies
from tools.site.built import requests
from tools.site.entries import Entry, entries
from tools.site.moved import moved

BASE = "https://example.org/course/"
SPACE = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9"}
LINK = re.compile(r"^- \[([^\]]+)\]\(([^)]+)\): (.+)$", re.MULTILINE)


class Head(HTMLParser):
    """The meta tags of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.found: dict[str, list[str]] = {}
        self.feed(path.read_text(encoding="utf-8").partition("</head>")[0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        name = values.get("property") or values.get("name")
        if tag == "meta" and name:
            self.found.setdefault(name, []).append(values.get("content") or "")
        if tag == "link" and values.get("rel") == "canonical":
            self.found.setdefault("canonical", []).append(values.get("href") or "")

    def __getitem__(self, name: str) -> str:
        (value,) = self.found[name]
        return value


@pytest.fixture(scope="module")
def listed(built_site: Path) -> list[Entry]:
    return entries(load(ROOT, []))


@pytest.fixture(scope="module")
def published(built_site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A part of the site, finished once more for an address."""
    folder = tmp_path_factory.mktemp("site")
    for name in ("index.html", "docs/getting-started.html"):
        text = (built_site / name).read_text(encoding="utf-8")
        kept = [line for line in text.split("\n") if "og:" not in line]
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("\n".join(kept), encoding="utf-8")
    (folder / "search.json").write_text("[]", encoding="utf-8")  # as Quarto leaves one
    finish(folder, MLSYSIM_SITE_URL=BASE)
    return folder


def finish(folder: Path, **environment: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "tools.site", folder],
        cwd=ROOT,
        env={**os.environ, **environment},
        check=True,
    )


def test_every_written_page_has_a_description_of_its_own(listed: list[Entry]) -> None:
    found: dict[str, str] = {}
    for page in load(ROOT, []).pages.values():
        if "api" in page.path.parts or page.path.name == "404.qmd":
            continue
        text = str(page.meta.get("description", ""))
        assert 40 <= len(text) <= 200, f"{page.path}: {len(text)} characters"
        assert found.setdefault(text, str(page.path)) == str(page.path)


def test_every_page_has_a_card(listed: list[Entry], built_site: Path) -> None:
    for entry in listed:
        head = Head(built_site / entry.path)
        assert head["og:title"] == entry.title, entry.path
        assert head["og:description"] == entry.description, entry.path
        assert head["description"], entry.path
        image = urljoin(f"http://x/{entry.path}", head["og:image"])
        assert (built_site / urlsplit(image).path.lstrip("/")).is_file(), entry.path
        assert head["og:image:alt"]


def test_cards_have_the_size_that_their_tags_say(built_site: Path) -> None:
    for section in cards.SECTIONS:
        data = (built_site / cards.path(section)).read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", data[16:24]) == cards.SIZE
        assert len(data) < 100_000


def test_the_sitemap_lists_every_page_once(listed: list[Entry], built_site: Path) -> None:
    tree = ElementTree.parse(built_site / "sitemap.xml")
    paths = [node.text or "" for node in tree.findall("s:url/s:loc", SPACE)]
    found = sorted(path.lstrip("/") or "index.html" for path in paths)
    pages = {path.relative_to(built_site).as_posix() for path in built_site.rglob("*.html")}
    assert found == sorted(pages - {"404.html"} - {old for old, *_ in moved(load(ROOT, []))})


def test_old_addresses_lead_to_pages(built_site: Path) -> None:
    found = list(moved(load(ROOT, [])))
    assert "docs/tutorials/llm_serving.html" in {old for old, *_ in found}
    for old, new, title in found:
        text = (built_site / old).read_text(encoding="utf-8")
        address = re.search(r'url=([^"]+)"', text)
        assert address
        assert ((built_site / old).parent / address[1]).resolve() == (built_site / new).resolve()
        assert (built_site / new).is_file()
        assert title in text


def test_the_list_for_language_models(listed: list[Entry], built_site: Path) -> None:
    text = (built_site / "llms.txt").read_text(encoding="utf-8")
    assert re.match(r"# mlsysim\n\n> .+\n", text)
    links = LINK.findall(text)
    assert len(links) == text.count("\n- ")
    for title, target, description in links:
        assert (built_site / target).is_file(), target
        assert description.endswith((".", "?")), f"{title}: {target}"
    targets = {target for _, target, _ in links}
    assert {copies.path(entry) for entry in listed} == targets


def test_every_page_has_a_copy_as_markdown(listed: list[Entry], built_site: Path) -> None:
    for entry in listed:
        page = (built_site / entry.path).read_text(encoding="utf-8")
        (copy,) = re.findall(r'<link rel="alternate" type="text/markdown" href="([^"]*)">', page)
        text = (built_site / urljoin(entry.path, copy)).read_text(encoding="utf-8")
        assert text.startswith(f"# {entry.title}\n\n> {entry.description}\n\n")
        assert not re.search(r"</?(?:div|span|section|svg)\b", text), entry.path
        sections = len(re.findall(r"<section\b[^>]*\bid=", page))
        assert len(re.findall(r"^##+ ", text, re.MULTILINE)) >= sections, entry.path


def test_copies_show_outputs_equations_and_sources(built_site: Path) -> None:
    text = (built_site / "docs/how-to/explain.md").read_text(encoding="utf-8")
    assert "``` python\n" in text
    assert "``` math\n" in text
    assert re.search(r"^\| compute\.fp16 \|.*\]\(https://", text, re.MULTILINE)
    text = (built_site / "docs/tutorials/distributed.md").read_text(encoding="utf-8")
    assert "*Drawing: Four replicas of the whole model" in text


def test_requests_to_other_hosts_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        '<link rel="canonical" href="https://a.org/"><a href="https://b.org">b</a>'
        '<script src="site.js"></script><script defer src="https://c.org/c.js"></script>'
        '<link href="//d.org/d.css" rel="stylesheet"><img alt="" src="http://e.org/e.png">'
    )
    found = ["https://c.org/c.js", "//d.org/d.css", "http://e.org/e.png"]
    assert requests(page) == found


def test_robots_are_let_in(built_site: Path) -> None:
    text = (built_site / "robots.txt").read_text(encoding="utf-8")
    assert text.startswith("User-agent: *\nAllow: /\n")
    assert "Sitemap" not in text or "https://" in text


def test_with_an_address_everything_is_absolute(published: Path) -> None:
    first, second = Head(published / "index.html"), Head(published / "docs/getting-started.html")
    assert first["canonical"] == first["og:url"] == BASE
    assert second["canonical"] == f"{BASE}docs/getting-started.html"
    assert second["og:image"] == f"{BASE}{cards.path('Start')}"
    assert f"Sitemap: {BASE}sitemap.xml" in (published / "robots.txt").read_text(encoding="utf-8")
    tree = ElementTree.parse(published / "sitemap.xml")
    assert all((n.text or "").startswith(BASE) for n in tree.findall("s:url/s:loc", SPACE))


def test_quartos_search_gets_an_index_of_the_pages_that_are_there(published: Path) -> None:
    items = json.loads((published / "search.json").read_text(encoding="utf-8"))
    assert {item["href"].split("#")[0] for item in items} == {
        "index.html", "docs/getting-started.html",
    }  # fmt: skip
    assert len({item["objectID"] for item in items}) == len(items)
    assert all(isinstance(item["text"], str) and "<" not in item["text"] for item in items)


def test_finishing_twice_changes_nothing(published: Path, tmp_path: Path) -> None:
    copy = tmp_path / "site"
    shutil.copytree(published, copy)
    finish(copy, MLSYSIM_SITE_URL=BASE)
    files = [path.relative_to(published) for path in published.rglob("*") if path.is_file()]
    assert all((published / name).read_bytes() == (copy / name).read_bytes() for name in files)
