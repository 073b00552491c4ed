"""The built site as a whole: links, anchors, reachability, alt texts, nothing from other hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.conftest import pages_of

LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "manifest", "apple-touch-icon"}
CSS_REMOTE = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"])\s*(?:https?:)?//[^'")\s]+""")


@dataclass
class Document(HTMLParser):
    """What one built page points at and can be pointed at."""

    path: Path
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    without_alt: list[str] = field(default_factory=list)
    styles: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._in_style = False
        self.text = self.path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        # Quarto gives the style sheets of both color schemes one id, and switches them by it.
        if "id" in values and values.get("rel") != "stylesheet":
            self.ids.append(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADING and LOADING[tag] in values:
            self.loads.append(values[LOADING[tag]])
        if tag == "link" and LOADED_LINKS & set(values.get("rel", "").split()):
            self.loads.append(values.get("href", ""))
        if tag == "img" and not values.get("alt", "").strip() and values.get("role") != "none":
            self.without_alt.append(values.get("src", "")[:80])
        self.styles.append(values.get("style", ""))
        self._in_style = tag == "style"

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.styles.append(data)


@dataclass
class Site:
    """All built pages."""

    folder: Path

    @cached_property
    def documents(self) -> dict[Path, Document]:
        return {path: Document(path) for path in pages_of(self.folder)}

    def name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def target(self, page: Path, link: str) -> tuple[Path, str] | None:
        """The file and the anchor that a link names; None when it leaves the site."""
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            return None
        where = unquote(parts.path)
        if not where:
            return page, unquote(parts.fragment)
        base = self.folder if where.startswith("/") else page.parent
        path = (base / where.lstrip("/")).resolve()
        return (path / "index.html" if path.is_dir() else path), unquote(parts.fragment)

    def internal(self) -> Iterator[tuple[Path, str, Path, str]]:
        """Every link within the site: page, link, target file, anchor."""
        for page, document in self.documents.items():
            for link in [*document.links, *document.loads]:
                found = self.target(page, link)
                if found is not None:
                    yield page, link, *found


@pytest.fixture(scope="module")
def site(built_site: Path) -> Site:
    return Site(built_site.resolve())


def test_every_link_leads_to_a_file(site: Site) -> None:
    broken = [
        f"{site.name(page)}: {link}"
        for page, link, target, _ in site.internal()
        if not target.is_file()
    ]
    assert not broken, "\n".join(broken)


def test_every_anchor_exists(site: Site) -> None:
    dead = [
        f"{site.name(page)}: {link}"
        for page, link, target, anchor in site.internal()
        if anchor and target in site.documents and anchor not in site.documents[target].ids
    ]
    assert not dead, "\n".join(sorted(set(dead)))


def test_no_id_is_used_twice_on_a_page(site: Site) -> None:
    twice = [
        f"{site.name(page)}: {name}"
        for page, document in site.documents.items()
        for name in {name for name in document.ids if document.ids.count(name) > 1}
    ]
    assert not twice, "\n".join(twice)


def test_every_page_is_reachable_from_the_first(site: Site) -> None:
    seen, waiting = set[Path](), [site.folder / "index.html"]
    while waiting:
        page = waiting.pop()
        if page in seen or page not in site.documents:
            continue
        seen.add(page)
        targets = (site.target(page, link) for link in site.documents[page].links)
        waiting += [target[0] for target in targets if target is not None]
    lost = site.documents.keys() - seen - {site.folder / "404.html"}
    assert not lost, "\n".join(sorted(map(site.name, lost)))


def test_no_two_files_differ_in_case_alone(site: Site) -> None:
    """On some file systems one of them would overwrite the other."""
    names = [path.relative_to(site.folder).as_posix() for path in site.folder.rglob("*")]
    lowered = [name.lower() for name in names]
    assert not [name for name in names if lowered.count(name.lower()) > 1]


def test_no_page_loads_anything_from_another_host(site: Site) -> None:
    remote = [
        f"{site.name(page)}: {address}"
        for page, document in site.documents.items()
        for address in document.loads
        if urlsplit(address).netloc
    ]
    styles = {site.name(p): "\n".join(d.styles) for p, d in site.documents.items()}
    styles |= {site.name(p): p.read_text(encoding="utf-8") for p in site.folder.rglob("*.css")}
    remote += [f"{name}: {m[0]}" for name, css in styles.items() for m in CSS_REMOTE.finditer(css)]
    assert not remote, "\n".join(remote)


def test_every_image_has_a_text(site: Site) -> None:
    silent = [
        f"{site.name(page)}: {image}"
        for page, document in site.documents.items()
        for image in document.without_alt
    ]
    assert not silent, "\n".join(silent)


def test_every_page_says_its_language_and_title(site: Site) -> None:
    for page, document in site.documents.items():
        assert re.search(r"<html[^>]*\blang=", document.text), site.name(page)
        assert re.search(r"<title>[^<]+</title>", document.text), site.name(page)


def test_readers_are_never_told_to_install_another_package(site: Site) -> None:
    """The name on the public index belongs to someone else; ours comes from the site's dist/."""
    bare = re.compile(r"pip3? install (?:-[\w-]+ )*(?:&quot;|['\"])?mlsysim(?![\w./-])")
    wrong = [site.name(page) for page, doc in site.documents.items() if bare.search(doc.text)]
    assert not wrong, "\n".join(wrong)
