"""A progress bar for long work, shown only on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mlsysim.sweeps.slices import Progress, reporter

_PATIENCE = 0.5
"""Seconds before a bar is drawn."""


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Yield the `progress` argument: a bar on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield False
        return
    draw, begun, unfinished = reporter(True), time.monotonic(), False

    def report(done: int, total: int) -> None:
        nonlocal unfinished
        if unfinished or (done < total and time.monotonic() - begun > _PATIENCE):
            draw(done, total)
            unfinished = done < total

    try:
        yield report
    finally:
        if unfinished:  # an error message follows on a new line
            sys.stderr.write("\n")
