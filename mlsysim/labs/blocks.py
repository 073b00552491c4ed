"""What a lab shows: blocks of plain data, in reading order, for a face to draw.

Every block has a `type` and an `id` that stays the same from view to view. Numbers in texts are
formatted; only charts hold bare ones.

heading
    `level`, `text`.
text
    `paragraphs`, plain text.
message
    A mail: `from`, `paragraphs`.
question
    `prompt`, `options` of value and label, `selected` or None, `locks` (its first answer is its
    last), `locked` (it is given), `verdict` ("right", "wrong" or None), `explanation` of the answer
    given or None.
locked
    `text`: something follows once a question is answered.
controls
    `items`: sliders with `values`, choices with `options`; each `label`, `value`, `unit`,
    `disabled`.
readouts
    `items` of `label`, `value`, `unit`, `tone` and `hint`.
alert
    A failure state: `tone` ("bad", "warn", "info"), `title`, `text`.
chart
    `caption`, `alt`, `x`, `y`, `series`, `marker`, `rule`, and a `table` of the same numbers.
derivation
    `title`, `open`, and `steps` when open: equation, numbers put in, value and source. The id is
    that of the switch which opens it.
table
    `caption`, `head`, `rows`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mlsysim.core.derivation import Derivation
from mlsysim.labs.controls import Choice, Control, Question, Slider, Switch
from mlsysim.labs.steps import steps

__all__ = [
    "Block",
    "alert",
    "chart",
    "controls",
    "derivation",
    "heading",
    "locked",
    "message",
    "question",
    "readout",
    "readouts",
    "series",
    "table",
    "text",
]

Block = dict[str, Any]


def heading(name: str, level: int, words: str) -> Block:
    """Return a heading."""
    return {"type": "heading", "id": name, "level": level, "text": words}


def text(name: str, *paragraphs: str) -> Block:
    """Return paragraphs."""
    return {"type": "text", "id": name, "paragraphs": list(paragraphs)}


def message(name: str, sender: str, *paragraphs: str) -> Block:
    """Return a mail."""
    return {"type": "message", "id": name, "from": sender, "paragraphs": list(paragraphs)}


def locked(name: str, words: str) -> Block:
    """Return what stands in place of blocks that an answer opens."""
    return {"type": "locked", "id": name, "text": words}


def question(asked: Question, answer: str | None, explanation: str | None) -> Block:
    """Return a question, and what there is to say about the answer given."""
    return {
        "type": "question",
        "id": asked.id,
        "prompt": asked.label,
        "options": _options(asked.options),
        "selected": answer,
        "locks": asked.locks,
        "locked": asked.locks and answer is not None,
        "verdict": asked.verdict(answer),
        "explanation": explanation,
    }


def controls(
    name: str, items: Iterable[Control], state: Mapping[str, Any], disabled: Iterable[str] = ()
) -> Block:
    """Return sliders and choices, as the state has them."""
    off = set(disabled)
    shown = [_control(item, state[item.id]) | {"disabled": item.id in off} for item in items]
    return {"type": "controls", "id": name, "items": shown}


def _control(item: Control, value: Any) -> Block:
    common = {"id": item.id, "label": item.label, "value": value}
    if isinstance(item, Slider):
        return {**common, "kind": "slider", "values": list(item.values), "unit": item.unit}
    if isinstance(item, Choice):
        return {**common, "kind": "choice", "options": _options(item.options), "unit": ""}
    raise TypeError(f"{item.id} is neither slider nor choice")


def _options(options: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"value": value, "label": label} for value, label in options.items()]


def readout(label: str, value: str, unit: str = "", tone: str = "plain", hint: str = "") -> Block:
    """Return one reading of an instrument."""
    return {"label": label, "value": value, "unit": unit, "tone": tone, "hint": hint}


def readouts(name: str, *items: Block) -> Block:
    """Return a row of readings."""
    return {"type": "readouts", "id": name, "items": list(items)}


def alert(name: str, tone: str, title: str, words: str) -> Block:
    """Return a failure state."""
    return {"type": "alert", "id": name, "tone": tone, "title": title, "text": words}


def series(name: str, points: Iterable[tuple[float, float]], tone: str = "plain") -> Block:
    """Return one line of a chart."""
    return {"name": name, "points": [list(point) for point in points], "tone": tone}


def chart(
    name: str,
    *,
    caption: str,
    alt: str,
    x: Block,
    y: Block,
    lines: Sequence[Block],
    marker: Block | None = None,
    rule: Block | None = None,
) -> Block:
    """Return a chart, and the table of its numbers for those who cannot see it."""
    places = sorted({point[0] for line in lines for point in line["points"]})
    values = [{point[0]: point[1] for point in line["points"]} for line in lines]
    rows = [
        [f"{place:,}", *(f"{found[place]:.1f}" if place in found else "–" for found in values)]
        for place in places
    ]
    return {
        "type": "chart",
        "id": name,
        "caption": caption,
        "alt": alt,
        "x": x,
        "y": y,
        "series": list(lines),
        "marker": marker,
        "rule": rule,
        "table": {"head": [x["label"], *(line["name"] for line in lines)], "rows": rows},
    }


def derivation(switch: Switch, is_open: bool, found: Derivation | None) -> Block:
    """Return a derivation; closed, without its steps."""
    return {
        "type": "derivation",
        "id": switch.id,
        "title": switch.label,
        "open": is_open,
        "steps": [] if found is None else steps(found),
    }


def table(name: str, caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Block:
    """Return a table of texts."""
    return {
        "type": "table",
        "id": name,
        "caption": caption,
        "head": list(head),
        "rows": [list(row) for row in rows],
    }
