"""Parameters and caches of published models: see README.md for where each is from."""

import json
import re
from pathlib import Path

import pytest

from mlsysim import Models
from mlsysim.core.errors import ConfigError
from mlsysim.registry.importer.published import configurations
from mlsysim.registry.importer.readers import READERS

HERE = Path(__file__).parent
IN_REGISTRY = {name: line["config"] for name, line in configurations().items()}
ONLY_HERE = json.loads((HERE / "shapes.json").read_text())
SHAPES = {**IN_REGISTRY, **ONLY_HERE}
_ROW = re.compile(r"\| (\S+) \| ([^|]+) \| ([\d,]*) \| ([^|]*) \| ([\d,]*) \|")
ROWS = {
    name: (int(published.replace(",", "") or 0), int(library.replace(",", "") or 0))
    for name, _, published, _, library in _ROW.findall((HERE / "README.md").read_text())
}
VARIANTS = json.loads((HERE / "variants.json").read_text())


def read(name, **more):
    return Models.from_config(SHAPES[name], name=name, **more)


def test_every_model_has_a_row():
    assert set(ROWS) == set(SHAPES)
    assert not set(IN_REGISTRY) & set(ONLY_HERE)
    assert sum(1 for published, _ in ROWS.values() if published) >= 60


def test_parameters_are_the_published_ones_and_exactly_those_of_the_library():
    for name, (published, library) in ROWS.items():
        counted = read(name).si("parameters")
        if published:
            assert counted == pytest.approx(published, rel=0.005), name
        if library:
            assert counted == library, name


def test_switches_count_as_in_the_library():
    for config, count in VARIANTS:
        assert Models.from_config(config).si("parameters") == count, config["model_type"]


def test_every_kind_with_a_class_is_compared():
    """Text models of several kinds have names of their own, which larger files use."""
    outer = {"qwen3_5", "qwen3_5_moe", "qwen2_vl", "qwen2_5_vl", "gemma3", "gemma4", "llama4"}
    outer |= {"deepseek_vl_v2"}
    same = {"qwen2_vl_text", "qwen2_5_vl_text", "qwen3_vl_text", "qwen3_vl_moe_text", "kimi_k2"}
    same |= {"qwen2_5_omni_text", "qwen3_omni_moe_text", "mistral4"}
    own_code = {"chatglm", "baichuan", "exaone", "internlm", "internlm2", "orion", "deepseek"}
    own_code |= {"minimax_text_01", "minimax_m1", "bailing_moe", "bailing_moe_v2"}
    own_code |= {"openelm", "nemotron-nas", "deci", "mamba_ssm", "mamba2_ssm"}
    compared = {config["model_type"] for config, _ in VARIANTS}
    assert set(READERS) - compared == outer | same | own_code | {"mimo", "dbrx"}


# Active parameters as model cards and reports state them.
def test_active_parameters_are_the_published_ones():
    for name, active, near in [
        ("Mixtral-8x7B", 12.9e9, 0.005),
        ("Mixtral-8x22B", 39e9, 0.005),
        ("Qwen3-30B-A3B", 3.3e9, 0.02),
        ("Qwen3-235B-A22B-FP8", 22e9, 0.01),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", 35e9, 0.02),
        ("meta-llama/Llama-4-Maverick-17B-128E-Instruct", 17e9, 0.015),
        ("google/gemma-4-26B-A4B", 3.8e9, 0.01),
        ("DeepSeek-V3", 37e9, 0.02),
        ("deepseek-ai/deepseek-moe-16b-base", 2.8e9, 0.02),
        ("Kimi-K2", 32e9, 0.03),
        # Without the embedding table, which their card leaves out.
        ("openai/gpt-oss-20b", 3.61e9 + 201_088 * 2_880, 0.002),
        ("openai/gpt-oss-120b", 5.13e9 + 201_088 * 2_880, 0.002),
        ("microsoft/Phi-3.5-MoE-instruct", 6.6e9, 0.01),
        ("databricks/dbrx-base", 36e9, 0.02),
        ("ai21labs/Jamba-v0.1", 12e9, 0.01),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 3.6e9, 0.01),
        ("nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", 55e9, 0.02),
        # Without the embedding table, which its paper leaves out.
        ("deepseek-ai/DeepSeek-OCR", 570e6 + 129_280 * 1_280, 0.01),
        ("LiquidAI/LFM2-8B-A1B", 1.5e9, 0.04),
        # Without the table of the input.
        ("moonshotai/Kimi-K3", 104e9 + 163_840 * 7_168, 0.005),
    ]:
        assert read(name).active_parameters.magnitude == pytest.approx(active, rel=near), name


# By hand: layers x keys and values x heads x width, or the short vectors of latent attention, of
# one token in one byte an element.
CACHES = {
    "Llama-3.1-8B": 32 * 2 * 8 * 128,
    "Llama-3.1-405B": 126 * 2 * 8 * 128,
    "Llama-2-7B": 32 * 2 * 32 * 128,
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": 22 * 2 * 4 * 64,
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": 48 * 2 * 8 * 128,
    "Mixtral-8x7B": 32 * 2 * 8 * 128,
    "Qwen/Qwen2-0.5B": 24 * 2 * 2 * 64,
    "Qwen/Qwen3-8B": 36 * 2 * 8 * 128,
    "Qwen3-235B-A22B-FP8": 94 * 2 * 4 * 128,
    "Qwen/Qwen3-Next-80B-A3B-Instruct": 12 * 2 * 2 * 256,
    "Qwen/Qwen3.5-27B": 16 * 2 * 4 * 256,
    "google/gemma-2b": 18 * 2 * 1 * 256,
    "google/gemma-2-27b": 46 * 2 * 16 * 128,
    "google/gemma-4-26B-A4B": 25 * 2 * 8 * 256 + 5 * 2 * 2 * 512,
    "GPT-2": 12 * 2 * 12 * 64,
    "EleutherAI/gpt-neox-20b": 44 * 2 * 64 * 96,
    "openai/gpt-oss-120b": 36 * 2 * 8 * 64,
    "tiiuae/falcon-40b": 60 * 2 * 8 * 64,
    "MPT-7B": 32 * 2 * 32 * 128,
    "databricks/dbrx-base": 40 * 2 * 8 * 128,
    "bigscience/bloom": 70 * 2 * 112 * 128,
    "CohereLabs/c4ai-command-r-v01": 40 * 2 * 64 * 128,
    "DeepSeek-V3": 61 * 576,
    "deepseek-ai/DeepSeek-V2-Lite": 27 * 576,
    "deepseek-ai/DeepSeek-V3.2": 61 * (576 + 128),
    "zai-org/GLM-5": 78 * (576 + 128),
    "Kimi-K2": 61 * 576,
    "MiniMaxAI/MiniMax-M2.5": 62 * 2 * 8 * 128,
    "nvidia/Nemotron-H-56B-Base-8K": 10 * 2 * 8 * 128,
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": 6 * 2 * 2 * 128,
    "ai21labs/Jamba-v0.1": 4 * 2 * 8 * 128,
    "mistralai/Mamba-Codestral-7B-v0.1": 0,
    "THUDM/chatglm3-6b": 28 * 2 * 2 * 128,
    "bigcode/starcoder2-7b": 32 * 2 * 4 * 128,
    "tiiuae/Falcon-H1-7B-Base": 44 * 2 * 2 * 128,
    "moonshotai/Kimi-Linear-48B-A3B-Instruct": 7 * 576,
    "LiquidAI/LFM2-1.2B": 6 * 2 * 8 * 64,
    "LiquidAI/LFM2-8B-A1B": 6 * 2 * 8 * 64,
    "zai-org/GLM-5.2": 78 * 576 + 21 * 128,
    "deepseek-ai/DeepSeek-OCR": 12 * 2 * 10 * 128,
}


def test_caches_by_hand():
    for name, cached in CACHES.items():
        model = read(name)
        for precision, width in (("fp8", 1), ("bf16", 2)):
            found = model.kv_bytes_per_token(precision).to("byte").magnitude
            assert found == cached * width, name


# Layers with a window, its tokens, and the other layers, with the elements that each keeps.
@pytest.mark.parametrize(
    ("name", "near", "window", "far", "each"),
    [
        ("google/gemma-2-9b", 21, 4_096, 21, 2 * 8 * 256),
        ("google/gemma-3-1b-it", 22, 512, 4, 2 * 1 * 256),
        ("openai/gpt-oss-20b", 12, 128, 12, 2 * 8 * 64),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 36, 8_192, 12, 2 * 8 * 128),
        ("mistralai/Mistral-7B-v0.1", 32, 4_096, 0, 2 * 8 * 128),
        ("allenai/Olmo-3.1-32B-Instruct", 48, 4_096, 16, 2 * 8 * 128),
        ("LGAI-EXAONE/EXAONE-4.0-32B", 48, 4_096, 16, 2 * 8 * 128),
    ],
)
def test_windows_bound_the_cache(name, near, window, far, each):
    model = read(name)
    for context in (window - 1, window, 65_536):
        kept = near * min(window, context) + far * context
        assert model.kv_cache_bytes("fp8", context).to("byte").magnitude == kept * each


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        # 36 layers with 32 states of 128 x 128, and 3 tokens of 8,192 channels.
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 36 * (32 * 128 * 128 + 3 * 8_192)),
        # States in four bytes.
        (
            "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16",
            48 * (2 * 256 * 64 * 128 + 3 * (256 * 64 + 2 * 8 * 128)),
        ),
        ("tiiuae/Falcon-H1-7B-Base", 44 * (24 * 128 * 256 + 3 * (24 * 128 + 2 * 256))),
        ("moonshotai/Kimi-Linear-48B-A3B-Instruct", 20 * (32 * 128 * 128 + 3 * 3 * 32 * 128)),
        ("LiquidAI/LFM2-1.2B", 10 * 2 * 2_048),
        ("deepseek-ai/DeepSeek-OCR", 0),
    ],
)
def test_states_by_hand(name, kept):
    assert read(name).state_bytes_per_sequence("bf16").magnitude == 2 * kept


def test_groups_of_experts_that_a_token_visits():
    file = SHAPES["DeepSeek-V3"]
    assert Models.from_config(file).groups[1].feed_forward == (
        Models.DeepSeek_V3.groups[1].feed_forward
    )
    greedy = Models.from_config({**file, "topk_method": "greedy"})
    models = (Models.from_config(file), greedy, Models.from_config({**file, "n_group": None}))
    assert [model.groups[1].feed_forward.most_nodes(8) for model in models] == [4, 8, 8]
    blocks = {group.feed_forward for group in read("deepseek-ai/DeepSeek-V3.2").groups[1:]}
    assert {(block.groups, block.groups_per_token) for block in blocks} == {(8, 4)}
    with pytest.raises(ConfigError, match="topk_group"):
        Models.from_config({**file, "topk_group": None})
    with pytest.raises(ConfigError, match="n_group"):
        Models.from_config({**file, "n_group": 7})


def test_layers_for_more_tokens():
    assert read("DeepSeek-V3").mtp_layers == 1
    assert read("Qwen/Qwen3.5-27B").mtp_layers == 1
    assert read("MiniMaxAI/MiniMax-M2.5").mtp_layers == 3
    assert read("Llama-3.1-8B").mtp_layers == 0
