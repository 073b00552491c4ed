"""Running programs: one line per step, their own output when they fail, and none left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

Command = Sequence[str | Path]

BROKEN_VENV = """\
{program} cannot be started: {reason}.
If it belongs to .venv, make that again: python3 dev.py clean --all, then this command."""


class DevError(Exception):
    """A step failed; the message says what to do about it."""


class Stopped(BaseException):
    """A signal asked this program to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


def say(message: str) -> None:
    """Print at once, also when the output is a pipe."""
    print(message, flush=True)


def complain(message: str, status: int = 1) -> int:
    """Print why the command ends, and return its exit status."""
    with suppress(OSError):
        print(f"\ndev.py: {message}", file=sys.stderr, flush=True)
    return status


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
        # Or each of them would compile again whatever it imports, where the machine says so.
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONUTF8": "1",
        "PYTHONUNBUFFERED": "1",
        "MPLBACKEND": "Agg",
        **(extra or {}),
    }


# The programs that run now, and whether each has a process group of its own.
_running: dict[subprocess.Popen[Any], bool] = {}
_signals: list[int] = []
_starting = False


@contextmanager
def started(
    command: Command,
    *,
    env: Mapping[str, str] | None = None,
    captured: bool = False,
    at_terminal: bool = False,
) -> Iterator[subprocess.Popen[Any]]:
    """Run a program that ends, with every program it started, when the block is left early.

    For that it gets a process group of its own, which takes the terminal's keyboard from it.
    `at_terminal` leaves it the keyboard, where there is one. `captured` makes one text of its two
    streams, to be read from its `stdout`.
    """
    alone = not (at_terminal and sys.stdin is not None and sys.stdin.isatty())
    with _undisturbed():
        try:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment(env),
                start_new_session=alone,
                stdout=subprocess.PIPE if captured else None,
                stderr=subprocess.STDOUT if captured else None,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            reason = BROKEN_VENV.format(program=command[0], reason=error.strerror or error)
            raise DevError(reason) from error
        _running[process] = alone
    try:
        if _signals:
            raise Stopped(_signals[0])
        yield process
        process.wait()
    except BaseException:
        _end(process)
        raise
    finally:
        del _running[process]
        if process.stdout:
            process.stdout.close()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Put `Stopped` off while a program is started, or it would run on without our notice."""
    global _starting  # noqa: PLW0603 - signals reach the main thread alone
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _starting = True
    try:
        yield
    finally:
        _starting = False


def _end(process: subprocess.Popen[Any]) -> None:
    """End a program and what it started: with a request first, then without."""
    if os.name == "nt":
        tree = ["taskkill", "/T", "/F", "/PID", str(process.pid)]
        subprocess.run(tree, capture_output=True, check=False)
        process.wait()
        return
    if _running[process]:
        _signal(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: subprocess.Popen[Any], number: int) -> None:
    """Send a signal to a program, and to all of its group where it has one."""
    with suppress(ProcessLookupError, PermissionError):
        if os.name != "nt" and _running[process]:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)


def stop_on_signals() -> None:
    """Turn the signals that ask a program to end into `Stopped`, for all that it runs as well."""

    def stop(number: int, _: FrameType | None) -> None:
        for one in caught:
            signal.signal(one, signal.SIG_IGN)
        _signals.append(number)
        for process, alone in list(_running.items()):  # threads wait for theirs
            if alone or number != signal.SIGINT:  # the terminal sends Ctrl-C to its whole group
                _signal(process, signal.SIGTERM)
        if not _starting:
            raise Stopped(number)

    names = ("SIGINT", "SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    caught = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    for number in caught:
        signal.signal(number, stop)


def run(
    command: Command, *, env: Mapping[str, str] | None = None, at_terminal: bool = False
) -> int:
    """Run a program in the project folder with its output on ours."""
    with started(command, env=env, at_terminal=at_terminal) as process:
        pass
    return int(process.returncode)


def must(command: Command, failure: str, *, env: Mapping[str, str] | None = None) -> None:
    """Run a program and stop with ``failure`` unless it succeeds."""
    if run(command, env=env) != 0:
        raise DevError(failure)


def output(command: Command) -> str:
    """What a program prints; empty when it does not start or does not succeed."""
    lines: list[str] = []
    try:
        status = follow(command, lines.append)
    except DevError:
        return ""
    return "\n".join(lines) if status == 0 else ""


def follow(
    command: Command,
    on_line: Callable[[str], None],
    *,
    env: Mapping[str, str] | None = None,
) -> int:
    """Run a program and hand each line it writes, to either stream, to ``on_line``."""
    with started(command, env=env, captured=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            on_line(line.rstrip("\n"))
    return int(process.returncode)


class StatusLine:
    """One line that is rewritten in place on a terminal and silent in a log."""

    def __init__(self) -> None:
        self.live = sys.stdout.isatty()

    def show(self, text: str) -> None:
        """Replace what the line says."""
        if self.live:
            print(f"\r\033[K    {text[:100]}", end="", flush=True)

    def clear(self) -> None:
        """Leave the line empty for the next output."""
        if self.live:
            print("\r\033[K", end="", flush=True)
