"""The site builds; every public name has its place in the API reference, and every place exists."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

import mlsysim


def shown(root: Path) -> dict[str, str]:
    """Each documented name and the address of its page."""
    text = (root / "docs" / "api" / "objects.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def test_the_site_builds(site_build: subprocess.CompletedProcess[str]) -> None:
    """The renderer names each mistake of a page with its file and line."""
    if site_build.returncode != 0:
        lines = (site_build.stdout + site_build.stderr).splitlines()
        words = [line for line in lines if not line.startswith("[")]  # without the progress
        pytest.fail("\n".join(words[-60:]), pytrace=False)


def test_every_public_name_has_a_page(built_site: Path, root: Path) -> None:
    missing = set(mlsysim.__all__) - shown(root).keys()
    assert not missing, f"add to docs/api/_quartodoc.yml: {sorted(missing)}"


def test_every_address_exists(built_site: Path, root: Path) -> None:
    for name, address in shown(root).items():
        page, _, anchor = address.partition("#")
        built = built_site / "docs" / "api" / page.replace(".qmd", ".html")
        assert built.is_file(), f"{name}: {built}"
        if anchor:
            html = built.read_text(encoding="utf-8")
            assert re.search(rf'id="{re.escape(anchor)}"', html), f"{name}: #{anchor} in {built}"
