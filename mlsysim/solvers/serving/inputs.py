"""Arguments and inputs of serving, and the rules for arguments that contradict each other.

An argument of an engine is declared once, in one of the TypedDicts, and appears in all solvers,
plans and commands that serve. `ServingInputs` has its type in the models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Annotated, Any, Generic, TypedDict, TypeVar

from mlsysim.core.errors import ConfigError, ParallelismError
from mlsysim.core.fields import derived
from mlsysim.core.inputs import default
from mlsysim.core.numeric import Value, first_known, is_known, is_unknown, zero_like
from mlsysim.core.types import (
    PRECISIONS,
    Accelerator,
    Fleet,
    NetworkFabric,
    Node,
    PowerCalibration,
    Precision,
    ServingCalibration,
    TransformerModel,
)
from mlsysim.core.units import Quantity
from mlsysim.registry.calibration.serving import serving_calibration_for
from mlsysim.solvers.arguments import Amount, Factor, Noun, Portion, PrecisionName, Stage, Whole
from mlsysim.solvers.base import Rule, within_context
from mlsysim.solvers.inference import InferenceInputs
from mlsysim.solvers.signatures import defaults_of, fields_of, marked
from mlsysim.solvers.tower import IMAGE_RULES

Inputs = TypeVar("Inputs", bound="ServingInputs")
Size = TypeVar("Size")
"""Type of a lever that is a number: one of them, or several to choose from."""
Format = TypeVar("Format")
"""Type of a lever that is a number format."""


class Only(Enum):
    """What an argument applies to, if it does not apply to every engine."""

    PREFILL = "prefill"
    DECODE = "decode"
    OPERATORS = "the operator-level model"
    PLAN = "the devices of one engine"


class ClientArguments(TypedDict, total=False):
    """Arguments of clients that wait for an answer before they send the next request.

    Attributes
    ----------
    seq_len
        Tokens of each prompt.
    images
        Images in each prompt; their tokens count toward `seq_len`. Each image is a pass of the
        model's vision tower, timed from its totals by one roofline. Only for models with a known
        tower (`vision`); 0 means text only.
    turn_tokens
        New tokens per prompt after the first, in addition to the previous answer.
    waves
        Requests that each client sends, one after the other. All clients start at once, so the
        first requests queue. `None` means a run long enough that its start does not matter; only
        then do requests in flight equal rate times latency for every output length.
    """

    seq_len: Annotated[int, Whole(unit="token", default=2048)]
    images: Annotated[int, Whole(minimum=0, default=0)]
    turn_tokens: Annotated[int | None, Whole(unit="token", default=None)]
    waves: Annotated[int | None, Whole(default=None)]


class EngineArguments(TypedDict, Generic[Size, Format], total=False):
    """Arguments of every engine that serves requests.

    Those with the type `Size` or `Format` are levers of the planner.

    Attributes
    ----------
    precision
        Number format of the arithmetic and the activations.
    weight_precision
        Format in which weights are stored; `None` takes `precision`. Narrow formats apply to the
        layers' matrices and include their scales (those of NVFP4 for ``"fp4"``, of AWQ for
        ``"int4"``); embeddings and output projection stay in 16 bits. Parts for which the model
        states a format (`formats`) keep it, such as those of a quantized file. Rows of the catalog
        leave it to this argument, and their notes say in which format they are published.
    kv_precision
        Format in which keys and values are stored, and sent from a prefill pool to a decode pool;
        `None` takes `precision`.
    tp_size
        Devices that share each layer of a rank.
    pp_size
        Pipeline stages. The same number of request groups pass through them, one after another.
    attention_dp
        Ranks of data-parallel attention. Each has `tp_size` devices, its own requests, and its own
        copy of all weights except the experts, which all ranks share. Tokens are sent to experts
        and back in an exchange between the ranks.
    ep_size
        Groups into which the `tp_size` x `attention_dp` devices of a stage divide the experts; the
        devices of a group split each of its experts. 1 splits every expert over all these devices;
        their number places each expert whole on one device.
    dcp_size
        Ranks of decode context parallelism: of the `tp_size` devices, those that hold the same keys
        and values divide their tokens. Each rank attends to its own part of the context, and two
        exchanges per layer combine the results. It divides `tp_size` / KV heads, where latent
        attention has one KV head. Prefill takes as long as before, and a prefill pool does not
        divide contexts; windows, states and the keys of an indexer are not divided.
    redundant_experts
        Additional copies of busy experts per layer. They take memory; what they gain is a lower
        `expert_imbalance`. They must make the experts divisible by `ep_size`, and no device of a
        stage holds an expert twice.
    expert_imbalance
        Load (rows) of the busiest group of experts divided by the mean, with the
        `redundant_experts` in place, if there are many tokens. With few tokens, chance adds to it.
        The model does not compute how much copies lower it: pass the ratio that remains.
    dispatch_precision
        Format of tokens on the way to experts; results come back in at least 16 bits. `None` takes
        8 bits if `precision` has 8 or 4.
    overlap_batches
        What hides the exchange with experts. 2: a rank splits each batch into halves, and one half
        computes while tokens of the other are sent (SGLang's two-batch overlap, vLLM's dual-batch
        overlap). Each half reads the weights, which can cost more than it hides. 1: only shared
        experts and the experts' last product run meanwhile (single-batch overlap). 0: nothing does.
    cached_share
        Share of each prompt that is already in the prefix cache. It is not computed again, but
        tokens still attend to it, and each request still counts with its whole cache in memory.
        With separate pools, only the prefill pool caches prefixes; all keys and values still move
        to the decode pool.
    loaded_share
        Share of each prompt whose keys and values are in the host's memory or on a disk. They are
        loaded before the first token, which takes time on the link, but no device time and no
        energy.
    host_link
        Link over which each device loads prefixes and adapters, such as PCIe or an SSD. `None`
        takes the device's bandwidth to its host, without latency. Waits for the link are part of
        the cost of device time; memory and disks of the host have no price and no energy here.
    lora_rank
        Rank of low-rank adapters (LoRA) of all matrices in the layers, in 16 bits; each request
        uses one. `None` serves the model without adapters. Passes read each adapter in use, and
        stream each token's inputs and outputs once more.
    adapters
        Adapters to choose from, each with the same probability.
    resident_adapters
        Adapters that the devices set memory aside for, which also limits how many different ones
        run together. The others are loaded over `host_link`. `None` keeps all of them.
    turns
        Requests per session. Each prompt repeats everything before it and adds new tokens;
        `seq_len` is the mean over all turns. `cached_share` and `loaded_share` then follow from the
        memory, the request rate and `think_time`. All requests of a session go to the same engine.
        A prefill pool caches prompts but no answers, which it reads again with the next turn.
    think_time
        Mean time from an answer to the session's next request, exponentially distributed. For a
        prefill pool by itself, it starts at the first token, so it includes the time in the decode
        pool.
    host_memory
        Host memory (or disk) per device for prefixes that the device has evicted; `None` means
        there is none.
    token_budget
        Most tokens per rank in one pass, which limits the chunks of a prefill; `None` takes the
        calibration's.
    block_size
        Tokens per block of the engine's cache: 16 in vLLM, 32 or 64 in TensorRT-LLM. On average,
        half of each sequence's last block is empty. The default of 1 counts single tokens, as in
        the fit of the constants.
    draft_tokens
        Tokens that a draft head (MTP, EAGLE) proposes before each decode pass. Each costs one
        average layer and the output projection, and the pass verifies all of them.
    acceptance_length
        Mean tokens that a decode pass then yields, including its own: from 1 to `draft_tokens` + 1.
        It depends on the text, so it has no default.
    calibration
        Constants for the operators; `None` takes those fitted for the device, which are
        TensorRT-LLM's on recent NVIDIA GPUs. To compare devices, give both the constants of one
        engine that has runs in the same format on each, and see `calibration` of the results.
    """

    precision: Annotated[str, PrecisionName(default="fp16")]
    weight_precision: Annotated[Format, PrecisionName(files=True, default=None)]
    kv_precision: Annotated[Format, PrecisionName(default=None)]
    tp_size: Annotated[Size, Whole(default=1), Only.PLAN]
    pp_size: Annotated[Size, Whole(default=1), Only.PLAN, Only.OPERATORS]
    attention_dp: Annotated[Size, Whole(default=1), Only.PLAN, Only.OPERATORS]
    ep_size: Annotated[Size, Whole(default=1), Only.PLAN, Only.OPERATORS]
    dcp_size: Annotated[Size, Whole(default=1), Only.PLAN, Only.DECODE, Only.OPERATORS]
    redundant_experts: Annotated[Size, Whole(minimum=0, default=0), Only.OPERATORS]
    expert_imbalance: Annotated[float, Factor(default=1), Only.OPERATORS]
    dispatch_precision: Annotated[str | None, PrecisionName(default=None), Only.OPERATORS]
    overlap_batches: Annotated[Size, Whole(minimum=0, maximum=2, default=0), Only.OPERATORS]
    cached_share: Annotated[float, Portion(default=0), Only.PREFILL, Only.OPERATORS]
    loaded_share: Annotated[float, Portion(default=0), Only.PREFILL, Only.OPERATORS]
    host_link: Annotated[
        NetworkFabric | None, Noun(hint="Systems.Links.PCIe5", default=None), Only.OPERATORS
    ]
    lora_rank: Annotated[int | None, Whole(default=None), Only.OPERATORS]
    adapters: Annotated[int, Whole(default=1)]
    resident_adapters: Annotated[int | None, Whole(default=None)]
    turns: Annotated[int, Stage(default=1), Only.PREFILL, Only.OPERATORS]
    think_time: Annotated[Quantity | None, Amount(unit="s", default=None)]
    host_memory: Annotated[Quantity | None, Amount(unit="GB", default=None)]
    token_budget: Annotated[int | None, Whole(unit="token", default=None), Only.OPERATORS]
    block_size: Annotated[int, Whole(unit="token", default=1)]
    draft_tokens: Annotated[
        Size, Whole(minimum=0, unit="token", default=0), Only.DECODE, Only.OPERATORS
    ]
    acceptance_length: Annotated[float | None, Factor(default=None), Only.DECODE]
    calibration: Annotated[
        ServingCalibration | None, Noun(hint="ServingCalibrations.Hopper_vLLM", default=None)
    ]


class ColocatedArguments(EngineArguments[Size, Format], total=False):
    """Arguments of an engine that prefills and decodes on the same devices.

    Attributes
    ----------
    reserved_output
        Share of the output for which memory is reserved when a request is admitted. With 1, no
        request is ever preempted. With less, more requests run, and while the cache is full, each
        new token evicts another one, which is recomputed later. `None` takes the calibration's
        share; its fitted times include the tokens that its engine recomputes.
    power_calibration
        Constants for power; `None` takes those fitted for the device's generation.
    """

    reserved_output: Annotated[float | None, Portion(default=None), Only.DECODE, Only.OPERATORS]
    power_calibration: Annotated[
        PowerCalibration | None, Noun(hint="PowerCalibrations.Hopper", default=None)
    ]


class ServingArguments(ClientArguments, ColocatedArguments[int, str | None], total=False):
    """Arguments of `ServingSolver` that it shares with other solvers."""


def _levers(of: Any) -> tuple[str, ...]:
    """Return the levers of an engine that have this type."""
    fields = fields_of(EngineArguments)
    return tuple(name for name, hint in fields.items() if hint.__origin__ is of)


SIZES, FORMATS = _levers(Size), _levers(Format)
"""Levers of an engine that are numbers, and those that are formats."""
PLAN = marked(EngineArguments, Only.PLAN)
"""Sizes that place an engine on its devices, for each pool of its own."""


_DEFAULTS = defaults_of(ServingArguments)


def device_in(hardware: Accelerator | Node | Fleet) -> Accelerator:
    """Return a device itself, or the device of a node or a fleet."""
    node = hardware.node if isinstance(hardware, Fleet) else hardware
    return node.accelerator if isinstance(node, Node) else node


class ServingInputs(InferenceInputs, defaults=_DEFAULTS):
    """Inputs of serving: the arguments of `ServingSolver.solve`, and constants."""

    model: TransformerModel
    hardware: Accelerator | Node | Fleet
    seq_len: Value
    images: Value
    output_len: Value
    batch_size: Value
    weight_precision: Precision = default(lambda i: i.precision)
    kv_precision: Precision = default(lambda i: i.precision)
    dispatch_precision: Precision = default(
        lambda i: PRECISIONS["fp8"] if i.precision.bits <= 8 else i.wide_precision
    )
    dispatch_given: Value = default(lambda i: float(i.gives("dispatch_precision")))
    """1 if the format was chosen, and 0 if it follows from `precision`."""
    tp_size: Value
    pp_size: Value
    attention_dp: Value
    ep_size: Value
    dcp_size: Value
    redundant_experts: Value
    expert_imbalance: Value
    overlap_batches: Value
    cached_share: Value
    loaded_share: Value
    host_link: NetworkFabric | None
    turns: Value
    turn_tokens: Value
    think_time: Value
    host_memory: Value
    lora_rank: Value
    """NaN if the model has no adapters."""
    adapters: Value
    resident_adapters: Value
    """NaN if all adapters are resident."""
    token_budget: Value
    """NaN if the calibration's applies."""
    block_size: Value
    reserved_output: Value
    """NaN if the calibration's applies; its times include recomputed tokens."""
    max_sequences: Value = default(lambda i: math.nan)
    """NaN if only memory limits the number of running sequences."""
    draft_tokens: Value
    acceptance_length: Value
    """NaN if each pass yields one token."""
    waves: Value = default(lambda i: math.inf)
    arrivals: Value
    efficiency: Value
    calibration: ServingCalibration = default(lambda i: serving_calibration_for(i.device))

    @derived
    def expert_efficiency(self) -> Value:
        """Rate of the experts' matrix products, relative to ordinary ones in the same format."""
        c = self.calibration
        return c.expert_efficiency_fp4 if self.precision.bits == 4 else c.expert_efficiency

    @derived
    def expert_overhead(self) -> Value:
        """Fixed time of a layer with experts, relative to a plain layer, in this format."""
        c = self.calibration
        return c.expert_overhead_fp4 if self.precision.bits == 4 else c.expert_overhead

    @property
    def node(self) -> Node | None:
        """The node; a single device has none."""
        if isinstance(self.hardware, Fleet):
            return self.hardware.node
        return self.hardware if isinstance(self.hardware, Node) else None

    @property
    def device(self) -> Accelerator:
        """The device, or the device of the node or fleet."""
        return device_in(self.hardware)

    @property
    def devices(self) -> Value:
        """Devices that the hardware has."""
        if isinstance(self.hardware, Fleet):
            return self.hardware.count * self.hardware.node.accelerators_per_node
        return 1 if self.node is None else self.node.accelerators_per_node

    @property
    def links(self) -> NetworkFabric | None:
        """The links between the devices of a node; a single device has none."""
        return None if self.node is None else self.node.scale_up

    @property
    def fabric(self) -> NetworkFabric | None:
        """The network between nodes; only a fleet has one."""
        return self.hardware.fabric if isinstance(self.hardware, Fleet) else None

    @property
    def known_share(self) -> Value:
        """Share of a prompt that needs no prefill: its keys and values are cached or loaded."""
        return self.cached_share + self.loaded_share

    @property
    def adapter_rank(self) -> Value:
        """Rank of the adapters; 0 without adapters."""
        return first_known(self.lora_rank, 0)

    @property
    def host_bandwidth(self) -> Value:
        """Bandwidth from the host to one device; NaN if it is unknown."""
        return self.device.host_bandwidth if self.host_link is None else self.host_link.bandwidth

    @property
    def host_latency(self) -> Value:
        """Latency of a transfer; 0 if only the device's bandwidth is known."""
        if self.host_link is None:
            return zero_like(self.calibration.request_overhead)
        return self.host_link.latency

    @property
    def copies(self) -> Value:
        """Number of parts into which ranks and stages split the cache of all sequences."""
        return self.attention_dp * self.pp_size

    @property
    def stage_devices(self) -> Value:
        """Devices of a stage, which together hold its experts."""
        return self.tp_size * self.attention_dp

    @property
    def replica_devices(self) -> Value:
        """Devices of the whole replica."""
        return self.stage_devices * self.pp_size

    @property
    def most_ranks(self) -> Value:
        """Ranks of data-parallel attention, in the pool that has the most."""
        return self.attention_dp

    @property
    def most_groups(self) -> Value:
        """Groups of experts, in the pool that has the most."""
        return self.ep_size

    @property
    def kept_output(self) -> Value:
        """Tokens of an answer that stay in this engine's prefix cache."""
        return self.output_len

    @property
    def loads(self) -> Value:
        """Whether anything is loaded over the link to the host: prefixes, or adapters."""
        missing = first_known(self.resident_adapters, self.adapters) < self.adapters
        return (self.loaded_share > 0) | is_known(self.host_memory) | missing

    @property
    def step_tokens(self) -> Value:
        """Tokens of a sequence that a decode step computes."""
        return self.draft_tokens + 1

    @property
    def accepted(self) -> Value:
        """Tokens of a sequence that a decode step yields."""
        return first_known(self.acceptance_length, 1)


def unused(name: str) -> Callable[[ServingInputs], Any]:
    """Return when an argument is left out, so that it has its default."""
    usual = _DEFAULTS[name]
    if usual is None:
        return lambda i: getattr(i, name) is None
    if math.isnan(usual):
        return lambda i: is_unknown(getattr(i, name))
    return lambda i: getattr(i, name) == usual


_OPERATORS_ONLY: Mapping[str, Callable[[ServingInputs], Any]] = {
    **{name: unused(name) for name in marked(ServingArguments, Only.OPERATORS)},
    "dispatch_precision": lambda i: i.dispatch_given == 0,
    "waves": lambda i: i.waves == math.inf,
    "max_sequences": lambda i: is_unknown(i.max_sequences),
    "arrivals": lambda i: i.arrivals == 1,
}
"""Arguments that the textbook model does not have, and when each of them is left out."""


def _textbook_alone(i: ServingInputs) -> Any:
    """Return whether the textbook model is not used, or has no argument that it ignores."""
    operators = is_unknown(i.efficiency)
    if operators is True:
        return True
    alone: Any = True
    for unused in _OPERATORS_ONLY.values():
        alone = alone & unused(i)
    return operators | alone


def _without_textbook(i: ServingInputs) -> str:
    """Return the first argument that the textbook model does not have."""
    return next(name for name, unused in _OPERATORS_ONLY.items() if not unused(i))


def _divided_heads(i: ServingInputs) -> list[Value]:
    """Return the cached heads of each kind of attention whose tokens ranks can divide."""
    return [a.cached_heads for _, a in i.model.attentions if a.caches_whole]


def _copies_to_divide(i: ServingInputs) -> Any:
    """Return whether `dcp_size` divides the devices that hold the same keys and values."""
    alone: Any = i.dcp_size == 1
    if alone is True:
        return True
    divided = _divided_heads(i)
    enough: Any = len(divided) > 0
    for heads in divided:
        enough = enough & (i.tp_size % (heads * i.dcp_size) == 0)
    return alone | enough


def _why_not_divided(i: ServingInputs) -> str:
    divided = _divided_heads(i)
    if not divided:
        return (
            f"dcp_size = {i.dcp_size:g} divides caches that grow with the context, and "
            f"{i.model.name} has none: leave it out"
        )
    needed = math.lcm(*(int(i.dcp_size * heads) for heads in divided))
    return (
        f"dcp_size = {i.dcp_size:g} divides tokens among devices that hold the same KV heads, so "
        f"tp_size must be a multiple of dcp_size x KV heads = {needed}, and it is {i.tp_size:g}: "
        "lower dcp_size, or raise tp_size"
    )


def _longest(i: ServingInputs) -> Value:
    """Return the tokens of the longest sequence: the last prompt of a session, and its answer."""
    added = first_known(i.turn_tokens, 0) + i.output_len
    return i.seq_len + (i.turns - 1) / 2 * added + i.output_len


def _sends_tokens(i: ServingInputs) -> Any:
    """Return whether ranks send tokens to the experts of others."""
    return (i.model.moe_layers > 0) & (i.most_ranks > 1)


_WITHOUT_EXCHANGE = (
    "because no tokens are sent to experts of other ranks: leave it out, or give a model with "
    "experts and attention_dp above 1"
)

RULES: tuple[Rule[ServingInputs], ...] = (
    within_context(_longest, "seq_len + output_len"),
    Rule(
        _without_textbook,
        _textbook_alone,
        lambda i: (
            "efficiency selects the textbook model, which has no "
            f"{_without_textbook(i.plain())}: leave one of the two out"
        ),
    ),
    Rule(
        "attention_dp",
        lambda i: (i.replica_devices == i.tp_size) | (i.replica_devices <= i.devices),
        lambda i: (
            f"tp_size x attention_dp x pp_size = {i.replica_devices} is more than the {i.devices} "
            "device(s) that the hardware has: lower one of them, or pass a Fleet of several nodes"
        ),
        ParallelismError,
    ),
    Rule(
        "pp_size",
        lambda i: i.pp_size <= i.model.layers,
        lambda i: (
            f"pp_size = {i.pp_size} is more than the model's {i.model.layers} layers: choose at "
            "most as many stages"
        ),
        ParallelismError,
    ),
    Rule(
        "ep_size",
        lambda i: (
            (i.stage_devices % i.ep_size == 0) & ((i.ep_size == 1) | (i.model.moe_layers > 0))
        ),
        lambda i: (
            f"ep_size = {i.ep_size} must divide the tp_size x attention_dp = {i.stage_devices} "
            "devices of a stage, and be 1 for a model without experts"
        ),
        ParallelismError,
    ),
    Rule(
        "ep_size",
        lambda i: (
            (i.model.moe_layers == 0) | ((i.model.experts + i.redundant_experts) % i.ep_size == 0)
        ),
        lambda i: (
            f"ep_size = {i.ep_size} does not divide the {i.model.experts} experts of a layer and "
            f"{i.redundant_experts} redundant ones: choose a divisor, or other redundant_experts"
        ),
        ParallelismError,
    ),
    Rule(
        "redundant_experts",
        lambda i: (i.redundant_experts == 0) | (i.model.moe_layers > 0),
        lambda i: (
            f"redundant_experts = {i.redundant_experts:g} are for models with experts, and "
            f"{i.model.name} has none: leave them out"
        ),
    ),
    Rule(
        "redundant_experts",
        lambda i: (
            (i.model.moe_layers == 0)
            | (i.redundant_experts <= (i.stage_devices - 1) * i.model.experts)
        ),
        lambda i: (
            f"redundant_experts = {i.redundant_experts:g} are more than one of each of the "
            f"{i.model.experts} experts on each of the {i.stage_devices} devices of a stage: give "
            f"at most {(i.stage_devices - 1) * i.model.experts}"
        ),
    ),
    Rule(
        "expert_imbalance",
        lambda i: (i.expert_imbalance == 1) | ((i.model.moe_layers > 0) & (i.most_groups > 1)),
        lambda i: (
            f"expert_imbalance = {i.expert_imbalance:g} compares groups of experts, and there is "
            "only one: leave it out, or give a model with experts and ep_size above 1"
        ),
    ),
    Rule(
        "dispatch_precision",
        lambda i: (i.dispatch_given == 0) | _sends_tokens(i),
        lambda i: (
            f"dispatch_precision = {i.dispatch_precision.name} has no effect, {_WITHOUT_EXCHANGE}"
        ),
    ),
    Rule(
        "overlap_batches",
        lambda i: (i.overlap_batches == 0) | _sends_tokens(i),
        lambda i: (
            f"overlap_batches = {i.overlap_batches:g} has nothing to hide, {_WITHOUT_EXCHANGE}"
        ),
    ),
    Rule(
        "acceptance_length",
        lambda i: (
            (is_known(i.acceptance_length) == (i.draft_tokens > 0)) & (i.accepted <= i.step_tokens)
        ),
        lambda i: (
            f"acceptance_length = {i.acceptance_length}: give the mean tokens that a step yields, "
            f"from 1 to draft_tokens + 1 = {i.step_tokens}, if and only if draft_tokens is above 0"
        ),
    ),
    Rule(
        "turns",
        lambda i: (
            (is_known(i.turn_tokens) == (i.turns > 1))
            & (is_known(i.think_time) == (i.turns > 1))
            & ((i.turns > 1) | is_unknown(i.host_memory))
        ),
        lambda i: (
            f"turns = {i.turns}: give turn_tokens and think_time if and only if a session has 2 "
            "or more turns, and host_memory only then"
        ),
    ),
    Rule(
        "turns",
        lambda i: (i.turns == 1) | (i.known_share == 0),
        lambda i: (
            f"turns = {i.turns}: cached_share and loaded_share follow from the turns: leave these "
            "out, or turns"
        ),
    ),
    Rule(
        "seq_len",
        lambda i: (
            (i.turns == 1)
            | (i.seq_len - (i.turns - 1) / 2 * (i.turn_tokens + i.output_len) >= 1)
            | is_unknown(i.turn_tokens)
        ),
        lambda i: (
            f"seq_len = {i.seq_len:g} is the mean prompt of {i.turns} turns that add "
            f"{i.turn_tokens:g} + {i.output_len:g} tokens each, so the first would be empty: give "
            f"at least {(i.turns - 1) / 2 * (i.turn_tokens + i.output_len) + 1:g}, or fewer turns"
        ),
    ),
    Rule(
        "lora_rank",
        lambda i: i.adapter_rank <= i.model.hidden_dim,
        lambda i: (
            f"lora_rank = {i.lora_rank}: give at most hidden_dim = {i.model.hidden_dim}, which is "
            "the rank of a whole matrix"
        ),
    ),
    Rule(
        "adapters",
        lambda i: (i.adapter_rank > 0) | ((i.adapters == 1) & is_unknown(i.resident_adapters)),
        lambda i: (
            f"adapters = {i.adapters}: give the rank of adapters with lora_rank, or leave out "
            "adapters and resident_adapters"
        ),
    ),
    Rule(
        "resident_adapters",
        lambda i: first_known(i.resident_adapters, i.adapters) <= i.adapters,
        lambda i: (
            f"resident_adapters = {i.resident_adapters} exceeds the number of adapters: give at "
            f"most adapters = {i.adapters}"
        ),
    ),
    Rule(
        "loaded_share",
        lambda i: i.known_share <= 1,
        lambda i: (
            f"loaded_share = {i.loaded_share:g} and cached_share = {i.cached_share:g} add up to "
            "more than the whole prompt: give shares that add up to at most 1"
        ),
    ),
    Rule(
        "host_link",
        lambda i: is_known(i.host_bandwidth) | (i.loads == 0),
        lambda i: (
            f"host_link is missing: the host bandwidth of {i.device.name} is unknown; pass a "
            "link such as Systems.Links.PCIe5, or leave out loaded_share, host_memory and adapters "
            "that are not resident"
        ),
    ),
    Rule(
        "tp_size",
        lambda i: i.tp_size <= i.devices,
        lambda i: (
            f"tp_size = {i.tp_size} is more than the {i.devices} device(s) that the "
            f"hardware has: choose at most {i.devices}, or pass a node that has more, such as "
            "Systems.Nodes.DGX_H100"
        ),
        ParallelismError,
    ),
    Rule(
        "tp_size",
        lambda i: i.model.split_heads % i.tp_size == 0,
        lambda i: (
            f"tp_size = {i.tp_size} does not divide the model's {i.model.split_heads} attention "
            "heads: choose a divisor of the number of heads"
        ),
        ParallelismError,
    ),
    Rule("dcp_size", _copies_to_divide, _why_not_divided, ParallelismError),
    *IMAGE_RULES,
)

NOTHING_TO_LOAD: Rule[Any] = Rule(
    "host_link",
    lambda i: (i.host_link is None) | i.loads,
    lambda i: (
        f"host_link = {i.host_link.name} has nothing to load: leave it out, or give "
        "loaded_share, host_memory, or adapters that are not resident"
    ),
)
"""A rule for solvers that use the link for nothing else."""


def check_generates(inputs: ServingInputs) -> None:
    """Reject models that do not generate text."""
    if not inputs.model.causal:
        raise ConfigError(
            f"model = {inputs.model.name} encodes text but does not generate any; time its "
            "forward pass with SingleNodeSolver",
            argument="model",
        )


def with_bands(inputs: Inputs) -> Inputs:
    """Return the inputs with the bands that apply to their format and their model."""
    constants = inputs.calibration.in_format(inputs.precision.name).serving(inputs.model.name)
    return inputs.but(calibration=constants)
