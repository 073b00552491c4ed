"""Models for which a row gives only a name: variants of known models, and sizes."""

import pytest

from mlsysim import Models
from research.readers.sizes import model_or_estimate, of_size, stated_size, variant_of
from research.rows import Row, Skip


@pytest.mark.parametrize(
    ("label", "key"),
    [
        ("unsloth/gemma-4-26B-A4B-it-qat-GGUF", "Gemma4_26B_A4B"),
        ("ArliAI_Qwen3.5-27B-RpRMax-v1-Q4_K_M.gguf", "Qwen3_5_27B"),
        ("qwen3.6:35b-mlx", "Qwen3_5_35B_A3B"),
        ("hf.co/unsloth/Mistral-Small-3.2-24B-Instruct-2506-GGUF:Q4_K_M", "Mistral_Small_24B"),
        ("bekoozkan/godot-qwen2.5-coder-7b-instruct-bnb-4bit", "Qwen2_5_7B"),
    ],
)
def test_a_name_that_contains_a_known_one_with_its_size_is_a_variant(label, key):
    assert variant_of(label) is Models[key]


@pytest.mark.parametrize(
    "label", ["Qwen3-32B-Pruned", "Qwen3-31B", "DeepSeek-R1-anything", "", "27B", "Qwen3.5", "a-3b"]
)
def test_other_names_are_no_variants(label):
    assert variant_of(label) is None


@pytest.mark.parametrize(
    ("cells", "total", "active"),
    [
        ({"model": "org/Foo-30B-A3B-it"}, 30e9, 3e9),
        ({"model": "SmallThinker-4BA0.6B-Instruct.Q4_K_M.gguf"}, 4e9, 0.6e9),
        ({"model": "granite-3.1-3b-a800m-instruct"}, 3e9, 0.8e9),
        ({"model": "Foo-350M"}, 350e6, 350e6),
        ({"model": "gemma-4-E4B-it", "params_b": "8"}, 4e9, 4e9),
        # A million tokens of context are no parameters.
        ({"model": "Foo-9B-1M"}, 9e9, 9e9),
        ({"model": "Foo-1M", "params_b": "12", "active_b": "2"}, 12e9, 2e9),
        # A name that rounds its size down by a third.
        ({"model": "granite-4.0-1b-Q4_K_M.gguf"}, 1.63e9, 1.63e9),
        ({"model": "laguna-xs-2.1:nvfp4"}, 33e9, 3e9),
    ],
)
def test_sizes_in_names_and_columns(cells, total, active):
    assert stated_size(Row(cells)) == pytest.approx((total, active))


@pytest.mark.parametrize("total", [0.1e9, 0.35e9, 1.2e9, 3e9, 9e9, 14e9, 24e9, 34e9, 70e9, 90e9])
def test_a_dense_estimate_has_its_size(total):
    model = of_size(total, total)
    assert model.si("parameters") == pytest.approx(total, rel=0.01)
    assert model.active_parameters.to("param").magnitude == pytest.approx(total, rel=0.01)


@pytest.mark.parametrize(
    ("total", "active"), [(8e9, 1e9), (12e9, 2.5e9), (30e9, 3e9), (106e9, 12e9), (480e9, 35e9)]
)
def test_a_mixture_has_its_size_and_about_its_active_part(total, active):
    model = of_size(total, active)
    assert model.si("parameters") == pytest.approx(total, rel=0.03)
    # Whole layers, and embeddings that do not shrink with them.
    assert model.active_parameters.to("param").magnitude == pytest.approx(active, rel=0.5)


def test_sizes_that_say_too_little_are_refused():
    for cells in ({"model": "Foo"}, {"model": "Foo-300B"}, {"model": "Foo-27B-Pruned"}):
        with pytest.raises(Skip):
            model_or_estimate(Row(cells))


@pytest.mark.parametrize(
    ("label", "name", "layers", "effective"),
    [
        # The model cards state 2.3B and 4.5B effective parameters.
        ("google/gemma-4-E2B-it", "Gemma 4 E2B", 35, 2.3e9),
        ("gemma-4-E4B-it-QAT-Q4_0.gguf", "Gemma 4 E4B", 42, 4.5e9),
        ("gemma4:e4b-mlx", "Gemma 4 E4B", 42, 4.5e9),
    ],
)
def test_of_models_that_are_mostly_tables_the_part_in_use_counts(label, name, layers, effective):
    model, assumed = model_or_estimate(Row({"model": label}))
    assert (model.name, model.layers) == (name, layers)
    assert model.si("parameters") == pytest.approx(effective, rel=0.03)
    # One layer in five or six attends to all tokens, with heads twice as wide.
    full = [g for g in model.groups if g.attention.reach is None]
    assert sum(g.count for g in full) == 7
    assert all(g.attention.head_dim == 512 for g in full)
    assert assumed == f"shape of {name}"


def test_of_two_models_of_one_size_one_is_dense():
    mixture, _ = model_or_estimate(Row({"model": "Someone_Finetune-36B"}))
    dense, _ = model_or_estimate(Row({"model": "ByteDance-Seed/Seed-OSS-36B-Instruct"}))
    assert mixture is Models.Qwen3_5_35B_A3B
    assert dense.active_parameters.to("param").magnitude == pytest.approx(36e9, rel=0.01)


@pytest.mark.parametrize(
    ("label", "key"),
    [
        ("deepseek-r1:7b", "Qwen2_5_7B"),
        ("deepseek-coder-v2:16b", "DeepSeek_V2_Lite"),
        ("qwen3-vl:30b", "Qwen3_30B_A3B"),
        ("Qwen3-VL-30B-A3B-Instruct", "Qwen3_30B_A3B"),
        ("command-r:35b", "Command_R"),
        ("glm-4.7-flash:latest", "GLM_4_7_Flash"),
    ],
)
def test_tags_of_ollama_name_a_known_shape(label, key):
    assert model_or_estimate(Row({"model": label})) == (Models[key], "")


def test_a_known_model_has_nothing_assumed():
    assert model_or_estimate(Row({"model": "Qwen3-8B"})) == (Models.Qwen3_8B, "")
    model, assumed = model_or_estimate(Row({"model": "Qwen3-9B"}))
    assert assumed == f"shape estimated from its size: {model.name}"
    assert model.source.title.startswith("Estimated")
