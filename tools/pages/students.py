"""The version of a page for students: exercises without answers, predictions open."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.pages.pages import FENCE, Cell, Page, split_page

FOLDED = re.compile(r'^:{3,} *\{\.callout-tip collapse="true"\}')
ANSWER = re.compile(r"^#+ Answer to ")
OWN_ANSWER = "*Your way to the answer:*"
OWN_COMPARISON = "*Run this, and write down where your prediction was wrong. Then read the page.*"


def for_students(page: Page) -> Page:
    """Return a page without its folded answers.

    An answer to an exercise is left out. A comparison with a prediction keeps its cells, which
    later ones need, and loses its words. Cells that check the page itself are left out as well.

    Parameters
    ----------
    page
        Any page; one without folded answers is returned with the same text.
    """
    open_page = split_page(page.path, "\n".join(_lines(page.source.split("\n"))))
    ends = {cell.line: cell.code_line + cell.code.count("\n") + 1 for cell in _checks(open_page)}
    without = {line for begin, end in ends.items() for line in range(begin, end + 1)}
    lines = enumerate(open_page.source.split("\n"), 1)
    return split_page(page.path, "\n".join(line for at, line in lines if at not in without))


def _checks(page: Page) -> Iterator[Cell]:
    """Yield hidden cells with assertions on which no later cell depends."""
    needed: set[str] = set()
    for cell in reversed(page.cells):
        if cell.language != "python":
            continue
        # IPython's magic is no Python, and names nothing.
        tree = ast.parse(re.sub(r"^(\s*)%.*", r"\1pass", cell.code, flags=re.MULTILINE))
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        stored = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        hidden = cell.options.get("echo") is False and "label" not in cell.options
        asserts = any(isinstance(node, ast.Assert) for node in ast.walk(tree))
        if hidden and asserts and not stored & needed:
            yield cell
        else:
            needed -= stored
            needed |= {node.id for node in names if isinstance(node.ctx, ast.Load)}


def _lines(lines: list[str]) -> Iterator[str]:
    """Yield the lines that remain."""
    depth, answer, closing = 0, False, ""
    for i, line in enumerate(lines):
        fence = FENCE.match(line)
        is_code = bool(closing or fence)
        if closing:
            closing = "" if line.strip() == closing else closing
        elif fence:
            closing = fence[1]
        elif not depth and FOLDED.match(line):
            depth, answer = 1, bool(ANSWER.match(lines[i + 1]))
            yield from [OWN_ANSWER, ""] if answer else [line, lines[i + 1], "", OWN_COMPARISON, ""]
            continue
        elif depth and line.startswith(":::"):
            depth += 1 if line.strip(": ") else -1
            if not (depth or answer):
                yield line
            continue
        if not depth or (is_code and not answer):
            yield line
