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
    """Time to first token: the prefill of all prompts of the batch, with nothing queued."""
    itl: Quantity = quantity("ms")
    """Inter-token latency: one decode step of the batch, at its mean context."""
    ttft_bottleneck: str
    """What the prefill waits for: ``"compute"`` or ``"memory"``."""
    itl_bottleneck: str
    """What a decode step waits for: ``"compute"`` or ``"memory"``."""
    decode_throughput: Quantity = quantity("token/s")
    """Tokens per second while all sequences decode and none is prefilled."""
    request_throughput: Quantity = quantity("1/s")
    """Requests per second under continuous batching, prefills included."""
    output_throughput: Quantity = quantity("token/s")
    """Generated tokens per second under continuous batching, prefills included."""
    model_weights_size: Quantity = quantity("GB")
    """Weights of the whole model."""
    kv_cache_size: Quantity = quantity("GB")
    """Keys and values of all sequences at full length, in the whole model."""
    total_memory_required: Quantity = quantity("GB")
    """Memory that each device needs: its share of weights, keys and values."""
    memory_capacity: Quantity = quantity("GB")
    """Memory that each device has."""
    memory_utilization: float = number()
    """Memory needed over memory there; above 1 it does not fit."""
    max_batch_size: int = number()
    """Most sequences of this length that fit."""
    max_seq_len: int = number()
    """Most tokens, prompt and output together, that each sequence of this batch may hold."""
    feasible: bool
    """Whether weights, keys and values fit."""
    reasons: tuple[str, ...]
    """Why they do not; empty if they do."""
