"""Memory: identities of the literature, exact, and counts that papers print."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from mlsysim.core.formulas import (
    activation_memory_per_layer,
    attention_parameters,
    hidden_state_size,
    interleaving_factor,
    kv_cache_size,
    memory_sum,
    microbatches_in_flight,
    mlp_parameters,
    optimizer_state_size,
    parameters_per_device,
    stage_activation_memory,
    tensor_size,
    tensor_slice,
    transformer_parameters,
)

TABLE = Path(__file__).parents[2] / "validation" / "memory_identities.csv"
ROWS = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))
GIB = 2**30


def rows(group, quantity):
    found = [row for row in ROWS if row["group"] == group and quantity in row["quantity"]]
    return pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in found])


def whole(row, *names):
    return [int(row[name]) for name in names]


def test_the_table_is_whole():
    groups = [row["group"] for row in ROWS]
    assert groups.count("korthikanti_fig1") == 16
    assert groups.count("zero_paper") == 4
    assert all(row["source"] and row["url"].startswith("https://") for row in ROWS)


@rows("korthikanti_fig1", "parameters+gradients+optimizer")
def test_korthikanti_states(row):
    layers, hidden, heads, ffn, tp, pp = whole(row, "layers", "hidden", "heads", "ffn", "tp", "pp")
    block = attention_parameters(hidden, heads, heads, hidden // heads)
    own = parameters_per_device(
        transformer_parameters(layers, block, mlp_parameters(hidden, ffn, 2), 0), tp, pp, 1
    )
    # Figure 1 keeps gradients in 32 bits: 18 bytes for each parameter.
    states = tensor_size(own, 2) + tensor_size(own, 4) + optimizer_state_size(own, 2, 8, 4)
    assert states / GIB == float(row["value"])


@rows("korthikanti_fig1", "activation")
def test_korthikanti_activations(row):
    layers, hidden, heads, seq_len = whole(row, "layers", "hidden", "heads", "seq_len")
    micro, tp, pp, virtual = whole(row, "micro_batch", "tp", "pp", "virtual_stages")
    per_layer = activation_memory_per_layer(
        seq_len,
        micro,
        hidden,
        heads,
        tp,
        tp if row["sequence_parallel"] == "1" else 1,
        1 if row["recompute"] == "none" else 0,
        2,
        1,
    )
    total = stage_activation_memory(
        per_layer,
        layers // pp,
        microbatches_in_flight(pp, 8 * pp),
        interleaving_factor(pp, virtual) if virtual > 1 else 1,
    )
    assert total / GIB == pytest.approx(float(row["value"]), rel=1e-15)


@rows("zero_paper", "model states")
def test_zero_model_states(row):
    parameters, replicas = 7.5e9, int(row["dp"])
    weights, gradients = tensor_size(parameters, 2), tensor_size(parameters, 2)
    optimizer = optimizer_state_size(parameters, 2, 8, 4)
    parts = [optimizer, gradients, weights]
    for index in range(int(row["zero_stage"])):
        parts[index] = tensor_slice(parts[index], replicas)
    # The figure prints one decimal place.
    assert sum(parts) / 1e9 == pytest.approx(float(row["value"]), abs=0.05)


@pytest.mark.parametrize(
    ("parts", "tensor", "shards", "kept", "coefficient"),
    [
        # Korthikanti et al. (2022), Table 2, with a s / h = 96 x 2048 / 12288 = 16
        ("no parallelism", 1, 1, 1, 34 + 5 * 16),
        ("tensor", 8, 1, 1, 10 + 24 / 8 + 5 * 16 / 8),
        ("tensor and sequence", 8, 8, 1, 34 / 8 + 5 * 16 / 8),
        ("tensor, scores again", 8, 1, 0, 10 + 24 / 8),
        ("tensor and sequence, scores again", 8, 8, 0, 34 / 8),
    ],
)
def test_activations_per_layer(parts, tensor, shards, kept, coefficient):
    size = activation_memory_per_layer(2048, 1, 12_288, 96, tensor, shards, kept, 2, 1)
    assert size == coefficient * 2048 * 12_288, parts


def test_full_recomputation_keeps_the_input_of_each_layer():
    assert hidden_state_size(2048, 1, 12_288, 2) == 2 * 2048 * 12_288


def test_sixteen_bytes_for_each_parameter():
    n = 1.0
    mixed = memory_sum(tensor_size(n, 2), tensor_size(n, 2), optimizer_state_size(n, 2, 8, 4), 0)
    assert mixed == 16
    # In 32 bits there is no second copy, and it is sixteen again.
    single = memory_sum(tensor_size(n, 4), tensor_size(n, 4), optimizer_state_size(n, 4, 8, 4), 0)
    assert single == 16
    assert optimizer_state_size(n, 2, 8, 4) == 12
    assert optimizer_state_size(n, 4, 8, 4) == 8


@pytest.mark.parametrize(
    ("layers", "kv_heads", "head_dim", "tokens", "size"),
    [
        # OPT-13B, "800 KB" per token: Kwon et al. (2023), PagedAttention, section 3
        (40, 40, 128, 1, 800 * 1024),
        # Llama 2 70B with eight key-value heads: 320 KiB per token, 1.25 GiB at 4,096 tokens
        (80, 8, 128, 1, 320 * 1024),
        (80, 8, 128, 4096, 1.25 * GIB),
        # GPT-3, whose heads all have keys and values of their own: 4.5 MiB per token
        (96, 96, 128, 1, 4.5 * 2**20),
    ],
)
def test_kv_cache(layers, kv_heads, head_dim, tokens, size):
    assert kv_cache_size(layers, kv_heads, head_dim, tokens, 2) == size


def test_states_divide_by_tensor_and_pipeline_sizes():
    assert parameters_per_device(70e9, 8, 4, 1) == 70e9 / 32
    assert parameters_per_device(70e9, 1, 1, 1) == 70e9
    # Ten layers on four stages: the longest has three of them, not two and a half.
    assert parameters_per_device(70e9, 1, 4, 1.2) == pytest.approx(70e9 * 3 / 10)
