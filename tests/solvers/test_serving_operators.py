"""Serving timed operator by operator: limits, directions, and the work that is shown."""

from dataclasses import replace

import pytest

from mlsysim import Hardware, Models, ServingSolver, Systems
from mlsysim.core.units import Q_
from mlsysim.registry.calibration.serving import ServingCalibrations, serving_calibration_for

MODEL = Models.Llama3_70B
LOAD = {
    "model": MODEL,
    "hardware": Systems.Nodes.DGX_H100,
    "precision": "fp8",
    "tp_size": 4,
    "seq_len": 1024,
    "output_len": 512,
    "batch_size": 32,
}
TIMES = ("ttft", "itl", "latency", "prefill_latency", "decode_latency")
# An engine that loses nothing: what remains is arithmetic and bytes.
IDEAL = replace(
    ServingCalibrations.Uncalibrated,
    gemm_efficiency=1.0,
    gemm_efficiency_fp8=1.0,
    attention_efficiency=1.0,
    memory_efficiency=1.0,
    kv_efficiency=1.0,
    link_efficiency=1.0,
    layer_overhead=Q_(0, "us"),
    all_reduce_overhead=Q_(0, "us"),
    prompt_overhead=Q_(0, "us"),
    sequence_overhead=Q_(0, "us"),
    draft_overhead=Q_(0, "us"),
    compile_time=Q_(0, "s"),
    admission_steps=0.0,
    request_overhead=Q_(0, "ms"),
    expert_efficiency=1.0,
    expert_efficiency_fp4=1.0,
    expert_memory=1.0,
    expert_tile=0.0,
    expert_overhead=0.0,
    expert_overhead_fp4=0.0,
    attention_overhead=0.0,
    exchange_overhead=Q_(0, "us"),
    unpacking=1.0,
)


def solve(**changes):
    return ServingSolver.solve(**LOAD | changes)


def seconds(result, field):
    return result[field].to("s").magnitude


def overhead():
    return serving_calibration_for(Hardware.H100).request_overhead.to("s").magnitude


# Limits


def test_one_client_meets_no_other():
    r = solve(batch_size=1)
    assert seconds(r, "itl") == pytest.approx(seconds(r, "decode_latency"), rel=1e-12)
    first = seconds(r, "prefill_latency") + overhead()
    assert seconds(r, "ttft") == pytest.approx(first, rel=1e-12)


def test_decode_of_an_ideal_engine_is_the_bytes_over_the_bandwidth():
    given = {"model": Models.Llama3_8B, "hardware": Hardware.H100, "precision": "bf16"}
    r = ServingSolver.solve(**given, seq_len=1, calibration=IDEAL)
    # The input embedding is looked up, not streamed.
    streamed = Models.Llama3_8B.parameters.to("param").magnitude - 128_256 * 4096
    floor = 2 * streamed / 3.35e12
    assert floor < seconds(r, "itl") < 1.01 * floor


def test_prefill_of_an_ideal_engine_is_the_arithmetic_over_the_peak():
    given = {"model": Models.Llama3_8B, "hardware": Hardware.H100, "precision": "bf16"}
    r = ServingSolver.solve(**given, seq_len=4096, calibration=IDEAL)
    matrices = 32 * (2 * 4096 * 128 * (32 + 8) + 3 * 4096 * 14_336)
    floor = 2 * 4096 * matrices / 989.4e12
    assert floor < seconds(r, "prefill_latency") < 1.25 * floor  # attention and norms


def test_no_engine_is_faster_than_an_ideal_one():
    ideal = solve(calibration=IDEAL)
    for calibration in ServingCalibrations:
        r = solve(calibration=calibration)
        assert all(r[field] > ideal[field] for field in TIMES), calibration.name


def test_a_batch_without_answers_is_read_at_once():
    """Eight prompts of a thousand tokens fill one pass: all end together, and so do the next."""
    r = solve(output_len=0, batch_size=8, calibration=IDEAL)
    assert seconds(r, "itl") == seconds(r, "decode_latency")
    assert seconds(r, "ttft") == pytest.approx(8 * seconds(r, "prefill_latency"), rel=0.02)


@pytest.mark.parametrize(
    "calibration",
    [
        ServingCalibrations.Hopper_vLLM,
        ServingCalibrations.Hopper_TensorRT,
        ServingCalibrations.Ponte_Vecchio_vLLM,
    ],
)
@pytest.mark.parametrize("seq_len", [50, 500, 5_000])
def test_no_token_is_faster_than_a_decode_step(calibration, seq_len):
    """Passes shared with prompts save time, but never more than those prompts take."""
    for batch in (1, 2, 3, 8, 64, 512):
        for output in (2, 3, 10, 200):
            r = solve(seq_len=seq_len, batch_size=batch, output_len=output, calibration=calibration)
            assert seconds(r, "itl") >= (1 - 1e-12) * seconds(r, "decode_latency"), (batch, output)
            assert seconds(r, "ttft") >= (1 - 1e-12) * seconds(r, "prefill_latency")


def test_parts_of_a_prefill_layer_take_more_than_those_of_a_decode_step():
    """Layers with experts launch them `prompt_parts` times as slowly, and others do not change."""
    overhead, experts = Q_(100, "us"), 0.5
    for model, layers in ((Models.Llama3_8B, 0), (Models.Qwen3_30B_A3B, 48)):
        one, three = (
            solve(
                model=model,
                calibration=replace(
                    IDEAL, prompt_overhead=overhead, expert_overhead=experts, prompt_parts=parts
                ),
            )
            for parts in (1.0, 3.0)
        )
        longer = seconds(three, "prefill_latency") - seconds(one, "prefill_latency")
        assert longer == pytest.approx(2 * layers * experts * 100e-6)
        assert seconds(three, "decode_latency") == seconds(one, "decode_latency")


def test_experts_cost_a_decode_step_what_is_read_of_them():
    model = Models.Qwen3_30B_A3B
    one, many = (
        ServingSolver.solve(
            model=model,
            hardware=Hardware.H100,
            precision="bf16",
            seq_len=1,
            batch_size=batch,
            calibration=IDEAL,
        )
        for batch in (1, 256)
    )
    whole = 2 * model.parameters.to("param").magnitude / 3.35e12
    assert seconds(one, "decode_latency") < 0.15 * whole
    assert 0.9 * whole < seconds(many, "decode_latency") < 1.2 * whole


# Directions


@pytest.mark.parametrize(
    ("changes", "field", "grows"),
    [
        ({"batch_size": 64}, "itl", True),
        ({"batch_size": 64}, "output_throughput", True),
        ({"batch_size": 64}, "ttft", True),
        ({"batch_size": 1}, "ttft", False),
        ({"tp_size": 8}, "itl", False),
        ({"tp_size": 8}, "ttft", False),
        ({"seq_len": 4096}, "ttft", True),
        ({"seq_len": 4096}, "itl", True),
        ({"seq_len": 4096}, "output_throughput", False),
        ({"output_len": 128}, "itl", True),
        ({"waves": 1}, "ttft", True),
        ({"waves": 1}, "itl", False),
        ({"arrivals": 4}, "ttft", True),
        ({"precision": "bf16"}, "itl", True),
        ({"kv_precision": "bf16"}, "decode_latency", True),
        ({"weight_precision": "int4"}, "decode_latency", False),
    ],
)
def test_direction(changes, field, grows):
    before, after = seconds_or_rate(solve(), field), seconds_or_rate(solve(**changes), field)
    assert after >= before if grows else after <= before
    assert after != before


def seconds_or_rate(result, field):
    return result[field].to_base_units().magnitude


def test_the_first_wave_counts_less_in_a_longer_run():
    times = [seconds(solve(waves=waves), "ttft") for waves in (1, 2, 10, 100, None)]
    assert times == sorted(times, reverse=True)
    assert times[-2] == pytest.approx(times[-1], rel=0.2)


# Memory


def test_requests_that_do_not_fit_wait_for_their_places():
    given = {"tp_size": 2, "seq_len": 8192, "output_len": 1024}
    few, many = solve(**given, batch_size=8), solve(**given, batch_size=512)
    assert few.running_batch_size == 8
    assert few.feasible
    assert many.running_batch_size < 512
    assert not many.feasible
    assert many.reasons
    # Whoever waits does not burden those that run.
    full = solve(**given, batch_size=many.running_batch_size)
    assert seconds(full, "itl") == seconds(many, "itl")
    stay = seconds(full, "latency")
    waiting = 512 / many.running_batch_size - 1
    assert seconds(many, "ttft") - seconds(full, "ttft") == pytest.approx(waiting * stay)


def test_engines_that_reserve_less_run_more():
    given = {"tp_size": 2, "seq_len": 1024, "output_len": 8192, "batch_size": 512}
    reserve, grow = (
        solve(**given, calibration=calibration).running_batch_size
        for calibration in (ServingCalibrations.Hopper_TensorRT, ServingCalibrations.Hopper_vLLM)
    )
    assert reserve < grow


# The textbook, and the work shown


def test_an_efficiency_asks_for_the_textbook():
    r = ServingSolver.solve(model=Models.Llama3_8B, hardware=Hardware.H100, efficiency=0.5)
    assert seconds(r, "itl") == pytest.approx(4.874e-3, rel=1e-3)
    assert r.itl == r.decode_latency
    assert r.ttft == r.prefill_latency
    assert r.itl_low is None
    assert r.ttft_high is None
    assert "textbook" in r.calibration


# The registry


def test_every_constant_is_sourced_or_marked_as_a_guess():
    for row in ServingCalibrations:
        for field in ("gemm_efficiency", "kv_efficiency", "layer_overhead", "kv_share"):
            fitted = "calibrate rows" in str(row.source_of(field))
            assert fitted or row.is_estimated(field) or row.source_of(field).url, (row, field)
        names = {name for name in vars(row) if name.endswith("efficiency")} - {"state_efficiency"}
        shares = [getattr(row, name) for name in names]
        # Attention of DeepSeek-V3 fell back to slow kernels in a release of SGLang on the B300, and
        # llama.cpp streams weights slowly on the Max 1550.
        slow = ("Blackwell Ultra, SGLang", "Ponte Vecchio, llama.cpp")
        least = 0.02 if row.name in slow else 0.1
        assert all(least < share <= 1 for share in shares)


@pytest.mark.parametrize(
    ("device", "name"),
    [
        (Hardware.H100, "Hopper, TensorRT-LLM"),
        (Hardware.H200, "Hopper, TensorRT-LLM"),
        (Hardware.B200, "Blackwell, TensorRT-LLM (no run to compare with)"),
        (Hardware.A100, "Ampere (no run to compare with)"),
        (Hardware.MI300X, "Uncalibrated (the band is that of all engines)"),
    ],
)
def test_the_constants_of_a_device(device, name):
    r = ServingSolver.solve(model=Models.Llama3_8B, hardware=device)
    assert r.calibration == name
    assert (r.itl_low is None) == ("no run" in name)


@pytest.mark.parametrize("waves", [None, 1])
def test_more_memory_lowers_latency_under_a_steady_load_only(waves):
    """The statement of the docstring. With one wave, early requests do not wait for late ones."""
    found = []
    for capacity in (18, 24, 40, 80, 120):
        size = Q_(capacity, "GB")
        memory = replace(Hardware.H100.memory, capacity=size, reported=size)
        found.append(
            ServingSolver.solve(
                model=Models.Llama3_8B,
                hardware=replace(Hardware.H100, name="H100 of another size", memory=memory),
                seq_len=8192,
                output_len=16,
                batch_size=64,
                waves=waves,
            )
        )
    latencies = [result.latency for result in found]
    throughputs = [result.output_throughput for result in found]
    assert throughputs == sorted(throughputs)
    assert [result.itl for result in found] == sorted(result.itl for result in found)
    assert (latencies == sorted(latencies, reverse=True)) is (waves is None)
