"""A training step at a constant efficiency without overlap: the textbook model."""

from __future__ import annotations

from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, where
from mlsysim.solvers.training.inputs import TrainingInputs
from mlsysim.solvers.training.links import (
    DeviceLinks,
    Link,
    all_reduces,
    exchange_time,
    expert_ring_size,
    gradient_sizes,
    near_ranks,
    round_time,
    stage_transfer_time,
    step_exchanges,
)
from mlsysim.solvers.training.memory import training_memory
from mlsysim.solvers.training.work import Times, answer, training_work

__all__ = ["textbook_step"]


def textbook_step(i: TrainingInputs) -> dict[str, Any]:
    """Time one step of distributed training in which nothing overlaps."""
    w, links = training_work(i), _links(i)
    count, nodes = i.microbatch_count, i.fleet.node
    compute = f.compute_time(w.device_flops, i.peak_rate, i.efficiency)

    def all_reduce(size: Value, ranks: Value, near: Value) -> Value:
        return f.hierarchical_all_reduce_time(
            size,
            ranks,
            near,
            links.local.bandwidth,
            links.local.latency,
            links.remote.bandwidth,
            links.remote.latency,
        )

    tensor = f.layer_all_reduce_time(
        all_reduce(
            w.hidden_state, i.tp_size, f.local_ranks(i.tp_size, nodes.accelerators_per_node)
        ),
        all_reduces(i, w),
        w.stage_layers,
        count,
    )
    pipeline = stage_transfer_time(i, w, links)
    # Nothing overlaps, so attention does not hide the exchange of keys and values.
    link = _slowest(i, links, i.cp_size, i.tp_size)
    rounds = f.uncovered_time(round_time(i, w, link), 0, i.recompute.matrix_share)
    context = count * w.stage_layers * rounds
    experts = count * w.stage_layers * exchange_time(i, w, links, 0)
    common, of_experts = gradient_sizes(i, w)
    replicas = expert_ring_size(i, w)
    scatters, gathers = step_exchanges(i)
    # An all-reduce is a scatter and a gather.
    data = (
        (scatters + gathers)
        / 2
        * (
            all_reduce(common, w.replicas, near_ranks(i, w.replicas, i.tp_size))
            + all_reduce(of_experts, replicas, near_ranks(i, replicas, w.expert_group))
        )
    )

    busy = compute + tensor + context + experts + pipeline
    bubble = f.pipeline_bubble_time(busy, i.pp_size, count, i.virtual_stages)
    step = busy + bubble + data
    communication = Times(data, tensor, pipeline, context, experts)
    return answer(
        i,
        w,
        training_memory(i, w),
        step=step,
        alone=f.compute_time(w.model_flops, i.peak_rate, i.efficiency),
        compute=compute,
        exposed=communication,
        every=communication,
        bubble=bubble,
        mfu=f.flops_utilization(w.model_flops, step, i.peak_rate, i.devices),
        hfu=f.flops_utilization(w.hardware_flops, step, i.peak_rate, i.devices),
        mbu=0,  # the textbook counts no memory traffic
    )


def _links(i: TrainingInputs) -> DeviceLinks:
    """Return the links with their datasheet values."""
    node, fabric = i.fleet.node, i.fleet.fabric
    return DeviceLinks(
        local=Link(node.scale_up.bandwidth, node.scale_up.latency),
        remote=Link(
            fabric.bandwidth * node.nics_per_node / node.accelerators_per_node, fabric.latency
        ),
    )


def _slowest(i: TrainingInputs, links: DeviceLinks, ranks: Value, stride: Value) -> Link:
    """Return the slowest link between two ranks of a group."""
    inside = near_ranks(i, ranks, stride) >= ranks
    return Link(
        where(inside, links.local.bandwidth, links.remote.bandwidth),
        where(inside, links.local.latency, links.remote.latency),
    )
