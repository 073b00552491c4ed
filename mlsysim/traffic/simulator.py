"""A simulator of the engine that `OpenLoopSolver` describes, pass by pass.

It has the same scheduler and the same pass times, and simulates every request. The solver never
calls it; use it to check the closed form and to see where that fails.

In a pass, the engine prefills the prompts that have arrived, up to its token budget, and gives each
running sequence a token. The pass takes the time of a decode step plus the prefill. Its first
tokens appear at its end. A request that finds the engine busy also waits for the passes that are
launched ahead.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.errors import ConfigError
from mlsysim.solvers.traffic.engine import Engine

__all__ = ["Simulated", "simulate"]


@dataclass(frozen=True)
class Simulated:
    """Times of every simulated request, in seconds, in order of arrival."""

    ttft: NDArray[Any]
    """Time to first token."""
    tpot: NDArray[Any]
    """Mean time per token after the first; NaN for answers of one token."""
    e2e: NDArray[Any]
    """Time to the last token."""
    in_flight: float
    """Mean requests in the server, over time."""

    def percentile(self, name: str, percent: float, skip: int = 0) -> float:
        """Return a percentile of a time, excluding the first requests."""
        return float(np.nanpercentile(getattr(self, name)[skip:], percent))

    def mean(self, name: str, skip: int = 0) -> float:
        """Return the mean of a time, excluding the first requests."""
        return float(np.nanmean(getattr(self, name)[skip:]))


def simulate(
    engine: Engine,
    arrivals: Sequence[float] | NDArray[Any],
    prompts: Sequence[float] | NDArray[Any],
    answers: Sequence[int] | NDArray[Any],
) -> Simulated:
    """Simulate requests on an engine.

    Parameters
    ----------
    engine
        The engine, from `engine_for`.
    arrivals
        Arrival time of each request in seconds, in ascending order.
    prompts
        Tokens of each prompt that are not in the cache: `new_tokens` of a `Trace`. The time to
        attend to cached tokens follows from the engine's `cached_share`.
    answers
        Tokens of each answer.

    Returns
    -------
    Simulated
        The times of each request.

    Raises
    ------
    ConfigError
        If the three have different lengths, or arrivals are not in order.
    """
    at, tokens = np.asarray(arrivals, float), np.asarray(prompts, float)
    made = np.asarray(answers, int)
    if not len(at) == len(tokens) == len(made):
        raise ConfigError(
            f"prompts and answers: {len(tokens)} and {len(made)} of them for {len(at)} arrivals; "
            "give one of each per request",
            argument="prompts",
        )
    if len(at) and (np.diff(at) < 0).any():
        raise ConfigError("arrivals are not in order: sort the requests", argument="arrivals")
    loaded = _loaded(engine, at, tokens)
    order = np.argsort(loaded, kind="stable")
    first, last = np.empty(len(at)), np.empty(len(at))
    first[order], last[order] = _play(
        engine, loaded[order].tolist(), tokens[order].tolist(), made[order].tolist()
    )
    stays = last - at
    with np.errstate(invalid="ignore", divide="ignore"):
        tpot = np.where(made > 1, (last - first) / np.maximum(made - 1, 1), np.nan)
    span = float(last.max() - at[0]) if len(at) else 0.0
    return Simulated(first - at, tpot, stays, float(stays.sum()) / span if span else 0.0)


def _loaded(engine: Engine, at: NDArray[Any], tokens: NDArray[Any]) -> NDArray[Any]:
    """Return when each prompt's prefix is loaded: each rank's link loads one at a time."""
    if not engine.loading:
        return at
    free = [0.0] * int(engine.ranks)
    ready = []
    for start, time in zip(at, engine.loading * tokens / engine.seq_len, strict=True):
        ready.append(max(float(start), heapq.heappop(free)) + float(time))
        heapq.heappush(free, ready[-1])
    return np.array(ready)


def _play(
    engine: Engine, at: list[float], tokens: list[float], made: list[int]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the times of each request's first and last token."""
    places, chunk = int(engine.places), float(engine.pass_tokens)
    together = engine.ranks * engine.stages
    budget = chunk * together
    step = [
        float(engine.empty),
        *np.interp(np.arange(1, places + 1), engine.sizes, engine.decodes).tolist(),
    ]
    delay = float(engine.delay_steps)
    count = len(at)
    first, last = np.zeros(count), np.zeros(count)
    left = list(tokens)
    now, passes, coming, length = 0.0, 0, 0, 0.0
    asking: deque[tuple[float, int]] = deque()  # by the pass from which they may be admitted
    reading: deque[int] = deque()
    running: list[tuple[int, int]] = []  # a heap, by the pass in which each ends
    while coming < count or asking or reading or running:
        if not (asking or reading or running):
            now, length = max(now, at[coming]), 0.0
        while coming < count and at[coming] <= now:
            # Passes launched ahead are short even if the one that runs now reads long prompts.
            ahead = delay - (now - at[coming]) / length if length else 0.0
            asking.append((passes + ahead, coming))
            coming += 1
        idle = not (reading or running)  # then nothing is launched ahead
        while asking and (idle or asking[0][0] <= passes) and len(reading) + len(running) < places:
            reading.append(asking.popleft()[1])
        room, longest, ended = budget, 0.0, []
        for request in reading:
            taken = min(left[request], room, chunk)
            left[request] -= taken
            room -= taken
            longest = max(longest, taken)
            if left[request] <= 0:
                ended.append(request)
            if room <= 0:
                break
        taken = (budget - room) / engine.seq_len
        read = max(longest / engine.seq_len, taken / together)
        length = step[len(running)] + read * engine.prompt_time(taken, read)
        length += min(1, read) * engine.first_time(step[len(running)])
        now += length
        passes += 1
        while running and running[0][0] == passes:
            last[heapq.heappop(running)[1]] = now
        for request in ended:
            reading.remove(request)
            first[request] = last[request] = now
            if made[request] > 1:
                heapq.heappush(running, (passes + made[request] - 1, request))
    return first, last
