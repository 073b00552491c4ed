"""Checks YAML against the allow-list in schema.yml, and names the line of a mistake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from tools.preview.faults import Fault


@cache
def _validator(kind: str) -> Any:
    schema = yaml.safe_load(Path(__file__).with_name("schema.yml").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator({**schema, "$ref": f"#/$defs/{kind}"})


def check(kind: str, text: str, value: Any, path: Path, first: int = 1) -> Iterator[Fault]:
    """Yield a fault for each key that ``kind`` does not know and each value it does not allow."""
    for error in _validator(kind).iter_errors(value):
        if error.validator == "additionalProperties":
            known = error.schema["properties"]
            for key in [key for key in error.instance if key not in known]:
                line = first + _line(text, [*error.absolute_path, key])
                allowed = ", ".join(sorted(known))
                yield Fault(path, line, f"unknown {kind} key {key!r} (allowed: {allowed})")
        else:
            where = ".".join(str(step) for step in error.absolute_path) or kind
            line = first + _line(text, list(error.absolute_path))
            yield Fault(path, line, f"{where}: {error.message}")


def _line(text: str, steps: Sequence[str | int]) -> int:
    """Return how many lines into ``text`` the value at ``steps`` stands."""
    node, line = yaml.compose(text), 0
    for step in steps:
        if isinstance(node, yaml.MappingNode):
            pairs = ((key, value) for key, value in node.value if key.value == str(step))
            key, node = next(pairs, (node, node))
            line = key.start_mark.line
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
            line = node.start_mark.line
    return line
