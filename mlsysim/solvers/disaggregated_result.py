"""Answer of the solver of disaggregated servers."""

from __future__ import annotations

from mlsysim.core.fields import number, quantity, record
from mlsysim.core.result import Result
from mlsysim.core.units import Quantity

__all__ = ["DisaggregatedResult"]


@record
class DisaggregatedResult(Result):
    """Answer of `DisaggregatedSolver`: a pool of devices for prefills, and one for decodes."""

    ttft: Quantity = quantity("ms")
    """Mean time to first token that clients see: queue, prefill, transfer, and the wait for room in
    the decode pool."""
    ttft_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `ttft` that covers four of five comparable runs; `None` if
    there is no band."""
    ttft_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `ttft`."""
    itl: Quantity = quantity("ms")
    """Mean time between tokens. No prefill delays it."""
    itl_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `itl` that covers four of five comparable runs; `None` if
    there is no band."""
    itl_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `itl`."""
    latency: Quantity = quantity("ms")
    """Time from a request to the last token of its answer."""
    prefill_latency: Quantity = quantity("ms")
    """Time to prefill one prompt on an idle worker."""
    kv_transfer_time: Quantity = quantity("ms")
    """Time to move the keys and values of a prompt from one pool to the other."""
    loading_latency: Quantity = quantity("ms", zero=True)
    """Mean time to load a prompt's prefix, and the request's adapter if it is not resident, in the
    prefill pool, without the wait for the link; part of the time to first token."""
    cached_tokens: float = number(unit="token", zero=True)
    """Mean tokens of a prompt that are cached in the memory of the prefill pool."""
    loaded_tokens: float = number(unit="token", zero=True)
    """Mean tokens of a prompt that are loaded over the host link of the prefill pool."""
    prefix_hit_share: float | None = number()
    """Share of the repeated part of prompts that is still in the prefill pool's or its host's
    memory; `None` without `turns`."""
    sessions: float | None = number()
    """Sessions with a request in flight or a user who is thinking; `None` without `turns`."""
    batch_adapters: float | None = number()
    """Mean number of different adapters in a decode step of one rank; `None` without adapters."""
    request_throughput: Quantity = quantity("1/s")
    """Requests per second."""
    output_throughput: Quantity = quantity("token/s")
    """Generated tokens per second."""
    throughput_per_device: Quantity = quantity("token/s")
    """Tokens per second, of prompts and answers, divided by the devices of both pools."""
    throughput_per_device_low: Quantity | None = quantity("token/s")
    """Lower bound of the band around `throughput_per_device` that covers four of five comparable
    runs; `None` if there is no band."""
    throughput_per_device_high: Quantity | None = quantity("token/s")
    """Upper bound of the band around `throughput_per_device`."""
    prefill_throughput_per_device: Quantity = quantity("token/s")
    """Prompt tokens per second, divided by the devices of the prefill pool."""
    decode_throughput_per_device: Quantity = quantity("token/s")
    """Generated tokens per second, divided by the devices of the decode pool."""
    prefill_utilization: float = number()
    """Share of the time that the prefill pool is busy."""
    decode_batch_size: float = number()
    """Average number of sequences on a decode worker."""
    decode_places: int = number(whole=True)
    """Most sequences that a decode worker runs at once, by memory and by resident adapters."""
    balanced_ratio: float = number()
    """Prefill workers per decode worker at which prefill just keeps up with decode at this load."""
    device_count: int = number(whole=True)
    """Devices in both pools."""
    bottleneck: str
    """What limits throughput: ``"prefill"``, ``"decode"`` if that pool is full, or ``"clients"`` if
    more clients would raise it."""
    prefill_memory_required: Quantity = quantity("GB")
    """Memory that each device of the prefill pool needs, with one prompt per rank."""
    decode_memory_required: Quantity = quantity("GB")
    """Memory that each device of the decode pool needs, with all sequences at full length."""
    prefill_memory_capacity: Quantity = quantity("GB")
    """Memory that each device of the prefill pool has."""
    decode_memory_capacity: Quantity = quantity("GB")
    """Memory that each device of the decode pool has."""
    feasible: bool
    """Whether both pools have enough memory for a sequence."""
    reasons: tuple[str, ...]
    """Why it does not fit; empty if it does."""
    calibration: str
    """The constants used for the decode pool."""
