"""Sites of several versions in one folder: each page leads to itself in the others."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dev
import mlsysim
from tests.conftest import pages_of
from tests.docs.test_site_links import Document
from tools.dev import publish, versions
from tools.dev.console import DevError

EVERY = ("index.html", "docs/for-teachers.html", "docs/concepts/glossary.html")


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A site of two pages, and the one for missing pages."""
    put(tmp_path / "site/index.html", '<a href="docs/one.html">one</a>')
    put(tmp_path / "site/docs/one.html", '<a href="../index.html">start</a>')
    put(
        tmp_path / "site/404.html",
        '<base href="/"><meta name="quarto:offset" content="/"><script src="/docs/a.js"></script>'
        '<a href="/./index.html">start</a><a href="//other.org/">o</a><a href="https://x.org/">x</a>',
    )
    return tmp_path / "site"


def listed(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads((folder / versions.NAME).read_text(encoding="utf-8"))
    return found


def test_the_list_has_the_pages_of_each_version_the_newest_first(
    small: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "all"
    versions.add(small, folder, "0.9.1")
    (small / "docs/one.html").rename(small / "docs/two.html")
    versions.add(small, folder, "0.10.0")
    versions.add(small, folder, "0.2.0")
    both = ["docs/two.html", "index.html"]
    old = ["docs/one.html", "index.html"]
    assert list(listed(folder).items()) == [("v0.10", both), ("v0.9", old), ("v0.2", both)]
    assert "url=v0.10/index.html" in (folder / "index.html").read_text(encoding="utf-8")


def test_a_patch_takes_the_place_of_its_version(small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "all"
    versions.add(small, folder, "0.1.0")
    (small / "docs/one.html").unlink()
    place = versions.add(small, folder, "0.1.1")
    assert listed(folder) == {"v0.1": ["index.html"]}
    assert place == folder / "v0.1"
    assert sorted(path.name for path in folder.iterdir()) == [
        "404.html", "index.html", "v0.1", "versions.json",
    ]  # fmt: skip


@pytest.mark.parametrize("path", ["/", "/course/", "/course"])
def test_the_page_for_missing_pages_has_full_paths(small: Path, tmp_path: Path, path: str) -> None:
    place = versions.add(small, tmp_path / "all", "0.1.0", path)
    text = (place / "404.html").read_text(encoding="utf-8")
    base = "/course/v0.1/" if "course" in path else "/v0.1/"
    assert re.findall(r'(?:href|src|content)="([^"]*)"', text) == [
        base, base, f"{base}docs/a.js", f"{base}./index.html", "//other.org/", "https://x.org/",
    ]  # fmt: skip
    assert (tmp_path / "all/404.html").read_text(encoding="utf-8") == text


def test_a_folder_with_something_else_is_left_alone(small: Path) -> None:
    with pytest.raises(DevError, match=r"versions\.json"):
        versions.add(small, small, "0.1.0")
    assert not (small / "v0.1").exists()


@pytest.mark.parametrize("version", ["next", "1", "v0.1"])
def test_a_version_begins_with_two_numbers(version: str) -> None:
    with pytest.raises(DevError):
        versions.folder_of(version)


def test_a_version_has_an_address_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(versions.ADDRESS, "https://example.org/course")
    assert versions.move_address("0.3.7") == "/course"
    assert os.environ[versions.ADDRESS] == "https://example.org/course/v0.3/"
    monkeypatch.setenv(versions.ADDRESS, "")
    assert versions.move_address("0.3.7") == "/"
    assert os.environ[versions.ADDRESS] == ""


def test_one_command_builds_a_version_and_lists_it(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built_for = []

    def build(*_: object, **__: object) -> Path:
        built_for.append(os.environ[versions.ADDRESS])
        return small

    monkeypatch.setenv(versions.ADDRESS, "https://example.org/course/")
    monkeypatch.setattr(publish, "build", build)
    monkeypatch.setattr(publish.quarto, "find", lambda retry: Path("quarto"))
    folder, name = tmp_path / "all", versions.folder_of(mlsysim.__version__)
    options = dev.parser().parse_args(["site", "--versions", str(folder)])
    assert options.versions == folder
    assert publish.site(retry_quarto=False, force=False, into=options.versions) == 0
    assert built_for == [f"https://example.org/course/{name}/"]
    assert listed(folder) == {name: ["docs/one.html", "index.html"]}
    text = (folder / "404.html").read_text(encoding="utf-8")
    assert f'<base href="/course/{name}/">' in text


@pytest.fixture(scope="module")
def both(built_site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site as version 0.2, and as version 0.1 without one of its pages."""
    folder, old = tmp_path_factory.mktemp("all"), tmp_path_factory.mktemp("old") / "site"
    versions.add(built_site, folder, "0.2.0")
    shutil.copytree(built_site, old)
    (old / EVERY[1]).unlink()
    versions.add(old, folder, "0.1.0")
    return folder


@pytest.mark.parametrize("name", [*EVERY, "404.html"])
def test_every_link_of_a_version_stays_in_it_and_leads_to_a_file(both: Path, name: str) -> None:
    """A version is a copy, whose links are those of the site; the page for missing ones differs."""
    version = (both / "v0.2").resolve()
    document, links = Document(version / name), 0
    for link in [*document.links, *document.loads]:
        where = link.partition("#")[0].partition("?")[0]
        if not where or re.match(r"[a-z]+:|//", where):
            continue
        links += 1
        # The base of the page for missing pages makes its links start at the root.
        base = version if name == "404.html" else (version / name).parent
        target = (both / where.lstrip("/") if where.startswith("/") else base / where).resolve()
        assert target.is_file(), link
        assert target.is_relative_to(version), link
    assert links > 10


def test_every_page_names_the_version_that_computed_it(built_site: Path) -> None:
    pages = {page: page.read_text(encoding="utf-8") for page in pages_of(built_site)}
    words = f"Computed by mlsysim {mlsysim.__version__}"
    assert not [page for page, text in pages.items() if words not in text]
    assert len(pages) > 50


@pytest.fixture
def visitor(browser: Any, both: Path) -> Iterator[Any]:
    from tests.docs.browser import served, tab

    with served(both) as address:
        yield from tab(browser, address)


LINKS = "links => links.map(link => [link.textContent, new URL(link.href).pathname])"


@pytest.mark.browser
def test_the_switcher_leads_to_the_same_page(visitor: Any) -> None:
    for name in EVERY:
        page = visitor.open(f"v0.2/{name}")
        menu = page.locator(".mls-versions")
        menu.locator("summary").focus()
        page.keyboard.press("Enter")
        there = name != EVERY[1]
        other = f"/v0.1/{name}" if there else "/v0.1/index.html"
        assert menu.locator("a").evaluate_all(LINKS) == [
            ["v0.2 (newest)", f"/v0.2/{name}"],
            ["v0.1" if there else "v0.1, start page", other],
        ]
        assert page.locator(".mls-old").count() == 0
        page.keyboard.press("Escape")
        assert not menu.get_by_role("link").first.is_visible()
        assert not visitor.troubles


@pytest.mark.browser
def test_an_old_version_says_so(visitor: Any, axe: str) -> None:
    from tests.docs.browser import violations

    page = visitor.open(f"v0.1/{EVERY[2]}")
    old = page.locator(".mls-old")
    old.wait_for()
    assert old.inner_text() == "You are reading v0.1; the newest is v0.2."
    page.locator(".mls-versions summary").click()
    assert not violations(page, axe)
    old.get_by_role("link").click()
    page.wait_for_url(f"**/v0.2/{EVERY[2]}")
    assert not visitor.troubles


@pytest.mark.browser
def test_the_page_for_missing_pages_of_all_versions_works(visitor: Any) -> None:
    page = visitor.page
    page.goto(f"{visitor.site}/v0.2/not/there.html")
    page.locator("main").get_by_role("link", name="Getting started").click()
    page.wait_for_url("**/v0.2/docs/getting-started.html")


@pytest.mark.browser
def test_without_a_list_nothing_is_asked_and_nothing_shown(
    browser: Any, built_site: Path, both: Path
) -> None:
    from tests.docs.browser import served, tab

    with served(built_site) as address:
        for visitor in tab(browser, address):
            page = visitor.open(EVERY[0])
            page.wait_for_load_state("networkidle")
            assert page.locator(".mls-versions").count() == 0
            assert not visitor.troubles
            page.goto((both / "v0.1" / EVERY[0]).as_uri(), wait_until="load")
            assert page.locator(".mls-versions, .mls-old").count() == 0
