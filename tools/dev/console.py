"""Running a program and saying so: one line per step, the program's own words when it fails."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

Command = Sequence[str | Path]


class DevError(Exception):
    """A step failed; the message says what to do about it."""


def say(message: str) -> None:
    """Print at once, also when the output is a pipe."""
    print(message, flush=True)


@contextmanager
def step(title: str) -> Iterator[None]:
    """Announce a step, then say how long it took."""
    say(f"--> {title}")
    start = time.perf_counter()
    yield
    seconds = time.perf_counter() - start
    if seconds >= 1:
        say(f"    {title}: {seconds:.1f} s")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of every program we start: UTF-8, unbuffered, no window for plots."""
    return {
        **os.environ,
        "PYTHONUTF8": "1",
        "PYTHONUNBUFFERED": "1",
        "MPLBACKEND": "Agg",
        **(extra or {}),
    }


def run(command: Command, *, env: Mapping[str, str] | None = None) -> int:
    """Run a program in the project folder with its output on ours."""
    return subprocess.run(command, cwd=ROOT, env=environment(env), check=False).returncode


def must(command: Command, failure: str, *, env: Mapping[str, str] | None = None) -> None:
    """Run a program and stop with ``failure`` unless it succeeds."""
    if run(command, env=env) != 0:
        raise DevError(failure)


def follow(
    command: Command,
    on_line: Callable[[str], None],
    *,
    env: Mapping[str, str] | None = None,
) -> int:
    """Run a program and hand each line it writes, to either stream, to ``on_line``."""
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            on_line(line.rstrip("\n"))
    return process.returncode


class StatusLine:
    """One line that is rewritten in place on a terminal and silent in a log."""

    def __init__(self) -> None:
        self.live = sys.stdout.isatty()

    def show(self, text: str) -> None:
        """Replace what the line says."""
        if self.live:
            print(f"\r\033[K    {text[:100]}", end="", flush=True)

    def clear(self) -> None:
        """Leave the line empty for whoever prints next."""
        if self.live:
            print("\r\033[K", end="", flush=True)
