"""Find the mistakes that are visible in a page's source, with their exact lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.pages import schema
from tools.pages.faults import Fault
from tools.pages.pages import Cell, Page

SHOWN = {"", "text", "bash", "yaml", "json", "toml", "bibtex", "=html"}
# Class names to which Quarto gives a meaning. Any other is the page's own.
MAGIC = re.compile(r"(?:callout|panel|column|content|layout)-.*")
CLASSES = re.compile(r"callout-(?:note|tip|warning|caution|important)|panel-tabset")
ATTRIBUTES = re.compile(r"collapse|title|icon|style|role|aria-[a-z]+|data-[a-z-]+")
DIV = re.compile(r":{3,}\s*(?P<attributes>\{.*\}|[\w-]+)?\s*:*\s*")
SHORTCODE = re.compile(r"(?<!\{)\{\{<\s*(.*?)\s*>\}\}")


def lint(page: Page, variables: dict[str, str]) -> Iterator[Fault]:
    """Yield every fault of ``page``."""
    found: list[tuple[int, str]] = [*_fences(page), *_divs(page)]
    for part in page.texts:
        for number, line in enumerate(part.text.split("\n"), part.line):
            for code in SHORTCODE.findall(line):
                if code.removeprefix("var ").strip() not in variables:
                    found.append((number, f"unknown shortcode {code!r}"))
        for number, line in enumerate(part.prose.split("\n"), part.line):
            if re.match(r"\s+(`{3,}|~{3,})\s*\{\w+\}", line):
                found.append((number, "a cell has to start in the first column"))
            if section := re.search(r"(?<![\w@])@(sec-[\w-]+)", line):
                found.append((number, f"headings have no numbers: link to #{section[1]} in words"))
    yield from schema.check("page", page.meta_text, page.meta, page.path)
    for cell in page.cells:
        yield from _cell(page, cell)
    yield from (Fault(page.path, *fault) for fault in (*found, *_hidden_names(page)))


def _cell(page: Page, cell: Cell) -> Iterator[Fault]:
    if cell.language != "python":
        yield Fault(page.path, cell.line, f"no kernel for a {{{cell.language}}} cell")
        return
    yield from schema.check("python", cell.option_text, cell.options, page.path, cell.line + 1)
    kind = str(cell.options.get("label")).split("-")[0]
    if kind in {"fig", "tbl"} and f"{kind}-cap" not in cell.options:
        yield Fault(page.path, cell.line, f"a label {kind}-… needs {kind}-cap")


def _hidden_names(page: Page) -> Iterator[tuple[int, str]]:
    """Find names in code that is shown whose definitions are only in hidden code."""
    hidden, visible = set[str](), set[str]()
    for cell in page.cells:
        try:
            nodes = list(ast.walk(ast.parse(cell.code)))
        except SyntaxError:  # running the cell reports it
            continue
        used, defined = set[str](), set[str]()
        for node in nodes:
            if isinstance(node, ast.Name):
                (used if isinstance(node.ctx, ast.Load) else defined).add(node.id)
            elif isinstance(node, ast.arg):
                defined.add(node.arg)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                defined.add(node.name)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                defined |= {(one.asname or one.name).split(".")[0] for one in node.names}
        if not cell.is_shown:
            hidden |= defined - visible
            continue
        for name in sorted((used & hidden) - defined):
            yield cell.line, f"{name!r} is defined in a cell that readers do not see: show it"
        visible |= defined
        hidden -= defined


def _fences(page: Page) -> Iterator[tuple[int, str]]:
    generated = page.path.parts[:2] == ("docs", "api")
    for number, info, first in page.fences:
        named = re.search(r"^\{?\.?([\w=]*)|\.(python)", info)
        language = "python" if ".python" in info else named[1] if named else ""
        if language == "python" and not (generated or first.startswith("%pip install")):
            yield number, "Python that is only shown can be wrong: make it a ```{python} cell"
        elif language not in SHOWN | {"python"}:
            yield number, f"unknown language {info!r} of a code block"


def _divs(page: Page) -> Iterator[tuple[int, str]]:
    """Check the ``:::`` lines of the whole page, because a div may contain cells."""
    opened: list[int] = []
    for part in page.texts:
        lines = part.prose.split("\n")
        for i, line in enumerate(lines):
            number, before = part.line + i, lines[i - 1] if i else ""
            if not line.startswith(":::"):
                continue
            if not (div := DIV.fullmatch(line)):
                yield number, f"{line!r} opens no div and closes none"
            elif attributes := div["attributes"]:
                opened.append(number)
                if before.strip() and not before.startswith(":::"):
                    yield number, "`:::` needs an empty line before it"
                yield from ((number, message) for message in _attributes(attributes))
            elif opened:
                opened.pop()
            else:
                yield number, "stray `:::`: no div is open here"
    yield from ((number, "this div is never closed") for number in opened)


def _attributes(text: str) -> Iterator[str]:
    bare = re.sub(r'"[^"]*"', '""', text)
    for name in re.findall(r"\.([\w-]+)", bare) if "{" in bare else [bare]:
        if MAGIC.fullmatch(name) and not CLASSES.fullmatch(name):
            yield f"unknown {'callout' if name.startswith('callout') else 'class'} {name!r}"
    for key in re.findall(r"([\w-]+)\s*=", bare):
        if not ATTRIBUTES.fullmatch(key):
            yield f"unknown attribute {key!r}"


def insert(variables: dict[str, str], text: str) -> str:
    """Replace each ``var`` shortcode."""
    return SHORTCODE.sub(lambda code: variables.get(code[1][4:].strip(), ""), text)
