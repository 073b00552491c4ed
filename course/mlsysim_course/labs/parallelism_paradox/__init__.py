"""Lab: the parallelism paradox. Why adding GPUs lowers utilization, and how to split a model.

Act I explains why the utilization of a data-parallel run falls as GPUs are added. Act II splits
GPT-3 across 1,024 GPUs. All numbers, including those in the emails, come from the operator-level
model of `DistributedSolver`, with constants fitted to published runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsysim.core.units import Quantity
from mlsysim_course.labs.acts import ActLab
from mlsysim_course.labs.parallelism_paradox import (
    act_one,
    act_two,
    closing,
    configurator,
    explorer,
)
from mlsysim_course.labs.parallelism_paradox.design import BUBBLE_CEILING, TARGET_MFU
from mlsysim_course.labs.parallelism_paradox.scaling import solve
from mlsysim_course.labs.parallelism_paradox.state import PREDICTION_1
from mlsysim_course.labs.words import gigabytes, percent

__all__ = ["LAB", "ledger", "restore", "view"]


def _status(full: Mapping[str, Any], second: bool) -> dict[str, str]:
    return _second(full) if second else _first(full)


def _first(full: Mapping[str, Any]) -> dict[str, str]:
    if full[PREDICTION_1.id] is None:
        return {"Configuration": "–", "MFU": "–", "Memory": "–"}
    result = solve(explorer.run(full))
    return {
        "Configuration": f"{result.dp_size:,} GPUs, DP {result.dp_size:,}",
        "MFU": percent(result.mfu),
        "Memory": _memory(result.memory, result.fits_memory),
    }


def _second(full: Mapping[str, Any]) -> dict[str, str]:
    found = configurator.outcome(full)
    design, result = found.design, found.result
    if result is None:
        sizes = f"TP {design.tp} × PP {design.pp}: invalid"
        return {"Configuration": sizes, "MFU": "–", "Memory": "–"}
    return {
        "Configuration": f"TP {design.tp} × PP {design.pp} × DP {result.dp_size:,}",
        "MFU": percent(result.mfu) if result.feasible else "does not run",
        "Memory": _memory(result.memory, result.fits_memory),
    }


def _memory(need: Quantity, fits: bool) -> str:
    return gigabytes(need) + ("" if fits else ", too much")


def _design(full: Mapping[str, Any]) -> dict[str, Any]:
    found = configurator.outcome(full)
    return {
        "tp": found.design.tp,
        "pp": found.design.pp,
        "dp": None if found.result is None else found.result.dp_size,
        "microbatches": found.design.microbatches,
        "zero": int(found.design.sharded),
    }


def _result(full: Mapping[str, Any]) -> dict[str, Any]:
    found = configurator.outcome(full)
    result = found.result
    return {
        "mfu": None if result is None else result.mfu,
        "memory_gb": None if result is None else result.memory.to("GB").magnitude,
        "bubble": None if result is None else result.bubble_fraction,
        "feasible": result is not None and result.feasible,
        "failures": list(found.failures),
        "accepted": found.accepted,
    }


LAB = ActLab(
    name="parallelism_paradox",
    title="The parallelism paradox",
    minutes=40,
    acts=(act_one.ACT, act_two.ACT),
    lessons=closing.lessons,
    requirements="runs, keeps tensor parallelism within a server, idles for at most "
    f"{percent(BUBBLE_CEILING, 0)} of its time and reaches an MFU of {percent(TARGET_MFU, 0)}",
    design=_design,
    result=_result,
    status=_status,
)
view, ledger, restore = LAB.view, LAB.ledger, LAB.restore
