"""Files that state a number for each layer, or leave widths to arithmetic in their own code."""

from __future__ import annotations

import pytest

from mlsysim import Models, TransformerModel
from mlsysim.core.errors import ConfigError

OPENELM_270M = {
    "model_type": "openelm",
    "ffn_dim_divisor": 256,
    "ffn_multipliers": [
        *(0.5, 0.73, 0.97, 1.2, 1.43, 1.67, 1.9, 2.13),
        *(2.37, 2.6, 2.83, 3.07, 3.3, 3.53, 3.77, 4.0),
    ],
    "ffn_with_glu": True,
    "head_dim": 64,
    "max_context_length": 2_048,
    "model_dim": 1_280,
    "normalize_qk_projections": True,
    "num_kv_heads": [3] * 5 + [4] * 7 + [5] * 4,
    "num_query_heads": [12] * 5 + [16] * 7 + [20] * 4,
    "num_transformer_layers": 16,
    "share_input_output_layers": True,
    "vocab_size": 32_000,
}
HUNYUAN_A13B = {
    "model_type": "hunyuan_v1_moe",
    "hidden_size": 4_096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 3_072,
    "num_experts": 64,
    "moe_topk": [8] * 32,
    "num_shared_expert": [1] * 32,
    "vocab_size": 128_167,
    "max_position_embeddings": 32_768,
    "tie_word_embeddings": True,
}
MAMBA_2_8B = {"d_model": 2_560, "n_layer": 64, "vocab_size": 50_277, "ssm_cfg": {}}
MAMBA2_2_7B = MAMBA_2_8B | {"ssm_cfg": {"layer": "Mamba2"}, "pad_vocab_size_multiple": 16}


def nas_block(ffn: float | None, *, attends: bool = True, **more: object) -> dict[str, object]:
    attention = {"n_heads_in_group": 8 if attends else None, "no_op": not attends}
    return {"attention": attention | more, "ffn": {"ffn_mult": ffn, "no_op": ffn is None}}


# Llama-3.3-Nemotron-Super-49B-v1, whose model page counts 49.9B.
SUPER_49B = {
    "model_type": "nemotron-nas",
    "hidden_size": 8_192,
    "num_attention_heads": 64,
    "num_key_value_heads": None,
    "intermediate_size": None,
    "num_hidden_layers": 80,
    "vocab_size": 128_256,
    "max_position_embeddings": 131_072,
    "tie_word_embeddings": False,
    "block_configs": [nas_block(2.625)]
    + [nas_block(5.25)] * 48
    + [nas_block(2.625, attends=False)] * 5
    + [nas_block(3.28125, attends=False)]
    + [nas_block(1.3125, attends=False)] * 10
    + [nas_block(5.25, attends=False)]
    + [nas_block(1.0, attends=False)] * 8
    + [nas_block(0.5, attends=False)] * 6,
}


@pytest.mark.parametrize(
    ("config", "parameters", "cached"),
    [
        # Its paper counts 0.27B; exact by the library of its authors.
        (OPENELM_270M, 271_527_168, 2 * 64 * (5 * 3 + 7 * 4 + 4 * 5)),
        (SUPER_49B, 49_867_145_216, 49 * 2 * 8 * 128),
        # The cards of both packages: 2,768,345,600 and 2,702,599,680.
        (MAMBA_2_8B, 2_768_345_600, 0),
        (MAMBA2_2_7B, 2_702_599_680, 0),
    ],
)
def test_published_counts(config, parameters, cached):
    model = Models.from_config(config)
    assert model.si("parameters") == parameters
    assert model.kv_bytes_per_token("fp8").magnitude == cached


def test_equal_lists_are_one_number():
    model = Models.from_config(HUNYUAN_A13B)
    plain = Models.from_config({**HUNYUAN_A13B, "moe_topk": 8, "num_shared_expert": 1})
    assert model.si("parameters") == plain.si("parameters") == pytest.approx(80.4e9, rel=2e-3)
    assert model.active_parameters == plain.active_parameters
    assert model.source_of("experts_per_token").locator == "moe_topk"


def test_layers_of_their_own():
    model = Models.from_config(OPENELM_270M)
    assert isinstance(model, TransformerModel)
    assert [layers.attention.kv_heads for layers in model.stack][:6] == [3, 3, 3, 3, 3, 4]
    assert model.stack[-1].feed_forward.width == 5_120
    assert model.source_of("stack[0].attention.kv_heads").locator == "num_kv_heads"
    assert "ffn_multipliers" in model.source_of("stack[0].feed_forward.width").locator


@pytest.mark.parametrize(
    ("config", "change"),
    [
        (OPENELM_270M, {"num_kv_heads": [3] * 15}),
        (OPENELM_270M, {"num_kv_heads": [3] * 15 + [0]}),
        (OPENELM_270M, {"num_kv_heads": [3] * 15 + ["4"]}),
        (OPENELM_270M, {"num_kv_heads": [5] * 16}),
        (OPENELM_270M, {"ffn_multipliers": [True] * 16}),
        (OPENELM_270M, {"ffn_multipliers": [1e9] * 16}),
        (OPENELM_270M, {"ffn_with_glu": False}),
        (OPENELM_270M, {"model_dim": [1_280] * 15 + [640]}),
        (OPENELM_270M, {"num_transformer_layers": [16] * 16}),
        (HUNYUAN_A13B, {"moe_topk": [8] * 31}),
        (HUNYUAN_A13B, {"vocab_size": [128_167] * 31 + [1]}),
        (SUPER_49B, {"block_configs": [{}] * 80}),
        (SUPER_49B, {"block_configs": [nas_block(1.0)] * 79}),
        (SUPER_49B, {"block_configs": [nas_block(1.0, replace_with_linear=True)] * 80}),
        (SUPER_49B, {"block_configs": [nas_block(float("inf"))] * 80}),
        (MAMBA_2_8B, {"attn_layer_idx": [3]}),
        (MAMBA_2_8B, {"pad_vocab_size_multiple": 0}),
        (MAMBA_2_8B, {"n_layer": None}),
        (MAMBA2_2_7B, {"d_model": "2560"}),
        (MAMBA2_2_7B, {"ssm_cfg": {"layer": "Mamba2", "headdim": 0}}),
        ({"model_type": "gpt_neo"}, {"attention_types": [["global", 12]]}),
        ({"model_type": "gpt_neo"}, {"attention_types": [[["global"], 10**9]]}),
        ({"model_type": "afmoe"}, {"mlp_layer_types": ["dense"]}),
        ({"model_type": "glm4_moe_lite"}, {"mlp_layer_types": ["experts"] * 47}),
    ],
)
def test_lists_that_contradict(config, change):
    with pytest.raises(ConfigError):
        Models.from_config({**config, **change})


def test_a_layer_without_any_block_is_no_layer():
    empty = nas_block(None, attends=False)
    model = Models.from_config({**SUPER_49B, "block_configs": [nas_block(1.0), empty] * 40})
    assert sum(layers.count for layers in model.stack) == 40 if model.stack else model.layers == 40
