"""Decode context parallelism: ranks with the same KV heads divide the tokens of the cache."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsysim import (
    ConfigError,
    DisaggregatedSolver,
    Fleet,
    Models,
    OpenLoopSolver,
    ParallelismError,
    ServingCalibrations,
    ServingSolver,
    Systems,
)
from tests.networks import NETWORKS

LATENT, GROUPED = Models.DeepSeek_V3, Models.Qwen3_235B_A22B
NODE = Systems.Nodes.HGX_H200
CONSTANTS = ServingCalibrations.Hopper_TensorRT
LOAD = {
    "model": LATENT,
    "hardware": NODE,
    "precision": "fp8",
    "seq_len": 30_000,
    "output_len": 1_000,
    "batch_size": 32,
    "tp_size": 8,
    "calibration": CONSTANTS,
}


def solve(**changes):
    return ServingSolver.solve(**LOAD | changes)


def number(result, field, unit):
    return result[field].to(unit).magnitude


# Limits and counting


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_ranks_divide_the_cache_and_nothing_else(ranks):
    """61 layers keep 576 bytes per token of each of 32 sequences of 31,000 tokens."""
    cache = 61 * 576 * 31_000 * 32
    less = number(solve(), "total_memory_required", "byte") - number(
        solve(dcp_size=ranks), "total_memory_required", "byte"
    )
    assert less == pytest.approx(cache * (1 - 1 / ranks) / CONSTANTS.kv_share)
    one, several = solve(), solve(dcp_size=ranks)
    assert several.prefill_latency == one.prefill_latency
    assert several.kv_cache_size == one.kv_cache_size
    assert several.replica_devices == one.replica_devices
    # Whole sequences and tokens: what fits grows by the same factor, but for a rest.
    assert several.max_batch_size // ranks == one.max_batch_size
    assert several.max_seq_len // ranks == one.max_seq_len


def test_a_step_reads_less_and_sends_more():
    """By hand, where reading the cache takes longer than attending to it."""
    seen = {"model": GROUPED, "kv_precision": "bf16"}
    one, two = solve(**seen), solve(**seen, dcp_size=2)
    gained = number(one, "decode_latency", "s") - number(two, "decode_latency", "s")
    # 94 layers; a device reads one head's keys and values, 128 wide, in 2 bytes, of 32 sequences.
    read = 94 * 2 * 128 * 2 * 30_500 * 32
    bandwidth = CONSTANTS.kv_efficiency * NODE.accelerator.memory.si("bandwidth")
    # Of the 64 query heads, a device has 8: it gathers as many, and sends as many partial outputs.
    sent = 94 * 32 * 8 * (128 + 128 + 2) * 2
    link = CONSTANTS.link_efficiency * NODE.scale_up.si("bandwidth")
    fixed = 94 * 2 * CONSTANTS.all_reduce_overhead.to("s").magnitude
    assert gained == pytest.approx(read / 2 / bandwidth - sent / link - fixed, rel=1e-6)
    assert gained > 0


def test_a_short_context_pays_for_the_exchange_alone():
    assert solve(seq_len=100, output_len=2, dcp_size=8).decode_latency > (
        solve(seq_len=100, output_len=2).decode_latency
    )


def test_an_exchange_between_nodes_takes_longer():
    two = Fleet(name="two", node=NODE, count=2, fabric=Systems.Fabrics.InfiniBand_NDR)
    wide = {"hardware": two, "tp_size": 16}
    near, far = solve(**wide, dcp_size=8), solve(**wide, dcp_size=16)
    assert far.decode_latency > near.decode_latency
    assert far.total_memory_required < near.total_memory_required


# Caches that are not divided


def test_windows_and_states_are_whole_on_every_rank():
    """In Gemma 3 only the layers without a window shrink, and in Qwen3-Next those with a cache."""
    for name, tp in (("Gemma 3 27B", 32), ("Qwen3-Next 80B-A3B", 16)):
        network = NETWORKS[name]
        fleet = Fleet(name="f", node=NODE, count=4, fabric=Systems.Fabrics.InfiniBand_NDR)
        job = {"model": network, "hardware": fleet, "tp_size": tp, "seq_len": 20_000}
        one, two = solve(**job), solve(**job, dcp_size=2)
        growing = sum(
            layers * 2 * a.cached_heads * a.cached_dim
            for layers, a in network.attentions
            if getattr(a, "reach", 0) is None
        )
        heads = next(
            a.cached_heads for _, a in network.attentions if getattr(a, "reach", 0) is None
        )
        less = growing * 21_000 * 32 / heads / 2 / CONSTANTS.kv_share
        saved = number(one, "total_memory_required", "byte") - number(
            two, "total_memory_required", "byte"
        )
        assert 0 < saved == pytest.approx(less, rel=1e-6)
        assert two.max_seq_len > one.max_seq_len


@pytest.mark.parametrize(
    "changes",
    [
        {"dcp_size": 3},
        {"dcp_size": 16},
        {"model": Models.Llama3_70B, "dcp_size": 2},  # 8 KV heads for 8 devices
        {"model": GROUPED, "dcp_size": 4},  # 4 KV heads: two copies of each
        {"model": NETWORKS["Mamba-2 2.7B"], "tp_size": 8, "dcp_size": 2},
    ],
)
def test_without_copies_there_is_nothing_to_divide(changes):
    with pytest.raises(ParallelismError) as caught:
        solve(**changes)
    assert caught.value.argument == "dcp_size"


# Everywhere else


def test_pools_divide_contexts_in_decode():
    job = {k: v for k, v in LOAD.items() if k != "calibration"} | {"prefill_tp_size": 8}
    one, four = (DisaggregatedSolver.solve(**job, dcp_size=n) for n in (1, 4))
    assert four.decode_memory_required < one.decode_memory_required
    assert four.prefill_memory_required == one.prefill_memory_required
    assert four.prefill_latency == one.prefill_latency
    assert four.kv_transfer_time == one.kv_transfer_time  # a prefill worker still has whole copies


def test_an_open_loop_holds_more_sequences():
    job = {k: v for k, v in LOAD.items() if k not in ("batch_size", "calibration")}
    one, eight = (OpenLoopSolver.solve(**job, arrival_rate=0.1, dcp_size=n) for n in (1, 8))
    assert eight.max_batch_size > 4 * one.max_batch_size
    with pytest.raises(ConfigError) as caught:
        OpenLoopSolver.solve(**job, arrival_rate=0.1, dcp_size=8, role="prefill")
    assert caught.value.argument == "dcp_size"


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(["Gemma 3 27B", "DeepSeek-V3.2", "Qwen3-Next 80B-A3B"]),
    st.integers(1, 200_000),
    st.integers(1, 500),
    st.sampled_from([1, 16]),
)
def test_more_ranks_never_need_more_memory(name, seq_len, clients, block):
    fleet = Fleet(name="f", node=NODE, count=8, fabric=Systems.Fabrics.InfiniBand_NDR)
    job = {"model": NETWORKS[name], "hardware": fleet, "tp_size": 32 if "G" in name else 16}
    found = [
        solve(**job, seq_len=seq_len, batch_size=clients, block_size=block, dcp_size=ranks)
        for ranks in (1, 2)
    ]
    needed = [number(r, "total_memory_required", "byte") for r in found]
    assert needed == sorted(needed, reverse=True)
    fitting = [r.max_batch_size for r in found]
    assert fitting == sorted(fitting)
