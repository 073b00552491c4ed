"""Results of load generators: what is read, and where the gap is found."""

from __future__ import annotations

import json

import pytest

from mlsysim import ConfigError, Hardware, Models, OpenLoopSolver, ServingSolver, compare
from mlsysim.planner import Benchmark, read_benchmark

LOAD = {"model": Models.Llama3_8B, "hardware": Hardware.H100, "seq_len": 1000, "output_len": 200}
TIMES = {"ttft_mean": 80, "ttft_p99": 150, "tpot_mean": 9, "e2e_mean": 1871}
VLLM = {
    "mean_ttft_ms": 80,
    "p99_ttft_ms": 150,
    "mean_tpot_ms": 9,
    "mean_e2el_ms": 1871,
    "median_tpot_ms": 0.0,
    "output_throughput": 1600,
}
SGLANG = {k: v for k, v in VLLM.items() if "e2el" not in k} | {"mean_e2e_latency_ms": 1871}
PERF = {
    "time_to_first_token": {"unit": "ms", "avg": 80, "p99": 150},
    "inter_token_latency": {"unit": "us", "avg": 9000},
    "request_latency": {"unit": "s", "avg": 1.871},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 1600},
}
LLM_BENCH = {
    "latency": {
        "ttft_mean_ms": 80,
        "ttft_p99_ms": 150,
        "tpot_mean_ms": 9,
        "request_mean_ms": 1871,
        "itl_mean_ms": 1,
    },
    "throughput": {"output_tokens_per_second": 1600},
}


@pytest.fixture
def result():
    return OpenLoopSolver.solve(arrival_rate=8, **LOAD)


@pytest.mark.parametrize(
    ("tool", "data"),
    [
        ("vLLM", VLLM),
        ("SGLang", SGLANG),
        ("AIPerf or GenAI-Perf", PERF),
        ("llm-bench", LLM_BENCH),
    ],
)
@pytest.mark.parametrize("lines", [False, True])
def test_files_of_tools(tmp_path, tool, data, lines):
    path = tmp_path / "result.json"
    text = json.dumps(data)
    path.write_text(f"{json.dumps({'other': 1})}\n{text}\n" if lines else text, encoding="utf-8")
    found = read_benchmark(path)
    assert found.tool == tool
    assert found.values == pytest.approx(TIMES | {"output_throughput": 1600})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "no known times"),
        ('{"latency": {}}', "no known times"),
        ('{"mean_ttft_ms": "80"}', "is not a number"),
        ('{"mean_ttft_ms": -80}', "below zero"),
        ('{"mean_ttft_ms": NaN}', "is not a number"),
        ('{"request_latency": {"unit": "fortnight", "avg": 1}}', "unit = 'fortnight'"),
    ],
)
def test_files_that_are_refused(tmp_path, text, words):
    path = tmp_path / "result.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=words) as caught:
        read_benchmark(path)
    assert caught.value.argument == "benchmark"


def of(result, **factors):
    """Return a measurement that is the prediction, but for some factors."""
    names = ("ttft_mean", "tpot_mean", "e2e_mean")
    values = {name: result[name].to("ms").magnitude * factors.get(name, 1) for name in names}
    return Benchmark("vLLM", values)


def test_a_measurement_that_agrees(result):
    gap = compare(result, of(result))
    assert [float(error) for error in gap.table["error"]] == pytest.approx([0, 0, 0])
    assert "agree" in gap.words


def test_the_part_that_is_slow_is_named(result):
    first = compare(result, of(result, ttft_mean=3))
    assert first.words.startswith("Decode agrees, but the first token arrives later")
    later = compare(result, of(result, tpot_mean=1.5, e2e_mean=1.5))
    assert later.words.startswith("Tokens arrive more slowly")
    assert later.depends_on.startswith("hardware.memory.bandwidth")


def test_another_unit_or_load_is_named(result):
    assert "unit" not in compare(result, of(result, tpot_mean=1.5)).words
    seconds = dict.fromkeys(("ttft_mean", "tpot_mean", "e2e_mean"), 1e-3)
    assert "check the unit" in compare(result, of(result, **seconds)).words
    for rate, odd in ((8.0, False), (7.5, False), (16.0, True)):
        values = of(result).values | {"request_throughput": rate}
        assert ("the same load" in compare(result, Benchmark("vLLM", values)).words) == odd


def test_parts_of_the_gap(result):
    ttft, e2e = (result[n].to("ms").magnitude for n in ("ttft_mean", "e2e_mean"))
    measured = Benchmark("vLLM", {"ttft_mean": ttft + 30, "e2e_mean": e2e + 120})
    parts = compare(result, measured).parts
    assert parts == pytest.approx({"first token": 0.25, "tokens after it": 0.75})


def test_a_closed_loop_has_means():
    result = ServingSolver.solve(batch_size=16, **LOAD)
    gap = compare(result, Benchmark("vLLM", TIMES | {"output_throughput": 1600.0}))
    quantities = list(gap.table["quantity"])
    assert quantities == ["ttft_mean", "tpot_mean", "e2e_mean", "output_throughput"]
    assert gap.table["predicted"][1] == pytest.approx(result.itl.to("ms").magnitude)


def test_what_cannot_be_compared(result):
    with pytest.raises(ConfigError, match="not a result of OpenLoopSolver"):
        compare("fast", of(result))
    beyond = OpenLoopSolver.solve(arrival_rate=1000, **LOAD)
    with pytest.raises(ConfigError, match="steady state"):
        compare(beyond, Benchmark("vLLM", TIMES))
