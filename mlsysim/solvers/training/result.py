"""Answer of the distributed solver."""

from __future__ import annotations

from mlsysim.core.fields import number, quantity, record
from mlsysim.core.result import Result
from mlsysim.core.units import Quantity

__all__ = ["DeviceStep", "DistributedResult", "Parallelism"]


@record
class DeviceStep(Result):
    """The work of one device in a step, without communication."""

    latency: Quantity = quantity("s")
    """Time of its arithmetic."""
    flops: Quantity = quantity("TFLOP")
    """Its operations, including recomputed ones."""
    memory: Quantity = quantity("GB")
    """Memory it needs."""


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
    """Devices over which experts are distributed. They are among the replicas' devices, so this is
    not another factor."""


@record
class DistributedResult(Result):
    """Answer of `DistributedSolver`: one training step on a fleet."""

    step_latency_total: Quantity = quantity("s")
    """Time of the step: compute, communication and bubble. The operator-level model adds the
    parameter update, waits for kernel launches, and a fixed time."""
    step_latency_low: Quantity | None = quantity("s")
    """Lower edge of the band that holds four of five comparable runs; `None` if none is known.
    `band` says which of the two bands below it is."""
    step_latency_high: Quantity | None = quantity("s")
    """Upper edge of that band."""
    band: str
    """Which band applies: `"family"` where a calibration was named that was measured on such a
    system, `"unseen"` where this system was not measured, or where the plan is unlike the runs of
    your own cluster; empty without a band."""
    step_latency_family_low: Quantity | None = quantity("s")
    """Lower edge of the band of runs within the families that the constants were fitted to."""
    step_latency_family_high: Quantity | None = quantity("s")
    """Upper edge of that band."""
    step_latency_unseen_low: Quantity | None = quantity("s")
    """Lower edge of the band of held-out systems, to which no constant was fitted."""
    step_latency_unseen_high: Quantity | None = quantity("s")
    """Upper edge of that band."""
    calibration: str
    """The calibration used, and whether any measured run supports the band."""
    effective_throughput: Quantity = quantity("sample/s")
    """Sequences per second: batch over step time."""
    token_throughput: Quantity = quantity("token/s")
    """Tokens per second."""
    scaling_efficiency: float = number()
    """Time that one device with unlimited memory would need without microbatches, divided by the
    total device time spent; at most 1."""
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
    """Arithmetic of the busiest device."""
    communication_latency: Quantity = quantity("s")
    """All communication of a device that computation does not hide. It falls where there is more
    computation to hide it, as with longer sequences."""
    hidden_communication_latency: Quantity = quantity("s")
    """Communication that overlaps with computation; none with `efficiency`."""
    dp_communication_latency: Quantity = quantity("s")
    """Exposed time to reduce gradients between replicas and to gather sharded weights."""
    tp_communication_latency: Quantity = quantity("s")
    """Exposed time of activation all-reduces within the tensor-parallel groups."""
    pp_communication_latency: Quantity = quantity("s")
    """Activations and gradients handed between pipeline stages."""
    cp_communication_latency: Quantity = quantity("s")
    """Waiting for keys and values of the ranks that share a sequence."""
    ep_communication_latency: Quantity = quantity("s")
    """Exposed time to send tokens to their experts and back."""
    pipeline_bubble_latency: Quantity = quantity("s")
    """Time that filling and draining the pipeline adds."""
    optimizer_latency: Quantity = quantity("s")
    """Update of the parameters; none under an `efficiency`."""
    launch_latency: Quantity = quantity("s")
    """Waits for the host that launches kernels, and the fixed time of a step; none under an
    `efficiency`."""
    bubble_fraction: float = number()
    """Idle share of the pipeline's time. With 1F1B and GPipe, that of equal stages."""
    model_flops: Quantity = quantity("TFLOP")
    """The model's operations per step, on all devices."""
    device_flops: Quantity = quantity("TFLOP")
    """Operations of the busiest device, including recomputed ones."""
    dp_size: int = number(whole=True)
    """Data-parallel replicas."""
    microbatch_size: float = number()
    """Sequences in one microbatch; a schedule needs a whole number."""
    memory: Quantity = quantity("GB")
    """Memory that the fullest device needs."""
    weights_memory: Quantity = quantity("GB")
    """Part of it for weights."""
    gradient_memory: Quantity = quantity("GB")
    """Part of it for gradients."""
    optimizer_memory: Quantity = quantity("GB")
    """Part of it for the optimizer's state."""
    activation_memory: Quantity = quantity("GB")
    """Part of it for activations that are kept for the backward pass."""
    working_memory: Quantity = quantity("GB")
    """Part of it for temporary data: logits, gradients of activations, buffers of weight gradients,
    recomputed and gathered layers."""
    memory_capacity: Quantity = quantity("GB")
    """Memory that a step may use: the `usable_memory` of what a device reports."""
    fits_memory: bool
    """Whether the step fits in memory."""
    whole_microbatches: bool
    """Whether the batch divides into whole microbatches."""
    feasible: bool
    """Whether the step fits by the estimate of its memory, in whole microbatches."""
    reasons: tuple[str, ...]
    """Why it cannot; empty if it can."""
    outside: tuple[str, ...]
    """Where the plan lies outside everything that was measured, or, with a calibration to your own
    cluster, outside its runs: the band says less there."""
    parallelism: Parallelism
    """The sizes of the groups."""
    node_performance: DeviceStep
    """The busiest device alone."""
