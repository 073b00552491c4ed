"""The built site in a real browser: quiet, self-contained, and its controls work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.docs.browser import (
    DARK,
    DESK,
    GLOSSARY,
    PHONE,
    TERMS,
    Visitor,
    served,
    tab,
    toggle_theme,
    violations,
)
from tools.pages.scan import scan

pytestmark = pytest.mark.browser

PAGES = sorted(
    path.relative_to(ROOT).with_suffix(".html").as_posix()
    for path in [*ROOT.glob("*.qmd"), *(ROOT / "docs").rglob("*.qmd")]
    if "api" not in path.relative_to(ROOT).parts and path.name != "404.qmd"
)
# The reference is made by one program from one template: a few of its pages stand for all.
GENERATED = [
    "docs/api/index.html",
    "docs/api/devices.html",
    "docs/api/formulas-collectives.html",
    "docs/api/Hardware.html",
    "docs/api/SingleNodeSolver.html",
]

COLORS = ["color-contrast", "link-in-text-block"]
WIDTHS = (320, 390, 768)
# Of long lists and tables, a program wrote one row like the other: axe reads the first ones.
FEWER = """document.querySelectorAll("main :is(tr, li, dt, dd, .csl-entry):nth-child(n + 40)")
  .forEach(one => one.remove())"""
# Input and results of the search, in the preview and as Quarto writes them.
SEARCH_INPUT = "#search-input, input.aa-Input"
SEARCH_HITS = "#search-results a, a.search-result-link"
# The preview answers at once; Quarto shows the hits of the words before for an instant.
ANSWERED = """words => {
  if (document.querySelector("#search-results")?.innerText.trim()) return true;
  const first = document.querySelector("a.search-result-link")?.href;
  return first ? first.includes(`?q=${encodeURIComponent(words)}`)
    : Boolean(document.querySelector(".quarto-search-no-results:not(.no-query)"));
}"""
# The headings below the fixed header: how far each is covered.
COVERED = """id => {
  const header = Math.max(0, ...[...document.querySelectorAll("header")]
    .filter(one => ["fixed", "sticky"].includes(getComputedStyle(one).position))
    .map(one => one.getBoundingClientRect().bottom));
  return header - document.getElementById(id).getBoundingClientRect().top;
}"""


@pytest.fixture(params=["light", "dark"])
def themed(request: pytest.FixtureRequest, browser: Any, site: str) -> Iterator[Visitor]:
    """A tab whose system asks for light or for dark."""
    yield from tab(browser, site, color_scheme=request.param)


@pytest.fixture
def light(browser: Any, site: str) -> Iterator[Visitor]:
    yield from tab(browser, site, color_scheme="light")


@pytest.fixture(scope="module")
def reader(browser: Any, site: str) -> Iterator[Visitor]:
    """One tab for the visits to all pages, which has what they share after the first."""
    yield from tab(browser, site, color_scheme="light")


class Nesting(HTMLParser):
    """The kinds of elements on a page, each with the kind around it, on which its colors lie."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.around: list[tuple[str, str | None]] = [("html", None)]
        self.pairs: set[tuple[tuple[str, str | None], ...]] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kind = (tag, dict(attrs).get("class"))
        self.pairs.add((self.around[-1], kind))
        if tag not in {"br", "hr", "img", "input", "link", "meta", "wbr"}:
            self.around.append(kind)

    def handle_endtag(self, tag: str) -> None:
        while len(self.around) > 1 and self.around.pop()[0] != tag:
            pass


@pytest.fixture(scope="module")
def colored(built_site: Path) -> set[str]:
    """Some pages that together have every pair of kinds: contrast takes most of axe's time."""
    pairs = {path: Nesting(built_site / path).pairs for path in (*PAGES, *GENERATED)}
    left, chosen = set[Any]().union(*pairs.values()), set[str]()
    while left:
        path = max(pairs, key=lambda one: len(pairs[one] & left))
        chosen.add(path)
        left -= pairs[path]
    return chosen


@pytest.mark.parametrize("path", [*PAGES, *GENERATED])
def test_page_is_quiet_and_accessible(
    path: str, reader: Visitor, axe: str, colored: set[str]
) -> None:
    """Also in the other theme and on small screens; one visit, since there are many pages."""
    page, found = reader.open(path), []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": PHONE["height"]})
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        if wider > 0:
            found.append(f"{wider} px wider than a screen of {width}")
    page.set_viewport_size(DESK)
    page.evaluate(FEWER)
    if path in colored:
        found += violations(page, axe)
        toggle_theme(page)
        found += violations(page, axe, runOnly=COLORS)
    else:
        found += violations(page, axe, rules={name: {"enabled": False} for name in COLORS})
    if found or reader.troubles:
        pytest.fail("\n".join([path, *found, *reader.troubles]), pytrace=False)


ELSEWHERE = """\
<!doctype html><img src="https://images.example/a.png" alt="">
<script>
  fetch("https://data.example/b").catch(() => {});
  new WebSocket("wss://sockets.example/c");
  console.warn("a warning");
</script><script src="missing.js"></script>
"""


def test_what_goes_wrong_on_a_page_is_noticed(browser: Any, tmp_path: Path) -> None:
    """Requests to other hosts are blocked as well."""
    (tmp_path / "index.html").write_text(ELSEWHERE, encoding="utf-8")
    with served(tmp_path) as address:
        for visitor in tab(browser, address):
            visitor.open("index.html")
            visitor.page.wait_for_timeout(200)
            troubles = visitor.troubles
    for host in ("https://images", "https://data", "wss://sockets"):
        assert [one for one in troubles if one.startswith(f"request to another host: {host}.")]
    assert [one for one in troubles if one.startswith("request failed: https://images.")]
    assert "console warning: a warning" in troubles
    assert [one for one in troubles if one.startswith("answer 404: ") and "missing.js" in one]


def hits(page: Any, words: str) -> Any:
    """Open the search, type words, and return the links that it finds."""
    if not page.locator(SEARCH_INPUT).first.is_visible():
        page.keyboard.press("/")
    page.locator(SEARCH_INPUT).first.fill(words)
    page.wait_for_function(ANSWERED, arg=words)
    return page.locator(SEARCH_HITS)


def test_search_finds(light: Visitor) -> None:
    page = light.open("index.html")
    hits(page, "pipeline bubble").first.click()
    page.wait_for_load_state("load")
    assert "bubble" in page.locator("main").inner_text().lower()
    assert light.troubles == []


def test_the_name_of_a_term_finds_the_glossary_first(light: Visitor, built_site: Path) -> None:
    html = (built_site / GLOSSARY).read_text(encoding="utf-8")
    anchors = {name.lower(): row[0] for row in scan(html)["sections"] for name in row[3]}
    page = light.open("index.html")
    first = {name: hits(page, name).first.get_attribute("href") or "" for name in TERMS}
    wrong = {
        name: address
        for name, address in first.items()
        if not re.split("[?#]", address)[0].endswith(GLOSSARY)
        or not address.endswith(f"#{anchors[name.lower()]}")
    }
    assert not wrong


def test_code_in_a_fold_opens_and_is_not_searched(light: Visitor) -> None:
    page = light.open("docs/api/formulas-roofline.html")
    fold = page.locator("details.source").first
    assert not fold.locator("pre").is_visible()
    fold.locator("summary").click()
    assert "return " in fold.locator("pre").inner_text()
    assert not hits(page, "ParamSpec").count()


def test_search_says_when_it_finds_nothing(light: Visitor) -> None:
    page = light.open("index.html")
    assert hits(page, "xyzzyplugh").count() == 0


@pytest.mark.parametrize("path", ["docs/tutorials/distributed.html", GLOSSARY])
def test_anchors_stop_below_the_header(path: str, light: Visitor) -> None:
    page = light.open(path)
    marks = page.evaluate("[...document.querySelectorAll('main section[id]')].map(one => one.id)")
    for mark in marks[2::6][:4]:
        page.goto("about:blank")
        light.open(f"{path}#{mark}")
        page.wait_for_timeout(300)
        assert page.evaluate(COVERED, mark) <= 1, mark


@pytest.mark.parametrize(
    ("path", "section"),
    [
        ("docs/tutorials/pipelines.html", "Tutorials"),
        ("docs/how-to/units.html", "Get started"),
        ("docs/zoo/models.html", "Catalog"),
        ("docs/api/Hardware.html", "API"),
    ],
)
def test_the_bar_marks_the_section_of_a_page(path: str, section: str, light: Visitor) -> None:
    page = light.open(path)
    marked = page.locator("#quarto-header .navbar .nav-link.active").all_inner_texts()
    assert [text.strip() for text in marked] == [section]


def test_the_theme_follows_the_system_then_the_reader(themed: Visitor) -> None:
    page = themed.open("index.html")
    system = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert page.evaluate(DARK) == system
    toggle_theme(page)
    page = themed.open("docs/getting-started.html")
    assert page.evaluate(DARK) != system, "the choice is forgotten on the next page"


def first_with(built_site: Path, text: str) -> str:
    """The first page whose HTML holds some text."""
    for path in PAGES:
        if text in (built_site / path).read_text(encoding="utf-8"):
            return path
    pytest.fail(f"no page has {text}")


def test_tabs_switch(light: Visitor, built_site: Path) -> None:
    page = light.open(first_with(built_site, "panel-tabset"))
    tabs = page.locator(".panel-tabset").first.locator("[role=tab]")
    tabs.nth(1).click()
    panel = page.locator(f"[id='{tabs.nth(1).get_attribute('aria-controls')}']")
    panel.wait_for(state="visible")
    assert tabs.nth(1).get_attribute("aria-selected") == "true"
    assert tabs.nth(0).get_attribute("aria-selected") == "false"


def test_folded_answers_open(light: Visitor, built_site: Path) -> None:
    page = light.open(first_with(built_site, "callout-collapse"))
    head = page.locator(".callout-header[data-bs-toggle=collapse]").first
    body = page.locator(f"[id='{head.get_attribute('aria-controls')}']")
    assert not body.is_visible()
    head.focus()
    page.keyboard.press("Enter")
    body.wait_for(state="visible")


def test_a_link_into_a_folded_answer_opens_it(light: Visitor) -> None:
    page = light.open("docs/tutorials/edge.html#fig-battery")
    target = page.locator("#fig-battery")
    target.wait_for(state="visible")
    box = target.bounding_box()
    assert box is not None
    assert 0 < box["y"] < 200


def test_code_is_copied(light: Visitor) -> None:
    page = light.open("docs/getting-started.html")
    # The first block may lie in a fold; the one that a reader sees is tried.
    block = page.locator("main div.sourceCode:visible").first
    block.hover()
    page.locator("main .code-copy-button:visible").first.click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.strip() == block.locator("code").inner_text().strip()


def test_a_missing_page_gets_ours(light: Visitor) -> None:
    page = light.open("no/such/page.html")
    assert page.locator("main a[href]").count() > 0
    styled = "[...document.querySelectorAll('link[rel=stylesheet]')].every(one => one.sheet)"
    assert page.evaluate(styled), "the page for missing pages does not find its style sheets"
    toggle_theme(page)


def test_math_is_shown_without_scripts(light: Visitor, built_site: Path) -> None:
    page = light.open(first_with(built_site, "<math"))
    assert page.locator("math").first.bounding_box()["height"] > 0


def test_what_has_the_focus_is_seen(light: Visitor) -> None:
    """Axe does not look for this: each control of the head draws an outline when it is reached."""
    page = light.open("docs/getting-started.html")
    controls = page.locator("#quarto-header :is(a, button):visible").count()
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    for _ in range(controls):
        page.keyboard.press("Tab")
        assert page.evaluate(outline) == "solid", page.evaluate("document.activeElement.outerHTML")


def test_folded_answers_and_tabs_are_open_without_scripts(
    browser: Any, site: str, built_site: Path
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}/{first_with(built_site, 'callout-collapse')}")
    assert all(one.is_visible() for one in page.locator(".callout-collapse").all())
    page.goto(f"{site}/{first_with(built_site, 'panel-tabset')}")
    assert all(one.is_visible() for one in page.locator(".tab-pane").all())
    context.close()
