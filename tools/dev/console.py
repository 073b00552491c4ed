"""Run programs: one line per step, full output if a program fails."""

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
If it belongs to .venv, create that again: python3 dev.py clean --all, then this command."""


class DevError(Exception):
    """A step failed; the message states what to do."""


class Stopped(BaseException):
    """A signal asked this program to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


def say(message: str) -> None:
    """Print immediately, even if the output is a pipe."""
    print(message, flush=True)


def complain(message: str, status: int = 1) -> int:
    """Print the reason why the command ends, and return its exit status."""
    with suppress(OSError):
        print(f"\ndev.py: {message}", file=sys.stderr, flush=True)
    return status


@contextmanager
def step(title: str) -> Iterator[None]:
    """Announce a step, then print how long it took."""
    say(f"--> {title}")
    start = time.perf_counter()
    yield
    seconds = time.perf_counter() - start
    if seconds >= 1:
        say(f"    {title}: {seconds:.1f} s")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of every program that we start: UTF-8, unbuffered, no plot windows."""
    return {
        **os.environ,
        # If this were set, each program would compile all of its imports again.
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONUTF8": "1",
        "PYTHONUNBUFFERED": "1",
        "MPLBACKEND": "Agg",
        **(extra or {}),
    }


# The running programs: a signal that ends this one ends them too.
_running: set[subprocess.Popen[Any]] = set()
_signals: list[int] = []
_starting = False


@contextmanager
def started(
    command: Command, *, env: Mapping[str, str] | None = None, captured: bool = False
) -> Iterator[subprocess.Popen[Any]]:
    """Run a program, and end it if the block is left early.

    `captured` makes one text of its two streams, to be read from its `stdout`.
    """
    with _undisturbed():
        try:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment(env),
                stdout=subprocess.PIPE if captured else None,
                stderr=subprocess.STDOUT if captured else None,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            reason = BROKEN_VENV.format(program=command[0], reason=error.strerror or error)
            raise DevError(reason) from error
        _running.add(process)
    try:
        if _signals:
            raise Stopped(_signals[0])
        yield process
        process.wait()
    except BaseException:
        _end(process)
        raise
    finally:
        _running.discard(process)
        if process.stdout:
            process.stdout.close()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Delay `Stopped` while a program is being started; otherwise, it would keep running."""
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
    """End a program: it has a moment to react to Ctrl-C, and another to end when asked to."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=3)
        return
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=3)
        return
    process.kill()
    process.wait()


def stop_on_signals() -> None:
    """Turn the signals that ask a program to end into `Stopped`, also for the programs it runs."""

    def stop(number: int, _: FrameType | None) -> None:
        for one in caught:
            signal.signal(one, signal.SIG_IGN)
        _signals.append(number)
        if number != signal.SIGINT:  # a terminal sends Ctrl-C to all of its programs
            for process in list(_running):  # threads wait for theirs
                process.terminate()
        if not _starting:
            raise Stopped(number)

    names = ("SIGINT", "SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    caught = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    for number in caught:
        signal.signal(number, stop)


def run(command: Command, *, env: Mapping[str, str] | None = None) -> int:
    """Run a program in the project folder, with its output on ours."""
    with started(command, env=env) as process:
        pass
    return int(process.returncode)


def must(command: Command, failure: str, *, env: Mapping[str, str] | None = None) -> None:
    """Run a program, and raise ``failure`` unless it succeeds."""
    if run(command, env=env) != 0:
        raise DevError(failure)


def output(command: Command) -> str:
    """Return the output of a program; empty if it does not start or fails."""
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
    """Run a program and pass each line of its output, from both streams, to ``on_line``."""
    with started(command, env=env, captured=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            on_line(line.rstrip("\n"))
    return int(process.returncode)
