"""Each lab in a real browser: compared with the package at every step, and no work is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from mlsysim import ConfigError
from mlsysim_course.controls import Choice, Estimate, Slider
from mlsysim_course.explorers.declare import Explorer
from mlsysim_course.labs.catalog import LABS, find
from tests.docs.browser import DESK, PHONE, Visitor, tab, toggle_theme, violations
from tests.docs.browser import visitor as new_tab
from tools.dev.serving import HOST

pytestmark = pytest.mark.browser

# Compiling Python takes a browser seconds, and much longer on a machine that is busy.
PATIENCE = 180_000
REFUSING = """
Storage.prototype.setItem = function () {
  throw new DOMException("no room", "QuotaExceededError");
};
"""
CLOSED = """
Object.defineProperty(window, "localStorage", {
  get() { throw new DOMException("closed", "SecurityError"); },
});
"""
# Keeps every text of the loading bar, and every text that a screen reader announces there.
WATCHING = """
window.shown = [];
window.heard = [];
new MutationObserver(() => {
  for (const [list, query] of [[shown, ".mls-bytes"], [heard, ".mls-loading [role=status]"]]) {
    const text = document.querySelector(query)?.textContent;
    if (text && text !== list[list.length - 1]) list.push(text);
  }
}).observe(document, { subtree: true, childList: true, characterData: true });
"""


SETTLED = """[...document.querySelectorAll('.mls-explorer')].filter((one) => one.offsetParent)
  .every((one) => one.dataset.state === 'running')"""


def path(name: str) -> str:
    return f"docs/labs/{name.replace('_', '-')}.html"


class Reader:
    """A reader of a lab page, and what the course has for the same answers."""

    def __init__(self, visitor: Visitor, name: str) -> None:
        self.visitor, self.page, self.lab = visitor, visitor.page, find(name)
        self.state: dict[str, Any] = {}
        self.page.set_default_timeout(PATIENCE)
        visitor.open(path(name))
        self.page.wait_for_selector(".mls-question[data-ready]")

    @property
    def notice(self) -> Any:
        return self.page.locator(".mls-notice")

    def press(self, asked: Choice | Estimate, value: Any) -> None:
        box = self.page.locator(f"#{asked.id}")
        if isinstance(asked, Estimate):
            box.get_by_role("spinbutton").fill(str(value))
        else:
            box.locator(f"#{asked.id}-{value}").check()
        box.get_by_role("button").click()

    def answer(self, asked: Choice | Estimate, value: Any) -> None:
        self.press(asked, value)
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

    def start_over(self) -> None:
        """Drop all answers and settings."""
        self.page.once("dialog", lambda dialog: dialog.accept())
        self.page.locator(".mls-ledger").get_by_role("button", name="Start over").click()
        self.page.locator(f"#{self.lab.questions[-1].id}").wait_for(state="hidden")
        self.state = {}
        assert self.ledger() is None

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
                try:
                    shown = explorer.view(setting)
                except ConfigError as error:
                    box.get_by_role("alert").get_by_text(str(error)).wait_for()
                    continue
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


@pytest.fixture(scope="module")
def profile(browser: Any, site: str) -> Iterator[Any]:
    """A browser's profile, which keeps the files of Python and their machine code."""
    for one in tab(browser, site):
        one.open("index.html")
        yield one


@pytest.fixture
def fresh(profile: Visitor, site: str) -> Iterator[Visitor]:
    """A new tab of a reader without a ledger."""
    profile.page.evaluate("localStorage.clear()")
    one = new_tab(profile.page.context, site)
    yield one
    one.page.close()


@pytest.mark.parametrize("name", LABS)
def test_wrong_answers_then_right_ones_and_the_ledger_as_a_file(
    name: str, fresh: Visitor, runtime: None, axe: str, tmp_path: Path
) -> None:
    """One visit, since Python takes seconds to start. A page hides what a prediction unlocks."""
    reader = Reader(fresh, name)
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
        assert box.locator("input:enabled").count() == (0 if asked.locks else len(asked.options))
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
    page.set_viewport_size(DESK)
    page.reload()
    page.get_by_text("Restored from this browser.").wait_for()
    reader.compare()
    reader.start_over()
    for asked in reader.lab.questions:
        reader.answer(asked, asked.truth())
    ledger = reader.ledger()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export").click()
    file = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(file)
    assert json.loads(file.read_text(encoding="utf-8")) == ledger
    reader.start_over()
    damaged = tmp_path / "mine.json"
    damaged.write_text("{}", encoding="utf-8")
    page.locator("input[type=file]").set_input_files(damaged)
    page.locator(".mls-notice", has_text="mine.json was not imported").wait_for()
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_text("Imported from").wait_for()
    assert reader.ledger() == ledger
    reader.state = ledger["state"]
    reader.compare()
    assert fresh.troubles == []


def test_nothing_but_the_site_is_asked_and_nothing_after_the_start(
    fresh: Visitor, built_site: Path, runtime: None
) -> None:
    fresh.page.add_init_script(WATCHING)
    addresses: list[str] = []
    fresh.page.on("request", lambda request: addresses.append(request.url))
    held: list[Any] = []
    fresh.page.route("**/pyodide.asm.wasm.bin", lambda route: held.append(route))
    reader = Reader(fresh, "parallelism_paradox")
    first, *others = reader.lab.questions
    reader.press(first, first.truth())
    fresh.page.locator(".mls-bytes").wait_for()
    held[0].continue_()
    fresh.page.wait_for_selector(f"#{first.id}[data-verdict]")
    reader.state = {first.id: first.truth()}
    reader.compare()
    hosts = {urlsplit(one).hostname for one in addresses if one.startswith(("http", "ws"))}
    assert hosts == {HOST}
    count = len(addresses)
    fresh.page.context.set_offline(True)
    for asked in others:
        reader.answer(asked, asked.truth())
    fresh.page.context.set_offline(False)
    assert [one for one in addresses[count:] if not one.startswith("blob:")] == []
    # The bytes of the download are counted, and screen readers hear only some of the counts.
    manifest = json.loads((built_site / "docs/labs/runtime/manifest.json").read_text("utf-8"))
    total = f"{sum(manifest['files'].values()) / 1e6:.1f}"
    shown, heard = fresh.page.evaluate("[shown, heard]")
    counts = [text for text in shown if text.endswith(" MB")]
    loaded = [float(text.split()[0]) for text in counts]
    assert loaded == sorted(loaded)
    assert counts[-1] == f"{total} of {total} MB"
    assert len(heard) < 10, heard
    assert fresh.troubles == []


def test_a_chart_tells_its_values_to_the_pointer_and_to_the_keys(
    fresh: Visitor, runtime: None
) -> None:
    reader = Reader(fresh, "parallelism_paradox")
    first, explorer = reader.lab.questions[0], reader.lab.explorers[0]
    reader.answer(first, first.truth())
    box = reader.box(explorer)
    series = explorer.view({})["charts"][0]["series"]
    tip, cursor = box.locator(".mls-tip"), box.locator(".mls-plot").get_by_role("slider")
    circles = box.locator("svg[role=img] circle")
    for at, (place, value) in enumerate(series[0]["points"]):
        circles.nth(at).hover(force=True)  # another line may lie over it
        assert f"GPUs: {place}" in tip.inner_text()
        assert f"Your setting {value:.4g}" in tip.inner_text()
    fresh.page.mouse.move(0, 0)
    tip.wait_for(state="hidden")
    cursor.press("Home")
    for place, value in series[0]["points"]:
        assert tip.is_visible()
        heard = cursor.get_attribute("aria-valuetext")
        assert heard.startswith(f"GPUs: {place}, Your setting {value:.4g}")
        cursor.press("ArrowRight")
    cursor.press("Escape")
    assert not tip.is_visible()
    assert reader.ledger()["state"] == {first.id: first.truth()}


@pytest.mark.parametrize(("script", "name"), [(REFUSING, "QuotaExceeded"), (CLOSED, "Security")])
def test_what_cannot_be_saved_is_reported(
    script: str, name: str, fresh: Visitor, runtime: None, renderer: str, tmp_path: Path
) -> None:
    fresh.page.add_init_script(script)
    reader = Reader(fresh, "checkpointing")
    reader.press(reader.lab.questions[0], 20)
    reader.notice.get_by_text("Not saved").wait_for()
    words = reader.notice.inner_text()
    assert words.startswith(f"Not saved: this browser refused ({name}Error).")
    with fresh.page.expect_download() as waiting:
        fresh.page.get_by_role("button", name="Export").click()
    waiting.value.save_as(tmp_path / "saved.json")
    exported = json.loads((tmp_path / "saved.json").read_text(encoding="utf-8"))
    assert exported["state"] == {"act1_prediction": 20}
    if renderer == "_preview":  # Quarto's own scripts do not expect a browser that stores nothing
        assert fresh.troubles == []


def test_a_damaged_ledger_is_reported(fresh: Visitor, runtime: None) -> None:
    reader = Reader(fresh, "checkpointing")
    fresh.page.evaluate(f"localStorage.setItem({reader.key!r}, '{{')")
    fresh.page.reload()
    reader.notice.get_by_text("The ledger saved in this browser cannot be read").wait_for()
    assert fresh.page.locator("#act1_prediction").get_by_role("spinbutton").is_enabled()


def test_two_tabs_do_not_overwrite_each_other(fresh: Visitor, site: str, runtime: None) -> None:
    reader, other = (
        Reader(one, "checkpointing") for one in (fresh, new_tab(fresh.page.context, site))
    )
    first, second = reader.lab.questions[:2]
    other.answer(first, 60)
    fresh.page.evaluate(f"localStorage.removeItem({reader.key!r})")
    other.notice.wait_for()
    reader.answer(first, 20)
    other.press(second, "root")
    other.page.wait_for_selector(f"#{second.id}[data-verdict]")
    assert reader.ledger()["state"] == {first.id: 20}
    other.notice.get_by_role("button", name="Use the other").click()
    other.notice.wait_for(state="hidden")
    other.state = {first.id: 20}
    other.answer(second, "root")
    reader.notice.get_by_role("button", name="Save this").click()
    other.notice.wait_for()
    assert reader.ledger()["state"] == {first.id: 20}
    assert fresh.troubles == other.visitor.troubles == []
    other.page.close()


def test_a_build_without_python_says_so(fresh: Visitor) -> None:
    missing = {"missing": "Pyodide could not be fetched."}
    fresh.page.route("**/manifest.json", lambda route: route.fulfill(json=missing))
    reader = Reader(fresh, "checkpointing")
    reader.notice.get_by_text(missing["missing"]).wait_for()
    assert fresh.troubles == []


@pytest.mark.parametrize("file", ["pyodide.mjs", "pyodide.asm.wasm.bin", "requirements.zip.bin"])
def test_a_file_that_does_not_arrive_is_named_and_tried_again(
    file: str, fresh: Visitor, runtime: None
) -> None:
    fresh.page.route(f"**/{file}", lambda route: route.abort())
    reader = Reader(fresh, "checkpointing")
    first = reader.lab.questions[0]
    reader.press(first, 20)
    reader.notice.get_by_text(file).wait_for()
    if file == "pyodide.mjs":
        fresh.page.unroute(f"**/{file}")
        reader.answer(first, 20)


def test_without_scripts_the_page_says_what_it_needs(browser: Any, site: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}/{path('parallelism_paradox')}")
    assert "needs JavaScript" in page.locator("[data-lab]").inner_text()
    context.close()
