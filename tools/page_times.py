"""Times of explorers in Chromium, on one or more built sites in turn.

`python -m tools.bench --pages FOLDER ...` prints, for each folder with a built site: the bytes of a
first visit until Python runs, the times from opening a page to its first answer (with one changed
control and with two; without a cache, with one, and after a visit), and the time of a change.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from mlsysim_course.controls import Paste
from mlsysim_course.explorers import EXPLORERS
from mlsysim_course.labs.catalog import LABS, find
from tests.docs.browser import FLAGS, chromium, served

PAGE, EXPLORER = "docs/tutorials/serving_one_gpu.html", "kv-wall"
SETTINGS = {"one": f"#{EXPLORER}?context=4096", "two": f"#{EXPLORER}?context=4096&device=A100"}
ROUNDS, CHANGES = 3, 20
PATIENCE = 180_000
KEPT = "caches.open('mlsysim-memory').then((kept) => kept.keys()).then((keys) => keys.length)"
SHOWN = f"document.querySelector('.mls-explorer[data-name={EXPLORER}]')?.dataset.shown"
# An explorer of its own, once Python is there, until the answer to each setting is drawn.
CHANGE = """async ([name, states]) => {
  const { python } = await import("/docs/labs/python.js");
  const { explorers } = await import("/docs/labs/explorer.js");
  await python(() => {});
  const box = Object.assign(document.createElement("div"), { className: "mls-explorer" });
  box.dataset.name = name;
  document.querySelector(".mls-explorer").before(box);
  const [explorer] = await explorers([box]);
  const times = [];
  for (const state of states) {
    const begin = performance.now();
    await explorer.refresh(state);
    await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
    times.push(performance.now() - begin);
  }
  box.remove();
  return times;
}"""


def page_times(folders: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Return the figures of each site; times are medians of visits in turn, in milliseconds."""
    visits: dict[Path, list[dict[str, float]]] = {folder: [] for folder in folders}
    changes: dict[Path, dict[str, float]] = {}
    with ExitStack() as stack, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        sites = {folder: stack.enter_context(served(folder)) for folder in folders}
        for _ in range(ROUNDS):
            for folder, site in sites.items():
                visits[folder].append(_visit(browser, site, folder))
        for folder, site in sites.items():
            changes[folder] = _changes(browser, site)
    return {
        str(folder): {
            name: round(statistics.median(one[name] for one in visits[folder]))
            for name in visits[folder][0]
        }
        | {"change_p95_ms": changes[folder]}
        for folder in folders
    }


def _visit(browser: Any, site: str, folder: Path) -> dict[str, float]:
    """Open a page with nothing in the browser, with its files there, and with Python's memory."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    addresses: set[str] = set()  # a service worker asks for some files that a page has asked for
    context.on("request", lambda one: addresses.add(one.url))
    times = {"cold_one_ms": _first_answer(context, site, SETTINGS["one"])}
    page = context.pages[0]
    while not page.evaluate(KEPT):
        page.wait_for_timeout(100)
    files = [folder / one.removeprefix(f"{site}/") for one in addresses if one.startswith(site)]
    times["cold_bytes"] = sum(one.stat().st_size for one in files)  # the server compresses nothing
    for key, setting in SETTINGS.items():
        times[f"second_{key}_ms"] = _first_answer(context, site, setting)
        context.pages[0].evaluate("caches.delete('mlsysim-memory')")
        times[f"warm_{key}_ms"] = _first_answer(context, site, setting)
        while not context.pages[0].evaluate(KEPT):
            context.pages[0].wait_for_timeout(100)
    context.close()
    return times


def _first_answer(context: Any, site: str, setting: str) -> float:
    """Return the time from opening a page to the answer for the setting in its address."""
    for page in context.pages:
        page.close()
    page = context.new_page()
    page.goto(f"{site}/{PAGE}{setting}", wait_until="commit")
    page.wait_for_function(SHOWN, polling=10)
    return float(page.evaluate("performance.now()"))


def _changes(browser: Any, site: str) -> dict[str, float]:
    """Return the 95th percentile of the times of random settings, for each explorer."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{site}/{PAGE}")
    instruments = [*EXPLORERS.values(), *(one for lab in LABS for one in find(lab).explorers)]
    percentiles = {}
    for one in instruments:
        states = list(_states(one.controls, random.Random(one.name)))
        times = page.evaluate(CHANGE, [one.name, [{}, *states]])[1:]
        percentiles[one.name] = round(statistics.quantiles(times, n=20)[-1], 1)
    context.close()
    return percentiles


def _states(controls: Sequence[Any], draw: random.Random) -> Iterator[dict[str, Any]]:
    for _ in range(CHANGES):
        yield {one.id: draw.choice(one.choices) for one in controls if not isinstance(one, Paste)}
