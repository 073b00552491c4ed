"""Insert the outputs of a page's cells into its text, as Markdown for pandoc."""

from __future__ import annotations

import base64
import html
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
        asis = options.get("output") == "asis"
        if not asis:
            yield "::: {.cell}"
        if options.get("echo", True) and cell.code.strip():
            yield _echo(options, cell.code.strip("\n"))
        if shown and options.get("output", True):
            yield _float(cell, "\n\n".join(shown))
        if not asis:
            yield ":::"

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
        name = f"{self.page.path.stem}_files/{len(self.images) + 1}.{form[6:9]}"
        self.images[name] = data if "png" in form else base64.b64encode(data.encode()).decode()
        alt = options["fig-alt"].replace("\\", "\\\\").replace('"', '\\"')
        caption = "" if "label" in options else options.get("fig-cap", "")
        return f'![{caption}]({name}){{fig-alt="{alt}"}}'

    def _fault(self, cell: Cell, message: str) -> Fault:
        return Fault(self.page.path, cell.line, message)


def _float(cell: Cell, body: str) -> str:
    """Give a labeled cell's output its number and caption; filter.lua does the counting."""
    label = cell.options.get("label", "")
    caption = cell.options.get(f"{label[:3]}-cap")
    return f"::: {{#{label}}}\n{body}\n\n{caption}\n:::" if caption else body


def _fenced(text: str, attributes: str = "") -> str:
    ticks = "`" * (max((len(run) for run in re.findall("`{3,}", text)), default=2) + 1)
    return f"{ticks}{attributes}\n{text}\n{ticks}"


def _echo(options: dict[str, Any], code: str) -> str:
    block = _fenced(code, "{.python .cell-code}")
    if not (fold := options.get("code-fold")):
        return block
    opening = f'<details class="code-fold"{" open" if fold == "show" else ""}><summary>'
    opening += html.escape(options.get("code-summary", "Code")) + "</summary>"
    return "\n\n".join([_fenced(opening, "{=html}"), block, _fenced("</details>", "{=html}")])
