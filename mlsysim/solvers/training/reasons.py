"""Why a training step is not feasible, and what to change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mlsysim.core.types import Calibration
from mlsysim.core.units import dress, format_number
from mlsysim.registry.calibration.training import (
    MEASURED,
    MEASURED_CHOICES,
    MEASURED_FORMATS,
    Machines,
    machine_for,
    without_runs,
)
from mlsysim.solvers.device import beyond, memory_account
from mlsysim.solvers.training.inputs import TrainingInputs
from mlsysim.solvers.training.memory import training_memory, usable_memory
from mlsysim.solvers.training.work import training_work

_OF_16_BITS = ("fp16", "bf16")
"""Formats with the same rates: a run in one of them covers both."""
_NETWORKS = {"dense": "trained a dense model", "experts": "trained a mixture of experts"}


def reasons(values: Mapping[str, Any], i: TrainingInputs) -> list[str]:
    """Return why a configuration is not feasible, by how much, and what to change."""
    faults = []
    if not values["fits_memory"]:
        need, have = values["memory"], values["memory_capacity"]
        stage = f" of stage {values['fullest_stage']}" if i.pp_size > 1 else ""
        account = memory_account(need, have, i.usable_memory)
        faults.append(
            f"memory: a device{stage} needs an estimated {account}, "
            f"{format_number(need - have)} short; {_memory_advice(values, i)}"
        )
    if not values["whole_microbatches"]:
        replicas, count = values["dp_size"], i.microbatch_count
        faults.append(
            f"microbatches: batch_size = {i.batch_size} over {replicas} replicas and {count} "
            f"microbatches leaves {format_number(values['microbatch_size'])} sequences in each; "
            f"make batch_size a multiple of {replicas * count}"
        )
    return faults


def fitted_elsewhere(i: TrainingInputs) -> str:
    """Return the device or generation that the constants belong to, if it is a different one."""
    c, usual = i.calibration, machine_for(i.device.generation, i.device.name)
    if c.device:
        return "" if c.device == i.device.name else c.device
    return c.machine.name if c.machine is not usual and c.machine in tuple(Machines) else ""


def _of_one_cluster(c: Calibration) -> bool:
    return bool(c.device) or c.covered is not None


def unlike_own_runs(i: TrainingInputs) -> list[str]:
    """Return what a plan has, besides sizes, that no run of the constants' own cluster had."""
    c = i.calibration
    if not _of_one_cluster(c):
        return []
    if c.covered is None:
        return [f"{c.name} does not state which plans its runs covered; calibrate again"]
    differences = []
    for name in c.covered.choices():
        choice = choice_of(i, name)
        same = _OF_16_BITS if choice in _OF_16_BITS else (choice,)
        if not set(same) & set(getattr(c.covered, name)):
            what = _NETWORKS[choice] if name == "networks" else f'had {name}="{choice}"'
            differences.append(f"no run of {c.name} {what}")
    return [*differences, *_frozen_format(i, f"no run of {c.name}")]


def choice_of(i: TrainingInputs, name: str) -> str:
    """Return a plan's value for a choice that `Covered` lists."""
    if name == "networks":
        return "experts" if i.model.moe_layers > 0 else "dense"
    choice: str = getattr(i, name).name
    return choice


def _frozen_format(i: TrainingInputs, runs: str) -> Iterator[str]:
    """Yield the format of frozen weights, if it is not that of training, as in all runs."""
    if i.weight_precision is not i.precision:
        yield f'{runs} had weight_precision="{i.weight_precision.name}"'


def _outside_own_runs(i: TrainingInputs) -> list[str]:
    """Return where a plan lies outside the runs of the constants' own cluster."""
    c = i.calibration
    ranges = c.covered.ranges() if c.covered is not None else ()
    return [*unlike_own_runs(i), *beyond(i, ranges, f"run of {c.name}"), *_of_another_device(i)]


def _of_another_device(i: TrainingInputs) -> list[str]:
    device = fitted_elsewhere(i)
    if not device:
        return []
    return [f"the constants are those of {device}, and the device is {i.device.name}"]


def outside(i: TrainingInputs) -> list[str]:
    """Return where a plan lies outside the runs that support its band.

    These are the runs of the constants' own cluster, or else all measured runs.
    """
    if _of_one_cluster(i.calibration):
        return _outside_own_runs(i)
    ranges = ((name, *limits) for name, limits in MEASURED.items())
    ways = list(beyond(i, ranges, "measured run"))
    for name, known in MEASURED_CHOICES.items():
        if (chosen := getattr(i, name).name) not in known:
            ways.append(f'no measured run had {name}="{chosen}"')
    if i.precision.name not in MEASURED_FORMATS:
        ways.append(f"no measured run computed in {i.precision.name}")
    ways += _frozen_format(i, "no measured run")
    if without_runs(machine_for(i.device.generation, i.device.name)):
        ways.append(f"no run was measured on {i.device.name}")
    return ways + _of_another_device(i)


def _memory_advice(values: Mapping[str, Any], i: TrainingInputs) -> str:
    """Return changes that would make the step fit: less state per device, or fewer activations."""
    capacity = values["memory_capacity"]
    states = values["weights_memory"] + values["gradient_memory"] + values["optimizer_memory"]
    if states <= capacity:
        return "the states fit, but the activations do not: " + _activation_advice(values, i)
    split = i.tp_size * i.pp_size
    share = (states / capacity).to("").magnitude
    split_more = f"tp_size x pp_size above {split * share:.1f} (now {split})"
    stage, left = _sharding(i)
    if stage is None:
        return f"weights, gradients and optimizer alone need {split_more}"
    return (
        f"weights, gradients and optimizer alone need zero_stage = {stage}, which leaves "
        f"{format_number(left)} of them, or {split_more}"
    )


def _sharding(i: TrainingInputs) -> tuple[int | None, Any]:
    """Return the first ZeRO stage at which the states fit, and their size per device."""
    for stage in range(i.zero_stage + 1, 4):
        plain = i.but(zero_stage=stage).plain()
        left = training_memory(plain, training_work(plain)).states
        if left <= usable_memory(plain):
            return stage, dress(left, "GB")
    return None, None


def _activation_advice(values: Mapping[str, Any], i: TrainingInputs) -> str:
    """Name the options that are not used yet."""
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
