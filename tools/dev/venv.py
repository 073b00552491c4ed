"""The project's own environment, ``.venv``: made once, remade when the requirements change."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from tools.dev.console import ROOT, DevError, StatusLine, follow, say, step

VENV = ROOT / ".venv"
SCRIPTS = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = SCRIPTS / ("python.exe" if os.name == "nt" else "python")
PYPROJECT = ROOT / "pyproject.toml"
STAMP = VENV / ".mlsysim-installed"
EXTRAS = ("tables", "cluster", "labs", "docs", "dev")

NO_VENV = """\
Python could not make a virtual environment in {venv}.
On Debian and Ubuntu the module for that is a package of its own: apt-get install python3-venv"""

NO_INSTALL = """\
pip could not install what the project needs (its last lines are above).
The first run needs a package index: check the network, a proxy, or PIP_INDEX_URL.
Later runs need none. Nothing is left half done: run the same command again."""


NO_EDITABLE = """\
The requirements are installed, but mlsysim itself is not: its own files are at fault
(pip's last lines, above, say which: pyproject.toml, README.md, or the version in __init__.py)."""


def wanted() -> str:
    """What the environment was made for: the requirements, the Python, the folder."""
    parts = (PYPROJECT.read_text(encoding="utf-8"), sys.version, str(ROOT))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def requirements() -> list[str]:
    """The build backend, the package's own requirements and those of its extras."""
    config: dict[str, Any] = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    project = config["project"]
    groups = [
        config["build-system"]["requires"],
        project["dependencies"],
        *(project["optional-dependencies"][extra] for extra in EXTRAS),
    ]
    return list(dict.fromkeys(line for group in groups for line in group))


def ensure() -> None:
    """Make ``.venv`` hold everything; cost nothing, and need no network, when it already does."""
    if PYTHON.exists() and STAMP.is_file() and STAMP.read_text(encoding="utf-8") == wanted():
        return
    STAMP.unlink(missing_ok=True)
    _make()
    names = requirements()
    with step(f"installing {len(names)} requirements into .venv (once; about a minute)"):
        _pip(NO_INSTALL, "install", *names)
    with step("installing mlsysim itself, editable"):
        # The backend is installed by now: without isolation this works with no network.
        options = ("--no-deps", "--no-build-isolation", "--no-index", "--editable")
        _pip(NO_EDITABLE, "install", *options, str(ROOT))
    STAMP.write_text(wanted(), encoding="utf-8")


def _make() -> None:
    """Create the environment unless there is one of the Python that runs us."""
    if PYTHON.exists() and _version(PYTHON) == sys.version:
        return
    if VENV.exists():
        say("    .venv belongs to another Python, or its Python is gone: making it afresh")
        shutil.rmtree(VENV)
    with step(f"making .venv with Python {sys.version.split()[0]}"):
        made = subprocess.run([sys.executable, "-m", "venv", VENV], check=False)
    if made.returncode != 0 or not PYTHON.exists():
        shutil.rmtree(VENV, ignore_errors=True)
        raise DevError(NO_VENV.format(venv=VENV))


def _version(python: Path) -> str:
    """``sys.version`` of another interpreter; empty when it does not start."""
    probe = [str(python), "-c", "import sys; print(sys.version, end='')"]
    try:
        return subprocess.run(probe, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def _pip(failure: str, *arguments: str) -> None:
    """Run pip quietly, show what it is at; when it fails print its last words, then ours."""
    status, lines = StatusLine(), list[str]()

    def on_line(line: str) -> None:
        lines.append(line)
        if line.lstrip().startswith(("Collecting", "Downloading", "Installing", "Building")):
            status.show(line.strip())

    command = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    code = follow(command, on_line)
    status.clear()
    if code != 0:
        say("\n".join([line for line in lines if not line.startswith("WARNING: Location")][-25:]))
        raise DevError(failure)
