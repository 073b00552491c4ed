"""Finding Quarto, trying once to install it, and rendering with it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tools.dev.console import ROOT, DevError, environment, follow, say, step
from tools.dev.venv import PYTHON, SCRIPTS, VENV

WHERE = "https://quarto.org/docs/get-started/"
NO_QUARTO = VENV / ".no-quarto"
INSTALL_SECONDS = 60
TROUBLE = ("WARN", "ERROR", "[warning]")


def required() -> bool:
    """Whether a publishing job forbids the preview as a stand-in."""
    return os.environ.get("MLSYSIM_REQUIRE_QUARTO", "") not in {"", "0"}


def present() -> Path | None:
    """Quarto from $QUARTO, the PATH or ``.venv``, in this order; None when there is none."""
    named = os.environ.get("QUARTO")
    if named and shutil.which(named) is None:
        raise DevError(f"$QUARTO is {named}, which is not a program")
    inside = SCRIPTS / ("quarto.exe" if os.name == "nt" else "quarto")
    if found := shutil.which(named or "quarto"):
        return Path(found)
    return inside if _works(inside) else None


def find(*, retry: bool) -> Path | None:
    """The Quarto that is present; else what one try with pip gives, a failure remembered."""
    if found := present():
        return found
    if retry:
        NO_QUARTO.unlink(missing_ok=True)
    if NO_QUARTO.exists():
        return None
    _install()
    return present()


def _works(program: Path) -> bool:
    """The package from PyPI can leave a launcher with nothing behind it."""
    if not program.exists():
        return False
    try:
        probe = subprocess.run([program, "--version"], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return probe.returncode == 0


def _install() -> None:
    """One try, apart from all other requirements: on PyPI there is only a downloader of Quarto."""
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--no-deps", "quarto-cli"]
    with step(f"no Quarto here; one try to get it through pip (at most {INSTALL_SECONDS} s)"):
        try:
            done = subprocess.run(
                command,
                env=environment(),
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=INSTALL_SECONDS,
                check=False,
            )
            reason = "" if done.returncode == 0 else (done.stderr or done.stdout)
        except subprocess.TimeoutExpired:
            reason = f"not done after {INSTALL_SECONDS} s\n"
    if reason:
        NO_QUARTO.write_text(reason, encoding="utf-8")


def settings() -> dict[str, str]:
    """What Quarto is told through its environment: our Python, and the profile of its kernels.

    The project's `_environment` names the profile for a plain `quarto render` too, but relative to
    the project, and one of the programs that Quarto starts looks for it elsewhere and grumbles.
    """
    profile = ROOT / "tools" / "pages" / "ipython"
    return {"QUARTO_PYTHON": str(PYTHON), "IPYTHONDIR": str(profile)}


def render(quarto: Path) -> None:
    """Render the whole project; a warning in Quarto's log is an error here."""
    trouble: list[str] = []

    def on_line(line: str) -> None:
        say(f"    {line}" if line.strip() else "")
        if any(word in line for word in TROUBLE):
            trouble.append(line.strip())

    # Quarto ends with status 0 when a reference stays unresolved; only its log tells.
    with step("quarto render"):
        status = follow([quarto, "render"], on_line, env=settings())
    if status != 0:
        raise DevError("quarto render failed; its words are above")
    if trouble:
        raise DevError("Quarto warned, and a warning is an error here:\n  " + "\n  ".join(trouble))
