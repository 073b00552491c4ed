"""Find Quarto, try once to install it, and render with it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tools.dev.cleaning import left_by_quarto, remove
from tools.dev.console import ROOT, Command, DevError, follow, say, started, step
from tools.dev.venv import PYTHON, SCRIPTS, VENV

WHERE = "https://quarto.org/docs/get-started/"
NO_QUARTO = VENV / ".no-quarto"
INSTALL_SECONDS = 60

# Lines of Quarto, its Lua filters and pandoc. Kernels and libraries write WARNING and ERROR too.
TROUBLE = re.compile(r"(WARN|ERROR): |(WARNING|ERROR|FATAL) \(|\[WARNING\] ", re.IGNORECASE)
COLOR = re.compile(r"\x1b\[[\d;]*m")
PROGRESS = re.compile(r"\[ *\d+/\d+\] (.+\.qmd)$")


def required() -> bool:
    """Return whether a publishing job requires Quarto and rejects the preview."""
    return os.environ.get("MLSYSIM_REQUIRE_QUARTO", "") not in {"", "0"}


def present() -> Path | None:
    """Return Quarto from $QUARTO, the PATH or ``.venv``, in this order; None if there is none."""
    named = os.environ.get("QUARTO")
    if named and shutil.which(named) is None:
        raise DevError(f"$QUARTO is {named}, which is not a program: give its path, or unset it")
    inside = SCRIPTS / ("quarto.exe" if os.name == "nt" else "quarto")
    if found := shutil.which(named or "quarto"):
        return Path(found)
    return inside if _works(inside) else None


def find(*, retry: bool) -> Path | None:
    """Return the installed Quarto, or try once to install it with pip; remember a failure."""
    if found := present():
        return found
    if retry:
        NO_QUARTO.unlink(missing_ok=True)
    if NO_QUARTO.exists():
        return None
    _install()
    return present()


def _works(program: Path) -> bool:
    """Return whether a program runs; the package from PyPI can leave a launcher without Quarto."""
    if not program.exists():
        return False
    try:
        probe = subprocess.run([program, "--version"], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return probe.returncode == 0


def _install() -> None:
    """Try once, separately from all other requirements: PyPI only has a downloader of Quarto."""
    command: Command = [PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "quarto-cli"]
    with step(f"Quarto is not installed; trying pip once (at most {INSTALL_SECONDS} s)"):
        try:
            with started(command, captured=True) as process:
                words, _ = process.communicate(timeout=INSTALL_SECONDS)
            failed = process.returncode != 0
        except subprocess.TimeoutExpired:
            failed, words = True, f"not done after {INSTALL_SECONDS} s\n"
    if failed:
        NO_QUARTO.write_text(words, encoding="utf-8")


class UnrenderedError(DevError):
    """Some pages could not be rendered, or Quarto warned about them."""

    def __init__(self, message: str, pages: Sequence[str]) -> None:
        super().__init__(message)
        self.pages = pages


def is_trouble(line: str) -> bool:
    """Return whether a line of the log is a warning or an error of Quarto or its pandoc."""
    words = COLOR.sub("", line).strip()
    return bool(TROUBLE.match(words.removeprefix("[✓]").removeprefix("[✗]").lstrip()))


def render(quarto: Path, folder: Path, pages: Sequence[str] = ()) -> None:
    """Render the project, or some of its pages, into a folder; a warning is an error here."""
    log, trouble, suspects = list[str](), list[str](), list[str]()
    current = pages[0] if len(pages) == 1 else ""

    def on_line(colored: str) -> None:
        nonlocal current
        line = COLOR.sub("", colored).rstrip()
        if found := PROGRESS.search(line):
            current = found[1]
        log.append(f"    {line}".rstrip())
        if not pages and (line or colored == line):  # for a few pages, Quarto prints too much
            say(log[-1])
        if is_trouble(line):
            trouble.append(f"{current}: {line.strip()}".removeprefix(": "))
            suspects.append(current)

    # The results of all cells are in its freezer: see tools/pages/frozen.py.
    options = [*pages, "--output-dir", str(folder.relative_to(ROOT)), "--use-freezer"]
    # If a reference is unresolved, Quarto ends with status 0; only its log shows it.
    try:
        with step("quarto render"):
            status = follow(
                [quarto, "render", *options], on_line, env={"QUARTO_PYTHON": str(PYTHON)}
            )
    finally:
        for path in left_by_quarto():
            remove(path)
    if status == 0 and not trouble:
        return
    if pages:
        say("\n".join(log))
    found = [page for page in dict.fromkeys([*suspects, current]) if page] or list(pages)
    if status != 0:
        raise UnrenderedError("quarto render failed; see its output above", found)
    words = "\n  ".join(trouble)
    raise UnrenderedError(f"Quarto warned, and a warning is an error here:\n  {words}", found)
