"""Parameters and operations of transformers, against counts that papers print."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim.core.formulas import (
    attention_parameters,
    attention_score_flops,
    embedding_parameters,
    flops_utilization,
    forward_flops,
    logit_flops,
    matrix_flops,
    mlp_parameters,
    recomputed_flops,
    training_flops,
    transformer_parameters,
)


def parameters(layers, hidden, heads, kv_heads, head_dim, ffn, matrices, vocab, tables):
    return transformer_parameters(
        layers,
        attention_parameters(hidden, heads, kv_heads, head_dim),
        mlp_parameters(hidden, ffn, matrices),
        embedding_parameters(vocab, hidden, tables),
    )


def test_gpt2_small():
    # 124,439,808 in all, of which 786,432 are positions and 121,344 biases and norms.
    counted = parameters(12, 768, 12, 12, 64, 3072, 2, 50_257, 1)
    assert counted == 124_439_808 - 786_432 - 121_344


def test_llama2_70b():
    # 68,976,648,192 in all; the rest are 161 norms of 8,192 weights.
    counted = parameters(80, 8192, 64, 8, 128, 28_672, 3, 32_000, 2)
    assert counted == 68_976_648_192 - 161 * 8192


def test_a_gpt_block_has_twelve_h_squared_parameters():
    for hidden, heads in ((768, 12), (12_288, 96)):
        block = attention_parameters(hidden, heads, heads, hidden // heads)
        assert block + mlp_parameters(hidden, 4 * hidden, 2) == 12 * hidden**2


def flops_per_token(layers, hidden, heads, seq_len, vocab, attended=1.0):
    head_dim = hidden // heads
    block = attention_parameters(hidden, heads, heads, head_dim)
    matrix = matrix_flops(layers, block, mlp_parameters(hidden, 4 * hidden, 2), 2)
    score = attention_score_flops(layers, heads, head_dim, seq_len, attended, 2)
    return matrix, score, logit_flops(vocab, hidden, 2)


def test_gpt3_takes_six_operations_for_each_parameter():
    # Brown et al. (2020), Table D.1: 174,600 M parameters, 300 B tokens, 3.14e23 operations,
    # attention scores left out.
    matrix, _, logit = flops_per_token(96, 12_288, 96, 2048, 50_257)
    per_token = training_flops(forward_flops(1, matrix, 0, logit))
    assert per_token == pytest.approx(6 * 174.6e9, rel=3e-4)
    assert 300e9 * per_token == pytest.approx(3.14e23, rel=1e-3)


@given(
    st.integers(1, 128),
    st.integers(1, 200).map(lambda k: 128 * k),
    st.integers(1, 2**17),
    st.integers(1, 2**17),
    st.integers(1, 4096),
)
def test_megatrons_operations_of_a_step(layers, hidden, seq_len, vocab, batch):
    """96 B s l h^2 (1 + s/6h + V/16lh): Narayanan et al. (2021), Eq. 3.

    Four passes for the layers, one of them recomputation, three for the logits; nothing masked.
    """
    matrix, score, logit = flops_per_token(layers, hidden, hidden // 128, seq_len, vocab)
    tokens = batch * seq_len
    total = training_flops(forward_flops(tokens, matrix, score, logit)) + recomputed_flops(
        tokens, matrix, score, 1, 1
    )
    ratio = 1 + seq_len / (6 * hidden) + vocab / (16 * layers * hidden)
    assert total == pytest.approx(96 * batch * seq_len * layers * hidden**2 * ratio, rel=1e-9)


def test_palms_model_flops_utilization():
    # Chowdhery et al. (2022), section 4.1: 238.3 thousand tokens a second on 6,144 TPU v4 of
    # 275 TFLOP/s is 46.2 % with attention, 45.7 % without. Their count is 6 N + 12 L H Q T.
    matrices = 6 * 540.35e9
    score = attention_score_flops(118, 48, 256, 2048, 1.0, 2)
    with_attention = flops_utilization(238.3e3 * (matrices + 3 * score), 1.0, 275e12, 6144)
    assert 100 * with_attention == pytest.approx(46.2, abs=0.05)
    without = flops_utilization(238.3e3 * matrices, 1.0, 275e12, 6144)
    assert 100 * without == pytest.approx(45.7, abs=0.05)


def test_attention_scores_as_palm_counts_them():
    # 12 L H Q T for a training token: three passes of 4 L H Q T.
    assert 3 * attention_score_flops(118, 48, 256, 2048, 1.0, 2) == 12 * 118 * 48 * 256 * 2048
    # A causal kernel does half of it.
    half = attention_score_flops(118, 48, 256, 2048, 0.5, 2)
    assert half == 2 * 118 * 48 * 256 * 2048


def test_recomputation():
    assert recomputed_flops(10, 5.0, 3.0, 0, 0) == 0
    assert recomputed_flops(10, 5.0, 3.0, 0, 1) == 30
    assert recomputed_flops(10, 5.0, 3.0, 1, 1) == 80
