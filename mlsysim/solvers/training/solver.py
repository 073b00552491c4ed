"""How long does a training step take on a fleet, and where does the time go?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Unpack

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.types import Fleet, TransformerModel
from mlsysim.solvers.arguments import Noun, Share, Whole
from mlsysim.solvers.base import Model, Solver, check_one_model
from mlsysim.solvers.training.inputs import TrainingArguments, TrainingInputs
from mlsysim.solvers.training.operators import operator_step
from mlsysim.solvers.training.reasons import (
    fitted_elsewhere,
    outside,
    reasons,
    unlike_own_runs,
)
from mlsysim.solvers.training.result import DeviceStep, DistributedResult, Parallelism
from mlsysim.solvers.training.rules import RULES
from mlsysim.solvers.training.textbook import textbook_step

TRAINING_PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4")


class DistributedSolver(Solver[TrainingInputs, DistributedResult]):
    """How long does a training step take on a fleet, and where does the time go?

    Models tensor, context, expert, data and pipeline parallelism, placed in this order from the
    inside out. By default every operator of a layer is timed: matrix products, attention,
    element-wise traffic, kernel launches, collectives and their overlap. With `efficiency`,
    arithmetic runs at that share of the peak rate and nothing overlaps, as in textbooks.
    """

    inputs = TrainingInputs
    rules = RULES
    result = DistributedResult

    @classmethod
    def solve(
        cls,
        *,
        model: Annotated[TransformerModel, Noun(hint="Models.Llama3_70B")],
        fleet: Annotated[Fleet, Noun(hint="Systems.Clusters.Research_256")],
        batch_size: Annotated[int, Whole()],
        usable_memory: Annotated[float, Share()] = 0.92,
        **job: Unpack[TrainingArguments[int, str, bool]],
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
        usable_memory
            Share of a device's memory that a step may use. The rest is for the driver's context,
            buffers of collectives and libraries, and fragmentation.

        Returns
        -------
        DistributedResult
            Times, memory per device, utilization, power and energy, and whether the step fits.

        Raises
        ------
        ConfigError
            If an argument is out of range.
        ParallelismError
            If the sizes do not tile the fleet or do not divide the model.

        Notes
        -----
        A configuration that does not fit in memory, or a batch that does not divide into whole
        microbatches, still returns its times, with `feasible` False and the `reasons`.

        Arguments that cannot have an effect are rejected, such as `recompute_layers` without
        recomputation. A size of 1 is a group of one device, which exchanges nothing. Arguments that
        describe how a group works (`cp_kind`, `sequence_parallel`, `zero_stage`, `schedule`,
        `tensor_overlap` and the like) are accepted with it, so a sweep over a size may begin at 1.

        Every layer takes the time of the mean layer, so a stage of slow layers really takes longer
        than computed. For DeepSeek-V3, in which 58 of 61 layers have experts, the factor is at most
        61/58, or 5%. Memory is computed for the layers that a stage really has.

        The time of a mixture of experts that spans nodes depends on how its software exchanges
        tokens, and the band holds for that software only. The default is Megatron-Core with none of
        its options: exchanges do not overlap with computation, and a token is sent to each of its
        experts separately, in the format of the residual stream. For DeepSeek-V3 on 2,048 H800,
        this nearly halves the throughput compared with `Calibrations.H800_HAI_LLM`, and the band
        excludes what DeepSeek published. The result's `calibration` names the features that are
        off. Pass the calibration of your software, or set `exchange_overlap`, `expert_nodes` and
        `dispatch_precision`.

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
        return cls._answer(locals(), job)

    @classmethod
    def check(cls, inputs: TrainingInputs) -> None:
        """Reject formats that cannot train, and arguments that have no effect."""
        precision = inputs.precision.name
        if precision not in TRAINING_PRECISIONS:
            raise ConfigError(
                f"precision = {shown(precision)} cannot train: choose one of "
                f"{', '.join(TRAINING_PRECISIONS)}",
                argument="precision",
            )
        for name in ("gradient_overlap", "exchange_overlap", "tensor_overlap", "pipeline_overlap"):
            if inputs.efficiency is not None and getattr(inputs, name) is not None:
                raise ConfigError(
                    f"{name} cannot be combined with efficiency, because then nothing overlaps: "
                    "leave one of the two out",
                    argument=name,
                )
        check_one_model(inputs)
        for name in ("expert_nodes", "dispatch_precision", "exchange_overlap"):
            given = getattr(inputs, name) if inputs.gives(name) else None
            if given is not None and not inputs.model.routed_layers:
                raise ConfigError(
                    f"{name} = {getattr(given, 'name', given)} has nothing to act on, because "
                    f"{inputs.model.name} has no experts: leave it out, or choose a mixture of "
                    "experts",
                    argument=name,
                )
        if not inputs.reshard_after_forward and inputs.zero_stage < 3:
            raise ConfigError(
                "reshard_after_forward = False has no effect at zero_stage = "
                f"{inputs.zero_stage}, because weights are not sharded: choose zero_stage = 3, or "
                "leave it out",
                argument="reshard_after_forward",
            )
        inputs.device.compute.rate(precision)

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> TrainingInputs:
        """Check every argument, and that the arguments are consistent."""
        inputs = super().admit(given)
        constants = inputs.calibration.in_format(inputs.precision.name)
        # The families' bands do not cover attention with limited reach or with states, either.
        strange = fitted_elsewhere(inputs) or not inputs.model.plain_attention
        if strange or unlike_own_runs(inputs):
            constants = replace(constants, basis="unseen")
        return inputs.but(calibration=constants)

    @classmethod
    def model(cls, inputs: TrainingInputs) -> Model[TrainingInputs]:
        """Choose the operator-level model, or the textbook model if an efficiency is given."""
        return operator_step if inputs.efficiency is None else textbook_step

    @classmethod
    def rest(
        cls, values: Mapping[str, Any], inputs: TrainingInputs
    ) -> dict[str, Callable[[], Any]]:
        """Add the nested parts and the reasons."""
        return {
            "calibration": lambda: _basis(values, inputs),
            "band": lambda: _band(values, inputs),
            "power_calibration": lambda: inputs.power_calibration.name,
            "reasons": lambda: tuple(reasons(values, inputs)),
            "outside": lambda: tuple(outside(inputs)),
            "parallelism": lambda: Parallelism(
                dp=values["dp_size"],
                tp=inputs.tp_size,
                pp=inputs.pp_size,
                cp=inputs.cp_size,
                ep=inputs.ep_size,
            ),
            "node_performance": lambda: DeviceStep(
                latency=values["compute_latency"],
                flops=values["device_flops"],
                memory=values["memory"],
            ),
        }


def _band(values: Mapping[str, Any], inputs: TrainingInputs) -> str:
    if not values.get("step_latency_low"):
        return ""
    return "family" if inputs.calibration.familiar and inputs.covered else "unseen"


def _basis(values: Mapping[str, Any], inputs: TrainingInputs) -> str:
    if inputs.efficiency is not None:
        return "constant efficiency"
    notes = _switched_off(inputs)
    if values["step_latency_low"] is None:
        notes.insert(0, "no run to compare with")
    name = inputs.calibration.name
    return f"{name} ({'; '.join(notes)})" if notes else name


def _switched_off(i: TrainingInputs) -> list[str]:
    """Return features that speed up exchanges between nodes, and that the plan leaves out."""
    software, notes = i.calibration.software, list[str]()
    if i.model.moe_layers == 0 or i.ep_size <= i.fleet.node.accelerators_per_node:
        return notes
    if (software.exchange_overlap if i.exchange_overlap is None else i.exchange_overlap) == 0:
        notes.append("exchanges with experts do not overlap")
    if i.expert_nodes is None and software.copies_per_node == 0:
        notes.append("nodes receive a copy of a token for each of its experts")
    return notes
