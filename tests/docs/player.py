"""A reader of a lab page: answers, turns knobs, and compares the page with the package's answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mlsysim_course.labs.catalog import find
from tests.docs.browser import Visitor

LAB = "parallelism_paradox"
PATH = f"docs/labs/{LAB.replace('_', '-')}.html"
KEY = f"mlsysim-lab-{LAB}"
# Compiling Python takes a browser seconds, and much longer on a machine that is busy.
PATIENCE = 180_000
# What is not read as words, or is checked in another way.
UNSEEN = {"type", "id", "kind", "tone", "level", "value", "values", "unit", "selected", "verdict"}
UNSEEN |= {"right"}
UNSEEN |= {"alt", "x", "y", "series", "marker", "rule", "steps", "title"}


@dataclass
class Player:
    """A lab page in a tab, and what was done there."""

    visitor: Visitor
    name: str = LAB
    asked: list[str] = field(default_factory=list)
    # Of a lab that was watched while it started: its words before, and those while it loaded.
    offer: str = ""
    shown: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    bars: int = 0

    def __post_init__(self) -> None:
        self.page = self.visitor.page
        self.lab = find(self.name)
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self) -> None:
        self.visitor.open(f"docs/labs/{self.name.replace('_', '-')}.html")
        self.page.wait_for_selector("[data-lab] button")

    def start(self) -> None:
        self.page.locator("[data-lab] button").first.click()
        self.rest(PATIENCE)

    def rest(self, timeout: float = 30_000) -> None:
        """Wait until the page shows the answer to what was done last."""
        self.page.wait_for_selector(
            "[data-lab]:is([data-state=running], [data-state=failed])", timeout=timeout
        )
        assert self.page.locator("[data-state=failed]").count() == 0, self.page.inner_text(
            ".mls-alert"
        )

    def ledger(self) -> Any:
        key = f"mlsysim-lab-{self.name}"
        return json.loads(self.page.evaluate(f"localStorage.getItem({key!r})") or '{"state": {}}')

    def block(self, name: str) -> Any:
        return self.page.locator(f"[data-block={name}]")

    def answer(self, name: str, value: str) -> None:
        blocks = self.lab.view(self.ledger()["state"])["blocks"]
        asked = next(block for block in blocks if block["id"] == name)
        options = asked["options"]
        label = next(option["label"] for option in options if option["value"] == value)
        self.block(name).get_by_label(label).check()
        self.block(name).get_by_role("button").click()
        self.rest()

    def set(self, name: str, value: Any) -> None:
        """Choose from a list, or move a slider with the keyboard."""
        item = self.item(name)
        control = self.page.locator(f"#lab-{name}")
        if item["kind"] == "choice":
            values = [option["value"] for option in item["options"]]
            control.select_option(index=values.index(value))
        else:
            control.press("Home")
            for _ in range(item["values"].index(value)):
                control.press("ArrowRight")
        self.rest()

    def item(self, name: str) -> Any:
        """What the package says of a control."""
        blocks = self.lab.view(self.ledger()["state"])["blocks"]
        items = (item for block in blocks for item in block.get("items", ()))
        return next(item for item in items if item.get("id") == name)

    def compare(self) -> dict[str, Any]:
        """Compare the page with what the package returns here; return that."""
        kept = self.ledger()
        state = self.lab.restore(json.dumps(kept)) if kept["state"] else {}
        expected = self.lab.view(state)
        shown = self.page.locator("[data-block]")
        names = shown.evaluate_all("all => all.map(one => one.dataset.block)")
        assert names == [block["id"] for block in expected["blocks"]]
        texts = dict(
            zip(names, shown.evaluate_all("all => all.map(one => one.textContent)"), strict=True)
        )
        for block in expected["blocks"]:
            for words in readable(block):
                assert words in texts[block["id"]], (block["id"], words)
        for item in expected["status"]:
            assert (
                f"{item['label']}{item['value']}" in self.page.locator(".mls-status").text_content()
            )
        return expected


def readable(value: Any, name: str = "text") -> Iterator[str]:
    """Every text of a block that a reader sees."""
    if isinstance(value, dict):
        seen = value["type"] == "alert" if "type" in value else False
        for key, inner in value.items():
            if key not in UNSEEN or (seen and key == "title"):
                yield from readable(inner, key)
        if value.get("type") == "readouts":
            yield from (f"{item['value']}" for item in value["items"])
    elif isinstance(value, list):
        for inner in value:
            yield from readable(inner, name)
    elif isinstance(value, str):
        yield value
