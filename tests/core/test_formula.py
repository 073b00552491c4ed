"""Formulas: registered by name, with data sheets, and otherwise the functions that they are."""

import inspect

import pytest

from mlsysim.core import formulas
from mlsysim.core.docstring import read_docstring
from mlsysim.core.errors import MLSysError
from mlsysim.core.formula import FORMULAS, formula, formula_of
from mlsysim.core.formulas import mean_context
from mlsysim.core.provenance import cited_works


def test_every_formula_is_exported():
    assert sorted(FORMULAS) == sorted(formulas.__all__)
    for name in formulas.__all__:
        assert getattr(formulas, name) is FORMULAS[name].function


def test_a_formula_stays_the_function_that_it_is():
    assert mean_context(2048, output_len=4) == 2050
    assert list(inspect.signature(mean_context).parameters) == ["seq_len", "output_len"]
    assert formula_of(mean_context.__code__) is FORMULAS["mean_context"]
    assert formula_of(test_names_are_unique.__code__) is None


def test_names_are_unique():
    with pytest.raises(ValueError, match="mean_context"):

        @formula
        def mean_context(sequences):
            return sequences


def test_data_sheet_of_a_formula():
    manual = FORMULAS["all_gather_time"].documentation
    assert manual.summary.startswith("Time of a ring all-gather")
    assert manual.equation == r"t = \frac{n-1}{n}\,\frac{S}{B} + (n-1)\,\alpha"
    assert manual.parameters["bandwidth"].latex == "B"
    assert manual.parameters["bandwidth"].unit == "byte/s"
    assert manual.parameters["bandwidth"].text.startswith("bandwidth of a rank")
    assert manual.returns.unit == "s"
    assert manual.references.startswith("@thakur2005")
    assert FORMULAS["all_gather_time"].works == ("thakur2005", "mpich")


def test_a_docstring_with_less_in_it():
    def bare(x):
        """Bare.

        Parameters
        ----------
        x : [byte/s]
            Some rate.
        y : int
            Not a quantity.
        """

    manual = read_docstring(bare)
    assert manual.summary == "Bare."
    assert manual.equation == manual.references == ""
    assert manual.returns is None
    assert manual.parameters["x"].latex == r"\mathrm{x}"
    assert "y" not in manual.parameters
    with pytest.raises(MLSysError, match="no docstring"):
        read_docstring(lambda: None)


def test_a_sheet_has_equation_symbols_and_source():
    for item in FORMULAS.values():
        text = item.to_markdown()
        assert text == item._repr_markdown_(), item
        assert f"$$ {item.documentation.equation} $$" in text, item
        assert "*Source:* " in text, item
        rows = [line for line in text.splitlines() if line.startswith("| $")]
        assert len(rows) == len(item.signature.parameters) + 1, item
        assert "*result*" in rows[-1], item
        assert all(row.count("|") == 5 for row in rows), item


def test_works_are_gathered_over_formulas():
    chosen = [FORMULAS["ridge_point"], FORMULAS["memory_time"]]
    assert cited_works(chosen) == {"williams2009": ["ridge_point", "memory_time"]}


def units_and_names(letter):
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
