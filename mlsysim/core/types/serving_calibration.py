"""Constants that say how much of a datasheet a serving engine turns into speed."""

from __future__ import annotations

from dataclasses import replace

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import number, quantity, record, require
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
    request_overhead : Quantity
        Time that a request spends outside of the engine's passes, at any load: tokenizing, HTTP,
        the first answer.
    expert_efficiency, expert_efficiency_fp4 : float
        Rate of grouped products of experts over that of plain products; in 4 bits.
    expert_memory : float
        Bandwidth at which experts' weights stream over that of other weights.
    expert_tile : float
        Rows by which a grouped product computes each expert's: half of them are padding.
    expert_overhead, expert_overhead_fp4 : float
        Fixed time of a layer's experts over that of a plain layer: routing, sorting, starts of
        grouped products; in 4 bits, for which kernels are other ones.
    attention_overhead : float
        Fixed time of what a layer's attention has beyond plain attention, over that of a plain
        layer: projections to and from latent vectors, an indexer, or states instead of keys and
        values.
    unpacking : float
        Bandwidth at which weights stream that are converted to a wider format of arithmetic, over
        that of other weights.
    exchange_overhead : Quantity
        Time of an exchange of no size between the ranks of data-parallel attention.
    mixing : float
        1 where prefill chunks and decode steps share passes, 0 where an engine runs one or the
        other.
    pass_tokens : int
        Tokens that one pass takes in at most, which limits the chunks of a prefill. Activations of
        such a pass are the workspace.
    kv_share : float
        Share of the memory not taken by weights and workspace that keys and values may use.
    reserved_output : float
        Share of the output for which memory is set aside when a request is admitted.
    itl_band_low, itl_band_high, ttft_band_low, ttft_band_high : float or None
        Measured over predicted time, at the tenth and the ninetieth percentile of runs that the
        constants were not fitted to. `None` if no such run is known.
    throughput_band_low, throughput_band_high : float or None
        The same for rates of requests and tokens.
    models : tuple of str
        Names of the models that the runs served. The bands of other models are wider.
    new_itl_band_low, new_itl_band_high, new_ttft_band_low, new_ttft_band_high : float or None
        The same bands for models that no constant was fitted to.
    new_throughput_band_low, new_throughput_band_high : float or None
        And of their rates.
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
    request_overhead: Quantity = quantity("ms", zero=True)
    expert_efficiency: float = number(most=1)
    expert_efficiency_fp4: float = number(most=1)
    expert_memory: float = number(most=1)
    expert_tile: float = number(zero=True)
    expert_overhead: float = number(zero=True)
    expert_overhead_fp4: float = number(zero=True)
    attention_overhead: float = number(zero=True)
    unpacking: float = number(most=1)
    exchange_overhead: Quantity = quantity("us", zero=True)
    mixing: float = number(most=1, zero=True)
    pass_tokens: int = number(whole=True)
    kv_share: float = number(most=1)
    reserved_output: float = number(most=1)
    itl_band_low: float | None = number(default=None)
    itl_band_high: float | None = number(default=None)
    ttft_band_low: float | None = number(default=None)
    ttft_band_high: float | None = number(default=None)
    throughput_band_low: float | None = number(default=None)
    throughput_band_high: float | None = number(default=None)
    models: tuple[str, ...] = ()
    new_itl_band_low: float | None = number(default=None)
    new_itl_band_high: float | None = number(default=None)
    new_ttft_band_low: float | None = number(default=None)
    new_ttft_band_high: float | None = number(default=None)
    new_throughput_band_low: float | None = number(default=None)
    new_throughput_band_high: float | None = number(default=None)
    pass_band_low: float | None = number(default=None)
    pass_band_high: float | None = number(default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, models=tuple)
        strange = [name for name in self.models if not isinstance(name, str)]
        if strange:
            raise ConfigError(
                f"{type(self).__name__}.models has {shown(strange[0])}, which is not the name of a "
                "model: give names such as Models.Llama3_8B.name",
                argument="models",
            )

    def serving(self, model: str) -> ServingCalibration:
        """Return the constants with the bands that hold for a model."""
        if not self.models or model in self.models:
            return self
        return replace(
            self,
            itl_band_low=self.new_itl_band_low,
            itl_band_high=self.new_itl_band_high,
            ttft_band_low=self.new_ttft_band_low,
            ttft_band_high=self.new_ttft_band_high,
            throughput_band_low=self.new_throughput_band_low,
            throughput_band_high=self.new_throughput_band_high,
        )
