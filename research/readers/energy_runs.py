"""Measured power and energy of served models, one run per row, as calls of `ServingSolver`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, minimum
from mlsysim.core.types import Accelerator, ServingCalibration
from mlsysim.registry.calibration.power import power_calibration_for
from mlsysim.registry.calibration.serving import serving_calibration_for
from mlsysim.registry.operations import POWER_DRAW
from mlsysim.solvers import ServingSolver
from mlsysim.validation.report import Comparison, comparison
from research.readers.aliases import accelerator_named, model_named, server_of
from research.readers.formats import formats_of
from research.readers.recipes import energy_recipe_of
from research.rows import Row, Skip

_ENGINE = ("vllm", "0.11.1")
"""Engine of the ML.ENERGY Benchmark v3.0, and its release, as in our other table."""
_MEAN_LENGTH = 0.9
"""Mean of the lengths of InferenceX over the stated ones."""
_PROMPTS = {"lm-arena-chat": 150, "gpqa": 250, "sourcegraph-fim": 1000}
"""Assumed tokens of a prompt in benchmarks that do not publish them, as in energy.csv. Prompts of
Sourcegraph are files of code: the rates of their `calibrate` rows agree best with about this."""


@dataclass(frozen=True)
class Drawn:
    """Work of a device at the measured rate."""

    accelerator: Accelerator
    hfu: Value
    mbu: Value
    busy: Value = 1
    """Share of its time that the device needs for this work, as predicted. It idles in the rest,
    waiting for the host."""

    @classmethod
    def at_rate(cls, accelerator: Accelerator, result: Any, faster: Value) -> Drawn:
        """Return the work at a rate that is `faster` times that of a prediction."""
        return cls(accelerator, result.hfu * faster, result.mbu * faster, minimum(1, faster))

    def power(self, constants: Mapping[str, Value]) -> Value:
        """Return its power in watts; `constants` are a `PowerCalibration`'s shares."""
        idle = POWER_DRAW.idle_share
        return f.workload_power(
            self.accelerator.si("tdp"),
            idle + (constants["constant_share"] - idle) * self.busy,
            constants["compute_share"],
            constants["memory_share"],
            self.hfu,
            self.mbu,
        )


def _note(row: Row) -> str:
    """Return what is assumed of the prompts, if calibrate rows decided it; empty otherwise."""
    task = row.text("task")
    if row.text("prompt") or task != "sourcegraph-fim":
        return ""
    return f"task {task}: prompts of {_PROMPTS[task]:,} tokens are assumed"


def _prompt(row: Row) -> int:
    if row.text("prompt"):
        return row.whole("prompt")
    task = row.text("task")
    if task not in _PROMPTS:
        raise Skip(f"task {task}: the length of its prompts is not stated")
    return _PROMPTS[task]


def _refuse_what_is_not_served(row: Row) -> None:
    task = row.text("task")
    if row.text("dubious"):
        raise Skip("marked dubious: left out")
    if row.text("architecture") == "diffusion":
        raise Skip(f"{task}: the solvers have no model for diffusion")
    if task in ("image-chat", "video-chat"):
        raise Skip(f"{task}: how many tokens images and videos become is not stated")


def _calibration(row: Row, device: Accelerator) -> ServingCalibration:
    stated = row.text("note").split(";")[0].partition(" ")
    engine, version = (stated[0], stated[2]) if stated[1] else _ENGINE
    return serving_calibration_for(device, engine, version=version)


def arguments(row: Row) -> dict[str, Any]:
    """Return the solver's arguments for a measured run.

    Raises
    ------
    Skip
        If the row lacks required data, or the run has a feature that the solver lacks.
    """
    _refuse_what_is_not_served(row)
    device, model = accelerator_named(row.text("hardware")), model_named(row)
    node = server_of(device)
    recipe, ranks = energy_recipe_of(row), row.whole("dp", default=1)
    precision, weight, kv = formats_of(row.text("weight_precision"), recipe.kept, device)
    batch = row.measured("batch")
    part = _MEAN_LENGTH if row.group == "infx_energy" else 1
    output = part * row.measured("output")
    return {
        "model": model,
        "hardware": node,
        "seq_len": max(1, round(part * _prompt(row))),
        "output_len": max(1, round(output)),
        # The mean number of requests in flight
        "batch_size": max(1, round(batch)),
        "precision": precision,
        "weight_precision": weight,
        "kv_precision": kv,
        # Ranks of attention have requests of their own. Each is split over its devices, whatever
        # experts do.
        "tp_size": row.whole("n_gpus") // ranks,
        "attention_dp": ranks,
        "ep_size": row.whole("ep", default=1),
        "token_budget": recipe.budget,
        "calibration": recipe.applied(_calibration(row, device)),
    }


def compare(row: Row) -> tuple[Comparison, ...]:
    """Predict power at the measured token rate, and energy per token without measured inputs.

    Raises
    ------
    Skip
        If the row lacks required data, or the run has a feature that the solver lacks.
    """
    given = arguments(row)
    device, result = given["hardware"].accelerator, ServingSolver.solve(**given)
    faster = row.measured("tokens_per_s") / result.output_throughput.to("token/s").magnitude
    constants = power_calibration_for(device)
    shares = {n: constants.si(n) for n in ("constant_share", "compute_share", "memory_share")}
    drawn = Drawn.at_rate(device, result, faster)
    if result.energy_per_token is None:
        raise Skip(f"{device.name} has no design power in the registry")
    power = drawn.power(shares)
    energy = row.measured("energy_per_token_J")
    return (
        row.compared(
            "device power (W)",
            row.measured("power_W") / row.whole("n_gpus"),
            power,
            *constants.power_band.around(power),
            group=f"{row.group}: device power",
            note=_note(row),
        ),
        comparison(
            row,
            result,
            "energy_per_token",
            "J",
            energy,
            quantity="energy per token (J)",
            group=f"{row.group}: energy per token",
            note=_note(row),
        ),
    )
