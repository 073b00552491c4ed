"""Sessions of several turns: the prefixes that are still cached when users send the next turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, first_known, minimum, where, zero_like
from mlsysim.solvers.serving.inputs import ServingInputs
from mlsysim.solvers.serving.memory import server_memory
from mlsysim.solvers.serving.operators import serve_operators

_HALVINGS = 14
"""Bisection steps over the range of request rates."""


@dataclass(frozen=True)
class Prefixes:
    """The parts of a prompt that are cached, as shares of the prompt."""

    cached: Value
    """In the memory of the devices."""
    loaded: Value
    """In the memory of the host."""
    hits: Value
    """Share of the reusable tokens that are in either memory."""


def running_memory(i: ServingInputs, running: Value) -> list[Value]:
    """Return the memory of running sequences, which have their mean length, on each stage."""
    context = f.mean_context(i.seq_len, i.output_len)
    return [running * each for each in server_memory(i).reserved(1, context)]


def reusable_share(i: ServingInputs) -> Value:
    """Return the share of prompts that this engine has read or generated in earlier turns."""
    elsewhere = i.output_len - i.kept_output
    return f.reusable_share(i.seq_len, i.kept_output, i.turns, i.turn_tokens + elsewhere)


def prefixes_at(i: ServingInputs, rate: Value, taken: list[Value]) -> Prefixes:
    """Return the cached prefixes at a request rate, given the memory of running sequences.

    The device keeps the most recently used prefixes, and the host keeps the next most recent ones.
    A prefix has to be on every pipeline stage.
    """
    memory = server_memory(i)
    rooms = [memory.capacity - held - size for held, size in zip(memory.held, taken, strict=True)]
    flows = [rate * each for each in memory.reserved(1, i.seq_len + i.kept_output)]

    def hits(beyond: Value) -> Value:
        pairs = zip(rooms, flows, strict=True)
        shares = (
            f.prefix_hit_share(room + beyond, flow, i.think_time, i.turns) for room, flow in pairs
        )
        return reduce(minimum, shares)

    here = hits(zero_like(memory.capacity))
    either = hits(first_known(i.host_memory, zero_like(memory.capacity)))
    reusable = reusable_share(i)
    return Prefixes(reusable * here, reusable * (either - here), either)


def thinking(i: ServingInputs, rate: Value) -> Value:
    """Return the sessions with a user who is thinking, after every answer but a session's last."""
    return rate * (1 - 1 / i.turns) * i.think_time


def serve_sessions(i: ServingInputs) -> dict[str, Any]:
    """Serve sessions at the request rate that is consistent with the prefixes that stay cached.

    A higher rate evicts prefixes sooner, and fewer cached prefixes lower the rate. So exactly one
    rate is consistent.
    """

    def served(prefixes: Prefixes) -> dict[str, Any]:
        return serve_operators(i.but(cached_share=prefixes.cached, loaded_share=prefixes.loaded))

    plain = serve_operators(i)
    taken, low = running_memory(i, plain["running_batch_size"]), plain["request_throughput"]
    reusable = reusable_share(i)
    high = served(Prefixes(reusable, zero_like(reusable), 1))["request_throughput"]
    rate = fixed_point(
        lambda rate: served(prefixes_at(i, rate, taken))["request_throughput"], low, high
    )
    prefixes = prefixes_at(i, rate, taken)
    return served(prefixes) | {
        "prefix_hit_share": prefixes.hits,
        "sessions": i.batch_size + thinking(i, rate),
    }


def fixed_point(answer: Callable[[Value], Value], low: Value, high: Value) -> Value:
    """Return the fixed point of a falling function between two values."""
    for _ in range(_HALVINGS):
        rate = (low + high) / 2
        more = answer(rate) > rate
        low, high = where(more, rate, low), where(more, high, rate)
    return (low + high) / 2
