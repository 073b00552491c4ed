"""Insert the outputs of a page's cells into its text, as Quarto writes them for pandoc."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

from tools.pages.faults import Fault
from tools.pages.lint import insert
from tools.pages.pages import FORMS, Cell, Page, Text


class Composer:
    """Writes ``markdown``, with the ``images`` that it shows (as base64 by name)."""

    def __init__(
        self, page: Page, results: dict[str, list[Any]], variables: dict[str, str]
    ) -> None:
        self.page, self.images = page, dict[str, str]()
        blocks = []
        for i, part in enumerate(page.parts):
            part_results = results.get(str(i), [])
            if isinstance(part, Text):
                blocks.append(insert(variables, part.with_values(part_results)))
            else:
                blocks.append("\n\n".join(self._cell(part, part_results)))
        self.markdown = "\n\n".join(blocks)

    def _cell(self, cell: Cell, outputs: list[Any]) -> Iterator[str]:
        options = cell.options
        shown = list(self._outputs(cell, outputs))
        if options.get("include", True) is False:
            return
        blocks = shown if options.get("output", True) else []
        if options.get("echo", True) and cell.code.strip():
            blocks = [_echo(options, cell.code.strip("\n")), *blocks]
        if "tbl-cap" in options:
            label = f"#{options['label']} "
            blocks = [f"::: {{{label}.cell{_attribute(options, 'tbl-cap')}}}", *blocks, ":::"]
        elif blocks and options.get("output") != "asis":
            blocks = ["::: {.cell}", *blocks, ":::"]
        yield from blocks

    def _outputs(self, cell: Cell, outputs: list[Any]) -> Iterator[str]:
        asis = cell.options.get("output") == "asis"
        warning = cell.options.get("warning")
        for output in outputs:
            kind, text = output.get("name", "display"), output.get("text", "")
            if output["output_type"] == "error":
                kind, text = "error", f"{output['ename']}: {output['evalue']}"
            if kind == "stderr" and warning is None:
                first = text.strip().split("\n")[0]
                raise self._fault(cell, f"the cell writes to stderr: {first} (or set `warning`)")
            if kind == "display":
                text = self._display(cell, output["data"])
            elif not asis:
                text = _fenced(text.rstrip("\n"))
            if kind != "stderr" or warning:
                yield text if asis else f"::: {{.cell-output .cell-output-{kind}}}\n{text}\n:::"

    def _display(self, cell: Cell, data: dict[str, str]) -> str:
        form = next((form for form in FORMS if form in data), "")
        if not form:
            raise self._fault(cell, f"no form of the output can be shown: {sorted(data)}")
        if form == "text/plain" and (found := re.search(r"<[^<>\n]* at 0x\w+>", data[form])):
            raise self._fault(cell, f"an output that says only {found[0]}: end the cell with `;`")
        if form == "text/plain":
            return _fenced(data[form])
        return self._image(cell, data[form], form) if "image" in form else data[form]

    def _image(self, cell: Cell, data: str, form: str) -> str:
        options = cell.options
        if not options.get("fig-alt"):
            raise self._fault(cell, "a figure without alt text: add `fig-alt`")
        label, number = options.get("label", "figure"), len(self.images) + 1
        name = f"{self.page.path.stem}_files/figure-html/{label}-{number}.{form[6:9]}"
        self.images[name] = data if "png" in form else base64.b64encode(data.encode()).decode()
        attributes = f"#{label}" if "label" in options else ""
        attributes += _attribute(options, "fig-alt")
        return f"![{options.get('fig-cap', '')}]({name}){{{attributes}}}"

    def _fault(self, cell: Cell, message: str) -> Fault:
        return Fault(self.page.path, cell.line, message)


def _fenced(text: str, attributes: str = "") -> str:
    ticks = "`" * (max((len(run) for run in re.findall("`{3,}", text)), default=2) + 1)
    return f"{ticks}{attributes}\n{text}\n{ticks}"


def _echo(options: dict[str, Any], code: str) -> str:
    folded = _attribute(options, "code-fold") + _attribute(options, "code-summary")
    return _fenced(code, f"{{.python .cell-code{folded}}}")


def _attribute(options: dict[str, Any], name: str) -> str:
    """Write an option of a cell as an attribute; nothing if the cell does not have it."""
    if name not in options:
        return ""
    value = "true" if options[name] is True else str(options[name])
    text = value.replace("\\", "\\\\").replace('"', '\\"')
    return f' {name}="{text}"'
