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
def built_site() -> Path:
    """The preview of the site, built from the present sources (nothing happens if it is fresh)."""
    code = "from tools.dev import publish; publish.build(None)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        # The tests that use the site fail with the renderer's own list of mistakes.
        pytest.fail(f"the site does not build:\n{done.stdout}{done.stderr}", pytrace=False)
    return ROOT / "_preview"
