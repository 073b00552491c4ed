"""Why a training step cannot run, and what would let it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsysim.core.units import format_number

__all__ = ["reasons"]


def reasons(values: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    """Say what a configuration lacks, by how much, and what to change."""
    found = []
    if not values["fits_memory"]:
        need, have = values["memory"], values["memory_capacity"]
        found.append(
            f"memory: a device needs {format_number(need)} and has {format_number(have)}, "
            f"{format_number(need - have)} too little; {_memory_advice(values, arguments)}"
        )
    if not values["whole_microbatches"]:
        replicas, count = values["dp_size"], arguments["microbatch_count"]
        found.append(
            f"microbatches: batch_size = {arguments['batch_size']} over {replicas} replicas and "
            f"{count} microbatches leaves {format_number(values['microbatch_size'])} of a "
            f"sequence each; make batch_size a multiple of {replicas * count}"
        )
    return found


def _memory_advice(values: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Say what would make the step fit: less state per device, or fewer activations."""
    states = values["weights_memory"] + values["gradient_memory"] + values["optimizer_memory"]
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
