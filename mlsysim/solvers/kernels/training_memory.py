"""Memory of the device that a training step fills most: shared by the kernels of training."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import where
from mlsysim.solvers.kernels.training_work import Work

__all__ = ["training_memory"]


def training_memory(i: SimpleNamespace, w: Work) -> dict[str, Any]:
    """Return what a device holds: states as far as they are sharded, and activations."""
    shards = where(i.sequence_parallel > 0, i.tp_size, 1)
    kept = f.activation_memory_per_layer(
        i.seq_len,
        w.own_sequences,
        i.hidden_dim,
        i.heads,
        i.tp_size,
        shards,
        i.kept_scores,
        i.bytes_per_element,
        i.mask_bytes,
    )
    activations = f.stage_activation_memory(
        where(i.matrix_share > 0, f.tensor_slice(w.hidden_state, shards), kept),
        w.stage_layers,
        where(
            i.all_forward_first > 0,
            i.microbatch_count,
            f.microbatches_in_flight(i.pp_size, i.microbatch_count),
        ),
        where(i.virtual_stages > 1, f.interleaving_factor(i.pp_size, i.virtual_stages), 1),
    )
    weights = f.tensor_slice(
        f.tensor_size(w.own_parameters, i.bytes_per_element),
        where(i.zero_stage >= 3, w.replicas, 1),
    )
    gradients = f.tensor_slice(
        f.tensor_size(w.own_parameters, i.gradient_bytes), where(i.zero_stage >= 2, w.replicas, 1)
    )
    optimizer = f.tensor_slice(
        f.optimizer_state_size(
            w.own_parameters, i.bytes_per_element, i.moment_bytes, i.master_bytes
        ),
        where(i.zero_stage >= 1, w.replicas, 1),
    )
    memory = f.memory_sum(weights, gradients, optimizer, activations)
    return {
        "memory": memory,
        "weights_memory": weights,
        "gradient_memory": gradients,
        "optimizer_memory": optimizer,
        "activation_memory": activations,
        "memory_capacity": i.memory_capacity,
        "fits_memory": memory <= i.memory_capacity,
    }
