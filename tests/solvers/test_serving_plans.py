"""Serving on several devices: experts, data-parallel attention, stages, drafts, caches, pools."""

import inspect
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mlsysim import (
    ConfigError,
    DisaggregatedSolver,
    Fleet,
    Hardware,
    Models,
    ParallelismError,
    ServingCalibrations,
    ServingSolver,
    Systems,
    sweep,
)
from mlsysim.core.formulas import copies_by_rank, shared_pass_time
from mlsysim.core.types import Attention, FeedForward, Layers
from mlsysim.core.units import Q_
from mlsysim.solvers.serving import memory
from tests.networks import fleet_of, network

MIXTURE, DENSE = Models.DeepSeek_V3, Models.Llama3_8B
LOAD = {
    "model": MIXTURE,
    "hardware": Systems.Nodes.HGX_H200,
    "precision": "fp8",
    "seq_len": 1024,
    "output_len": 512,
    "batch_size": 64,
    "tp_size": 8,
}
TWO_NODES = Fleet(
    name="two", node=Systems.Nodes.HGX_H200, count=2, fabric=Systems.Fabrics.InfiniBand_NDR
)
MANY_NODES = fleet_of(8)
TIMES = ("ttft", "itl", "latency", "prefill_latency", "decode_latency")


def solve(**changes):
    return ServingSolver.solve(**LOAD | changes)


def seconds(result, field):
    return result[field].to("s").magnitude


# Limits


def test_a_replica_that_fits_in_a_node_of_a_fleet_uses_its_links_alone():
    node, fleet = solve(), solve(hardware=TWO_NODES)
    assert all(seconds(fleet, f) == pytest.approx(seconds(node, f)) for f in TIMES)


def test_ranks_of_a_dense_model_are_replicas():
    one = ServingSolver.solve(model=DENSE, hardware=Systems.Nodes.HGX_H200, batch_size=8)
    four = ServingSolver.solve(
        model=DENSE, hardware=Systems.Nodes.HGX_H200, batch_size=32, attention_dp=4
    )
    assert seconds(four, "decode_latency") == pytest.approx(seconds(one, "decode_latency"))
    assert four.decode_throughput.magnitude == pytest.approx(4 * one.decode_throughput.magnitude)
    assert four.total_memory_required.magnitude == pytest.approx(
        one.total_memory_required.magnitude
    )
    assert four.replica_devices == 4


@pytest.mark.parametrize(
    "plan",
    [
        {"ep_size": 8},
        {"tp_size": 1, "attention_dp": 8, "ep_size": 8},
        {"tp_size": 2, "attention_dp": 4},
        {"tp_size": 4, "pp_size": 2},
        {"hardware": TWO_NODES, "tp_size": 1, "attention_dp": 16, "ep_size": 16},
        {"dcp_size": 4},
        {"tp_size": 1, "attention_dp": 8, "ep_size": 8, "overlap_batches": 1},
        {"tp_size": 1, "attention_dp": 8, "ep_size": 8, "overlap_batches": 2},
        {"draft_tokens": 2, "acceptance_length": 2.1},
        {"cached_share": 0.5},
        {"token_budget": 512},
    ],
)
def test_clients_are_in_flight_or_nowhere(plan):
    """Little's law: clients = rate x latency, with every plan and any length of the output."""
    for output_len in (0, 1, 2, 512):
        r = solve(**plan, output_len=output_len)
        held = r.request_throughput.to("1/s").magnitude * seconds(r, "latency")
        assert held == pytest.approx(64), output_len


# By hand


def test_what_a_device_holds():
    """Ranks share experts and have copies of everything else."""
    block = 3 * MIXTURE.hidden_dim * MIXTURE.expert_ffn_dim
    experts = MIXTURE.moe_layers * MIXTURE.experts * block
    whole = solve().model_weights_size.to("byte").magnitude
    plans = {
        (8, 1, 1): whole / 8,
        (1, 8, 1): (whole - experts) + experts / 8,
        (2, 4, 1): (whole - experts) / 2 + experts / 8,
    }
    held = {}
    for (tp, dp, pp), weights in plans.items():
        r = solve(tp_size=tp, attention_dp=dp, pp_size=pp, calibration=NO_WORKSPACE)
        cache = r.kv_cache_size.to("byte").magnitude / (dp * pp) / NO_WORKSPACE.kv_share
        held[tp, dp, pp] = r.total_memory_required.to("byte").magnitude
        assert held[tp, dp, pp] == pytest.approx(weights + cache, rel=1e-4)
    assert held[1, 8, 1] > held[8, 1, 1]


# A pass of one token has hardly any activations.
NO_WORKSPACE = replace(ServingCalibrations.Hopper_TensorRT, pass_tokens=1)


def test_copies_that_leave_a_device():
    assert copies_by_rank(8, 1, 1) == 0
    assert copies_by_rank(8, 8, 1) == 7  # every expert is split over all: all get all tokens
    assert copies_by_rank(1, 8, 8) == pytest.approx(7 / 8)
    assert copies_by_rank(8, 256, 256) == pytest.approx(255 * (1 - (255 / 256) ** 8))


def test_a_pipeline_decodes_one_group_behind_the_other():
    """Two stages pass two groups of half of the sequences, and the step is that of a half."""
    small = {"model": Models.Qwen3_30B_A3B, "tp_size": 4, "calibration": FREE}
    one = solve(**small, batch_size=32)
    two = solve(**small, pp_size=2, batch_size=64)
    hops = 2 * (32 * 2048 * 2 / 4 / (0.77 * 450e9) + 0.6e-6)
    assert seconds(two, "decode_latency") == pytest.approx(
        seconds(one, "decode_latency") + hops, rel=1e-3
    )


FREE = replace(ServingCalibrations.Hopper_TensorRT, sequence_overhead=Q_(0, "us"))


def test_drafts_cost_passes_and_make_tokens():
    plain, drafted = solve(), solve(draft_tokens=1, acceptance_length=1)
    assert drafted.decode_latency > plain.decode_latency
    better = solve(draft_tokens=1, acceptance_length=1.8)
    assert seconds(better, "decode_latency") == pytest.approx(
        seconds(drafted, "decode_latency") / 1.8
    )
    assert better.output_throughput > plain.output_throughput


def test_what_is_cached_is_not_read_again():
    """A prompt of which half is cached: half of the products, three quarters of the scores."""
    times = [seconds(solve(cached_share=share), "prefill_latency") for share in (0, 0.5, 1)]
    assert times[0] > times[1] > times[2]
    assert times[1] > 0.5 * (times[0] - times[2])


def test_small_chunks_read_weights_more_often():
    times = [seconds(solve(token_budget=tokens), "prefill_latency") for tokens in (64, 256, 2048)]
    assert times == sorted(times, reverse=True)
    assert shared_pass_time(2.0, 3, 7) == 6
    assert shared_pass_time(2.0, 9, 7) == 14


def test_a_limit_on_sequences_is_one_on_memory():
    few = solve(max_sequences=16)
    assert few.running_batch_size == 16
    assert few.itl < solve().itl
    assert few.ttft > solve().ttft


# Directions


@pytest.mark.parametrize(
    ("changes", "grows"),
    [
        ({"expert_imbalance": 2.0}, True),
        ({"redundant_experts": 16}, True),
        ({"dispatch_precision": "bf16"}, True),
    ],
)
def test_direction_of_a_prefill(changes, grows):
    plan = {"tp_size": 1, "attention_dp": 8, "ep_size": 8}
    before, after = (solve(**plan, **more) for more in ({}, changes))
    field = "total_memory_required" if "redundant_experts" in changes else "prefill_latency"
    assert (after[field] > before[field]) is grows


def test_an_exchange_between_nodes_passes_the_ports():
    inside = solve(tp_size=1, attention_dp=8, ep_size=8, batch_size=512)
    across = solve(hardware=TWO_NODES, tp_size=1, attention_dp=16, ep_size=16, batch_size=1024)
    slower = replace(TWO_NODES, fabric=replace(TWO_NODES.fabric, bandwidth=Q_(5, "GB/s")))
    slow = solve(hardware=slower, tp_size=1, attention_dp=16, ep_size=16, batch_size=1024)
    assert slow.decode_latency > across.decode_latency
    assert across.decode_throughput > inside.decode_throughput


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"ep_size": 3}, "ep_size"),
        ({"attention_dp": 2}, "attention_dp"),
        ({"model": DENSE, "ep_size": 2}, "ep_size"),
        ({"redundant_experts": 1, "ep_size": 8}, "ep_size"),
        ({"redundant_experts": 10**6}, "redundant_experts"),
        ({"tp_size": 1, "pp_size": 99, "hardware": TWO_NODES}, "attention_dp"),
        ({"draft_tokens": 1}, "acceptance_length"),
        ({"acceptance_length": 2.0}, "acceptance_length"),
        ({"draft_tokens": 1, "acceptance_length": 2.5}, "acceptance_length"),
        ({"efficiency": 0.5, "ep_size": 8}, "ep_size"),
    ],
)
def test_contradictions_are_refused(changes, argument):
    with pytest.raises((ConfigError, ParallelismError)) as caught:
        solve(**changes)
    assert caught.value.argument == argument


# Two pools

POOLS = {
    "model": Models.Llama3_70B,
    "hardware": Systems.Nodes.DGX_H100,
    "precision": "fp8",
    "seq_len": 4096,
    "output_len": 512,
    "tp_size": 4,
    "prefill_tp_size": 2,
}


def pools(**changes):
    return DisaggregatedSolver.solve(**POOLS | changes)


@pytest.mark.parametrize("clients", [1, 16, 64, 2000])
def test_pools_obey_littles_law(clients):
    r = pools(batch_size=clients)
    rate = r.request_throughput.to("1/s").magnitude
    assert rate * seconds(r, "latency") == pytest.approx(clients)
    assert r.decode_batch_size == pytest.approx(rate * 511 * seconds(r, "itl"))
    assert rate <= 1.0001 * 1 / seconds(r, "prefill_latency") or clients > 16


def test_more_prefill_workers_help_until_decodes_are_the_limit():
    one, two, many = (pools(batch_size=64, prefill_workers=n) for n in (1, 2, 50))
    assert (one.bottleneck, many.bottleneck) == ("prefill", "clients")
    assert two.request_throughput.magnitude == pytest.approx(2 * one.request_throughput.magnitude)
    assert one.prefill_utilization == pytest.approx(1)
    assert many.throughput_per_device < two.throughput_per_device
    assert many.device_count == 2 * 50 + 4


def test_a_full_decode_pool_lets_requests_wait():
    """Its places and its step time set the rate; more clients only wait longer."""
    crowd = {"prefill_workers": 50, "seq_len": 32_000, "precision": "bf16", "prefill_tp_size": 4}
    few, many, more = (pools(batch_size=n, **crowd) for n in (4, 200, 300))
    assert (few.bottleneck, many.bottleneck, more.bottleneck) == ("clients", "decode", "decode")
    assert many.feasible
    assert not many.reasons
    assert many.decode_batch_size == pytest.approx(many.decode_places)
    assert 4 < many.decode_places < 200
    assert many.decode_memory_required <= many.decode_memory_capacity
    rate = many.decode_places / (511 * seconds(many, "itl"))
    assert many.request_throughput.to("1/s").magnitude == pytest.approx(rate)
    assert seconds(more, "ttft") - seconds(many, "ttft") == pytest.approx(100 / rate)
    # The same memory as of an engine that does both, at the share that it reserves
    plan = {k: v for k, v in POOLS.items() if k != "prefill_tp_size"} | {"precision": "bf16"}
    plan |= {"seq_len": 32_000, "batch_size": 200, "reserved_output": 1}
    constants = ServingCalibrations.Hopper_TensorRT_Pools
    both = ServingSolver.solve(**plan, calibration=constants)
    assert many.decode_places == both.running_batch_size


def test_one_client_waits_for_a_prefill_and_a_transfer():
    r = pools(batch_size=1)
    constants = ServingCalibrations.Hopper_TensorRT_Pools
    plan = {k: v for k, v in POOLS.items() if k != "prefill_tp_size"}
    alone = ServingSolver.solve(**plan, batch_size=1, calibration=constants)
    assert r.itl == alone.decode_latency
    overhead = constants.request_overhead.to("s").magnitude
    first = seconds(r, "prefill_latency") + seconds(r, "kv_transfer_time") + overhead
    assert seconds(r, "ttft") == pytest.approx(first)
    # 80 layers of 8 heads of 128, keys and values in a byte each, from two devices of the pool
    size = 2 * 80 * 8 * 128 * 4096 / 2
    link = Systems.Nodes.DGX_H100.scale_up
    moved = size / link.bandwidth.to("byte/s").magnitude + link.latency.to("s").magnitude
    assert seconds(r, "kv_transfer_time") == pytest.approx(moved)


def test_pools_of_different_devices():
    slow = pools(prefill_hardware=Systems.Nodes.DGX_A100, precision="bf16", prefill_tp_size=4)
    same = pools(precision="bf16", prefill_tp_size=4)
    assert slow.prefill_latency > 2 * same.prefill_latency
    assert slow.itl <= same.itl
    with pytest.raises(ConfigError, match="fp8"):
        pools(prefill_hardware=Systems.Nodes.DGX_A100)
    with pytest.raises(ConfigError) as caught:
        pools(hardware=Hardware.H100, tp_size=1, prefill_tp_size=1)
    assert caught.value.argument == "transfer_link"


def test_a_pool_keeps_wide_what_its_own_device_can():
    """T4 has no bf16, in which H100 computes attention beside products in 8 bits."""
    plan = {"model": Models.Llama3_8B, "precision": "int8", "tp_size": 1, "prefill_tp_size": 1}
    plan |= {"transfer_link": Systems.Fabrics.InfiniBand_NDR, "prefill_hardware": Hardware.T4}
    mixed = pools(**plan, hardware=Hardware.H100)
    alone = pools(**plan, hardware=Hardware.T4)
    assert mixed.prefill_latency == alone.prefill_latency


def test_pools_without_memory_for_the_weights():
    r = pools(model=Models.Llama3_405B)
    assert not r.feasible
    assert len(r.reasons) == 2


def test_memory_is_that_of_the_fullest_stage():
    # 61 layers on eight stages: seven each, and eight on the five before the last (vLLM,
    # get_pp_indices), all with experts. A layer has 187.1e6 parameters of attention, the router of
    # 1.8e6, a shared expert and 256 others of 44.0e6 each; two devices hold half each, in 8 bits.
    plan = {"hardware": TWO_NODES, "tp_size": 2, "batch_size": 1, "seq_len": 16, "output_len": 2}
    plan["calibration"] = NO_WORKSPACE
    eight, whole = solve(**plan, pp_size=8), solve(**plan | {"tp_size": 16})
    layer = 187.1e6 + 1.8e6 + 257 * 44.04e6
    held = eight.total_memory_required.to("byte").magnitude
    assert held == pytest.approx(8 * layer / 2, rel=0.003)
    assert held > whole.total_memory_required.to("byte").magnitude
    assert eight.fullest_stage == 2
    # Four stages have 15, 15, 16 and 15 layers, with 512 + 64 bytes of cache per token.
    plan |= {"tp_size": 4, "batch_size": 100, "seq_len": 30_000, "block_size": 1}
    four = solve(**plan, pp_size=4, kv_precision="fp8")
    cache = 100 * 30_002 * 16 * 576 / NO_WORKSPACE.kv_share
    held = four.total_memory_required.to("byte").magnitude
    assert held == pytest.approx(16 * layer / 4 + cache, rel=0.003)
    assert four.fullest_stage == 2
    # A cache of 80 layers on six stages: fourteen on the longest, not 13.3.
    dense = {"model": Models.Llama3_70B, "tp_size": 2, "hardware": TWO_NODES}
    five, six = (solve(**dense, pp_size=pp, batch_size=8).max_seq_len for pp in (5, 6))
    assert six < five * 16 / 13.3


# The first stage of two has most of the weights, and the second one all of the cache.
UNEVEN = network(
    "uneven",
    1024,
    32_000,
    Layers(count=2, feed_forward=FeedForward(width=262_144, gated=False)),
    Layers(count=2, attention=Attention(heads=8, kv_heads=8, head_dim=128)),
    seq_len=2**20,
)
SPLIT = {"model": UNEVEN, "hardware": TWO_NODES, "tp_size": 1, "pp_size": 2, "precision": "bf16"}
SPLIT |= {"seq_len": 1000, "output_len": 0, "block_size": 1, "calibration": NO_WORKSPACE}


@pytest.mark.parametrize(("sequences", "stage"), [(1, 0), (500, 1)])
def test_weights_and_cache_are_those_of_one_stage(sequences, stage):
    table = 2 * 32_000 * 1024
    first = table + 2 * 2 * 2 * 1024 * 262_144
    attention = table + 2 * 2 * 4 * 1024 * 1024
    each = 2 * 2 * 2 * 8 * 128 * 1000 / NO_WORKSPACE.kv_share
    r = solve(**SPLIT, batch_size=sequences)
    assert r.total_memory_required.to("byte").magnitude == pytest.approx(
        (first, attention + sequences * each)[stage], rel=1e-3
    )
    assert r.fullest_stage == stage
    # Only the second stage limits the sequences, and their length.
    room = r.memory_capacity.to("byte").magnitude - attention
    assert r.max_batch_size == pytest.approx(room / each, rel=2e-3)
    assert r.max_seq_len == pytest.approx(1000 * room / each / sequences, rel=2e-3)


def test_reasons_name_the_stage():
    r = solve(tp_size=2, pp_size=2)
    assert not r.feasible
    assert f"stage {r.fullest_stage} " in r.reasons[0]
    r = pools(model=MIXTURE, prefill_tp_size=2, prefill_pp_size=4, tp_size=2, pp_size=4)
    assert len(r.reasons) == 2
    assert (r.prefill_fullest_stage, r.decode_fullest_stage) == (2, 2)
    assert all("stage 2 " in reason for reason in r.reasons)
    r = pools(model=MIXTURE, prefill_tp_size=4, prefill_pp_size=2, tp_size=8)
    assert (r.prefill_fullest_stage, r.decode_fullest_stage) == (1, 0)


STACKS = (
    Models.Llama3_70B,
    Models.DeepSeek_V3,
    Models.GPT_OSS_120B,
    Models.Nemotron.Nemotron_3_Super,
    Models.Nemotron.Nemotron_H_56B,
    UNEVEN,
)
STAGED = st.fixed_dictionaries(
    {
        "model": st.sampled_from(STACKS),
        "pp_size": st.sampled_from([2, 3, 4, 6, 8, 16]),
        "attention_dp": st.sampled_from([1, 2]),
        "batch_size": st.sampled_from([1, 40, 3000]),
        "seq_len": st.sampled_from([100, 8000]),
        "lora_rank": st.sampled_from([None, 16]),
    }
)


def every_stage(plan):
    """Memory on a device of each stage, in order: weights and the like, and caches."""
    known = inspect.signature(ServingSolver.solve).parameters
    i = ServingSolver.admit({name: item.default for name, item in known.items()} | plan).plain()
    memory._stage_layers.cache_clear()
    try:
        with patch.object(memory, "longer_between", lambda stages: list(range(1, len(stages) - 1))):
            found = memory.server_memory(i)
            return found.held, found.reserved(i.batch_size, i.seq_len + i.output_len)
    finally:
        memory._stage_layers.cache_clear()


@settings(max_examples=60)
@given(STAGED)
def test_memory_is_the_most_of_any_stage(plan):
    plan = LOAD | plan | {"hardware": MANY_NODES, "tp_size": 1, "output_len": 10}
    if plan["lora_rank"]:
        plan |= {"adapters": 20}
    assume(plan["pp_size"] <= plan["model"].layers)
    r = ServingSolver.solve(**plan)
    held, caches = every_stage(plan)
    assert len(held) == plan["pp_size"]
    needs = [sum(both) for both in zip(held, caches, strict=True)]
    needed = r.total_memory_required.to("byte").magnitude
    assert needed == pytest.approx(max(needs), rel=1e-12)
    assert needs[r.fullest_stage] == pytest.approx(max(needs), rel=1e-12)
    assert sum(needs) / len(needs) <= needed <= max(held) + max(caches)
    # What fits on the stage with the least room for it fits.
    plan |= {"max_sequences": None}
    if r.max_batch_size:
        assert ServingSolver.solve(**plan | {"batch_size": r.max_batch_size}).feasible
    assert not ServingSolver.solve(**plan | {"batch_size": r.max_batch_size + 1}).feasible
    longest = r.max_seq_len
    assert r.feasible == (longest is None or longest >= plan["seq_len"] + 10)


@pytest.mark.parametrize("model", STACKS)
def test_stages_of_a_sweep_are_those_of_solve(model):
    plan = LOAD | {"model": model, "hardware": MANY_NODES, "tp_size": 1, "lora_rank": 8}
    plan |= {"pp_size": [1, 2, 3, 4], "batch_size": [1, 2000]}
    fields = ("total_memory_required", "fullest_stage", "max_batch_size", "max_seq_len", "feasible")
    for row in sweep(ServingSolver, **plan, adapters=8):
        r = ServingSolver.solve(
            **plan | {"pp_size": row["pp_size"], "batch_size": row["batch_size"]}, adapters=8
        )
        assert [row[name] for name in fields] == [r[name] for name in fields]
    # The last row has four stages. Recorded arithmetic has units.
    derived = r.explain().roots["total_memory_required"].value.to("GB").magnitude
    assert derived == pytest.approx(r.total_memory_required.magnitude, rel=1e-12)


@pytest.mark.parametrize("model", [Models.DeepSeek_V3, Models.Nemotron.Nemotron_3_Super])
def test_no_stage_of_a_server_holds_less_than_the_mean(model):
    plan = {"model": model, "hardware": TWO_NODES, "tp_size": 2, "attention_dp": 1}
    sizes = [solve(**plan, pp_size=pp).total_memory_required for pp in (1, 2, 4, 8)]
    for pp, size in zip((2, 4, 8), sizes[1:], strict=True):
        assert size * pp >= sizes[0] * 0.999
