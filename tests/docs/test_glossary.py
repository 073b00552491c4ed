"""The glossary defines the words of the tutorials, and the field reference every name."""

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
from tools.api.fields import fields as explained

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


EXPLAINED = explained()


def test_every_name_of_the_interface_has_a_meaning() -> None:
    """From its docstring; the field reference is made of them."""
    assert [f"{item.owner}.{item.name}" for item in EXPLAINED if not item.text] == []
    names = {item.name for item in EXPLAINED}
    assert {name for _, name in parameters()} <= names
    assert {item.name for _, item in public_fields()} <= names


def test_the_reference_has_the_declared_units() -> None:
    units = {(item.owner, item.name): item.unit for item in EXPLAINED}
    declared = [(owner, item) for owner, item in public_fields() if item.metadata.get("unit")]
    assert len(declared) > 100
    for owner, item in declared:
        assert units[owner, item.name] == item.metadata["unit"]


def wrong_units(found: list[tuple[str, dataclasses.Field[Any], str | None]]) -> Iterator[str]:
    """Fields whose glossary entry has a unit of another dimension."""
    for owner, item, declared in found:
        if item.name in TERMS and declared is not None:
            written, _ = TERMS[item.name]
            if unit(written).dimensionality != unit(declared).dimensionality:
                yield f"`{item.name}` is in {written} on {PAGE}, and in {declared} in {owner}"


def test_result_fields_have_their_unit() -> None:
    """A field of a result that declares no unit is a number without one."""
    found = [(owner, item, item.metadata.get("unit", "")) for owner, item in fields(Result)]
    assert not list(wrong_units(found))


def test_public_fields_have_their_unit() -> None:
    found = [(owner, item, item.metadata.get("unit")) for owner, item in public_fields()]
    assert not list(wrong_units(found))


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
