"""What all tests share: the project's folder, plots without a window, the built site."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from tools.dev import quarto

os.environ.setdefault("MPLBACKEND", "Agg")

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = [
    path.relative_to(ROOT)
    for path in sorted((ROOT / "docs/tutorials").glob("*.qmd"))
    if path.stem != "index"
]

# The same examples on every machine and every run: a failure can be run again anywhere.
settings.register_profile("project", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("project")


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


QUARTO = quarto.present()


@pytest.fixture(scope="session", params=["_preview", "_site"] if QUARTO else ["_preview"])
def renderer(request: pytest.FixtureRequest) -> str:
    """The folder of the preview; and where there is a Quarto, that of the published site."""
    return str(request.param)


@cache
def build_site(renderer: str) -> subprocess.CompletedProcess[str]:
    """Build the site from the present sources; a fresh one is left as it is."""
    program = f"Path({str(QUARTO)!r})" if renderer == "_site" else None
    code = f"from pathlib import Path; from tools.dev import publish; publish.build({program})"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


@pytest.fixture(scope="session")
def site_build(renderer: str) -> subprocess.CompletedProcess[str]:
    """How the build of the site went; one for all processes that run tests."""
    return build_site(renderer)


def pages_of(folder: Path) -> list[Path]:
    """Return the pages of a built site, without Quarto's redirects from their ``aliases``."""
    from tools.pages.project import load  # the package's own tests do without it

    pages = load(ROOT, []).pages.values()
    old = {folder / alias.lstrip("/") for page in pages for alias in page.meta.get("aliases", [])}
    return sorted(path for path in folder.rglob("*.html") if path not in old)


@pytest.fixture(scope="session")
def built_site(site_build: subprocess.CompletedProcess[str], renderer: str) -> Path:
    """The folder of the built site. test_site.py reports once why it does not build."""
    if site_build.returncode != 0:
        pytest.skip("the site does not build: see test_the_site_builds")
    return ROOT / renderer
