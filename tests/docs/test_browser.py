"""The built site in a real browser: quiet, self-contained, and its controls work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.docs.browser import (
    DARK,
    GLOSSARY,
    PHONE,
    TERMS,
    Visitor,
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


# Types each name into the search and returns the address of its first hit.
FIRST_HITS = """names => Object.fromEntries(names.map(name => {
  const input = document.querySelector("#search-input");
  input.value = name;
  input.dispatchEvent(new Event("input"));
  return [name, document.querySelector("#search-results a")?.href ?? ""];
}))"""


@pytest.fixture(params=["light", "dark"])
def themed(request: pytest.FixtureRequest, browser: Any, site: str) -> Iterator[Visitor]:
    """A tab whose system asks for light or for dark."""
    yield from tab(browser, site, color_scheme=request.param)


@pytest.fixture
def light(browser: Any, site: str) -> Iterator[Visitor]:
    yield from tab(browser, site, color_scheme="light")


@pytest.mark.parametrize("path", [*PAGES, *GENERATED])
def test_page_is_quiet_and_accessible(path: str, light: Visitor, axe: str) -> None:
    """In both themes and on a small screen; one visit, since there are many pages."""
    page = light.open(path)
    found = [f"light: {text}" for text in violations(page, axe)]
    toggle_theme(page)
    found += [f"dark: {text}" for text in violations(page, axe)]
    page.set_viewport_size(PHONE)
    wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    if wider > 0:
        found.append(f"{wider} px wider than a phone")
    if found or light.troubles:
        pytest.fail("\n".join([path, *found, *light.troubles]), pytrace=False)


def test_search_finds(light: Visitor) -> None:
    page = light.open("index.html")
    page.keyboard.press("/")
    page.locator("#search-input").fill("pipeline bubble")
    first = page.locator("#search-results a").first
    first.wait_for()
    first.click()
    page.wait_for_load_state("load")
    assert "bubble" in page.locator("main").inner_text().lower()
    assert light.troubles == []


def test_the_name_of_a_term_finds_the_glossary_first(light: Visitor, built_site: Path) -> None:
    html = (built_site / GLOSSARY).read_text(encoding="utf-8")
    terms = {name: row[0] for row in scan(html)["sections"] for name in row[3]}
    assert {name.lower() for name in terms} >= {name.lower() for name in TERMS}
    page = light.open("index.html")
    page.keyboard.press("/")
    page.wait_for_function("window.searchIndex")
    first = page.evaluate(FIRST_HITS, list(terms))
    wrong = {
        name: first[name]
        for name, anchor in terms.items()
        if not first[name].endswith(f"{GLOSSARY}#{anchor}")
    }
    assert not wrong


def test_code_in_a_fold_opens_and_is_not_searched(light: Visitor, built_site: Path) -> None:
    page = light.open("docs/api/formulas-roofline.html")
    fold = page.locator("details.source").first
    assert not fold.locator("pre").is_visible()
    fold.locator("summary").click()
    assert "return " in fold.locator("pre").inner_text()
    index = (built_site / "site_libs/search-index.js").read_text(encoding="utf-8")
    assert "@formula" not in index


def test_search_says_when_it_finds_nothing(light: Visitor) -> None:
    page = light.open("index.html")
    page.locator(".search-open").click()
    page.locator("#search-input").fill("xyzzyplugh")
    page.wait_for_function("document.querySelector('#search-results').innerText.trim() !== ''")
    assert page.locator("#search-results a").count() == 0


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


def test_code_is_copied(light: Visitor, built_site: Path) -> None:
    page = light.open(first_with(built_site, "sourceCode python"))
    # The first block may lie in a fold; the one that a reader sees is tried.
    block = page.locator("main div.sourceCode:visible").first
    block.hover()
    block.locator(".code-copy-button").click()
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
