"""Prefixes between the turns of sessions: kept on the device, loaded from the host, or gone."""

from __future__ import annotations

import heapq
import math
import random
from collections import OrderedDict

import pytest

from mlsysim import (
    Q_,
    ConfigError,
    DisaggregatedSolver,
    Hardware,
    Models,
    OpenLoopSolver,
    ServingSolver,
    Systems,
    Traffic,
    plan_serving,
    sweep,
)
from mlsysim.core import formulas as f
from tests.samples import ms

KV = 128 * 1024
"""Bytes of a token's keys and values in Llama 3 8B: 32 layers, 8 heads of 128, 16 bits."""
LOAD = {
    "model": Models.Llama3_8B,
    "hardware": Hardware.H100,
    "precision": "bf16",
    "seq_len": 2000,
    "output_len": 200,
}
CHAT = {"turns": 5, "turn_tokens": 50, "think_time": Q_(60, "s")}


def served(**more):
    return ServingSolver.solve(**LOAD | more)


def test_the_share_that_a_session_repeats():
    # Five prompts of 500, 750, 1,000, 1,250 and 1,500 tokens: 500 + 4 x 50 of 5,000 are new.
    assert f.reusable_share(1000, 200, 5, 50) == pytest.approx(1 - 700 / 5000)
    assert f.reusable_share(1000, 200, 1, 50) == 0


def test_prefixes_that_stay_for_a_known_time():
    # Of four turns three go on. If prefixes stay for ln 2 think times, half of them are there
    # again, and the cache holds 3/4 x 1/2 + 1/4 x ln 2 think times of what comes in.
    room = 3 / 8 + math.log(2) / 4
    assert f.prefix_hit_share(room, 1, 1, 4) == pytest.approx(0.5)
    assert f.prefix_hit_share(6 * room, 2, 3, 4) == pytest.approx(0.5)
    assert f.prefix_hit_share(-1, 1, 1, 4) == f.prefix_hit_share(0, 1, 1, 4) == 0
    # Sessions without an end: the room over what thinking users have left.
    assert f.prefix_hit_share(0.3, 1, 1, 1e9) == pytest.approx(0.3, rel=1e-6)
    assert f.prefix_hit_share(1e6, 1, 1, 4) == 1


def played(room, turns, requests=30_000):
    """Hits in a cache of `room` prefixes that drops the oldest; one request and think time each."""
    chance = random.Random(1)
    coming: list[tuple[float, int, int]] = []
    kept: OrderedDict[int, None] = OrderedDict()
    now, session, hits, asked = 0.0, 0, 0, 0
    start = chance.expovariate(1 / turns)
    for _ in range(requests):
        if coming and coming[0][0] < start:
            now, name, turn = heapq.heappop(coming)
            asked += 1
            if name in kept:
                hits += 1
                del kept[name]
        else:
            now, name, turn = start, session, 1
            session += 1
            start = now + chance.expovariate(1 / turns)
        kept[name] = None
        if len(kept) > room:
            kept.popitem(last=False)
        if turn < turns:
            # Think times are 100 requests long on average.
            heapq.heappush(coming, (now + chance.expovariate(1 / 100), name, turn + 1))
    return hits / asked


@pytest.mark.parametrize(("room", "turns"), [(30, 4), (60, 4), (60, 2), (90, 20)])
def test_hits_next_to_a_simulation(room, turns):
    assert f.prefix_hit_share(room, 1, 100, turns) == pytest.approx(played(room, turns), abs=0.02)


def test_a_session_by_hand():
    r = served(batch_size=32, **CHAT)
    rate = r.request_throughput.to("1/s").magnitude
    # Memory that neither weights and workspace nor 32 sequences of 2,100 tokens need
    one = ServingSolver.solve(**LOAD | {"seq_len": 1, "output_len": 0})
    held = one.total_memory_required.to("byte").magnitude - KV / 0.9
    room = one.memory_capacity.to("byte").magnitude - held - 32 * 2100 * KV / 0.9
    hits = f.prefix_hit_share(room, rate * 2200 * KV / 0.9, 60, 5)
    assert r.prefix_hit_share == pytest.approx(hits, rel=1e-3)
    # Prompts of 1,500 to 2,500 tokens; 1,500 + 4 x 50 of 10,000 are new.
    assert r.cached_tokens == pytest.approx(2000 * (1 - 1700 / 10_000) * hits, rel=1e-3)
    assert r.sessions == pytest.approx(32 + rate * 4 / 5 * 60, rel=1e-3)
    # It is the answer for such a cached share.
    same = served(batch_size=32, cached_share=r.cached_tokens / 2000)
    assert ms(r.ttft) == pytest.approx(ms(same.ttft))
    assert rate == pytest.approx(same.request_throughput.to("1/s").magnitude)
    assert (r.latency * r.request_throughput).to("").magnitude == pytest.approx(32)


def test_users_who_think_longer_find_less():
    shares = [served(batch_size=32, **CHAT | {"think_time": Q_(s, "s")}) for s in (1, 30, 300, 3e4)]
    hits = [r.prefix_hit_share for r in shares]
    assert hits == sorted(hits, reverse=True)
    assert hits[0] > 0.99
    assert hits[-1] < 0.01
    assert [ms(r.ttft) for r in shares] == sorted(ms(r.ttft) for r in shares)


def test_a_host_keeps_what_a_device_drops():
    some, more, all_ = (
        served(batch_size=32, **CHAT, host_memory=Q_(size, "GB")) for size in (1, 100, 1e5)
    )
    assert some.prefix_hit_share < more.prefix_hit_share < all_.prefix_hit_share
    assert all_.prefix_hit_share == pytest.approx(1)
    assert all_.cached_tokens + all_.loaded_tokens == pytest.approx(0.83 * 2000)
    assert all_.request_throughput > more.request_throughput > some.request_throughput


def test_loading_takes_the_time_of_its_bytes():
    half = {"batch_size": 1, "host_link": Systems.Links.PCIe5}
    cached = served(**half, cached_share=0.5)
    loaded = served(**half, loaded_share=0.5)
    # 1,000 tokens at 64 GB/s, after a latency of 0.6 us
    load = 1e3 * (1000 * KV / 64e9 + 0.6e-6)
    assert ms(loaded.loading_latency) == pytest.approx(load)
    assert ms(loaded.ttft - cached.ttft) == pytest.approx(load)
    assert loaded.itl == cached.itl
    # The same over the device's own link, whose latency is not known
    own = served(batch_size=1, loaded_share=0.5)
    assert ms(own.loading_latency) == pytest.approx(1e3 * 1000 * KV / 64e9)
    # Two devices have half of the heads each, and a link each.
    pair = {"hardware": Systems.Nodes.DGX_H100, "tp_size": 2, "loaded_share": 0.5}
    assert ms(served(**pair).loading_latency) == pytest.approx(1e3 * 500 * KV / 64e9)


def test_a_link_is_no_faster_than_its_prompts():
    slow = served(batch_size=64, loaded_share=0.9, host_link=Systems.Fabrics.Ethernet_10G)
    each = 1800 * KV / 1.25e9 + 50e-6
    assert slow.request_throughput.to("1/s").magnitude == pytest.approx(1 / each)
    assert (slow.latency * slow.request_throughput).to("").magnitude == pytest.approx(64)


def test_the_length_from_which_loading_is_faster():
    # 100 us + 10 us n = 20 us n + 1 ns n^2, and a load that is slower for each token
    n = f.load_crossover(1e-4, 1e-5, 2e-5, 1e-9)
    assert 1e-4 + 1e-5 * n == pytest.approx(2e-5 * n + 1e-9 * n**2)
    late = f.load_crossover(1e-4, 1e-4, 2e-5, 1e-9)
    assert 1e-4 + 1e-4 * late == pytest.approx(2e-5 * late + 1e-9 * late**2)
    assert late == pytest.approx(80_001.25, rel=1e-6)
    assert f.load_crossover(1e-4, 1e-5, 2e-5, 0) == pytest.approx(10)
    assert f.load_crossover(1e-4, 2e-5, 1e-5, 0) == math.inf


def test_reading_takes_as_long_as_loading_at_the_crossover():
    link = Systems.Fabrics.Ethernet_10G
    guess = served(host_link=link).load_crossover
    # A longer prompt has the same times per token and per pair.
    long = {**LOAD, "seq_len": round(guess), "output_len": 0, "host_link": link}
    r = ServingSolver.solve(**long)
    assert r.load_crossover == pytest.approx(guess, rel=0.02)
    load = guess * KV / 1.25e9 + 50e-6
    assert r.prefill_latency.to("s").magnitude == pytest.approx(load, rel=0.02)
    assert served().load_crossover is None
    fast = served(host_link=Systems.Links.PCIe5).load_crossover
    assert fast < served(host_link=Systems.Links.NVMe4).load_crossover < 200


def test_an_open_loop_of_sessions():
    load = {**LOAD, "arrival_rate": 6}
    plain = OpenLoopSolver.solve(**load)
    chat = OpenLoopSolver.solve(**load, **CHAT)
    share = chat.cached_tokens / 2000
    assert 0 < share < 0.83
    assert chat.ttft_p50 < plain.ttft_p50
    assert chat.request_capacity > plain.request_capacity
    same = OpenLoopSolver.solve(**load, cached_share=share)
    assert ms(chat.ttft_p99) == pytest.approx(ms(same.ttft_p99))
    # By Little's law: those in the server, and those who think after four of five answers
    assert chat.sessions == pytest.approx(chat.requests_in_flight + 6 * 0.8 * 60)
    room = OpenLoopSolver.solve(**load, **CHAT, host_memory=Q_(1e6, "GB"))
    assert room.prefix_hit_share == pytest.approx(1)
    assert room.cached_tokens + room.loaded_tokens == pytest.approx(0.83 * 2000)


def test_an_open_loop_loads_prompt_by_prompt():
    load = {**LOAD, "arrival_rate": 6}
    cached = OpenLoopSolver.solve(**load, cached_share=0.5)
    loaded = OpenLoopSolver.solve(**load, loaded_share=0.5)
    each = 1000 * KV / 64e9
    # Poisson arrivals at a link that takes the same time for each (Pollaczek and Khinchine)
    busy = 6 * each
    wait = each + busy / (2 * (1 - busy)) * each
    assert ms(loaded.ttft_mean - cached.ttft_mean) == pytest.approx(1e3 * wait)
    assert loaded.requests_in_flight - cached.requests_in_flight == pytest.approx(6 * wait)
    slow = OpenLoopSolver.solve(**load, loaded_share=0.9, host_link=Systems.Fabrics.Ethernet_10G)
    assert slow.request_capacity.to("1/s").magnitude == pytest.approx(
        1 / (1800 * KV / 1.25e9 + 50e-6)
    )
    assert not slow.feasible


def test_a_prefill_pool_reads_the_answers_of_other_devices_again():
    load = {**LOAD, "arrival_rate": 6, "role": "prefill"}
    room = OpenLoopSolver.solve(**load, **CHAT, host_memory=Q_(1e6, "GB"))
    assert room.prefix_hit_share == pytest.approx(1)
    # Prompts of 1,500 to 2,500 tokens: of 10,000, 1,500 + 4 x (50 + 200) are new to this pool.
    assert room.cached_tokens + room.loaded_tokens == pytest.approx(2000 * (1 - 2500 / 10_000))
    plain, chat = OpenLoopSolver.solve(**load), OpenLoopSolver.solve(**load, **CHAT)
    assert chat.ttft_p99 < plain.ttft_p99
    assert chat.request_capacity > plain.request_capacity
    same = OpenLoopSolver.solve(**load, cached_share=chat.cached_tokens / 2000)
    assert ms(chat.ttft_p99) == pytest.approx(ms(same.ttft_p99))
    with pytest.raises(ConfigError) as fault:
        OpenLoopSolver.solve(**load | {"role": "decode"}, **CHAT)
    assert fault.value.argument == "turns"


POOLS = LOAD | {"hardware": Systems.Nodes.DGX_H100, "batch_size": 32}


def test_a_prefill_pool_loads_prompt_by_prompt():
    link = {"host_link": Systems.Links.PCIe5}
    cached = DisaggregatedSolver.solve(**POOLS | {"batch_size": 1}, cached_share=0.5)
    loaded = DisaggregatedSolver.solve(**POOLS | {"batch_size": 1}, loaded_share=0.5, **link)
    load = 1e3 * (1000 * KV / 64e9 + 0.6e-6)
    assert ms(loaded.loading_latency) == pytest.approx(load)
    assert ms(loaded.ttft - cached.ttft) == pytest.approx(load)
    assert loaded.itl == cached.itl
    # Two workers have a link each.
    slow = {"loaded_share": 0.9, "host_link": Systems.Fabrics.Ethernet_10G, "batch_size": 64}
    r = DisaggregatedSolver.solve(**POOLS | slow, prefill_workers=2)
    each = 1800 * KV / 1.25e9 + 50e-6
    assert r.request_throughput.to("1/s").magnitude == pytest.approx(2 / each)


def test_sessions_of_pools_by_hand():
    chat = CHAT | {"think_time": Q_(300, "s")}
    r = DisaggregatedSolver.solve(**POOLS, **chat, prefill_workers=2)
    rate = r.request_throughput.to("1/s").magnitude
    # What weights, workspace and one prompt of each worker leave free
    used = r.prefill_memory_required.to("byte").magnitude
    room = r.prefill_memory_capacity.to("byte").magnitude - used
    # A prefix waits while the answer is generated elsewhere, and while the user thinks.
    away = 300 + 199 * r.itl.to("s").magnitude
    hits = f.prefix_hit_share(room, rate / 2 * 2000 * KV / 0.9, away, 5)
    assert 0.05 < hits < 0.95
    assert r.prefix_hit_share == pytest.approx(hits, rel=1e-3)
    assert r.cached_tokens == pytest.approx(2000 * (1 - 2500 / 10_000) * hits, rel=1e-3)
    assert r.sessions == pytest.approx(32 + rate * 4 / 5 * 300, rel=1e-3)
    same = DisaggregatedSolver.solve(
        **POOLS, cached_share=r.cached_tokens / 2000, prefill_workers=2
    )
    assert ms(r.ttft) == pytest.approx(ms(same.ttft))
    plain = DisaggregatedSolver.solve(**POOLS, prefill_workers=2)
    assert r.request_throughput > plain.request_throughput


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        ({"turns": 3}, "turns"),
        ({"think_time": Q_(3, "s")}, "turns"),
        ({"host_memory": Q_(3, "GB")}, "turns"),
        ({**CHAT, "turns": 30}, "seq_len"),
        ({**CHAT, "cached_share": 0.1}, "turns"),
        ({**CHAT, "efficiency": 0.5}, "turns"),
        ({"cached_share": 0.6, "loaded_share": 0.6}, "loaded_share"),
        ({"hardware": Hardware.M4_Max, "loaded_share": 0.6}, "host_link"),
        ({**CHAT, "think_time": Q_(3, "GB")}, "think_time"),
        ({**CHAT, "think_time": 3}, "think_time"),
    ],
)
def test_contradictions(wrong, argument):
    with pytest.raises(ConfigError) as fault:
        served(**wrong)
    assert fault.value.argument == argument


def test_traffic_of_sessions():
    chat = Traffic(
        arrival_rate=Q_(6, "1/s"),
        seq_len=2000,
        output_len=200,
        turns=5,
        turn_tokens=50,
        think_time=Q_(60, "s"),
        input_variation=0,
        output_variation=0,
    )
    nouns = {name: LOAD[name] for name in ("model", "hardware")}
    r = OpenLoopSolver.solve(**nouns, **chat.arguments())
    assert (
        r.prefix_hit_share == OpenLoopSolver.solve(**LOAD, arrival_rate=6, **CHAT).prefix_hit_share
    )
    plan = plan_serving(Models.Llama3_8B, chat, {"ttft_p99": Q_(1, "s")}, [Hardware.H100])
    index = plan.plans["replicas"].tolist().index(1)
    row, batch = plan.plans.row(index), plan.plans.row(index)["batch_limit"]
    one = OpenLoopSolver.solve(**nouns, **chat.arguments(), batch_limit=batch, precision="bf16")
    assert float(row["ttft_p99"] / one.ttft_p99) == pytest.approx(1)


def test_a_pool_that_loads_nothing_is_not_limited_by_its_links():
    """A row of a sweep knows only by its numbers that nothing is loaded."""
    given = {
        "model": Models.Llama3_8B,
        "hardware": Systems.Nodes.DGX_H100,
        "prefill_workers": 10**15,
        "turns": 3,
        "turn_tokens": 50,
        "output_len": 4,
    }
    times = [Q_(365, "s"), Q_(1, "s")]
    table = sweep(DisaggregatedSolver, **given, think_time=times)
    for time, swept in zip(times, table["prefill_utilization"], strict=True):
        solved = DisaggregatedSolver.solve(**given, think_time=time)
        assert swept == pytest.approx(solved.prefill_utilization, rel=1e-9)


def test_a_decode_pool_without_tokens_is_excluded():
    """The first token comes from the prefill pool, so none of an answer of one is left."""
    table = sweep(
        OpenLoopSolver,
        model=Models.Llama3_8B,
        hardware=Systems.Nodes.DGX_H100,
        arrival_rate=[4, 5],
        role=("prefill", "decode"),
        output_len=1,
        turns=3,
        turn_tokens=50,
        think_time=Q_(30, "s"),
        invalid="mark",
    )
    assert len(table) == 4
    assert table["valid"].tolist() == [True, False] * 2
