"""Each lab in a real browser: played once, compared with the package at every step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlsysim_course.controls import Choice, Estimate, Selector, Slider
from mlsysim_course.explorers.declare import Explorer
from mlsysim_course.labs.catalog import LABS, PAGES, find, page_lab
from tests.docs.browser import PHONE, Visitor, tab, toggle_theme, violations
from tests.docs.player import PATIENCE, Player

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def runtime(built_site: Path) -> None:
    path = built_site / "docs/labs/runtime/manifest.json"
    if missing := json.loads(path.read_text(encoding="utf-8"))["missing"]:
        pytest.skip(missing)


@pytest.mark.parametrize("name", [name for name in LABS if name not in PAGES])
def test_a_lab_is_played_in_the_page(
    name: str, browser: Any, site: str, runtime: None, axe: str
) -> None:
    lab = find(name)
    for visitor in tab(browser, site):
        player = Player(visitor, name)
        player.open()
        player.start()
        player.compare()
        assert violations(player.page, axe, "[data-lab]") == []
        for act in lab.acts:
            asked = act.prediction
            player.answer(asked.id, asked.right)
            assert player.block(asked.id).get_by_role("button").count() == 0
            assert player.block(asked.id).locator("input:enabled").count() == 0
            player.compare()
            for control in act.controls:
                if isinstance(control, Slider):
                    player.set(control.id, control.values[len(control.values) // 2])
                elif isinstance(control, Selector):
                    player.set(control.id, list(control.options)[-1])
            player.compare()
            player.answer(act.reflection.id, act.reflection.right)
        end = player.compare()
        assert player.ledger() == end["ledger"]
        assert violations(player.page, axe, "[data-lab]") == []
        assert visitor.troubles == []


SETTLED = """[...document.querySelectorAll('.mls-explorer')].filter((one) => one.offsetParent)
  .every((one) => one.dataset.state === 'running')"""


class Reader:
    """A reader of a lab page, and what the course has for the same answers."""

    def __init__(self, visitor: Visitor, name: str) -> None:
        self.visitor, self.page, self.lab = visitor, visitor.page, page_lab(name)
        self.state: dict[str, Any] = {}
        visitor.open(f"docs/labs/{name.replace('_', '-')}.html")
        self.page.set_default_timeout(PATIENCE)
        self.page.wait_for_selector(".mls-question[data-ready]")

    def answer(self, asked: Choice | Estimate, value: Any) -> None:
        box = self.page.locator(f"#{asked.id}")
        if isinstance(asked, Estimate):
            box.get_by_role("spinbutton").fill(str(value))
        else:
            box.locator(f"#{asked.id}-{value}").check()
        box.get_by_role("button").click()
        self.page.wait_for_selector(f"#{asked.id}[data-verdict={asked.verdict(value)}]")
        self.state[asked.id] = value
        self.compare()

    def move(self, explorer: Explorer, control: Slider) -> None:
        slider = self.box(explorer).get_by_role("slider", name=control.label, exact=True)
        slider.press("Home")
        slider.press("End")
        self.state[control.id] = control.values[-1]
        self.page.wait_for_function(
            "([key, id, value]) => JSON.parse(localStorage.getItem(key))?.state[id] === value",
            arg=[self.key, control.id, control.values[-1]],
        )

    def box(self, explorer: Explorer) -> Any:
        return self.page.locator(f".mls-explorer[data-name='{explorer.name}']")

    @property
    def key(self) -> str:
        return f"mlsysim-lab-{self.lab.name}"

    def ledger(self) -> Any:
        return json.loads(self.page.evaluate(f"localStorage.getItem({self.key!r})") or "null")

    def compare(self) -> None:
        """Compare the status bar, the saved ledger and each instrument with the course."""
        self.page.wait_for_function(SETTLED)
        expected = self.lab.view(self.state)
        assert self.ledger() == expected["ledger"]
        bar = self.page.locator(".mls-status").text_content() or ""
        for item in expected["status"][1:]:
            assert f"{item['label']}{item['value']}" in bar
        for explorer in self.lab.explorers:
            box = self.box(explorer)
            if box.is_visible():
                setting = {
                    control.id: self.state[control.id]
                    for control in explorer.controls
                    if control.id in self.state
                }
                shown = explorer.view(setting)
                assert box.locator(".mls-sentence").inner_text() == shown["sentence"]
                texts = box.locator(".mls-readings button").all_inner_texts()
                assert all(
                    item["text"] in text
                    for item, text in zip(shown["readings"], texts, strict=True)
                )
                titles = [alert["title"] for alert in shown["alerts"]]
                words = box.locator(".mls-alert strong").all_inner_texts()
                assert all(title in word for title, word in zip(titles, words, strict=True))


def wrong(asked: Choice | Estimate) -> Any:
    if isinstance(asked, Estimate):
        return 2 * asked.factor * asked.truth()
    return next(option for option in asked.options if option != asked.truth())


@pytest.mark.parametrize("name", PAGES)
def test_a_lab_page_hides_what_a_prediction_unlocks(
    name: str, browser: Any, site: str, runtime: None, axe: str
) -> None:
    for visitor in tab(browser, site):
        reader = Reader(visitor, name)
        page = reader.page
        first, second = reader.lab.predictions
        assert page.locator(f"#{first.id}").is_visible()
        assert not page.locator(f"#{second.id}").is_visible()
        assert not any(reader.box(one).is_visible() for one in reader.lab.explorers)
        assert violations(page, axe, "main") == []
        page.locator(f"#{first.id}").get_by_role("button").click()
        assert page.locator(f"#{first.id}").get_by_role("alert").inner_text()
        assert reader.ledger() is None
        for asked in reader.lab.questions:
            reader.answer(asked, wrong(asked))
            box = page.locator(f"#{asked.id}")
            assert "mls-verdict" in page.evaluate("document.activeElement.className")
            assert box.locator("input:enabled").count() == (
                0 if asked.locks else len(asked.options)
            )
            if isinstance(asked, Choice):
                marked = box.locator(".mls-option[data-tone=good]")
                assert marked.count() == int(asked.locks)
                assert box.locator(".mls-verdict").inner_text().count("The right answer") == int(
                    asked.locks
                )
        for explorer in reader.lab.explorers:
            for control in explorer.controls:
                if isinstance(control, Slider):
                    reader.move(explorer, control)
        reader.compare()
        assert violations(page, axe, "main") == []
        toggle_theme(page)
        assert violations(page, axe, "main") == []
        page.set_viewport_size(PHONE)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        page.reload()
        page.get_by_text("Restored from this browser.").wait_for()
        reader.compare()
        assert visitor.troubles == []


@pytest.mark.parametrize("name", PAGES)
def test_right_answers_and_the_ledger_as_a_file(
    name: str, browser: Any, site: str, runtime: None, tmp_path: Path
) -> None:
    for visitor in tab(browser, site):
        reader = Reader(visitor, name)
        page = reader.page
        for asked in reader.lab.questions:
            reader.answer(asked, asked.truth())
        ledger = reader.ledger()
        with page.expect_download() as waiting:
            page.get_by_role("button", name="Export").click()
        file = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(file)
        assert json.loads(file.read_text(encoding="utf-8")) == ledger
        page.once("dialog", lambda dialog: dialog.accept())
        page.locator(".mls-ledger").get_by_role("button", name="Start over").click()
        page.locator(f"#{reader.lab.questions[-1].id}").wait_for(state="hidden")
        assert reader.ledger() is None
        damaged = tmp_path / "mine.json"
        damaged.write_text("{}", encoding="utf-8")
        page.locator("input[type=file]").set_input_files(damaged)
        page.locator(".mls-notice", has_text="mine.json was not imported").wait_for()
        page.locator("input[type=file]").set_input_files(file)
        page.get_by_text("Imported from").wait_for()
        assert reader.ledger() == ledger
        reader.compare()
        assert visitor.troubles == []
