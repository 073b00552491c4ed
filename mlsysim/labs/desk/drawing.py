"""Draws a lab's blocks with marimo."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any, Literal

from mlsysim.labs.blocks import Block
from mlsysim.labs.desk.plot import plot

__all__ = ["draw", "html"]

_SIGNS = {"good": "✓ ", "warn": "! ", "bad": "✗ "}
_KINDS: dict[str, Literal["danger", "warn", "info"]] = {
    "bad": "danger",
    "warn": "warn",
    "info": "info",
}

Elements = Mapping[str, Any]


def draw(answer: Mapping[str, Any], elements: Elements) -> Any:
    """Return everything that a view shows.

    Parameters
    ----------
    answer
        What a lab's `view` returned.
    elements
        marimo's elements by the name of the control.
    """
    import marimo as mo

    title = html(f"<h1>{escape(answer['title'])}</h1>")
    drawn = [_KIND[block["type"]](block, elements) for block in answer["blocks"]]
    return mo.vstack([title, *drawn, _status(answer["status"])], gap=1.2)


def html(text: str) -> Any:
    """Return HTML in the style of marimo's own text, with its headings, lists and tables."""
    import marimo as mo

    return mo.Html(f'<div class="markdown prose dark:prose-invert max-w-none">{text}</div>')


def _paragraphs(texts: list[str]) -> str:
    return "".join(f"<p>{escape(words)}</p>" for words in texts)


def _heading(block: Block, _: Elements) -> Any:
    level = int(block["level"])
    return html(f"<h{level}>{escape(block['text'])}</h{level}>")


def _text(block: Block, _: Elements) -> Any:
    return html(_paragraphs(block["paragraphs"]))


def _message(block: Block, _: Elements) -> Any:
    import marimo as mo

    sender = f"<p>From: <strong>{escape(block['from'])}</strong></p>"
    return mo.callout(html(sender + _paragraphs(block["paragraphs"])), kind="neutral")


def _locked(block: Block, _: Elements) -> Any:
    import marimo as mo

    return mo.callout(html(_paragraphs([block["text"]])), kind="neutral")


def _question(block: Block, elements: Elements) -> Any:
    asked = _answered(block) if block["locked"] else elements[block["id"]]
    return _judged(asked, block, block["correction"])


def _estimate(block: Block, elements: Elements) -> Any:
    import marimo as mo

    if block["locked"]:
        given = f"{block['selected']:,g} {block['unit']}"
        asked = html(
            f"<p>{escape(block['prompt'])}</p>"
            f"<p>{escape(given)} <strong>(your answer, locked)</strong></p>"
        )
    else:
        asked = elements[block["id"]]
    return _judged(mo.vstack([asked, html(_paragraphs([block["tolerance"]]))]), block, None)


def _judged(asked: Any, block: Block, correction: str | None) -> Any:
    import marimo as mo

    if block["verdict"] is None:
        return asked
    right = block["verdict"] == "right"
    said = f"<p><strong>{'✓ Right.' if right else '✗ Not quite.'}</strong></p>"
    said += _paragraphs([block["explanation"]])
    if correction is not None:
        said += "<p><strong>✓ The right answer:</strong></p>" + _paragraphs([correction])
    return mo.vstack([asked, mo.callout(html(said), kind="success" if right else "warn")])


def _answered(block: Block) -> Any:
    """Return a locked question with its options; the answer given and the right one are marked."""
    rows = "".join(
        f"<li>{escape(one['label'])}"
        f"{' <strong>(your answer, locked)</strong>' if one['value'] == block['selected'] else ''}"
        f"{' <strong>(right answer)</strong>' if one['value'] == block['right'] else ''}</li>"
        for one in block["options"]
    )
    return html(f"<p>{escape(block['prompt'])}</p><ul>{rows}</ul>")


def _controls(block: Block, elements: Elements) -> Any:
    import marimo as mo

    return mo.vstack(
        [
            html(f"<p style='opacity: 0.7'>{escape(item['label'])}: not used now</p>")
            if item["disabled"]
            else elements[item["id"]]
            for item in block["items"]
        ]
    )


def _readouts(block: Block, _: Elements) -> Any:
    import marimo as mo

    stats = [
        mo.stat(
            f"{_SIGNS.get(item['tone'], '')}{item['value']} {item['unit']}".strip(),
            label=item["label"],
            caption=item["hint"] or None,
            bordered=True,
        )
        for item in block["items"]
    ]
    return mo.hstack(stats, justify="start", wrap=True)


def _alert(block: Block, _: Elements) -> Any:
    import marimo as mo

    words = f"<p><strong>{escape(block['title'])}</strong></p>{_paragraphs([block['text']])}"
    return mo.callout(html(words), kind=_KINDS[block["tone"]])


def _chart(block: Block, _: Elements) -> Any:
    import marimo as mo

    figure = (
        f"<figure role='img' aria-label='{escape(block['alt'], quote=True)}'>{plot(block)}"
        f"</figure><p>{escape(block['caption'])}</p>"
    )
    numbers = _rows(block["table"]["head"], block["table"]["rows"])
    return mo.vstack([html(figure), mo.accordion({"The numbers of this figure": numbers})])


def _derivation(block: Block, elements: Elements) -> Any:
    import marimo as mo

    steps = "".join(
        f"<li><code>{escape(step['equation_text'])}</code><br>"
        f"<code>= {escape(step['numbers_text'])}</code><br>"
        f"= <strong>{escape(step['value_text'])}</strong><br>"
        f"<small>{escape(step['source'])}</small></li>"
        for step in block["steps"]
    )
    return mo.vstack([elements[block["id"]], html(f"<ol>{steps}</ol>")])


def _table(block: Block, _: Elements) -> Any:
    import marimo as mo

    caption = html(f"<p>{escape(block['caption'])}</p>")
    return mo.vstack([caption, _rows(block["head"], block["rows"])])


def _rows(head: list[str], rows: list[list[str]]) -> Any:
    first = "".join(f"<th scope='col'>{escape(cell)}</th>" for cell in head)
    rest = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return html(f"<table><thead><tr>{first}</tr></thead><tbody>{rest}</tbody></table>")


def _status(items: list[dict[str, str]]) -> Any:
    words = " · ".join(
        f"{escape(item['label'])}: <strong>{escape(item['value'])}</strong>" for item in items
    )
    return html(f"<footer aria-label='Status' data-status><p>{words}</p></footer>")


_KIND: dict[str, Callable[[Block, Elements], Any]] = {
    "heading": _heading,
    "text": _text,
    "message": _message,
    "locked": _locked,
    "question": _question,
    "estimate": _estimate,
    "controls": _controls,
    "readouts": _readouts,
    "alert": _alert,
    "chart": _chart,
    "derivation": _derivation,
    "table": _table,
}
