"""Ctrl-C while the command line loads: exit code 130 without a traceback.

The package imports this module first, because loading takes most of the time of a short command.
Other programs that import the package keep their own handling of Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

_STATUS = 130


def _is_command() -> bool:
    """Return whether the process is `mlsysim` or `python -m mlsysim`."""
    first = sys.argv[0] if getattr(sys, "argv", None) else ""
    if first == "-m":  # so it is while Python loads the package of a module
        command = sys.orig_argv
        return command[command.index("-m") + 1 : command.index("-m") + 2] == ["mlsysim"]
    # pathlib would be loaded before the handler is in place.
    return os.path.basename(first).removesuffix(".exe") == "mlsysim"  # noqa: PTH119


def _exit(*_: Any) -> None:
    os._exit(_STATUS)


def raise_as_usual() -> None:
    """Let Ctrl-C raise `KeyboardInterrupt` again."""
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _exit)
