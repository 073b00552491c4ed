"""Split a .qmd page into front matter, Markdown and cells, without running or rendering it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tools.pages.answers import cell as answer_cell
from tools.pages.faults import Fault

FENCE = re.compile(r"^(`{3,}|~{3,})\s*(.*?)\s*$")
CELL = re.compile(r"^\{(\w+)\}$")
OPTION = re.compile(r"^#\| ?")
INLINE = re.compile(r"(?<!`)`\{python\}[ \t]([^`]+)`")
# The order in which Quarto looks for a form of an output to show; a kernel of pages leaves no HTML.
FORMS = ("text/markdown", "image/svg+xml", "image/png", "text/latex", "text/plain")
INCLUDE = re.compile(r"\{\{< include /build/answers/([\w-]+)\.qmd >\}\}")


@dataclass(frozen=True)
class Text:
    """Markdown between two cells; in ``prose``, same lines, code that is only shown is blank."""

    text: str
    prose: str
    line: int

    def with_values(self, values: Iterable[str]) -> str:
        """Return the text with a value instead of each inline expression."""
        *pieces, last = INLINE.split(self.text)
        # Every second piece is an expression.
        return "".join(a + b for a, b in zip(pieces[::2], values, strict=True)) + last


@dataclass(frozen=True)
class Cell:
    """A block that runs."""

    source: str
    language: str
    option_text: str
    code: str
    line: int
    code_line: int
    options: dict[str, Any] = field(compare=False, default_factory=dict)

    @property
    def is_shown(self) -> bool:
        """Whether readers see the code."""
        return bool(self.options.get("echo", True) and self.options.get("include", True))


@dataclass(frozen=True)
class Page:
    """One page as it was written; ``path`` is relative to the project root."""

    path: Path
    source: str
    meta_text: str
    meta: dict[str, Any]
    parts: tuple[Text | Cell, ...]
    fences: tuple[tuple[int, str, str], ...]  # code only shown: line, info string, first line

    @property
    def cells(self) -> list[Cell]:
        """The cells in the order in which they run."""
        return [part for part in self.parts if isinstance(part, Cell)]

    @property
    def runs(self) -> bool:
        """Whether the page has a cell or a value within its text."""
        return bool(self.cells) or any(INLINE.search(part.text) for part in self.texts)

    @property
    def texts(self) -> list[Text]:
        """The Markdown in the order in which it is read."""
        return [part for part in self.parts if isinstance(part, Text)]

    def line_of(self, needle: str) -> int | None:
        """Return the line of the prose where ``needle`` is a whole word."""
        for part in self.texts:
            if found := re.search(rf"(?<![\w-]){re.escape(needle)}(?![\w-])", part.prose):
                return part.line + part.prose.count("\n", 0, found.start())
        return None


def read_page(path: Path, root: Path = Path()) -> Page:
    """Read and split ``root / path``, with the worked answers that it includes."""
    lines, numbers = list[str](), list[int]()
    for number, line in enumerate((root / path).read_text(encoding="utf-8").split("\n"), 1):
        name = INCLUDE.fullmatch(line)
        block = answer_cell(name[1]).split("\n") if name else [line]
        lines += block
        numbers += [number] * len(block)
    return split_page(path, "\n".join(lines), numbers)


def split_page(path: Path, source: str, numbers: Sequence[int] = ()) -> Page:
    """Split the text of a page; ``numbers`` are those of its lines in its file."""
    lines, start = source.split("\n"), 0
    numbers = [*(numbers or range(1, len(lines) + 1)), len(lines) + 1]
    if lines[0] == "---" and "---" in lines[1:]:
        start = lines.index("---", 1) + 1
    meta_text = "\n".join(["", *lines[1 : start - 1]]) if start else ""
    fences: list[tuple[int, str, str]] = []
    parts = tuple(_split(path, lines, start, fences, numbers))
    return Page(path, source, meta_text, _mapping(path, 1, meta_text), parts, tuple(fences))


def _split(
    path: Path,
    lines: list[str],
    at: int,
    fences: list[tuple[int, str, str]],
    numbers: Sequence[int],
) -> Iterator[Text | Cell]:
    """Go through the lines, so that a fence inside another fence does not count as a cell."""
    begin, prose = at, list(lines)
    while at < len(lines):
        if not (opening := FENCE.match(lines[at])):
            at += 1
            continue
        ticks, info = opening.groups()
        closing = re.compile(rf"{ticks[0]}{{{len(ticks)},}}\s*")
        end = next((i for i in range(at + 1, len(lines)) if closing.fullmatch(lines[i])), None)
        if end is None:
            raise Fault(path, numbers[at], f"the block {lines[at]!r} is never closed")
        if named := CELL.match(info):
            yield Text("\n".join(lines[begin:at]), "\n".join(prose[begin:at]), numbers[begin])
            yield _cell(path, named[1], lines[at : end + 1], numbers[at])
            begin = end + 1
        else:
            fences.append((numbers[at], info, lines[at + 1]))
            prose[at : end + 1] = [""] * (end + 1 - at)
        at = end + 1
    yield Text("\n".join(lines[begin:]), "\n".join(prose[begin:]), numbers[begin])


def _cell(path: Path, language: str, block: list[str], line: int) -> Cell:
    body = block[1:-1]
    count = next((i for i, text in enumerate(body) if not OPTION.match(text)), len(body))
    option_text = "\n".join(OPTION.sub("", text) for text in body[:count])
    options = _mapping(path, line + 1, option_text)
    source, code = "\n".join(block), "\n".join(body[count:])
    return Cell(source, language, option_text, code, line, line + 1 + count, options)


def _mapping(path: Path, line: int, text: str) -> dict[str, Any]:
    """Read YAML that must be a mapping and starts on ``line``."""
    try:
        value = yaml.safe_load(text) or {}
    except yaml.MarkedYAMLError as error:
        down = error.problem_mark.line if error.problem_mark else 0
        raise Fault(path, line + down, f"this is not YAML: {error.problem}") from None
    if not isinstance(value, dict):
        raise Fault(path, line, "expected `key: value` lines")
    return value
