"""Chooses what of a page goes on slides, and writes them as Markdown for Quarto's revealjs.

Figures, equations, lists, tables and what cells print are shown; running text goes to the speaker's
notes. A prediction is a slide, and its folded answer is the next.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pypandoc

from tools.pages.cache import run
from tools.pages.notebooks import CITED, EQUATION, REFERENCE, numbers_of
from tools.pages.pages import Page
from tools.pages.project import Project, title_of
from tools.preview.compose import Composer

READ = "markdown-auto_identifiers"
LEFT_OUT = ("Exercises", "What to read next", "References", "Read next")
# Headings of boxes that say less than that of their section, and the other way round.
PLAIN = ("Predict", "Compare", "The answer")
BETTER = ("Takeaways",)
# A section whose running text is shown too, because it tells what the page is about.
STORY = "The question"
# An output of more blocks than this, such as a derivation, is for reading.
LONGEST_OUTPUT = 4
MOST_LINES, WORDS_IN_LINE = 14, 13
SHOWN = ("BulletList", "OrderedList", "BlockQuote", "Table", "DefinitionList", "LineBlock")
FRONT = """\
---
title: {title}
subtitle: {subtitle}
lang: en
format:
  revealjs:
    embed-resources: true
    html-math-method: mathml
    theme: default
    css: slides.css
    footer: {footer}
    slide-number: true
    smaller: true
    scrollable: true
    auto-stretch: false
    history: false
---
"""

Block = dict[str, Any]


@dataclass
class Slide:
    """One slide: what it shows, and what the speaker may say."""

    title: str
    kind: str = ""
    shown: list[Block] = field(default_factory=list)
    notes: list[Block] = field(default_factory=list)


class Deck:
    """The slides of one page, and the pictures that they show (as base64 by name)."""

    def __init__(self, page: Page, project: Project) -> None:
        composer = Composer(page, run(page, project.root), project.variables)
        self.page, self.images = page, composer.images
        self.version = project.variables["version"]
        numbers = numbers_of(page)
        text = EQUATION.sub(" $$", composer.markdown)
        text = REFERENCE.sub(lambda found: numbers.get(found[1], found[1]), text)
        document = json.loads(_pandoc(READ, "json", CITED.sub(r"(\1)", text)))
        self._api = document["pandoc-api-version"]
        self.slides = list(_slides(_unlinked(document["blocks"])))

    def markdown(self) -> str:
        """Return the deck as Quarto reads it."""
        front = FRONT.format(
            title=json.dumps(title_of(self.page)),
            subtitle=json.dumps(self.page.meta.get("subtitle", "")),
            footer=json.dumps(f"Computed by mlsysim {self.version}"),
        )
        blocks: list[Block] = []
        for slide in self.slides:
            classes = [slide.kind] if slide.kind else []
            title = {"t": "Str", "c": slide.title}
            blocks.append({"t": "Header", "c": [2, ["", classes, []], [title]]})
            blocks += slide.shown
            if slide.notes:
                blocks.append({"t": "Div", "c": [["", ["notes"], []], slide.notes]})
        document = {"pandoc-api-version": self._api, "meta": {}, "blocks": blocks}
        return front + "\n" + _pandoc("json", READ, json.dumps(document))

    def write(self, folder: Path, name: str) -> Path:
        """Write the deck, with its pictures, for Quarto to render."""
        source = folder / f"{name}.qmd"
        source.write_text(self.markdown(), encoding="utf-8")
        for image, data in self.images.items():
            target = folder / image
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(base64.b64decode(data))
        return source


def _pandoc(source: str, target: str, text: str) -> str:
    command = [pypandoc.get_pandoc_path(), f"--from={source}", f"--to={target}", "--wrap=none"]
    done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", check=True)
    return done.stdout


def _unlinked(value: Any) -> Any:
    """Return the same without links to other pages: a deck has none of them next to it."""
    if isinstance(value, list):
        return [_unlinked(item) for item in value]
    if not isinstance(value, dict):
        return value
    # Without a list of references, a citation is only a name.
    is_link = value.get("t") == "Link" and ":" not in value["c"][2][0]
    if is_link or value.get("t") == "Cite":
        return {"t": "Span", "c": [["", [], []], _unlinked(value["c"][1])]}
    return {key: _unlinked(item) for key, item in value.items()}


def _slides(blocks: list[Block]) -> Iterator[Slide]:
    """Yield the slides of all sections that are taught; without anything to show there is none."""
    title, part = "", list[Block]()
    for block in [*blocks, _header("")]:
        if not (block["t"] == "Header" and block["c"][0] <= 2):
            part.append(block)
            continue
        if title and title not in LEFT_OUT:
            yield from _merged(_section(title, part))
        title, part = _text(block["c"][2]), []


def _header(words: str) -> Block:
    return {"t": "Header", "c": [2, ["", [], []], [{"t": "Str", "c": words}]]}


def _merged(slides: Iterable[Slide]) -> Iterator[Slide]:
    """Split full slides; give the notes of one that shows nothing to the one after it."""
    waiting: list[Block] = []
    for slide in slides:
        waiting += slide.notes
        lines, part = 0.0, Slide(slide.title, slide.kind)
        for block in slide.shown:
            lines += _lines(block)
            # A list, an equation or a table stays with the words before it.
            is_text = block["t"] == "Para" and not _has_equation(block)
            if lines > MOST_LINES and part.shown and is_text:
                yield part
                lines, part = _lines(block), Slide(slide.title, slide.kind)
            part.shown.append(block)
        if part.shown:
            part.notes, waiting = waiting, []
            yield part


def _lines(block: Any) -> float:
    """Return about how many lines a block takes."""
    if isinstance(block, list):
        return sum(_lines(item) for item in block)
    if not isinstance(block, dict):
        return 0
    kind: str = block["t"]
    value: Any = block.get("c")
    if kind in {"Para", "Plain", "Header"}:
        equations = json.dumps(block).count('"DisplayMath"')
        words = value[2] if kind == "Header" else value
        return len(_text(words).split()) // WORDS_IN_LINE + 1.4 + 1.5 * equations
    if kind == "CodeBlock":
        return 0.8 * (str(value[1]).count("\n") + 1) + 0.5
    if kind == "Table":
        rows = sum(len(body[3]) for body in value[4])
        return 1.3 * rows + 3
    return _lines(value) if isinstance(value, list) else 0


def _section(title: str, blocks: list[Block], *, answer: bool = False) -> Iterator[Slide]:
    """Walk the blocks of a section, or with ``answer`` those of a folded answer."""
    slide = Slide(title, "answer" if answer else "")
    for i, block in enumerate(blocks):
        kind = block["t"]
        classes = block["c"][0][1] if kind == "Div" else []
        if kind == "Header":
            yield slide
            title = _text(block["c"][2])
            slide = Slide(title)
        elif any(name.startswith("callout-") for name in classes):
            boxes = list(_callout(title, block))
            if boxes and boxes[0].kind == "predict" and not slide.shown:
                # Without the case that it is about, a question means little.
                boxes[0].shown, slide.notes = slide.notes + boxes[0].shown, []
            yield slide
            yield from boxes
            slide = Slide(title)
        elif kind in {"Div", "Figure"} or (kind == "Para" and _images([block])):
            figures, rest = _parts(block)
            slide.notes += [item for item in rest if _is_long(item)]
            rest = [item for item in rest if not _is_long(item)]
            for figure in figures:
                yield slide
                yield Slide(title, slide.kind, figure)
                slide = Slide(title, slide.kind)
            slide.shown += rest
        elif kind in SHOWN or _has_equation(block):
            slide.shown.append(block)
        elif kind == "RawBlock" or kind == "CodeBlock":
            continue
        elif answer or title == STORY or _leads(block, blocks[i + 1 : i + 2]):
            slide.shown.append(block)
        else:
            slide.notes.append(block)
    yield slide


def _leads(block: Block, after: list[Block]) -> bool:
    """Whether a paragraph belongs to what comes next: an equation, or what its colon announces."""
    if not after:
        return False
    if _has_equation(after[0]):
        return True
    if not _text_of(block).rstrip().endswith(":"):
        return False
    if after[0]["t"] == "Div":
        figures, rest = _parts(after[0])
        return not figures and any(not _is_long(item) for item in rest)
    return after[0]["t"] in SHOWN


def _callout(title: str, block: Block) -> Iterator[Slide]:
    """Yield the slides of a box: a prediction, a folded answer, or a note that is not folded."""
    (_, classes, attributes), blocks = block["c"]
    if blocks and blocks[0]["t"] == "Header":
        heading, blocks = _text(blocks[0]["c"][2]), blocks[1:]
        if title in PLAIN or not (heading in PLAIN or title in BETTER):
            title = heading
    folded = dict(attributes).get("collapse") == "true"
    if "callout-important" in classes:
        yield Slide(title, "predict", blocks)
    elif "callout-tip" in classes and folded:
        yield from _merged(_section(title, blocks, answer=True))
    elif not folded:
        yield Slide(title, "", blocks)


def _parts(block: Block) -> tuple[list[list[Block]], list[Block]]:
    """Split a div into its figures, each with its caption, and what its cells print."""
    figures, rest = list[list[Block]](), list[Block]()
    if block["t"] != "Div":
        return [[_picture(block)]], rest
    (identifier, classes, _), blocks = block["c"]
    if identifier.startswith("fig-"):
        pictures = [_picture(item) for item in blocks if _images([item])]
        pictures += [item for item in blocks if _is_drawing(item)]
        return [[*pictures, *(item for item in blocks[-1:] if item["t"] == "Para")]], rest
    is_table = identifier.startswith("tbl-")
    if "cell-output" in classes:
        return ([[_picture(block)]], rest) if _images([block]) else ([], [block])
    for item in blocks:
        if item["t"] == "Div":
            more, others = _parts(item)
            figures += more
            rest += others
        elif item["t"] in SHOWN or _is_drawing(item) or (is_table and item["t"] == "Para"):
            rest.append(item)
    return figures, rest


def _is_drawing(block: Block) -> bool:
    return block["t"] == "RawBlock" and "<svg" in block["c"][1]


def _is_long(block: Block) -> bool:
    return block["t"] == "Div" and len(block["c"][1]) > LONGEST_OUTPUT


def _images(value: Any) -> list[Any]:
    """Return every image below."""
    if isinstance(value, list):
        return [image for item in value for image in _images(item)]
    if isinstance(value, dict):
        return [value] if value.get("t") == "Image" else _images(value.get("c"))
    return []


def _picture(block: Block) -> Block:
    """Return the first image below as a picture that takes the room that its slide has."""
    (_, _, attributes), _, (source, _) = _images([block])[0]["c"]
    alt = dict(attributes).get("fig-alt", "").replace("&", "&amp;").replace('"', "&quot;")
    return {"t": "RawBlock", "c": ["html", f'<img class="r-stretch" src="{source}" alt="{alt}">']}


def _has_equation(block: Block) -> bool:
    return '"DisplayMath"' in json.dumps(block)


def _text_of(block: Block) -> str:
    return _text(block["c"]) if block["t"] in {"Para", "Plain"} else ""


def _text(value: Any) -> str:
    """Return the plain text of inline elements."""
    if isinstance(value, list):
        return "".join(_text(item) for item in value)
    if not isinstance(value, dict):
        return ""
    kind: str = value["t"]
    content: Any = value.get("c")
    if kind in {"Space", "SoftBreak", "LineBreak"}:
        return " "
    if kind == "Str":
        return str(content)
    if kind in {"Code", "Math"}:
        return str(content[1])
    if kind == "Quoted":
        return f"“{_text(content[1])}”"
    return _text(content[1] if kind in {"Link", "Span"} else content)
