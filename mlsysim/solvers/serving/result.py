"""Answer of the serving solver."""

from __future__ import annotations

from mlsysim.core.fields import number, quantity, record
from mlsysim.core.result import Result
from mlsysim.core.units import Quantity

__all__ = ["ServingResult"]


@record
class ServingResult(Result):
    """Answer of `ServingSolver`: a language model on one device or one tensor-parallel group."""

    ttft: Quantity = quantity("ms")
    """Mean time to first token that clients see with `batch_size` requests in flight. With
    `efficiency`: the time to prefill all prompts of the batch together, without a queue."""
    ttft_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `ttft` that covers four of five comparable runs; `None` if
    there is no band."""
    ttft_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `ttft`."""
    itl: Quantity = quantity("ms")
    """Mean inter-token latency that clients see: a decode step at its mean context, plus the delay
    from other requests' prefills. With `efficiency`: the step alone."""
    itl_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `itl` that covers four of five comparable runs; `None` if
    there is no band."""
    itl_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `itl`."""
    calibration: str
    """The calibration used."""
    latency: Quantity = quantity("ms")
    """Time from a request to the last token of its answer."""
    prefill_latency: Quantity = quantity("ms")
    """Time to prefill one prompt with nothing else running; with `efficiency`, to prefill the
    batch."""
    decode_latency: Quantity = quantity("ms")
    """Time of one decode step without a concurrent prefill."""
    ttft_bottleneck: str
    """What limits the prefill: ``"compute"`` or ``"memory"``."""
    itl_bottleneck: str
    """What limits a decode step: ``"compute"`` or ``"memory"``."""
    decode_throughput: Quantity = quantity("token/s")
    """Generated tokens per second while all sequences decode and none is prefilled."""
    request_throughput: Quantity = quantity("1/s")
    """Requests per second under continuous batching, including prefills."""
    output_throughput: Quantity = quantity("token/s")
    """Generated tokens per second under continuous batching, including prefills."""
    output_throughput_low: Quantity | None = quantity("token/s")
    """Lower bound of the band around `output_throughput` that covers four of five comparable runs;
    `None` if there is no band."""
    output_throughput_high: Quantity | None = quantity("token/s")
    """Upper bound of the band around `output_throughput`."""
    energy_per_token: Quantity | None = quantity("J")
    """Energy of all devices per generated token, including prefills but not hosts; `None` without a
    design power."""
    energy_per_token_low: Quantity | None = quantity("J")
    """Lower bound of the band around `energy_per_token` that covers four of five comparable runs;
    `None` if there is no band."""
    energy_per_token_high: Quantity | None = quantity("J")
    """Upper bound of the band around `energy_per_token`."""
    input_token_time: Quantity = quantity("us", zero=True)
    """Device time per new prompt token: all devices' time per request, split by work. Times the
    price of a device it is a price per token, as in `EconomicsSolver`. The time for which devices
    wait for the host link is included, and the link itself has no price and no energy."""
    cached_token_time: Quantity | None = quantity("us", zero=True)
    """Device time per cached or loaded prompt token: new tokens attend to it. `None` without any.
    """
    output_token_time: Quantity | None = quantity("us", zero=True)
    """Device time per generated token after the first, divided by all generated tokens; `None` if
    there are none."""
    device_power: Quantity | None = quantity("W")
    """Mean power of one device under continuous batching, from its operations and its memory
    traffic."""
    power_utilization: float | None = number()
    """Where `device_power` lies between idle (0) and design power (1)."""
    power_calibration: str
    """The power calibration used, and whether any measurement supports it."""
    hfu: float = number()
    """Hardware FLOPs utilization under continuous batching. Each operation counts at the peak rate
    of its number format."""
    mbu: float = number()
    """Model bandwidth utilization: memory traffic divided by what a device's bandwidth allows."""
    running_batch_size: int = number(whole=True)
    """Sequences that run together; the other requests in flight wait."""
    running_limit: str
    """What limits them: ``"clients"`` if all requests run, ``"max_sequences"``, ``"adapters"`` if
    there is no memory for more different ones, or ``"memory"`` for keys and values."""
    recomputed_tokens: float | None = number(unit="token")
    """Mean tokens recomputed per request because it was preempted while the cache was full; 0 if
    all running sequences fit at full length. `None` with `efficiency`."""
    cached_tokens: float | None = number(unit="token", zero=True)
    """Mean tokens of a prompt that are cached in the devices' memory. `None` with `efficiency`."""
    loaded_tokens: float | None = number(unit="token", zero=True)
    """Mean tokens of a prompt that are loaded over the host link. `None` with `efficiency`."""
    prefix_hit_share: float | None = number()
    """Share of the repeated part of prompts that is still in the devices' or the host's memory;
    `None` without `turns`."""
    sessions: float | None = number()
    """Sessions with a request in flight or a user who is thinking; `None` without `turns`."""
    loading_latency: Quantity | None = quantity("ms", zero=True)
    """Mean time to load the tokens of a prompt that the host keeps, and the request's adapter if it
    is not resident, including the wait for the link; it is part of `ttft`. `None` with
    `efficiency`."""
    adapter_memory: Quantity | None = quantity("GB", zero=True)
    """Resident low-rank adapters on all devices. `None` with `efficiency`."""
    batch_adapters: float | None = number()
    """Mean number of different adapters in a decode step of one rank; `None` without adapters."""
    load_crossover: float | None = number(unit="token")
    """Prefix length above which loading over `host_link` is faster than recomputing; `None` without
    that link, or if loading is never faster."""
    replica_devices: int = number(whole=True)
    """Devices that serve these requests together; divide `output_throughput` by it for the rate per
    device."""
    model_weights_size: Quantity = quantity("GB")
    """Weights of the whole model."""
    kv_cache_size: Quantity = quantity("GB")
    """Keys and values of all sequences at full length, in the whole model."""
    total_memory_required: Quantity = quantity("GB")
    """Memory that each device needs: its share of weights, keys and values. Without `efficiency`,
    also the activations of the largest pass and the share that the engine keeps free."""
    memory_capacity: Quantity = quantity("GB")
    """Memory of each device: by its datasheet with `efficiency`, otherwise as the driver reports
    it, if that is known."""
    memory_utilization: float = number()
    """Memory needed divided by memory capacity; above 1 it does not fit."""
    max_batch_size: int = number(whole=True)
    """Most sequences of this length that fit."""
    max_seq_len: int | None = number(whole=True)
    """Most tokens, prompt and output together, that each sequence of this batch may have; `None` if
    no cache grows with the context, as in models with only linear attention."""
    feasible: bool
    """Whether weights, caches and workspace fit in memory."""
    reasons: tuple[str, ...]
    """Why they do not fit; empty if they do."""
