"""Readers that several kinds of models share."""

from __future__ import annotations

import dataclasses
from typing import Any

from mlsysim.registry.importer import kinds
from mlsysim.registry.importer.layers import Reader

__all__ = [
    "EXPERTS_LIKE_MLP",
    "LAYER_NORM",
    "LLAMA",
    "MAMBA",
    "MAMBA2_KEYS",
    "MINIMAX",
    "MIXTRAL",
    "PLAIN",
    "like",
]

LAYER_NORM = 2
"""Vectors of a norm with a bias."""


def like(other: Reader, **changes: Any) -> Reader:
    """Return a changed copy of a reader; new names are added to its own."""
    changes["names"] = {**other.names, **changes.get("names", {})}
    return dataclasses.replace(other, **changes)


EXPERTS_LIKE_MLP = {"expert_dim": ("intermediate_size",)}
LLAMA = Reader(
    file="llama/configuration_llama.py",
    bias="attention_bias",
    mlp_bias="mlp_bias",
)
PLAIN = like(LLAMA, bias=False, mlp_bias=False)
MIXTRAL = like(
    PLAIN,
    file="mixtral/configuration_mixtral.py",
    names=EXPERTS_LIKE_MLP,
    kinds=kinds.windows,
    mixture=kinds.everywhere,
    modules={"experts": "block_sparse_moe.experts.0"},
)
MINIMAX = like(
    MIXTRAL,
    file="minimax/configuration_minimax.py",
    kinds=kinds.minimax,
    linear="lightning",
)
MAMBA2_KEYS = {
    "mamba_conv_bias": ("use_conv_bias", "mamba_conv_bias"),
    "mamba_proj_bias": ("use_bias", "mamba_proj_bias"),
}
MAMBA = Reader(
    file="mamba/configuration_mamba.py",
    names={"inner_dim": ("intermediate_size",), **MAMBA2_KEYS},
    norms=1,
    single=True,
    kinds=kinds.linear,
    linear="mamba",
)
