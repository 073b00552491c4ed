"""Render one page of the reference."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

from mlsysim.core import formulas  # noqa: F401 - fills the registry of formulas
from mlsysim.core.formula import FORMULAS
from tools.api import docstrings
from tools.api.docstrings import definition
from tools.api.shared import write_out
from tools.stubs import MODULES

IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
WIDTH = 88
PRIVATE = {"self", "cls"}
FENCE = "`" * 6
FORMULAS_PACKAGE = "mlsysim.core.formulas."
CATALOGS = {module.__name__ for module in MODULES}


class Renderer:
    """Render layout elements of quartodoc; ``pages`` maps each public name to its page."""

    def __init__(self, root: Path, pages: dict[str, str]) -> None:
        self.root, self.pages = root, pages

    # --- pages -------------------------------------------------------------------------------

    def page(self, page: Any) -> str:
        """A whole page: objects, and modules with their members."""
        several = sum(is_module(doc) for doc in page.contents) > 1
        front = front_matter(page.summary.name, page.summary.desc)
        return join(front, *(self.part(doc, headed=several) for doc in page.contents))

    def part(self, doc: Any, *, headed: bool) -> str:
        """An object, or a module: the only one of a page gives the page its members."""
        if not is_module(doc):
            return self.entry(doc, 2)
        level, about = 2, docstrings.body(doc.obj, self.link)
        if headed:
            title, about = docstrings.topic(doc.obj)
            slug = doc.obj.name.replace("_", "-")
            level, about = 3, join(f"## {title} {{#topic-{slug}}}", docstrings.prose(about))
        return join(about, *(self.entry(member, level) for member in doc.members))

    def entry(self, doc: Any, level: int, prefix: str = "") -> str:
        """An object under a heading of its own, whose id is unique on the page."""
        name = doc.obj.name
        heading = f"{'#' * level} `{name}` {{#{prefix}{name}}}"
        return join(heading, self.details(doc, level, prefix), self.source(doc.obj, prefix))

    def details(self, doc: Any, level: int, prefix: str) -> str:
        """Return the text below the title of an object."""
        kind = doc.obj.kind.value
        if kind == "class":
            return self.class_details(doc, level, f"{prefix}{doc.obj.name}.")
        if kind != "function":
            return self.attribute_details(doc.obj)
        write_out(doc.obj)
        if doc.obj.module.path.startswith(FORMULAS_PACKAGE):
            return join(self.signature(doc.obj), FORMULAS[doc.obj.name].to_markdown())
        return join(self.signature(doc.obj), docstrings.body(doc.obj, self.link))

    def class_details(self, doc: Any, level: int, prefix: str) -> str:
        """Bases, constructor, docstring, fields, properties, then methods and inner classes."""
        obj = doc.obj
        fields: list[Any] = []
        properties: list[Any] = []
        others: list[Any] = []
        for member in doc.members:
            if member.obj.kind.value == "attribute":
                group = properties if "property" in member.obj.labels else fields
                group.append(member.obj)
            else:
                others.append(member)
        attributes = frozenset({"attributes"})
        return join(
            self.constructor(obj),
            self.bases(obj),
            docstrings.body(obj, self.link, without=attributes),
            self.fields(obj, fields),
            self.definitions("Properties", properties),
            *(self.entry(member, level + 1, prefix) for member in others),
        )

    def attribute_details(self, obj: Any) -> str:
        """A module's name for a value, or for something that has a page already."""
        target = str(obj.value or "")
        known = self.pages.get(target.rpartition(".")[2]) if target else None
        other = f"Another name for {self.link(target)}." if known else ""
        return join(other, docstrings.body(obj, self.link))

    # --- parts -------------------------------------------------------------------------------

    def fields(self, obj: Any, documented: list[Any]) -> str:
        """The fields of a record, from its Attributes section and from its body."""
        if obj.module.path in CATALOGS:
            return self.rows(obj)
        is_catalog = any(str(base).endswith("Catalog") for base in obj.bases)
        section = docstrings.documented_fields(obj)
        own = {member.name: member for member in documented}
        lines = []
        for name in dict.fromkeys([*public_fields(obj), *section, *own]):
            item, member = section.get(name), obj.members.get(name)
            annotation = getattr(member, "annotation", None) or getattr(item, "annotation", None)
            kind = docstrings.type_text(annotation, self.link)
            if unit := unit_of(member):
                kind = join_words(kind, docstrings.type_text(f"[{unit}]", self.link))
            text = item.description if item is not None else ""
            if name in own:
                text = own[name].docstring.value
                kind = join_words(kind, source_line(own[name], obj.name) if is_catalog else "")
            lines.append(definition(join_words(f"`{name}`", kind), text))
        return join("**Rows**" if is_catalog else "**Fields**", *lines) if lines else ""

    def rows(self, obj: Any) -> str:
        """The rows of a catalog with their notes, if they are not those of its tiers."""
        catalog = getattr(importlib.import_module(obj.module.path), obj.name)
        if catalog.tiers():
            return ""
        notes = [definition(f"`{name}`", note) for name, note in catalog.notes().items()]
        return join("**Rows**", *notes)

    def definitions(self, title: str, members: list[Any]) -> str:
        """Documented attributes as a definition list."""
        lines = [
            definition(
                join_words(f"`{member.name}`", docstrings.type_text(member.annotation, self.link)),
                docstrings.body(member, self.link),
            )
            for member in members
        ]
        return join(f"**{title}**", *lines) if lines else ""

    def bases(self, obj: Any) -> str:
        """The classes that a class extends, where they have pages."""
        names = [str(base).partition("[")[0] for base in obj.bases]
        known = [self.link(name) for name in names if name in self.pages]
        return f"Extends {', '.join(known)}." if known else ""

    def constructor(self, obj: Any) -> str:
        """Return the constructor: its ``__init__``, or the fields of a record."""
        if any("Result" in str(base) for base in obj.bases):
            return ""  # only solvers make results
        init = obj.members.get("__init__")
        if init is not None and init.is_function:
            return self.signature(init, name=obj.name)
        fields = [field_argument(obj.members[name]) for name in public_fields(obj)]
        return code(layout_call(obj.name, ["*", *fields])) if fields else ""

    def signature(self, obj: Any, *, name: str = "") -> str:
        """A call with types and defaults, on one line where it fits."""
        arguments = signature_arguments(obj)
        returns = f" -> {obj.returns}" if obj.returns is not None and not name else ""
        return code(layout_call(name or obj.name, arguments, returns))

    def source(self, obj: Any, prefix: str) -> str:
        """The source of an object in a fold; of a member, a link into the fold of its class."""
        if prefix:
            return source_line(obj, prefix.split(".")[0])
        path, first, last = (
            obj.filepath.relative_to(self.root).as_posix(),
            obj.lineno,
            obj.endlineno,
        )
        lines = dict(enumerate(obj.lines_collection[obj.filepath][first - 1 : last], first))
        attributes = f'{{#{obj.name}-source .python startFrom="{first}"}}'
        if obj.kind.value == "function":
            # Its docstring is what the page has just shown, and often longer than its code.
            attributes = f"{{#{obj.name}-source .python}}"
            for line in range(obj.docstring.lineno, obj.docstring.endlineno + 1):
                del lines[line]
        where = f"line {first}" if first == last else f"lines {first}\N{EN DASH}{last}"
        summary = f"<summary>Code: <code>{path}</code>, {where}</summary>"
        text = dedent("\n".join(lines.values())).rstrip()
        block = f"{FENCE}{attributes}\n{text}\n{FENCE}"
        return join(raw(f'<details class="code-fold source">{summary}'), block, raw("</details>"))

    def link(self, text: str) -> str:
        """A type as code, each public name in it a link to its page."""
        pieces, last = [], 0
        for match in IDENTIFIER.finditer(text):
            page = self.pages.get(match[0])
            if page is not None:
                pieces += [as_code(text[last : match.start()]), f"[`{match[0]}`]({page})"]
                last = match.end()
        return "".join([*pieces, as_code(text[last:])])


def members(page: Any) -> Iterator[Any]:
    """The objects of a page, a module's one by one."""
    for doc in page.contents:
        yield from doc.members if is_module(doc) else [doc]


def source_line(obj: Any, name: str) -> str:
    """A link to the line where a member begins, in the fold of the object that it belongs to."""
    return f"[[source]](#{name}-source-{obj.lineno}){{.source-link}}"


def is_module(doc: Any) -> bool:
    """Whether a layout element documents a whole module."""
    return bool(doc.obj.kind.value == "module")


def unit_of(member: Any) -> str:
    """The unit that a record declares, as in ``quantity("GB/s")`` or ``constant("us")``."""
    declared = str(getattr(member, "value", "") or "")
    found = re.match(r"(?:quantity|constant)\(\s*[\"']([^\"']+)", declared)
    return found[1] if found else ""


def field_argument(member: Any) -> str:
    """A record's field as an argument of its constructor."""
    value = str(member.value or "")
    declared = re.match(r"\w+\(", value)
    default = re.search(r"\bdefault=([^,)]+)", value)
    if declared and default is None:
        value = "..." if "default_factory" in value else ""
    elif declared and default is not None:
        value = default[1]
    return f"{member.name}: {member.annotation}" + (f" = {value}" if value else "")


def public_fields(obj: Any) -> list[str]:
    """Names of the annotated, public fields of a record, in order."""
    return [
        name
        for name, member in obj.members.items()
        if member.kind.value == "attribute"
        and not name.startswith("_")
        and member.annotation is not None
        and "instance-attribute" in member.labels  # neither a property nor a ClassVar
    ]


def signature_arguments(obj: Any) -> list[str]:
    """The parameters of a function, with the bare ``*`` and ``/`` where they belong."""
    arguments: list[str] = []
    previous = ""
    stars = {"variadic positional": "*", "variadic keyword": "**"}
    for parameter in obj.parameters:
        kind = parameter.kind.value
        if parameter.name in PRIVATE and not arguments:
            continue
        if previous == "positional-only" and kind != previous:
            arguments.append("/")
        if kind == "keyword-only" and previous not in {kind, "variadic positional"}:
            arguments.append("*")
        text = stars.get(kind, "") + parameter.name
        if parameter.annotation is not None:
            text += f": {docstrings.plain_type(str(parameter.annotation))}"
        if parameter.default is not None and kind not in stars:
            text += f" = {parameter.default}" if ":" in text else f"={parameter.default}"
        arguments.append(text)
        previous = kind
    return arguments


def layout_call(name: str, arguments: list[str], returns: str = "") -> str:
    """A call on one line, or with one argument a line when that is too wide."""
    line = f"{name}({', '.join(arguments)}){returns}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {argument}," for argument in arguments), f"){returns}"])


def front_matter(title: str, description: str = "") -> str:
    """The head of a page; renderers show the description below the title."""
    lines = [f"title: {json.dumps(title)}"]
    if description:
        lines.append(f"description: {json.dumps(description)}")
    return "\n".join(["---", *lines, "---"])


def code(text: str) -> str:
    """Return a block of Python that is shown but not run."""
    return f"```python\n{text}\n```"


def raw(html: str) -> str:
    """HTML as it is."""
    return f"```{{=html}}\n{html}\n```"


def as_code(text: str) -> str:
    """Inline code with the blanks at its ends outside of it."""
    bare = text.strip()
    return text.replace(bare, f"`{bare}`") if bare else text


def join(*parts: str) -> str:
    """Blocks of Markdown, a blank line between them."""
    return "\n\n".join(part for part in parts if part)


def join_words(*parts: str) -> str:
    """Words on one line."""
    return " ".join(part for part in parts if part)
