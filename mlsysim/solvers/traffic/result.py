"""Result of the open-loop solver."""

from __future__ import annotations

from mlsysim.core.fields import number, quantity, record
from mlsysim.core.result import Result
from mlsysim.core.units import Quantity

__all__ = ["OpenLoopResult"]


@record
class OpenLoopResult(Result):
    """Answer of `OpenLoopSolver`: one engine with requests that arrive from outside.

    Times are `None` if more requests arrive than the engine can serve. Each time has a band, from
    its `_low` to its `_high` field, that should contain four of five measured runs. It combines the
    error of the pass times in the runs to which the constants were fitted with the error of the
    queueing model on random systems, compared with `mlsysim.traffic.simulate`. Bands are `None` if
    no such run is known, or if the load is `outside` these systems. Upper bounds are also `None` if
    the engine could not keep up with passes as slow as the band allows.
    """

    ttft_mean: Quantity | None = quantity("ms")
    """Mean time to first token, including all waits in the server."""
    ttft_mean_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `ttft_mean`."""
    ttft_mean_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `ttft_mean`."""
    ttft_p50: Quantity | None = quantity("ms")
    """Median of the time to first token."""
    ttft_p50_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `ttft_p50`."""
    ttft_p50_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `ttft_p50`."""
    ttft_p90: Quantity | None = quantity("ms")
    """Time to first token that one request in ten exceeds."""
    ttft_p90_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `ttft_p90`."""
    ttft_p90_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `ttft_p90`."""
    ttft_p99: Quantity | None = quantity("ms")
    """Time to first token that one request in a hundred exceeds."""
    ttft_p99_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `ttft_p99`."""
    ttft_p99_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `ttft_p99`."""
    tpot_mean: Quantity | None = quantity("ms")
    """Mean time per output token after the first; `None` without decode."""
    tpot_mean_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `tpot_mean`."""
    tpot_mean_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `tpot_mean`."""
    tpot_p50: Quantity | None = quantity("ms")
    """Median over requests of a request's mean time per output token."""
    tpot_p50_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `tpot_p50`."""
    tpot_p50_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `tpot_p50`."""
    tpot_p90: Quantity | None = quantity("ms")
    """Mean time per output token that one request in ten exceeds."""
    tpot_p90_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `tpot_p90`."""
    tpot_p90_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `tpot_p90`."""
    tpot_p99: Quantity | None = quantity("ms")
    """Mean time per output token that one request in a hundred exceeds."""
    tpot_p99_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `tpot_p99`."""
    tpot_p99_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `tpot_p99`."""
    e2e_mean: Quantity | None = quantity("ms")
    """Mean time from a request's arrival to its last token."""
    e2e_mean_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `e2e_mean`."""
    e2e_mean_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `e2e_mean`."""
    e2e_p50: Quantity | None = quantity("ms")
    """Median time from a request's arrival to its last token."""
    e2e_p50_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `e2e_p50`."""
    e2e_p50_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `e2e_p50`."""
    e2e_p90: Quantity | None = quantity("ms")
    """Time from arrival to last token that one request in ten exceeds."""
    e2e_p90_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `e2e_p90`."""
    e2e_p90_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `e2e_p90`."""
    e2e_p99: Quantity | None = quantity("ms")
    """Time from arrival to last token that one request in a hundred exceeds."""
    e2e_p99_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `e2e_p99`."""
    e2e_p99_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `e2e_p99`."""
    request_capacity: Quantity = quantity("1/s")
    """Requests per second that the engine can serve."""
    utilization: float = number()
    """Arrival rate divided by capacity; at 1 or above there is no steady state."""
    output_throughput: Quantity = quantity("token/s")
    """Generated tokens per second: as many as requested, up to capacity."""
    requests_in_flight: float | None = number()
    """Mean number of requests in the server: arrival rate times mean time."""
    waiting_probability: float | None = number()
    """Share of the requests that wait because every slot of the engine is taken."""
    place_wait: Quantity | None = quantity("ms")
    """Mean wait for a slot, over all requests."""
    decode_latency: Quantity | None = quantity("ms")
    """Time of a decode step with the mean number of requests in flight, without prefill."""
    prefill_latency: Quantity = quantity("ms")
    """Time that one prompt adds to a pass."""
    prompt_steps: float | None = number(zero=True)
    """Decode steps that take as long as `prefill_latency`; `None` without decode or without a
    steady state."""
    places: int = number(whole=True)
    """Most sequences that the engine runs at once, by its limit or by memory."""
    max_batch_size: int = number(whole=True)
    """Most sequences of full length that fit in memory."""
    cached_tokens: float = number(unit="token", zero=True)
    """Mean tokens of a prompt that are cached in the devices' memory."""
    loaded_tokens: float = number(unit="token", zero=True)
    """Mean tokens of a prompt that are loaded over the host link."""
    loading_latency: Quantity = quantity("ms", zero=True)
    """Mean time to load them, and the request's adapter if it is not resident, without the wait for
    the link; part of the time to first token."""
    recomputed_tokens: float = number(unit="token", zero=True)
    """Mean tokens recomputed per request because it was preempted while the cache was full."""
    adapter_memory: Quantity = quantity("GB", zero=True)
    """Resident low-rank adapters on all devices."""
    batch_adapters: float | None = number()
    """Mean number of different adapters in a decode step of one rank; `None` without adapters."""
    prefix_hit_share: float | None = number()
    """Share of the repeated part of prompts that is still in the devices' or the host's memory;
    `None` without `turns`."""
    sessions: float | None = number()
    """Sessions with a request in flight or a user who is thinking; `None` without `turns`."""
    device_power: Quantity | None = quantity("W")
    """Mean power of one device, which is idle while there are no requests; `None` if it has no
    design power."""
    calibration: str
    """The calibration used."""
    feasible: bool
    """Whether a sequence fits in memory, and the engine keeps up with the arrivals."""
    reasons: tuple[str, ...]
    """Why not; empty if it is feasible."""
    outside: tuple[str, ...]
    """Ways in which the load is outside the simulated systems with which the queueing model was
    compared, such as larger bursts. The error is not known there, so there are no bands: simulate
    the load with `mlsysim.traffic.simulate`."""
