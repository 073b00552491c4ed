"""What a training step depends on, and which sizes contradict each other."""

from __future__ import annotations

from mlsysim.core.errors import ParallelismError
from mlsysim.core.fields import derived
from mlsysim.core.inputs import default
from mlsysim.core.numeric import Value
from mlsysim.core.types import (
    Accelerator,
    AttentionKernel,
    Calibration,
    Fleet,
    Precision,
    Recompute,
    Schedule,
    TransformerModel,
)
from mlsysim.registry.calibration.training import calibration_for
from mlsysim.solvers.base import Rule
from mlsysim.solvers.device import DeviceInputs

__all__ = ["RULES", "TrainingInputs"]


def _fitted(i: TrainingInputs) -> Calibration:
    """Return the constants fitted for the device, and for the software that the plan implies."""
    return calibration_for(
        i.device,
        fused=i.attention.name == "fused",
        sharded=i.zero_stage >= 2,
        narrow=i.precision.bits < 16,
    )


class TrainingInputs(DeviceInputs):
    """What a training step depends on: arguments of `DistributedSolver.solve`, and constants."""

    model: TransformerModel
    fleet: Fleet
    batch_size: Value
    tp_size: Value
    pp_size: Value
    microbatch_count: Value
    virtual_stages: Value
    schedule: Schedule
    cp_size: Value
    ep_size: Value
    zero_stage: Value
    sequence_parallel: Value
    recompute: Recompute
    attention: AttentionKernel
    gradient_precision: Precision = default(lambda i: i.precision)
    gradient_compression: Value
    gradient_overlap: Value
    """NaN where the calibration's apply."""
    seq_len: Value = default(lambda i: i.model.seq_len)
    efficiency: Value
    calibration: Calibration = default(_fitted)

    @property
    def device(self) -> Accelerator:
        """The device that the fleet is made of."""
        return self.fleet.node.accelerator

    @property
    def devices(self) -> Value:
        """Devices of the fleet."""
        return self.fleet.count * self.fleet.node.accelerators_per_node

    @derived
    def cast_bytes(self) -> Value:
        """Memory traffic per element that is converted to a narrow format."""
        return self.calibration.cast(self.precision.name)

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
