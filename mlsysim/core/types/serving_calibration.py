"""Constants for the share of a datasheet's rates that a serving engine reaches."""

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

    Shares refer to the datasheet's figures. The source of each constant names the measurements to
    which it was fitted, or the publication.

    Attributes
    ----------
    engine : str
        The serving software.
    attention_efficiency : float
        Share of the 16-bit peak rate that attention reaches in a prefill.
    memory_efficiency : float
        Share of the memory bandwidth at which weights stream.
    kv_efficiency : float
        Share of the memory bandwidth at which decode reads keys and values.
    link_efficiency : float
        Share of the links' bandwidth that large all-reduces reach.
    layer_overhead : Quantity
        Time of a layer's decode step that does not depend on tensor sizes: kernel launches, norms,
        small kernels.
    all_reduce_overhead : Quantity
        Fixed time of an all-reduce.
    prompt_overhead : Quantity
        Time of a layer in a prefill pass that does not depend on the length of prompts: launches
        without a graph, partly filled tiles.
    prompt_parts : float
        Fixed time that experts, latent attention and indexers add to a layer of a prefill pass,
        relative to what they add in a decode step, both as shares of a plain layer's. A decode step
        replays a graph of kernels; a prefill pass launches them one by one.
    sequence_overhead : Quantity
        Host time per sequence of a decode step: scheduling, sampling, output.
    draft_overhead : Quantity
        Host time per sequence and drafted token of a decode step that verifies drafts.
    admission_steps : float
        Decode steps before a busy engine admits a new request: the rest of the running step, and
        steps launched ahead.
    poll_steps : float
        Decode steps from one poll of the engine's queue to the next.
    hold_steps : float
        Decode steps for which an engine holds a request back, so that others join it.
    aligned_ranks : float
        1 where ranks of data-parallel attention prefill prompts in the same passes, 0 where each
        prompt holds up all ranks.
    padded_ranks : float
        1 where ranks of data-parallel attention pad the tokens of a pass to those of the longest
        rank, so that experts compute padding as well, 0 where ranks send only their own tokens.
    request_overhead : Quantity
        Time of a request outside the engine's passes, at any load: tokenization, HTTP, the first
        response.
    compile_time : Quantity
        Time for which the first full pass of a run waits for kernels to be compiled.
    expert_efficiency, expert_efficiency_fp4 : float
        Rate of experts' grouped products, relative to plain products; in general, and in 4 bits.
    expert_memory : float
        Bandwidth at which experts' weights stream, relative to other weights.
    expert_tile : float
        Rows per tile of a grouped product; on average half of an expert's last tile is padding.
    expert_padding : float
        Rows that a grouped product adds for each expert on a device, visited or not: 127 where an
        engine aligns experts' rows to tiles of 128 in a buffer of fixed size. 0 pads only the last
        tiles of visited experts, by `expert_tile`.
    expert_waiting : float
        1 where a pass takes as long as the device that reads the most experts, 0 where it takes as
        long as the mean device, as other fitted constants include the wait.
    expert_overhead, expert_overhead_fp4 : float
        Fixed time of a layer's experts, relative to a plain layer: routing, sorting, launches of
        grouped products; in general, and in 4 bits, which has other kernels.
    attention_overhead : float
        Fixed time of each part of attention beyond plain attention, relative to a plain layer:
        projections to and from latent vectors, an indexer, or states instead of keys and values.
    unpacking : float
        Bandwidth at which weights stream if they are converted to a wider format for arithmetic,
        relative to other weights.
    exchange_overhead : Quantity
        Fixed time of an exchange between the ranks of data-parallel attention.
    mixing : float
        1 if prefill chunks and decode steps share passes, 0 if a pass contains one or the other.
    pass_tokens : int
        Most tokens in one pass, which limits the chunks of a prefill. The activations of such a
        pass are the workspace.
    kv_share : float
        Share of the memory not taken by weights and workspace that keys and values may use.
    reserved_output : float
        Share of the output for which memory is set aside when a request is admitted.
    itl_band_low, itl_band_high, ttft_band_low, ttft_band_high : float or None
        Measured over predicted time, at the 10th and 90th percentile of held-out runs. `None` if no
        such run is known.
    throughput_band_low, throughput_band_high : float or None
        The same bands for rates of requests and tokens.
    models : tuple of str
        Names of the models served in the runs. The bands of other models are wider.
    new_itl_band_low, new_itl_band_high, new_ttft_band_low, new_ttft_band_high : float or None
        The same bands for held-out models.
    new_throughput_band_low, new_throughput_band_high : float or None
        The same bands for rates of held-out models.
    pass_band_low, pass_band_high : float or None
        The same bands for single forward passes, called as a library.
    """

    engine: str
    attention_efficiency: float = number(most=1)
    memory_efficiency: float = number(most=1)
    kv_efficiency: float = number(most=1)
    link_efficiency: float = number(most=1)
    layer_overhead: Quantity = quantity("us", zero=True)
    all_reduce_overhead: Quantity = quantity("us", zero=True)
    prompt_overhead: Quantity = quantity("us", zero=True)
    prompt_parts: float = number(default=1, zero=True)
    sequence_overhead: Quantity = quantity("us", zero=True)
    draft_overhead: Quantity = quantity("us", zero=True)
    admission_steps: float = number(zero=True)
    request_overhead: Quantity = quantity("ms", zero=True)
    compile_time: Quantity = quantity("s", zero=True)
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
    poll_steps: float = number(default=1)
    hold_steps: float = number(default=0, zero=True)
    aligned_ranks: float = number(default=0, zero=True, most=1)
    padded_ranks: float = number(default=0, zero=True, most=1)
    expert_padding: float = number(default=0, zero=True)
    expert_waiting: float = number(default=0, zero=True, most=1)

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
        """Return the constants with the bands that apply to a model."""
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
