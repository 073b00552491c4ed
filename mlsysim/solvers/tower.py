"""The vision tower in front of a transformer: its pass over the images of a batch.

Only the tower's totals are known, so its pass is one roofline. Its format is the wide one, in which
servers and training frameworks keep it.
"""

from __future__ import annotations

from typing import Any, Protocol

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, first_known, is_zero, when
from mlsysim.core.types import VisionTower
from mlsysim.solvers.base import Rule
from mlsysim.solvers.layer import Device, Products


class _Sees(Protocol):
    """Inputs of a question about sequences with images."""

    model: Any
    images: Value
    seq_len: Value


def _tower(model: Any) -> VisionTower | None:
    tower: VisionTower | None = getattr(model, "vision", None)
    return tower


def tower_of(i: _Sees) -> VisionTower | None:
    """Return the tower, if there are images."""
    return None if is_zero(i.images) else _tower(i.model)


def tower_flops(tower: VisionTower, images: Value) -> Value:
    """Return the operations of its forward pass."""
    return images * tower.network.flops_per_sample


def tower_traffic(tower: VisionTower, images: Value, each: Value) -> Value:
    """Return the bytes that its forward pass moves, with elements of `each` bytes."""
    network = tower.network
    moved = f.fixed_shape_traffic(
        first_known(network.dense_parameters, network.parameters),
        network.gathered_parameters,
        network.activations_per_sample,
        images,
        each,
    )
    return when(images > 0, moved)  # weights are read only if there is an image


def tower_pass(d: Device, tower: VisionTower, images: Value, tp: Value) -> Products:
    """Return its forward pass, shared by `tp` devices."""
    compute = tower_flops(tower, images) / tp / d.head
    memory = f.memory_time(tower_traffic(tower, images, d.activation_bytes) / tp, d.memory)
    return Products(f.roofline_time(compute, memory), compute, memory, memory * d.memory)


def _room(i: _Sees) -> Value:
    """Return the tokens of the images of a sequence."""
    tower = _tower(i.model)
    return 0 if tower is None else i.images * tower.tokens


IMAGE_RULES: tuple[Rule[Any], ...] = (
    Rule(
        "images",
        lambda i: (i.images == 0) | (_tower(i.model) is not None),
        lambda i: (
            f"images = {i.images} needs a model whose vision tower is known, and {i.model.name} "
            "has none: leave it out, or choose a model such as Models.Gemma3_27B"
        ),
    ),
    Rule(
        "images",
        lambda i: (i.images == 0) | (_room(i) <= i.seq_len),
        lambda i: (
            f"images = {i.images} of {_room(i)} tokens together are more than the {i.seq_len} "
            "tokens of a sequence, which include them: choose fewer images or a longer seq_len"
        ),
    ),
)
