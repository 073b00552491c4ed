"""Remembers which browser tests passed, and on what: they run again when any of it changes.

A test marked ``rests_on`` names the files and folders that decide its verdict; ``SITE`` is the
folder of the built site. The test's own file, the helpers, every installed package, the browser and
each file that the test asked the site's server for are added. While all of them have the same
bytes, the test is skipped. ``--again`` runs it anyway; a fresh checkout has no proofs.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest

from tools.dev.fingerprint import fingerprint

ROOT = Path(__file__).resolve().parents[1]
PROOFS = ROOT / "build" / "proofs"
HELPERS = (
    "tests/conftest.py",
    "tests/proofs.py",
    "tests/docs/browser.py",
    "tests/docs/conftest.py",
    "tools/dev/serving.py",
)

# The files that a server of the tests was asked for, each with a digest of what it sent.
served: dict[str, str] = {}


def note(path: Path) -> None:
    """Remember that a test was served this file, or found it missing."""
    served[str(path)] = _contents(path)


def _contents(path: Path) -> str:
    """A digest of what the server sends for a path; empty where nothing is there."""
    path = path / "index.html" if path.is_dir() else path
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


@cache
def _machine() -> str:
    """What runs a test: Python, every installed package, the browser."""
    from tests.docs.browser import chromium

    found = {f"{one.metadata['Name']} {one.version}" for one in distributions()}
    program = chromium()
    words = program and subprocess.run([program, "--version"], capture_output=True, check=True)
    browser = f"{program} {words.stdout.decode()}" if words else ""
    return "\0".join([*sorted(found), sys.version, platform.platform(), browser])


@cache
def digest(*names: str) -> str:
    """A digest of files and folders of the project, and of the machine."""
    return fingerprint([ROOT / name for name in names], _machine())


class Proofs:
    """Skips a test that has a proof, and writes one for each that passes."""

    def __init__(
        self, build: Callable[[str], object], *, again: bool, folder: Path = PROOFS
    ) -> None:
        self.build, self.again, self.folder = build, again, folder
        self.keys: dict[str, str] = {}
        self.module: Path | None = None

    def key(self, item: Any, marker: pytest.Mark) -> str:
        """A digest of what can be named before the test runs."""
        site = item.callspec.params.get("renderer") if hasattr(item, "callspec") else None
        if site:
            self.build(site)
        names = (name.replace("SITE", site or "SITE") for name in marker.args)
        return digest(*names, *HELPERS, item.path.relative_to(ROOT).as_posix())

    def path(self, item: Any) -> Path:
        """The file of a test's proof."""
        return self.folder / f"{hashlib.sha256(item.nodeid.encode()).hexdigest()[:40]}.json"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: Any) -> None:
        """Skip a test that passed on exactly this, before it starts a browser."""
        if not (marker := item.get_closest_marker("rests_on")):
            return
        self.keys[item.nodeid] = key = self.key(item, marker)
        # Tests that share a page rest on what it loaded before they came.
        if not (marker.kwargs.get("shared") and self.module == item.path):
            served.clear()
        self.module = item.path
        if self.again or not self.path(item).is_file():
            return
        proof = json.loads(self.path(item).read_text(encoding="utf-8"))
        same = all(_contents(Path(name)) == one for name, one in proof["served"].items())
        if same and proof["key"] == key:
            del self.keys[item.nodeid]
            pytest.skip("passed before on the same content; --again runs it")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any) -> Any:
        """Write the proof when the test and all that comes after it have passed."""
        report = yield
        if report.outcome != "passed":
            self.keys.pop(item.nodeid, None)
        if report.when == "teardown" and (key := self.keys.pop(item.nodeid, "")):
            self.folder.mkdir(parents=True, exist_ok=True)
            text = json.dumps({"key": key, "served": served}, indent=0)
            self.path(item).write_text(text, encoding="utf-8")
        return report
