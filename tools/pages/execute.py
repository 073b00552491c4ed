"""Run the cells of a page in a separate kernel, from the project's root."""

from __future__ import annotations

import ast
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

from tools.pages.faults import Fault
from tools.pages.pages import INLINE, Cell, Page, Text

SECONDS = 180
PROFILE = Path(__file__).with_name("ipython")
STYLE = Path(__file__).parents[2] / "mlsysim/viz/figures.mplstyle"
ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "MATPLOTLIBRC": str(STYLE),
}
KERNEL_OPTIONS = ["--InlineBackend.figure_formats={'svg'}"]
# The order in which Quarto looks for a form to show; `PageFormatter` leaves no HTML.
FORMS = ("text/markdown", "image/svg+xml", "image/png", "text/latex", "text/plain")
ANSWER = "application/vnd.preview+json"
ASK = "display({%r: get_ipython().user_expressions(%r)}, raw=True)"


async def execute(page: Page, root: Path) -> dict[str, list[Any]]:
    """Return the outputs of each cell and the inline values of each text, by its number."""
    parts = {i: part for i, part in enumerate(page.parts) if _runs(part)}
    results: dict[str, list[Any]] = {}
    if not parts:
        return results
    # Two kernels with the same sockets would collide, so each has a folder of its own.
    with tempfile.TemporaryDirectory(prefix="k") as sockets:
        kernel = AsyncKernelManager(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
        if os.name != "nt":
            kernel.transport, kernel.ip = "ipc", f"{sockets}/s"
        client = NotebookClient(
            new_notebook(),  # type: ignore[no-untyped-call]
            kernel,
            timeout=SECONDS,
            extra_arguments=KERNEL_OPTIONS,
            shutdown_kernel="immediate",
        )
        client.resources = {"metadata": {"path": str(root)}}
        environment = {**os.environ, **ENVIRONMENT, "IPYTHONDIR": str(PROFILE)}
        async with client.async_setup_kernel(cleanup_kc=True, env=environment):
            for i, part in parts.items():
                run = _values if isinstance(part, Text) else _outputs
                results[str(i)] = await run(page, part, client)  # type: ignore[arg-type]
    return results


def _runs(part: Text | Cell) -> bool:
    if isinstance(part, Text):
        return bool(INLINE.search(part.text))
    return part.language == "python" and part.options.get("eval", True)


async def _run(client: NotebookClient, code: str, *tags: str) -> list[Any]:
    cell = new_code_cell(code, metadata={"tags": tags})  # type: ignore[no-untyped-call]
    client.nb.cells.append(cell)
    await client.async_execute_cell(cell, len(client.nb.cells) - 1)
    return _joined(cell.outputs)


def _joined(outputs: list[Any]) -> list[Any]:
    """Join the pieces of the kernel's output, which it sends every fifth of a second."""
    joined: list[Any] = []
    for output in outputs:
        if joined and "name" in output and joined[-1].get("name") == output["name"]:
            joined[-1]["text"] += output["text"]
        else:
            joined.append(output)
    return joined


async def _outputs(page: Page, cell: Cell, client: NotebookClient) -> list[Any]:
    fails = cell.options.get("error", False)
    try:
        outputs = await _run(client, cell.code, *["raises-exception"] * fails)
    except CellExecutionError as error:
        plain = re.sub(r"\x1b\[[\d;]*m", "", error.traceback)
        found = re.search(r"Cell In\[\d+\], line (\d+)", plain)
        down = int(found[1]) - 1 if found else 0
        source = cell.code.split("\n")[down].strip()
        message = f"{error.ename}: {error.evalue} in `{source}`"
        raise Fault(page.path, cell.code_line + down, message) from None
    if fails and not any(output["output_type"] == "error" for output in outputs):
        raise Fault(page.path, cell.line, "the cell says `error: true` and does not raise")
    return outputs


async def _values(page: Page, part: Text, client: NotebookClient) -> list[str]:
    found = list(INLINE.finditer(part.text))
    asked = {str(i): expression[1].strip() for i, expression in enumerate(found)}
    [answer] = await _run(client, ASK % (ANSWER, asked))
    answers = answer.data[ANSWER]
    for i, expression in enumerate(found):
        if answers[str(i)]["status"] == "error":
            message = "{ename}: {evalue}".format(**answers[str(i)]) + f" in `{expression[1]}`"
            line = part.line + part.text.count("\n", 0, expression.start())
            raise Fault(page.path, line, message)
    return [_inline(answers[str(i)]["data"]) for i in range(len(found))]


def _inline(data: dict[str, str]) -> str:
    """Write one value into a sentence as Quarto does: a string is text, never Markdown."""
    form = next(form for form in FORMS if form in data)
    if form == "text/plain" and data[form][0] in "'\"":
        return re.sub(r"([\\`*_{}\[\]()>#+,.!-])", r"\\\1", str(ast.literal_eval(data[form])))
    return data[form]
