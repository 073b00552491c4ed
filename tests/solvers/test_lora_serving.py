"""Serving with low-rank adapters: memory, passes, and adapters that are not resident."""

import math

import pytest

from mlsysim import (
    ConfigError,
    DisaggregatedSolver,
    Hardware,
    Models,
    OpenLoopSolver,
    ServingSolver,
    Systems,
)
from mlsysim.core import formulas as f
from mlsysim.registry.calibration.serving import ServingCalibrations
from tests.samples import seconds

# Matrices of a layer of Llama 3 8B: query, key and value, output, gate and input, product.
SHAPES = [
    (4096, 4096),
    (4096, 1024),
    (4096, 1024),
    (4096, 4096),
    (4096, 14_336),
    (4096, 14_336),
    (14_336, 4096),
]
RANK = 16
ONE = 2 * 32 * RANK * sum(rows + columns for rows, columns in SHAPES)
"""Bytes of one adapter in 16 bits."""
LOAD = {
    "model": Models.Llama3_8B,
    "hardware": Hardware.H100,
    "precision": "bf16",
    "seq_len": 1000,
    "output_len": 200,
    "calibration": ServingCalibrations.Hopper_vLLM,
}
STREAM = ServingCalibrations.Hopper_vLLM.memory_efficiency * 3.35e12


def served(**more):
    return ServingSolver.solve(**LOAD | more)


def added(tokens, used):
    """Time that adapters add to the layers of a pass, all of it traffic."""
    moved = sum(used * RANK * (m + n) + tokens * (m + 2 * RANK + 2 * n) for m, n in SHAPES)
    return 32 * 2 * moved / STREAM


def test_different_adapters_of_a_batch():
    # Two adapters, two sequences: half of the time they use the same one.
    assert f.distinct_adapters(2, 2) == 1.5
    assert f.distinct_adapters(1, 50) == 1
    assert f.distinct_adapters(1e9, 50) == pytest.approx(50)
    # And back
    assert f.sequences_of_adapters(1.5, 2) == pytest.approx(2)
    assert f.sequences_of_adapters(5, 5) == f.sequences_of_adapters(1, 1) == math.inf
    assert f.sequences_of_adapters(1, 5) == pytest.approx(1)


def test_one_adapter_has_the_parameters_of_its_thin_matrices():
    assert ONE == 83_886_080
    none, one, ten = served(), served(lora_rank=RANK), served(lora_rank=RANK, adapters=10)
    assert none.adapter_memory.magnitude == 0
    assert none.batch_adapters is None
    assert one.adapter_memory.to("byte").magnitude == ONE
    assert ten.adapter_memory.to("byte").magnitude == 10 * ONE
    more = ten.total_memory_required - none.total_memory_required
    assert more.to("byte").magnitude == pytest.approx(10 * ONE)


def test_a_step_reads_each_adapter_once():
    plain = served(batch_size=64)
    for count in (1, 40, 4000):
        r = served(batch_size=64, lora_rank=RANK, adapters=count, resident_adapters=min(count, 300))
        used = count * (1 - (1 - 1 / count) ** 64)
        assert r.batch_adapters == pytest.approx(used)
        assert seconds(r.decode_latency - plain.decode_latency) == pytest.approx(added(64, used))


def test_a_prompt_uses_one_adapter():
    r = served(lora_rank=RANK, adapters=50)
    assert seconds(r.prefill_latency - served().prefill_latency) == pytest.approx(added(1000, 1))


def test_adapters_are_split_like_their_matrices():
    node = {"hardware": Systems.Nodes.DGX_H100, "tp_size": 4, "batch_size": 64}
    plain, r = served(**node), served(**node, lora_rank=RANK, adapters=40)
    used = f.distinct_adapters(40, 64)
    assert seconds(r.decode_latency - plain.decode_latency) == pytest.approx(added(64, used) / 4)
    more = r.total_memory_required - plain.total_memory_required
    assert more.to("byte").magnitude == pytest.approx(10 * ONE)


def test_an_adapter_that_is_not_resident_is_loaded():
    plain = served(lora_rank=RANK, adapters=40)
    r = served(lora_rank=RANK, adapters=40, resident_adapters=10, host_link=Systems.Links.PCIe5)
    # Three requests of four wait for 84 MB at 64 GB/s.
    load = 0.75 * (ONE / 64e9 + 0.6e-6)
    assert seconds(r.loading_latency) == pytest.approx(load)
    assert seconds(r.ttft - plain.ttft) == pytest.approx(load)


def test_a_batch_has_no_more_adapters_than_there_is_memory_for():
    r = served(batch_size=200, lora_rank=RANK, adapters=100, resident_adapters=20)
    # 22 sequences use 19.8 of 100 adapters, and 23 would use 20.6.
    assert r.running_batch_size == 22
    assert r.batch_adapters == pytest.approx(19.84, abs=0.01)
    assert (r.request_throughput * r.latency).to("").magnitude == pytest.approx(200)


def test_operations_of_adapters_count():
    plain = served(batch_size=64)
    r = served(batch_size=64, lora_rank=RANK, adapters=4)
    before, after = (one.request_throughput.to("1/s").magnitude for one in (plain, r))
    # Each of 1,000 prompt tokens and 199 later ones does 2 operations per parameter.
    thin = 2 * 1199 * ONE / 2
    peak = Hardware.H100.compute.rate("bf16").to("flop/s").magnitude
    assert r.hfu / after == pytest.approx(plain.hfu / before + thin / peak)


def test_what_limits_the_batch():
    many = {"batch_size": 2000, "lora_rank": RANK, "adapters": 100}
    assert served(batch_size=3).running_limit == "clients"
    assert served(**many).running_limit == "memory"
    assert served(**many, max_sequences=30).running_limit == "max_sequences"
    r = served(**many, resident_adapters=20)
    assert r.running_limit == "adapters"
    assert "20 of 100 adapters" in r.reasons[0]
    assert "20 of 100 adapters" not in served(**many).reasons[0]
    full = {"lora_rank": RANK, "adapters": 100, "arrival_rate": 1000}
    assert "20 of 100 adapters" in opened(**full, resident_adapters=20).reasons[0]
    assert "adapters" not in opened(**full).reasons[0]


def test_adapters_of_experts():
    r = served(
        model=Models.Mixtral_8x7B,
        hardware=Systems.Nodes.DGX_H100,
        tp_size=8,
        lora_rank=RANK,
        batch_size=4,
    )
    attention = 2 * (4096 + 4096) + 2 * (4096 + 1024)
    experts = 8 * 3 * (4096 + 14_336)
    each = 2 * 32 * RANK * (attention + experts)
    assert r.adapter_memory.to("byte").magnitude == each


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        ({"adapters": 3}, "adapters"),
        ({"resident_adapters": 1}, "adapters"),
        ({"lora_rank": 16, "adapters": 3, "resident_adapters": 4}, "resident_adapters"),
        ({"lora_rank": 5000}, "lora_rank"),
        ({"lora_rank": 16, "efficiency": 0.5, "calibration": None}, "lora_rank"),
        (
            {
                "lora_rank": 16,
                "adapters": 3,
                "resident_adapters": 2,
                "hardware": Hardware.M4_Max,
                "calibration": None,
            },
            "host_link",
        ),
    ],
)
def test_contradictions(wrong, argument):
    with pytest.raises(ConfigError) as fault:
        served(**wrong)
    assert fault.value.argument == argument


def opened(**more):
    load = {k: v for k, v in LOAD.items() if k != "batch_size"} | {"arrival_rate": 10}
    return OpenLoopSolver.solve(**load | more)


def test_adapters_in_an_open_loop():
    plain, r = opened(), opened(lora_rank=RANK, adapters=40)
    assert r.adapter_memory.to("byte").magnitude == 40 * ONE
    assert plain.batch_adapters is None
    assert r.batch_adapters == pytest.approx(f.distinct_adapters(40, r.requests_in_flight))
    assert r.tpot_mean > plain.tpot_mean
    assert r.ttft_mean > plain.ttft_mean
    assert r.request_capacity < plain.request_capacity
    # Steps are those of the closed loop with as many sequences.
    many, few = (
        opened(batch_limit=64, arrival_rate=1e-6, lora_rank=RANK, adapters=n) for n in (40, 1)
    )
    assert many.places == few.places == 64
    assert seconds(few.decode_latency) == pytest.approx(
        seconds(served(lora_rank=RANK).decode_latency)
    )


def test_an_open_loop_loads_adapters_and_runs_as_many_as_there_is_memory_for():
    many = {"lora_rank": RANK, "adapters": 100, "arrival_rate": 2}
    plain = opened(**many)
    r = opened(**many, resident_adapters=20, host_link=Systems.Links.PCIe5)
    load = 0.8 * (ONE / 64e9 + 0.6e-6)
    assert seconds(r.loading_latency) == pytest.approx(load)
    # Poisson arrivals at a link that takes the same time for each (Pollaczek and Khinchine)
    wait = load + 2 * load / (2 * (1 - 2 * load)) * load
    assert r.places == 22  # as in the closed loop, by the mean of different adapters
    assert plain.places == 256
    few = opened(**many, batch_limit=22)
    assert seconds(r.ttft_mean - few.ttft_mean) == pytest.approx(wait, rel=1e-3)


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_pools_have_adapters(role):
    assert opened(role=role, lora_rank=RANK, adapters=40).adapter_memory.to("byte").magnitude == (
        40 * ONE
    )
    slow = opened(role=role, lora_rank=RANK, adapters=40, resident_adapters=39)
    fast = opened(role=role, lora_rank=RANK, adapters=40)
    assert slow.ttft_mean > fast.ttft_mean


def test_adapters_of_separate_pools():
    load = LOAD | {"hardware": Systems.Nodes.DGX_H100, "batch_size": 64}
    plain, r = (DisaggregatedSolver.solve(**load, **more) for more in ({}, MANY))
    more = r.decode_memory_required - plain.decode_memory_required
    # Slower steps leave a little less than as many sequences in decode.
    assert more.to("byte").magnitude == pytest.approx(40 * ONE, rel=0.01)
    more = r.prefill_memory_required - plain.prefill_memory_required
    assert more.to("byte").magnitude == pytest.approx(40 * ONE)
    assert r.batch_adapters == pytest.approx(f.distinct_adapters(40, r.decode_batch_size))
    assert r.itl > plain.itl
    assert seconds(r.prefill_latency - plain.prefill_latency) == pytest.approx(added(1000, 1))
    few = DisaggregatedSolver.solve(**load, **MANY, resident_adapters=10)
    assert seconds(few.loading_latency) == pytest.approx(0.75 * ONE / 64e9)
    # 11 sequences use 9.7 of 40 adapters.
    assert few.decode_batch_size == few.decode_places == 11
    assert few.bottleneck == "decode"
    assert few.feasible
    assert seconds(few.ttft) > seconds(r.ttft)


MANY = {"lora_rank": RANK, "adapters": 40}
