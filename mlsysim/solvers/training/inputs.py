"""What a training step depends on, and which sizes contradict each other."""

from __future__ import annotations

from mlsysim.core.errors import ParallelismError
from mlsysim.core.fields import derived
from mlsysim.core.inputs import default
from mlsysim.core.numeric import Value, first_known, gcd, where
from mlsysim.core.types import (
    Accelerator,
    AttentionKernel,
    Calibration,
    ContextExchange,
    Fleet,
    Loss,
    Optimizer,
    Precision,
    Recompute,
    Schedule,
    TransformerModel,
)
from mlsysim.core.types.attention import LatentAttention
from mlsysim.core.types.fitted import traffic_in
from mlsysim.registry.calibration.training import calibration_for
from mlsysim.solvers.base import Rule
from mlsysim.solvers.device import DeviceInputs

__all__ = ["RULES", "TrainingInputs"]


class TrainingInputs(DeviceInputs):
    """What a training step depends on: arguments of `DistributedSolver.solve`, and constants."""

    model: TransformerModel
    fleet: Fleet
    batch_size: Value
    tp_size: Value
    pp_size: Value
    microbatch_count: Value
    virtual_stages: Value
    first_stage_layers: Value
    """NaN where all stages share the layers."""
    last_stage_layers: Value
    schedule: Schedule
    cp_size: Value
    cp_kind: ContextExchange
    ulysses_size: Value
    ep_size: Value
    expert_nodes: Value
    """NaN where a token's experts may lie on any node."""
    capacity_factor: Value
    exchange_overlap: Value
    """NaN where the calibration's applies."""
    tensor_overlap: Value
    """NaN where the calibration's applies."""
    zero_stage: Value
    shard_size: Value
    """NaN where all replicas share one set of shards."""
    reshard_after_forward: Value
    sequence_parallel: Value
    recompute: Recompute
    recompute_layers: Value
    """NaN where all layers recompute."""
    optimizer: Optimizer
    lora_rank: Value
    """NaN where all parameters are trained."""
    attention: AttentionKernel
    loss: Loss
    usable_memory: Value
    gradient_precision: Precision = default(lambda i: i.precision)
    gradients_stated: Value = default(lambda i: float(i.gives("gradient_precision")))
    """1 where the format of gradients is given, 0 where the software decides."""
    gradient_compression: Value
    gradient_overlap: Value
    """NaN where the calibration's apply."""
    seq_len: Value = default(lambda i: i.model.seq_len)
    efficiency: Value
    calibration: Calibration = default(lambda i: calibration_for(i.device))
    dispatch_precision: Precision = default(lambda i: i.wide_precision)

    @property
    def device(self) -> Accelerator:
        """The device that the fleet is made of."""
        return self.fleet.node.accelerator

    @property
    def devices(self) -> Value:
        """Devices of the fleet."""
        return self.fleet.count * self.fleet.node.accelerators_per_node

    @property
    def frozen(self) -> Value:
        """1 if only adapters are trained, else 0."""
        return where(self.lora_rank == self.lora_rank, 1, 0)

    @property
    def adapter_rank(self) -> Value:
        """Rank of the adapters; 0 without any."""
        return first_known(self.lora_rank, 0)

    @property
    def swap_size(self) -> Value:
        """Devices that swap positions for heads: all that share a sequence, some, or one."""
        return where(self.cp_kind.by_heads > 0, self.cp_size, self.ulysses_size)

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
        """Time of attention's backward pass over that of its forward pass."""
        slower = where(self.attention.fused > 0, self.calibration.machine.attention_backward, 1)
        return self.attention.backward / slower

    @derived
    def cast_bytes(self) -> Value:
        """Memory traffic per element that is converted to a narrow format."""
        return self.calibration.software.cast(self.precision.name)

    @derived
    def scatter_bytes(self) -> Value:
        """Bytes per gradient that is scattered layer by layer.

        Where no format is stated, software may sum gradients of 16 bits in a wider one.
        """
        own = self.gradient_precision.training_bytes
        wider = where(self.precision.bits <= 16, self.calibration.software.gradient_scatters, 1)
        return where(self.gradients_stated > 0, own, wider * own)

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


def _model_parallel(i: TrainingInputs) -> Value:
    return i.tp_size * i.pp_size * i.cp_size


def _stage_layers_given(i: TrainingInputs) -> Value:
    """Return how many of the pipeline's ends have their layers stated."""
    ends = (i.first_stage_layers, i.last_stage_layers)
    return where(ends[0] == ends[0], 1, 0) + where(ends[1] == ends[1], 1, 0)


def _layers_left(i: TrainingInputs) -> Value:
    """Return the layers for the stages between."""
    return (
        i.model.layers - first_known(i.first_stage_layers, 0) - first_known(i.last_stage_layers, 0)
    )


def _replicas(i: TrainingInputs) -> Value:
    return i.devices // (i.tp_size * i.pp_size)


def _shard_size(i: TrainingInputs) -> Value:
    return first_known(i.shard_size, 1)


def _divides_either_way(a: Value, b: Value) -> Value:
    return (a % b == 0) | (b % a == 0)


def _expert_nodes(i: TrainingInputs) -> Value:
    return i.ep_size / gcd(i.ep_size, i.fleet.node.accelerators_per_node)


def _sizes(i: TrainingInputs) -> str:
    names = ["tp_size", "pp_size"] + ["cp_size"] * (i.cp_size > 1)
    product = " x ".join(str(getattr(i, name)) for name in names)
    return f"{' x '.join(names)} = {product} = {_model_parallel(i)}"


RULES: tuple[Rule[TrainingInputs], ...] = (
    Rule(
        "tp_size",
        lambda i: i.devices % _model_parallel(i) == 0,
        lambda i: (
            f"{_sizes(i)} does not divide the fleet's {i.devices} devices: choose sizes whose "
            "product divides it"
        ),
        ParallelismError,
    ),
    Rule(
        "cp_size",
        lambda i: i.seq_len % i.cp_size == 0,
        lambda i: (
            f"cp_size = {i.cp_size} does not divide the {i.seq_len} tokens of a sequence: "
            "choose a divisor"
        ),
        ParallelismError,
    ),
    Rule(
        "ulysses_size",
        lambda i: (
            (i.cp_size % i.ulysses_size == 0)
            & ((i.cp_kind.by_heads == 0) | (i.ulysses_size == 1) | (i.ulysses_size == i.cp_size))
        ),
        lambda i: (
            f"ulysses_size = {i.ulysses_size} does not go with cp_size = {i.cp_size} and cp_kind = "
            f"{i.cp_kind.name!r}: choose a divisor of cp_size, and leave it at 1 where all devices "
            "swap heads"
        ),
        ParallelismError,
    ),
    Rule(
        "cp_kind",
        lambda i: (i.model.split_heads % (i.tp_size * i.swap_size) == 0) | (i.swap_size == 1),
        lambda i: (
            f"tp_size x devices that swap heads = {i.tp_size} x {i.swap_size} does not divide the "
            f"model's {i.model.split_heads} attention heads: choose a smaller ulysses_size, or "
            "cp_kind = 'ring' or 'all_gather'"
        ),
        ParallelismError,
    ),
    Rule(
        "lora_rank",
        lambda i: i.adapter_rank <= i.model.hidden_dim,
        lambda i: (
            f"lora_rank = {i.lora_rank} is more than hidden_dim = {i.model.hidden_dim}, the rank "
            "that the matrices themselves have: choose a smaller one, such as 16"
        ),
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
    Rule(
        "pp_size",
        # The embedding and the output may be chunks of their own in an interleaved pipeline.
        lambda i: i.model.layers + 2 * (i.virtual_stages > 1) >= i.pp_size * i.virtual_stages,
        lambda i: (
            f"pp_size x virtual_stages = {i.pp_size} x {i.virtual_stages} is more than the "
            f"model's {i.model.layers} layers: choose at most one chunk per layer"
        ),
        ParallelismError,
    ),
    Rule(
        "first_stage_layers",
        # All layers are on a stage, and each stage between has one per chunk.
        lambda i: (
            (_stage_layers_given(i) == 0)
            | where(
                i.pp_size > _stage_layers_given(i),
                _layers_left(i) >= (i.pp_size - _stage_layers_given(i)) * i.virtual_stages,
                (_layers_left(i) == 0) & (i.pp_size > 1),
            )
        ),
        lambda i: (
            f"first_stage_layers = {i.first_stage_layers} and last_stage_layers = "
            f"{i.last_stage_layers} do not lay out the model's {i.model.layers} layers on "
            f"pp_size = {i.pp_size} stages: leave each other stage at least virtual_stages = "
            f"{i.virtual_stages} layers, or leave both out"
        ),
        ParallelismError,
    ),
    Rule(
        "virtual_stages",
        lambda i: (i.virtual_stages == 1) | (i.pp_size > 1),
        lambda i: (
            f"virtual_stages = {i.virtual_stages} needs a pipeline, but pp_size = 1: raise "
            "pp_size or leave virtual_stages at 1"
        ),
        ParallelismError,
    ),
    Rule(
        "schedule",
        lambda i: (
            (i.virtual_stages == 1)
            | (i.schedule.all_forward_first + i.schedule.split_backward == 0)
        ),
        lambda i: (
            f"schedule = {i.schedule.name!r} has no interleaved form, but virtual_stages = "
            f"{i.virtual_stages}: choose schedule = '1f1b', or virtual_stages = 1"
        ),
        ParallelismError,
    ),
    Rule(
        "schedule",
        lambda i: (
            (i.schedule.bidirectional == 0)
            | (
                (i.pp_size % 2 == 0)
                & (i.microbatch_count % 2 == 0)
                & (i.microbatch_count >= 2 * i.pp_size)
            )
        ),
        lambda i: (
            f"schedule = 'dualpipe' needs an even pp_size (now {i.pp_size}) and an even "
            f"microbatch_count of at least twice that (now {i.microbatch_count}): change them, or "
            "choose schedule = '1f1b'"
        ),
        ParallelismError,
    ),
    Rule(
        "microbatch_count",
        lambda i: (i.virtual_stages == 1) | (i.microbatch_count % i.pp_size == 0),
        lambda i: (
            f"microbatch_count = {i.microbatch_count} is not a multiple of pp_size = "
            f"{i.pp_size}, which the interleaved schedule needs: choose a multiple, or "
            "virtual_stages = 1"
        ),
        ParallelismError,
    ),
    Rule(
        "shard_size",
        lambda i: (
            (i.shard_size != i.shard_size)
            | (
                (i.zero_stage >= 1)
                & (_replicas(i) % _shard_size(i) == 0)
                & _divides_either_way(_shard_size(i) * i.tp_size, i.ep_size)
            )
        ),
        lambda i: (
            f"shard_size = {i.shard_size} needs a zero_stage of 1 or more, and must divide the "
            f"{_replicas(i)} devices with the same parameters; times tp_size it must divide "
            f"ep_size = {i.ep_size} or be a multiple of it"
        ),
        ParallelismError,
    ),
    Rule(
        "recompute",
        lambda i: (
            (i.recompute.latent_share == 0)
            | any(isinstance(group.attention, LatentAttention) for group in i.model.groups)
        ),
        lambda i: (
            f"recompute = {i.recompute.name!r} repeats products of latent attention, which "
            f"{i.model.name} does not have: leave out mla_up"
        ),
    ),
    Rule(
        "ep_size",
        lambda i: i.model.experts % i.ep_size == 0,
        lambda i: (
            f"ep_size = {i.ep_size} does not divide the model's {i.model.experts} expert(s) a "
            "layer: choose a divisor of the number of experts (1 for a dense model)"
        ),
        ParallelismError,
    ),
    Rule(
        "ep_size",
        lambda i: (i.ep_size == 1) | (i.devices % (i.pp_size * i.ep_size) == 0),
        lambda i: (
            f"ep_size = {i.ep_size} does not divide the {i.devices // i.pp_size} devices "
            "of a pipeline stage: choose a divisor"
        ),
        ParallelismError,
    ),
    Rule(
        "expert_nodes",
        lambda i: (
            i.model.experts_per_token * _expert_nodes(i)
            <= first_known(i.expert_nodes, _expert_nodes(i)) * i.model.experts
        ),
        lambda i: (
            f"expert_nodes = {i.expert_nodes} nodes have fewer than the "
            f"{i.model.experts_per_token} experts that a token visits, of {i.model.experts} on "
            f"{_expert_nodes(i):g} nodes: raise expert_nodes"
        ),
        ParallelismError,
    ),
)
