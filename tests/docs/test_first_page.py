"""The first page in a real browser: its roofline, its cards, and both without a script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright import sync_api

from tests.docs.browser import Visitor, visitor

pytestmark = pytest.mark.browser

WIDTHS = (390, 768, 1440)


def tab(browser: Any, site: str, **options: Any) -> Visitor:
    found = visitor(browser.new_context(**options), site)
    found.open("index.html")
    return found


@pytest.fixture
def calm(browser: Any, site: str) -> Iterator[Visitor]:
    found = tab(browser, site, reduced_motion="reduce")
    yield found
    assert found.troubles == []
    found.page.context.close()


@pytest.fixture
def moving(browser: Any, site: str) -> Iterator[Visitor]:
    found = tab(browser, site, reduced_motion="no-preference")
    yield found
    assert found.troubles == []
    found.page.context.close()


def animations(page: sync_api.Page) -> int:
    return int(page.evaluate("document.getAnimations().length"))


def test_the_roofline_draws_itself_once_and_briefly(moving: Visitor) -> None:
    assert animations(moving.page) > 0
    script = "Math.max(...document.getAnimations().map(a => a.effect.getComputedTiming().endTime))"
    assert moving.page.evaluate(script) < 5000, "what lasts longer needs a pause button"


def test_without_motion_the_roofline_is_there_at_once(calm: Visitor) -> None:
    assert animations(calm.page) == 0
    assert (
        calm.page.locator(".mls-hero .drop").last.evaluate("e => getComputedStyle(e).opacity")
        == "1"
    )


def test_devices_are_chosen_by_keyboard(calm: Visitor) -> None:
    page = calm.page
    rates = page.locator(".mls-key tbody tr:first-child td:nth-child(3)")
    before, line = rates.inner_text(), page.locator(".roof").get_attribute("d")
    page.locator(".mls-chips input:checked").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "line => document.querySelector('.roof').getAttribute('d') !== line", arg=line
    )
    assert rates.inner_text() != before
    name = page.locator(".mls-chips input:checked").get_attribute("value") or ""
    assert name in page.locator(".mls-hero figcaption").inner_text()


def test_points_stay_below_the_limit(calm: Visitor) -> None:
    hero = calm.page.locator("[data-mls-hero]").get_attribute("data-mls-hero") or ""
    for name, state in json.loads(hero).items():
        _, _, ridge, top, _, _ = state["line"]
        assert len(state["points"]) == len(state["cells"]) == 5, name
        assert all(y > top for x, y in state["points"] if x >= ridge), name  # y points down
        assert {"memory", "overhead", "compute"} == {limit for _, _, limit in state["cells"]}, name


def test_six_cards_lead_on(calm: Visitor) -> None:
    titles = calm.page.locator(".mls-card h3 a")
    assert titles.count() == 6
    for address in titles.evaluate_all("all => all.map(one => one.href)"):
        assert calm.page.request.get(address).status == 200, address
    assert calm.page.locator("main a[href*='labs/']").count() > 0


@pytest.mark.parametrize("width", WIDTHS)
def test_everything_is_there_without_a_script(browser: Any, site: str, width: int) -> None:
    context = browser.new_context(
        java_script_enabled=False, viewport={"width": width, "height": 900}
    )
    page = context.new_page()
    page.goto(f"{site}/index.html")
    for card in page.locator(".mls-card").all():
        box = card.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    assert page.locator(".mls-chips").is_hidden()
    assert page.locator(".mls-key tbody tr").count() == 5
    context.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_window(calm: Visitor, width: int) -> None:
    calm.page.set_viewport_size({"width": width, "height": 900})
    assert calm.page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    for text in calm.page.locator(".mls-hero svg text").all():
        assert text.evaluate("e => e.getBoundingClientRect().height") > 8
