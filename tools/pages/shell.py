"""The IPython in which the cells of a page run. Import it only in a process for pages."""

from __future__ import annotations

import ast
import io
import re
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib as mpl
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.formatters import DisplayFormatter
from IPython.core.interactiveshell import InteractiveShell
from matplotlib_inline.config import InlineBackend
from traitlets import Type
from traitlets.config import Config

import mlsysim  # noqa: F401 - every page uses it
from tools.pages.faults import Fault
from tools.pages.pages import FORMS, INLINE, Cell, Page, Text

FOLDER = Path("build/ipython")  # where IPython would keep an author's settings
STYLE = Path(__file__).parents[2] / "mlsysim/viz/figures.mplstyle"
CELL_FILE = "<ipython-input-"  # how IPython names the files of cells


class PageFormatter(DisplayFormatter):
    """A formatter that returns HTML as raw HTML in Markdown."""

    def format(self, obj: object, include: Any = None, exclude: Any = None) -> tuple[Any, Any]:
        """Return an object's representations and their metadata, by type."""
        data, metadata = super().format(obj, include, exclude)  # type: ignore[no-untyped-call]
        if html := data.pop("text/html", None):
            runs = [len(run) for run in re.findall("`{3,}", html)]
            fence = "`" * (max(runs, default=2) + 1)
            data["text/markdown"] = f"{fence}{{=html}}\n{html}\n{fence}"
        return data, metadata


class Publisher(DisplayPublisher):
    """Records what a cell displays."""

    shell: PageShell

    def publish(self, data: dict[str, Any], *_: Any, **__: Any) -> None:
        """Record the forms of an object."""
        self.shell.record({"output_type": "display_data", "data": data})


class Hook(DisplayHook):
    """Records the value of a cell's last expression."""

    shell: PageShell
    exec_result: Any

    def quiet(self) -> bool:
        """Return whether the cell ends with a semicolon."""
        cell = self.exec_result.info.raw_cell
        return bool(self.semicolon_at_end_of_expression(cell))  # type: ignore[no-untyped-call]

    def write_output_prompt(self) -> None:
        """Write no prompt."""

    def write_format_data(self, format_dict: dict[str, Any], md_dict: Any = None) -> None:
        """Record the forms of the value."""
        self.shell.record({"output_type": "execute_result", "data": format_dict})


class Stream(io.TextIOBase):
    """Records what a cell prints, in one piece until something else is shown."""

    def __init__(self, name: str, outputs: list[dict[str, Any]]) -> None:
        self.name, self.outputs = name, outputs

    def write(self, text: str) -> int:
        """Record a piece."""
        if not text:
            return 0
        if not self.outputs or self.outputs[-1].get("name") != self.name:
            self.outputs.append({"output_type": "stream", "name": self.name, "text": ""})
        self.outputs[-1]["text"] += text
        return len(text)


class PageShell(InteractiveShell):
    """An IPython that records the outputs of each cell."""

    displayhook_class = Type(Hook)
    display_pub_class = Type(Publisher)
    outputs: list[dict[str, Any]]

    def record(self, output: dict[str, Any]) -> None:
        """Add to the outputs of the present cell."""
        self.outputs.append(output)

    def enable_gui(self, gui: str | None = None) -> None:
        """Open no windows."""

    def showtraceback(self, *_: Any, **__: Any) -> None:
        """Show nothing: a cell's error is one of its outputs, or a fault."""

    showsyntaxerror = showindentationerror = showtraceback


def results(page: Page) -> dict[str, list[Any]]:
    """Return the outputs of each cell and the inline values of each text, by its number."""
    config = Config({"HistoryManager": {"enabled": False}})
    shell: Any = PageShell.instance(config=config, ipython_dir=str(FOLDER.resolve()))
    shell.display_formatter = PageFormatter(parent=shell)
    # Python hides some kinds. What a cell or the package is warned of is a fault of the page.
    warnings.filterwarnings("default", module=r"__main__|mlsysim\b")
    mpl.rc_file(STYLE)
    InlineBackend.instance(parent=shell).figure_formats = {"svg"}
    shell.enable_matplotlib("inline")
    made: dict[str, list[Any]] = {}
    for i, part in enumerate(page.parts):
        if isinstance(part, Cell) and _runs(part):
            made[str(i)] = _outputs(page, part, shell)
        elif isinstance(part, Text) and INLINE.search(part.text):
            made[str(i)] = _values(page, part, shell)
    return made


def _runs(cell: Cell) -> bool:
    return cell.language == "python" and bool(cell.options.get("eval", True))


def _outputs(page: Page, cell: Cell, shell: Any) -> list[dict[str, Any]]:
    outputs = shell.outputs = []
    with redirect_stdout(Stream("stdout", outputs)), redirect_stderr(Stream("stderr", outputs)):
        run = shell.run_cell(cell.code)
    error, fails = run.error_before_exec or run.error_in_exec, cell.options.get("error", False)
    if fails and not error:
        raise Fault(page.path, cell.line, "the cell says `error: true` and does not raise")
    if error and not fails:
        down = _line(error) - 1
        source = cell.code.split("\n")[down].strip()
        message = f"{type(error).__name__}: {error} in `{source}`"
        raise Fault(page.path, cell.code_line + down, message)
    if error:
        name = type(error).__name__
        outputs.append({"output_type": "error", "ename": name, "evalue": str(error)})
    return outputs


def _line(error: BaseException) -> int:
    """Return the line of the cell on which an error begins."""
    frames = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename.startswith(CELL_FILE)]
    return lines[0] if lines else getattr(error, "lineno", None) or 1


def _values(page: Page, part: Text, shell: Any) -> list[str]:
    expressions = list(INLINE.finditer(part.text))
    answers = shell.user_expressions({i: one[1].strip() for i, one in enumerate(expressions)})
    for i, expression in enumerate(expressions):
        if answers[i]["status"] == "error":
            message = "{ename}: {evalue}".format(**answers[i]) + f" in `{expression[1]}`"
            line = part.line + part.text.count("\n", 0, expression.start())
            raise Fault(page.path, line, message)
    return [_inline(answer["data"]) for answer in answers.values()]


def _inline(data: dict[str, str]) -> str:
    """Write one value into a sentence as Quarto does: a string is text, never Markdown."""
    form = next(form for form in FORMS if form in data)
    if form == "text/plain" and data[form][0] in "'\"":
        return re.sub(r"([\\`*_{}\[\]()>#+,.!-])", r"\\\1", str(ast.literal_eval(data[form])))
    return data[form]
