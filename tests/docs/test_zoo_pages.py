"""The zoo in a browser: the matrix of what is supported answers, rows compare, names are copied."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlsysim import Hardware, Models, support
from tests.docs.browser import PHONE, Visitor, tab, violations

pytestmark = pytest.mark.browser

SUPPORT, HARDWARE = "docs/zoo/support.html", "docs/zoo/hardware.html"
MARKS = {"banded": "●", "unbanded": "○", "too large": "◇", "refused": "×"}
PAGE, ANSWER = 200_000, 4  # bytes of the page around the matrix, and of each answer in it


@pytest.fixture
def reader(browser: Any, site: str) -> Iterator[Visitor]:
    yield from tab(browser, site)


def shown(page: Any, model: str, device: str) -> Any:
    """The cell of a model and a device."""
    heads = page.locator(".mls-matrix thead tr > *").all_text_contents()
    names = page.locator(".mls-matrix tbody th").all_text_contents()
    row = page.locator(".mls-matrix tbody tr").nth(names.index(model))
    return row.locator(f":nth-child({heads.index(device) + 1})")


def test_the_page_is_small_and_its_table_needs_no_script(
    browser: Any, site: str, built_site: Path
) -> None:
    answers = 3 * 8 * len(Models) * len(Hardware)
    assert (built_site / SUPPORT).stat().st_size < PAGE + ANSWER * answers
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}/{SUPPORT}")
    assert page.locator(".mls-matrix tbody td").count() == len(Models) * len(Hardware)
    assert not page.locator(".mls-choices").is_visible()
    assert shown(page, "Llama3_8B", "H100").inner_text().startswith("●")
    context.close()


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_the_list_of_pages_covers_nothing(width: int, reader: Visitor) -> None:
    """The page takes the whole width next to it."""
    page = reader.open(SUPPORT)
    page.set_viewport_size({"width": width, "height": 860})
    title, bar = (page.locator(one).bounding_box() for one in ("main h1", "#quarto-sidebar"))
    assert bar is None or bar["x"] + bar["width"] <= title["x"] or width < 992
    seen = """one => {
      const { x, y, height } = one.getBoundingClientRect();
      return one.contains(document.elementFromPoint(x + 4, y + height / 2));
    }"""
    assert page.locator("main h1").evaluate(seen)
    header = page.locator("#title-block-header")
    space = header.evaluate("one => parseFloat(getComputedStyle(one).marginBottom)")
    assert space >= 16  # Quarto's own style has none beside a sidebar on a phone


def test_cells_are_the_answers_of_the_package(reader: Visitor) -> None:
    models = [Models.Llama3_70B, Models.ResNet50, Models.DeepSeek_V3]
    devices = [Hardware.H100, Hardware.MI300X, Hardware.Coral]
    names = {row.name: key for catalog in (Models, Hardware) for key, row in catalog.items()}
    page = reader.open(SUPPORT)
    for question, precision in itertools.product(
        ("training", "serving", "inference"), ("fp16", "fp8", "int8")
    ):
        page.locator("[name=question]").select_option(question)
        page.locator("[name=precision]").select_option(precision)
        for row in support(
            models=models, devices=devices, precisions=[precision], questions=[question]
        ):
            count = row["devices"] if row["status"] in ("banded", "unbanded") else ""
            cell = shown(page, names[row["model"]], names[row["device"]])
            assert cell.text_content() == f"{MARKS[row['status']]}{count}"
            assert cell.get_attribute("title").startswith(row["status"])
            if row["status"] == "refused":
                assert row["reason"] in cell.get_attribute("title")
    assert reader.troubles == []


def test_the_matrix_narrows_and_follows_the_keys(reader: Visitor, axe: str) -> None:
    page = reader.open(SUPPORT)
    page.locator("[name=models]").fill("llama3")
    page.locator("[name=devices]").fill("h200, mi300")
    heads = page.locator(".mls-matrix thead th:visible").all_text_contents()
    assert heads == [key for key in Hardware.names() if "H200" in key or "MI300" in key]
    rows = page.locator(".mls-matrix tbody th:visible").all_text_contents()
    assert rows == [key for key in Models.names() if "Llama3" in key]
    page.locator(".mls-matrix td[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.locator(".mls-cell").inner_text().startswith(f"{rows[1]} on {heads[1]}: ")
    page.locator("[name=models]").fill("no such model")
    assert page.locator(".mls-matrix tbody tr:visible").count() == 0
    page.locator("[name=models]").fill("")
    page.set_viewport_size({"width": 320, "height": PHONE["height"]})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert violations(page, axe, "main") == []


def test_two_rows_are_compared_and_a_name_is_copied(reader: Visitor, axe: str) -> None:
    page = reader.open(HARDWARE)
    page.get_by_label("copy Hardware.H200", exact=True).first.click()
    assert page.evaluate("navigator.clipboard.readText()") == "Hardware.H200"
    panel = page.locator(".mls-compare")
    assert not panel.is_visible()
    for name in ("V100", "H100", "H200"):
        page.get_by_label(f"Compare Hardware.{name}", exact=True).first.check()
    heads = panel.locator("thead th").all_text_contents()
    assert heads[:2] == ["Hardware.H100", "Hardware.H200"]  # the first choice has made room
    ratio = (Hardware.H200.memory.bandwidth / Hardware.H100.memory.bandwidth).to("").magnitude
    cells = panel.locator("tr", has=page.get_by_text("memory bandwidth (GB/s)")).locator("td")
    assert cells.all_text_contents()[:2] == ["3,350", "4,800"]
    assert float(cells.all_text_contents()[2].rstrip("×")) == pytest.approx(ratio, rel=0.005)
    # What another tab of the page says of the rows is there too.
    assert panel.get_by_text("fp8 (TFLOP/s)").count() == 1
    assert violations(page, axe, ".mls-compare") == []
    panel.get_by_role("button", name="Close").click()
    assert not panel.is_visible()
    assert page.locator(".mls-pick:checked").count() == 0
    assert reader.troubles == []
