"""Puts the outputs of a page's cells back among its words, as Markdown for pandoc."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterator
from typing import Any

from tools.preview.execute import FORMS
from tools.preview.faults import Fault
from tools.preview.lint import SHORTCODE
from tools.preview.pages import INLINE, Cell, Page, Text

ADDRESS = re.compile(r"<[^<>\n]* at 0x[0-9a-f]+>")


class Composer:
    """Writes one page; ``origin`` keeps the page's line for each line that came from it."""

    def __init__(self, page: Page, results: dict[str, list[Any]], variables: dict[str, str]) -> None:
        self.page, self.variables = page, variables
        self.images: dict[str, str] = {}
        self.origin: list[int] = []
        blocks: list[str] = []
        for i, part in enumerate(page.parts):
            found = results.get(str(i), [])
            text = self._text(part, found) if isinstance(part, Text) else self._block(part, found)
            blocks.append(text + "\n")
            for k in range(text.count("\n") + 2):
                self.origin.append(part.line + (k if isinstance(part, Text) else 0))
        self.markdown = "\n".join(blocks)

    def _text(self, part: Text, values: list[str]) -> str:
        answers = iter(values)
        text = INLINE.sub(lambda _: next(answers).replace("\n", " "), part.text)
        return SHORTCODE.sub(lambda code: self.variables.get(code[1][4:].strip(), ""), text)

    def _block(self, cell: Cell, outputs: list[Any]) -> str:
        return _mermaid(cell) if cell.language == "mermaid" else self._cell(cell, outputs)

    def _cell(self, cell: Cell, outputs: list[Any]) -> str:
        options = cell.options
        if options.get("include", True) is False:
            return ""
        shown = [] if options.get("output") is False else [*self._outputs(cell, outputs)]
        if options.get("output") == "asis":
            return "\n\n".join([*_echo(options, cell.code), *shown])
        label, captions = options.get("label", ""), ("fig-cap", "tbl-cap")
        caption = next((options[name] for name in captions if name in options), None)
        body = "\n\n".join(shown)
        if caption and label.startswith(("fig-", "tbl-")):
            body = f"::: {{#{label}}}\n{body}\n\n{caption}\n:::"
        identity = f"#{label} " if label and not caption else ""
        return "\n\n".join([f"::: {{{identity}.cell}}", *_echo(options, cell.code), body, ":::"])

    def _outputs(self, cell: Cell, outputs: list[Any]) -> Iterator[str]:
        for output in outputs:
            if output["output_type"] == "stream":
                yield from self._stream(cell, output["name"], output["text"])
            elif output["output_type"] == "error":
                yield _div("error", _fenced(f"{output['ename']}: {output['evalue']}"))
            else:
                data = output["data"]
                form = next((form for form in FORMS if form in data), None)
                if form is None:
                    raise Fault(self.page.path, cell.line, f"cannot show {sorted(data)}")
                shown = self._display(cell, form, data[form])
                asis = cell.options.get("output") == "asis"
                yield shown if asis else _div("display", shown)

    def _stream(self, cell: Cell, name: str, text: str) -> Iterator[str]:
        warning = cell.options.get("warning")
        if name == "stderr" and warning is None:
            first = text.strip().split("\n")[0]
            message = f"the cell writes to stderr ({first}): mend it or set `warning`"
            raise Fault(self.page.path, cell.line, message)
        if cell.options.get("output") == "asis":
            yield text
        elif name == "stdout" or warning:
            yield _div(name, _fenced(text.rstrip("\n")))

    def _display(self, cell: Cell, form: str, text: str) -> str:
        if form == "text/html":
            return _fenced(text, "{=html}")
        if form == "text/plain":
            if found := ADDRESS.search(text):
                message = f"the output says only {found[0]}: end the cell with `;` or print"
                raise Fault(self.page.path, cell.line, message)
            return _fenced(text)
        if form not in {"image/svg+xml", "image/png"}:
            return text
        alt = cell.options.get("fig-alt")
        if not alt:
            raise Fault(self.page.path, cell.line, "a figure without alt text: add `fig-alt`")
        suffix = "svg" if "svg" in form else "png"
        name = f"{self.page.path.stem}_files/figure-{len(self.images) + 1}.{suffix}"
        self.images[name] = text if suffix == "png" else base64.b64encode(text.encode()).decode()
        caption = "" if "label" in cell.options else cell.options.get("fig-cap", "")
        quoted = alt.replace("\\", "\\\\").replace('"', '\\"')
        return f'![{caption}]({name}){{fig-alt="{quoted}" .figure-img}}'


def _fenced(text: str, attributes: str = "") -> str:
    ticks = max((len(run) for run in re.findall("`{3,}", text)), default=2) + 1
    return f"{'`' * ticks}{attributes}\n{text}\n{'`' * ticks}"


def _div(kind: str, body: str) -> str:
    return f"::: {{.cell-output .cell-output-{kind}}}\n{body}\n:::"


def _echo(options: dict[str, Any], code: str) -> Iterator[str]:
    if options.get("echo", True) is False or not code.strip():
        return
    block = _fenced(code.strip("\n"), "{.python .cell-code}")
    if fold := options.get("code-fold", False):
        summary = html.escape(options.get("code-summary", "Code"))
        opened = " open" if fold == "show" else ""
        opening = f'<details class="code-fold"{opened}><summary>{summary}</summary>'
        block = "\n\n".join([_fenced(opening, "{=html}"), block, _fenced("</details>", "{=html}")])
    yield block


def _mermaid(cell: Cell) -> str:
    alt = html.escape(cell.options.get("fig-alt", ""))
    graph = html.escape(cell.code, quote=False)
    body = f'<pre class="mermaid mermaid-js" role="img" aria-label="{alt}">{graph}</pre>'
    block, caption = _fenced(body, "{=html}"), cell.options.get("fig-cap")
    if label := cell.options.get("label"):
        return f"::: {{#{label}}}\n{block}\n\n{caption}\n:::"
    return f"::: {{.mermaid-figure}}\n{block}\n\n{caption or ''}\n:::"
