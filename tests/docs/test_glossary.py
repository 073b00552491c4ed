"""The glossary knows every name of the interface, and nothing that is gone."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Any

import mlsysim
from mlsysim.core import formulas  # noqa: F401 - fills the registry of formulas
from mlsysim.core.fields import Record
from mlsysim.core.formula import FORMULAS
from mlsysim.core.result import Result
from mlsysim.core.units import unit
from mlsysim.solvers.base import Solver
from tests.conftest import ROOT

PAGE = "docs/concepts/glossary.qmd"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
TERM = re.compile(r"^([^#\n].*\]\{.+\})\n\n:   ((?:.+\n?)+)", re.MULTILINE)
ANCHOR = re.compile(r"\[([^\]]+)\]\{#([\w-]+)\}")
UNIT = re.compile(r"\[\\\[(.+?)\\\]\]\{\.unit\}")


def terms() -> dict[str, tuple[str, str]]:
    """Names in code, each with the unit and the text of its entry."""
    found = {}
    for head, text in TERM.findall(TEXT):
        given = UNIT.search(head)
        for words, _ in ANCHOR.findall(head):
            if words.startswith("`"):
                found[words.strip("`")] = (given[1] if given else "", text)
    return found


TERMS = terms()


def below(kind: type) -> Iterator[type]:
    for child in kind.__subclasses__():
        if child.__module__.startswith("mlsysim."):
            yield child
            yield from below(child)


# Loads every module that defines a solver, a result or a scorecard.
PUBLIC = {name: getattr(mlsysim, name) for name in mlsysim.__all__}


def parameters() -> list[tuple[str, str]]:
    functions: list[tuple[str, Any]] = [(kind.__name__, kind.solve) for kind in below(Solver)]
    functions += [item for item in PUBLIC.items() if inspect.isfunction(item[1])]
    return [
        (owner, name)
        for owner, function in functions
        for name in inspect.signature(function).parameters
    ]


def fields(base: type) -> list[tuple[str, dataclasses.Field[Any]]]:
    return [(kind.__name__, item) for kind in below(base) for item in dataclasses.fields(kind)]


def public_fields() -> list[tuple[str, dataclasses.Field[Any]]]:
    """Fields of the records that the package exports: rows, scenarios, comparisons and so on."""
    return [
        (name, item)
        for name, kind in PUBLIC.items()
        if inspect.isclass(kind) and dataclasses.is_dataclass(kind)
        for item in dataclasses.fields(kind)
        if not item.name.startswith("_")
    ]


def test_every_parameter_is_explained() -> None:
    missing = {f"`{name}` of {owner}" for owner, name in parameters() if name not in TERMS}
    assert not missing, f"add entries to {PAGE}"


def unexplained(found: list[tuple[str, dataclasses.Field[Any], str | None]]) -> Iterator[str]:
    """Fields without an entry, and those whose entry has a unit of another dimension."""
    for owner, item, declared in found:
        if item.name not in TERMS:
            yield f"{PAGE} lacks `{item.name}`, a field of {owner}: add an entry"
        elif declared is not None:
            written, _ = TERMS[item.name]
            if unit(written).dimensionality != unit(declared).dimensionality:
                yield f"`{item.name}` is in {written} on {PAGE}, and in {declared} in {owner}"


def test_every_result_field_is_explained_with_its_unit() -> None:
    """A field of a result that declares no unit is a number without one."""
    found = [(owner, item, item.metadata.get("unit", "")) for owner, item in fields(Result)]
    assert not list(unexplained(found))


def test_every_public_field_is_explained_with_its_unit() -> None:
    found = [(owner, item, item.metadata.get("unit")) for owner, item in public_fields()]
    assert not list(unexplained(found))


def test_anchors_are_the_names_and_occur_once() -> None:
    anchors = ANCHOR.findall(TEXT)
    assert len({anchor for _, anchor in anchors}) == len(anchors)
    for words, anchor in anchors:
        if words.startswith("`"):
            assert anchor == words.strip("`").replace("_", "-")


def test_no_name_is_explained_that_is_gone() -> None:
    known = {name for _, name in parameters()} | {"valid"}
    known |= {item.name for _, item in [*fields(Result), *fields(Record), *public_fields()]}
    assert sorted(set(TERMS) - known) == []


def test_formulas_that_entries_link_exist() -> None:
    linked = re.findall(r"foundations\.qmd#(\w+)", TEXT)
    assert sorted(set(linked) - set(FORMULAS)) == []


def test_entries_are_short() -> None:
    for head, text in TERM.findall(TEXT):
        definition = text.split("Formula: ")[0]
        sentences = re.findall(r"[.?](?:\s|$)", definition)
        assert len(sentences) <= 3, f"{head}: {len(sentences)} sentences"
