"""Laws that every answer keeps, on calls drawn at random."""

from dataclasses import replace

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from mlsysim import (
    DistributedSolver,
    Fleet,
    Hardware,
    Models,
    ServingCalibrations,
    ServingSolver,
    SingleNodeSolver,
    Systems,
    standalone_fleet,
)
from mlsysim.core.formulas import interference_time
from mlsysim.core.units import Q_
from tests.solvers.strategies import PARTS, faster, larger, loads, passes, si, solved, steps

some = settings(max_examples=80, deadline=None)
LLAMA = Models.Llama3_8B
A100 = {"model": LLAMA, "hardware": Hardware.A100, "batch_size": 8}
ONE_A100 = {
    "model": Models.Llama3_70B,
    "fleet": standalone_fleet(Hardware.A100),
    "batch_size": 1,
}
# One device with all of the tokens would read each expert once.
FEW_TOKENS = {
    "model": Models.DeepSeek_V3,
    "fleet": Systems.Clusters.Research_256,
    "batch_size": 256,
    "seq_len": 128,
    "ep_size": 64,
}
V100 = {
    "model": LLAMA,
    "fleet": Fleet(
        name="V100", node=Systems.Nodes.DGX2_V100, count=1, fabric=Systems.Fabrics.InfiniBand_NDR
    ),
    "batch_size": 64,
    "seq_len": 2048,
    "precision": "fp16",
    "tp_size": 2,
    "microbatch_count": 8,
    "zero_stage": 1,
    "sequence_parallel": True,
}
CROWD = {"model": LLAMA, "hardware": Hardware.H100, "seq_len": 1000, "batch_size": 2000}
B300 = {"model": LLAMA, "hardware": Hardware.B300, "precision": "int8"}


# Requests that come at once


def test_answers_of_one_token_wait_for_all_other_prompts():
    """Prompts fill a pass each, so eight clients have 8 answers in 8 prefills."""
    constants = replace(
        ServingCalibrations.Uncalibrated, pass_tokens=1024, request_overhead=Q_(0, "ms")
    )
    r = ServingSolver.solve(
        model=LLAMA,
        hardware=Hardware.H100,
        seq_len=1024,
        output_len=1,
        batch_size=8,
        calibration=constants,
    )
    cycle = 8 * si(r.prefill_latency)
    assert si(r.request_throughput) == pytest.approx(8 / cycle)
    assert si(r.ttft) == pytest.approx(cycle)
    assert r.latency == r.ttft


def test_each_prompt_is_counted_once():
    # Of 10 prompts of 3 s, the own one and a half are read before the first of 11 tokens.
    assert interference_time(3, 10, 4.5, 11, 0) == 2.55
    assert interference_time(3, 1, 3, 11, 0) == 0


# Utilization


def shares_of(result):
    names = ("mfu", "hfu", "mbu", "scaling_efficiency", "power_utilization", "bubble_fraction")
    return {name: result[name] for name in names if result.get(name) is not None}


def assert_shares(result):
    found = shares_of(result)
    assert len(found) >= 2  # a microcontroller without a rated power has no share of it
    for name, share in found.items():
        assert -1e-12 <= share <= 1 + 1e-12, name


def assert_edge_within_peak(result, value, low):
    """At the fast edge of a band, neither arithmetic nor memory exceeds its peak rate."""
    if result[low] is not None:
        busiest = max(result.hfu if "hfu" in result else result.mfu, result.mbu)
        assert busiest * si(result[value]) <= si(result[low]) * (1 + 1e-9)


@some
@given(call=passes())
@example(call=B300 | {"seq_len": 131_072})
@example(call=B300 | {"seq_len": 2**20})
def test_a_pass_uses_no_more_than_there_is(call):
    r = solved(SingleNodeSolver, call)
    assume(r is not None)
    assert_shares(r)
    assert_edge_within_peak(r, "latency", "latency_low")


@some
@given(load=loads())
@example(load=CROWD | {"output_len": 700, "reserved_output": 0.3, "block_size": 16})
@example(load=CROWD | {"output_len": 2, "reserved_output": 0.0})
@example(load=B300 | {"seq_len": 131_072, "output_len": 0, "batch_size": 1})
@example(load=B300 | {"seq_len": 8192, "output_len": 1024, "batch_size": 256})
@example(load=A100 | {"model": Models.Gemma2_27B, "seq_len": 1, "output_len": 2, "batch_size": 8})
@example(load=A100 | {"model": Models.CodeLlama_34B, "output_len": 64, "token_budget": 128})
@example(load={"model": LLAMA, "hardware": Hardware.TPUv6e, "precision": "bf16", "batch_size": 64})
@example(load=A100 | {"hardware": Hardware.RTX_3090, "seq_len": 16, "output_len": 2048})
def test_a_server_uses_no_more_than_there_is(load):
    """Neither do its requests: those in flight are rate times latency (Little's law)."""
    r = solved(ServingSolver, load)
    assume(r is not None)
    assert_shares(r)
    held = si(r.request_throughput) * si(r.latency)
    assert held == pytest.approx(load["batch_size"], rel=1e-9)
    if r.output_throughput_high is not None:
        used = max(r.hfu, r.mbu) * si(r.output_throughput_high)
        assert used <= si(r.output_throughput) * max(1 + 1e-9, r.hfu, r.mbu)


@settings(max_examples=120, deadline=None)
@given(call=steps(), rank=st.sampled_from((None, None, 1, 64)))
@example(call=ONE_A100 | {"seq_len": 1}, rank=8)
@example(call=FEW_TOKENS, rank=None)
@example(call=V100, rank=None)
def test_a_step_uses_no_more_than_there_is(call, rank):
    """Its parts make the step, and its devices the fleet."""
    r = solved(DistributedSolver, call | {"lora_rank": rank})
    assume(r is not None)
    assert_shares(r)
    assert r.mfu <= r.hfu
    for low in ("step_latency_low", "step_latency_family_low", "step_latency_unseen_low"):
        assert_edge_within_peak(r, "step_latency_total", low)
    parts = [si(r[name]) for name in PARTS]
    assert all(part >= 0 for part in parts)
    assert sum(parts) == pytest.approx(si(r.step_latency_total))
    used = r.dp_size * r.parallelism.tp * r.parallelism.pp * r.parallelism.cp
    assert used == call["fleet"].total_accelerators
    assert r.parallelism.dp == r.dp_size
    assert r.feasible == (r.fits_memory and r.whole_microbatches) == (not r.reasons)
    tokens = si(r.token_throughput) / si(r.effective_throughput)
    assert tokens == pytest.approx(call["seq_len"])


def test_int8_on_a_device_with_faster_wide_formats():
    """Attention runs in 16 bits: against the rate of int8 the share would be above four."""
    extended = replace(LLAMA, context=2**20)
    r = SingleNodeSolver.solve(**B300 | {"model": extended}, seq_len=2**20)
    compute = Hardware.B300.compute
    scores = 32 * 2 * 32 * 128 * 2**40  # half of them, as tokens attend to those before
    wide = scores + 2 * 2**20 * 128_256 * 4096
    narrow = 2 * 2**20 * 32 * (2 * 4096 * 128 * (32 + 8) + 3 * 4096 * 14_336)
    assert si(r.flops) == narrow + wide
    busy = narrow / si(compute.int8) + wide / si(compute.bf16)
    assert r.mfu == pytest.approx(busy / si(r.latency))
    assert si(r.flops) / si(compute.int8) > 4 * si(r.latency)


# Directions


@some
@given(load=loads())
def test_memory_makes_no_server_slower(load):
    few, many = (
        solved(ServingSolver, load | {"hardware": larger(load["hardware"], factor)})
        for factor in (1, 3)
    )
    assume(few is not None and many is not None)
    # A larger batch waits less for memory in a pass, so sharing that pass saves a trace less.
    assert si(many.request_throughput) >= si(few.request_throughput) * (1 - 1e-4)
    assert si(many.latency) <= si(few.latency) * (1 + 1e-4)
    assert si(many.ttft) <= si(few.ttft) * (1 + 1e-4)
    # Only the time between tokens grows, where more requests run: the reasons say so.
    if si(many.itl) > si(few.itl):
        assert few.running_batch_size < many.running_batch_size
        assert f"{few.running_batch_size} requests run at a time" in few.reasons[0]


def test_a_burst_is_read_in_the_same_time_with_any_memory():
    """Eight prompts, a pass each, arrive at once: the k-th is read after k prefills."""
    constants = replace(
        ServingCalibrations.Uncalibrated, pass_tokens=1024, request_overhead=Q_(0, "ms")
    )
    for capacity in (16, 80):
        device = larger(Hardware.H100, capacity / 80)
        r = ServingSolver.solve(
            model=LLAMA,
            hardware=device,
            seq_len=1024,
            batch_size=8,
            output_len=0,
            waves=1,
            calibration=constants,
        )
        assert (r.running_batch_size < 8) == (capacity < 80)
        assert si(r.ttft) == pytest.approx(4.5 * si(r.prefill_latency))


@some
@given(call=steps())
def test_faster_arithmetic_makes_no_step_longer(call):
    slow, fast = (
        solved(DistributedSolver, call | {"fleet": faster(call["fleet"], factor)})
        for factor in (1, 1.5)
    )
    assume(slow is not None and fast is not None)
    assert si(fast.step_latency_total) <= si(slow.step_latency_total) * (1 + 1e-12)


@some
@given(call=steps())
def test_longer_sequences_send_no_less(call):
    """More of it may run under the computation, which grows as well."""
    short, long = (
        solved(DistributedSolver, call | {"seq_len": call["seq_len"] * factor}) for factor in (1, 2)
    )
    assume(short is not None and long is not None)
    fewer, more = (
        si(r.communication_latency) + si(r.hidden_communication_latency) for r in (short, long)
    )
    assert more >= fewer * (1 - 1e-12)
    # Where an exchange hides all computation, both are equal to the last digits.
    assert si(long.step_latency_total) >= si(short.step_latency_total) * (1 - 1e-12)
    assert si(short.hidden_communication_latency) >= 0
    if call["efficiency"] is not None:
        assert si(short.hidden_communication_latency) == 0
