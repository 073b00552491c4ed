"""Families of models, whose papers print how many parameters each has."""

import pytest

from mlsysim.registry.models import Models


@pytest.mark.parametrize(
    ("size", "printed"),
    [
        ("1B7", 1.7), ("3B6", 3.6), ("7B5", 7.5), ("18B", 18.4), ("39B", 39.1), ("76B", 76.1),
        ("145B", 145.6), ("310B", 310.1), ("530B", 529.6), ("1T", 1008.0),
    ],
)  # fmt: skip
def test_megatron_counts_are_those_of_table_1(size, printed):
    """Equation 2 of the paper: 12 l h^2 (1 + 13 / 12h + (V + s) / 12lh)."""
    model = Models.Megatron[f"GPT_{size}"]
    layers, width = model.layers, model.hidden_dim
    words = (model.vocab_size + model.seq_len) / (12 * layers * width)
    counted = 12 * layers * width**2 * (1 + 13 / (12 * width) + words)
    assert model.si("parameters") == pytest.approx(counted, rel=1e-5)
    assert round(model.si("parameters") / 1e9, 1) == printed


@pytest.mark.parametrize(
    ("size", "printed"),
    [
        ("125M", 125_311_488), ("350M", 355_985_408), ("760M", 760_470_528),
        ("1B", 1_315_950_592), ("3B", 2_651_837_440), ("7B", 6_658_859_008),
        ("13B", 12_853_954_560), ("30B", 29_975_214_080), ("70B", 64_862_437_376),
    ],
)  # fmt: skip
def test_mpt_counts_are_those_of_the_benchmarks(size, printed):
    assert Models.MPT[f"MPT_{size}"].si("parameters") == printed


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("Llama1_7B", 6.7), ("Llama1_13B", 13.0), ("Llama1_33B", 32.5), ("Llama1_65B", 65.2),
        ("Llama2_7B", 6.74), ("Llama2_13B", 13.02), ("Llama3_405B", 405.9), ("Mistral_7B", 7.24),
        ("Qwen3_32B", 32.8), ("Nemotron4_340B", 341),
    ],
)  # fmt: skip
def test_dense_models_match_the_published_total(name, printed):
    assert Models[name].si("parameters") == pytest.approx(printed * 1e9, rel=0.7e-2)
