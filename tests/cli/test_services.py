"""Commands that plan services: loads from options or a trace, and answers as the functions do."""

import json

import numpy as np
import pytest

from mlsysim import Q_, Models, Systems, Traffic, capacity, plan_serving
from mlsysim.registry.operations import CHAT_LENGTHS
from tests.cli.calls import call, data

NODE = Systems.Nodes.DGX_H100
SLO = {"ttft_p99": Q_(1, "s")}
PLACE = ("--model", "Llama3_70B", "--hardware", "DGX_H100", "--ttft-p99", "1 s", "--tp-size", 8)
LENGTHS = ("--seq-len", 1000, "--output-len", 200)
TRAFFIC = Traffic(arrival_rate=Q_(20, "1/s"), seq_len=1000, output_len=200)


def test_a_plan_is_that_of_the_function():
    sessions = ("--turns", 4, "--turn-tokens", 30, "--think-time", "60 s")
    options = (*PLACE, *LENGTHS, "--arrival-rate", 20, "--batch-limit", "64,128", *sessions)
    found = data("serve-plan", *options)
    same = plan_serving(
        Models.Llama3_70B, TRAFFIC, SLO, [NODE], tp_size=8, batch_limit=[64, 128],
        turns=4, turn_tokens=30, think_time=Q_(60, "s"),
    )  # fmt: skip
    assert found["best"]["devices"] == same.best["devices"]
    assert found["best"]["utilization"] == pytest.approx(same.best["utilization"])
    assert found["keeps_limits"] == same.keeps_limits
    assert found["traffic"]["output_variation"] == CHAT_LENGTHS.output_variation
    few = ("--confidence", "null", "--format", "csv", "--limit", 2, "--field", "devices")
    assert len(call("serve-plan", *options, *few).output.splitlines()) == 3


def test_replicas_of_a_day_are_those_of_the_function():
    found = data("capacity", *PLACE, *LENGTHS, "--day", "2,40", "--slot", "12 h")
    same = capacity(Models.Llama3_70B, NODE, TRAFFIC, SLO, day=[2, 40], slot=Q_(12, "h"), tp_size=8)
    assert [slot["replicas"] for slot in found["slots"]] == same.slots["replicas"].tolist()


def test_measured_runs_are_listed_with_a_plan(tmp_path):
    run = {
        "id": "one", "source": "A lab https://example.org", "model": "Llama3_70B",
        "hardware": "DGX_H100", "precision": "bf16", "seq_len": 1000, "output_len": 200,
        "batch_size": 32, "tp_size": 4, "ttft (ms)": 400.0, "itl (ms)": 30.0,
    }  # fmt: skip
    runs = tmp_path / "runs.csv"
    runs.write_text(",".join(run) + "\n" + ",".join(map(str, run.values())), encoding="utf-8")
    options = ("serve-plan", *PLACE, *LENGTHS, "--arrival-rate", 20, "--runs", runs)
    assert [found["source"] for found in data(*options)["measured"]] == [run["source"]]
    assert call(*options, "--format", "csv").exit_code == 2


@pytest.fixture
def trace(tmp_path):
    """Mooncake's columns, two requests per second; three quarters of them hit 512 of 1,000."""
    rows = [
        {"timestamp": 500 * k, "input_length": 1000, "output_length": 50, "hash_ids": ids}
        for k, ids in enumerate([[1, 2], [1, 3], [1, 4], [1, 5]])
    ]
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


SERVED = ("--model", "Llama3_8B", "--hardware", "H100", "--ttft-p99", "9 s")


def test_both_commands_read_a_trace(trace):
    given = (*SERVED, "--trace", trace, "--time-unit", "ms")
    load = data("serve-plan", *given, "--batch-limit", 64)["traffic"]
    assert load["cached_share"] == pytest.approx(3 * 512 / 4000)
    assert load["input_variation"] == pytest.approx(np.std([1000, 488, 488, 488]) / 616)
    assert data("capacity", *given, "--slot", "1 s")["traffic"] == load
    free = data("capacity", *given, "--slot", "1 s", "--ignore", "hash_ids")
    assert "cached_share" not in free["traffic"]
    (words, *_) = call("capacity", *given, "--slot", "1 s").output.splitlines()
    assert "4 requests" in words
    assert "38.4% cached" in words


@pytest.mark.parametrize("command", ["serve-plan", "capacity"])
@pytest.mark.parametrize(
    ("words", "argument"),
    [
        (("--trace", "{trace}"), "time_unit"),
        (("--trace", "{trace}", "--time-unit", "ms", "--cached-share", 0), "cached_share"),
        (("--trace", "{trace}", "--time-unit", "ms", "--hash-block", 16), "hash_ids"),
        (("--trace", "{trace}", "--time-unit", "ms", "--ignore", "turn"), "turn"),
        (("--trace", "{trace}", "--time-unit", "ms", "--arrival-rate", 3), "arrival_rate"),
        (("--arrival-rate", 2, "--time-unit", "ms"), "time_unit"),
        (("--arrival-rate", 2, "--ignore", "turn"), "ignore"),
    ],
)
def test_loads_that_contradict_each_other_are_refused(trace, command, words, argument):
    done = call(command, *SERVED, *(str(word).replace("{trace}", str(trace)) for word in words))
    assert done.exit_code == 2, done.output
    assert argument in done.output


@pytest.mark.parametrize("words", [("--arrival-rate", 3), ("--trace", "{trace}")])
def test_a_day_and_another_load_are_refused(trace, words):
    given = (str(word).replace("{trace}", str(trace)) for word in words)
    done = call("capacity", *SERVED, "--day", "2,40", *given)
    assert done.exit_code == 2, done.output
    assert words[0].strip("-").replace("-", "_") in done.output
