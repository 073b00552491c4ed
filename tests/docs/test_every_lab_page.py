"""Each lab in a real browser: played once, compared with the package at every step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlsysim_course.controls import Estimate, Selector, Slider
from mlsysim_course.labs.catalog import LABS, find
from tests.docs.browser import tab, violations
from tests.docs.player import Player

pytestmark = [
    pytest.mark.browser,
    pytest.mark.rests_on("mlsysim", "course", "tests/docs/player.py", shared=True),
]


@pytest.fixture(scope="module")
def runtime(built_site: Path) -> None:
    path = built_site / "docs/labs/runtime/manifest.json"
    if missing := json.loads(path.read_text(encoding="utf-8"))["missing"]:
        pytest.skip(missing)


@pytest.mark.parametrize("name", LABS)
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
            if isinstance(asked, Estimate):
                player.block(asked.id).get_by_role("button").click()
                assert player.block(asked.id).get_by_role("alert").inner_text()
                assert player.ledger() == {"state": {}}
            player.answer(asked.id, 20 if isinstance(asked, Estimate) else asked.right)
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
