"""Weights and caches of served models against sizes that were published."""

from __future__ import annotations

import dataclasses

import pytest

from mlsysim import Hardware, Models, ServingSolver, Systems

CHECKPOINTS = {
    # "total_size" of model.safetensors.index.json
    "Llama3_8B": 16_060_522_496,
    "Llama3_70B": 141_107_412_992,
    # less the rotary frequencies that this checkpoint stores: 80 layers x 64 x 4 bytes
    "Llama2_70B": 137_953_316_864 - 80 * 64 * 4,
}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_weights_are_those_of_the_published_checkpoint(name: str) -> None:
    found = ServingSolver.solve(model=Models[name], hardware=Hardware.H100, precision="bf16")
    assert found.model_weights_size.to("byte").magnitude == CHECKPOINTS[name]


def test_keys_and_values_of_opt_13b() -> None:
    """Kwon et al. (2023), section 3: 2 x 5120 x 40 x 2 bytes, 800 KB for a token."""
    model = dataclasses.replace(
        Models.GPT3,
        name="OPT-13B",
        layers=40,
        hidden_dim=5120,
        heads=40,
        kv_heads=40,
        ffn_dim=20_480,
        parameters=None,
    )
    assert model.parameters.to("Gparam").magnitude == pytest.approx(13, rel=0.02)
    found = ServingSolver.solve(model=model, hardware=Hardware.A100, seq_len=1)
    assert found.kv_cache_size.to("KiB").magnitude == 800


def test_keys_and_values_of_a_70b_model_on_eight_gpus() -> None:
    """16K tokens of a Llama 70B are 5 GiB, and 640 MiB on each of eight GPUs."""
    found = ServingSolver.solve(
        model=Models.Llama3_70B,
        hardware=Systems.Nodes.DGX_H100,
        seq_len=16_384,
        tp_size=8,
        efficiency=0.5,
    )
    assert found.kv_cache_size.to("GiB").magnitude == 5
    weights = found.model_weights_size / 8
    each = found.total_memory_required.to("byte") - weights.to("byte")
    assert each.to("MiB").magnitude == pytest.approx(640, abs=1e-6)
