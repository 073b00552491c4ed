"""A transformer's forward pass from its operators."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsysim import Hardware, Models, ServingSolver, SingleNodeSolver, sweep
from mlsysim.core import formulas as f
from mlsysim.core.errors import ConfigError
from mlsysim.registry.calibration.serving import ServingCalibrations

LIBRARY = ServingCalibrations.Ampere_Library
CALIBRATED = ["A100", "A100_40GB", "H100", "H200", "B200"]
TEXTS = ["BERT_Base", "GPT2", "Llama3_8B", "Llama3_70B", "Mixtral_8x7B"]


def solve(model=Models.Llama3_8B, hardware=Hardware.A100, **arguments):
    return SingleNodeSolver.solve(model=model, hardware=hardware, **arguments)


def seconds(quantity):
    return quantity.to("s").magnitude


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
    r = solve(Models.BERT_Base, batch_size=8, seq_len=128)
    assert seconds(r.latency) == pytest.approx(total(0) + attention + elementwise + overhead)
    assert seconds(r.compute_time) == pytest.approx(total(1) + attention)
    assert seconds(r.memory_time) == pytest.approx(total(2) + elementwise)
    assert seconds(r.overhead_time) == pytest.approx(overhead)
    moved = (total(2) + elementwise) * stream
    assert r.bytes_moved.to("byte").magnitude == pytest.approx(moved)
    assert seconds(r.latency_low) == pytest.approx(c.pass_band_low * seconds(r.latency))
    assert seconds(r.latency_high) == pytest.approx(c.pass_band_high * seconds(r.latency))


@settings(max_examples=40, deadline=None)
@given(
    hardware=st.sampled_from(CALIBRATED),
    model=st.sampled_from(TEXTS),
    batch=st.integers(1, 64),
    seq_len=st.integers(1, 4096),
)
def test_what_holds_for_every_pass(hardware, model, batch, seq_len):
    seq_len = int(min(seq_len, Models[model].positions))
    r = solve(Models[model], Hardware[hardware], batch_size=batch, seq_len=seq_len)
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


@settings(max_examples=20, deadline=None)
@given(batch=st.integers(1, 256), factor=st.floats(1.01, 100))
def test_a_faster_memory_never_slows_a_pass(batch, factor):
    device = Hardware.A100
    memory = dataclasses.replace(device.memory, bandwidth=device.memory.bandwidth * factor)
    faster = dataclasses.replace(device, memory=memory)
    assert (
        solve(hardware=faster, batch_size=batch, seq_len=64).latency
        <= solve(hardware=device, batch_size=batch, seq_len=64).latency
    )


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


def test_fixed_times_dominate_a_tiny_pass():
    tiny = dataclasses.replace(
        Models.BERT_Base,
        hidden_dim=64,
        heads=1,
        kv_heads=1,
        ffn_dim=64,
        vocab_size=100,
        parameters=None,
    )
    r = solve(tiny, seq_len=8)
    assert r.bottleneck == "overhead"
    assert seconds(r.latency) == pytest.approx(seconds(r.overhead_time), rel=0.01)


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
        assert solve(seq_len=512)[name] == solve(seq_len=512, efficiency=0.5)[name]


def test_experts_count_as_often_as_they_are_visited():
    model = Models.Mixtral_8x7B
    active = solve(model, Hardware.H200, seq_len=1).flops.to("flop").magnitude
    ffn = 32 * 3 * model.hidden_dim * model.expert_ffn_dim * model.experts_per_token
    attention = 32 * 2 * 4096 * 128 * 40
    logits = 32_000 * 4096
    scores = 4 * 32 * 4096 / 2
    assert active == pytest.approx(2 * (ffn + attention + logits) + scores)


@pytest.mark.parametrize("hardware", ["T4", "MI300X", "iPhone_15_Pro"])
def test_a_device_without_constants_says_so(hardware):
    device = Hardware[hardware]
    r = solve(Models.BERT_Base, device, precision=device.compute.default_precision)
    assert r.calibration.startswith("Uncalibrated")
    assert r.latency_low is r.latency_high is None


def test_too_few_passes_make_no_band():
    r = solve(hardware=Hardware.H100)
    assert r.calibration == "Hopper, called as a library (no band: too few passes measured)"
    assert r.latency_low is None


def test_a_fixed_shape_has_no_operators():
    r, textbook = solve(Models.ResNet50), solve(Models.ResNet50, efficiency=0.5)
    assert r.calibration.startswith("not validated")
    assert r.latency_low is textbook.overhead_time is None
    time = textbook.latency + r.overhead_time
    assert r.latency.to("us").magnitude == pytest.approx(time.to("us").magnitude)
    with pytest.raises(ConfigError, match=r"calibration .* ResNet-50.* leave it out"):
        solve(Models.ResNet50, calibration=LIBRARY)


def test_a_share_is_the_textbooks_roofline():
    r = solve(efficiency=0.5)
    assert r.calibration == "textbook: one efficiency"
    assert r.overhead_time is None
    assert r.latency == max(r.compute_time, r.memory_time)


def test_a_device_without_a_librarys_constants_takes_its_servers():
    r = solve(hardware=Hardware.B200, precision="fp8")
    assert r.calibration.startswith(ServingCalibrations.Blackwell_TensorRT.name)
    assert r.latency_low is None, "the band of a loaded server is none of a pass"
