"""The lab's page in a real browser: it shows the package's results and loses no work."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from mlsysim_course.labs.parallelism_paradox import view
from tests.docs.browser import PHONE, tab, toggle_theme, violations, visitor
from tests.docs.player import KEY, PATH, PATIENCE, Player
from tools.dev.serving import HOST

pytestmark = pytest.mark.browser

RIGHT = {
    "act1_prediction": "ratio",
    "act1_reflection": "overlap",
    "act2_prediction": "balanced",
    "act2_reflection": "every_layer",
}
WRONG = {
    "act1_prediction": "software",
    "act1_reflection": "faster",
    "act2_prediction": "deep",
    "act2_reflection": "numerics",
}
# A design that meets the requirements of Act II.
DESIGN = {"zero": "sharded", "pp": 4, "microbatches": 48}
PREDICTED = {"act1_prediction": "volume", "act2_prediction": "wide"}
FAILURES: dict[str, dict[str, Any]] = {
    "a1_memory": {"model": "65b"},
    "a1_batch": {"gpus": 1024},
    "a1_wall": {"gpus": 512},
    "a2_memory": {"zero": "replicated"},
    "a2_sizes": {"tp": 3},
    "a2_microbatches": {"microbatches": 192},
    "a2_servers": {"tp": 16},
    "a2_bubble": {"pp": 8},
    "a2_layers": {"pp": 64},
}
REFUSING = """
Storage.prototype.setItem = function () {
  throw new DOMException("no room", "QuotaExceededError");
};
"""
# Keeps every text of the loading card, and every text that a screen reader announces there.
WATCHING = """
window.shown = [];
window.heard = [];
window.bars = 0;
new MutationObserver(() => {
  bars += document.querySelectorAll("progress").length;
  for (const [list, query] of [[shown, ".mls-bytes"], [heard, ".mls-loading [role=status]"]]) {
    const text = document.querySelector(query)?.textContent;
    if (text && text !== list[list.length - 1]) list.push(text);
  }
}).observe(document, { subtree: true, childList: true, characterData: true });
"""
WIDTHS = (320, 390, 768, 1400)
CLOSED = """
Object.defineProperty(window, "localStorage", {
  get() { throw new DOMException("closed", "SecurityError"); },
});
"""


@pytest.fixture(scope="module")
def shared(browser: Any, site: str, runtime: None) -> Iterator[Player]:
    """One lab that is started once, since that takes seconds."""
    for first in tab(browser, site):
        player = Player(first)
        player.page.add_init_script(WATCHING)
        player.open()
        player.offer = player.page.locator("[data-lab]").inner_text()
        player.start()
        player.shown, player.heard, player.bars = player.page.evaluate("[shown, heard, bars]")
        assert first.troubles == []
        yield player


@pytest.fixture
def player(shared: Player) -> Iterator[Player]:
    """That lab, started over."""
    shared.visitor.troubles.clear()
    shared.page.once("dialog", lambda dialog: dialog.accept())
    shared.page.get_by_role("button", name="Start over").click()
    shared.rest()
    assert shared.ledger() == {"state": {}}
    yield shared
    assert shared.visitor.troubles == []


@pytest.fixture
def fresh(browser: Any, site: str) -> Iterator[Player]:
    """A tab of its own, in a browser without memories, before the lab is opened."""
    for first in tab(browser, site):
        yield Player(first)


@pytest.fixture(scope="module")
def runtime(built_site: Path) -> None:
    path = built_site / "docs/labs/runtime/manifest.json"
    if missing := json.loads(path.read_text(encoding="utf-8"))["missing"]:
        pytest.skip(missing)


def play(player: Player, answers: dict[str, str]) -> dict[str, Any]:
    """Answer everything, comparing the page with the package at each step."""
    for name, value in answers.items():
        player.answer(name, value)
        player.compare()
        assert "mls-verdict" in player.page.evaluate("document.activeElement.className")
    return player.compare()


def test_right_answers_and_a_good_design(player: Player) -> None:
    assert player.page.locator(".mls-locked").count() == 1
    play(player, RIGHT)
    assert player.page.locator(".mls-locked").count() == 0
    for name, value in DESIGN.items():
        player.set(name, value)
    end = player.compare()
    assert end["ledger"]["tier"] == "optimal"
    assert player.ledger() == end["ledger"]
    assert player.page.locator(".mls-verdict[data-tone=good]").count() == len(RIGHT)
    assert player.block("a2_accepted").is_visible()


def test_wrong_answers(player: Player) -> None:
    end = play(player, WRONG)
    assert end["ledger"]["tier"] == "developing"
    assert player.page.locator(".mls-verdict[data-tone=bad]").count() == len(WRONG)


def test_a_prediction_locks_and_a_reflection_does_not(player: Player) -> None:
    player.answer("act1_prediction", "memory")
    question = player.block("act1_prediction")
    assert question.locator("input:enabled").count() == 0
    assert question.get_by_role("button").count() == 0
    player.answer("act1_reflection", "batch")
    player.answer("act1_reflection", "overlap")
    assert player.block("act1_reflection").locator(".mls-verdict[data-tone=good]").count() == 1
    player.compare()


def test_a_question_wants_a_choice(player: Player) -> None:
    player.block("act1_prediction").get_by_role("button").click()
    assert player.block("act1_prediction").get_by_role("alert").inner_text().startswith("Choose")
    assert player.ledger() == {"state": {}}


@pytest.mark.parametrize("alert", FAILURES)
def test_every_failure_state_is_shown(alert: str, player: Player) -> None:
    for name, value in PREDICTED.items():
        player.answer(name, value)
    before = DESIGN if alert.startswith("a2") else {}
    for name, value in before.items():
        player.set(name, value)
    assert player.block(alert).count() == 0
    for name, value in FAILURES[alert].items():
        player.set(name, value)
    expected = next(block for block in player.compare()["blocks"] if block["id"] == alert)
    assert player.block(alert).get_attribute("data-tone") == expected["tone"]


def test_an_alert_is_called_out_when_it_comes_and_only_then(player: Player) -> None:
    for name, value in {**PREDICTED, **DESIGN}.items():
        (player.answer if name in PREDICTED else player.set)(name, value)
    player.set("zero", "replicated")
    alert = player.block("a2_memory")
    first = alert.inner_text()
    assert alert.get_attribute("role") == "alert"
    player.page.locator("#lab-microbatches").press("ArrowLeft")
    player.rest()
    assert alert.inner_text() != first
    assert alert.get_attribute("role") is None
    player.set("zero", "sharded")
    player.set("zero", "replicated")
    assert alert.get_attribute("role") == "alert"


def test_charts_and_derivations(player: Player) -> None:
    for name, value in RIGHT.items():
        player.answer(name, value)
    for summary in player.page.locator(".mls-derivation > summary").all():
        summary.focus()
        player.page.keyboard.press("Enter")
        player.page.wait_for_timeout(100)
        player.rest()
    drawn = 0
    for block in player.compare()["blocks"]:
        shown = player.block(block["id"])
        if block["type"] == "chart":
            picture = shown.locator("svg[role=img]")
            assert picture.get_attribute("aria-label") == block["alt"]
            assert picture.locator(".mls-line path").count() == len(block["series"])
            assert picture.locator(".mls-point circle").count() == sum(
                len(one["points"]) for one in block["series"]
            )
            drawn += 1
        if block["type"] == "derivation":
            steps = shown.locator("li")
            assert steps.count() == len(block["steps"]) > 3
            for step, text in zip(block["steps"], steps.all_text_contents(), strict=True):
                assert step["equation_text"] in text
                assert step["value_text"] in text
            drawn += 1
    assert drawn == 4


def test_the_keyboard_is_enough_and_what_has_the_focus_is_seen(player: Player) -> None:
    """From the first question to the last button; nothing lies under the bar at the bottom."""
    page = player.page
    page.locator("#lab-act1_prediction-0").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    player.rest()
    assert player.ledger()["predictions"]["act1_prediction"]["answer"] == "ratio"
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.id || document.activeElement.textContent")
        )
        if reached[-1] == "Start over":
            break
        covered = page.evaluate("""() => {
            const box = document.activeElement.getBoundingClientRect();
            const bar = document.querySelector('.mls-status').getBoundingClientRect();
            return box.bottom > bar.top + 1 || box.top < 0;
        }""")
        assert not covered, reached[-1]
    assert {"lab-model", "lab-gpus", "lab-fabric", "lab-act2_prediction-0"} <= set(reached)
    assert reached[-1] == "Start over"


def test_a_slider_keeps_the_focus_and_says_its_value(player: Player) -> None:
    player.answer("act1_prediction", "ratio")
    slider = player.page.locator("#lab-gpus")
    slider.focus()
    for value in player.item("gpus")["values"][1:]:
        player.page.keyboard.press("ArrowRight")
        player.rest()
        assert player.page.evaluate("document.activeElement.id") == "lab-gpus"
        assert slider.get_attribute("aria-valuetext") == f"{value:,}"
        assert player.ledger()["state"]["gpus"] == value
    player.page.wait_for_function(
        "document.querySelector('[data-lab] > [role=status]').textContent"
    )
    assert "MFU: " in player.page.locator("[data-lab] > [role=status]").text_content()


def test_answers_come_at_once(player: Player) -> None:
    """From the event to the changed page; the best of a few, since other programs run as well."""
    for name, value in RIGHT.items():
        player.answer(name, value)
    times: dict[str, list[float]] = {"gpus": [], "pp": []}
    for name, found in times.items():
        player.page.locator(f"#lab-{name}").press("Home")
        for _ in range(7):
            player.page.keyboard.press("ArrowRight")
            player.rest()
            found.append(float(player.page.get_attribute("[data-lab]", "data-milliseconds")))
    assert min(times["gpus"]) < 50, times
    assert min(times["pp"]) < 50, times


def faults(player: Player, axe: str, stage: str) -> list[str]:
    """What axe finds in the lab in both themes, and what is wider than the screen."""
    page, before = player.page, player.page.viewport_size
    page.evaluate("scrollTo(0, 0)")  # Quarto hides the theme's button further down
    found = [f"{stage}: {text}" for text in violations(page, axe, "[data-lab]")]
    toggle_theme(page)
    found += [f"{stage}, other theme: {text}" for text in violations(page, axe, "[data-lab]")]
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": PHONE["height"]})
        page.wait_for_timeout(100)
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        if wider > 0:
            found.append(f"{stage}: {wider} px wider than a screen of {width} px")
        if width == PHONE["width"]:
            found += [f"{stage}, phone: {text}" for text in violations(page, axe, "[data-lab]")]
    page.set_viewport_size(before)
    toggle_theme(page)
    return found


def test_accessible_at_every_stage_on_every_screen(player: Player, axe: str) -> None:
    found = faults(player, axe, "started")
    for name, value in WRONG.items():
        player.answer(name, value)
        found += faults(player, axe, name)
    player.set("tp", 16)
    for summary in player.page.locator("[data-block] summary").all():
        summary.click()
        player.rest()
    player.page.locator(".mls-lab-cursor").last.focus()
    assert found + faults(player, axe, "all open") == []


def test_accessible_before_and_while_it_loads_and_when_it_fails(
    fresh: Player, axe: str, runtime: None
) -> None:
    fresh.open()
    found = faults(fresh, axe, "waiting")
    held: list[Any] = []
    fresh.page.route("**/pyodide.asm.wasm", lambda route: held.append(route))
    fresh.page.get_by_role("button", name="Start the lab").click()
    fresh.page.locator(".mls-bytes", has_text=" MB").wait_for()
    found += faults(fresh, axe, "loading")
    held[0].abort()
    fresh.page.wait_for_selector("[data-state=failed]")
    assert found + faults(fresh, axe, "failed") == []


def box(player: Player, selector: str) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of an element on the screen."""
    found = player.page.locator(selector).bounding_box()
    assert found is not None, selector
    x, y, width, height = (found[key] for key in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


@pytest.mark.parametrize(("act", "number"), [("act1_prediction", 1), ("act2_prediction", 2)])
def test_controls_chart_and_readings_are_on_one_screen(
    act: str, number: int, player: Player
) -> None:
    for name, value in PREDICTED.items():
        player.answer(name, value)
        if name == act:
            break
    before = player.page.viewport_size
    player.page.set_viewport_size({"width": 1400, "height": 900})
    controls = f"[data-block=a{number}_controls]"
    player.page.locator(controls).evaluate("one => one.scrollIntoView()")
    player.page.wait_for_timeout(200)
    (_, top, right, bottom), bar = box(player, controls), box(player, ".mls-status")
    for name in (f"[data-block=a{number}_chart] svg[role=img]", f"[data-block=a{number}_readouts]"):
        left, upper, _, lower = box(player, name)
        assert left > right
        assert upper >= top
        assert lower <= bar[1]
    assert top >= 0
    assert bottom <= bar[1]
    assert not player.page.locator(".mls-mini").is_visible()
    player.page.set_viewport_size(before)


def test_on_a_phone_the_bar_shows_what_a_slider_changes(player: Player) -> None:
    player.answer("act1_prediction", "ratio")
    before = player.page.viewport_size
    player.page.set_viewport_size(PHONE)
    mini = player.page.locator(".mls-mini")
    slider = player.page.locator("#lab-gpus")
    slider.scroll_into_view_if_needed()
    mini.wait_for(state="visible")
    places = []
    for _ in range(3):
        slider.press("ArrowRight")
        player.rest()
        blocks = {block["id"]: block for block in player.compare()["blocks"]}
        picture = mini.locator("svg[role=img]")
        assert picture.get_attribute("aria-label") == blocks["a1_chart"]["alt"]
        shown = mini.locator("dl").text_content()
        for item in blocks["a1_readouts"]["items"][:3]:
            assert f"{item['label']}" in shown
            assert f"{item['value']}" in shown
        places.append(float(picture.locator(".mls-marker circle").get_attribute("cx")))
        top, bar = box(player, "#lab-gpus")[3], box(player, ".mls-status")
        assert top < bar[1]
        assert bar[3] - bar[1] < PHONE["height"] / 5
    assert places == sorted(set(places))
    player.page.locator("[data-block=a1_mail]").scroll_into_view_if_needed()
    mini.wait_for(state="hidden")
    player.page.set_viewport_size(before)


def test_a_chart_tells_its_values_to_the_pointer_and_to_the_keys(player: Player) -> None:
    player.answer("act1_prediction", "ratio")
    chart = next(block for block in player.compare()["blocks"] if block["id"] == "a1_chart")
    shown = player.block("a1_chart")
    tip, cursor = shown.locator(".mls-lab-tip"), shown.get_by_role("slider")
    circles = shown.locator("svg[role=img] .mls-point").first.locator("circle")
    first, *_, last = chart["series"][0]["points"]
    for circle, (place, value) in ((circles.first, first), (circles.last, last)):
        circle.hover(force=True)  # another line may lie over it
        assert f"{chart['x']['label']}: {place:,}" in tip.inner_text()
        assert f"{value:.1f}{chart['y']['unit']}" in tip.inner_text()
    player.page.mouse.move(0, 0)
    tip.wait_for(state="hidden")
    cursor.press("Home")
    for row in chart["table"]["rows"]:
        heard = cursor.get_attribute("aria-valuetext")
        assert tip.is_visible()
        assert all(cell in heard and cell in tip.inner_text() for cell in row if cell != "–")
        cursor.press("ArrowRight")
    cursor.press("Escape")
    assert not tip.is_visible()
    assert player.ledger()["state"] == {"act1_prediction": "ratio"}


def test_a_wrong_locked_answer_shows_the_right_one(player: Player) -> None:
    for name in ("act1_prediction", "act2_prediction"):
        player.answer(name, WRONG[name])
        block = next(one for one in player.compare()["blocks"] if one["id"] == name)
        labels = {option["value"]: option["label"] for option in block["options"]}
        question = player.block(name)
        marked = question.locator(".mls-option[data-tone=good]")
        assert labels[RIGHT[name]] in marked.inner_text()
        assert labels[WRONG[name]] in question.locator(".mls-option[data-tone=bad]").inner_text()
        assert block["correction"] in question.locator(".mls-verdict").inner_text()
    player.answer("act1_reflection", WRONG["act1_reflection"])
    assert player.block("act1_reflection").locator(".mls-option[data-tone]").count() == 0


def test_no_request_leaves_the_site_and_none_is_needed_after_the_start(
    player: Player, shared: Player
) -> None:
    hosts = {urlsplit(url).hostname for url in shared.asked if url.startswith(("http", "ws"))}
    assert hosts == {HOST}
    assert any(url.endswith("pyodide.asm.wasm") for url in shared.asked)
    count = len(shared.asked)
    player.page.context.set_offline(True)
    try:
        play(player, RIGHT)
    finally:
        player.page.context.set_offline(False)
    assert [url for url in shared.asked[count:] if not url.startswith("blob:")] == []


def test_the_ledger_as_a_file(player: Player, tmp_path: Path) -> None:
    play(player, RIGHT)
    with player.page.expect_download() as waiting:
        player.page.get_by_role("button", name="Export").click()
    file = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(file)
    assert file.name == "parallelism-paradox-ledger.json"
    exported = json.loads(file.read_text(encoding="utf-8"))
    assert exported == player.ledger() == view(exported["state"])["ledger"]
    player.page.once("dialog", lambda dialog: dialog.accept())
    player.page.get_by_role("button", name="Start over").click()
    player.rest()
    assert player.block("act2_prediction").count() == 0
    player.page.locator("input[type=file]").set_input_files(file)
    player.page.get_by_text("Imported from").wait_for()
    assert player.ledger() == exported
    player.compare()


@pytest.mark.parametrize(
    "text", ["no JSON", "{}", '{"lab": "parallelism_paradox", "format": 1, "state": {"tp": 5}}']
)
def test_a_damaged_file_is_refused_in_words(text: str, player: Player, tmp_path: Path) -> None:
    player.answer("act1_prediction", "ratio")
    before = player.ledger()
    file = tmp_path / "mine.json"
    file.write_text(text, encoding="utf-8")
    player.page.locator("input[type=file]").set_input_files(file)
    notice = player.page.locator(".mls-notice")
    notice.wait_for()
    assert notice.inner_text().startswith("mine.json was not imported: ")
    assert player.ledger() == before
    player.compare()


def test_starting_over_asks_first(player: Player) -> None:
    player.answer("act1_prediction", "ratio")
    player.page.once("dialog", lambda dialog: dialog.dismiss())
    player.page.get_by_role("button", name="Start over").click()
    assert player.ledger()["state"] == {"act1_prediction": "ratio"}
    player.compare()


def test_the_bytes_of_the_download_are_counted(shared: Player, built_site: Path) -> None:
    manifest = json.loads((built_site / "docs/labs/runtime/manifest.json").read_text("utf-8"))
    total = f"{sum(manifest['files'].values()) / 1e6:.1f}"
    assert f"{total} MB" in shared.offer
    assert shared.bars
    counts = [text for text in shared.shown if text.endswith(" MB")]
    loaded = [float(text.split()[0]) for text in counts]
    assert len(loaded) > 1
    assert loaded == sorted(loaded)
    assert counts[-1] == f"{total} of {total} MB"
    assert len(shared.heard) < 10, shared.heard


def focused(player: Player) -> str:
    """The block whose element has the focus, if it is on the screen."""
    found: str = player.page.evaluate("""() => {
        const one = document.activeElement;
        const { top, bottom } = one.getBoundingClientRect();
        return top >= 0 && bottom <= innerHeight ? one.dataset.block : `${top} is off the screen`;
    }""")
    return found


def test_a_reload_restores_and_a_damaged_memory_is_reported(player: Player) -> None:
    play(player, RIGHT)
    player.set("gpus", 256)
    kept = player.ledger()
    player.block("a2_heading").evaluate("one => one.scrollIntoView()")
    player.page.reload()
    player.page.get_by_role("button", name="Continue the lab").click()
    player.rest(PATIENCE)
    assert focused(player) == "a2_heading"
    player.compare()
    assert player.ledger() == kept
    assert player.page.locator("#lab-gpus").get_attribute("aria-valuetext") == "256"
    player.page.evaluate(f"localStorage.setItem({KEY!r}, '{{')")
    player.page.reload()
    player.start()
    notice = player.page.locator(".mls-notice").inner_text()
    assert notice.startswith("The ledger saved in this browser cannot be read: ")
    assert player.block("act1_prediction").locator("input:enabled").count() == 4


@pytest.mark.parametrize(("script", "name"), [(REFUSING, "QuotaExceeded"), (CLOSED, "Security")])
def test_what_cannot_be_saved_is_reported(
    script: str, name: str, fresh: Player, runtime: None, renderer: str, tmp_path: Path
) -> None:
    fresh.page.add_init_script(script)
    fresh.open()
    fresh.start()
    label = view({})["blocks"][3]["options"][1]["label"]
    fresh.page.get_by_label(label).check()
    fresh.page.get_by_role("button", name="Lock in my answer").click()
    fresh.rest()
    notice = fresh.page.locator(".mls-notice")
    assert notice.inner_text().startswith(f"Not saved: this browser refused ({name}Error).")
    with fresh.page.expect_download() as waiting:
        fresh.page.get_by_role("button", name="Export").click()
    waiting.value.save_as(tmp_path / "saved.json")
    exported = json.loads((tmp_path / "saved.json").read_text(encoding="utf-8"))
    assert exported["state"] == {"act1_prediction": "ratio"}
    if renderer == "_preview":  # Quarto's own scripts do not expect a browser that stores nothing
        assert fresh.visitor.troubles == []


def test_two_tabs_do_not_overwrite_each_other(fresh: Player, site: str, runtime: None) -> None:
    other = Player(visitor(fresh.page.context, site))
    for one in (fresh, other):
        one.open()
        one.start()
    fresh.answer("act1_prediction", "ratio")
    notice = other.page.locator(".mls-notice")
    notice.wait_for()
    other.block("act1_prediction").get_by_role("radio").last.check()
    other.block("act1_prediction").get_by_role("button").click()
    other.rest()
    assert fresh.ledger()["state"] == {"act1_prediction": "ratio"}
    notice.get_by_role("button", name="Use the other").click()
    notice.wait_for(state="hidden")
    other.rest()
    other.compare()
    other.set("gpus", 64)
    assert other.ledger()["state"] == {"act1_prediction": "ratio", "gpus": 64}
    fresh.page.locator(".mls-notice").get_by_role("button", name="Save this").click()
    fresh.rest()
    assert fresh.ledger()["state"] == {"act1_prediction": "ratio"}
    fresh.compare()
    notice.wait_for()
    assert fresh.visitor.troubles == other.visitor.troubles == []


def test_a_build_without_python_says_so(fresh: Player) -> None:
    missing = {"missing": "Pyodide could not be fetched.", "wheels": ["x.whl"]}
    fresh.page.route("**/manifest.json", lambda route: route.fulfill(json=missing))
    fresh.visitor.open(PATH)
    fresh.page.wait_for_selector("[data-state=missing]")
    words = fresh.page.locator("[data-lab]").inner_text()
    assert missing["missing"] in words
    assert "your own machine" in words
    assert fresh.page.locator("[data-lab] button").count() == 0
    assert fresh.visitor.troubles == []


@pytest.mark.parametrize("file", ["pyodide.mjs", "pyodide.asm.wasm", "requirements.zip", "*.whl"])
def test_a_file_that_does_not_arrive_is_named_and_tried_again(
    file: str, fresh: Player, runtime: None
) -> None:
    fresh.open()
    fresh.page.route(f"**/{file}", lambda route: route.abort())
    fresh.page.get_by_role("button", name="Start the lab").click()
    fresh.page.wait_for_selector("[data-state=failed]", timeout=PATIENCE)
    words = fresh.page.get_by_role("alert").inner_text()
    assert "The lab could not be loaded." in words
    assert file.replace("*", "-none-any") in words
    assert fresh.page.locator("[data-state=failed] a[href='#without']").is_visible()
    again = fresh.page.get_by_role("button", name="Try again")
    assert again.evaluate("one => one === document.activeElement")
    if file == "pyodide.mjs":
        fresh.page.unroute(f"**/{file}")
        again.click()
        fresh.rest(PATIENCE)
        fresh.compare()


def test_what_is_refused_is_set_back_and_an_error_ends_the_lab_in_words(
    fresh: Player, site: str, runtime: None
) -> None:
    """Neither can be reached by a reader, so the worker is told to answer so."""
    trick = """view: (asked) => {
      if (asked.text.includes('"gpus":16')) return { refused: "gpus = 16 is out of range" };
      if (asked.text.includes('"gpus":32')) throw new Error("no such thing");
      return honest(asked);
    },"""

    def altered(route: Any) -> None:
        text = route.fetch().text().replace("  view:", "  honest:")
        text = text.replace("const questions = {", f"const questions = {{\n{trick}", 1)
        text = text.replace("return honest(", "return questions.honest(")
        route.fulfill(body=text, content_type="text/javascript")

    fresh.page.route("**/worker.js", altered)
    fresh.open()
    fresh.start()
    fresh.answer("act1_prediction", "ratio")
    slider = fresh.page.locator("#lab-gpus")
    slider.press("ArrowRight")
    fresh.rest()
    notice = fresh.page.locator(".mls-notice").inner_text()
    assert notice == "Not possible: gpus = 16 is out of range"
    assert slider.get_attribute("aria-valuetext") == "8"
    fresh.compare()
    fresh.page.evaluate("document.querySelector('#lab-gpus').value = 2")
    slider.dispatch_event("input")
    fresh.page.wait_for_selector("[data-state=failed]")
    words = fresh.page.locator("[data-lab] [role=alert]").inner_text()
    assert "no such thing" in words
    assert "saved in this browser" in words
    fresh.page.unroute("**/worker.js")
    fresh.page.get_by_role("button", name="Try again").click()
    fresh.rest(PATIENCE)
    assert fresh.compare()["ledger"]["state"] == {"act1_prediction": "ratio"}
    assert fresh.visitor.troubles == []


def test_without_scripts_the_page_says_what_it_needs(browser: Any, site: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}/{PATH}")
    assert re.search(r"needs JavaScript", page.locator("[data-lab]").inner_text())
    context.close()
