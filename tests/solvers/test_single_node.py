"""One forward pass on one device, from its totals and from its operators."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsysim import (
    Engine,
    Hardware,
    Models,
    PowerCalibrations,
    ServingSolver,
    SingleNodeModel,
    SingleNodeSolver,
    sweep,
)
from mlsysim.core import formulas as f
from mlsysim.core.errors import ConfigError
from mlsysim.registry.calibration.serving import ServingCalibrations
from tests.samples import ms, seconds

CLOUD = [name for name in Hardware.Cloud.names() if "fp16" in Hardware[name].compute.precisions]


def solve(model=Models.ResNet50, hardware=Hardware.A100, **arguments):
    return SingleNodeSolver.solve(model=model, hardware=hardware, **arguments)


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


@settings(max_examples=40, deadline=None)
@given(batch=st.integers(1, 4096), factor=st.floats(1.01, 100))
def test_a_faster_memory_never_slows_a_pass(batch, factor):
    device = Hardware.A100
    bandwidth = device.memory.bandwidth * factor
    faster = dataclasses.replace(
        device, memory=dataclasses.replace(device.memory, bandwidth=bandwidth)
    )
    for model, more in ((Models.DLRM, {}), (Models.Llama3_8B, {"seq_len": 64})):
        slow, fast = (solve(model, hw, batch_size=batch, **more) for hw in (device, faster))
        assert fast.latency <= slow.latency
        assert fast.compute_time == slow.compute_time


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


def test_unknown_power_leaves_the_energy_unknown():
    r = solve(hardware=dataclasses.replace(Hardware.A100, tdp=None))
    assert (r.energy, r.device_power, r.power_utilization) == (None, None, None)
    assert r.latency == solve().latency
    assert "energy" in r
    assert "not known" in str(r)


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


# A transformer's pass from its operators

LIBRARY = ServingCalibrations.Ampere_Library
CALIBRATED = ["A100", "A100_40GB", "H100", "H200", "B200"]
TEXTS = ["BERT_Base", "GPT2", "Llama3_8B", "Llama3_70B", "Mixtral_8x7B"]


def timed(model=Models.Llama3_8B, hardware=Hardware.A100, **arguments):
    return SingleNodeSolver.solve(model=model, hardware=hardware, **arguments)


def test_bert_by_hand():
    """Every operator of twelve equal layers, written out."""
    c, tokens = LIBRARY, 8 * 128
    rate = c.gemm_efficiency * 312e12
    stream = c.memory_efficiency * 2039e9

    def product(inner, columns):
        work = 2 * tokens * inner * columns / rate
        traffic = 2 * (inner * columns + tokens * (inner + columns)) / stream
        return max(work, traffic), work, traffic

    def total(part):
        shapes = ((768, 3 * 768), (768, 768), (768, 3072), (3072, 768))
        layer = sum(product(*shape)[part] for shape in shapes)
        return 12 * layer + product(768, 30_522)[part]

    attention = 12 * 4 * tokens * 128 * 768 / (c.attention_efficiency * 312e12)
    elementwise = 12 * tokens * (24 * 768 + 3 * 3072) / stream
    overhead = 12 * c.prompt_overhead.to("s").magnitude
    r = timed(Models.BERT_Base, batch_size=8, seq_len=128)
    assert seconds(r.latency) == pytest.approx(total(0) + attention + elementwise + overhead)
    assert seconds(r.compute_time) == pytest.approx(total(1) + attention)
    assert seconds(r.memory_time) == pytest.approx(total(2) + elementwise)
    assert seconds(r.overhead_time) == pytest.approx(overhead)
    moved = (total(2) + elementwise) * stream
    assert r.bytes_moved.to("byte").magnitude == pytest.approx(moved)
    assert seconds(r.latency_low) == pytest.approx(c.pass_band.low * seconds(r.latency))
    assert seconds(r.latency_high) == pytest.approx(c.pass_band.high * seconds(r.latency))


@settings(max_examples=40, deadline=None)
@given(
    hardware=st.sampled_from(CALIBRATED),
    model=st.sampled_from(TEXTS),
    batch=st.integers(1, 64),
    seq_len=st.integers(1, 4096),
)
def test_what_holds_for_every_pass_by_operators(hardware, model, batch, seq_len):
    seq_len = int(min(seq_len, Models[model].positions))
    r = timed(Models[model], Hardware[hardware], batch_size=batch, seq_len=seq_len)
    longest = max(seconds(r.compute_time), seconds(r.memory_time))
    parts = [seconds(r[part]) for part in ("compute_time", "memory_time", "overhead_time")]
    assert longest + parts[2] <= seconds(r.latency) * (1 + 1e-12)
    assert seconds(r.latency) <= sum(parts) * (1 + 1e-12)
    names = ("compute", "memory", "overhead")
    assert parts[names.index(r.bottleneck)] == max(parts)
    assert 0 < r.mfu < 1
    reached = (r.flops / r.latency).to("flop/s").magnitude
    roof = (r.arithmetic_intensity * Hardware[hardware].memory.bandwidth).to("flop/s").magnitude
    assert reached <= roof * (1 + 1e-12), "a pass above the roofline"


def test_time_per_sequence_converges_from_above():
    """The weights and the fixed times are shared by ever more sequences."""
    table = sweep(
        SingleNodeSolver,
        model=Models.BERT_Base,
        hardware=Hardware.A100,
        seq_len=128,
        batch_size=[2**k for k in range(20)],
    )
    each = table["latency"].to("s").magnitude / table["batch_size"]
    assert (np.diff(each) <= 0).all()
    assert each[-1] == pytest.approx(each[-2], rel=1e-4)
    assert each[0] > 4 * each[-1]


@pytest.mark.parametrize("seq_len", [1, 128, 4096])
def test_the_pass_is_a_servers_prefill_and_all_logits(seq_len):
    """With the same constants the two differ by the logits of all tokens but the last."""
    given = {
        "model": Models.Llama3_8B,
        "hardware": Hardware.A100,
        "seq_len": seq_len,
        "calibration": LIBRARY,
    }
    one = SingleNodeSolver.solve(**given)
    server = ServingSolver.solve(**given)

    def logits(rows):
        rate, stream = LIBRARY.gemm_efficiency * 312e12, LIBRARY.memory_efficiency * 2039e9
        return f.roofline_time(
            f.gemm_compute_time(rows, 4096, 128_256, rate, 2),
            f.gemm_memory_time(rows, 4096, 128_256, 1, stream, 2, 2),
        )

    more = logits(seq_len) - logits(1)
    assert seconds(one.latency) == pytest.approx(seconds(server.prefill_latency) + more)
    # A server also keeps a workspace, and a share of the rest free.
    workspace = f.pass_workspace(LIBRARY.pass_tokens, 4096, 10_240, 3 * 14_336, 1, 2)
    cache = server.kv_cache_size.to("byte").magnitude
    held = server.total_memory_required.to("byte").magnitude - workspace
    assert one.memory.to("byte").magnitude == pytest.approx(
        held - cache * (1 / LIBRARY.kv_share - 1)
    )


def test_operations_do_not_depend_on_how_they_are_timed():
    for name in ("flops", "memory", "feasible"):
        assert timed(seq_len=512)[name] == timed(seq_len=512, efficiency=0.5)[name]


def test_experts_count_as_often_as_they_are_visited():
    model = Models.Mixtral_8x7B
    active = timed(model, Hardware.H200, seq_len=1).flops.to("flop").magnitude
    ffn = 32 * 3 * model.hidden_dim * model.expert_ffn_dim * model.experts_per_token
    attention = 32 * 2 * 4096 * 128 * 40
    logits = 32_000 * 4096
    scores = 4 * 32 * 4096 / 2
    assert active == pytest.approx(2 * (ffn + attention + logits) + scores)


@pytest.mark.parametrize("hardware", ["T4", "MI300X", "iPhone_15_Pro"])
def test_a_device_without_constants_says_so(hardware):
    device = Hardware[hardware]
    r = timed(Models.BERT_Base, device, precision=device.compute.default_precision)
    assert r.calibration.startswith("Uncalibrated")
    assert r.latency_low is r.latency_high is None


def test_too_few_passes_make_no_band():
    r = timed(hardware=Hardware.H100)
    assert r.calibration == "Hopper, called as a library (no band: too few passes measured)"
    assert r.latency_low is None


def test_constants_of_one_run_of_a_network_make_no_band():
    network = next(m for m in Models if m.name == "MobileNetV1 0.25")
    r = timed(network, Hardware.ESP32_S3, precision="int8")
    assert r.calibration == "Xtensa LX7, ESP-NN, int8 (no band: too few passes measured)"
    assert r.latency_low is None


def test_a_fixed_shape_has_no_operators():
    r, textbook = timed(Models.ResNet50), timed(Models.ResNet50, efficiency=0.5)
    assert r.calibration.startswith("not validated")
    assert r.latency_low is textbook.overhead_time is None
    time = textbook.latency + r.overhead_time
    assert r.latency.to("us").magnitude == pytest.approx(time.to("us").magnitude)
    with pytest.raises(ConfigError, match=r"calibration .* ResNet-50.* leave it out"):
        timed(Models.ResNet50, calibration=LIBRARY)


def test_a_share_is_the_textbooks_roofline():
    r = timed(efficiency=0.5)
    assert r.calibration == "textbook: one efficiency"
    assert r.overhead_time is None
    assert r.latency == max(r.compute_time, r.memory_time)


def test_a_device_without_a_librarys_constants_takes_its_servers():
    r = timed(hardware=Hardware.B200, precision="fp8")
    assert r.calibration.startswith(ServingCalibrations.Blackwell_TensorRT.name)
    assert r.latency_low is None, "the band of a loaded server is none of a pass"
