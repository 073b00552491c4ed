"""Arguments and inputs of a training step."""

from __future__ import annotations

from typing import Annotated, Generic, TypedDict, TypeVar

from mlsysim.core import formulas as f
from mlsysim.core.fields import derived
from mlsysim.core.inputs import default
from mlsysim.core.numeric import Value, first_known, is_known, is_zero, minimum, where
from mlsysim.core.types import (
    ATTENTION,
    CP_KINDS,
    LOSSES,
    OPTIMIZERS,
    RECOMPUTE,
    SCHEDULES,
    Accelerator,
    AttentionKernel,
    Calibration,
    ContextExchange,
    Fleet,
    Loss,
    Optimizer,
    PowerCalibration,
    Precision,
    Recompute,
    Schedule,
    TransformerModel,
)
from mlsysim.core.types.fitted import traffic_in
from mlsysim.registry.calibration.training import calibration_for
from mlsysim.solvers.arguments import (
    Choice,
    Factor,
    Noun,
    Portion,
    PrecisionName,
    Share,
    Stage,
    Switch,
    Whole,
)
from mlsysim.solvers.device import DeviceInputs
from mlsysim.solvers.work import stored_bytes

Size = TypeVar("Size")
"""Type of a lever that is a number: one of them, or several to choose from."""
Word = TypeVar("Word")
"""Type of a lever that is a named option."""
Flag = TypeVar("Flag")
"""Type of a lever that is on or off."""


class TrainingArguments(TypedDict, Generic[Size, Word, Flag], total=False):
    """Arguments of a training step.

    Those with the type `Size`, `Word` or `Flag` are levers of `advise`.

    Attributes
    ----------
    precision
        Number format of arithmetic, weights, gradients and activations. With less than 16 bits it
        applies to matrix products and to the inputs that they keep for the backward pass, as in
        Transformer Engine; everything else has 16 bits.
    tp_size
        Devices that share each layer (tensor parallelism).
    pp_size
        Pipeline stages.
    microbatch_count
        Microbatches into which each replica's share of the batch is divided.
    virtual_stages
        Model chunks per stage; above 1 the schedule is interleaved.
    first_stage_layers
        Layers of the first pipeline stage; stages without a stated number share the rest. `None`
        divides all layers evenly. If they do not divide, the last stage has fewer, because it also
        has the output projection, and then the first stage. A stated number must be a multiple of
        `virtual_stages`.
    last_stage_layers
        Layers of the last pipeline stage, likewise.
    schedule
        ``"1f1b"``, ``"gpipe"`` (holds all microbatches' activations), ``"zb-h1"`` (gradients of
        weights fill the bubble) or ``"dualpipe"`` (microbatches enter at both ends, so each device
        holds two stages).
    cp_size
        Devices that share each sequence (context parallelism).
    cp_kind
        How these devices attend to whole sequences: ``"ring"`` (keys and values travel from device
        to device during attention), ``"all_gather"`` (keys and values are gathered first) or
        ``"ulysses"`` (positions are swapped for heads). Positions are distributed so that causal
        attention is balanced (zigzag).
    ulysses_size
        Neighboring devices among the `cp_size` that swap positions for heads, before keys and
        values are exchanged between such groups by `cp_kind`; 1 means none.
    ep_size
        Devices over which experts are distributed (expert parallelism).
    expert_nodes
        Most nodes to which a token is sent, once each; devices there forward it to its experts
        (node-limited routing). `None` sends copies as in the calibration's software; where that
        sends a token to each node once, the groups of the model's router set the limit. This
        argument and the next three are only for models with experts.
    dispatch_precision
        Format of tokens on the way to experts; results come back in at least 16 bits. `None` takes
        that of the residual stream.
    capacity_factor
        Rows that each expert computes, divided by its even share of the tokens. In GShard and
        Switch this is the capacity of an expert: it accepts no more tokens and is padded to that
        many, so the factor also applies on a single device (`ep_size=1`). For software that does
        not pad, give the load of the busiest expert device divided by the mean, which is 1 with
        `ep_size=1`.
    exchange_overlap
        Share of the expert exchanges that overlaps with computation, if there is enough
        computation. `None` takes the calibration's.
    tensor_overlap
        Share of a tensor-parallel group's collectives that overlaps with matrix products, if there
        are enough of them (asynchronous tensor parallelism). `None` takes the calibration's value
        within a node, and 0 for groups that span nodes.
    pipeline_overlap
        Share of the transfers between pipeline stages that overlaps with computation, if there is
        enough of it. `None` means 0, as for 1F1B: with at most `pp_size` microbatches in flight, a
        stage waits for transfers even if they are asynchronous. GPipe, interleaved stages and split
        backward passes can hide most of them.
    zero_stage
        What is sharded over the replicas (ZeRO, FSDP): 0 nothing, 1 the optimizer's state, 2 also
        gradients, 3 also weights. From 2 on, every microbatch scatters its gradients.
        In a pipeline, PyTorch's FSDP adds them up in whole and scatters them after the last
        microbatch, which is 1 (torch/distributed/pipelining/stage.py at 0138610,
        `backward_maybe_with_nosync`).
    shard_size
        Neighboring devices over which states are sharded; gradients are summed between such groups
        once per step (hybrid sharding, HSDP). `None` takes all devices with the same parameters,
        including those that share sequences.
    reshard_after_forward
        Whether layers with sharded weights drop them after the forward pass and gather them again
        for the backward pass, as FSDP does by default. False needs `zero_stage=3`.
    sequence_parallel
        Whether tensor-parallel ranks split norms and dropouts as well.
    recompute
        Activations that are recomputed rather than kept: ``"none"``, ``"selective"`` (attention
        scores, as fused attention does), ``"norms"``, ``"swiglu"`` (nonlinearities of the
        feed-forward blocks), ``"mla_up"`` (heads of latent attention), any combination of these
        four, as in ``"norms+swiglu"``, or ``"full"`` (whole layers).
    recompute_layers
        Layers of each stage to which `recompute` applies; the others keep everything. It cannot
        exceed the layers of the longest stage; shorter stages recompute all of theirs. `None`
        applies it to all layers.
    optimizer
        ``"adamw"``, ``"adamw_8bit"``, ``"muon"``, ``"adafactor"`` (without momentum) or ``"sgd"``
        (with momentum). It sets the memory, traffic and operations per parameter. Muon's iterations
        are counted for each matrix of the layers and divided among the devices that share it; the
        exchange that gathers its parts is not counted.
    lora_rank
        Rank of the adapters of all matrices in the layers (LoRA); only the adapters are trained.
        `None` trains all parameters.
    weight_precision
        Format in which the frozen weights of the layers and of a vision tower are stored, as in
        QLoRA; only with `lora_rank`. Each is expanded to `precision` before its products. Adapters
        and embedding tables are stored in `precision`. NF4 takes 4.127 bits per weight with double
        quantization (Dettmers et al., 2023, section 3), close to ``"int4"``, and 4.5 bits without,
        like ``"fp4"``. `None` stores all weights in `precision`.
    attention
        ``"fused"`` (FlashAttention) or ``"unfused"``.
    loss
        ``"unfused"`` (logits, their copy in 32 bits and its gradient are in memory at once, as
        frameworks do by default) or ``"fused"`` (one kernel, which writes the gradient over the
        logits: Liger Kernel, Transformer Engine).
    gradient_precision
        Format of the gradients. `None` takes `precision`, except that gradients sharded layer by
        layer are scattered in the format of the calibration's software.
    gradient_compression
        Bytes of gradients divided by the bytes that replicas send for them, including indices of
        selected values: 1 sends everything, 4 a quarter. The model assumes that compressed
        gradients can still be summed, as in PowerSGD. It counts neither the time to compress nor
        the effect on convergence.
    gradient_overlap
        Share of the replicas' communication that can overlap with computation, if there is enough
        computation: 0 none, 1 all. `None` takes the calibration's value.
    seq_len
        Tokens per sequence; `None` takes the model's training length.
    images
        Images in each sequence; their tokens count toward `seq_len`. Each image is a pass of the
        model's vision tower, timed from its totals by one roofline. The tower is on the first
        stage, split as its layers are, and trained with them, or frozen with `lora_rank`. Only for
        models with a known tower (`vision`); 0 means text only.
    efficiency
        Share of the dense peak rate that arithmetic reaches: the textbook's one constant. `None`
        times every operator instead, with a calibration's constants.
    calibration
        Constants for the operators; `None` takes those fitted for the device, with the software
        that it usually runs: MaxText on TPUs, otherwise Megatron-Core without its options for
        experts (see Notes). Cannot be combined with `efficiency`.
    power_calibration
        Constants for the power that operations and memory traffic draw; `None` takes those fitted
        for the device's generation.
    """

    precision: Annotated[str, PrecisionName(default="fp16")]
    tp_size: Annotated[Size, Whole(default=1)]
    pp_size: Annotated[Size, Whole(default=1)]
    microbatch_count: Annotated[Size, Whole(default=1)]
    virtual_stages: Annotated[Size, Whole(default=1)]
    first_stage_layers: Annotated[int | None, Whole(default=None)]
    last_stage_layers: Annotated[int | None, Whole(default=None)]
    schedule: Annotated[Word, Choice(options=SCHEDULES, default="1f1b")]
    cp_size: Annotated[Size, Whole(default=1)]
    cp_kind: Annotated[str, Choice(options=CP_KINDS, default="ring")]
    ulysses_size: Annotated[int, Whole(default=1)]
    ep_size: Annotated[Size, Whole(default=1)]
    expert_nodes: Annotated[int | None, Whole(default=None)]
    dispatch_precision: Annotated[str | None, PrecisionName(default=None)]
    capacity_factor: Annotated[float, Factor(default=1)]
    exchange_overlap: Annotated[float | None, Portion(default=None)]
    tensor_overlap: Annotated[float | None, Portion(default=None)]
    pipeline_overlap: Annotated[float | None, Portion(default=None)]
    zero_stage: Annotated[Size, Stage(minimum=0, maximum=3, default=0)]
    shard_size: Annotated[int | None, Whole(default=None)]
    reshard_after_forward: Annotated[bool, Switch(default=True)]
    sequence_parallel: Annotated[Flag, Switch(default=False)]
    recompute: Annotated[Word, Choice(options=RECOMPUTE, default="selective")]
    recompute_layers: Annotated[int | None, Whole(default=None)]
    optimizer: Annotated[str, Choice(options=OPTIMIZERS, default="adamw")]
    lora_rank: Annotated[int | None, Whole(default=None)]
    weight_precision: Annotated[str | None, PrecisionName(default=None)]
    attention: Annotated[str, Choice(options=ATTENTION, default="fused")]
    loss: Annotated[str, Choice(options=LOSSES, default="unfused")]
    gradient_precision: Annotated[str | None, PrecisionName(default=None)]
    gradient_compression: Annotated[float, Factor(default=1)]
    gradient_overlap: Annotated[float | None, Portion(default=None)]
    seq_len: Annotated[int | None, Whole(unit="token", default=None)]
    images: Annotated[int, Whole(minimum=0, default=0)]
    efficiency: Annotated[float | None, Share(default=None)]
    calibration: Annotated[
        Calibration | None,
        Noun(
            hint='Calibrations.H100_Megatron, or load_calibration("my_cluster.yaml") for a file',
            default=None,
        ),
    ]
    power_calibration: Annotated[
        PowerCalibration | None, Noun(hint="PowerCalibrations.Hopper", default=None)
    ]


class TrainingInputs(DeviceInputs):
    """Inputs of a training step: the arguments of `DistributedSolver.solve`, and constants."""

    model: TransformerModel
    fleet: Fleet
    batch_size: Value
    tp_size: Value
    pp_size: Value
    microbatch_count: Value
    virtual_stages: Value
    first_stage_layers: Value
    """NaN if all stages share the layers."""
    last_stage_layers: Value
    schedule: Schedule
    cp_size: Value
    cp_kind: ContextExchange
    ulysses_size: Value
    ep_size: Value
    expert_nodes: Value
    """NaN if a token's experts may be on any node."""
    capacity_factor: Value
    exchange_overlap: Value
    """NaN where the calibration's applies."""
    tensor_overlap: Value
    """NaN where the calibration's applies."""
    pipeline_overlap: Value
    """NaN if transfers between stages do not overlap."""
    zero_stage: Value
    shard_size: Value
    """NaN if all replicas share one set of shards."""
    reshard_after_forward: Value
    sequence_parallel: Value
    recompute: Recompute
    recompute_layers: Value
    """NaN if all layers recompute."""
    optimizer: Optimizer
    lora_rank: Value
    """NaN if all parameters are trained."""
    weight_precision: Precision = default(lambda i: i.precision)
    weights_stated: Value = default(lambda i: float(i.gives("weight_precision")))
    """1 if the format of frozen weights is given, 0 if all weights are in that of training."""
    attention: AttentionKernel
    loss: Loss
    usable_memory: Value
    gradient_precision: Precision = default(lambda i: i.precision)
    gradients_stated: Value = default(lambda i: float(i.gives("gradient_precision")))
    """1 if the format of gradients is given, 0 if the software chooses it."""
    gradient_compression: Value
    gradient_overlap: Value
    """NaN if the calibration's apply."""
    seq_len: Value = default(lambda i: i.model.seq_len)
    images: Value
    efficiency: Value
    calibration: Calibration = default(lambda i: calibration_for(i.device))
    dispatch_precision: Precision = default(lambda i: i.wide_precision)

    @property
    def device(self) -> Accelerator:
        """The device of the fleet."""
        return self.fleet.node.accelerator

    @property
    def devices(self) -> Value:
        """Devices of the fleet."""
        return self.fleet.count * self.fleet.node.accelerators_per_node

    @property
    def covered(self) -> Value:
        """1 if the sizes are within the range of runs on the constants' own cluster, else 0.

        It is 1 for constants that do not belong to one cluster.
        """
        known, inside = self.calibration.covered, 1.0
        for name, least, most in known.ranges() if known is not None else ():
            value = getattr(self, name)
            inside = inside * where(value < least, 0.0, 1.0) * where(value > most, 0.0, 1.0)
        return inside

    @property
    def frozen(self) -> Value:
        """1 if only adapters are trained, else 0."""
        return where(is_known(self.lora_rank), 1, 0)

    @property
    def adapter_rank(self) -> Value:
        """Rank of the adapters; 0 without any."""
        return first_known(self.lora_rank, 0)

    @property
    def swap_size(self) -> Value:
        """Devices that swap positions for heads: all or some that share a sequence, or one."""
        return where(self.cp_kind.by_heads > 0, self.cp_size, self.ulysses_size)

    @property
    def expert_span(self) -> Value:
        """Nodes over which experts are distributed."""
        return self.ep_size / f.local_ranks(self.ep_size, self.fleet.node.accelerators_per_node)

    @derived
    def gemm_efficiency(self) -> Value:
        """Share of the peak rate that products reach."""
        c = self.calibration
        return c.software.gemm_speed * c.machine.gemm(self.precision.name)

    @derived
    def wide_gemm_efficiency(self) -> Value:
        """Share of the peak rate that products in the wide format reach."""
        c = self.calibration
        return c.software.gemm_speed * c.machine.gemm(self.wide_precision.name)

    @derived
    def attention_backward(self) -> Value:
        """Time of attention's backward pass, relative to its forward pass."""
        slower = where(self.attention.fused > 0, self.calibration.machine.attention_backward, 1)
        return self.attention.backward / slower

    @derived
    def kept_bytes(self) -> Value:
        """Bytes that products keep of one element of an input for the backward pass.

        Transformer Engine keeps the quantized input, in one of its two layouts. Inputs of
        nonlinearities, norms and attention stay in 16 bits
        (github.com/NVIDIA/TransformerEngine/issues/1764 and 1193).
        """
        stored = self.precision
        return minimum(stored.training_bytes, stored.bytes_per_element + stored.scale_bytes)

    @derived
    def weight_bytes(self) -> Value:
        """Bytes of a stored weight of a layer, with its share of scale factors."""
        if is_zero(self.weights_stated):
            return self.precision.training_bytes
        stored = stored_bytes(self.weight_precision)
        return where(self.weights_stated > 0, stored, self.precision.training_bytes)

    @derived
    def expanded_bytes(self) -> Value:
        """Bytes to which a weight is expanded before its products; 0 if it is wide enough."""
        return where(self.weight_bytes < self.kept_bytes, self.kept_bytes, 0)

    @derived
    def cast_bytes(self) -> Value:
        """Memory traffic per element that is converted to a narrow format."""
        return self.calibration.software.cast(self.precision.name)

    @derived
    def scatter_bytes(self) -> Value:
        """Bytes per gradient that is scattered layer by layer.

        If no format is given, software may sum 16-bit gradients in a wider one.
        """
        stated = self.gradient_precision.training_bytes
        wider = where(self.precision.bits <= 16, self.calibration.software.gradient_scatters, 1)
        return where(self.gradients_stated > 0, stated, wider * stated)

    @derived
    def hidden_bytes(self) -> Value:
        """Memory traffic of element-wise operators per element of the residual stream."""
        return traffic_in(self.precision.name, self.calibration.software.hidden_bytes)

    @derived
    def ffn_bytes(self) -> Value:
        """The same per element of the feed-forward block's inner width."""
        return traffic_in(self.precision.name, self.calibration.software.ffn_bytes)

    @derived
    def score_bytes(self) -> Value:
        """Memory traffic per attention score that is not fused."""
        return traffic_in(self.precision.name, self.calibration.software.score_bytes)

    @derived
    def routing_bytes(self) -> Value:
        """Memory traffic per element that is routed to experts."""
        return traffic_in(self.precision.name, self.calibration.software.routing_bytes)
