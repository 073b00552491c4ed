"""Runs the cells of a page in a kernel of its own, from the project's root."""

from __future__ import annotations

import ast
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tools.preview.faults import Fault
from tools.preview.pages import INLINE, Cell, Page, Text

ANSWER = "application/vnd.preview.inline+json"
SECONDS = 180
KERNEL_OPTIONS = [
    "--InlineBackend.figure_formats={'svg'}",
    "--InlineBackend.rc={'figure.figsize': (7, 4.33), 'svg.hashsalt': 'preview'}",
]
# The order in which Quarto looks for a form to show, on an HTML page.
FORMS = ("text/html", "text/markdown", "image/svg+xml", "image/png", "text/latex", "text/plain")


def runs(part: Text | Cell) -> bool:
    """Tell whether a kernel has to see this part."""
    if isinstance(part, Text):
        return bool(INLINE.search(part.text))
    return part.language == "python" and part.options.get("eval", True) is not False


def execute(page: Page, root: Path) -> dict[str, list[Any]]:
    """Return, for each part that ran, its outputs (a cell) or its inline values (Markdown)."""
    running = {i: part for i, part in enumerate(page.parts) if runs(part)}
    if not running:
        return {}
    notebook = nbformat.v4.new_notebook(cells=[_cell(part) for part in running.values()])
    with tempfile.TemporaryDirectory(prefix="k") as sockets:
        client = NotebookClient(
            notebook, km=_manager(sockets), timeout=SECONDS, extra_arguments=KERNEL_OPTIONS
        )
        client.resources = {"metadata": {"path": str(root)}}
        try:
            client.execute(env={**os.environ, "PYTHONHASHSEED": "0"})
        except CellExecutionError:
            raise _fault(page, list(zip(running.values(), notebook.cells, strict=True))) from None
    return {
        str(i): _values(page, part, cell) if isinstance(part, Text) else list(cell.outputs)
        for (i, part), cell in zip(running.items(), notebook.cells, strict=True)
    }


def _manager(sockets: str) -> AsyncKernelManager:
    """Make a kernel of this very interpreter; two kernels with the same sockets would collide."""
    manager = AsyncKernelManager(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    if os.name != "nt":
        manager.transport, manager.ip = "ipc", f"{sockets}/s"
    return manager


def _cell(part: Text | Cell) -> Any:
    if isinstance(part, Cell):
        tags = ["raises-exception"] if part.options.get("error") else []
        return nbformat.v4.new_code_cell(part.code, metadata={"tags": tags})
    asked = {str(i): text.strip() for i, text in enumerate(INLINE.findall(part.text))}
    answer = f"get_ipython().user_expressions({asked!r})"
    code = f"from IPython.display import display\ndisplay({{{ANSWER!r}: {answer}}}, raw=True)"
    return nbformat.v4.new_code_cell(code)


def _fault(page: Page, ran: list[tuple[Text | Cell, Any]]) -> Fault:
    """Find the cell that failed and the line of the page on which it did."""
    for part, cell in ran:
        for output in cell.get("outputs", []):
            if output.output_type == "error" and isinstance(part, Cell):
                plain = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(output.traceback))
                lines = re.findall(r"(?:Cell In\[\d+\], line |<ipython[^>]*>, line )(\d+)", plain)
                down = int(lines[0]) - 1 if lines else 0
                source = part.code.split("\n")[down].strip()
                message = f"{output.ename}: {output.evalue} in `{source}`"
                return Fault(page.path, part.code_line + down, message)
    return Fault(page.path, 1, "the kernel stopped without an answer")


def _values(page: Page, part: Text, cell: Any) -> list[str]:
    answers = next(out.data[ANSWER] for out in cell.outputs if ANSWER in out.get("data", {}))
    values = []
    for found, key in zip(INLINE.finditer(part.text), answers, strict=True):
        answer = answers[key]
        if answer["status"] == "error":
            line = part.line + part.text.count("\n", 0, found.start())
            message = f"{answer['ename']}: {answer['evalue']} in `{found[1]}`"
            raise Fault(page.path, line, message)
        values.append(_inline(answer["data"]))
    return values


def _inline(data: dict[str, str]) -> str:
    """Write one value into a sentence as Quarto does: a string is text, never Markdown."""
    form = next(form for form in FORMS if form in data)
    text = data[form]
    if form == "text/html":
        return f"`{text}`{{=html}}"
    if form == "text/plain" and text[:1] in "'\"":
        return re.sub(r"([\\`*_{}\[\]()>#+,.!-])", r"\\\1", str(ast.literal_eval(text)))
    return text
