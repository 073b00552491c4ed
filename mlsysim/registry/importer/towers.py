"""Vision towers, from `vision_config`: those that take images of one size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsysim.core.types import FixedShapeModel, Source, VisionTower
from mlsysim.core.units import Q_
from mlsysim.registry.importer.keys import Keys

__all__ = ["tower_of"]


def tower_of(config: Mapping[str, Any], hidden: int, title: str) -> VisionTower | None:
    """Return the tower of a configuration; `None` without one, or if it is of another kind.

    Gemma 3 has a SigLIP encoder: each image is divided into patches, and means over patches are the
    tokens. Its attention is not causal. Operations count products and attention; activations are
    the outputs of products.
    """
    vision = config.get("vision_config")
    if (
        not isinstance(vision, Mapping)
        or vision.get("model_type") != "siglip_vision_model"
        or config.get("model_type") != "gemma3"
        or vision.get("vision_use_head") is not False
    ):
        return None
    keys = Keys(vision, title=f"{title}, vision_config")
    whole = Keys(config, title=title)
    width, inner, layers = (keys.needed(name) for name in ("hidden_dim", "ffn_dim", "layers"))
    image, patch = keys.needed("image_size"), keys.needed("patch_size")
    tokens = whole.needed("mm_tokens_per_image")
    keys.check("siglip_vision_model")
    whole.check("gemma3")
    patches = max(1, image // patch) ** 2
    channels = (keys.number("num_channels") or 3) * patch**2
    layer = 4 * width**2 + 2 * width * inner
    biases = 4 * width + inner + width
    norms = 4 * width
    parameters = (
        channels * width
        + width
        + patches * width
        + layers * (layer + biases + norms)
        + 2 * width
        + width * hidden
        + width
    )
    products = patches * (channels * width + layers * layer) + tokens * width * hidden
    attention = 2 * layers * patches**2 * width
    written = patches * (width + layers * (5 * width + inner)) + tokens * hidden
    return VisionTower(
        tokens=tokens,
        network=FixedShapeModel(
            name="SigLIP",
            source=Source(title=title, locator="vision_config"),
            parameters=Q_(float(parameters), "param"),
            flops_per_sample=Q_(2.0 * (products + attention), "flop"),
            activations_per_sample=Q_(float(written), "count"),
            input_shape=(keys.number("num_channels") or 3, image, image),
        ),
    )
