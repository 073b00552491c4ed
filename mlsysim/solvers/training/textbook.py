"""The textbook model of a training step: constant efficiency, and no overlap."""

from __future__ import annotations

from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import zero_like
from mlsysim.solvers.training.inputs import TrainingInputs
from mlsysim.solvers.training.links import (
    DeviceLinks,
    all_reduces,
    context_times,
    exchange_time,
    shard_time,
    stage_transfer_time,
    step_exchanges,
    tensor_all_reduce_time,
)
from mlsysim.solvers.training.memory import training_memory
from mlsysim.solvers.training.result import Communication, StepTimes, result_fields
from mlsysim.solvers.training.work import bubble_time, in_mean_layer, training_work


def textbook_step(i: TrainingInputs) -> dict[str, Any]:
    """Time one step of distributed training in which nothing overlaps."""
    given, i = i, in_mean_layer(i)
    w, links = training_work(i), DeviceLinks.of(i)
    count = i.microbatch_count
    compute = f.compute_time(w.device_flops, i.peak_rate, i.efficiency)

    tensor = f.layer_all_reduce_time(
        tensor_all_reduce_time(i, w, links), all_reduces(i, w), w.stage_layers, count
    )
    pipeline = stage_transfer_time(i, w, links)
    # Nothing overlaps, so no attention hides the exchange of keys and values.
    context = count * w.stage_layers * context_times(i, w, links, lambda _: zero_like(compute))[0]
    experts = count * w.stage_layers * exchange_time(i, w, links, 0)
    gradient_bytes = i.gradient_precision.training_bytes
    gradients, weights = step_exchanges(i, w, links, gradient_bytes)
    shards = count * w.stage_layers * shard_time(i, w, links, gradient_bytes)
    data = shards + (gradients + weights)

    busy = compute + tensor + context + experts + pipeline
    # Each product has two gradients of the same size, so each of the three parts is a third.
    third = busy / count / 3
    bubble = bubble_time(
        i,
        f.pipeline_bubble_time(busy, i.pp_size, count, i.virtual_stages),
        busy / count,
        third,
        third,
    )
    step = busy + bubble + data
    communication = Communication(data, tensor, pipeline, context, experts)
    times = StepTimes(
        step=step,
        alone=f.compute_time(w.flops.model, i.peak_rate, i.efficiency),
        compute=compute,
        exposed=communication,
        every=communication,
        bubble=bubble,
        busy=busy,
        update=zero_like(step),  # the textbook counts neither
        host=zero_like(step),
        mfu=f.flops_utilization(w.flops.model, step, i.peak_rate, i.devices),
        hfu=f.flops_utilization(w.flops.hardware, step, i.peak_rate, i.devices),
        mbu=0,  # the textbook counts no memory traffic
    )
    return result_fields(i, w, training_memory(given, w), times)
