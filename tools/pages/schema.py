"""Check YAML against the allow-list in schema.yml, and name the line of a mistake."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from tools.pages.faults import Fault


@cache
def _validator(kind: str) -> Any:
    schema = yaml.safe_load(Path(__file__).with_name("schema.yml").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator({**schema, "$ref": f"#/$defs/{kind}"})


def check(kind: str, text: str, value: Any, path: Path, first: int = 1) -> Iterator[Fault]:
    """Yield a fault for each key or value that ``kind`` does not allow."""
    for error in _validator(kind).iter_errors(value):
        steps, message = list(error.absolute_path), error.message
        if error.validator == "additionalProperties":
            known = error.schema["properties"]
            steps.append(next(key for key in error.instance if key not in known))
            message = f"unknown {kind} key {steps[-1]!r} (allowed: {', '.join(sorted(known))})"
        yield Fault(path, first + _line(text, steps), message)


def _line(text: str, steps: list[str | int]) -> int:
    """Return the line within ``text`` of the value at ``steps``."""
    node, line = yaml.compose(text), 0
    for step in steps:
        if isinstance(node, yaml.MappingNode):
            key, node = next(pair for pair in node.value if pair[0].value == str(step))
            line = key.start_mark.line
        elif isinstance(node, yaml.SequenceNode):
            node = node.value[int(step)]
            line = node.start_mark.line
    return line
