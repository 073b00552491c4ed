"""Letters that once meant several things mean one, in every formula."""

from __future__ import annotations

import pytest

from mlsysim.core import formulas  # noqa: F401 - fills the registry of formulas
from mlsysim.core.formula import FORMULAS


def units_and_names(letter: str) -> set[tuple[str, str]]:
    return {
        (symbol.unit, symbol.name)
        for formula in FORMULAS.values()
        for symbol in (*formula.documentation.parameters.values(), formula.documentation.returns)
        if symbol.latex == letter
    }


@pytest.mark.parametrize(
    ("letter", "names"),
    [
        ("m", ["microbatch_count"]),
        ("S", ["message_size"]),
        ("d", []),
        ("d_h", ["head_dim"]),
        (r"\epsilon", []),
        (r"\mathrm{PUE}", ["pue"]),
        (r"\mathrm{TP}", ["tp_size"]),
        (r"\mathrm{DP}", ["dp_size", "replicas"]),
    ],
    ids=str,
)
def test_a_letter_means_one_thing(letter, names):
    assert sorted({name for _, name in units_and_names(letter)}) == names


def test_t_is_a_time():
    assert {unit for unit, _ in units_and_names("t")} == {"s"}
