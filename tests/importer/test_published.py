"""Parameters and caches of published models: see README.md for where each is from."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mlsysim import Models
from mlsysim.registry.importer.readers import READERS

HERE = Path(__file__).parent
SHAPES = json.loads((HERE / "shapes.json").read_text())
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
    assert sum(1 for published, _ in ROWS.values() if published) >= 60


@pytest.mark.parametrize("name", [name for name, (published, _) in ROWS.items() if published])
def test_parameters_are_the_published_ones(name):
    assert read(name).si("parameters") == pytest.approx(ROWS[name][0], rel=0.005)


@pytest.mark.parametrize("name", [name for name, (_, library) in ROWS.items() if library])
def test_parameters_are_exactly_those_of_the_library(name):
    assert read(name).si("parameters") == ROWS[name][1]


@pytest.mark.parametrize("at", range(len(VARIANTS)), ids=lambda at: VARIANTS[at][0]["model_type"])
def test_switches_count_as_in_the_library(at):
    config, count = VARIANTS[at]
    assert Models.from_config(config).si("parameters") == count


def test_every_kind_with_a_class_is_compared():
    """Text models of several kinds have names of their own, which larger files use."""
    outer = {"qwen3_5", "qwen3_5_moe", "qwen2_vl", "qwen2_5_vl", "gemma3", "gemma4", "llama4"}
    same = {"qwen2_vl_text", "qwen2_5_vl_text", "qwen3_vl_text", "qwen3_vl_moe_text", "kimi_k2"}
    own_code = {"chatglm", "baichuan", "exaone", "internlm", "internlm2", "orion", "deepseek"}
    compared = {config["model_type"] for config, _ in VARIANTS}
    assert set(READERS) - compared == outer | same | own_code | {"mimo", "dbrx"}


# Active parameters as model cards and reports state them.
@pytest.mark.parametrize(
    ("name", "active", "near"),
    [
        ("Mixtral-8x7B", 12.9e9, 0.005),
        ("Mixtral-8x22B", 39e9, 0.005),
        ("Qwen3-30B-A3B", 3.3e9, 0.02),
        ("Qwen3-235B-A22B-FP8", 22e9, 0.01),
        ("Qwen3-Coder-480B-A35B", 35e9, 0.02),
        ("Llama-4-Maverick", 17e9, 0.015),
        ("Gemma-4-26B-A4B", 3.8e9, 0.01),
        ("DeepSeek-V3", 37e9, 0.02),
        ("DeepSeek-MoE-16B", 2.8e9, 0.02),
        ("Kimi-K2", 32e9, 0.03),
        ("Phi-3.5-MoE", 6.6e9, 0.01),
        ("DBRX", 36e9, 0.02),
        ("Jamba-v0.1", 12e9, 0.01),
        ("Nemotron-3-Nano", 3.6e9, 0.01),
        ("Nemotron-3-Ultra", 55e9, 0.02),
    ],
)
def test_active_parameters_are_the_published_ones(name, active, near):
    assert read(name).active_parameters.magnitude == pytest.approx(active, rel=near)


# By hand: layers x keys and values x heads x width, or the short vectors of latent attention, of
# one token in one byte an element.
CACHES = {
    "Llama-3.1-8B": 32 * 2 * 8 * 128,
    "Llama-3.1-405B": 126 * 2 * 8 * 128,
    "Llama-2-7B": 32 * 2 * 32 * 128,
    "TinyLlama-1.1B": 22 * 2 * 4 * 64,
    "Llama-4-Scout": 48 * 2 * 8 * 128,
    "Mixtral-8x7B": 32 * 2 * 8 * 128,
    "Qwen2-0.5B": 24 * 2 * 2 * 64,
    "Qwen3-8B": 36 * 2 * 8 * 128,
    "Qwen3-235B-A22B-FP8": 94 * 2 * 4 * 128,
    "Qwen3-Next-80B-A3B": 12 * 2 * 2 * 256,
    "Qwen3.5-27B": 16 * 2 * 4 * 256,
    "Gemma-2B": 18 * 2 * 1 * 256,
    "Gemma-2-27B": 46 * 2 * 16 * 128,
    "Gemma-4-26B-A4B": 25 * 2 * 8 * 256 + 5 * 2 * 2 * 512,
    "GPT-2": 12 * 2 * 12 * 64,
    "GPT-NeoX-20B": 44 * 2 * 64 * 96,
    "gpt-oss-120b": 36 * 2 * 8 * 64,
    "Falcon-40B": 60 * 2 * 8 * 64,
    "MPT-7B": 32 * 2 * 32 * 128,
    "DBRX": 40 * 2 * 8 * 128,
    "BLOOM-176B": 70 * 2 * 112 * 128,
    "Command-R": 40 * 2 * 64 * 128,
    "DeepSeek-V3": 61 * 576,
    "DeepSeek-V2-Lite": 27 * 576,
    "DeepSeek-V3.2": 61 * (576 + 128),
    "GLM-5": 78 * (576 + 128),
    "Kimi-K2": 61 * 576,
    "MiniMax-M2.5": 62 * 2 * 8 * 128,
    "Nemotron-H-56B": 10 * 2 * 8 * 128,
    "Nemotron-3-Nano": 6 * 2 * 2 * 128,
    "Jamba-v0.1": 4 * 2 * 8 * 128,
    "Codestral-Mamba-7B": 0,
    "ChatGLM3-6B": 28 * 2 * 2 * 128,
    "StarCoder2-7B": 32 * 2 * 4 * 128,
}


@pytest.mark.parametrize("name", CACHES)
def test_caches_by_hand(name):
    model = read(name)
    for precision, width in (("fp8", 1), ("bf16", 2)):
        found = model.kv_bytes_per_token(precision).to("byte").magnitude
        assert found == CACHES[name] * width


# Layers with a window, its tokens, and the other layers, with the elements that each keeps.
@pytest.mark.parametrize(
    ("name", "near", "window", "far", "each"),
    [
        ("Gemma-2-9B", 21, 4_096, 21, 2 * 8 * 256),
        ("Gemma-3-1B", 22, 512, 4, 2 * 1 * 256),
        ("gpt-oss-20b", 12, 128, 12, 2 * 8 * 64),
        ("Llama-4-Scout", 36, 8_192, 12, 2 * 8 * 128),
        ("Mistral-7B-v0.1", 32, 4_096, 0, 2 * 8 * 128),
        ("Olmo-3.1-32B", 48, 4_096, 16, 2 * 8 * 128),
        ("EXAONE-4.0-32B", 48, 4_096, 16, 2 * 8 * 128),
    ],
)
def test_windows_bound_the_cache(name, near, window, far, each):
    model = read(name)
    for context in (window - 1, window, 65_536):
        kept = near * min(window, context) + far * context
        assert model.kv_cache_bytes("fp8", context).to("byte").magnitude == kept * each


def test_states_of_linear_layers():
    """Qwen3-Next: 36 layers with 32 states of 128 x 128, and 3 tokens of 8,192 channels."""
    kept = 36 * (32 * 128 * 128 + 3 * 8_192)
    model = read("Qwen3-Next-80B-A3B")
    assert model.state_bytes_per_sequence("bf16").magnitude == 2 * kept
    mixed = read("Nemotron-3-Ultra").state_bytes_per_sequence("bf16").magnitude
    assert mixed == 48 * (4 * 256 * 64 * 128 + 2 * 3 * (256 * 64 + 2 * 8 * 128))


def test_layers_for_more_tokens():
    assert read("DeepSeek-V3").mtp_layers == 1
    assert read("Qwen3.5-27B").mtp_layers == 1
    assert read("MiniMax-M2.5").mtp_layers == 3
    assert read("Llama-3.1-8B").mtp_layers == 0
