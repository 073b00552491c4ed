"""Constants that say how much of a datasheet a serving engine turns into speed."""

from __future__ import annotations

from mlsysim.core.fields import number, quantity, record
from mlsysim.core.types.fitted import Fitted
from mlsysim.core.units import Quantity

__all__ = ["ServingCalibration"]


@record
class ServingCalibration(Fitted):
    """One set of constants per device generation and serving engine.

    Shares are of the datasheet's figures. Each constant's source says which measurements it was
    fitted to, or the publication that it is from.

    Attributes
    ----------
    engine : str
        The software that it describes.
    attention_efficiency : float
        Share of the 16-bit peak rate that attention reaches in a prefill.
    memory_efficiency : float
        Share of the memory bandwidth at which weights stream.
    kv_efficiency : float
        Share of the memory bandwidth at which decode reads keys and values.
    link_efficiency : float
        Share of the links' bandwidth that large all-reduces reach.
    layer_overhead : Quantity
        Time of a layer's decode step that neither size nor number of its tensors changes: kernel
        starts, norms, small kernels.
    all_reduce_overhead : Quantity
        Time of an all-reduce of no size.
    prompt_overhead : Quantity
        Time of a layer in a prefill pass that the prompts' length does not change: launches without
        a graph, half-filled tiles.
    sequence_overhead : Quantity
        Time that a decode step takes per sequence on the host: scheduling, sampling, writing out.
    admission_steps : float
        Decode steps that pass before a request that finds others decoding is admitted: the rest of
        the running step, and steps that are launched ahead.
    pass_tokens : int
        Prompt tokens that one pass takes in. Activations of such a pass are the workspace.
    kv_share : float
        Share of the memory not taken by weights and workspace that keys and values may use.
    reserved_output : float
        Share of the output for which memory is set aside when a request is admitted.
    itl_band_low, itl_band_high, ttft_band_low, ttft_band_high : float or None
        Measured over predicted time, at the tenth and the ninetieth percentile of runs that the
        constants were not fitted to. `None` if no such run is known.
    pass_band_low, pass_band_high : float or None
        The same for single forward passes, called as a library.
    """

    engine: str
    attention_efficiency: float = number(most=1)
    memory_efficiency: float = number(most=1)
    kv_efficiency: float = number(most=1)
    link_efficiency: float = number(most=1)
    layer_overhead: Quantity = quantity("us", zero=True)
    all_reduce_overhead: Quantity = quantity("us", zero=True)
    prompt_overhead: Quantity = quantity("us", zero=True)
    sequence_overhead: Quantity = quantity("us", zero=True)
    admission_steps: float = number(zero=True)
    pass_tokens: int = number(whole=True)
    kv_share: float = number(most=1)
    reserved_output: float = number(most=1)
    itl_band_low: float | None = number(default=None)
    itl_band_high: float | None = number(default=None)
    ttft_band_low: float | None = number(default=None)
    ttft_band_high: float | None = number(default=None)
    pass_band_low: float | None = number(default=None)
    pass_band_high: float | None = number(default=None)
