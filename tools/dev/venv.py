"""The project's own environment, ``.venv``: created once, and again if the requirements change."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import sys
import tomllib
from typing import Any

from tools.dev.cleaning import remove
from tools.dev.console import ROOT, DevError, follow, must, output, run, say, step
from tools.dev.lock import alone

VENV = ROOT / ".venv"
SCRIPTS = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = SCRIPTS / ("python.exe" if os.name == "nt" else "python")
COURSE = ROOT / "course"
PYPROJECT = ROOT / "pyproject.toml"
STAMP = VENV / ".mlsysim-installed"
UNFINISHED = "unfinished"
ADOPTED = "not made by dev.py, and unfinished"
LOCK = ROOT / "build" / "venv.lock"
EXTRAS = ("tables", "cluster", "parquet", "docs", "dev")

# uv does not read pip's settings. These have the same meaning in uv; others have no equivalent.
UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}
PIP_ONLY = {"no-index", "proxy", "client-cert", "trusted-host", "constraint", "require-hashes"}

NOT_OURS = """\
The .venv here was not made by dev.py and does not work (it has no Python of this version with
pip), so dev.py does not change it. Rename it, or delete it if you do not need it (python3 dev.py
clean --all), then run this command again."""

NO_VENV = """\
Python could not create a virtual environment in {venv}.
On Debian and Ubuntu, you must install a package for this: apt-get install python3-venv"""

NO_INSTALL = """\
pip could not install the project's requirements (its messages are above).
The first run needs a package index: check the network, the proxy, or PIP_INDEX_URL.
Later runs do not. Once it works, run the same command again; nothing else needs to be undone."""


NO_EDITABLE = """\
The requirements are installed, but mlsysim and its course are not: their files have an error.
See pip's messages above: it is a pyproject.toml, README.md, or the version in __init__.py."""


def wanted() -> str:
    """Return a digest of the requirements, the Python and the folder of the environment."""
    files = (PYPROJECT, COURSE / "pyproject.toml")
    parts = (*(file.read_text(encoding="utf-8") for file in files), sys.version, str(ROOT))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def requirements() -> list[str]:
    """Return the build backend, the package's own requirements and those of its extras."""
    config: dict[str, Any] = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    project = config["project"]
    groups = [
        config["build-system"]["requires"],
        project["dependencies"],
        *(project["optional-dependencies"][extra] for extra in EXTRAS),
    ]
    return list(dict.fromkeys(line for group in groups for line in group))


def ensure() -> None:
    """Install everything into ``.venv``; if it is complete, this takes no time and no network."""
    if _ready():
        return
    with alone(LOCK, "making .venv"):
        if not _ready():
            _bring_up_to_date()


def _ready() -> bool:
    return PYTHON.exists() and _stamp() == wanted() and not missing()


def missing() -> set[str]:
    """Return the requirements that were removed from ``.venv`` after it was made."""
    folder = "Lib/site-packages" if os.name == "nt" else "lib/python*/site-packages"
    installed = {_plain(path.name.partition("-")[0]) for path in VENV.glob(f"{folder}/*.dist-info")}
    # A requirement with a marker may not apply here.
    needed = {re.split(r"[^\w.-]", line)[0] for line in requirements() if ";" not in line}
    needed |= {"mlsysim", "mlsysim-course"}
    return {name for name in needed if _plain(name) not in installed}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _stamp() -> str:
    """Return the digest of ``.venv``; `UNFINISHED` if interrupted, and empty if it is not ours."""
    return STAMP.read_text(encoding="utf-8") if STAMP.is_file() else ""


def _bring_up_to_date() -> None:
    if _stamp() == UNFINISHED or not _works():
        if _foreign():
            raise DevError(NOT_OURS)
        _make()
    before = _stamp()
    STAMP.write_text(ADOPTED if _foreign() else UNFINISHED, encoding="utf-8")
    try:
        names = requirements()
        with step(f"installing {len(names)} requirements into .venv (once)"):
            _install(names)
        with step("installing mlsysim and its course, editable"):
            # The backend is already installed, so this works without isolation and network.
            options = ("--no-deps", "--no-build-isolation", "--no-index")
            folders = ("--editable", str(ROOT), "--editable", str(COURSE))
            _pip(NO_EDITABLE, "install", *options, *folders)
    except DevError:
        # pip ended by itself, so the environment is in a consistent state.
        STAMP.write_text(before or ADOPTED, encoding="utf-8")
        raise
    STAMP.write_text(wanted(), encoding="utf-8")


def _foreign() -> bool:
    """Return whether ``.venv`` was created by others, so that we must not change or delete it."""
    if not VENV.is_dir():
        return VENV.exists() or VENV.is_symlink()
    return _stamp() == ADOPTED or (not STAMP.is_file() and any(VENV.iterdir()))


def _make() -> None:
    """Create the environment again; until the end, its stamp marks it as unfinished."""
    if VENV.exists() or VENV.is_symlink():
        say("    .venv is unfinished or for another Python: creating it again")
        trash = LOCK.with_name("old-venv")  # move it first: a half-deleted one must not look valid
        remove(trash)
        VENV.rename(trash)
        remove(trash)
    VENV.mkdir()
    STAMP.write_text(UNFINISHED, encoding="utf-8")
    with step(f"making .venv with Python {sys.version.split()[0]}"):
        made = run([sys.executable, "-m", "venv", VENV])
    if made != 0 or not _works():
        remove(VENV)
        raise DevError(NO_VENV.format(venv=VENV))


def _works() -> bool:
    """Return whether ``.venv`` has the Python that runs this program, and a working pip."""
    if not PYTHON.exists():
        return False
    version = output([PYTHON, "-c", "import sys; print(sys.version, end='')"])
    return version == sys.version and output([PYTHON, "-m", "pip", "--version"]) != ""


def _install(names: list[str]) -> None:
    """Install with uv, which takes a tenth of the time, or else with pip."""
    settings = uv_settings(output([PYTHON, "-m", "pip", "config", "list"]))
    steps = (
        ["pip", "install", "--retries", "1", "uv"],
        ["uv", "pip", "install", "--python", PYTHON, *names],
    )
    if settings is not None and all(
        follow([PYTHON, "-m", *words], lambda _: None, env=settings) == 0 for words in steps
    ):
        return
    say("    without uv: pip takes about a minute")
    _pip(NO_INSTALL, "install", "--no-compile", *names)


def uv_settings(listed: str) -> dict[str, str] | None:
    """Translate ``pip config list`` into uv's environment; None if uv has no equivalent.

    Like pip, uv then takes the best version from all of these indexes.
    """
    found = re.findall(r"^(\S+)\.(\S+?)=(['\"].*)$", listed, re.MULTILINE)
    # Settings from the environment come last and take precedence.
    found.sort(key=lambda line: line[0] == ":env:")
    settings = {key: str(ast.literal_eval(value)) for _, key, value in found}
    if PIP_ONLY & settings.keys():
        return None
    same = {UV_NAMES[key]: " ".join(settings[key].split()) for key in UV_NAMES & settings.keys()}
    if "UV_FIND_LINKS" in same:
        same["UV_FIND_LINKS"] = same["UV_FIND_LINKS"].replace(" ", ",")
    same["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return {name: value for name, value in same.items() if name not in os.environ}


def _pip(failure: str, *arguments: str) -> None:
    """Run pip, which prints only what goes wrong; if it fails, add our message."""
    options = ("--quiet", "--disable-pip-version-check", "--no-input")
    must([PYTHON, "-m", "pip", *options, *arguments], failure)
