"""The checks and the tests, each run by its own tool."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tools.dev.console import follow, run, say
from tools.dev.venv import PYTHON, SCRIPTS

CHECKS: dict[str, Sequence[str]] = {
    "import contracts": (str(SCRIPTS / "lint-imports"), "--no-cache"),
    "ruff": (str(PYTHON), "-m", "ruff", "check", "."),
    "formatting": (str(PYTHON), "-m", "ruff", "format", "--check", "."),
    "type stubs": (str(PYTHON), "-m", "tools.stubs", "--check"),
    "strict types": (str(PYTHON), "-m", "mypy"),
    "spelling": (str(SCRIPTS / "codespell"),),
    "wording": (str(PYTHON), "-m", "tools.dev.wording"),
}


# One process per core; idle processes take over tests from busy ones.
PYTEST = (str(PYTHON), "-m", "pytest", "--numprocesses=auto", "--dist=worksteal")


def _verdict(command: Sequence[str]) -> tuple[bool, float, str]:
    """Run a check; return whether it passed, its seconds and its output."""
    start, lines = time.perf_counter(), list[str]()
    status = follow(command, lines.append)
    return status == 0, time.perf_counter() - start, "\n".join(lines).strip()


def _failures() -> list[str]:
    """Run all checks at once; print each verdict, and the output of those that failed."""
    failed = []
    with ThreadPoolExecutor(max_workers=len(CHECKS)) as pool:
        verdicts = zip(CHECKS, pool.map(_verdict, CHECKS.values()), strict=True)
        for name, (passed, seconds, output) in verdicts:
            say(f"    {name:<18}{'ok' if passed else 'FAILED'} ({seconds:.1f} s)")
            if not passed:
                failed.append(name)
                say(output + "\n")
    return failed


def check() -> int:
    """Run all checks, but no tests."""
    say("--> checks")
    return 1 if _failures() else 0


def test(arguments: Sequence[str]) -> int:
    """Run all checks, then all tests even if a check failed."""
    say("--> checks")
    failed = _failures()
    say("--> tests")
    status = run([*PYTEST, *arguments])
    if failed:
        say(f"The tests are done, but these checks failed (see above): {', '.join(failed)}")
    return status or (1 if failed else 0)


def bench(arguments: Sequence[str]) -> int:
    """Run the benchmark on this machine."""
    return run([PYTHON, "-m", "tools.bench", *arguments])
