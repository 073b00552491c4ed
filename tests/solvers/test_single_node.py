"""One forward pass on one device."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsysim import (
    Q_,
    Engine,
    Hardware,
    Models,
    PowerCalibrations,
    SingleNodeModel,
    SingleNodeSolver,
)

CLOUD = [name for name in Hardware.Cloud.names() if "fp16" in Hardware[name].compute.precisions]


def solve(model=Models.ResNet50, hardware=Hardware.A100, **arguments):
    return SingleNodeSolver.solve(model=model, hardware=hardware, **arguments)


def ms(quantity):
    return quantity.to("ms").magnitude


def test_all_three_names():
    assert Engine is SingleNodeModel is SingleNodeSolver
    assert dict(Engine().solve(model=Models.ResNet50, hardware=Hardware.A100)) == dict(solve())


def test_resnet_by_hand():
    model = Models.ResNet50
    r = solve(batch_size=32, efficiency=0.4)
    flops = 32 * model.flops_per_sample.to("flop").magnitude
    assert ms(r.compute_time) == pytest.approx(1e3 * flops / (0.4 * 312e12))
    written = 32 * model.activations_per_sample.to("").magnitude
    traffic = 2 * (model.parameters.to("").magnitude + 2 * written)
    assert ms(r.memory_time) == pytest.approx(1e3 * traffic / 2039e9)
    assert r.mbu == pytest.approx(traffic / 2039e9 / r.latency.to("s").magnitude)
    c = PowerCalibrations.Ampere
    share = c.constant_share + c.compute_share * 0.4 + c.memory_share * r.mbu
    expected = 400 * min(1, share) * r.latency.to("s").magnitude
    assert r.energy.to("J").magnitude == pytest.approx(expected)


def test_transformer_by_hand():
    model = Models.Llama3_8B
    r = solve(model, Hardware.H100, batch_size=4, seq_len=1024, efficiency=0.5)
    weights = 32 * (2 * 4096 * 128 * 40 + 3 * 4096 * 14_336) + 128_256 * 4096
    flops = 4 * 1024 * (2 * weights + 4 * 32 * 4096 * 1024 / 2)
    assert r.flops.to("flop").magnitude == pytest.approx(flops)
    kv_cache = 4 * 1024 * 2 * 32 * 8 * 128 * 2
    memory = 2 * model.parameters.to("param").magnitude + kv_cache
    assert r.memory.to("byte").magnitude == pytest.approx(memory)
    assert r.bytes_moved == r.memory
    assert ms(r.latency) == pytest.approx(1e3 * flops / (0.5 * 989.4e12))


@settings(max_examples=40)
@given(
    hardware=st.sampled_from(CLOUD),
    model=st.sampled_from(["ResNet50", "MobileNetV2", "DLRM", "BERT_Base", "Llama3_8B"]),
    batch=st.integers(1, 512),
    efficiency=st.floats(0.05, 1),
)
def test_what_holds_for_every_pass(hardware, model, batch, efficiency):
    r = solve(Models[model], Hardware[hardware], batch_size=batch, efficiency=efficiency)
    assert r.latency == max(r.compute_time, r.memory_time)
    assert r.bottleneck == ("compute" if r.compute_time >= r.memory_time else "memory")
    assert (r.arithmetic_intensity >= r.ridge_point) == (r.bottleneck == "compute")
    assert 0 < r.mfu <= efficiency * (1 + 1e-12)
    assert (r.bottleneck == "compute") == (r.mfu >= efficiency * (1 - 1e-12))
    images = r.throughput * r.latency
    assert images.to("sample").magnitude == pytest.approx(batch)
    assert r.feasible == (r.memory <= r.memory_capacity) == (not r.reasons)


@settings(max_examples=40)
@given(batch=st.integers(1, 4096), factor=st.floats(1.01, 100))
def test_a_faster_memory_never_slows_a_pass(batch, factor):
    device = Hardware.A100
    bandwidth = device.memory.bandwidth * factor
    faster = dataclasses.replace(
        device, memory=dataclasses.replace(device.memory, bandwidth=bandwidth)
    )
    slow, fast = (solve(Models.DLRM, hw, batch_size=batch) for hw in (device, faster))
    assert fast.latency <= slow.latency
    assert fast.compute_time == slow.compute_time


def test_larger_batches_move_from_memory_to_compute():
    small, large = (solve(Models.BERT_Base, seq_len=n, efficiency=0.5) for n in (1, 512))
    assert small.bottleneck == "memory"
    assert large.bottleneck == "compute"


def test_the_roof_is_the_datasheets():
    assert solve(efficiency=1.0).ridge_point.to("flop/byte").magnitude == pytest.approx(
        312 / 2.039, rel=1e-12
    )


def test_defaults():
    model = Models.BERT_Base
    assert dict(solve(model)) == dict(
        solve(model, batch_size=1, precision="fp16", seq_len=model.seq_len)
    )


def test_a_model_that_does_not_fit_is_reported():
    r = solve(Models.Llama3_70B, Hardware.H100)
    assert not r.feasible
    assert r.latency.magnitude > 0
    lack = (r.memory - r.memory_capacity).to("GB").magnitude
    (reason,) = r.reasons
    for part in (Models.Llama3_70B.name, Hardware.H100.name, f"{lack:.4g} GB more", "precision"):
        assert part in reason


def test_a_narrower_precision_makes_it_fit():
    assert solve(Models.Llama3_70B, Hardware.H200, precision="fp8").feasible
    assert not solve(Models.Llama3_70B, Hardware.H100, precision="fp16").feasible


def test_unknown_power_leaves_the_energy_unknown():
    r = solve(hardware=dataclasses.replace(Hardware.A100, tdp=None))
    assert (r.energy, r.device_power, r.power_utilization) == (None, None, None)
    assert r.latency == solve().latency
    assert "energy" in r
    assert "not known" in str(r)


def test_dimensions_print_as_the_first_edition_printed_them():
    r = solve(batch_size=32)
    assert f"{r.latency.to('ms'):~.2f}".endswith(" ms")
    assert f"{Hardware.A100.compute.peak_flops.to('TFLOPs/s'):.0f}" == "312 TFLOP/s"
    assert Hardware.A100.memory.capacity == Q_(80, "GB")


@pytest.mark.parametrize("model", [Models.Mixtral_8x7B, Models.DeepSeek_V3])
def test_the_textbook_counts_the_experts_that_tokens_visit(model):
    """A token of Mixtral meets two of eight experts; one token's pass reads no more than those."""
    given = {"model": model, "hardware": Hardware.H200, "seq_len": 1}
    textbook = SingleNodeSolver.solve(**given, efficiency=0.5)
    assert textbook.flops == SingleNodeSolver.solve(**given).flops
    shape = model.moe_layers * 3 * model.hidden_dim * model.expert_ffn_dim
    idle = shape * (model.experts - model.experts_per_token)
    stored = model.parameters.to("param").magnitude
    # DeepSeek-V3 keeps 512 numbers, and the 64 that tell the position.
    kv_cache = 2 * model.layers * (576 if model.latent else 2 * model.kv_heads * model.head_dim)
    assert textbook.bytes_moved.to("byte").magnitude == pytest.approx(
        2 * (stored - idle) + kv_cache
    )
