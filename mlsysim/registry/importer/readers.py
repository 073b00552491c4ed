"""Kinds of models by `model_type`: what each adds to the keys that all of them share.

Structure and defaults are those of the modeling and configuration classes of transformers 5.23.0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from mlsysim.registry.importer import kinds
from mlsysim.registry.importer.layers import Reader

__all__ = ["GENERIC", "READERS"]

LAYER_NORM = 2
"""Vectors of a norm with a bias."""


def _like(other: Reader, **changes: Any) -> Reader:
    changes["names"] = {**other.names, **changes.get("names", {})}
    return dataclasses.replace(other, **changes)


_EXPERTS_LIKE_MLP = {"expert_dim": ("intermediate_size",)}

_LLAMA = Reader(
    file="llama/configuration_llama.py",
    bias="attention_bias",
    mlp_bias="mlp_bias",
)
_PLAIN = _like(_LLAMA, bias=False, mlp_bias=False)
_MISTRAL = _like(_PLAIN, file="mistral/configuration_mistral.py", kinds=kinds.windows)
_MIXTRAL = _like(
    _PLAIN,
    file="mixtral/configuration_mixtral.py",
    names=_EXPERTS_LIKE_MLP,
    kinds=kinds.windows,
    mixture=kinds.everywhere,
    modules={"experts": "block_sparse_moe.experts.0"},
)
_QWEN2 = Reader(
    file="qwen2/configuration_qwen2.py",
    qkv_bias=True,
    kinds=kinds.late_windows,
)
_QWEN3 = _like(
    _QWEN2,
    file="qwen3/configuration_qwen3.py",
    qkv_bias=False,
    bias="attention_bias",
    qk_norm="head",
)
_QWEN3_MOE = _like(
    _QWEN3,
    file="qwen3_moe/configuration_qwen3_moe.py",
    mixture=kinds.sparse_steps,
)
_QWEN3_NEXT = Reader(
    file="qwen3_next/configuration_qwen3_next.py",
    names={"period": ("full_attention_interval",)},
    kinds=kinds.every(4, "linear"),
    linear="delta",
    output_gate=True,
    bias="attention_bias",
    qk_norm="head",
    mixture=kinds.sparse_steps,
    shared_gate=True,
    modules={"shared": "mlp.shared_expert"},
)
_QWEN3_5_MOE = _like(
    _QWEN3_NEXT,
    file="qwen3_5_moe/configuration_qwen3_5_moe.py",
    mixture=kinds.everywhere,
)
_QWEN3_5 = _like(
    _QWEN3_5_MOE,
    file="qwen3_5/configuration_qwen3_5.py",
    mixture=None,
)
_GEMMA = Reader(
    file="gemma/configuration_gemma.py",
    bias="attention_bias",
)
_GEMMA2 = _like(
    _GEMMA,
    file="gemma2/configuration_gemma2.py",
    names={"period": ("sliding_window_pattern",)},
    norms=4,
    kinds=kinds.every(2),
)
_GEMMA3 = _like(
    _GEMMA2,
    file="gemma3/configuration_gemma3.py",
    names={"period": ("sliding_window_pattern", "_sliding_window_pattern")},
    kinds=kinds.every(6),
    qk_norm="head",
)
_GEMMA4 = _like(
    _GEMMA3,
    file="gemma4/configuration_gemma4.py",
    defaults={"global_head_dim": 512},
    # Its dense block runs next to the experts, as a shared expert does.
    names={"shared_dim": ("intermediate_size",)},
    global_heads=True,
    mixture=kinds.gemma4_experts,
    modules={"experts": "experts.0", "shared": "mlp"},
    needs={
        "hidden_size_per_layer_input": (0,),
        "num_kv_shared_layers": (0,),
        "use_double_wide_mlp": (False,),
    },
)
_PHI3 = _like(
    _PLAIN,
    file="phi3/configuration_phi3.py",
    kinds=kinds.windows,
)
_GPT2 = Reader(
    file="gpt2/configuration_gpt2.py",
    norm=LAYER_NORM,
    bias=True,
    mlp_bias=True,
    gated=False,
    positions=0,
)
_GPT_J = _like(
    _GPT2,
    file="gptj/configuration_gptj.py",
    norms=1,
    bias=False,
    head_bias=True,
    positions=None,
)
_OLMO2 = _like(
    _LLAMA,
    file="olmo2/configuration_olmo2.py",
    mlp_bias=False,
    qk_norm="width",
)
_DEEPSEEK_V3 = Reader(
    file="deepseek_v3/configuration_deepseek_v3.py",
    attention="latent",
    mixture=kinds.first_dense,
)
_MAMBA2_KEYS = {
    "mamba_conv_bias": ("use_conv_bias", "mamba_conv_bias"),
    "mamba_proj_bias": ("use_bias", "mamba_proj_bias"),
}
_MAMBA = Reader(
    file="mamba/configuration_mamba.py",
    names={"inner_dim": ("intermediate_size",), **_MAMBA2_KEYS},
    norms=1,
    single=True,
    kinds=kinds.linear,
    linear="mamba",
)
_BAMBA = Reader(
    file="bamba/configuration_bamba.py",
    kinds=kinds.full_at("attn_layer_indices"),
    linear="mamba2",
    bias="attention_bias",
    mlp_bias="mlp_bias",
)
_BERT = Reader(
    file="bert/configuration_bert.py",
    norm=LAYER_NORM,
    bias=True,
    mlp_bias=True,
    gated=False,
    positions=0,
    final_norm=False,
    causal=False,
    outside=kinds.bert,
)
_CHATGLM = Reader(
    defaults={"tie_word_embeddings": False},
    qkv_bias="add_qkv_bias",
    out_bias="add_bias_linear",
    mlp_bias="add_bias_linear",
    needs={
        "multi_query_attention": (True,),
        "rmsnorm": (True,),
        "post_layer_norm": (True,),
        "apply_residual_connection_post_layernorm": (False,),
    },
)
_OWN_CODE = Reader(defaults={"tie_word_embeddings": False})

_OPEN_ELM = Reader(
    names={
        "hidden_dim": ("model_dim",),
        "layers": ("num_transformer_layers",),
        "heads": ("num_query_heads",),
        "kv_heads": ("num_kv_heads",),
        "ffn_dim": ("model_dim * ffn_multipliers",),
        "seq_len": ("max_context_length",),
        "tied": ("share_input_output_layers",),
    },
    defaults={"share_input_output_layers": True},
    qk_norm="head",
    qk_norm_if="normalize_qk_projections",
    needs={"ffn_with_glu": (True,)},
)
_NEMOTRON_NAS = _like(
    _OWN_CODE,
    names={
        "kv_heads": ("num_attention_heads / block_configs.attention.n_heads_in_group",),
        "ffn_dim": ("hidden_size * block_configs.ffn.ffn_mult",),
    },
    bias="attention_bias",
    mlp_bias="mlp_bias",
    gaps=True,
)
_MAMBA_SSM = _like(
    _MAMBA,
    file="",
    defaults={
        "tie_embeddings": True,
        "ssm_cfg.conv_bias": True,
        "ssm_cfg.d_state": 16,
        "ssm_cfg.d_conv": 4,
        "ssm_cfg.expand": 2,
        "ssm_cfg.dt_rank": "auto",
    },
    names={
        "tied": ("tie_embeddings",),
        "inner_dim": (),
        "state_dim": ("ssm_cfg.d_state",),
        "conv_width": ("ssm_cfg.d_conv",),
        "expand": ("ssm_cfg.expand",),
        "dt_rank": ("ssm_cfg.dt_rank",),
        "mamba_conv_bias": ("ssm_cfg.conv_bias",),
        "mamba_proj_bias": ("ssm_cfg.bias",),
    },
)
_GLM4_MOE_LITE = _like(
    _DEEPSEEK_V3,
    file="glm4_moe_lite/configuration_glm4_moe_lite.py",
    defaults={"first_k_dense_replace": 1},
)
_MINIMAX = _like(
    _MIXTRAL,
    file="minimax/configuration_minimax.py",
    kinds=kinds.minimax,
    linear="lightning",
)
_BAILING = Reader(
    defaults={"tie_word_embeddings": False},
    qkv_bias="use_qkv_bias",
    out_bias="use_bias",
    mixture=kinds.first_dense,
)

READERS: Mapping[str, Reader] = {
    "llama": _LLAMA,
    "mistral": _MISTRAL,
    "ministral3": _like(
        _MISTRAL,
        file="ministral3/configuration_ministral3.py",
    ),
    "mixtral": _MIXTRAL,
    "qwen2": _QWEN2,
    "qwen2_moe": _like(
        _QWEN2,
        file="qwen2_moe/configuration_qwen2_moe.py",
        qkv_bias="qkv_bias",
        mixture=kinds.sparse_steps,
        shared_gate=True,
    ),
    "qwen3": _QWEN3,
    "qwen3_moe": _QWEN3_MOE,
    "qwen3_next": _QWEN3_NEXT,
    "qwen3_5_text": _QWEN3_5,
    "qwen3_5_moe_text": _QWEN3_5_MOE,
    "qwen2_vl_text": _QWEN2,
    "qwen2_5_vl_text": _QWEN2,
    "qwen2_5_omni_text": _QWEN2,
    "qwen3_omni_moe_text": _QWEN3_MOE,
    "qwen3_vl_text": _like(_QWEN3, file="qwen3_vl/configuration_qwen3_vl.py"),
    "qwen3_vl_moe_text": _like(_QWEN3_MOE, file="qwen3_vl_moe/configuration_qwen3_vl_moe.py"),
    "gemma": _GEMMA,
    "gemma2": _GEMMA2,
    "gemma3_text": _GEMMA3,
    "gemma4_text": _GEMMA4,
    "phi": Reader(
        file="phi/configuration_phi.py",
        norm=LAYER_NORM,
        norms=1,
        bias=True,
        mlp_bias=True,
        head_bias=True,
        gated=False,
        needs={"qk_layernorm": (False,)},
    ),
    "phi3": _PHI3,
    "phimoe": _like(
        _MIXTRAL,
        file="phimoe/configuration_phimoe.py",
        norm=LAYER_NORM,
        bias="attention_bias",
        head_bias="lm_head_bias",
    ),
    "gpt2": _GPT2,
    "gpt_bigcode": _like(
        _GPT2,
        file="gpt_bigcode/configuration_gpt_bigcode.py",
        needs={"multi_query": (True,)},
    ),
    "gpt_neox": Reader(
        file="gpt_neox/configuration_gpt_neox.py",
        norm=LAYER_NORM,
        bias="attention_bias",
        mlp_bias=True,
        gated=False,
    ),
    "gptj": _GPT_J,
    "codegen": _like(_GPT_J, file="codegen/configuration_codegen.py"),
    "gpt_oss": Reader(
        file="gpt_oss/configuration_gpt_oss.py",
        names=_EXPERTS_LIKE_MLP,
        kinds=kinds.every(2),
        mixture=kinds.everywhere,
        bias="attention_bias",
        sinks=True,
        router_bias=True,
        expert_bias=True,
    ),
    "opt": Reader(
        file="opt/configuration_opt.py",
        norm=LAYER_NORM,
        bias="enable_bias",
        mlp_bias="enable_bias",
        gated=False,
        positions=2,
        needs={
            "do_layer_norm_before": (True,),
            "layer_norm_elementwise_affine": (True,),
            "_remove_final_layer_norm": (False,),
        },
    ),
    "bloom": Reader(
        file="bloom/configuration_bloom.py",
        norm=LAYER_NORM,
        bias=True,
        mlp_bias=True,
        gated=False,
        outside=lambda keys: 2 * keys.needed("hidden_dim"),  # the norm of embeddings
    ),
    "falcon": Reader(
        file="falcon/configuration_falcon.py",
        norm=LAYER_NORM,
        norms=kinds.falcon_norms,
        bias="bias",
        mlp_bias="bias",
        gated=False,
    ),
    "mpt": Reader(
        file="mpt/configuration_mpt.py",
        names={"kv_heads": ("attn_config.kv_n_heads",), "ffn_dim": ("ffn_dim",)},
        gated=False,
        needs={
            "no_bias": (True,),
            "expansion_ratio": (4,),
            "attn_config.alibi": (True,),
            "attn_config.qk_ln": (False,),
        },
    ),
    "stablelm": Reader(
        file="stablelm/configuration_stablelm.py",
        norm=LAYER_NORM,
        norms=kinds.stablelm_norms,
        qkv_bias="use_qkv_bias",
        qk_norm="width",
        qk_norm_if="qk_layernorm",
    ),
    "starcoder2": Reader(
        file="starcoder2/configuration_starcoder2.py",
        norm=LAYER_NORM,
        kinds=kinds.windows,
        bias="use_bias",
        mlp_bias="use_bias",
        gated=False,
    ),
    "cohere": Reader(
        file="cohere/configuration_cohere.py",
        norms=1,
        bias="attention_bias",
        qk_norm="width",
        qk_norm_if="use_qk_norm",
    ),
    "cohere2": Reader(
        file="cohere2/configuration_cohere2.py",
        names={"period": ("sliding_window_pattern", "_sliding_window_pattern")},
        norms=1,
        kinds=kinds.every(4),
        bias="attention_bias",
    ),
    "olmo": _like(
        _LLAMA,
        file="olmo/configuration_olmo.py",
        norm=0,
        mlp_bias=False,
    ),
    "olmo2": _OLMO2,
    "olmo3": _like(
        _OLMO2,
        file="olmo3/configuration_olmo3.py",
        names={"period": ("sliding_window_pattern",)},
        kinds=kinds.every(4),
    ),
    "olmoe": _like(
        _OLMO2,
        file="olmoe/configuration_olmoe.py",
        names=_EXPERTS_LIKE_MLP,
        mixture=kinds.everywhere,
    ),
    "granite": _like(_LLAMA, file="granite/configuration_granite.py"),
    "granitemoe": _like(
        _LLAMA,
        file="granitemoe/configuration_granitemoe.py",
        names=_EXPERTS_LIKE_MLP,
        mlp_bias=False,
        mixture=kinds.everywhere,
    ),
    "deepseek": _like(
        _OWN_CODE,
        bias="attention_bias",
        mixture=kinds.first_dense,
    ),
    "deepseek_v2": _like(
        _DEEPSEEK_V3,
        file="deepseek_v2/configuration_deepseek_v2.py",
    ),
    "deepseek_v3": _DEEPSEEK_V3,
    "kimi_k2": _DEEPSEEK_V3,
    "deepseek_v32": _like(
        _DEEPSEEK_V3,
        file="deepseek_v32/configuration_deepseek_v32.py",
    ),
    "glm": Reader(
        file="glm/configuration_glm.py",
        qkv_bias="attention_bias",
    ),
    "glm4_moe": Reader(
        file="glm4_moe/configuration_glm4_moe.py",
        qkv_bias="attention_bias",
        qk_norm="head",
        qk_norm_if="use_qk_norm",
        mixture=kinds.first_dense,
    ),
    "glm_moe_dsa": _like(
        _DEEPSEEK_V3,
        file="glm_moe_dsa/configuration_glm_moe_dsa.py",
        # Layers that reuse the keys which an earlier layer chose have no indexer of their own.
        needs={"index_topk_freq": (1,), "index_topk_pattern": ()},
    ),
    "glm4_moe_lite": _GLM4_MOE_LITE,
    "minicpm3": _like(_DEEPSEEK_V3, file="minicpm3/configuration_minicpm3.py", mixture=None),
    "minimax": _MINIMAX,
    "dots1": Reader(
        file="dots1/configuration_dots1.py",
        bias="attention_bias",
        qk_norm="head",
        mixture=kinds.first_dense,
    ),
    "afmoe": Reader(
        file="afmoe/configuration_afmoe.py",
        names={"period": ("global_attn_every_n_layers",)},
        norms=4,
        kinds=kinds.every(4),
        qk_norm="head",
        output_gate=True,
        mixture=kinds.first_dense,
        router_bias=True,  # the correction of its scores
    ),
    "internlm3": _like(
        _PLAIN,
        file="internlm3/configuration_internlm3.py",
        bias=False,
        qkv_bias="qkv_bias",
        out_bias="bias",
        mlp_bias="bias",
    ),
    "granitemoeshared": _like(
        _LLAMA,
        file="granitemoeshared/configuration_granitemoeshared.py",
        names=_EXPERTS_LIKE_MLP,
        mlp_bias=False,
        mixture=kinds.everywhere,
    ),
    "gpt_neo": Reader(
        file="gpt_neo/configuration_gpt_neo.py",
        names={"heads": ("num_heads",), "window": ("window_size",)},
        norm=LAYER_NORM,
        out_bias=True,
        mlp_bias=True,
        gated=False,
        positions=0,
    ),
    "vaultgemma": _like(_GEMMA2, file="vaultgemma/configuration_vaultgemma.py", norms=2),
    "minimax_m2": Reader(
        file="minimax_m2/configuration_minimax_m2.py",
        names={
            **_EXPERTS_LIKE_MLP,
            "mtp_layers": ("num_mtp_modules",),
            "mtp_if": ("use_mtp",),
        },
        qk_norm="width",
        modules={"experts": "block_sparse_moe.experts.0"},
        mixture=kinds.everywhere,
    ),
    "ernie4_5": Reader(
        file="ernie4_5/configuration_ernie4_5.py",
        bias="use_bias",
        mlp_bias="use_bias",
    ),
    "ernie4_5_moe": Reader(
        file="ernie4_5_moe/configuration_ernie4_5_moe.py",
        mixture=kinds.ernie,
        router_bias=True,  # the correction of its scores
        needs={"use_bias": (False,)},
    ),
    "hunyuan_v1_dense": _like(
        _LLAMA,
        file="hunyuan_v1_dense/configuration_hunyuan_v1_dense.py",
        mlp_bias=False,
        qk_norm="head",
    ),
    "hunyuan_v1_moe": _like(
        _LLAMA,
        file="hunyuan_v1_moe/configuration_hunyuan_v1_moe.py",
        names={**_EXPERTS_LIKE_MLP, "shared_dim": ("intermediate_size",)},
        mlp_bias=False,
        qk_norm="head",
        mixture=kinds.everywhere,
    ),
    "nemotron": Reader(
        file="nemotron/configuration_nemotron.py",
        norm=LAYER_NORM,
        bias="attention_bias",
        mlp_bias="mlp_bias",
        gated=False,
    ),
    "nemotron_h": Reader(
        file="nemotron_h/configuration_nemotron_h.py",
        names={
            "layer_types": ("layers_block_type",),
            "mamba_conv_bias": ("use_conv_bias",),
            "mamba_proj_bias": ("use_bias",),
            # Its layers for more tokens pair attention with experts, as no layer of its own does.
            "mtp_layers": (),
        },
        modules={
            "dense": "mixer",
            "experts": "mixer.experts.0",
            "shared": "mixer.shared_experts",
        },
        norms=1,
        single=True,
        kinds=kinds.nemotron_h,
        linear="mamba2",
        gated=False,
        needs={"mlp_bias": (False,)},
    ),
    "jamba": Reader(
        file="jamba/configuration_jamba.py",
        defaults={"mamba_norms": True},  # of the step, B and C, in every model of this kind
        names={**_EXPERTS_LIKE_MLP, "inner_dim": ()},
        kinds=kinds.jamba,
        mixture=kinds.jamba_experts,
        linear="mamba",
    ),
    "mamba": _MAMBA,
    "falcon_mamba": _like(_MAMBA, file="falcon_mamba/configuration_falcon_mamba.py"),
    "mamba2": Reader(
        file="mamba2/configuration_mamba2.py",
        names={
            "mamba_heads": ("num_heads",),
            "mamba_head_dim": ("head_dim",),
            **_MAMBA2_KEYS,
        },
        norms=1,
        single=True,
        kinds=kinds.linear,
        linear="mamba2",
    ),
    "bamba": _BAMBA,
    "granitemoehybrid": _like(
        _BAMBA,
        file="granitemoehybrid/configuration_granitemoehybrid.py",
        # Without experts, its block is the shared one.
        names={**_EXPERTS_LIKE_MLP, "ffn_dim": ("shared_intermediate_size",)},
        mlp_bias=False,
        mixture=kinds.everywhere,
    ),
    "dbrx": Reader(
        file="dbrx/configuration_dbrx.py",
        names={
            "kv_heads": ("attn_config.kv_n_heads",),
            "expert_dim": ("ffn_config.ffn_hidden_size",),
        },
        mixture=kinds.everywhere,
    ),
    "exaone4": Reader(
        file="exaone4/configuration_exaone4.py",
        names={"period": ("sliding_window_pattern",)},
        kinds=kinds.every(4),
        qk_norm="head",
    ),
    "smollm3": _like(
        _LLAMA,
        file="smollm3/configuration_smollm3.py",
        kinds=kinds.late_windows,
    ),
    "seed_oss": _like(
        _LLAMA,
        file="seed_oss/configuration_seed_oss.py",
        bias=False,
        qkv_bias="attention_bias",
        out_bias="attention_out_bias",
    ),
    "helium": _like(
        _PLAIN,
        file="helium/configuration_helium.py",
    ),
    "arcee": _like(
        _LLAMA,
        file="arcee/configuration_arcee.py",
        gated=False,
    ),
    "apertus": Reader(
        file="apertus/configuration_apertus.py",
        bias="attention_bias",
        qk_norm="head",
        gated=False,
        in_layer=2,  # of its activation
    ),
    "llama4_text": Reader(
        file="llama4/configuration_llama4.py",
        modules={
            "dense": "feed_forward",
            "experts": "feed_forward.experts",
            "shared": "feed_forward.shared_expert",
        },
        names={
            "ffn_dim": ("intermediate_size_mlp",),
            "expert_dim": ("intermediate_size",),
            "shared_dim": ("intermediate_size",),
            "period": ("no_rope_layer_interval",),
        },
        kinds=kinds.llama4,
        mixture=kinds.interleaved,
        bias="attention_bias",
    ),
    "mimo": _like(_QWEN2, file="", qkv_bias="attention_bias", kinds=None),
    "bert": _BERT,
    "roberta": _like(
        _BERT,
        file="roberta/configuration_roberta.py",
    ),
    "xlm-roberta": _like(_BERT, file="xlm_roberta/configuration_xlm_roberta.py"),
    "modernbert": Reader(
        file="modernbert/configuration_modernbert.py",
        names={"window": ("local_attention",), "period": ("global_attn_every_n_layers",)},
        kinds=kinds.every(3, first=0),
        causal=False,
        outside=kinds.modernbert,
        needs={
            "attention_bias": (False,),
            "mlp_bias": (False,),
            "norm_bias": (False,),
        },
    ),
    # Kinds whose code comes with the weights; their classes state no defaults here.
    "chatglm": _CHATGLM,
    "baichuan": _OWN_CODE,
    "exaone": _OWN_CODE,
    "internlm": _like(_OWN_CODE, bias="bias"),
    "internlm2": _like(_OWN_CODE, bias="bias"),
    "orion": _like(_OWN_CODE, norm=LAYER_NORM, qkv_bias="attention_bias"),
    "minimax_text_01": _like(_MINIMAX, file="", defaults={"tie_word_embeddings": False}),
    "minimax_m1": _like(_MINIMAX, file="", defaults={"tie_word_embeddings": False}),
    "bailing_moe": _BAILING,
    "bailing_moe_v2": _like(_BAILING, qk_norm="head", qk_norm_if="use_qk_norm"),
    "openelm": _OPEN_ELM,
    "nemotron-nas": _NEMOTRON_NAS,
    "deci": _NEMOTRON_NAS,
    "mamba_ssm": _MAMBA_SSM,
    "mamba2_ssm": _like(
        _MAMBA_SSM,
        defaults={
            **_MAMBA_SSM.defaults,
            "ssm_cfg.d_state": 128,
            "ssm_cfg.headdim": 64,
            "ssm_cfg.ngroups": 1,
            "ssm_cfg.chunk_size": 256,
        },
        names={
            "mamba_heads": ("d_model * ssm_cfg.expand / ssm_cfg.headdim",),
            "mamba_head_dim": ("ssm_cfg.headdim",),
            "mamba_groups": ("ssm_cfg.ngroups",),
            "mamba_chunk": ("ssm_cfg.chunk_size",),
        },
        linear="mamba2",
    ),
}
"""Kinds of models that can be read."""
for _alias, _kind in {
    "glm4": _like(READERS["glm"], file="glm4/configuration_glm4.py", norms=4),
    "qwen3_5_moe": _QWEN3_5_MOE,
    "qwen3_5": _QWEN3_5,
    "qwen2_vl": _QWEN2,
    "qwen2_5_vl": _QWEN2,
    "gemma3": _GEMMA3,
    "gemma4": _GEMMA4,
    "llama4": READERS["llama4_text"],
}.items():
    READERS[_alias] = _kind  # type: ignore[index]

GENERIC = Reader(
    bias="attention_bias",
    mlp_bias="mlp_bias",
    mixture=kinds.stated,
)
"""How other kinds are read, which have to state everything."""
