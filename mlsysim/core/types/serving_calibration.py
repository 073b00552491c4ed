"""Constants for the share of a datasheet's rates that a serving engine reaches."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import constant, number, record, require
from mlsysim.core.types.fitted import STATE_EFFICIENCY, Band, Banded, Rates
from mlsysim.core.units import Quantity


@record
class ServingCalibration(Banded, Rates):
    """One set of constants per device generation and serving engine.

    Shares refer to the datasheet's figures. The source of each constant names the measurements to
    which it was fitted, or the publication.

    Attributes
    ----------
    engine : str
        The serving software.
    itl_band, ttft_band : Band
        Bands of the times of held-out runs.
    throughput_band : Band
        Band of the rates of requests and tokens.
    models : tuple of str
        Names of the models served in the runs. The bands of other models are wider.
    unseen_itl_band, unseen_ttft_band, unseen_throughput_band : Band
        The same bands for held-out models.
    pass_band : Band
        Band of the times of single forward passes, called as a library.
    """

    hidden_bytes: Quantity = constant("byte", usual=24.0)
    """Memory traffic of element-wise operators in 16 bits, forward, per element of the residual
    stream."""
    ffn_bytes: Quantity = constant("byte", usual=3.0)
    """The same per element of the feed-forward block's inner width."""
    engine: str
    gemm_efficiency: float = constant(usual=0.7, low=0.02, high=0.85, most=1, scales="arithmetic")
    """Share of the peak rate that large matrix products reach in 16 bits."""
    gemm_efficiency_fp8: float = constant(
        usual=0.6, low=0.1, high=0.85, most=1, scales="arithmetic"
    )
    """The same in 8 bits."""
    gemm_efficiency_fp4: float = constant(usual=0.5, low=0.1, high=0.8, most=1, scales="arithmetic")
    """The same in 4 bits."""
    state_efficiency: float = constant(
        usual=STATE_EFFICIENCY, low=0.002, high=0.5, most=1, scales="arithmetic"
    )
    """Share of the 16-bit peak rate that scans of states reach over a whole sequence."""
    attention_efficiency: float = constant(
        usual=0.4, low=0.005, high=0.75, most=1, scales="arithmetic"
    )
    """Share of the 16-bit peak rate that attention reaches in a prefill."""
    memory_efficiency: float = constant(
        usual=0.88, low=0.03, high=0.95, most=1, scales="weights and activations"
    )
    """Share of the memory bandwidth at which weights stream."""
    kv_efficiency: float = constant(usual=0.7, low=0.03, high=0.95, most=1, scales="KV cache")
    """Share of the memory bandwidth at which decode reads keys and values."""
    link_efficiency: float = constant(usual=0.77, most=1, scales="communication")
    """Share of the links' bandwidth that large all-reduces reach."""
    layer_overhead: Quantity = constant(
        "us", usual=50.0, low=1, high=5000, zero=True, scales="fixed overhead"
    )
    """Time of a layer's decode step that does not depend on tensor sizes: kernel launches, norms,
    small kernels."""
    all_reduce_overhead: Quantity = constant(
        "us", usual=4.0, low=0.5, high=2000, zero=True, scales="communication"
    )
    """Fixed time of an all-reduce."""
    prompt_overhead: Quantity = constant(
        "us", usual=100.0, low=1, high=2000, zero=True, scales="fixed overhead"
    )
    """Time of a layer in a prefill pass that does not depend on the length of prompts: launches
    without a graph, partly filled tiles."""
    prompt_parts: float = constant(usual=1.0, low=0.1, high=20, default=1.0, zero=True)
    """Extra fixed time of a layer with experts, latent attention or an indexer in a prefill pass,
    divided by its extra time in a decode step; both are shares of a plain layer's fixed time. A
    decode step replays a graph of kernels; a prefill pass launches them one by one."""
    sequence_overhead: Quantity = constant(
        "us", usual=8.0, low=0.5, high=300, zero=True, scales="fixed overhead"
    )
    """Host time per sequence of a decode step: scheduling, sampling, output."""
    draft_overhead: Quantity = constant("us", usual=0.0, zero=True, scales="fixed overhead")
    """Host time per sequence and drafted token of a decode step that verifies drafts."""
    admission_steps: float = constant(usual=1.5, low=0.3, high=20, zero=True)
    """Decode steps before a busy engine admits a new request: the rest of the running step, which
    is half of it on average, and steps launched ahead, usually one."""
    request_overhead: Quantity = constant("ms", usual=1.0, low=0.1, high=100, zero=True)
    """Time of a request outside the engine's passes, at any load: tokenization, HTTP, the first
    response."""
    compile_time: Quantity = constant("s", usual=0.0, zero=True)
    """Time for which the first full pass of a run waits for kernels to be compiled."""
    expert_efficiency: float = constant(usual=0.5, low=0.1, high=1, most=1)
    """Rate of experts' grouped products, relative to plain products."""
    expert_efficiency_fp4: float = constant(usual=0.5, low=0.1, high=1, most=1)
    """The same in 4 bits, which has other kernels."""
    expert_memory: float = constant(usual=1.0, low=0.3, high=1, most=1)
    """Bandwidth at which experts' weights stream, relative to other weights."""
    expert_tile: float = constant(usual=64.0, zero=True)
    """Rows per tile of a grouped product; on average half of an expert's last tile is padding."""
    expert_overhead: float = constant(usual=0.6, low=0.02, high=4, zero=True)
    """Fixed time of a layer's experts, relative to a plain layer: routing, sorting, launches of
    grouped products."""
    expert_overhead_fp4: float = constant(usual=0.6, low=0.02, high=4, zero=True)
    """The same in 4 bits."""
    attention_overhead: float = constant(usual=0.6, low=0.02, high=4, zero=True)
    """Fixed time of each part of attention beyond plain attention, relative to a plain layer:
    projections to and from latent vectors, an indexer, or states instead of keys and values."""
    unpacking: float = constant(usual=0.8, low=0.3, high=1, most=1)
    """Bandwidth at which weights stream if they are converted to a wider format for arithmetic,
    relative to other weights."""
    exchange_overhead: Quantity = constant(
        "us", usual=20.0, low=1, high=400, zero=True, scales="communication"
    )
    """Fixed time of an exchange between the ranks of data-parallel attention."""
    mixing: float = constant(usual=1.0, most=1, zero=True)
    """1 if prefill chunks and decode steps share passes, 0 if a pass contains one or the other."""
    pass_tokens: int = constant(usual=8192, whole=True)
    """Most tokens in one pass, which limits the chunks of a prefill. The activations of such a pass
    are the workspace."""
    kv_share: float = constant(usual=0.9, most=1)
    """Share of the memory not taken by weights and workspace that keys and values may use."""
    reserved_output: float = constant(usual=1.0, most=1)
    """Share of the output for which memory is set aside when a request is admitted."""
    itl_band: Band = Band()
    ttft_band: Band = Band()
    throughput_band: Band = Band()
    models: tuple[str, ...] = ()
    unseen_itl_band: Band = Band()
    unseen_ttft_band: Band = Band()
    unseen_throughput_band: Band = Band()
    pass_band: Band = Band()
    poll_steps: float = number(default=1)
    """Decode steps from one poll of the engine's queue to the next."""
    hold_steps: float = number(default=0, zero=True)
    """Decode steps for which an engine holds a request back, so that others join it."""
    aligned_ranks: float = number(default=0, zero=True, most=1)
    """1 where ranks of data-parallel attention prefill prompts in the same passes, 0 where each
    prompt holds up all ranks."""
    padded_ranks: float = number(default=0, zero=True, most=1)
    """1 where ranks of data-parallel attention pad the tokens of a pass to those of the longest
    rank, so that experts compute padding as well, 0 where ranks send only their own tokens."""
    expert_padding: float = number(default=0, zero=True)
    """Rows that a grouped product adds for each expert on a device, visited or not: 127 where an
    engine aligns experts' rows to tiles of 128 in a buffer of fixed size. 0 pads only the last
    tiles of visited experts, by `expert_tile`."""
    expert_waiting: float = number(default=0, zero=True, most=1)
    """1 where a pass takes as long as the device that reads the most experts, 0 where it takes as
    long as the mean device, as other fitted constants include the wait."""

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
        return self if not self.models or model in self.models else self._for_other_models

    @cached_property
    def _for_other_models(self) -> ServingCalibration:
        return replace(
            self,
            itl_band=self.unseen_itl_band,
            ttft_band=self.unseen_ttft_band,
            throughput_band=self.unseen_throughput_band,
        )
