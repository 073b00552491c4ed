"""Results of load generators: what is read, where the gap is, and what could explain it."""

import dataclasses
import json
import math

import pytest

from mlsysim import (
    Q_,
    ConfigError,
    Hardware,
    Models,
    OpenLoopSolver,
    ServingSolver,
    Systems,
    compare,
)
from mlsysim.planner import Benchmark, read_benchmark
from mlsysim.planner.benchmarks.components import FAR, components_of, needed_factor
from mlsysim.planner.benchmarks.gaps import predict_load
from mlsysim.planner.sensitivities.questions import question_of
from mlsysim.registry.calibration.serving import ServingCalibrations

LOAD = {"model": Models.Llama3_8B, "hardware": Hardware.H100, "seq_len": 1000, "output_len": 200}
VLLM_H100 = ServingCalibrations.Hopper_vLLM
TIMES = {"ttft_mean": 80, "ttft_p99": 150, "tpot_mean": 9, "e2e_mean": 1871}
RATE = {"output_throughput": 1600}
TOKENS = {"total_input_tokens": 100_000, "total_output_tokens": 20_000}
LENGTHS = {"seq_len": 1000, "output_len": 200}
VLLM = {
    "completed": 100,
    "duration": 12.5,
    "request_rate": 8.0,
    "burstiness": 0.5,
    "max_concurrency": None,
    "mean_ttft_ms": 80,
    "p99_ttft_ms": 150,
    "mean_tpot_ms": 9,
    "mean_e2el_ms": 1871,
    "output_throughput": 1600,
    **TOKENS,
}
SGLANG = {
    **{k: v for k, v in VLLM.items() if k not in ("mean_e2el_ms", "burstiness")},
    "mean_e2e_latency_ms": 1871,
    "request_rate": math.inf,
    "max_concurrency": 16,
    "concurrency": 15.7,
}
BLOCKS = {
    "time_to_first_token": {"unit": "ms", "avg": 80, "p99": 150},
    "inter_token_latency": {"unit": "us", "avg": 9000},
    "request_latency": {"unit": "sec", "avg": 1.871},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 1600},
    "request_count": {"unit": "requests", "avg": 100.0},
    "input_sequence_length": {"unit": "tokens", "avg": 1000.0},
    "output_sequence_length": {"unit": "tokens", "avg": 200.0},
}
CONCURRENT = {"loadgen": {"concurrency": 16, "request_rate_mode": "concurrency_burst"}}
PHASES = {
    "phases": [
        {"name": "warmup", "type": "concurrency", "concurrency": 1},
        {"name": "profiling", "type": "gamma", "rate": 8.0, "smoothness": 0.5},
    ]
}
GENAI = {"perf_analyzer": {"stimulus": {"concurrency": 16}}}
LLM_BENCH = {
    "duration": {"secs": 12, "nanos": 500_000_000},
    "configuration": {"load_pattern": "Concurrent", "concurrent_requests": 16, "qps": None},
    "summary": {"total_requests": 110, "successful_requests": 100, "failed_requests": 10},
    "latency": {
        "ttft_mean_ms": 80,
        "ttft_p99_ms": 150,
        "tpot_mean_ms": 9,
        "request_mean_ms": 1871,
        "itl_mean_ms": 1,
    },
    "throughput": {"requests_per_second": 8.8, "output_tokens_per_second": 1600, **TOKENS},
}
OPEN = {"arrival_rate": 8, "burstiness": 2, **LENGTHS}
CLOSED = {"batch_size": 16, "waves": 6, **LENGTHS}


@pytest.fixture
def result():
    return OpenLoopSolver.solve(arrival_rate=8, **LOAD)


@pytest.fixture
def closed():
    return ServingSolver.solve(batch_size=16, calibration=VLLM_H100, **LOAD)


def written(tmp_path, data):
    path = tmp_path / "result.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("tool", "data", "load", "rates"),
    [
        ("vLLM", VLLM, OPEN, RATE),
        ("SGLang", SGLANG, CLOSED, RATE),
        ("AIPerf or GenAI-Perf", {**BLOCKS, "input_config": CONCURRENT}, CLOSED, RATE),
        ("AIPerf or GenAI-Perf", {"records": BLOCKS, "input_config": CONCURRENT}, CLOSED, RATE),
        ("AIPerf or GenAI-Perf", {**BLOCKS, "input_config": PHASES}, OPEN, RATE),
        ("AIPerf or GenAI-Perf", {**BLOCKS, "input_config": GENAI}, CLOSED, RATE),
        ("llm-bench", LLM_BENCH, CLOSED, {**RATE, "request_throughput": 8}),
    ],
)
@pytest.mark.parametrize("lines", [False, True])
def test_files_of_tools(tmp_path, tool, data, load, rates, lines):
    text = json.dumps(data)
    found = read_benchmark(
        written(tmp_path, f"{json.dumps({'other': 1})}\n{text}\n" if lines else text)
    )
    assert found.tool == tool
    assert found.values == pytest.approx(TIMES | rates)
    assert found.load == pytest.approx(load)
    assert any("2 lines" in note for note in found.notes) == lines


@pytest.mark.parametrize(
    ("changes", "load"),
    [
        ({"request_rate": "inf"}, {"batch_size": 100, "waves": 1, **LENGTHS}),
        ({"request_rate": "inf", "max_concurrency": 8}, {"batch_size": 8, "waves": 12, **LENGTHS}),
        ({"max_concurrency": 8}, {**OPEN, "batch_size": 8}),
        # 8 requests per second that take 1.871 s are 15 in flight.
        ({"max_concurrency": 29, "request_throughput": 8}, {**OPEN, "batch_size": 29}),
        ({"max_concurrency": 31, "request_throughput": 8}, OPEN),
        ({"burstiness": "inf"}, {**OPEN, "burstiness": 0}),
        ({"request_rate": "inf", "ramp_up_strategy": "linear"}, LENGTHS),
        ({"request_rate": None, "completed": None}, {}),
        ({"request_rate": None, "max_concurrency": 8}, {"batch_size": 8, "waves": 12, **LENGTHS}),
        # No more requests are in flight than were sent, failed ones among them.
        (
            {"request_rate": "inf", "max_concurrency": 512, "failed": 28},
            {"batch_size": 128, "waves": 1, **LENGTHS},
        ),
    ],
)
def test_the_load_of_a_file(tmp_path, changes, load):
    assert read_benchmark(written(tmp_path, VLLM | changes)).load == pytest.approx(load)


@pytest.mark.parametrize(
    ("loadgen", "burstiness"),
    [
        ({"request_rate": 8.0}, 1),
        ({"request_rate": 8.0, "arrival_pattern": "constant"}, 0),
        ({"request_rate": 8.0, "arrival_pattern": "gamma", "arrival_smoothness": 4.0}, 0.25),
    ],
)
def test_the_spacing_of_requests(tmp_path, loadgen, burstiness):
    found = read_benchmark(written(tmp_path, {**BLOCKS, "input_config": {"loadgen": loadgen}}))
    assert found.load["burstiness"] == pytest.approx(burstiness)


@pytest.mark.parametrize("kept", ["mean_e2el_ms", "p99_ttft_ms"])
def test_files_with_only_some_times(tmp_path, kept):
    """The option --percentile-metrics of vLLM's benchmark leaves out all other times."""
    data = {key: value for key, value in VLLM.items() if key == kept or not key.endswith("_ms")}
    found = read_benchmark(written(tmp_path, data))
    assert found.tool == "vLLM"
    name = kept.replace("mean_e2el_ms", "e2e_mean").replace("p99_ttft_ms", "ttft_p99")
    assert found.values == pytest.approx({name: VLLM[kept], **RATE})


def test_failed_requests_and_values_that_were_not_measured_are_mentioned(tmp_path):
    data = VLLM | {"num_prompts": 120, "median_tpot_ms": 0.0}
    found = read_benchmark(written(tmp_path, data))
    assert "tpot_p50" not in found.values
    assert [note for note in found.notes if "median_tpot_ms = 0" in note]
    assert [note for note in found.notes if "20 of 120 requests failed" in note]
    assert "10 of 110" in read_benchmark(written(tmp_path, LLM_BENCH)).notes[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "a list of 0 items"),
        ("7", "no result"),
        ('{"latency": {}}', "no known times"),
        ('{"mean_ttft_ms": "80"}', "mean_ttft_ms = '80', which is not a number"),
        ('{"mean_ttft_ms": -80}', "mean_ttft_ms = -80, which is below zero"),
        ('{"mean_ttft_ms": NaN}', "mean_ttft_ms = nan, which is not a number"),
        ('{"mean_ttft_ms": [80]}', "mean_ttft_ms = .* is not a number"),
        (f'{{"mean_ttft_ms": 1{"0" * 400}}}', "mean_ttft_ms = .* is not a number"),
        ('{"mean_ttft_ms": 80, "completed": 0}', "completed = 0: all requests failed"),
        ('{"mean_ttft_ms": 80, "duration": 0}', "duration = 0"),
        ('{"request_latency": {"unit": "fortnight", "avg": 1}}', "unit = 'fortnight'"),
        ('{"request_latency": 7}', "request_latency = 7, which is not an object"),
        ('{"request_latency": {"unit": "ms", "avg": "1"}}', "request_latency.avg = '1'"),
        ('{"request_latency": {"avg": 1}, "request_count": {"avg": 0}}', "request_count.avg = 0"),
        ('{"records": {}}', "empty records"),
        ('{"records": {"error_request_count": {"avg": 5}}}', "5 failed requests and no request_"),
        ('{"records": []}', "records = .* is not an object"),
        ('{"metadata": {}, "metrics": {}}', "profile_export_aiperf.json"),
        (
            '{"latency": {"ttft_mean_ms": 1}, "summary": {"successful_requests": 0}}',
            "summary.successful_requests = 0",
        ),
        (
            '{"latency": {"ttft_mean_ms": 1}, "duration": {"secs": 0, "nanos": 0}}',
            "duration = 0",
        ),
    ],
)
def test_files_that_are_refused(tmp_path, text, words):
    with pytest.raises(ConfigError, match=words) as caught:
        read_benchmark(written(tmp_path, text))
    assert caught.value.argument == "benchmark"


FIELDS = {"ttft_mean": "ttft", "tpot_mean": "itl", "e2e_mean": "latency"}


def of(result, load=None, **factors):
    """Return a measurement that is the prediction, but for some factors."""
    names = {name: name if name in result else field for name, field in FIELDS.items()}
    values = {n: result[f].to("ms").magnitude * factors.get(n, 1) for n, f in names.items()}
    return Benchmark("vLLM", values, load or {})


def test_a_measurement_that_agrees(result):
    gap = compare(result, of(result))
    assert [float(error) for error in gap.table["error"]] == pytest.approx([0, 0, 0])
    assert gap.table["within"] == [True, True, True]
    assert set(gap.components["verdict"]) == {"no gap"}
    assert gap.words.startswith("All 3 quantities agree: 3 are within their band.")


def test_the_band_of_each_quantity(result, closed):
    row = compare(result, of(result)).table.row(0)
    assert row["low"] == pytest.approx(result.ttft_mean_low.to("ms").magnitude)
    assert row["high"] == pytest.approx(result.ttft_mean_high.to("ms").magnitude)
    edge = closed.itl_high / closed.itl
    for factor, within in ((0.999, True), (1.001, False)):
        gap = compare(closed, of(closed, tpot_mean=factor * edge.to("").magnitude))
        # The end-to-end time of a closed loop has no band.
        assert gap.table["within"] == [True, within, None]


def test_rates_of_a_closed_loop_have_the_band_of_tokens():
    closed = ServingSolver.solve(batch_size=16, **LOAD)
    rate = closed.request_throughput.to("1/s").magnitude
    values = {"request_throughput": 0.9 * rate, "output_throughput": 180 * rate}
    table = compare(closed, Benchmark("vLLM", values)).table
    low = (closed.output_throughput_low / closed.output_throughput).to("").magnitude
    assert list(table["low"]) == pytest.approx([low * rate, 200 * low * rate])
    assert list(table["error"]) == pytest.approx([1 / 0.9 - 1] * 2)
    # Requests without an answer have no rate of tokens, and so no band.
    silent = ServingSolver.solve(batch_size=16, **LOAD | {"output_len": 0})
    row = compare(silent, Benchmark("vLLM", {"ttft_mean": 80, "request_throughput": 9})).table.row(
        1
    )
    assert row["within"] is None


@pytest.mark.parametrize(
    "change",
    [
        {"batch_size": 16},
        {"batch_size": 1, "output_len": 1},
        {"batch_size": 400, "waves": 4},
        {"batch_size": 16, "efficiency": 0.5},
        {"batch_size": 16, "hardware": Systems.Nodes.DGX_H100, "tp_size": 4},
        {"arrival_rate": 8},
        {"arrival_rate": 0.1, "output_len": 1},
        {"arrival_rate": 8, "cached_share": 0.5},
        {"arrival_rate": 2, "model": Models.Mixtral_8x7B, "precision": "fp8"},
        {"arrival_rate": 2, "turns": 3, "turn_tokens": 100, "think_time": Q_(10, "s")},
        # Slower passes lower the request rate, and so keep more prefixes in the cache.
        {"batch_size": 16, "turns": 3, "turn_tokens": 100, "think_time": Q_(60, "s")},
    ],
    ids=str,
)
def test_components_add_up_to_the_predicted_means(change):
    solver = OpenLoopSolver if "arrival_rate" in change else ServingSolver
    result = solver.solve(**LOAD | change)
    found = components_of(result)
    assert all(item.seconds > 0 for item in found)
    for name, field in FIELDS.items():
        own = [item for item in found if item.quantity == name]
        if own:
            time = result[name if name in result else field].to("s").magnitude
            assert sum(item.seconds for item in own) == pytest.approx(time)
    step = [item.seconds for item in found if item.phase == "decode"]
    if step:
        assert sum(step) == pytest.approx(result.decode_latency.to("s").magnitude)
    quantities = {item.quantity for item in found}
    assert quantities == (
        {"ttft_mean"} if change.get("output_len") == 1 else {*FIELDS} - {"e2e_mean"}
    )


def test_components_by_hand(closed):
    step = {c.name: c.seconds for c in components_of(closed) if c.phase == "decode"}
    c, model = VLLM_H100, Models.Llama3_8B
    fixed = model.layers * c.si("layer_overhead") + 16 * c.si("sequence_overhead")
    assert step["fixed overhead"] == pytest.approx(fixed)
    # 8 KV heads of 128 elements, twice, in 2 bytes, of 1,100 tokens on average
    read = 16 * 1100 * model.layers * 2 * 8 * 128 * 2
    bandwidth = c.kv_efficiency * Hardware.H100.memory.si("bandwidth")
    assert step["KV cache"] == pytest.approx(read / bandwidth)
    assert step["weights and activations"] == pytest.approx(
        closed.decode_latency.to("s").magnitude - fixed - read / bandwidth
    )


@pytest.mark.parametrize("solver", [ServingSolver, OpenLoopSolver])
def test_a_factor_explains_the_measurement(solver):
    load = {"batch_size": 16} if solver is ServingSolver else {"arrival_rate": 8}
    result = solver.solve(calibration=VLLM_H100, **LOAD, **load)
    gap = compare(result, of(result, tpot_mean=1.5))
    rows = {row["component"]: row for row in gap.components if row["phase"] == "decode"}
    factor = rows["fixed overhead"]["factor"]
    slower = dataclasses.replace(
        VLLM_H100,
        layer_overhead=factor * VLLM_H100.layer_overhead,
        sequence_overhead=factor * VLLM_H100.sequence_overhead,
    )
    again = solver.solve(calibration=slower, **LOAD, **load)
    name = "itl" if solver is ServingSolver else "tpot_mean"
    assert (again[name] / result[name]).to("").magnitude == pytest.approx(1.5, rel=0.01)
    wait = next(row for row in gap.components if row["component"] == "prefills of other requests")
    assert wait["factor"] == pytest.approx(1 + 0.5 / wait["share"])


def test_components_that_are_ruled_out(closed):
    gap = compare(closed, of(closed, tpot_mean=1.6, ttft_mean=1.0))
    by_name = {(r["quantity"], r["component"]): r for r in gap.components}
    later = [row for row in gap.components if row["quantity"] == "tpot_mean"]
    for row in later:
        assert row["verdict"] == ("possible" if row["factor"] <= FAR else "ruled out")
        # Close to a sum: longer steps only save a little more when a prefill shares them.
        assert row["factor"] == pytest.approx(1 + 0.6 / row["share"], rel=0.1)
    assert by_name["ttft_mean", "arithmetic"]["verdict"] == "no gap"
    assert by_name["ttft_mean", "arithmetic"]["factor"] is None
    # Weights cannot stream faster than the datasheet allows, but launches can be shorter.
    faster = compare(closed, of(closed, tpot_mean=0.6))
    fast = {row["component"]: row for row in faster.components if row["quantity"] == "tpot_mean"}
    assert fast["weights and activations"]["verdict"] == "ruled out"
    assert fast["weights and activations"]["factor"] is None
    assert "faster than predicted" in faster.words


def test_the_factor_of_a_component_with_a_part_at_the_limit():
    """Matrix products run at 80% of the peak, and attention at 30%, so only attention can gain."""
    long = OpenLoopSolver.solve(arrival_rate=0.1, **LOAD | {"seq_len": 30_000})
    question = question_of(*long.__dict__["_origin"])
    own = components_of(long)[0]
    assert own.name == "arithmetic"
    least = {path: question.place(path).value for path, _, _ in own.scales}
    assert sum(seconds for *_, seconds in own.scales) == pytest.approx(own.seconds)
    whole = long.ttft_mean.to("s").magnitude
    for saved in (0.05, 0.15, 0.25, 0.35):
        factor = needed_factor(own, question, "ttft_mean", whole, (1 - saved) * whole)
        # Waiting for other prompts gets shorter as well.
        assert factor == pytest.approx(1 - saved * whole / own.seconds, abs=0.15 * saved)
    most = sum((1 - least[path]) * seconds for path, _, seconds in own.scales) / whole
    assert needed_factor(own, question, "ttft_mean", whole, (0.9 - most) * whole) is None


def test_a_time_per_token_beyond_capacity():
    """Such a slow cache overloads the engine, which then works at its capacity."""
    busy = OpenLoopSolver.solve(arrival_rate=25, calibration=VLLM_H100, **LOAD | {"seq_len": 500})
    gap = compare(busy, of(busy, tpot_mean=4))
    row = next(r for r in gap.components if (r["phase"], r["component"]) == ("decode", "KV cache"))
    slow = dataclasses.replace(VLLM_H100, kv_efficiency=VLLM_H100.kv_efficiency / row["factor"])
    load = {"calibration": slow, **LOAD, "seq_len": 500}
    over = OpenLoopSolver.solve(arrival_rate=25, **load)
    assert not over.feasible
    full = OpenLoopSolver.solve(arrival_rate=0.999 * over.request_capacity, **load)
    assert (full.tpot_mean / busy.tpot_mean).to("").magnitude == pytest.approx(4, rel=0.01)


@pytest.mark.parametrize(
    "values",
    [
        {"ttft": 80},
        {"ttft_mean": 0},
        {"ttft_mean": -80},
        {"ttft_mean": math.nan},
        {"ttft_mean": "80"},
        {"ttft_mean": Q_(80, "ms")},
        {"output_throughput": math.inf},
        {"ttft_mean": 10**400},
    ],
    ids=repr,
)
def test_values_that_are_refused(values):
    with pytest.raises(ConfigError) as caught:
        Benchmark("vLLM", values)
    assert caught.value.argument == "values"


@pytest.mark.parametrize("path", [None, 5, {}])
def test_only_paths_are_read(path):
    with pytest.raises(ConfigError, match="cannot be read"):
        read_benchmark(path)


def test_parts_of_the_gap(result):
    ttft, e2e = (result[n].to("ms").magnitude for n in ("ttft_mean", "e2e_mean"))
    measured = Benchmark("vLLM", {"ttft_mean": ttft + 30, "e2e_mean": e2e + 120})
    parts = compare(result, measured).parts
    assert parts == pytest.approx({"first token": 0.25, "tokens after it": 0.75})


def test_requests_in_flight_follow_from_littles_law(result):
    values = {**of(result).values, "request_throughput": 4.0}
    row = compare(result, Benchmark("vLLM", values)).table.row(3)
    assert row["quantity"] == "requests_in_flight"
    assert row["measured"] == pytest.approx(4 * values["e2e_mean"] / 1e3)
    assert row["predicted"] == pytest.approx(result.requests_in_flight)
    assert row["error"] == pytest.approx(1)


def test_levers_are_settings_with_their_predicted_values(closed):
    gap = compare(closed, of(closed, tpot_mean=1.6))
    rows = {row["lever"]: row for row in gap.levers}
    lever = rows["kv_precision fp16 → fp8"]
    again = ServingSolver.solve(batch_size=16, calibration=VLLM_H100, kv_precision="fp8", **LOAD)
    assert lever["tpot_mean"].to("ms").magnitude == pytest.approx(again.itl.to("ms").magnitude)
    assert lever["change"] == pytest.approx((again.itl / closed.itl).to("").magnitude - 1)
    rate = lever["output_throughput"].to("token/s").magnitude
    assert rate == pytest.approx(again.output_throughput.to("token/s").magnitude)
    changes = list(gap.levers["change"])
    assert changes == sorted(changes)
    # One device cannot be shared, and the best lever keeps the rate per device.
    assert not [name for name in rows if name.startswith("tp_size")]
    assert gap.next_lever.startswith("Next lever: precision fp16 → fp8 takes tpot_mean")
    shared = ServingSolver.solve(batch_size=16, **LOAD | {"hardware": Systems.Nodes.DGX_H100})
    rows = {row["lever"]: row for row in compare(shared, of(shared)).levers}
    assert rows["tp_size 1 → 2"]["devices"] == 2
    assert rows["batch_size 16 → 8"]["devices"] == 1


def test_fewer_requests_are_no_next_lever():
    """Half as many requests are answered sooner, but then another engine has to serve the rest."""
    narrow = OpenLoopSolver.solve(arrival_rate=20, precision="fp8", **LOAD)
    gap = compare(narrow, of(narrow, tpot_mean=2))
    rows = {row["lever"]: row for row in gap.levers}
    assert rows["arrival_rate 20 → 10 per second"]["change"] < -0.1
    assert "arrival_rate" not in gap.next_lever


def test_the_first_token_is_all_of_a_short_answer():
    for load in ({"batch_size": 16}, {"arrival_rate": 4}):
        solver = ServingSolver if "batch_size" in load else OpenLoopSolver
        short = solver.solve(**LOAD | load | {"output_len": 1})
        gap = compare(short, Benchmark("vLLM", {"ttft_mean": 1e3, "tpot_mean": 9, "e2e_mean": 1e3}))
        assert list(gap.table["quantity"]) == ["ttft_mean", "e2e_mean"]
        assert {row["tpot_mean"] for row in gap.levers} == {None}


def test_another_unit_or_load_is_named(result, closed):
    def notes(load, **factors):
        return " ".join(compare(result, of(result, load, **factors)).notes)

    assert notes({"arrival_rate": 8, "seq_len": 1010}) == ""
    assert "seq_len = 2,000, and the prediction 1,000" in notes({"seq_len": 2000})
    assert "arrival_rate = 9" in notes({"arrival_rate": 9})
    seconds = dict.fromkeys(("ttft_mean", "tpot_mean", "e2e_mean"), 1e-3)
    assert "check the unit" in notes({}, **seconds)
    for rate, odd in ((8.0, False), (7.5, False), (4.0, True)):
        values = of(result).values | {"request_throughput": rate}
        found = compare(result, Benchmark("vLLM", values, {"arrival_rate": 8.0})).notes
        assert any("saturated" in note for note in found) == odd
    clients = compare(closed, of(closed, {"batch_size": 32, "waves": 4})).notes
    assert "batch_size = 32, and the prediction 16" in clients[0]
    assert "waves = 4" in clients[1]


def test_open_and_closed_loops_are_not_compared(result, closed):
    with pytest.raises(ConfigError, match=r"batch_size = 16 \(closed loop\), .* arrival_rate = 8"):
        compare(result, of(result, {"batch_size": 16}))
    with pytest.raises(ConfigError, match=r"arrival_rate = 8 \(open loop\), .* batch_size = 16"):
        compare(closed, of(closed, {"arrival_rate": 8}))
    # With both, the limit of concurrent requests may never have been reached.
    assert compare(result, of(result, {"arrival_rate": 8, "batch_size": 64})).notes == ()


def test_what_cannot_be_compared(result):
    with pytest.raises(ConfigError, match="not a result of OpenLoopSolver"):
        compare("fast", of(result))
    beyond = OpenLoopSolver.solve(arrival_rate=1000, **LOAD)
    with pytest.raises(ConfigError, match="steady state"):
        compare(beyond, Benchmark("vLLM", TIMES))
    gap = compare(beyond, Benchmark("vLLM", {"output_throughput": 1600.0}))
    assert len(gap.components) == len(gap.levers) == 0
    assert beyond.reasons[0] in gap.notes[0]
    pool = OpenLoopSolver.solve(arrival_rate=8, role="prefill", **LOAD)
    with pytest.raises(ConfigError, match="role = 'prefill'"):
        compare(pool, Benchmark("vLLM", TIMES))


def test_the_load_comes_from_the_file_unless_it_is_given():
    machine = {"model": Models.Llama3_8B, "hardware": Hardware.H100}
    bench = Benchmark("vLLM", TIMES, {"batch_size": 16.0, "waves": 4, **LENGTHS})
    found, taken = predict_load(bench, machine)
    same = ServingSolver.solve(batch_size=16, waves=4, **LOAD)
    assert found.ttft == same.ttft
    assert "batch_size = 16" in taken
    other, taken = predict_load(bench, machine | {"batch_size": 8, "seq_len": 500.0})
    assert other.itl == ServingSolver.solve(batch_size=8, **LOAD | {"seq_len": 500}).itl
    assert taken.startswith("From the file: output_len = 200. ")
    opened, _ = predict_load(Benchmark("vLLM", TIMES, {"arrival_rate": 8.0, **LENGTHS}), machine)
    assert opened.ttft_p99 == OpenLoopSolver.solve(arrival_rate=8, **LOAD).ttft_p99
    with pytest.raises(ConfigError, match="neither a request rate nor a number of clients"):
        predict_load(Benchmark("vLLM", TIMES), machine)
    for missing in LENGTHS:  # the solvers' defaults are not the lengths of the file's requests
        known = {name: length for name, length in LENGTHS.items() if name != missing}
        with pytest.raises(ConfigError, match=f"does not state {missing}"):
            predict_load(Benchmark("vLLM", TIMES, {"arrival_rate": 8.0, **known}), machine)
    both = Benchmark("vLLM", TIMES, {"arrival_rate": 8.0, "batch_size": 64.0})
    with pytest.raises(ConfigError, match="arrival_rate = 8 and batch_size = 64"):
        predict_load(both, machine)
    with pytest.raises(ConfigError, match="batch_limit is not an argument of ServingSolver"):
        predict_load(bench, machine | {"batch_limit": 64})


@pytest.mark.parametrize(
    ("more", "engine", "version", "constants"),
    [
        ({"backend": "vllm"}, "vLLM", "", "Hopper_vLLM"),
        ({"backend": "vllm", "version": "0.12.0"}, "vLLM", "0.12.0", "Hopper_vLLM_0_12"),
        ({"backend": "sglang-oai-chat"}, "SGLang", "", "Hopper_SGLang"),
        ({"backend": "tensorrt-llm"}, "TensorRT-LLM", "", "Hopper_TensorRT"),
        ({"backend": "openai", "version": "3"}, "", "", "Hopper_TensorRT"),
        ({}, "", "", "Hopper_TensorRT"),
    ],
)
def test_constants_are_those_of_the_engine_in_the_file(tmp_path, more, engine, version, constants):
    file = read_benchmark(written(tmp_path, VLLM | more))
    assert (file.engine, file.version) == (engine, version)
    machine = {"model": Models.Llama3_8B, "hardware": Hardware.H100}
    answer, taken = predict_load(file, machine)
    expected = ServingCalibrations[constants]
    assert answer.calibration == expected.name
    assert (engine or expected.name) in taken
    gap = compare(answer, file)
    assert gap.calibration == expected.name
    assert expected.name in str(gap)
    given, _ = predict_load(file, machine | {"calibration": ServingCalibrations.Hopper_SGLang})
    assert given.calibration == "Hopper, SGLang"


def test_constants_of_another_engine_are_mentioned(result):
    file = of(result)
    assert not compare(result, file).notes
    other = dataclasses.replace(file, engine="vLLM")
    assert "vLLM" in compare(result, other).notes[-1]
    same = OpenLoopSolver.solve(**LOAD, arrival_rate=8, calibration=VLLM_H100)
    assert not compare(same, dataclasses.replace(of(same), engine="vLLM")).notes
    volta = {"model": Models.Llama3_8B, "hardware": Systems.Nodes.DGX2_V100, **LENGTHS}
    measured = dataclasses.replace(other, load={"arrival_rate": 0.5})
    unknown, _ = predict_load(measured, volta | {"tp_size": 2, "precision": "fp16"})
    assert unknown.calibration == "Uncalibrated"
    assert any("vLLM" in note for note in compare(unknown, measured).notes)
