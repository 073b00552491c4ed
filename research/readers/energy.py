"""Measured power and energy as calls of the solvers."""

from __future__ import annotations

from typing import Any

from mlsysim.core.errors import shown
from mlsysim.core.types import (
    Accelerator,
    Fleet,
    Node,
    PowerCalibration,
    ServingCalibration,
    TransformerModel,
)
from mlsysim.registry import Systems
from mlsysim.registry.calibration.power import power_calibration_for
from mlsysim.registry.calibration.serving import serving_calibration_for
from mlsysim.registry.calibration.training import Frameworks, calibration_of, machine_for
from mlsysim.solvers import DistributedSolver, ServingSolver
from mlsysim.validation.report import Comparison, comparison
from research.readers import energy_runs
from research.readers.aliases import accelerator_named, server_of, shape_of
from research.readers.energy_runs import Drawn
from research.rows import Row, Skip


def _engine(row: Row, device: Accelerator) -> ServingCalibration:
    """Return the constants of the release of vLLM that the row names."""
    version = row.text("note").removeprefix("vLLM ")
    year = 2024 if version.startswith("of 2024") else 2025
    return serving_calibration_for(device, "vllm", year, version=version)


def _model(row: Row) -> TransformerModel:
    return shape_of(
        row,
        row.whole("prompt"),
        kv_heads=row.whole("kv_heads"),
        head_dim=row.whole("head_dim"),
        gated_mlp=True,
    )


def _node(row: Row) -> Node:
    return server_of(accelerator_named(row.text("hardware")))


def _trained(row: Row, power: PowerCalibration | None) -> Any:
    """Return the predicted step of a training run with sharded states (OLMo-core: FSDP2)."""
    node, devices, batch = _node(row), row.whole("n_gpus"), row.whole("batch")
    return DistributedSolver.solve(
        model=_model(row),
        fleet=Fleet(
            name="measured",
            node=node,
            count=devices // node.accelerators_per_node,
            fabric=Systems.InfiniBand_NDR,
        ),
        batch_size=batch,
        seq_len=row.whole("prompt"),
        precision=row.text("precision"),
        zero_stage=3,
        microbatch_count=max(1, batch // (devices * row.whole("micro"))),
        recompute="none",
        calibration=calibration_of(
            machine_for(node.accelerator.generation, node.accelerator.name),
            Frameworks.FSDP2_Compiled,
        ),
        power_calibration=power,
    )


def _served(row: Row, power: PowerCalibration | None) -> Any:
    """Return the prediction for a serving engine at its mean batch."""
    node = _node(row)
    return ServingSolver.solve(
        model=_model(row),
        hardware=node,
        seq_len=row.whole("prompt"),
        output_len=row.whole("output"),
        batch_size=row.whole("batch"),
        precision=row.text("precision"),
        kv_precision="bf16",
        tp_size=row.whole("tp"),
        calibration=_engine(row, node.accelerator),
        power_calibration=power,
    )


def predicted(row: Row, power: PowerCalibration | None = None) -> tuple[Any, float]:
    """Return the solver's answer for a row, and the rate of tokens in it.

    Raises
    ------
    Skip
        If the row lacks required data.
    """
    if row.text("work") == "training":
        result = _trained(row, power)
        return result, result.token_throughput.to("token/s").magnitude
    if row.text("work") == "serving":
        result = _served(row, power)
        return result, result.output_throughput.to("token/s").magnitude
    raise Skip(f"work {shown(row.text('work'))} is neither training nor serving")


def drawn(row: Row) -> Drawn:
    """Return the work of a run's devices at the measured rate, not the predicted one.

    Raises
    ------
    Skip
        If the row lacks required data.
    """
    measured = row.measured("tokens_per_s")
    result, rate = predicted(row)
    return Drawn.at_rate(_node(row).accelerator, result, measured / rate)


def compare(row: Row) -> Comparison | tuple[Comparison, ...]:
    """Predict power at the measured token rate, or energy per token without any measured input.

    A row without a column `quantity` has both.

    Raises
    ------
    Skip
        If the row lacks required data.
    """
    if "quantity" not in row.cells:
        return energy_runs.compare(row)
    value, quantity = row.measured(), row.text("quantity")
    label, group = f"{quantity} ({row.text('unit')})", f"{row.group}: {quantity}"
    if quantity == "energy per token":
        result = predicted(row)[0]
        return comparison(row, result, "energy_per_token", "J", value, quantity=label, group=group)
    if quantity != "device power":
        raise Skip(f"quantity {shown(quantity)} is neither device power nor energy per token")
    work = drawn(row)
    constants = power_calibration_for(work.accelerator)
    shares = ("constant_share", "compute_share", "memory_share")
    power = work.power({name: constants.si(name) for name in shares})
    edges = constants.power_band.around(power)
    return row.compared(label, value, power, *edges, group=group)
