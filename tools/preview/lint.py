"""Finds what can be seen in a page's source alone, each mistake with its exact line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.preview import schema
from tools.preview.faults import Fault
from tools.preview.pages import Cell, Page, Text

CALLOUTS = {f"callout-{name}" for name in ("note", "tip", "warning", "caution", "important")}
LANGUAGES = {"", "text", "bash", "yaml", "json", "toml", "bibtex"}
# Names that Quarto gives a meaning to. Any other class is the page's own.
MAGIC = re.compile(r"^(callout|panel|column|content|layout)-")
SUPPORTED = CALLOUTS | {"panel-tabset", "column-page"}
ATTRIBUTES = re.compile(r"^(collapse|title|icon|style|role|aria-[a-z]+|data-[a-z-]+)$")
DIV = re.compile(r"^:{3,}\s*(?P<attributes>\{.*\}|[\w-]+)?\s*:*\s*$")
SHORTCODE = re.compile(r"(?<!\{)\{\{<\s*(.*?)\s*>\}\}")


def lint(page: Page, variables: dict[str, str], *, generated: bool) -> Iterator[Fault]:
    """Yield every fault of ``page``; a ``generated`` page may show Python that does not run."""
    yield from schema.check("page", page.meta_text, page.meta, page.path)
    yield from _divs(page)
    for part in page.parts:
        if isinstance(part, Cell):
            yield from _cell(page, part)
            continue
        for line, info, content in part.fences:
            yield from _fence(page, line, info, content, generated)
        for number, line in enumerate(part.text.split("\n"), part.line):
            for code in SHORTCODE.findall(line):
                if not (code.startswith("var ") and code[4:].strip() in variables):
                    yield Fault(page.path, number, f"unknown shortcode {code!r}")
            if re.match(r"^\s+(`{3,}|~{3,})\s*\{\w+\}", line):
                yield Fault(page.path, number, "a cell has to start in the first column")
            if found := re.search(r"(?<![\w@])@(sec-[\w-]+)", line):
                message = f"headings have no numbers: write [its words](#{found[1]})"
                yield Fault(page.path, number, message)


def _cell(page: Page, cell: Cell) -> Iterator[Fault]:
    if cell.language not in {"python", "mermaid"}:
        yield Fault(page.path, cell.line, f"no kernel for a {{{cell.language}}} cell")
        return
    yield from schema.check(
        cell.language, cell.option_text, cell.options, page.path, cell.line + 1
    )
    for prefix, caption in (("fig", "fig-cap"), ("tbl", "tbl-cap")):
        labelled = str(cell.options.get("label", "")).startswith(f"{prefix}-")
        if labelled and caption not in cell.options:
            yield Fault(page.path, cell.line, f"label {prefix}-… needs {caption}")


def _fence(page: Page, line: int, info: str, content: str, generated: bool) -> Iterator[Fault]:
    named = re.match(r"^\{?\s*(?:=|\.)?([\w-]*)", info)
    language = named[1] if named else ""
    if info.startswith("{=") and language == "html":
        return
    if language == "python" and not generated and not content.startswith("%pip install"):
        message = "Python that is only shown can be wrong: make it a ```{python} cell"
        yield Fault(page.path, line, message)
    elif language not in LANGUAGES | {"python"}:
        yield Fault(page.path, line, f"unknown language {info!r} of a code block")


def _divs(page: Page) -> Iterator[Fault]:
    """Follow the ``:::`` lines through the whole page, since a div may hold cells."""
    open_lines: list[int] = []
    for number, line, before in _prose(page):
        if not line.startswith(":::"):
            continue
        div = DIV.match(line)
        if not div:
            yield Fault(page.path, number, f"{line!r} opens no div and closes none")
        elif div["attributes"]:
            open_lines.append(number)
            if before.strip() and not before.startswith(":::"):
                yield Fault(page.path, number, "`:::` needs an empty line before it")
            yield from _attributes(page, number, div["attributes"])
        elif open_lines:
            open_lines.pop()
        else:
            yield Fault(page.path, number, "stray `:::`: no div is open here")
    for number in open_lines:
        yield Fault(page.path, number, "this div is never closed")


def _prose(page: Page) -> Iterator[tuple[int, str, str]]:
    """Yield (line number, line, line before) outside of every code block."""
    for part in page.parts:
        if not isinstance(part, Text):
            continue
        hidden = {
            line + i
            for line, _, content in part.fences
            for i in range(content.count("\n") + 3)
        }
        before = ""
        for number, line in enumerate(part.text.split("\n"), part.line):
            if number not in hidden:
                yield number, line, before
                before = line


def _attributes(page: Page, number: int, text: str) -> Iterator[Fault]:
    bare = re.sub(r'"[^"]*"', '""', text)
    classes = re.findall(r"\.([\w-]+)", bare) or [text.strip()] * (not text.startswith("{"))
    for name in classes:
        if MAGIC.match(name) and name not in SUPPORTED:
            kind = "callout" if name.startswith("callout-") else "class"
            yield Fault(page.path, number, f"unknown {kind} {name!r}")
    for key in re.findall(r"([\w-]+)\s*=", bare):
        if not ATTRIBUTES.match(key):
            yield Fault(page.path, number, f"unknown attribute {key!r}")
