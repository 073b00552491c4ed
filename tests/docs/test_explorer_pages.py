"""Explorers, code and exercises in a real browser: the package's numbers, for every reader."""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from mlsysim.core.errors import MLSysError
from mlsysim_course.explorers import EXPLORERS
from mlsysim_course.labs.catalog import explorer
from tests.conftest import ROOT
from tests.course.test_explorers import random_states
from tests.docs.browser import PHONE, Visitor, tab, toggle_theme, violations

pytestmark = pytest.mark.browser

SERVING = "docs/tutorials/serving_one_gpu.html"
ROOFLINE = "docs/tutorials/hello_world.html"
# Every page with explorers, and their names.
PLACES: dict[str, list[str]] = {}
for _source in sorted((ROOT / "docs").rglob("*.qmd")):
    if _names := re.findall(r'\.mls-explorer.*data-name="([\w-]+)"', _source.read_text("utf-8")):
        PLACES[_source.relative_to(ROOT).with_suffix(".html").as_posix()] = _names
DESK = {"width": 1400, "height": 900}
SETTINGS = 24
# Compiling Python takes a browser seconds, and much longer on a machine that is busy.
PATIENCE = 180_000
BOX = ".mls-explorer[data-name={}]"
GRAY = """getComputedStyle(document.querySelector('.mls-live:has(.mls-plot)')).filter
  === 'grayscale(1)'"""
ASK = """async ([name, states]) => {
  const { python } = await import("/docs/labs/python.js");
  const { ask } = await python(() => {});
  const found = [];
  for (const state of states) found.push(await ask("explore", { name, state }));
  return found;
}"""


@pytest.fixture(scope="module")
def shared(browser: Any, site: str, runtime: None) -> Iterator[Visitor]:
    """A page on which Python is started once, since that takes seconds."""
    for visitor in tab(browser, site):
        visitor.page.set_default_timeout(PATIENCE)
        yield visitor


@pytest.fixture
def fresh(browser: Any, site: str) -> Iterator[Visitor]:
    for visitor in tab(browser, site):
        visitor.page.set_default_timeout(PATIENCE)
        yield visitor


def settled(visitor: Visitor, name: str) -> dict[str, Any]:
    """Wait for the answer to what was done last; return what is shown."""
    box = BOX.format(name)
    visitor.page.wait_for_selector(f"{box}:is([data-state=running], [data-state=failed])")
    shown = visitor.page.get_attribute(box, "data-shown")
    assert shown, visitor.page.inner_text(f"{box} [role=alert]")
    return dict(json.loads(shown))


def same(ours: Any, theirs: Any) -> bool:
    """Equal, but for the last digits in which two machines may differ."""
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, float):
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12)
    return bool(ours == theirs)


@pytest.mark.parametrize("name", EXPLORERS)
def test_random_settings_have_the_numbers_of_the_package(name: str, shared: Visitor) -> None:
    if not shared.page.url.endswith(SERVING):
        shared.open(SERVING)
    states = list(random_states(name, SETTINGS))
    answers = shared.page.evaluate(ASK, [name, states])
    assert len(answers) == SETTINGS
    for state, answer in zip(states, answers, strict=True):
        try:
            expected = {"value": json.loads(json.dumps(explorer(name).view(state)))}
        except MLSysError as error:
            expected = {"refused": str(error)}
        assert same(expected, answer), state
    assert sum("value" in answer for answer in answers) > SETTINGS / 4
    assert shared.troubles == []


def test_a_reader_with_a_keyboard(shared: Visitor, axe: str) -> None:
    """From the still figure to a derivation, a link to share, and back to the figure."""
    page = shared.open(SERVING)
    box = page.locator(BOX.format("kv-wall"))
    still = box.locator("figure img")
    slider = box.get_by_label("Tokens per user", exact=True)
    slider.wait_for()
    assert still.is_visible()
    slider.focus()
    page.keyboard.press("ArrowRight")
    shown = settled(shared, "kv-wall")
    assert not still.is_visible()
    assert shown == {"state": shown["state"], "view": explorer("kv-wall").view({"context": 16_384})}
    assert box.locator(".mls-sentence").inner_text() == shown["view"]["sentence"]
    assert box.locator("svg[role=img]").get_attribute("aria-label") == shown["view"]["sentence"]
    assert page.evaluate("document.activeElement.type") == "range"
    assert page.url.endswith("#kv-wall?context=16384")
    number = box.get_by_role("button", name="KV cache per user")
    assert shown["view"]["readings"][1]["text"] == number.inner_text()
    number.press("Enter")
    panel = box.get_by_role("region", name="Derivation")
    panel.wait_for()
    assert number.get_attribute("aria-expanded") == "true"
    assert panel.locator("a[href^=http]").count() > 0
    assert "torchtune" in panel.inner_text()
    box.get_by_text("Show the numbers as a table").click()
    box.locator("table tbody tr").first.wait_for()
    cells = box.locator("table tbody tr").count()
    assert cells == len(shown["view"]["charts"][0]["series"][0]["points"])
    found = violations(page, axe, ".mls-explorer")
    page.evaluate("scrollTo(0, 0)")
    toggle_theme(page)
    found += violations(page, axe, ".mls-explorer")
    before = page.viewport_size
    page.set_viewport_size({"width": 320, "height": 800})
    page.wait_for_timeout(200)
    wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    page.set_viewport_size(before)
    assert (found, wider) == ([], 0)
    panel.press("Escape")
    assert number.evaluate("one => one === document.activeElement")
    box.get_by_role("button", name="Start over").click()
    assert still.is_visible()
    assert "#" not in page.url
    assert shared.troubles == []


def move(control: Any) -> None:
    """Give a slider or a choice another value."""
    if control.evaluate("one => one.matches('select')"):
        control.select_option(index=1 - min(1, control.evaluate("one => one.selectedIndex")))
    else:
        control.press("Home" if control.evaluate("one => one.value === one.max") else "End")


@pytest.mark.parametrize(("path", "names"), PLACES.items(), ids=list(PLACES))
def test_an_explorer_in_use_is_accessible(
    path: str, names: list[str], shared: Visitor, axe: str
) -> None:
    """Touched, with a derivation and its table open; a desk and a phone have different themes."""
    page = shared.open(path)
    for name in names:
        box = page.locator(BOX.format(name))
        control = box.locator("form :is(select, input)").first
        control.wait_for()
        move(control)
        settled(shared, name)
        box.locator(".mls-figure").first.click()
        box.get_by_role("region", name="Derivation").locator("li").first.wait_for()
        box.get_by_text("Show the numbers as a table").click()
        box.locator(".mls-data table").first.wait_for()
    before, found = page.viewport_size, []
    for size in (DESK, PHONE):
        page.set_viewport_size(size)
        found += violations(page, axe, ".mls-explorer :is(.mls-live, .mls-explore)")
        page.evaluate("scrollTo(0, 0)")
        toggle_theme(page)
    hidden = [name for name in names if not in_sight(page, name)]
    page.set_viewport_size({"width": 320, "height": 800})
    page.wait_for_timeout(200)
    wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    page.set_viewport_size(before)
    assert (found, wider, hidden) == ([], 0, [])
    assert shared.troubles == []


def in_sight(page: Any, name: str) -> bool:
    """Whether the chart is in the window and off the last control, once that is scrolled to."""
    control = page.locator(f"{BOX.format(name)} form .mls-control").last
    control.evaluate("one => one.scrollIntoView({ block: 'end' })")
    page.wait_for_timeout(200)
    chart = page.locator(f"{BOX.format(name)} .mls-plot").last.bounding_box()
    place = control.bounding_box()
    end = chart["y"] + chart["height"]
    return bool(chart["y"] >= 0 and end <= place["y"] + 1 <= page.viewport_size["height"])


def test_a_pasted_configuration_is_read_or_refused(shared: Visitor) -> None:
    page = shared.open(next(path for path, names in PLACES.items() if "import" in names))
    box = page.locator(BOX.format("import"))
    text = box.get_by_role("textbox", name="config.json")
    config = json.loads(text.input_value()) | {"num_hidden_layers": 30}
    text.fill(json.dumps(config))
    shown = settled(shared, "import")
    assert shown["view"] == explorer("import").view({"config": json.dumps(config)})
    assert "num_hidden_layers" not in page.url
    text.fill(json.dumps(config)[:-1])
    box.get_by_role("alert").get_by_text("JSON").wait_for()
    text.fill(json.dumps({"model_type": "resnet"}))
    box.get_by_role("alert").get_by_text("resnet").wait_for()
    text.fill(json.dumps(config))
    box.get_by_role("alert").wait_for(state="hidden")
    assert shared.troubles == []


def test_a_change_says_how_long_it_took(shared: Visitor) -> None:
    """For measurements by hand: a test that limited the time would fail on a busy machine."""
    page = shared.open(SERVING)
    slider = page.locator(BOX.format("kv-wall")).get_by_label("Tokens per user", exact=True)
    for key in ("Home", "ArrowRight"):
        slider.press(key)
        settled(shared, "kv-wall")
        taken = page.get_attribute(BOX.format("kv-wall"), "data-milliseconds")
        assert taken is not None
        assert 0 < float(taken) < math.inf


def test_a_shared_link_opens_as_it_was_sent(shared: Visitor) -> None:
    page = shared.open(f"{ROOFLINE}#roofline?batch=64&precision=int8&efficiency=7")
    shown = settled(shared, "roofline")
    assert shown["view"] == explorer("roofline").view({"batch": 64, "precision": "int8"})
    box = page.locator(BOX.format("roofline"))
    assert "efficiency = 7" in box.get_by_role("alert").inner_text()
    assert box.get_by_role("slider", name="Batch size").get_attribute("aria-valuetext") == "64"
    box.get_by_label("Number format").select_option("fp8")
    box.get_by_role("alert").get_by_text("'fp8' is not supported").wait_for()
    assert parse_qs(page.url.split("?")[1]) == {"batch": ["64"], "precision": ["fp8"]}
    assert shared.troubles == []


def test_code_runs_and_answers_are_checked(shared: Visitor, axe: str) -> None:
    page = shared.open(ROOFLINE)
    page.locator(".callout-header[data-bs-toggle=collapse]").first.click()
    place = page.locator(".cell", has_text="images per second").first
    printed = place.locator(".cell-output-stdout pre").inner_text()
    place.get_by_role("button", name="Run here").click()
    result = place.locator(".mls-ran pre")
    result.wait_for()
    assert result.inner_text().strip() == printed.strip()
    assert not place.locator(".cell-output-stdout").is_visible()
    editor = place.get_by_label("Code of this block")
    editor.fill(
        "import statistics\n"  # a part of the library that no explorer imports
        "r = SingleNodeSolver.solve(model=model, hardware=gpu, batch_size=4, efficiency=0.5)\n"
        "print(r.bottleneck, statistics.mean([1, 3]))"
    )
    editor.press("Control+Enter")
    place.locator(".mls-ran", has_text="compute 2").wait_for()
    editor.fill("\n1 / 0")
    editor.press("Control+Enter")
    place.locator(".mls-error", has_text="line 2: ZeroDivisionError").wait_for()
    place.get_by_role("button", name="Restore").click()
    assert not editor.is_visible()
    needs = page.locator("p.mls-run").first
    assert "NumPy" in needs.inner_text()
    assert (needs.locator("a").get_attribute("href") or "").endswith("hello_world.ipynb")
    form = page.get_by_role("form", name="hello-world-1")
    form.get_by_role("textbox").fill("2")
    form.get_by_role("button", name="Check").click()
    form.locator("[data-tone=bad]", has_text="Not yet").wait_for()
    form = page.get_by_role("form", name="hello-world-2")
    form.get_by_role("textbox").fill("never")
    form.get_by_role("textbox").press("Enter")
    form.locator("[data-tone=good]").wait_for()
    assert violations(page, axe, "main") == []
    assert shared.troubles == []


def test_a_loop_without_an_end_is_stopped(shared: Visitor) -> None:
    """Explorers that wait for it are told why, and answer once it is stopped."""
    page = shared.open(ROOFLINE)
    page.locator(".callout-header[data-bs-toggle=collapse]").first.click()
    place = page.locator(".cell", has_text="images per second").first
    place.get_by_role("button", name="Run here").click()
    place.locator(".mls-ran pre").wait_for()
    stop = place.get_by_role("button", name="Stop", exact=True)
    assert not stop.is_visible()
    editor = place.get_by_label("Code of this block")
    editor.fill("while True: pass")
    editor.press("Control+Enter")
    stop.wait_for()
    box = page.locator(BOX.format("roofline"))
    box.get_by_label("Number format").select_option("int8")
    box.get_by_label("Batch size").press("End")  # two changes: not among the answers of the build
    box.get_by_role("alert").get_by_text("still running").wait_for()
    stop.click()
    place.get_by_text("Stopped.").wait_for()
    assert settled(shared, "roofline")["state"]["batch"] == 1024
    assert not box.get_by_role("alert").is_visible()
    editor.fill("print(one.bottleneck)")  # a name from a block that has to run again
    editor.press("Control+Enter")
    place.locator(".mls-ran pre", has_text="compute").wait_for()
    assert shared.troubles == []


def test_a_block_loads_what_it_imports(
    browser: Any, site: str, built_site: Path, runtime: None
) -> None:
    """A package of pure Python stands in for NumPy, which a build without a network cannot have."""
    folder = built_site / "docs/labs/runtime"
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in distribution("cycler").files or ():
            if "__pycache__" not in file.parts:
                archive.write(str(file.locate()), file.as_posix())
    manifest, lock = (
        json.loads((folder / name).read_text(encoding="utf-8"))
        for name in ("manifest.json", "pyodide-lock.json")
    )
    entry = lock["packages"]["cycler"]
    entry["depends"] = []
    entry["sha256"] = hashlib.sha256(wheel.getvalue()).hexdigest()
    size = len(wheel.getvalue())
    manifest["extras"] = {"names": ["cycler"], "files": {entry["file_name"]: size}}
    for visitor in tab(browser, site):
        page = visitor.page
        page.set_default_timeout(PATIENCE)
        page.route("**/manifest.json", lambda route: route.fulfill(json=manifest))
        page.route("**/pyodide-lock.json", lambda route: route.fulfill(json=lock))
        page.route(f"**/{entry['file_name']}", lambda route: route.fulfill(body=wheel.getvalue()))
        visitor.open(ROOFLINE)
        page.locator(".callout-header[data-bs-toggle=collapse]").first.click()
        place = page.locator(".cell", has_text="images per second").first
        place.get_by_role("button", name="Run here").click()
        place.locator(".mls-ran pre").wait_for()
        editor = place.get_by_label("Code of this block")
        editor.fill("import cycler\nprint(len(cycler.cycler(a=[1, 2])), one.bottleneck)")
        editor.press("Control+Enter")
        place.locator(".mls-ran pre", has_text="2 compute").wait_for()
        # Explorers go on with the Python that was started again.
        page.locator(BOX.format("roofline")).get_by_label("Batch size").press("End")
        assert settled(visitor, "roofline")["state"]["batch"] == 1024
        assert visitor.troubles == []


def test_a_page_that_was_opened_works_without_a_network(
    browser: Any, site: str, runtime: None
) -> None:
    """The second start restores Python's memory, so it also opens derivations."""
    for visitor in tab(browser, site, service_workers="allow"):
        page = visitor.page
        page.set_default_timeout(PATIENCE)
        visitor.open(f"{SERVING}#kv-wall?context=4096")
        settled(visitor, "kv-wall")
        memory = (
            "caches.open('mlsysim-memory').then((kept) => kept.keys()).then((keys) => keys.length)"
        )
        while not page.evaluate(memory):  # Python starts after the answer of the build
            page.wait_for_timeout(100)
        page.context.set_offline(True)
        visitor.open(f"{SERVING}?again#kv-wall?context=2048")
        assert settled(visitor, "kv-wall")["view"] == explorer("kv-wall").view({"context": 2048})
        box = page.locator(BOX.format("kv-wall"))
        box.get_by_role("button", name="Weights").click()
        box.get_by_role("region", name="Derivation").locator("li").first.wait_for()
        page.context.set_offline(False)


def test_one_change_is_answered_before_python_is_there(fresh: Visitor, runtime: None) -> None:
    """The build's own answer; two changes wait for Python, which the page is loading."""
    held: list[Any] = []
    fresh.page.route("**/pyodide.asm.wasm.bin", lambda route: held.append(route))
    page = fresh.open(SERVING)
    box = page.locator(BOX.format("kv-wall"))
    box.get_by_label("Tokens per user", exact=True).press("ArrowLeft")
    assert settled(fresh, "kv-wall")["view"] == explorer("kv-wall").view({"context": 4096})
    box.get_by_label("Device").select_option("A100")
    box.get_by_role("progressbar").wait_for()
    page.wait_for_function(GRAY)
    while not held:
        page.wait_for_timeout(50)
    held[0].continue_()
    state = {"context": 4096, "device": "A100"}
    page.wait_for_selector(f"{BOX.format('kv-wall')}[data-state=running]")
    assert same(settled(fresh, "kv-wall")["view"], explorer("kv-wall").view(state))
    assert not page.evaluate(GRAY)
    assert fresh.troubles == []


def test_without_scripts_or_python_the_figures_stay(
    browser: Any, site: str, fresh: Visitor
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}/{SERVING}")
    assert page.locator(f"{BOX.format('kv-wall')} img").is_visible()
    assert page.locator("form.mls-explore").count() == 0
    context.close()
    missing = {"missing": "Pyodide could not be fetched."}
    fresh.page.route("**/manifest.json", lambda route: route.fulfill(json=missing))
    fresh.open(SERVING)
    box = fresh.page.locator(BOX.format("kv-wall"))
    box.get_by_text(missing["missing"]).wait_for()
    assert box.locator("img").is_visible()
    assert box.locator("select:enabled, input:enabled").count() == 0
    assert fresh.troubles == []
