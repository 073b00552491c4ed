"""Measured forward passes as calls of `SingleNodeSolver`."""

from __future__ import annotations

from typing import Any

from mlsysim.core.errors import shown
from mlsysim.core.types import FixedShapeModel, TransformerModel
from mlsysim.registry import Models
from mlsysim.solvers import SingleNodeSolver
from mlsysim.validation.report import Comparison, comparison
from research.readers.aliases import accelerator_named, shape_of
from research.rows import Row, Skip

_NETWORKS = {model.name: model for model in Models if isinstance(model, FixedShapeModel)}


def _model(row: Row) -> TransformerModel | FixedShapeModel:
    """Return the network that a row names, or a transformer counted from the row's shape."""
    if not row.text("layers"):
        network = _NETWORKS.get(row.text("model"))
        if network is None:
            raise Skip(
                f"model = {shown(row.text('model'))} has no layers and is not in the registry"
            )
        return network
    return shape_of(
        row,
        row.whole("seq_len"),
        gated_mlp=bool(row.whole("gated", default=0, minimum=0)),
        causal=bool(row.whole("causal", default=1, minimum=0)),
    )


def arguments(row: Row) -> dict[str, Any]:
    """Return the solver's arguments for a measured pass.

    Raises
    ------
    Skip
        If the row lacks required data.
    """
    device = accelerator_named(row.text("hardware"))
    return {
        "model": _model(row),
        "hardware": device,
        "batch_size": row.whole("sequences"),
        "precision": row.text("precision"),
    }


def measured(row: Row) -> float:
    """Return the measured time in seconds.

    Raises
    ------
    Skip
        If the row has none.
    """
    return row.measured() / 1000


def compare(row: Row) -> Comparison:
    """Predict a measured pass.

    Raises
    ------
    Skip
        If the row lacks required data.
    """
    value = measured(row)
    result = SingleNodeSolver.solve(**arguments(row))
    quantity = f"{row.text('quantity')} (s)"
    return comparison(row, result, "latency", "s", value, quantity=quantity)
