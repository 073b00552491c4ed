"""How long does a training step take on a fleet, and where does the time go?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.types import (
    ATTENTION,
    CP_KINDS,
    LOSSES,
    OPTIMIZERS,
    RECOMPUTE,
    SCHEDULES,
    Calibration,
    Fleet,
    PowerCalibration,
    TransformerModel,
)
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
from mlsysim.solvers.base import Model, Solver, check_one_model
from mlsysim.solvers.training.inputs import TrainingInputs
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
from mlsysim.solvers.work import mixed_layers

__all__ = ["DistributedSolver"]

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
        precision: Annotated[str, PrecisionName()] = "fp16",
        tp_size: Annotated[int, Whole()] = 1,
        pp_size: Annotated[int, Whole()] = 1,
        microbatch_count: Annotated[int, Whole()] = 1,
        virtual_stages: Annotated[int, Whole()] = 1,
        first_stage_layers: Annotated[int | None, Whole()] = None,
        last_stage_layers: Annotated[int | None, Whole()] = None,
        schedule: Annotated[str, Choice(options=SCHEDULES)] = "1f1b",
        cp_size: Annotated[int, Whole()] = 1,
        cp_kind: Annotated[str, Choice(options=CP_KINDS)] = "ring",
        ulysses_size: Annotated[int, Whole()] = 1,
        ep_size: Annotated[int, Whole()] = 1,
        expert_nodes: Annotated[int | None, Whole()] = None,
        dispatch_precision: Annotated[str | None, PrecisionName()] = None,
        capacity_factor: Annotated[float, Factor()] = 1,
        exchange_overlap: Annotated[float | None, Portion()] = None,
        tensor_overlap: Annotated[float | None, Portion()] = None,
        pipeline_overlap: Annotated[float | None, Portion()] = None,
        zero_stage: Annotated[int, Stage(minimum=0, maximum=3)] = 0,
        shard_size: Annotated[int | None, Whole()] = None,
        reshard_after_forward: Annotated[bool, Switch()] = True,
        sequence_parallel: Annotated[bool, Switch()] = False,
        recompute: Annotated[str, Choice(options=RECOMPUTE)] = "selective",
        recompute_layers: Annotated[int | None, Whole()] = None,
        optimizer: Annotated[str, Choice(options=OPTIMIZERS)] = "adamw",
        lora_rank: Annotated[int | None, Whole()] = None,
        attention: Annotated[str, Choice(options=ATTENTION)] = "fused",
        loss: Annotated[str, Choice(options=LOSSES)] = "unfused",
        usable_memory: Annotated[float, Share()] = 0.92,
        gradient_precision: Annotated[str | None, PrecisionName()] = None,
        gradient_compression: Annotated[float, Factor()] = 1,
        gradient_overlap: Annotated[float | None, Portion()] = None,
        seq_len: Annotated[int | None, Whole(unit="token")] = None,
        images: Annotated[int, Whole(minimum=0)] = 0,
        efficiency: Annotated[float | None, Share()] = None,
        calibration: Annotated[
            Calibration | None,
            Noun(
                hint='Calibrations.H100_Megatron, or load_calibration("my_cluster.yaml") for a file'
            ),
        ] = None,
        power_calibration: Annotated[
            PowerCalibration | None, Noun(hint="PowerCalibrations.Hopper")
        ] = None,
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
            Number format of arithmetic, weights, gradients and activations. With less than 16 bits
            it applies to matrix products and to the inputs that they keep for the backward pass, as
            in Transformer Engine; everything else has 16 bits.
        tp_size
            Devices that share each layer (tensor parallelism).
        pp_size
            Pipeline stages.
        microbatch_count
            Microbatches into which each replica's share of the batch is divided.
        virtual_stages
            Model chunks per stage; above 1 the schedule is interleaved.
        first_stage_layers
            Layers of the first pipeline stage; stages without a stated number share the rest.
            `None` divides all layers evenly. If they do not divide, the last stage has fewer,
            because it also has the output projection, and then the first stage. A stated number
            must be a multiple of `virtual_stages`.
        last_stage_layers
            Layers of the last pipeline stage, likewise.
        schedule
            ``"1f1b"``, ``"gpipe"`` (holds all microbatches' activations), ``"zb-h1"`` (gradients of
            weights fill the bubble) or ``"dualpipe"`` (microbatches enter at both ends, so each
            device holds two stages).
        cp_size
            Devices that share each sequence (context parallelism).
        cp_kind
            How these devices attend to whole sequences: ``"ring"`` (keys and values travel from
            device to device during attention), ``"all_gather"`` (keys and values are gathered
            first) or ``"ulysses"`` (positions are swapped for heads). Positions are distributed so
            that causal attention is balanced (zigzag).
        ulysses_size
            Neighboring devices among the `cp_size` that swap positions for heads, before keys and
            values are exchanged between such groups by `cp_kind`; 1 means none.
        ep_size
            Devices over which experts are distributed (expert parallelism).
        expert_nodes
            Most nodes to which a token is sent, once each; devices there forward it to its experts
            (node-limited routing). `None` sends copies as in the calibration's software; where
            that sends a token to each node once, the groups of the model's router set the limit.
            This argument and the next three are only for models with
            experts.
        dispatch_precision
            Format of tokens on the way to experts; results come back in at least 16 bits. `None`
            takes that of the residual stream.
        capacity_factor
            Rows that each expert computes, divided by its even share of the tokens. In GShard and
            Switch this is the capacity of an expert: it accepts no more tokens and is padded to
            that many, so the factor also applies on a single device (`ep_size=1`). For software
            that does not pad, give the load of the busiest expert device divided by the mean, which
            is 1 with `ep_size=1`.
        exchange_overlap
            Share of the expert exchanges that overlaps with computation, if there is enough
            computation. `None` takes the calibration's.
        tensor_overlap
            Share of a tensor-parallel group's collectives that overlaps with matrix products, if
            there are enough of them (asynchronous tensor parallelism). `None` takes the
            calibration's value within a node, and 0 for groups that span nodes.
        pipeline_overlap
            Share of the transfers between pipeline stages that overlaps with computation, if there
            is enough of it. `None` means 0, as for 1F1B: with at most `pp_size` microbatches in
            flight, a stage waits for transfers even if they are asynchronous. GPipe, interleaved
            stages and split backward passes can hide most of them.
        zero_stage
            What is sharded over the replicas (ZeRO, FSDP): 0 nothing, 1 the optimizer's state, 2
            also gradients, 3 also weights.
        shard_size
            Neighboring devices over which states are sharded; gradients are summed between such
            groups once per step (hybrid sharding, HSDP). `None` takes all devices with the same
            parameters, including those that share sequences.
        reshard_after_forward
            Whether layers with sharded weights drop them after the forward pass and gather them
            again for the backward pass, as FSDP does by default. False needs `zero_stage=3`.
        sequence_parallel
            Whether tensor-parallel ranks split norms and dropouts as well.
        recompute
            Activations that are recomputed rather than kept: ``"none"``, ``"selective"``
            (attention scores, as fused attention does), ``"norms"``, ``"swiglu"`` (nonlinearities
            of the feed-forward blocks), ``"mla_up"`` (heads of latent attention), any combination
            of these four, as in ``"norms+swiglu"``, or ``"full"`` (whole layers).
        recompute_layers
            Layers of each stage to which `recompute` applies; the others keep everything. It cannot
            exceed the layers of the longest stage; shorter stages recompute all of theirs. `None`
            applies it to all layers.
        optimizer
            ``"adamw"``, ``"adamw_8bit"``, ``"muon"``, ``"adafactor"`` (without momentum) or
            ``"sgd"`` (with momentum). It sets the memory, traffic and operations per parameter.
            Muon's iterations are counted for each matrix of the layers and divided among the
            devices that share it; the exchange that gathers its parts is not counted.
        lora_rank
            Rank of the adapters of all matrices in the layers (LoRA); only the adapters are
            trained. `None` trains all parameters.
        attention
            ``"fused"`` (FlashAttention) or ``"unfused"``.
        loss
            ``"unfused"`` (logits, their copy in 32 bits and its gradient are in memory at once, as
            frameworks do by default) or ``"fused"`` (one kernel, which writes the gradient over the
            logits: Liger Kernel, Transformer Engine).
        usable_memory
            Share of a device's memory that a step may use. The rest is for the driver's context,
            buffers of collectives and libraries, and fragmentation.
        gradient_precision
            Format of the gradients. `None` takes `precision`, except that gradients sharded layer
            by layer are scattered in the format of the calibration's software.
        gradient_compression
            Bytes of gradients divided by the bytes that replicas send for them, including indices
            of selected values: 1 sends everything, 4 a quarter. The model assumes that compressed
            gradients can still be summed, as in PowerSGD. It counts neither the time to compress
            nor the effect on convergence.
        gradient_overlap
            Share of the replicas' communication that can overlap with computation, if there is
            enough computation: 0 none, 1 all. `None` takes the calibration's value.
        seq_len
            Tokens per sequence; `None` takes the model's training length.
        images
            Images in each sequence; their tokens count toward `seq_len`. Each image is a pass of
            the model's vision tower, timed from its totals by one roofline. The tower is on the
            first stage, split as its layers are, and trained with them, or frozen with `lora_rank`.
            Only for models with a known tower (`vision`); 0 means text only.
        efficiency
            Share of the dense peak rate that arithmetic reaches: the textbook's one constant.
            `None` times every operator instead, with a calibration's constants.
        calibration
            Constants for the operators; `None` takes those fitted for the device, with the software
            that it usually runs: MaxText on TPUs, otherwise Megatron-Core without its options for
            experts (see Notes). Cannot be combined with `efficiency`.
        power_calibration
            Constants for the power that operations and memory traffic draw; `None` takes those
            fitted for the device's generation.

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
        this halves the throughput compared with `Calibrations.H800_HAI_LLM`, and the band excludes
        what DeepSeek published. The result's `calibration` names the features that are off. Pass
        the calibration of your software, or set `exchange_overlap`, `expert_nodes` and
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
        return cls._answer(locals())

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
            if given is not None and not mixed_layers(inputs.model):
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
