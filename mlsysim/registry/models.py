"""Models: shapes, parameters and work per sample.

Parameters of transformers are counted from the shape, including biases, norms and position tables;
the note of the source compares them with the published total. Operations of the other models count
each multiply-accumulate as two. Activations are the outputs of convolutions and linear layers, into
which norms and activation functions are assumed to be fused. Input shapes put channels first.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from mlsysim.core.types import TransformerModel
from mlsysim.registry import catalogs


class Models(
    catalogs.Language,
    catalogs.MoE,
    catalogs.Qwen,
    catalogs.Gemma,
    catalogs.Nemotron,
    catalogs.Mistral,
    catalogs.OpenModels,
    catalogs.Megatron,
    catalogs.MPT,
    catalogs.Vision,
    catalogs.Tiny,
    catalogs.Recommendation,
):
    """All models: `Models.Llama3_8B` and `Models.Language.Llama3_8B` are the same object."""

    Language = catalogs.Language
    MoE = catalogs.MoE
    Qwen = catalogs.Qwen
    Gemma = catalogs.Gemma
    Nemotron = catalogs.Nemotron
    Mistral = catalogs.Mistral
    OpenModels = catalogs.OpenModels
    Megatron = catalogs.Megatron
    MPT = catalogs.MPT
    Vision = catalogs.Vision
    Tiny = catalogs.Tiny
    Recommendation = catalogs.Recommendation

    @staticmethod
    def from_config(
        source: str | PathLike[str] | Mapping[str, Any],
        *,
        name: str | None = None,
        seq_len: int | None = None,
        weights: str | PathLike[str] | Mapping[str, Any] | None = None,
    ) -> TransformerModel:
        """Read a model from its published configuration.

        Each field records the key that it comes from, as in ``model.source_of("kv_heads")``. If the
        file does not state a value, the default of the transformers library applies and is named as
        the source; `source.note` lists such sizes. The width and the number of layers must be
        stated. A key that looks like a size or a block, but that this kind of model does not have,
        is an error; other unknown keys mark the parameters as an estimate. Parameters are counted
        from the shape with norms, biases, routers and position tables. An unknown kind of model
        must state everything. Nothing in a file is executed.

        Parameters
        ----------
        source
            Path of a Hugging Face ``config.json``, of a directory that holds one, or of a
            ``.gguf`` file, whose header is read; or the contents of a ``config.json``.
        name
            Name of the model; `None` takes it from the file or its directory.
        seq_len
            Sequence length that solvers take by default; `None` takes the longest context, which
            is also the limit (`context`).
        weights
            Index (``model.safetensors.index.json``) or header of a ``.safetensors`` file, as a path
            or a mapping. Its parameters are compared with those of the shape.

        Raises
        ------
        ConfigError
            If a file cannot be read, or describes a model that is incomplete, contradictory or
            cannot be expressed. The message names the key and what to change.

        Examples
        --------
        >>> from mlsysim import Models
        >>> config = {"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864}
        >>> config |= {"num_hidden_layers": 24, "num_attention_heads": 14}
        >>> config |= {"num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True}
        >>> model = Models.from_config(config, name="Qwen2 0.5B")
        >>> print(f"{model.parameters.to('Mparam'):.1f}")
        494.0 Mparam
        >>> print(model.kv_bytes_per_token("bf16").to("kB"))
        12.288 kB
        >>> print(model.source_of("kv_heads"))
        config.json, num_key_value_heads
        """
        from mlsysim.registry.importer import from_config

        return from_config(source, name=name, seq_len=seq_len, weights=weights)
