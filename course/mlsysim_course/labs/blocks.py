"""The blocks of a lab: plain data in reading order, for an interface to draw.

Every block has a `type` and an `id` that stays the same from view to view. Numbers in text are
formatted; only charts contain raw numbers.

heading
    `level`, `text`.
text
    `paragraphs`, plain text.
message
    An email: `from`, `paragraphs`.
question
    `prompt`, `options` of value and label, `selected` or None, `locks` (the first answer is final),
    `locked` (it has been given), `verdict` ("right", "wrong" or None), `explanation` of the answer
    given or None. Once locked, `right` is the value of the right answer; if the answer given was
    wrong, `correction` explains the right one. Both are None otherwise.
locked
    `text`: more blocks follow after a question is answered.
controls
    `items`: sliders with `values`, choices with `options`; each `label`, `value`, `unit`,
    `disabled`.
readouts
    `items` of `label`, `value`, `unit`, `tone` and `hint`.
alert
    A failure state: `tone` ("bad", "warn", "info"), `title`, `text`.
chart
    `caption`, `alt`, `x`, `y` with its `unit`, `series`, `marker`, `rule`, and a `table` of the
    same numbers.
derivation
    `title`, `open`, and `steps` when open: equation, substituted numbers, value and source. The id
    is that of the switch that opens it.
table
    `caption`, `head`, `rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from mlsysim.core.derivation import Derivation
from mlsysim_course.controls import Control, Question, Selector, Slider, Toggle

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
    """Return an email."""
    return {"type": "message", "id": name, "from": sender, "paragraphs": list(paragraphs)}


def locked(name: str, words: str) -> Block:
    """Return a placeholder for the blocks that an answer unlocks."""
    return {"type": "locked", "id": name, "text": words}


def question(asked: Question, answer: str | None, explain: Callable[[str], str]) -> Block:
    """Return a question, with the explanation of the answer after it is given.

    Parameters
    ----------
    asked
        The question.
    answer
        The answer given, or None.
    explain
        Returns the explanation of an answer.
    """
    verdict = asked.verdict(answer)
    locked = asked.locks and answer is not None
    return {
        "type": "question",
        "id": asked.id,
        "prompt": asked.label,
        "options": _options(asked.options),
        "selected": answer,
        "locks": asked.locks,
        "locked": locked,
        "verdict": verdict,
        "explanation": None if answer is None else explain(answer),
        "right": asked.right if locked else None,
        "correction": explain(asked.right) if locked and verdict == "wrong" else None,
    }


def controls(
    name: str, items: Iterable[Control], state: Mapping[str, Any], disabled: Iterable[str] = ()
) -> Block:
    """Return sliders and choices with their values in a state."""
    off = set(disabled)
    shown = [_control(item, state[item.id]) | {"disabled": item.id in off} for item in items]
    return {"type": "controls", "id": name, "items": shown}


def _control(item: Control, value: Any) -> Block:
    if not isinstance(item, Slider | Selector):
        raise TypeError(f"{item.id} is neither a slider nor a choice")
    common = {"id": item.id, "label": item.label, "value": value}
    if isinstance(item, Slider):
        return {**common, "kind": "slider", "values": list(item.values), "unit": item.unit}
    return {**common, "kind": "choice", "options": _options(item.options), "unit": ""}


def _options(options: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"value": value, "label": label} for value, label in options.items()]


def readout(label: str, value: str, unit: str = "", tone: str = "plain", hint: str = "") -> Block:
    """Return one readout of an instrument."""
    return {"label": label, "value": value, "unit": unit, "tone": tone, "hint": hint}


def readouts(name: str, *items: Block) -> Block:
    """Return a row of readouts."""
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
    """Return a chart, and a table of its numbers for readers who cannot see it."""
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


def derivation(switch: Toggle, is_open: bool, found: Derivation | None) -> Block:
    """Return a derivation. A closed one has no steps."""
    return {
        "type": "derivation",
        "id": switch.id,
        "title": switch.label,
        "open": is_open,
        "steps": [] if found is None else list(_lines(found)),
    }


def _lines(found: Derivation) -> Iterator[dict[str, str]]:
    """Yield a derivation line by line, each step under the name that an earlier step uses."""
    names: dict[int, str] = {}
    for step in found.steps:
        name = names.get(id(step), step.name)
        for asked, part in step.parents.items():
            names.setdefault(id(part), asked)
        yield {
            "equation_text": f"{name} = {step.equation_text}",
            "numbers_text": step.numbers_text,
            "value_text": step.value_text,
            "source": step.formula.plain_references if step.formula else "",
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
