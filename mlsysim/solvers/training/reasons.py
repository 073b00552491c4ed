"""Why a training step cannot run, and what would let it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsysim.core.units import format_number
from mlsysim.solvers.training.inputs import TrainingInputs

__all__ = ["reasons"]


def reasons(values: Mapping[str, Any], i: TrainingInputs) -> list[str]:
    """Say what a configuration lacks, by how much, and what to change."""
    found = []
    if not values["fits_memory"]:
        need, have = values["memory"], values["memory_capacity"]
        found.append(
            f"memory: a device needs {format_number(need)} and has {format_number(have)}, "
            f"{format_number(need - have)} too little; {_memory_advice(values, i)}"
        )
    if not values["whole_microbatches"]:
        replicas, count = values["dp_size"], i.microbatch_count
        found.append(
            f"microbatches: batch_size = {i.batch_size} over {replicas} replicas and "
            f"{count} microbatches leaves {format_number(values['microbatch_size'])} of a "
            f"sequence each; make batch_size a multiple of {replicas * count}"
        )
    return found


def _memory_advice(values: Mapping[str, Any], i: TrainingInputs) -> str:
    """Say what would make the step fit: less state per device, or fewer activations."""
    capacity = values["memory_capacity"]
    states = values["weights_memory"] + values["gradient_memory"] + values["optimizer_memory"]
    if states <= capacity:
        return "the states fit, the activations do not: " + _activation_advice(values, i)
    split = i.tp_size * i.pp_size
    share = (states / capacity).to("").magnitude
    split_more = f"tp_size x pp_size above {split * share:.1f} (now {split})"
    stage, left = _sharding(values, i)
    if stage is None:
        return f"weights, gradients and optimizer alone need {split_more}"
    return (
        f"weights, gradients and optimizer alone need zero_stage = {stage}, which leaves "
        f"{format_number(left)} of them, or {split_more}"
    )


def _sharding(values: Mapping[str, Any], i: TrainingInputs) -> tuple[int | None, Any]:
    """Return the first ZeRO stage at which the states fit, and what is left of them."""
    replicas, now = i.shard_size or values["dp_size"], i.zero_stage
    held = [values[f"{name}_memory"] for name in ("optimizer", "gradient", "weights")]
    for stage in range(now + 1, 4):
        held[stage - 1] = held[stage - 1] / replicas
        left = held[0] + held[1] + held[2]
        if left <= values["memory_capacity"]:
            return stage, left
    return None, None


def _activation_advice(values: Mapping[str, Any], i: TrainingInputs) -> str:
    """Name the levers that are not pulled yet."""
    levers = []
    if values["microbatch_size"] > 1:
        levers.append("more microbatches")
    if i.tp_size > 1 and not i.sequence_parallel:
        levers.append("sequence_parallel=True")
    if i.recompute.name != "full":
        levers.append('recompute="full"')
    levers.append(f"cp_size above {i.cp_size}")
    *first, last = levers
    return (f"{', '.join(first)} or {last}" if first else last) + " makes them smaller"
