"""Run the cells of a page in a process of its own, from the project's root.

Each process is a copy of one that has imported what pages use, so it starts at once. Systems that
cannot copy a process start a new one.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tools.pages.faults import Fault
from tools.pages.pages import Page

SECONDS = 180

CONTEXT: Any = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
CONTEXT.set_forkserver_preload(["tools.pages.shell", "nbformat"])


def execute(page: Page, root: Path) -> dict[str, list[Any]]:
    """Return the outputs of each cell and the inline values of each text, by its number."""
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_answer, args=(sender, page, root))
    process.start()
    sender.close()
    try:
        if not receiver.poll(SECONDS):
            raise Fault(page.path, 1, f"its cells take more than {SECONDS} s: split the page")
        answer = receiver.recv()
    except EOFError:
        raise Fault(page.path, 1, "the process that runs its cells has ended") from None
    finally:
        process.kill()
        process.join()
    if isinstance(answer, Exception):
        raise answer
    return dict(answer)


def _answer(sender: Connection, page: Page, root: Path) -> None:
    """Run a page in this process, and send its results or its fault."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.chdir(root)
    from tools.pages.shell import results  # slow to import; a copied process has it already

    try:
        sender.send(results(page))
    except Fault as fault:
        sender.send(fault)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
