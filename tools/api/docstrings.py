"""Convert a parsed numpydoc docstring to Markdown that both renderers read the same way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from textwrap import indent
from typing import Any

Linker = Callable[[str], str]
"""Turns the text of a type into Markdown, with links where a name has a page."""

UNIT = re.compile(r"^\[.*\]$", flags=re.DOTALL)
BARE_URL = re.compile(r"(?<![<(\[`\"])\bhttps?://[^\s<>)\]]*[^\s<>)\].,;:]")
LONE_COLONS = re.compile(r"^::\n\n|(?<=\w)::$", flags=re.MULTILINE)

TITLES = {
    "parameters": "Parameters",
    "other parameters": "Other parameters",
    "attributes": "Fields",
    "returns": "Returns",
    "yields": "Yields",
    "raises": "Raises",
    "warns": "Warns",
}


def topic(module: Any) -> tuple[str, str]:
    """Return the topic of a module's docstring, and the rest of the docstring."""
    head, _, rest = module.docstring.value.partition("\n\n")
    title, *after = re.split(r"[:.]\s+|\.$", head, maxsplit=1)
    about = "".join(after)
    return title, "\n\n".join(filter(None, [f"{about[:1].upper()}{about[1:]}", rest]))


def prose(text: str) -> str:
    """Return docstring text as Markdown: addresses become links, and double colons are removed."""

    def one_colon(match: re.Match[str]) -> str:
        return "" if match[0].startswith("::\n") else ":"

    return BARE_URL.sub(r"<\g<0>>", LONE_COLONS.sub(one_colon, text.strip()))


def definition(term: str, body: str) -> str:
    """One entry of a definition list."""
    text = prose(body) or "\N{EM DASH}"
    return f"{term}\n\n:   {indent(text, '    ').lstrip()}"


def type_text(annotation: Any, link: Linker) -> str:
    """A type, or a formula's unit such as ``[byte]``."""
    text = "" if annotation is None else " ".join(plain_type(str(annotation)).split())
    if not text:
        return ""
    # A unit was read as an expression of Python and printed as one.
    unit = text[1:-1].replace(" / ", "/").replace(" * ", "*")
    return rf"[\[{unit}\]]{{.unit}}" if UNIT.match(text) else link(text)


def plain_type(text: str) -> str:
    """The type that ``Annotated[type, kind]`` annotates; any other as it is."""
    if not text.startswith("Annotated["):
        return text
    inside, depth = text.removeprefix("Annotated["), 0
    for place, sign in enumerate(inside):
        depth += (sign in "[(") - (sign in "])")
        if sign == "," and depth == 0:
            return inside[:place]
    return text


def entries(items: Iterable[Any], link: Linker) -> str:
    """Parameters, fields, results or exceptions as a definition list."""
    lines = []
    for item in items:
        name = getattr(item, "name", "") or ""
        kind = type_text(item.annotation, link)
        default = getattr(item, "default", None)
        parts = [f"`{name}`" if name else "", kind]
        term = " ".join(part for part in parts if part) or "Result"
        if default is not None:
            term += f", default `{default}`"
        lines.append(definition(term, item.description))
    return "\n\n".join(lines)


def section(part: Any, link: Linker) -> str:
    """One section of a docstring, its title in bold."""
    kind = part.kind.value
    if kind == "text":
        return prose(part.value)
    if kind == "examples":
        blocks = [
            f"```python\n{text}\n```" if what.value == "examples" else prose(text)
            for what, text in part.value
        ]
        return "\n\n".join(["**Examples**", *blocks])
    if kind == "admonition":
        return f"**{part.title}**\n\n{prose(part.value.contents)}"
    if kind in TITLES:
        return f"**{TITLES[kind]}**\n\n{entries(part.value, link)}"
    raise ValueError(f"docstring section {kind!r} has no rendering; add one to tools/api")


def body(obj: Any, link: Linker, *, without: frozenset[str] = frozenset()) -> str:
    """Return the docstring of an object, except the kinds of sections in ``without``."""
    if obj.docstring is None:
        return ""
    parts = [part for part in obj.docstring.parsed if part.kind.value not in without]
    return "\n\n".join(section(part, link) for part in parts)


def documented_fields(obj: Any) -> dict[str, Any]:
    """The entries of a class's Attributes section, by name."""
    return {} if obj.docstring is None else items(obj.docstring.parsed, "attributes")


def items(sections: Iterable[Any], kind: str) -> dict[str, Any]:
    """The entries of all sections of a kind, by name."""
    return {
        name.strip(): item
        for part in sections
        if part.kind.value == kind
        for item in part.value
        for name in item.name.split(",")  # numpydoc allows "a, b : type"
    }
