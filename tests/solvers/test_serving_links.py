"""Communication of a server: the exchange with experts, and contexts that ranks divide."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsysim import (
    Q_,
    ConfigError,
    DisaggregatedSolver,
    Fleet,
    Models,
    OpenLoopSolver,
    ParallelismError,
    ServingCalibrations,
    ServingSolver,
    Systems,
    Traffic,
    plan_serving,
)
from mlsysim.core import formulas as f
from tests.networks import NETWORKS

NODE = Systems.Nodes.HGX_H200
FLEET = Fleet(name="two", node=NODE, count=2, fabric=Systems.Fabrics.InfiniBand_NDR)
CONSTANTS = ServingCalibrations.Hopper_TensorRT
LATENT, GROUPED = Models.DeepSeek_V3, Models.Qwen3_235B_A22B

# The exchange with experts beneath computation: none, within a batch, or between two halves

EXCHANGING = {
    "model": Models.DeepSeek_V3,
    "hardware": FLEET,
    "precision": "fp8",
    "seq_len": 4_000,
    "output_len": 1_000,
    "batch_size": 16 * 64,
    "attention_dp": 16,
    "ep_size": 16,
    "calibration": CONSTANTS,
}
MIXED = 58
"""Layers with experts; three others are dense and exchange nothing."""


def exchanging(**changes):
    return ServingSolver.solve(**EXCHANGING | changes)


def step(**changes):
    return exchanging(**changes).decode_latency.to("s").magnitude


def exchanges(tokens, fleet=FLEET, width=7_168):
    """Return the times to send a rank's tokens to experts in 8 bits, and back in 16, by hand."""
    copies = 15 * (1 - (15 / 16) ** 8)
    inside = copies * 7 / 15
    link, port = NODE.scale_up.si("bandwidth"), fleet.fabric.si("bandwidth")
    fixed = CONSTANTS.exchange_overhead.to("s").magnitude + fleet.fabric.si("latency")
    return [
        max(inside * size / link, (copies - inside) * size / port) / CONSTANTS.link_efficiency
        + fixed
        for size in (tokens * width, tokens * width * 2)
    ]


def slower(bandwidth):
    return replace(FLEET, fabric=replace(FLEET.fabric, bandwidth=Q_(bandwidth, "GB/s")))


# Limits, and by hand


def test_two_halves_hide_all_of_a_short_exchange():
    """Each half is a step of its own, without the exchange in layers with experts."""
    apart = 2 * step(batch_size=16 * 32)
    hidden = 2 * MIXED * sum(exchanges(32))
    assert step(overlap_batches=2) == pytest.approx(apart - hidden, rel=1e-9)


def test_two_halves_hide_a_long_exchange_beneath_all_computation():
    """Over slow links, a step takes as long as the exchange, whose excess is all exposed."""
    slow, slowest = slower(2), slower(1)
    added = step(hardware=slowest, overlap_batches=2) - step(hardware=slow, overlap_batches=2)
    longer = sum(exchanges(32, slowest)) - sum(exchanges(32, slow))
    assert added == pytest.approx(2 * MIXED * longer, rel=1e-9)
    # What is hidden is the same in both: all computation of these layers.
    for fleet in (slow, slowest):
        apart = 2 * step(hardware=fleet, batch_size=16 * 32)
        hidden = apart - step(hardware=fleet, overlap_batches=2)
        assert hidden < 2 * MIXED * sum(exchanges(32, fleet))
        assert hidden == pytest.approx(
            2 * step(hardware=slow, batch_size=16 * 32) - step(hardware=slow, overlap_batches=2)
        )


def test_one_batch_hides_what_its_last_product_covers():
    """Qwen3 has no shared experts. The last product of the routed ones reads 4096 x 1536 each."""
    job = {"model": Models.Qwen3_235B_A22B, "hardware": slower(1), "batch_size": 16 * 8}
    held = f.experts_visited(128, 8, 128) / 16
    bandwidth = CONSTANTS.expert_memory * CONSTANTS.memory_efficiency
    bandwidth *= NODE.accelerator.memory.si("bandwidth")
    last = f.gemm_memory_time(8 * 128 / 16, 1_536, 4_096, held, bandwidth, 1, 2)
    assert last < exchanges(8, slower(1), 4_096)[1]
    saved = step(**job) - step(**job, overlap_batches=1)
    assert saved == pytest.approx(94 * last, rel=1e-6)


def test_shared_experts_hide_a_dispatch():
    with_shared = step() - step(overlap_batches=1)
    plain = replace(Models.DeepSeek_V3, shared_ffn_dim=0)
    without = step(model=plain) - step(model=plain, overlap_batches=1)
    assert with_shared > without > 0


@pytest.mark.parametrize(("each", "helps"), [(2, False), (8, False), (256, True)])
def test_halves_help_large_batches_alone(each, helps):
    """Two halves read the weights twice and launch twice, which small batches do not pay for."""
    job = {"batch_size": 16 * each, "seq_len": 500, "output_len": 100}
    assert (step(**job, overlap_batches=2) < step(**job)) is helps


def test_one_sequence_has_no_halves():
    assert step(batch_size=16, overlap_batches=2) == step(batch_size=16)


def test_prefill_is_split_as_well():
    """A rank's 2,048 tokens are two halves; all ranks read a prompt at the same time."""
    full = {"batch_size": 16, "seq_len": 2_048, "token_budget": 2_048}
    plain, two = exchanging(**full), exchanging(**full, overlap_batches=2)
    assert two.prefill_latency != plain.prefill_latency
    half = exchanging(**full | {"token_budget": 1_024})
    saved = half.prefill_latency - two.prefill_latency
    assert 0 < saved.to("s").magnitude <= 2 * MIXED * sum(exchanges(1_024))


def test_deepseeks_own_deployment_comes_closer():
    """18 nodes of H800, 88 sequences of 4,989 tokens per GPU.

    DeepSeek published 14,800 tokens per second and node, at 20 to 22 per second and user
    (open-infra-index, day 6). The model stays below that, and halves close a fifth of the gap.
    """
    nodes = replace(FLEET, node=Systems.Nodes.HGX_H800, count=18)
    job = {
        "hardware": nodes,
        "seq_len": 4_489,
        "batch_size": 144 * 88,
        "attention_dp": 144,
        "ep_size": 144,
        "redundant_experts": 32,
        "kv_precision": "bf16",
    }
    plain, two = (144 * 88 / step(**job, overlap_batches=n) / 18 for n in (0, 2))
    assert plain < two < 14_800
    assert two - plain > 0.15 * (14_800 - plain)


def test_an_open_deployment_comes_closer():
    """9 nodes of H100 for decode, 256 sequences per GPU after prompts of 2,000 tokens.

    SGLang published 22,300 tokens per second and node with two-batch overlap
    (https://lmsys.org/blog/2025-05-05-large-scale-ep).
    """
    job = {
        "hardware": replace(FLEET, node=Systems.Nodes.DGX_H100, count=9),
        "seq_len": 2_000,
        "output_len": 100,
        "batch_size": 72 * 256,
        "attention_dp": 72,
        "ep_size": 72,
        "redundant_experts": 32,
        "kv_precision": "bf16",
    }
    plain, two = (72 * 256 / step(**job, overlap_batches=n) / 9 for n in (0, 2))
    assert abs(two / 22_300 - 1) < 0.5 * abs(plain / 22_300 - 1)


# Refused, and everywhere else


@pytest.mark.parametrize(
    "changes",
    [
        {"overlap_batches": 3},
        {"overlap_batches": -1},
        {"overlap_batches": 2, "attention_dp": 1, "ep_size": 8, "tp_size": 8},
        {"overlap_batches": 1, "model": Models.Llama3_8B, "ep_size": 1},
    ],
)
def test_nothing_to_hide_is_refused(changes):
    with pytest.raises(ConfigError) as caught:
        exchanging(**changes)
    assert caught.value.argument == "overlap_batches"


def test_pools_and_open_loops_have_it():
    job = {n: v for n, v in EXCHANGING.items() if n != "calibration"}
    pools = job | {"prefill_attention_dp": 16, "prefill_ep_size": 16, "prefill_workers": 20}
    pools["batch_size"] = 8_192
    none, two = (DisaggregatedSolver.solve(**pools, overlap_batches=n) for n in (0, 2))
    assert two.itl < none.itl
    # A prefill pool whose attention is on one rank exchanges nothing.
    whole = job | {"prefill_tp_size": 8}
    none, two = (DisaggregatedSolver.solve(**whole, overlap_batches=n) for n in (0, 2))
    assert two.prefill_latency == none.prefill_latency
    load = {n: v for n, v in job.items() if n != "batch_size"} | {"batch_limit": 2_048}
    none, two = (OpenLoopSolver.solve(**load, arrival_rate=10, overlap_batches=n) for n in (0, 2))
    assert two.request_capacity != none.request_capacity


def test_plans_have_an_axis():
    job = {
        "model": Models.Qwen3_30B_A3B,
        "traffic": Traffic(
            arrival_rate=Q_(5, "1/s"),
            seq_len=1_000,
            output_len=200,
            input_variation=0,
            output_variation=0,
        ),
        "slo": {"tpot_p99": Q_(2, "s")},
        "devices": [NODE],
        "precision": "fp8",
        "tp_size": 1,
        "attention_dp": [1, 4],
        "batch_limit": [64],
    }
    usual, all_three = plan_serving(**job), plan_serving(**job, overlap_batches=[0, 1, 2])
    # One engine has a single rank. The other four have ranks, and either one or four groups.
    assert {*np.asarray(usual.plans["overlap_batches"]).tolist()} == {0}
    found = all_three.plans
    ranks, hidden = (np.asarray(found[n]) for n in ("attention_dp", "overlap_batches"))
    assert {*hidden[ranks == 4].tolist()} == {0, 1, 2}
    assert {*hidden[ranks == 1].tolist()} == {0}
    row = int(np.flatnonzero(hidden == 2)[0])
    solved = found.result(row).tpot_mean.to("ms").magnitude
    assert solved == pytest.approx(found["tpot_mean"][row].to("ms").magnitude)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(2, 400),
    st.integers(1, 20_000),
    st.floats(0.1, 1_000),
    st.sampled_from([0, 1]),
)
def test_no_more_is_hidden_than_there_is(each, seq_len, bandwidth, drafts):
    job = {
        "hardware": slower(bandwidth),
        "batch_size": 16 * each,
        "seq_len": seq_len,
        "draft_tokens": drafts,
        "acceptance_length": 1.0 if drafts else None,
        "max_sequences": 16 * each,
    }
    running = exchanging(**job).running_batch_size
    job |= {"batch_size": running, "max_sequences": running}
    layers = MIXED * (1 + drafts / 61)
    tokens = running / 16 * (1 + drafts)
    plain, within, between = (step(**job, overlap_batches=n) for n in (0, 1, 2))
    sent = layers * sum(exchanges(tokens, job["hardware"]))
    assert plain - sent <= within * (1 + 1e-9)
    assert within <= plain * (1 + 1e-9)
    # Halves take at least as long as the exchange, and as long as a batch without any.
    assert between >= max(layers * sum(exchanges(tokens, job["hardware"])), plain - sent) * 0.999


# Decode context parallelism: ranks with the same KV heads divide the tokens of the cache

DIVIDING = {
    "model": LATENT,
    "hardware": NODE,
    "precision": "fp8",
    "seq_len": 30_000,
    "output_len": 1_000,
    "batch_size": 32,
    "tp_size": 8,
    "calibration": CONSTANTS,
}


def dividing(**changes):
    return ServingSolver.solve(**DIVIDING | changes)


def number(result, field, unit):
    return result[field].to(unit).magnitude


# Limits and counting


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_ranks_divide_the_cache_and_nothing_else(ranks):
    """61 layers keep 576 bytes per token of each of 32 sequences of 31,000 tokens."""
    cache = 61 * 576 * 31_000 * 32
    less = number(dividing(), "total_memory_required", "byte") - number(
        dividing(dcp_size=ranks), "total_memory_required", "byte"
    )
    assert less == pytest.approx(cache * (1 - 1 / ranks) / CONSTANTS.kv_share)
    one, several = dividing(), dividing(dcp_size=ranks)
    assert several.prefill_latency == one.prefill_latency
    assert several.kv_cache_size == one.kv_cache_size
    assert several.replica_devices == one.replica_devices
    # Whole sequences and tokens: what fits grows by the same factor, but for a rest.
    assert several.max_batch_size // ranks == one.max_batch_size
    assert several.max_seq_len // ranks == one.max_seq_len


def test_a_step_reads_less_and_sends_more():
    """By hand, where reading the cache takes longer than attending to it."""
    seen = {"model": GROUPED, "kv_precision": "bf16"}
    one, two = dividing(**seen), dividing(**seen, dcp_size=2)
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
    assert dividing(seq_len=100, output_len=2, dcp_size=8).decode_latency > (
        dividing(seq_len=100, output_len=2).decode_latency
    )


def test_an_exchange_between_nodes_takes_longer():
    wide = {"hardware": FLEET, "tp_size": 16}
    near, far = dividing(**wide, dcp_size=8), dividing(**wide, dcp_size=16)
    assert far.decode_latency > near.decode_latency
    assert far.total_memory_required < near.total_memory_required


# Caches that are not divided


def test_windows_and_states_are_whole_on_every_rank():
    """In Gemma 3 only the layers without a window shrink, and in Qwen3-Next those with a cache."""
    for name, tp in (("Gemma 3 27B", 32), ("Qwen3-Next 80B-A3B", 16)):
        network = NETWORKS[name]
        fleet = Fleet(name="f", node=NODE, count=4, fabric=Systems.Fabrics.InfiniBand_NDR)
        job = {"model": network, "hardware": fleet, "tp_size": tp, "seq_len": 20_000}
        one, two = dividing(**job), dividing(**job, dcp_size=2)
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
        dividing(**changes)
    assert caught.value.argument == "dcp_size"


# Everywhere else


def test_pools_divide_contexts_in_decode():
    job = {k: v for k, v in DIVIDING.items() if k != "calibration"} | {"prefill_tp_size": 8}
    one, four = (DisaggregatedSolver.solve(**job, dcp_size=n) for n in (1, 4))
    assert four.decode_memory_required < one.decode_memory_required
    assert four.prefill_memory_required == one.prefill_memory_required
    assert four.prefill_latency == one.prefill_latency
    assert four.kv_transfer_time == one.kv_transfer_time  # a prefill worker still has whole copies


def test_an_open_loop_holds_more_sequences():
    job = {k: v for k, v in DIVIDING.items() if k not in ("batch_size", "calibration")}
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
        dividing(**job, seq_len=seq_len, batch_size=clients, block_size=block, dcp_size=ranks)
        for ranks in (1, 2)
    ]
    needed = [number(r, "total_memory_required", "byte") for r in found]
    assert needed == sorted(needed, reverse=True)
    fitting = [r.max_batch_size for r in found]
    assert fitting == sorted(fitting)
