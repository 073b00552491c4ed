"""How long does a training step take on a fleet, and what does the fleet lose?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from mlsysim.core.errors import ConfigError, ParallelismError
from mlsysim.core.types import RECOMPUTE, Fleet, TransformerModel
from mlsysim.core.units import format_number
from mlsysim.registry.calibration import CONVENTIONS, TEXTBOOK_EFFICIENCY
from mlsysim.solvers.arguments import Argument, Choice, Noun, PrecisionName, Share, Switch, Whole
from mlsysim.solvers.base import Plan, Rule, Solver
from mlsysim.solvers.kernels.training_step import training_step
from mlsysim.solvers.results import DeviceStep, DistributedResult, Parallelism

__all__ = ["DistributedSolver"]

TRAINING_PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4")


def _devices(i: Mapping[str, Any]) -> Any:
    return i["nodes"] * i["devices_per_node"]


_RULES = (
    Rule(
        "tp_size",
        lambda i: _devices(i) % (i["tp_size"] * i["pp_size"]) == 0,
        lambda i: (
            f"tp_size x pp_size = {i['tp_size']} x {i['pp_size']} = "
            f"{i['tp_size'] * i['pp_size']} does not divide the fleet's {_devices(i)} devices: "
            "choose sizes whose product divides it"
        ),
        ParallelismError,
    ),
    Rule(
        "tp_size",
        lambda i: i["heads"] % i["tp_size"] == 0,
        lambda i: (
            f"tp_size = {i['tp_size']} does not divide the model's {i['heads']} attention heads: "
            "choose a divisor of the number of heads"
        ),
        ParallelismError,
    ),
    Rule(
        "pp_size",
        lambda i: i["layers"] >= i["pp_size"] * i["virtual_stages"],
        lambda i: (
            f"pp_size x virtual_stages = {i['pp_size']} x {i['virtual_stages']} is more than the "
            f"model's {i['layers']} layers: choose at most one chunk per layer"
        ),
        ParallelismError,
    ),
    Rule(
        "virtual_stages",
        lambda i: (i["virtual_stages"] == 1) | (i["pp_size"] > 1),
        lambda i: (
            f"virtual_stages = {i['virtual_stages']} needs a pipeline, but pp_size = 1: raise "
            "pp_size or leave virtual_stages at 1"
        ),
        ParallelismError,
    ),
    Rule(
        "microbatch_count",
        lambda i: (i["virtual_stages"] == 1) | (i["microbatch_count"] % i["pp_size"] == 0),
        lambda i: (
            f"microbatch_count = {i['microbatch_count']} is not a multiple of pp_size = "
            f"{i['pp_size']}, which the interleaved schedule needs: choose a multiple, or "
            "virtual_stages = 1"
        ),
        ParallelismError,
    ),
)

_SHAPE = ("layers", "hidden_dim", "heads", "kv_heads", "head_dim", "ffn_dim", "mlp_matrices")
_ARGUMENTS = ("batch_size", "tp_size", "pp_size", "microbatch_count", "virtual_stages")
_COUNTED = ("flops_per_mac", "mask_bytes", "moment_bytes", "master_bytes")
_RECOMPUTE = ("matrix_share", "score_share", "kept_scores", "all_reduces_per_layer")
_PLAN = Plan(
    training_step,
    {
        **{name: f"model.{name}" for name in (*_SHAPE, "vocab_size", "attended_fraction")},
        **{name: name for name in (*_ARGUMENTS, "sequence_parallel")},
        **{name: f"conventions.{name}" for name in _COUNTED},
        **{name: f"recompute.{name}" for name in _RECOMPUTE},
        "parameters": "model.parameters",
        "seq_len": ("seq_len", "model.seq_len"),
        "efficiency": ("efficiency", "textbook.value"),
        "bytes_per_element": "precision.bytes_per_element",
        "nodes": "fleet.count",
        "devices_per_node": "fleet.node.accelerators_per_node",
        "nics_per_node": "fleet.node.nics_per_node",
        "peak_rate": "fleet.node.accelerator.compute.{precision}",
        "memory_capacity": "fleet.node.accelerator.memory.capacity",
        "local_bandwidth": "fleet.node.scale_up.bandwidth",
        "local_latency": "fleet.node.scale_up.latency",
        "nic_bandwidth": "fleet.fabric.bandwidth",
        "nic_latency": "fleet.fabric.latency",
    },
)


class DistributedSolver(Solver[DistributedResult]):
    """How long does a training step take on a fleet, and what does the fleet lose?

    Data, tensor and pipeline parallelism, placed in this order from the inside out: tensor,
    data, pipeline. Arithmetic runs at a constant share of the peak rate; collectives are rings,
    hierarchical where a group spans nodes; the pipeline runs 1F1B; nothing overlaps.
    """

    parameters: ClassVar[Mapping[str, Argument]] = {
        "model": Noun(kinds=(TransformerModel,), hint="Models.Llama3_70B"),
        "fleet": Noun(kinds=(Fleet,), hint="Systems.Clusters.Research_256"),
        "batch_size": Whole(),
        "precision": PrecisionName(),
        "tp_size": Whole(),
        "pp_size": Whole(),
        "microbatch_count": Whole(),
        "virtual_stages": Whole(),
        "sequence_parallel": Switch(),
        "recompute": Choice(options=RECOMPUTE),
        "seq_len": Whole(optional=True),
        "efficiency": Share(optional=True),
    }
    rules = _RULES
    constants: ClassVar[Mapping[str, Any]] = {
        "conventions": CONVENTIONS,
        "textbook": TEXTBOOK_EFFICIENCY,
    }
    result = DistributedResult

    @classmethod
    def solve(
        cls,
        *,
        model: TransformerModel,
        fleet: Fleet,
        batch_size: int,
        precision: str = "fp16",
        tp_size: int = 1,
        pp_size: int = 1,
        microbatch_count: int = 1,
        virtual_stages: int = 1,
        sequence_parallel: bool = False,
        recompute: str = "selective",
        seq_len: int | None = None,
        efficiency: float | None = None,
    ) -> DistributedResult:
        """Time one training step.

        Parameters
        ----------
        model
            A transformer.
        fleet
            The nodes and the network between them.
        batch_size
            Sequences in the global batch.
        precision
            Number format of arithmetic, weights, gradients and activations.
        tp_size
            Devices that share each layer (tensor parallelism).
        pp_size
            Pipeline stages.
        microbatch_count
            Microbatches that each replica's share of the batch is cut into.
        virtual_stages
            Model chunks per stage; above 1 the schedule is interleaved.
        sequence_parallel
            Whether tensor-parallel ranks split norms and dropouts as well.
        recompute
            Activations that are computed again rather than kept: ``"none"``, ``"selective"``
            (attention scores, as fused attention does) or ``"full"`` (whole layers).
        seq_len
            Tokens per sequence; `None` takes the model's training length.
        efficiency
            Share of the dense peak rate that arithmetic reaches; `None` takes the textbook
            value, one half.

        Returns
        -------
        DistributedResult
            Times, memory per device, utilization, and whether the step can run.

        Raises
        ------
        ConfigError
            If an argument is out of range.
        ParallelismError
            If the sizes do not tile the fleet or do not divide the model.

        Notes
        -----
        A configuration that does not fit the memory, or whose batch does not divide into whole
        microbatches, still returns its times, with `feasible` False and the `reasons`.

        Examples
        --------
        >>> from mlsysim import DistributedSolver, Models, Systems
        >>> r = DistributedSolver.solve(
        ...     model=Models.Llama3_70B,
        ...     fleet=Systems.Clusters.Research_256,
        ...     batch_size=256,
        ...     seq_len=2048,
        ...     tp_size=8,
        ...     pp_size=4,
        ...     microbatch_count=16,
        ... )
        >>> r.parallelism.dp
        8
        >>> r.feasible
        True
        """
        return cls._run(
            model=model,
            fleet=fleet,
            batch_size=batch_size,
            precision=precision,
            tp_size=tp_size,
            pp_size=pp_size,
            microbatch_count=microbatch_count,
            virtual_stages=virtual_stages,
            sequence_parallel=sequence_parallel,
            recompute=recompute,
            seq_len=seq_len,
            efficiency=efficiency,
        )

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check every argument, and that they agree with each other."""
        arguments = super().admit(given)
        precision = arguments["precision"].name
        if precision not in TRAINING_PRECISIONS:
            raise ConfigError(
                f"precision = {precision!r} cannot train: choose one of "
                f"{', '.join(TRAINING_PRECISIONS)}",
                argument="precision",
            )
        arguments["fleet"].node.accelerator.compute.rate(precision)
        return arguments

    @classmethod
    def plan(cls, arguments: Mapping[str, Any]) -> Plan:
        """There is one kernel for all."""
        return _PLAN

    @classmethod
    def finish(cls, values: dict[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Add the nested parts and the reasons."""
        values["dp_size"] = int(values["dp_size"])
        return {
            **values,
            "reasons": tuple(_reasons(values, arguments)),
            "parallelism": Parallelism(
                dp=values["dp_size"], tp=arguments["tp_size"], pp=arguments["pp_size"]
            ),
            "node_performance": DeviceStep(
                latency=values["compute_latency"],
                flops=values["device_flops"],
                memory=values["memory"],
            ),
        }


def _reasons(values: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    reasons = []
    if not values["fits_memory"]:
        need, have = values["memory"], values["memory_capacity"]
        reasons.append(
            f"memory: a device needs {format_number(need)} and has {format_number(have)}, "
            f"{format_number(need - have)} too little; {_memory_advice(values, arguments)}"
        )
    if not values["whole_microbatches"]:
        replicas, count = values["dp_size"], arguments["microbatch_count"]
        reasons.append(
            f"microbatches: batch_size = {arguments['batch_size']} over {replicas} replicas and "
            f"{count} microbatches leaves {format_number(values['microbatch_size'])} of a "
            f"sequence each; make batch_size a multiple of {replicas * count}"
        )
    return reasons


def _memory_advice(values: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Say what would make the step fit: less state per device, or fewer activations."""
    states = values["memory"] - values["activation_memory"]
    split = arguments["tp_size"] * arguments["pp_size"]
    share = (states / values["memory_capacity"]).to("").magnitude
    if share > 1:
        return (
            "weights, gradients and optimizer alone need tp_size x pp_size above "
            f"{split * share:.1f} (now {split})"
        )
    return (
        "the states fit, the activations do not: more microbatches, sequence_parallel=True or "
        'recompute="full" make them smaller'
    )
