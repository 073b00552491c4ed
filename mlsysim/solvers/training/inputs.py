"""What a training step depends on, and which sizes make no sense."""

from __future__ import annotations

from mlsysim.core.errors import ParallelismError
from mlsysim.core.fields import derived
from mlsysim.core.inputs import Inputs, default
from mlsysim.core.numeric import Value, first_known, where
from mlsysim.core.types import (
    Accelerator,
    AttentionKernel,
    Calibration,
    ContextExchange,
    Fleet,
    Loss,
    PowerCalibration,
    Precision,
    Recompute,
    Schedule,
    TransformerModel,
    find_precision,
)
from mlsysim.registry.calibration.power import power_calibration_for
from mlsysim.registry.calibration.training import calibration_for
from mlsysim.registry.conventions import CONVENTIONS, Conventions
from mlsysim.registry.operations import POWER_DRAW, PowerDraw
from mlsysim.solvers.base import Rule

__all__ = ["RULES", "TrainingInputs"]


def _fitted(i: TrainingInputs) -> Calibration:
    """Return the constants fitted for the device, and for the software that the plan tells of."""
    return calibration_for(
        i.device,
        fused=i.attention.name == "fused",
        sharded=i.zero_stage >= 2,
        narrow=i.precision.bits < 16,
    )


class TrainingInputs(Inputs):
    """What a training step depends on: arguments of `DistributedSolver.solve`, and constants."""

    model: TransformerModel
    fleet: Fleet
    batch_size: Value
    precision: Precision
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
    zero_stage: Value
    sequence_parallel: Value
    recompute: Recompute
    attention: AttentionKernel
    loss: Loss
    usable_memory: Value
    gradient_precision: Precision = default(lambda i: i.precision)
    gradient_compression: Value
    gradient_overlap: Value
    """NaN where the calibration's apply."""
    seq_len: Value = default(lambda i: i.model.seq_len)
    efficiency: Value
    calibration: Calibration = default(_fitted)
    power_calibration: PowerCalibration = default(lambda i: power_calibration_for(i.device))
    conventions: Conventions = default(lambda i: CONVENTIONS)
    power_draw: PowerDraw = default(lambda i: POWER_DRAW)
    wide_precision: Precision = default(
        lambda i: find_precision(i.device.compute.wide_precision(i.precision.name))
    )
    """Format of what narrow products leave wide: attention and logits."""

    @property
    def device(self) -> Accelerator:
        """The device of which the fleet has many."""
        return self.fleet.node.accelerator

    @property
    def devices(self) -> Value:
        """Devices of the fleet."""
        return self.fleet.count * self.fleet.node.accelerators_per_node

    @property
    def swap_size(self) -> Value:
        """Devices that swap positions for heads: all that share a sequence, some, or one."""
        return where(self.cp_kind.by_heads > 0, self.cp_size, self.ulysses_size)

    @derived
    def peak_rate(self) -> Value:
        """Dense peak rate of a device, in the format of the products."""
        return self.device.compute.rate(self.precision.name)

    @derived
    def wide_peak_rate(self) -> Value:
        """Dense peak rate of a device, in the format of attention and logits."""
        return self.device.compute.rate(self.wide_precision.name)

    @derived
    def gemm_efficiency(self) -> Value:
        """Share of the peak rate that products reach."""
        return self.calibration.gemm(self.precision.name)

    @derived
    def wide_gemm_efficiency(self) -> Value:
        """Share of the peak rate that products in the wide format reach."""
        return self.calibration.gemm(self.wide_precision.name)

    @derived
    def cast_bytes(self) -> Value:
        """Memory traffic per element that is converted to a narrow format."""
        return self.calibration.cast(self.precision.name)

    @derived
    def hidden_bytes(self) -> Value:
        """Memory traffic of element-wise operators per element of the residual stream."""
        return self.calibration.traffic(self.calibration.hidden_bytes, self.precision.name)

    @derived
    def ffn_bytes(self) -> Value:
        """The same per element of the feed-forward block's inner width."""
        return self.calibration.traffic(self.calibration.ffn_bytes, self.precision.name)

    @derived
    def score_bytes(self) -> Value:
        """Memory traffic per attention score that is not fused."""
        return self.calibration.traffic(self.calibration.score_bytes, self.precision.name)

    @derived
    def routing_bytes(self) -> Value:
        """Memory traffic per element that is routed to experts."""
        return self.calibration.traffic(self.calibration.routing_bytes, self.precision.name)


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
        lambda i: (i.model.heads % (i.tp_size * i.swap_size) == 0) | (i.swap_size == 1),
        lambda i: (
            f"tp_size x devices that swap heads = {i.tp_size} x {i.swap_size} does not divide the "
            f"model's {i.model.heads} attention heads: choose a smaller ulysses_size, or cp_kind = "
            "'ring' or 'all_gather'"
        ),
        ParallelismError,
    ),
    Rule(
        "tp_size",
        lambda i: i.model.heads % i.tp_size == 0,
        lambda i: (
            f"tp_size = {i.tp_size} does not divide the model's {i.model.heads} attention heads: "
            "choose a divisor of the number of heads"
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
        lambda i: (i.virtual_stages == 1) | (i.schedule.all_forward_first == 0),
        lambda i: (
            f"schedule = 'gpipe' has no interleaved form, but virtual_stages = "
            f"{i.virtual_stages}: choose schedule = '1f1b', or virtual_stages = 1"
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
)
