"""The marimo app in a real browser: played through, saved, and asking no other host."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright import sync_api

from mlsysim.labs import parallelism_paradox as lab
from mlsysim.labs.parallelism_paradox.state import (
    PREDICTION_1,
    PREDICTION_2,
    REFLECTION_1,
    REFLECTION_2,
)
from tests.conftest import ROOT
from tests.docs.browser import FLAGS, Visitor, chromium, visitor

pytestmark = [pytest.mark.browser, pytest.mark.rests_on("mlsysim")]
pytest.importorskip("marimo", reason="marimo is not installed: pip install marimo")

HOST = "127.0.0.1"


@contextmanager
def running(ledger: Path) -> Iterator[str]:
    """The address of the app while it runs."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlsysim.labs", "--headless", "--port", str(port)]
    command += ["--ledger", str(ledger)]
    with (ledger.parent / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://{HOST}:{port}", timeout=5).close()
                break
            except OSError:
                assert server.poll() is None, (ledger.parent / "log").read_text()
                time.sleep(0.2)
        yield f"http://{HOST}:{port}"
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    program = chromium()
    if program is None:
        pytest.skip("no Chromium on this machine; set CHROMIUM to the program")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("desk") / "ledger.json"


@pytest.fixture(scope="module")
def app(ledger: Path, browser: sync_api.Browser) -> Iterator[str]:
    with running(ledger) as address:
        yield address


@pytest.fixture(scope="module")
def desk(browser: sync_api.Browser) -> Iterator[sync_api.BrowserContext]:
    """One browser for all students: marimo's own scripts are loaded and compiled once."""
    context = browser.new_context(viewport={"width": 1100, "height": 900})
    context.set_default_timeout(30_000)
    yield context
    context.close()


@pytest.fixture
def table(app: str, ledger: Path, desk: sync_api.BrowserContext) -> Iterator[Student]:
    """A student at the start of the lab, with an empty table."""
    ledger.unlink(missing_ok=True)
    with seated(app, ledger, desk) as student:
        yield student


@contextmanager
def seated(app: str, ledger: Path, desk: sync_api.BrowserContext) -> Iterator[Student]:
    """A student in a tab of their own; the state of the lab is in the ledger alone."""
    tab = visitor(desk, app)
    try:
        tab.page.goto(app)
        tab.page.get_by_role("heading", name="The parallelism paradox").wait_for()
        yield Student(tab, ledger)
    finally:
        tab.page.close()


class Student:
    """Does with the mouse and the keyboard what a state says."""

    def __init__(self, tab: Visitor, ledger: Path) -> None:
        self.tab, self.page, self.ledger = tab, tab.page, ledger

    def answer(self, question, value) -> None:
        self.page.get_by_role("radio", name=question.options[value], exact=True).click()
        if question.locks:
            self.page.get_by_role("button", name="Lock in my answer").click()
        self.settled(question.id, value)

    def slide(self, name: str, value: int) -> None:
        control = lab.LAB.controls.by_id[name]
        handle = self.page.locator(f'marimo-slider[data-label*="{control.label}"]').get_by_role(
            "slider"
        )
        handle.focus()
        self.page.keyboard.press("Home")
        for _ in range(control.values.index(value)):
            self.page.keyboard.press("ArrowRight")
        self.settled(name, value)

    def choose(self, name: str, value: str) -> None:
        control = lab.LAB.controls.by_id[name]
        box = self.page.locator(f'marimo-dropdown[data-label*="{control.label}"] select')
        box.select_option(label=control.options[value])
        self.settled(name, value)

    def set(self, **design) -> None:
        for name, value in design.items():
            (self.choose if isinstance(value, str) else self.slide)(name, value)

    def settled(self, name: str, value) -> None:
        """Wait until the file says so, and the page what the file says."""
        for _ in range(150):
            if self.ledger.is_file() and self.state().get(name) == value:
                break
            self.page.wait_for_timeout(100)
        assert self.state().get(name) == value
        told = lab.view(self.state())["status"]
        words = " · ".join(f"{item['label']}: {item['value']}" for item in told)
        self.page.locator("[data-status]", has_text=words).wait_for()

    def record(self) -> dict:
        return json.loads(self.ledger.read_text(encoding="utf-8"))

    def state(self) -> dict:
        return self.record()["state"]

    def sees(self, words: str) -> None:
        self.page.get_by_text(words, exact=False).first.wait_for()

    def warned(self, name: str) -> None:
        """Wait until an alert of the package is on the page."""
        blocks = lab.view(self.state())["blocks"]
        (alert,) = (block for block in blocks if block["id"] == name)
        self.sees(alert["title"])


def test_a_right_play_through_is_optimal(table):
    table.sees("Answer the question")
    assert table.page.get_by_role("slider").count() == 0
    table.answer(PREDICTION_1, "ratio")
    table.sees("✓ Right.")
    table.set(gpus=512, exchange="during", held="each", gpu_batch=64)
    table.answer(REFLECTION_1, "overlap")
    table.answer(PREDICTION_2, "balanced")
    table.set(pp=4, microbatches=48, zero="sharded")
    table.warned("a2_accepted")
    table.answer(REFLECTION_2, "every_layer")
    assert table.record() == lab.ledger(table.state())
    assert table.record()["tier"] == "optimal"
    assert table.tab.troubles == []


def test_a_wrong_play_through_is_developing(table):
    table.answer(PREDICTION_1, "memory")
    table.sees("✗ Not quite.")
    table.answer(REFLECTION_1, "faster")
    table.answer(PREDICTION_2, "wide")
    table.answer(REFLECTION_2, "numerics")
    assert table.record()["tier"] == "developing"
    assert {one["verdict"] for one in table.record()["reflections"].values()} == {"wrong"}
    assert table.page.get_by_role("button", name="Lock in my answer").count() == 0
    table.sees("(your answer, locked)")
    table.sees("(right answer)")
    assert table.tab.troubles == []


def test_every_failure_shows(table):
    table.answer(PREDICTION_1, "ratio")
    table.set(gpus=1024)
    table.warned("a1_batch")
    table.set(gpus=512)
    table.warned("a1_wall")
    table.set(model="65b")
    table.warned("a1_memory")
    table.answer(PREDICTION_2, "balanced")
    table.warned("a2_memory")
    table.set(pp=3)
    table.warned("a2_sizes")
    table.set(pp=4, microbatches=24, zero="sharded")
    table.warned("a2_bubble")
    table.set(microbatches=32)
    table.warned("a2_microbatches")
    table.set(tp=16)
    table.warned("a2_servers")
    table.set(pp=64)
    table.warned("a2_layers")
    assert table.tab.troubles == []


def test_a_derivation_opens(table):
    table.answer(PREDICTION_1, "ratio")
    table.page.get_by_role("switch").first.click()
    table.settled("show_derivation_1", True)
    table.sees("mfu = flops / (devices * peak_rate * time)")


def test_the_focus_stays_on_a_slider(table):
    table.answer(PREDICTION_1, "ratio")
    table.slide("gpus", 64)
    table.page.keyboard.press("ArrowRight")
    table.settled("gpus", 128)


def test_the_ledger_outlives_the_tab_and_the_app(desk, tmp_path):
    ledger = tmp_path / "ledger.json"
    with running(ledger) as address, seated(address, ledger, desk) as student:
        student.answer(PREDICTION_1, "volume")
        student.set(gpus=256)
    with running(ledger) as address, seated(address, ledger, desk) as student:
        student.sees("(your answer, locked)")
        student.settled("gpus", 256)


def test_start_again_forgets(table):
    table.answer(PREDICTION_1, "volume")
    table.page.get_by_role("button", name="Start again").click()
    table.page.get_by_role("button", name="Lock in my answer").wait_for()
    for _ in range(100):
        if table.state() == {}:
            break
        table.page.wait_for_timeout(100)
    assert table.state() == {}
    table.answer(PREDICTION_1, "ratio")
    assert table.tab.troubles == []


def test_a_file_that_cannot_be_written_is_told(table):
    table.sees("Saved in")
    table.ledger.unlink()
    table.ledger.mkdir()
    try:
        table.page.get_by_role("radio", name=PREDICTION_1.options["ratio"], exact=True).click()
        table.page.get_by_role("button", name="Lock in my answer").click()
        table.sees("Not saved:")
        with table.page.expect_download() as found:
            table.page.get_by_role("link", name="Download the ledger").click()
        text = Path(found.value.path()).read_text(encoding="utf-8")
        assert lab.restore(text) == {"act1_prediction": "ratio"}
    finally:
        table.ledger.rmdir()


def test_a_damaged_file_is_told_and_left_alone(app, ledger, desk):
    ledger.write_text("{", encoding="utf-8")
    with seated(app, ledger, desk) as student:
        student.sees("the ledger is damaged")
        assert ledger.read_text(encoding="utf-8") == "{"
