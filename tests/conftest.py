"""What all tests share: the project's folder, plots without a window, the built site."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("MPLBACKEND", "Agg")

ROOT = Path(__file__).resolve().parents[1]

# The same examples on every machine and every run: a failure can be run again anywhere.
settings.register_profile("project", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("project")


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def site_build() -> subprocess.CompletedProcess[str]:
    """One build of the site's preview from the present sources; a fresh one is left as it is."""
    code = "from tools.dev import publish; publish.build(None)"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


@pytest.fixture(scope="session")
def built_site(site_build: subprocess.CompletedProcess[str]) -> Path:
    """The folder of the built preview. Why it does not build is told once, by test_site.py."""
    if site_build.returncode != 0:
        pytest.skip("the site does not build: see test_the_site_builds")
    return ROOT / "_preview"
