"""Measured forward passes as calls of `SingleNodeSolver`."""

from __future__ import annotations

from typing import Any

from mlsysim.core.types import Source, TransformerModel
from mlsysim.solvers import SingleNodeSolver
from mlsysim.validation.aliases import accelerator_named
from mlsysim.validation.report import Comparison
from mlsysim.validation.rows import Row

__all__ = ["arguments", "compare", "measured"]

_RUN = Source(title="A measured pass")


def _model(row: Row) -> TransformerModel:
    """Return the model of a row, its parameters counted from its shape."""
    hidden, heads, layers = row.whole("hidden"), row.whole("heads"), row.whole("layers")
    kv_heads, vocab = row.whole("kv_heads", default=heads), row.whole("vocab")
    gated, head_dim = bool(row.whole("gated", default=0, minimum=0)), hidden // heads
    return TransformerModel(
        name=row.text("model") or "model",
        source=_RUN,
        layers=layers,
        hidden_dim=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        ffn_dim=row.whole("ffn"),
        vocab_size=vocab,
        seq_len=row.whole("seq_len"),
        gated_mlp=gated,
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
    low, high = (
        edge.to("s").magnitude if edge is not None else None
        for edge in (result.latency_low, result.latency_high)
    )
    return Comparison(
        id=row.name,
        group=row.group,
        split=row.text("split"),
        quantity=f"{row.text('quantity')} (s)",
        measured=value,
        predicted=result.latency.to("s").magnitude,
        low=low,
        high=high,
    )
