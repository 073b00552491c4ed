"""What from_config accepts, where its values come from, and what it refuses."""

import contextlib
import dataclasses
import json
import struct
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlsysim import (
    Hardware,
    Models,
    MoETransformerModel,
    ServingSolver,
    SimulationConfig,
    TransformerModel,
)
from mlsysim.core.errors import ConfigError
from mlsysim.core.types.layers import routes
from mlsysim.registry.importer.documents import MAX_BYTES
from mlsysim.registry.importer.keys import NAMES
from mlsysim.registry.importer.readers import READERS, REFUSED
from tests.importer.test_published import SHAPES, VARIANTS, read

SMALL = {
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 1_408,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 20_000,
    "max_position_embeddings": 1_024,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
UNKNOWN = SMALL | {"model_type": "our_own", "hidden_act": "silu"}


BITSANDBYTES = {"quant_method": "bitsandbytes", "load_in_4bit": True}


def quark(more=(), **weight):
    """A file of AMD's Quark, as amd/DeepSeek-R1-MXFP4 and others have it."""
    stated = {"quant_method": "quark", "global_quant_config": {"weight": weight}}
    return stated | {"layer_quant_config": {}, "exclude": []} | dict(more)


def refusal(config, **more):
    with pytest.raises(ConfigError) as caught:
        Models.from_config(config, **more)
    return caught.value


def test_errors_say_what_to_correct_in_the_file():
    for change, argument in (
        ({"num_attention_heads": None, "num_key_value_heads": 8}, "num_attention_heads"),
        ({"num_attention_heads": 32, "num_key_value_heads": 5}, "kv_heads"),
        ({"hidden_size": "64"}, "hidden_size"),
        ({"tie_word_embeddings": "false"}, "tie_word_embeddings"),
    ):
        assert refusal({**SMALL, **change}).argument == argument
    assert refusal("meta-llama/Llama-3.2-1B").argument == "source"


def test_fields_say_which_key_they_are_from():
    model = read("DeepSeek-V3")
    for field, key in {
        "hidden_dim": "hidden_size",
        "layers": "num_hidden_layers",
        "heads": "num_attention_heads",
        "latent.kv_rank": "kv_lora_rank",
        "experts": "n_routed_experts",
        "expert_ffn_dim": "moe_intermediate_size",
        "mtp_layers": "num_nextn_predict_layers",
        "formats": "quantization_config",
        "moe_layers": "first_k_dense_replace",
        "expert_groups": "n_group",
        "groups_per_token": "topk_group",
    }.items():
        assert model.source_of(field).locator == key
        assert model.source_of(field).title == "config.json"
    assert model.source_of("parameters").title.startswith("Counted")
    kinds = 12 * ["sliding_attention", "full_attention"]
    stacked = Models.from_config({**SHAPES["openai/gpt-oss-20b"], "layer_types": kinds})
    assert stacked.stack == read("openai/gpt-oss-20b").stack
    assert stacked.source_of("kv_heads").locator == "num_key_value_heads"
    assert stacked.source_of("stack").locator == "layer_types"
    for path, key in {
        "attention.kv_heads": "num_key_value_heads",
        "attention.reach.tokens": "sliding_window",
        "feed_forward.width": "intermediate_size",
        "feed_forward.per_token": "num_experts_per_tok",
    }.items():
        assert stacked.source_of(f"stack[0].{path}").locator == key


def test_defaults_of_the_library_are_marked():
    model = read("EleutherAI/gpt-neox-20b")
    source = model.source_of("vocab_size")
    assert "vocab_size" in model.source.note
    assert source.url.endswith("models/gpt_neox/configuration_gpt_neox.py")
    assert "transformers" in source.title
    assert source.note
    derived = Models.from_config({**SMALL, "num_key_value_heads": None})
    assert derived.kv_heads == 8
    assert derived.source_of("kv_heads").locator == "num_attention_heads"
    assert derived.source_of("head_dim").locator == "hidden_size / num_attention_heads"


def test_towers_are_left_out_and_the_source_says_so():
    model = read("Qwen3-VL-30B-A3B")
    assert "vision_config" in model.source.note
    assert model.vision is None
    assert not read("Qwen3-30B-A3B").source.note


def test_the_tower_of_gemma_3():
    """The report counts 417M in the encoder; the projection has 1152 x 2560 and a norm."""
    tower = read("google/gemma-3-4b-it").vision
    projection = 1_152 * 2_560 + 1_152
    assert tower.network.si("parameters") - projection == pytest.approx(417e6, rel=1e-3)
    assert tower.tokens == 256
    # 64 x 64 patches: two operations for each weight, and attention among all of them.
    weights = 588 * 1_152 + 27 * (4 * 1_152**2 + 2 * 1_152 * 4_304)
    work = 2 * 4_096 * weights + 4 * 27 * 4_096**2 * 1_152 + 2 * 256 * 1_152 * 2_560
    assert tower.network.flops_per_sample.to("flop").magnitude == pytest.approx(work, rel=1e-12)


def test_every_alias_reads_the_same():
    """A field of a kind that is not known may be spelled as in any family."""
    plain = Models.from_config(UNKNOWN)
    for field in ("hidden_dim", "layers", "heads", "kv_heads", "ffn_dim", "vocab_size", "seq_len"):
        first, *others = NAMES[field]
        for other in others:
            renamed = {key: item for key, item in UNKNOWN.items() if key != first}
            model = Models.from_config(renamed | {other: UNKNOWN[first]})
            assert model == dataclasses.replace(
                plain, field_sources=model.field_sources, name=plain.name
            )
            assert model.source_of({"ffn_dim": "ffn_dim"}.get(field, field)).locator == other


def test_alike_layers_take_the_short_form():
    assert not read("Llama-3.1-8B").stack
    assert isinstance(read("DeepSeek-V3"), MoETransformerModel)
    assert not read("DeepSeek-V3").stack
    for name in (
        "openai/gpt-oss-20b",
        "Qwen/Qwen3-Next-80B-A3B-Instruct",
        "deepseek-ai/DeepSeek-V3.2",
        "meta-llama/Llama-4-Maverick-17B-128E-Instruct",
    ):
        assert type(read(name)) is TransformerModel
        assert read(name).stack


def test_a_published_row_of_the_zoo_is_read_again():
    """The zoo's rows were written by hand from the same files."""
    for row, name in (
        (Models.Llama3_8B, "Llama-3.1-8B"),
        (Models.Mixtral_8x7B, "Mixtral-8x7B"),
        (Models.DeepSeek_V3, "DeepSeek-V3"),
        (Models.Qwen3_30B_A3B, "Qwen3-30B-A3B"),
    ):
        model = read(name)
        for field in ("layers", "hidden_dim", "heads", "kv_heads", "head_dim", "vocab_size"):
            assert getattr(model, field) == getattr(row, field)
        assert model.active_parameters.magnitude == pytest.approx(
            row.active_parameters.magnitude, rel=1e-3
        )
        assert model.kv_bytes_per_token("fp16") == row.kv_bytes_per_token("fp16")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("DeepSeek-V3", ("fp8", "fp8", "fp8", "bf16")),
        ("Qwen3-235B-A22B-FP8", ("fp8", None, "fp8", "bf16")),
        ("openai/gpt-oss-120b", ("bf16", "bf16", "mxfp4", "bf16")),
        ("Kimi-K2.5-NVFP4", ("bf16", "fp4", "fp4", "bf16")),
    ],
)
def test_formats_of_published_files(name, parts):
    formats = read(name).formats
    found = [
        getattr(part, "name", part)
        for part in (
            formats.attention,
            formats.feed_forward,
            formats.experts,
            formats.embeddings,
        )
    ]
    # gpt-oss states no type: what is not quantized is left to the solver.
    stated = [None if name == "openai/gpt-oss-120b" and part == "bf16" else part for part in parts]
    assert found == stated


@pytest.mark.parametrize(
    ("quantization", "attention"),
    [
        ({"quant_method": "awq", "bits": 4}, "int4"),
        ({"quant_method": "gptq", "bits": 8}, "int8"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        ({**BITSANDBYTES, "bnb_4bit_quant_type": "nf4"}, "fp4"),
        ({**BITSANDBYTES, "bnb_4bit_quant_type": "fp4"}, "fp4"),
        (BITSANDBYTES, "fp4"),
        (
            {**BITSANDBYTES, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True},
            "int4",
        ),
        ({**BITSANDBYTES, "llm_int8_skip_modules": ["lm_head", "self_attn"]}, "bf16"),
        (quark(dtype="fp4", qscheme="per_group", group_size=32, scale_format="e8m0"), "mxfp4"),
        (quark(dtype="fp8_e4m3", qscheme="per_tensor"), "fp8"),
        (quark(dtype="uint4", qscheme="per_group", group_size=128), "int4"),
        (quark({"exclude": ["lm_head", "re:.*self_attn.*"]}, dtype="fp4"), "bf16"),
        (
            quark(
                {"layer_quant_config": {"*self_attn*": {"weight": {"dtype": "fp8_e4m3"}}}},
                dtype="fp4",
            ),
            "fp8",
        ),
        (quark({"layer_quant_config": {"*q_proj": {}, "*o_proj": {}}}, dtype="fp4"), "bf16"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "fp4"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "float"}}},
                "ignore": ["lm_head"],
            },
            "fp4",
        ),
        ({"quant_method": "fp8", "modules_to_not_convert": ["re:.*self_attn.*"]}, "bf16"),
        ({"quant_method": "fp8", "modules_to_not_convert": ["model.layers.*.self_attn"]}, "bf16"),
    ],
)
def test_formats(quantization, attention):
    model = Models.from_config({**SMALL, "quantization_config": quantization})
    assert model.formats.attention.name == attention
    assert model.formats.embeddings.name == "bf16"
    assert model.source_of("formats").locator == "quantization_config"


@pytest.mark.parametrize(
    "quantization",
    [
        {"quant_method": "eetq_next"},
        {"quant_method": "gptq", "bits": 3},
        {"quant_method": "bitsandbytes"},
        {**BITSANDBYTES, "bnb_4bit_quant_type": "nf3"},
        quark(dtype="fp6_e2m3"),
        quark(dtype="fp4", qscheme="per_group", group_size=16),
        quark(dtype="fp4") | {"global_quant_config": {"weight": [{"dtype": "int4"}]}},
        {"quant_method": "modelopt", "quant_algo": "FP2"},
        {"quant_method": "compressed-tensors", "config_groups": {}},
    ],
)
def test_unknown_formats_are_refused(quantization):
    fault = refusal({**SMALL, "quantization_config": quantization})
    assert fault.argument == "quantization_config"


def test_a_format_of_a_whole_block():
    """Qwen3.6-35B-A3B in NVFP4 lists the block of experts instead of their products."""
    layers = {
        f"model.language_model.layers.{layer}.{part}": {"quant_algo": algorithm}
        for layer in range(4)
        for part, algorithm in (("block_sparse_moe", "W4A16_NVFP4"), ("self_attn", "FP8"))
    }
    stated = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}
    formats = Models.from_config(
        {
            **SMALL,
            "model_type": "mixtral",
            "quantization_config": {**stated, "quantized_layers": layers},
        }
    ).formats
    assert formats.attention.name == "fp8"
    assert formats.experts.name == "fp4"


def test_groups_of_modules_by_patterns():
    weights = {"num_bits": 4, "type": "float", "group_size": 32}
    groups = {
        "attention": {"targets": ["re:.*self_attn.*"], "weights": {"num_bits": 8, "type": "float"}},
        "rest": {"targets": ["Linear"], "weights": weights},
    }
    stated = {"quant_method": "compressed-tensors", "config_groups": groups}
    formats = Models.from_config({**SMALL, "quantization_config": stated}).formats
    assert formats.attention.name == "fp8"
    assert formats.feed_forward.name == "mxfp4"


@pytest.mark.parametrize("value", ["fp8", [], 8, True])
def test_a_quantization_that_is_no_mapping(value):
    fault = refusal({**SMALL, "quantization_config": value})
    assert fault.argument == "quantization_config"


def test_patterns_of_a_file_cannot_take_forever():
    evil = {"quant_method": "fp8", "ignore": ["re:" + "(a+)+" * 20 + "$"]}
    assert Models.from_config({**SMALL, "quantization_config": evil}).formats.attention
    for many in (["*a" * 200], [f"*{spot}" for spot in range(10**4)]):
        refusal({**SMALL, "quantization_config": {"quant_method": "fp8", "ignore": many}})


def test_paths_directories_and_names(tmp_path):
    home = tmp_path / "Own-7B"
    home.mkdir()
    (home / "config.json").write_text(json.dumps(SMALL))
    for source in (home, str(home), home / "config.json"):
        model = Models.from_config(source)
        assert model.name == "Own-7B"
        assert model.si("parameters") == Models.from_config(SMALL).si("parameters")
    assert Models.from_config(home, name="Mine").name == "Mine"
    assert Models.from_config(SMALL, seq_len=77).seq_len == 77
    assert Models.from_config({**SMALL, "_name_or_path": "org/Theirs"}).name == "Theirs"


def test_solvers_and_scenarios_read_files(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(SMALL))
    model = Models.from_config(path)
    answer = ServingSolver.solve(model=model, hardware=Hardware.H100, seq_len=512, batch_size=4)
    assert answer.feasible
    config = SimulationConfig.from_text(
        f"name: Own\ntask: serving\nmodel: {path}\nsystem: {{hardware: H100}}\n"
        "arguments: {seq_len: 512, batch_size: 4}\n"
    )
    assert config.scenario().workload == model
    assert config.to_dict()["model"] == str(path)


def test_a_missing_file_of_a_scenario_is_a_fault():
    with pytest.raises(ConfigError) as caught:
        SimulationConfig.from_text(
            "name: Own\ntask: serving\nmodel: ./nowhere/config.json\nsystem: {hardware: H100}\n"
            "arguments: {seq_len: 512}\n"
        )
    assert [fault.path for fault in caught.value.faults] == ["model"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_size", 0),
        ("hidden_size", -4_096),
        ("hidden_size", "4096"),
        ("hidden_size", True),
        ("hidden_size", 10**12),
        ("hidden_size", 0.5),
        ("num_hidden_layers", 10**6),
        ("attention_bias", "yes"),
        ("tie_word_embeddings", 1),
        ("layer_types", ["full_attention"]),
        ("layer_types", ["full_attention", "sideways", "full_attention", "full_attention"]),
        ("layer_types", "full_attention"),
        ("num_key_value_heads", 3),
        ("layer_types", ["linear_attention"] * 4),
        ("num_local_experts", 8),
        ("n_routed_experts", 8),
        ("kv_lora_rank", 512),
    ],
)
def test_wrong_values_name_their_key(key, value):
    fault = refusal({**SMALL, key: value})
    assert key in str(fault) or fault.argument == "kv_heads"


def test_a_kind_that_is_not_known_must_state_everything():
    model = Models.from_config(UNKNOWN)
    assert model.si("parameters") == Models.from_config(SMALL).si("parameters")
    assert model.is_estimated("parameters")
    assert model.is_estimated("gated_mlp")
    assert not Models.from_config(SMALL).estimated
    keys = ("hidden_size", "num_key_value_heads", "vocab_size", "tie_word_embeddings")
    fault = refusal({key: item for key, item in UNKNOWN.items() if key not in keys})
    assert all(key in str(fault) for key in keys)


@pytest.mark.parametrize("key", ["mamba_d_state", "kv_lora_rank", "block_types", "index_topk"])
def test_a_kind_that_is_not_known_has_no_other_layers(key):
    assert refusal({**UNKNOWN, key: 64}).argument == key
    assert Models.from_config({**UNKNOWN, key: None}).estimated


def test_a_kind_that_is_not_known_states_its_gate():
    """Blocks with GELU or squared ReLU exist with a gate (Gemma, BitNet) and without."""
    for unclear in ("gelu", "relu2", "gelu_pytorch_tanh", None, 7):
        assert refusal({**UNKNOWN, "hidden_act": unclear}).argument == "gated_mlp"
        for gated in (True, False):
            model = Models.from_config({**UNKNOWN, "hidden_act": unclear, "gated_mlp": gated})
            assert model.gated_mlp is gated
            assert model.source_of("gated_mlp").locator == "gated_mlp"


def test_a_kind_that_is_not_known_states_its_windows():
    assert refusal({**UNKNOWN, "sliding_window": 256}).argument == "layer_types"
    kinds = ["sliding_attention", "full_attention"] * 2
    model = Models.from_config({**UNKNOWN, "sliding_window": 256, "layer_types": kinds})
    assert model.kv_cache_bytes("fp8", 1_024).magnitude == 2 * (256 + 1_024) * 2 * 2 * 64
    off = {**UNKNOWN, "sliding_window": 256, "use_sliding_window": False}
    assert not Models.from_config(off).stack


def test_keys_that_are_not_read_are_named():
    model = Models.from_config({**UNKNOWN, "use_cube_norm": True, "rope_theta": 1e6})
    assert "use_cube_norm" in model.source.note
    assert "rope_theta" not in model.source.note
    assert not Models.from_config(UNKNOWN).source.note


def test_experts_of_a_kind_that_is_not_known():
    """By the keys of Qwen, of DeepSeek, or a list, whichever are there."""
    mixed = {**UNKNOWN, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 256}
    for more, dense in (
        ({}, 0),
        ({"num_dense_layers": 1}, 1),
        ({"first_k_dense_replace": 3}, 3),
        ({"mlp_only_layers": [0, 1]}, 2),
        ({"decoder_sparse_step": 2}, 2),
        ({"mlp_layer_types": ["dense"] * 3 + ["sparse"]}, 3),
    ):
        model = Models.from_config({**mixed, **more})
        width = 4 * 256 - 1_408
        plain = Models.from_config(mixed).si("parameters")
        routers = 4 * 512 * dense
        assert plain - model.si("parameters") == 3 * 512 * width * dense + routers


def test_a_refused_file_that_was_read_by_hand_names_its_row():
    assert "Models.MiniMax_M3" in REFUSED["minimax_m3"]
    assert Models.MiniMax_M3.is_estimated("stack"), "what its keys mean is not published"
    assert refusal({"model_type": "minimax_m3"}).argument == "model_type"


@pytest.mark.parametrize("kind", REFUSED)
def test_kinds_that_cannot_be_expressed(kind):
    assert refusal({**SMALL, "model_type": kind}).argument == "model_type"


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("gemma4_text", "hidden_size_per_layer_input", 256),
        ("gemma4_text", "num_kv_shared_layers", 4),
        ("deepseek_v32", "index_topk_freq", 4),
        ("deepseek_v32", "index_topk_pattern", "FSSS"),
        ("glm_moe_dsa", "index_topk_pattern", "FSSS"),
        ("glm_moe_dsa", "indexer_types", ["shared"] * 78),
        ("glm_moe_dsa", "indexer_types", ["full"] * 77 + ["some"]),
        ("falcon_h1", "mamba_n_heads", 100),
        ("kimi_linear", "linear_attn_config", {"full_attn_layers": [4], "kda_layers": [1, 2]}),
        ("lfm2", "block_ff_dim", "wide"),
        ("opt", "do_layer_norm_before", False),
        ("opt", "word_embed_proj_dim", 256),
        ("phi", "qk_layernorm", True),
        ("nemotron_h", "hybrid_override_pattern", "MX"),
    ],
)
def test_structures_that_cannot_be_expressed(kind, key, value):
    plain = {"hidden_size_per_layer_input": 0} if kind == "gemma4_text" else {}
    assert refusal({**plain, "model_type": kind, key: value}).argument == key


def test_no_context_length_is_an_estimate():
    assert read("mistralai/Mamba-Codestral-7B-v0.1").is_estimated("seq_len")
    assert not Models.from_config(
        {"model_type": "mamba2", "hidden_size": 4_096, "num_hidden_layers": 2}, seq_len=4_096
    ).is_estimated("kv_heads")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json",
        b"[1, 2]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"model_type": "llama", "hidden_size": ' + b"9" * 5_000 + b"}",
        b'{"a":' * 500 + b"1" + b"}" * 500,
        json.dumps({"model_type": "llama", "x": list(range(300_000))}).encode(),
        b"{}" + b" " * MAX_BYTES,
    ],
)
def test_files_that_are_no_configurations(tmp_path, content):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    refusal(path)


@pytest.mark.parametrize("source", [None, 7, b"config.json", "no/such/config.json", "\0", object()])
def test_sources_that_are_none(source, tmp_path):
    refusal(source)
    refusal(tmp_path)  # a directory without a file


def test_only_plain_data_is_read():
    refusal({**SMALL, "hidden_size": SMALL})
    refusal({**SMALL, 7: 1})
    refusal({**SMALL, "x": object()})
    looped = dict(SMALL)
    looped["self"] = looped
    refusal(looped)


_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-10, 10**6),
    st.floats(allow_nan=True),
    st.text(max_size=8),
    st.sampled_from(["full_attention", "mamba", "silu", "auto", "M-*E"]),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
_KEYS = sorted(
    {name for names in NAMES.values() for name in names}
    | {
        "layer_types",
        "text_config",
        "quantization_config",
        "attention_bias",
        "architectures",
        "index_topk",
        "hybrid_override_pattern",
        "hidden_act",
        "word_embed_proj_dim",
        "period",
        "attention_dropout",
    }
)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    kind=st.sampled_from([*READERS, "our_own"]) | _SCALARS,
    changes=st.dictionaries(st.sampled_from(_KEYS), _VALUES, max_size=6),
    base=st.sampled_from([{}, SMALL, UNKNOWN]),
)
def test_any_mapping_is_a_model_or_a_config_error(kind, changes, base):
    try:
        model = Models.from_config({**base, **changes, "model_type": kind})
    except ConfigError:
        return
    assert model.si("parameters") > 0
    assert model.kv_bytes_per_token("fp16").magnitude >= 0


# Files of weights


def header(model, **more):
    count = int(model.si("parameters"))
    return {"__metadata__": {}, "a": {"shape": [count]}, **more}


def test_weights_are_compared(tmp_path):
    model = Models.from_config(SMALL)
    count = int(model.si("parameters"))
    index = {"metadata": {"total_size": 2 * count}, "weight_map": {}}
    Models.from_config(SMALL, weights=index)
    Models.from_config(SMALL, weights=header(model, vision_tower={"shape": [10**9]}))
    path = tmp_path / "model.safetensors"
    text = json.dumps(header(model)).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"weights")
    Models.from_config(SMALL, weights=path)
    for wrong in (
        {"metadata": {"total_size": 2.02 * count}},
        {"metadata": {"total_size": "many"}},
        {"metadata": {"total_size": -1}},
        header(model, more={"shape": [count // 100]}),
        {"a": {"shape": ["x"]}},
        {"a": 7},
        7,
        tmp_path / "none.safetensors",
    ):
        refusal(SMALL, weights=wrong)
    path.write_bytes((10**12).to_bytes(8, "little"))
    refusal(SMALL, weights=path)
    quantized = {**SMALL, "quantization_config": {"quant_method": "fp8"}}
    refusal(quantized, weights=index)


def test_weights_with_a_tower():
    """The files of Gemma 3 hold its tower, which is read; a tower that is not does not count."""
    config = dict(SHAPES["google/gemma-3-4b-it"])
    text = 4_300_079_472 - 419_816_304
    tower = {"vision_tower.a": {"shape": [419_816_304]}}
    Models.from_config(config, weights={"a": {"shape": [text]}, **tower})
    refusal(config, weights={"a": {"shape": [text]}})
    del config["vision_config"]
    Models.from_config(config, weights={"a": {"shape": [text]}, **tower})


def test_weights_with_layers_for_more_tokens():
    """DeepSeek-V3's files hold 684.5 billion parameters, as its model page counts them."""
    config = dict(SHAPES["DeepSeek-V3"])
    del config["quantization_config"]
    model = Models.from_config(config)
    whole = model.si("parameters") + model.mtp_parameters.magnitude
    tables = 2 * 129_280 * 7_168
    assert whole + tables == pytest.approx(684.5e9, rel=2e-3)
    Models.from_config(config, weights={"a": {"shape": [684_489_845_504]}})


# GGUF


def gguf(path, config, tensors, kind="llama", version=3):
    def text(value):
        raw = value.encode()
        return struct.pack("<Q", len(raw)) + raw

    pairs = [(f"{kind}.{key}", value) for key, value in config.items()]
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs) + 2)
    out += text("general.architecture") + struct.pack("<I", 8) + text(kind)
    words = ["a"] * 20_000
    out += text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, len(words))
    out += b"".join(text(word) for word in words)
    for key, value in pairs:
        out += text(key) + struct.pack("<II", 4, value)
    for name, (shape, own) in tensors.items():
        out += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        out += struct.pack("<IQ", own, 0)
    path.write_bytes(out + b"weights")
    return path


META = {
    "block_count": 4,
    "embedding_length": 512,
    "feed_forward_length": 1_408,
    "attention.head_count": 8,
    "attention.head_count_kv": 2,
    "context_length": 1_024,
}


def tensors(layers=4):
    found = {"token_embd.weight": ((512, 20_000), 8), "output.weight": ((512, 20_000), 14)}
    found["output_norm.weight"] = ((512,), 0)
    for layer in range(layers):
        for name, shape, kind in (
            ("attn_q", (512, 512), 12),
            ("attn_k", (512, 128), 12),
            ("attn_v", (512, 128), 14),
            ("attn_output", (512, 512), 12),
            ("ffn_gate", (512, 1_408), 13),
            ("ffn_up", (512, 1_408), 13),
            ("ffn_down", (1_408, 512), 14),
            ("attn_norm", (512,), 0),
            ("ffn_norm", (512,), 0),
        ):
            found[f"blk.{layer}.{name}.weight"] = (shape, kind)
    return found


def test_gguf_headers(tmp_path):
    path = gguf(tmp_path / "own.gguf", META, tensors())
    model = Models.from_config(path)
    plain = Models.from_config(SMALL)
    assert model.si("parameters") == plain.si("parameters")
    assert model.kv_bytes_per_token("fp16") == plain.kv_bytes_per_token("fp16")
    assert model.formats.attention.name == "int4"
    assert model.formats.feed_forward is None  # no format like Q5_K
    assert model.formats.embeddings.name == "int8"
    assert model.source_of("formats").title == "GGUF header"
    assert model.name == "own"


def test_gguf_files_that_are_refused(tmp_path):
    path = tmp_path / "own.gguf"
    whole = gguf(path, META, tensors()).read_bytes()
    for broken in (b"", b"GGUF", b"GGML" + whole[4:], whole[:200], whole[:8] + b"\xff" * 16):
        path.write_bytes(broken)
        refusal(path)
    refusal(gguf(path, META, tensors(), version=1))
    refusal(gguf(path, META, tensors(), kind="clip"))
    refusal(gguf(path, META, tensors(3)))
    refusal(gguf(path, {**META, "block_count": 0}, tensors()))
    refusal(tmp_path / "none.gguf")
    # An architecture that is a list of two texts.
    text = struct.pack("<Q", 5) + b"llama"
    start = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 20) + b"general.architecture"
    path.write_bytes(start + struct.pack("<IIQ", 9, 8, 2) + 2 * text)
    refusal(path)


def test_a_large_gguf_header_is_refused_soon(tmp_path):
    """66 MB of short texts took 24 seconds."""
    path = tmp_path / "own.gguf"
    start = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"a"
    count = 8 * 2**20
    path.write_bytes(start + struct.pack("<IIQ", 9, 8, count) + bytes(8 * count))
    begin = time.process_time()
    refusal(path)
    assert time.process_time() - begin < 1


def test_a_gguf_of_qwen2_has_biases(tmp_path):
    with_biases = {**tensors(), "blk.0.attn_q.bias": ((512,), 0)}
    for layer in range(4):
        for name, width in (("attn_q", 512), ("attn_k", 128), ("attn_v", 128)):
            with_biases[f"blk.{layer}.{name}.bias"] = ((width,), 0)
    model = Models.from_config(gguf(tmp_path / "own.gguf", META, with_biases, kind="qwen2"))
    assert model.si("parameters") == Models.from_config(SMALL).si("parameters") + 4 * 768


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(at=st.integers(0, 3_000), change=st.binary(min_size=1, max_size=8))
def test_damaged_gguf_files(tmp_path, at, change):
    path = tmp_path / "own.gguf"
    pristine = tmp_path / "whole.bin"
    if not pristine.exists():
        pristine.write_bytes(gguf(path, META, tensors()).read_bytes())
    whole = pristine.read_bytes()
    # Past the words of the tokenizer, where the shapes are.
    at = at if at < 100 else len(whole) - at
    path.write_bytes(whole[:at] + change + whole[at + len(change) :])
    with contextlib.suppress(ConfigError):
        assert Models.from_config(path).si("parameters") > 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("routed_expert_hidden_size", 512),
        ("mamba_d_state", 16),
        ("kv_shared_layers", 2),
        ("cross_attention_interval", 4),
        ("sliding_window", 4_096),
        ("compress_ratios", [4, 128]),
        ("conv_kernel", 4),
        ("router_hidden_size", 512),
        ("fused_experts", 8),
        ("norm_hidden_size", 512),
        ("position_embedding_size", 512),
        ("rope_head_dim", 64),
        ("mtp_hidden_size", 512),
        ("attn_type", "linear"),
        ("attn_impl", "linear"),
        ("moe_layer_freq", 2),
        ("time_step_rank", 512),
    ],
)
def test_sizes_that_a_kind_does_not_have_are_refused(key, value):
    assert refusal({**SMALL, key: value}).argument == key
    assert Models.from_config({**SMALL, key: None}) == Models.from_config(SMALL)


@pytest.mark.parametrize("kind", ["qwen3_moe", "deepseek_v3"])
@pytest.mark.parametrize("key", ["router_hidden_size", "fused_experts", "norm_hidden_size"])
def test_sizes_that_no_mixture_has_are_refused(kind, key):
    config = next(config for config, _ in VARIANTS if config["model_type"] == kind)
    assert refusal({**config, key: 512}).argument == key
    if kind == "qwen3_moe":  # DeepSeek's files state a stride of layers with experts
        assert refusal({**config, "moe_layer_freq": 2}).argument == "moe_layer_freq"


def test_how_an_engine_computes_changes_no_count():
    config, count = next(pair for pair in VARIANTS if pair[0]["model_type"] == "mpt")
    attention = {"attn_impl": "torch", "attn_type": "multihead_attention", "softmax_scale": 0.1}
    model = Models.from_config({**config, "attn_config": attention, "init_device": "cpu"})
    assert model.si("parameters") == count
    assert not model.is_estimated("parameters")
    narrow = {**config, "attn_config": {"attn_type": "multiquery_attention"}}
    assert refusal(narrow).argument == "attn_config.attn_type"


def test_other_keys_of_a_known_kind_make_an_estimate():
    plain, tuned = (Models.from_config({**SMALL, **more}) for more in ({}, {"neftune": 5}))
    assert not plain.is_estimated("parameters")
    assert tuned.is_estimated("parameters")
    assert "neftune" in tuned.source.note
    assert tuned.si("parameters") == plain.si("parameters")


def test_inner_mappings_are_read_as_a_whole():
    config = SHAPES["moonshotai/Kimi-K3"]
    inner = config["text_config"]
    linear = {**inner["linear_attn_config"], "num_value_heads": 4}
    changed = {**config, "text_config": {**inner, "linear_attn_config": linear}}
    assert refusal(changed).argument == "linear_attn_config.num_value_heads"


def test_kimi_k3_sends_latent_vectors_to_its_experts():
    model = read("moonshotai/Kimi-K3")
    assert model.si("parameters") == pytest.approx(2.8e12, rel=0.01)
    gates = [part.attention.output_gate for part in model.stack]
    assert all(gates)
    assert {part.feed_forward.latent_dim for part in model.stack if routes(part.feed_forward)} == {
        3_584
    }


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"model_type": "llama"}, "hidden_size"),
        ({"model_type": "mamba", "hidden_size": 768}, "num_hidden_layers"),
        ({"model_type": "qwen3_next", "hidden_size": 2_048}, "num_hidden_layers"),
        ({"model_type": "bloom", "n_layer": 30}, "hidden_size"),
    ],
)
def test_a_model_type_alone_is_not_a_model(config, key):
    assert refusal(config).argument == key


def test_sizes_from_defaults_are_listed():
    config = {"model_type": "llama", "hidden_size": 2_048, "num_hidden_layers": 16}
    note = Models.from_config(config).source.note
    for key in ("intermediate_size", "num_attention_heads", "vocab_size"):
        assert key in note
    assert "intermediate_size" not in Models.from_config(SMALL).source.note


@pytest.mark.parametrize("kind", ["mllama", "clip", "siglip", "gemma3n", "whisper"])
def test_the_outer_kind_is_tested_too(kind):
    assert refusal({"model_type": kind, "text_config": SMALL}).argument == "model_type"
    text = {**SMALL, "model_type": "siglip_text_model", "hidden_act": "silu"}
    assert refusal(text).argument == "model_type"


def test_a_diffusion_transformer_is_named_as_one():
    fault = refusal({"_class_name": "FluxTransformer2DModel", "num_layers": 19})
    assert fault.argument == "_class_name"
    assert "FluxTransformer2DModel" in str(fault)
