"""Memory for keys and values: blocks, and sequences that outgrow it."""

from __future__ import annotations

import math
from collections import deque

import pytest

from mlsysim import Hardware, Models, ServingSolver
from mlsysim.core import formulas as f

KV = 128 * 1024
"""Bytes of a token's keys and values in Llama 3 8B: 32 layers, 8 heads of 128, 16 bits."""
LOAD = {"model": Models.Llama3_8B, "hardware": Hardware.H100, "precision": "bf16"}


def served(**more):
    return ServingSolver.solve(**LOAD | more)


def memory(result):
    return result.total_memory_required.to("byte").magnitude


def test_half_of_the_last_block_is_empty():
    # Lengths of 1 to 16 tokens leave 15 to 0 of a block of 16.
    left = [-length % 16 for length in range(1, 17)]
    assert f.block_padding(16) == sum(left) / 16 == 7.5
    assert f.block_padding(1) == 0


@pytest.mark.parametrize("efficiency", [None, 0.5])
def test_blocks_take_memory(efficiency):
    load = {"seq_len": 100, "output_len": 20, "batch_size": 64, "efficiency": efficiency}
    plain, blocks = (served(**load, block_size=size) for size in (1, 16))
    share = 1 if efficiency else 0.9
    assert memory(blocks) - memory(plain) == pytest.approx(64 * 7.5 * KV / share)
    # 120 tokens of each sequence, or 127.5
    room = plain.memory_capacity.to("byte").magnitude - memory(plain) + 64 * 120 * KV / share
    assert plain.max_batch_size == room * share // (120 * KV)
    assert blocks.max_batch_size == room * share // (127.5 * KV)
    longest = room * share / (64 * KV)
    assert plain.max_seq_len == math.floor(longest)
    assert blocks.max_seq_len == math.floor(math.floor(longest) - 7.5)
    # Nothing is computed or read of what is empty.
    assert (blocks.itl, blocks.ttft) == (plain.itl, plain.ttft)


def test_states_have_no_blocks():
    load = {"model": Models.Codestral_Mamba_7B, "batch_size": 8, "seq_len": 100}
    assert memory(served(**load, block_size=64)) == memory(served(**load))


def test_a_cache_is_full_half_of_the_time_at_the_mean():
    # 300 sequences of 1 to 2 are 450 on average, with a deviation of sqrt(300 / 12) = 5.
    for room, expected in ((450, 0.5), (455, 0.158655), (445, 0.841345), (460, 0.02275), (600, 0)):
        assert f.cache_full_probability(300, room, 1, 2) == pytest.approx(expected, abs=1e-6)
    # Those that do not grow fit, or do not.
    assert f.cache_full_probability(4, 8, 2, 2) == 0
    assert f.cache_full_probability(5, 8, 2, 2) == 1


def test_what_is_read_again_by_hand():
    # As many sequences as fit in the mean, of 1,000 to 2,000 tokens
    load = {"seq_len": 1000, "output_len": 1000}
    fit = served(**load)
    room = fit.memory_capacity.to("byte").magnitude - memory(fit) + 2000 * KV / 0.9
    room = 0.9 * room / KV
    running = int(room // 1500)
    over = (running * 1500 - room) / (1000 * math.sqrt(running / 12))
    full = (1 + math.erf(over / math.sqrt(2))) / 2
    r = served(**load, batch_size=2000, reserved_output=0.5)
    assert r.running_batch_size == running > fit.max_batch_size
    assert r.recomputed_tokens == pytest.approx(1000 * full)
    assert 0.4 < full <= 0.5
    # An answer has 999 steps; prompts and what is read again delay them.
    one = served(**load, batch_size=running, reserved_output=0.5)
    none = served(**load, batch_size=running)
    assert none.running_batch_size < running  # reserved in full: fewer run
    slower = one.itl - one.decode_latency
    assert slower.to("ms").magnitude > 0
    assert f"{1000 * full:,.0f} tokens" in r.reasons[0]


def test_reserving_everything_preempts_nothing():
    load = {"seq_len": 1000, "output_len": 1000, "batch_size": 2000}
    least, some, most = (served(**load, reserved_output=aside) for aside in (0.0, 0.75, 1.0))
    assert most.recomputed_tokens == 0
    assert most.running_batch_size == most.max_batch_size
    # With prompts alone set aside, the cache is always full, and all that is made is read again.
    assert least.recomputed_tokens == pytest.approx(1000)
    assert least.running_batch_size > some.running_batch_size > most.running_batch_size
    assert least.output_throughput < most.output_throughput < some.output_throughput


def played(prompt, output, room, clients, steps=9000):
    """Play sequences through a full cache; return the tokens read again of each, and those running.

    The newest is dropped when there is no room, and waits until there is.
    """
    running = [
        [prompt + output * k // clients, output - output * k // clients] for k in range(clients)
    ]
    used = sum(held for held, _ in running)
    waiting: deque[list[int]] = deque()
    again = ended = total = 0
    for step in range(steps):
        counts = step > steps // 3
        for one in running:
            one[0] += 1
            one[1] -= 1
        used += len(running)
        dropped = False
        while used > room:
            one = running.pop()
            used -= one[0]
            waiting.appendleft(one)
            again += counts * one[0]
            dropped = True
        for one in [one for one in running if one[1] <= 0]:
            running.remove(one)
            used -= one[0]
            ended += counts
            waiting.append([prompt, output])
        while waiting and not dropped and used + waiting[0][0] <= room:
            running.append(waiting.popleft())
            used += running[-1][0]
        total += counts * len(running)
    return again / ended, total / (steps - steps // 3)


@pytest.mark.parametrize("prompt", [200, 1000])
def test_preemption_next_to_a_simulation(prompt):
    output, fit = 400, 40
    room = fit * (prompt + output / 2)
    # Twice as many clients as fit: all that is made displaces something.
    again, running = played(prompt, output, room, 2 * fit)
    full = f.cache_full_probability(2 * fit, room, prompt, prompt + output)
    assert full * output == pytest.approx(output)
    assert again == pytest.approx(output, rel=0.15)
    assert running == pytest.approx(fit, rel=0.05)
    # As many as fit at full length: nothing does.
    few = math.floor(room / (prompt + output))
    assert played(prompt, output, room, few)[0] == 0
    assert f.cache_full_probability(few, room, prompt, prompt + output) == 0
