"""What the browser tests share: a Chromium, the served site, the accessibility checker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tools.preview import npm

AXE = {
    ("axe-core", "4.14.1"): (
        "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
        ("axe.min.js",),
    )
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright import sync_api  # the pages' other tests do without it

    from tests.docs.browser import FLAGS, chromium

    program = chromium()
    if program is None:
        pytest.skip("no Chromium on this machine; set CHROMIUM to the program")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def site(built_site: Path) -> Iterator[str]:
    from tests.docs.browser import served

    with served(built_site) as address:
        yield address


@pytest.fixture(scope="module")
def runtime(built_site: Path) -> None:
    """The files of Python, without which explorers and labs only say what is missing."""
    path = built_site / "docs/labs/runtime/manifest.json"
    if missing := json.loads(path.read_text(encoding="utf-8"))["missing"]:
        pytest.skip(missing)


@pytest.fixture(scope="session")
def axe() -> str:
    """The accessibility checker; pinned by version and hash, like the site's own scripts."""
    try:
        (path,) = npm.files(ROOT / "build" / "npm", AXE)
    except OSError as error:
        pytest.skip(f"axe-core is not here and cannot be fetched: {error}")
    return path.read_text(encoding="utf-8")
