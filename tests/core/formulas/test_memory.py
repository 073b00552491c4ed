"""Memory: identities of the literature, exact, and counts that papers print."""

import pytest

from mlsysim.core.formulas import (
    activation_memory_per_layer,
    backward_width,
    chunks_in_flight,
    copied_context_width,
    head_working_memory,
    hidden_state_size,
    kept_attention_width,
    kept_expert_width,
    kv_cache_size,
    optimizer_state_size,
    visiting_memory,
)

GIB = 2**30


def gpt_layer(tokens, seq_len, hidden, heads, tensor, shards, kept):
    """A layer of the paper: no gate, a head's worth of keys for each of queries, dropout."""
    attention = kept_attention_width(heads, heads, hidden // heads)
    copied = copied_context_width(hidden, 1)
    block = 2 * 4 * hidden
    return activation_memory_per_layer(
        tokens,
        seq_len,
        hidden,
        heads,
        attention,
        copied,
        block,
        tensor,
        shards,
        kept,
        0,
        1,
        4,
        2,
        1,
        2,
    )


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
    size = gpt_layer(2048, 2048, 12_288, 96, tensor, shards, kept)
    assert size == coefficient * 2048 * 12_288, parts


def test_a_llama_block_keeps_other_things():
    """Llama 3 70B: gate and up of 28,672, eight of 64 key heads, no dropout, fused attention."""
    attention, block = kept_attention_width(64, 8, 128), 3 * 28_672
    assert attention == 2 * 8192 + 2 * 1024
    size = activation_memory_per_layer(
        4096, 4096, 8192, 64, attention, 0, block, 1, 1, 1, 1, 0, 4, 2, 1, 2
    )
    assert size == 4096 * (4 * 2 * 8192 + 2 * (attention + 3 * 28_672) + 4 * 64)
    # Devices that share the sequence keep the attention's output twice.
    assert copied_context_width(8192, 1) == 0
    assert copied_context_width(8192, 8) == 8192


def test_experts_keep_copies_of_their_tokens():
    """DeepSeek-V3: eight experts of 2,048 and a shared one."""
    assert kept_expert_width(8, 7168, 2048, 2048, 3) == 8 * (7168 + 3 * 2048) + 3 * 2048
    assert backward_width(8, 7168, 2048, 3) == 8 * (2 * 2048 + 7168)


@pytest.mark.parametrize(
    ("stages", "chunks", "held"), [(1, 1, 1), (8, 1, 1), (4, 2, 2.5), (8, 3, 17 / 3)]
)
def test_the_last_stage_holds_few_microbatches(stages, chunks, held):
    assert chunks_in_flight(stages, 64, chunks, stages - 1) / chunks == held
    assert chunks_in_flight(stages, 1, chunks, stages - 1) / chunks == 1


def test_what_comes_and_goes_in_a_backward_pass():
    # Logits of Llama 3 for 4,096 tokens: about 1 GB in 16 bits
    logits = head_working_memory(4096, 8192, 128_256, 1, 1, 2, 0)
    assert logits == 2 * 4096 * (128_256 + 4 * 8192)
    # torchtitan, pull request 996: Llama 3 8B at 8,192 tokens needs 49.58 GiB, and 42.26 when the
    # loss is cut into eight chunks, so that an eighth of its copies is there at once.
    whole, chunk = (head_working_memory(8192, 4096, 128_256, 1, 1, 2, n) for n in (8, 1))
    assert (whole - chunk) / GIB == pytest.approx(49.58 - 42.26, rel=0.07)


def test_keys_and_values_that_visit():
    # Llama 3 8B, 8,192 tokens per device: 2 x 8 x 128 x 2 x 8192 = 67 MB, and as much of gradients
    own = kv_cache_size(1, 8, 128, 8192, 2)
    assert own == 2 * 8 * 128 * 8192 * 2
    assert visiting_memory(own, 1, 0) == visiting_memory(own, 1, 1) == 0
    assert visiting_memory(own, 16, 0) == 2 * own
    assert visiting_memory(own, 16, 1) == 2 * 15 * own


def test_full_recomputation_keeps_the_input_of_each_layer():
    assert hidden_state_size(2048, 1, 12_288, 2) == 2 * 2048 * 12_288


def test_sixteen_bytes_for_each_parameter():
    n = 1.0
    assert 2 * n + 2 * n + optimizer_state_size(n, 2, 8, 4) == 16
    # In 32 bits there is no second copy, and it is sixteen again.
    assert 4 * n + 4 * n + optimizer_state_size(n, 4, 8, 4) == 16
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
