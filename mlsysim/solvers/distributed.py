"""How long does a training step take on a fleet, and what does the fleet lose?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.types import (
    ATTENTION,
    RECOMPUTE,
    SCHEDULES,
    Calibration,
    Fleet,
    PowerCalibration,
    TransformerModel,
    find_precision,
)
from mlsysim.registry.calibration.power import power_calibration_for
from mlsysim.registry.calibration.training import calibration_for
from mlsysim.registry.conventions import CONVENTIONS
from mlsysim.registry.operations import POWER_DRAW
from mlsysim.solvers.amounts import Factor, Portion
from mlsysim.solvers.arguments import (
    Argument,
    Choice,
    Noun,
    PrecisionName,
    Share,
    Stage,
    Switch,
    Whole,
)
from mlsysim.solvers.base import Plan, Solver
from mlsysim.solvers.results import DeviceStep, DistributedResult, Parallelism
from mlsysim.solvers.training_plans import OPERATORS, RULES, TEXTBOOK
from mlsysim.solvers.training_reasons import reasons

__all__ = ["DistributedSolver"]

TRAINING_PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4")


class DistributedSolver(Solver[DistributedResult]):
    """How long does a training step take on a fleet, and what does the fleet lose?

    Tensor, context, expert, data and pipeline parallelism, placed in this order from the inside
    out. By default every operator of a layer is timed: matrix products, attention, element-wise
    traffic, launches, collectives and what they hide. With `efficiency` given, arithmetic runs at
    that share of the peak rate and nothing overlaps, as in textbooks.
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
        "schedule": Choice(options=SCHEDULES),
        "cp_size": Whole(),
        "ep_size": Whole(),
        "zero_stage": Stage(minimum=0, maximum=3),
        "sequence_parallel": Switch(),
        "recompute": Choice(options=RECOMPUTE),
        "attention": Choice(options=ATTENTION),
        "gradient_precision": PrecisionName(optional=True),
        "gradient_compression": Factor(),
        "gradient_overlap": Portion(optional=True),
        "seq_len": Whole(optional=True),
        "efficiency": Share(optional=True),
        "calibration": Noun(optional=True, kinds=(Calibration,), hint="Calibrations.H100_Megatron"),
        "power_calibration": Noun(
            optional=True, kinds=(PowerCalibration,), hint="PowerCalibrations.Hopper"
        ),
    }
    rules = RULES
    constants: ClassVar[Mapping[str, Any]] = {
        "conventions": CONVENTIONS,
        "power_draw": POWER_DRAW,
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
        schedule: str = "1f1b",
        cp_size: int = 1,
        ep_size: int = 1,
        zero_stage: int = 0,
        sequence_parallel: bool = False,
        recompute: str = "selective",
        attention: str = "fused",
        gradient_precision: str | None = None,
        gradient_compression: float = 1,
        gradient_overlap: float | None = None,
        seq_len: int | None = None,
        efficiency: float | None = None,
        calibration: Calibration | None = None,
        power_calibration: PowerCalibration | None = None,
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
        schedule
            ``"1f1b"`` or ``"gpipe"``: how many microbatches' activations a stage holds.
        cp_size
            Devices that share each sequence (context parallelism).
        ep_size
            Devices over which experts are dealt out (expert parallelism).
        zero_stage
            What the replicas share out among them instead of each holding it: 0 nothing, 1 the
            optimizer's state, 2 gradients too, 3 weights too (ZeRO, FSDP).
        sequence_parallel
            Whether tensor-parallel ranks split norms and dropouts as well.
        recompute
            Activations that are computed again rather than kept: ``"none"``, ``"selective"``
            (attention scores, as fused attention does) or ``"full"`` (whole layers).
        attention
            ``"fused"`` (FlashAttention) or ``"unfused"``.
        gradient_precision
            Format of the gradients; `None` takes `precision`.
        gradient_compression
            Bytes of gradients over bytes that replicas send of them, indices of selected values
            included: 1 sends all, 4 a quarter. Sums stay sums, as in PowerSGD; neither the time
            to compress nor what it does to learning is counted.
        gradient_overlap
            Share of what the replicas exchange that runs under computation, as far as there is
            enough of it: 0 nothing, 1 all. `None` takes the calibration's.
        seq_len
            Tokens per sequence; `None` takes the model's training length.
        efficiency
            Share of the dense peak rate that arithmetic reaches: the textbook's one constant.
            `None` times every operator instead, with a calibration's constants.
        calibration
            Constants for the operators; `None` takes those fitted for the device and for the
            software that the plan tells of: sharded or not, in eight bits or more.
        power_calibration
            Constants of what operations and bytes draw in power; `None` takes those fitted for the
            device's generation.

        Returns
        -------
        DistributedResult
            Times, memory per device, utilization, power and energy, and whether the step can run.

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
            schedule=schedule,
            cp_size=cp_size,
            ep_size=ep_size,
            zero_stage=zero_stage,
            sequence_parallel=sequence_parallel,
            recompute=recompute,
            attention=attention,
            gradient_precision=gradient_precision,
            gradient_compression=gradient_compression,
            gradient_overlap=gradient_overlap,
            seq_len=seq_len,
            efficiency=efficiency,
            calibration=calibration,
            power_calibration=power_calibration,
        )

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check every argument, and that they agree with each other."""
        arguments = super().admit(given)
        precision = arguments["precision"].name
        if precision not in TRAINING_PRECISIONS:
            raise ConfigError(
                f"precision = {shown(precision)} cannot train: choose one of "
                f"{', '.join(TRAINING_PRECISIONS)}",
                argument="precision",
            )
        if arguments["efficiency"] is not None and arguments["gradient_overlap"] is not None:
            raise ConfigError(
                "gradient_overlap has no meaning under an efficiency, where nothing overlaps: "
                "leave one of the two out",
                argument="gradient_overlap",
            )
        accelerator = arguments["fleet"].node.accelerator
        accelerator.compute.rate(precision)
        wide = accelerator.compute.wide_precision(precision)
        arguments["wide_precision"] = find_precision(wide)
        if arguments["power_calibration"] is None:
            arguments["power_calibration"] = power_calibration_for(accelerator)
        if arguments["calibration"] is None:
            arguments["calibration"] = calibration_for(
                accelerator,
                fused=arguments["attention"].name == "fused",
                sharded=arguments["zero_stage"] >= 2,
                narrow=arguments["precision"].bits < 16,
            )
        arguments["calibration"] = arguments["calibration"].in_format(precision)
        return arguments

    @classmethod
    def plan(cls, arguments: Mapping[str, Any]) -> Plan:
        """Choose the operators' kernel, or the textbook's where an efficiency is given."""
        return OPERATORS if arguments["efficiency"] is None else TEXTBOOK

    @classmethod
    def rest(
        cls, values: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> dict[str, Callable[[], Any]]:
        """Add the nested parts and the reasons."""
        return {
            "calibration": lambda: _basis(values, arguments),
            "power_calibration": lambda: arguments["power_calibration"].name,
            "reasons": lambda: tuple(reasons(values, arguments)),
            "parallelism": lambda: Parallelism(
                dp=values["dp_size"],
                **{name: arguments[f"{name}_size"] for name in ("tp", "pp", "cp", "ep")},
            ),
            "node_performance": lambda: DeviceStep(
                latency=values["compute_latency"],
                flops=values["device_flops"],
                memory=values["memory"],
            ),
        }


def _basis(values: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    if arguments["efficiency"] is not None:
        return "constant efficiency"
    name: str = arguments["calibration"].name
    return name if values["step_latency_low"] is not None else f"{name} (no run to compare with)"
