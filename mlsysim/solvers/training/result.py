"""Answer of the distributed solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.fields import number, quantity, record
from mlsysim.core.numeric import Value, floor, where
from mlsysim.core.result import Result
from mlsysim.core.units import Quantity
from mlsysim.solvers.device import drawn_power
from mlsysim.solvers.training.inputs import TrainingInputs
from mlsysim.solvers.training.memory import DeviceMemory, usable_memory
from mlsysim.solvers.training.work import Work


@record
class DeviceStep(Result):
    """The work of one device in a step, without communication."""

    latency: Quantity = quantity("s")
    """Time of its arithmetic."""
    flops: Quantity = quantity("TFLOP")
    """Its operations, including recomputed ones."""
    memory: Quantity = quantity("GB")
    """Memory that it needs."""


@record
class Parallelism(Result):
    """How the fleet is divided: `dp` x `cp` x `tp` x `pp` devices."""

    dp: int
    """Data-parallel replicas."""
    tp: int
    """Devices that share each layer."""
    pp: int
    """Pipeline stages."""
    cp: int = 1
    """Devices that share each sequence."""
    ep: int = 1
    """Devices over which experts are distributed. They are devices of the replicas, so this is not
    another factor of the fleet's size."""


@record
class DistributedResult(Result):
    """Answer of `DistributedSolver`: one training step on a fleet."""

    step_latency_total: Quantity = quantity("s")
    """Time of the step: compute, communication and bubble. The operator-level model adds the
    parameter update, waits for kernel launches, and a fixed time."""
    step_latency_low: Quantity | None = quantity("s")
    """Lower bound of the band around `step_latency_total` that covers four of five comparable runs;
    `None` if there is no band. `band` names which of the two bands below applies."""
    step_latency_high: Quantity | None = quantity("s")
    """Upper bound of the band around `step_latency_total`."""
    band: str
    """Which band applies: `"family"` if you named a calibration that was measured on such a system;
    `"unseen"` if this system was not measured, or the plan is unlike your own cluster's runs; empty
    without a band.
    """
    step_latency_family_low: Quantity | None = quantity("s")
    """Lower bound of the band for families of runs to which the constants were fitted."""
    step_latency_family_high: Quantity | None = quantity("s")
    """Upper bound of the same band."""
    step_latency_unseen_low: Quantity | None = quantity("s")
    """Lower bound of the band for held-out systems, to which no constant was fitted."""
    step_latency_unseen_high: Quantity | None = quantity("s")
    """Upper bound of the same band."""
    calibration: str
    """The calibration used, whether any measured run supports the band, and which options of the
    software for exchanges with experts on other nodes are off."""
    effective_throughput: Quantity = quantity("sample/s")
    """Sequences per second: batch over step time."""
    token_throughput: Quantity = quantity("token/s")
    """Tokens per second."""
    scaling_efficiency: float = number()
    """Time that one device with unlimited memory would need for the whole batch, divided by the
    device time that the fleet spends; at most 1."""
    mfu: float = number()
    """Model FLOPs utilization: the model's own operations divided by what the devices could do.
    Each operation counts at the peak rate of its number format."""
    hfu: float = number()
    """Hardware FLOPs utilization: recomputed operations count as well."""
    energy_per_step: Quantity | None = quantity("kJ")
    """Energy of all devices in the step, excluding hosts; `None` without a design power."""
    energy_per_token: Quantity | None = quantity("J")
    """Energy of all devices per token, excluding hosts."""
    device_power: Quantity | None = quantity("W")
    """Mean power of one device, from its operations and its memory traffic."""
    power_utilization: float | None = number()
    """Position of that power between idle (0) and design power (1)."""
    power_calibration: str
    """The power calibration used, and whether any measurement supports it."""
    mbu: float | None = number()
    """Model bandwidth utilization: memory traffic divided by what a device's bandwidth allows.
    `None` with `efficiency`, which counts no traffic."""
    compute_latency: Quantity = quantity("s")
    """Time of the arithmetic of the busiest device."""
    communication_latency: Quantity = quantity("s")
    """Communication of a device that computation does not hide. It falls if there is more
    computation to hide it, as with longer sequences."""
    hidden_communication_latency: Quantity = quantity("s")
    """Communication that overlaps with computation; zero with `efficiency`."""
    dp_communication_latency: Quantity = quantity("s")
    """Exposed time to reduce gradients between replicas and to gather sharded weights."""
    tp_communication_latency: Quantity = quantity("s")
    """Exposed time of activation all-reduces within the tensor-parallel groups."""
    pp_communication_latency: Quantity = quantity("s")
    """Time to send activations and gradients between pipeline stages."""
    cp_communication_latency: Quantity = quantity("s")
    """Exposed time to exchange keys and values between the ranks that share a sequence."""
    ep_communication_latency: Quantity = quantity("s")
    """Exposed time to send tokens to their experts and back."""
    pipeline_bubble_latency: Quantity = quantity("s")
    """Time added by filling and draining the pipeline."""
    optimizer_latency: Quantity = quantity("s")
    """Time to update the parameters; zero with `efficiency`."""
    launch_latency: Quantity = quantity("s")
    """Time spent waiting for the host to launch kernels, and the fixed time of a step; zero with
    `efficiency`."""
    bubble_fraction: float = number()
    """Idle share of the pipeline's time. For 1F1B and GPipe, this assumes equal stages."""
    model_flops: Quantity = quantity("TFLOP")
    """The model's operations per step, on all devices."""
    device_flops: Quantity = quantity("TFLOP")
    """Operations of the busiest device, including recomputed ones."""
    dp_size: int = number(whole=True)
    """Data-parallel replicas."""
    microbatch_size: float = number()
    """Sequences in one microbatch; the plan is feasible only if this is a whole number."""
    memory: Quantity = quantity("GB")
    """Memory that the fullest device needs, of all pipeline stages."""
    fullest_stage: int = number(whole=True)
    """Pipeline stage of this device, counted from 0. With `schedule="dualpipe"` the device also has
    the mirror image, stage `pp_size` - 1 - `fullest_stage`."""
    weights_memory: Quantity = quantity("GB")
    """Part of `memory` for weights."""
    gradient_memory: Quantity = quantity("GB")
    """Part of `memory` for gradients."""
    optimizer_memory: Quantity = quantity("GB")
    """Part of `memory` for the optimizer's state."""
    activation_memory: Quantity = quantity("GB")
    """Part of `memory` for activations that are kept for the backward pass."""
    working_memory: Quantity = quantity("GB")
    """Part of `memory` for temporary data: logits, gradients of activations, buffers of weight
    gradients, recomputed and gathered layers."""
    memory_capacity: Quantity = quantity("GB")
    """Memory that a step may use: the share `usable_memory` of what the device reports, which may
    be more than the round number in its name."""
    fits_memory: bool
    """Whether the step fits in memory."""
    whole_microbatches: bool
    """Whether the batch divides into whole microbatches."""
    feasible: bool
    """Whether the step fits in the estimated memory and divides into whole microbatches."""
    reasons: tuple[str, ...]
    """Why the step is not feasible; empty if it is."""
    outside: tuple[str, ...]
    """Ways in which the plan lies outside all measured runs or, with a calibration of your own
    cluster, outside that cluster's runs. The band is less reliable there."""
    parallelism: Parallelism
    """The sizes of the groups."""
    node_performance: DeviceStep
    """The busiest device by itself."""


@dataclass(frozen=True)
class Communication:
    """Communication of a step, by purpose."""

    data: Value
    """Gradients and weights between replicas."""
    tensor: Value
    """Activations within tensor-parallel groups."""
    pipeline: Value
    """Activations and gradients between stages."""
    context: Value
    """Keys and values between the ranks that share a sequence."""
    experts: Value
    """Tokens to their experts and back."""

    @property
    def time(self) -> Value:
        """All of it together."""
        return self.data + self.tensor + self.pipeline + self.context + self.experts


@dataclass(frozen=True)
class StepTimes:
    """Times of a step, and the shares of a device's peak rates that it reaches."""

    step: Value
    alone: Value
    """Time of the step on one device that holds everything."""
    compute: Value
    exposed: Communication
    """Communication that is not hidden."""
    every: Communication
    """All communication."""
    bubble: Value
    busy: Value
    """Time of all microbatches in a stage."""
    update: Value
    host: Value
    """Time that devices wait for the host."""
    mfu: Value
    hfu: Value
    mbu: Value


def result_fields(
    i: TrainingInputs, w: Work, memory: DeviceMemory, times: StepTimes
) -> dict[str, Any]:
    """Return the fields of the result."""
    drawn = drawn_power(i, times.hfu, times.mbu)
    energy = i.devices * drawn["device_power"] * times.step
    exposed, busy, bubble = times.exposed, times.busy, times.bubble
    communication = exposed.time
    whole = floor(w.sequences) == w.sequences
    capacity = usable_memory(i)
    fits = memory.total <= capacity
    return {
        "step_latency_total": times.step,
        "effective_throughput": i.batch_size / times.step,
        "token_throughput": w.tokens / times.step,
        "scaling_efficiency": f.scaling_efficiency(times.alone, i.devices, times.step),
        "mfu": times.mfu,
        "hfu": times.hfu,
        "energy_per_step": energy,
        "energy_per_token": energy / w.tokens,
        **drawn,
        "compute_latency": times.compute,
        "communication_latency": communication,
        "hidden_communication_latency": times.every.time - communication,
        "dp_communication_latency": exposed.data,
        "tp_communication_latency": exposed.tensor,
        "pp_communication_latency": exposed.pipeline,
        "cp_communication_latency": exposed.context,
        "ep_communication_latency": exposed.experts,
        "pipeline_bubble_latency": bubble,
        "optimizer_latency": times.update,
        "launch_latency": times.host,
        "bubble_fraction": where(
            i.schedule.split_backward > 0,
            bubble / (busy + bubble),
            f.pipeline_bubble_fraction(i.pp_size, i.microbatch_count, i.virtual_stages),
        ),
        "model_flops": w.flops.model,
        "device_flops": w.device_flops,
        "dp_size": w.dp_size,
        "microbatch_size": w.sequences,
        "memory": memory.total,
        "weights_memory": memory.weights,
        "gradient_memory": memory.gradients,
        "optimizer_memory": memory.optimizer,
        "activation_memory": memory.activations,
        "working_memory": memory.working,
        "fullest_stage": memory.stage,
        "memory_capacity": capacity,
        "fits_memory": fits,
        "whole_microbatches": whole,
        "feasible": fits & whole,
    }
