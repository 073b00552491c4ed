"""Explorer of a reader's own model: its size, its KV cache, and the devices that it fits on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from mlsysim.core.errors import ConfigError
from mlsysim.core.numeric import Value
from mlsysim.core.recording import Input
from mlsysim.core.types import TransformerModel
from mlsysim.core.units import Q_
from mlsysim.registry import Hardware, Models, Systems
from mlsysim.registry.importer.documents import parsed
from mlsysim.solvers import ServingSolver
from mlsysim_course.controls import Paste, Selector, Slider
from mlsysim_course.explorers.charts import axis, bars, part, rule
from mlsysim_course.explorers.declare import (
    Answer,
    Explorer,
    Reading,
    amount,
    by_formula,
    figure,
    read,
)
from mlsysim_course.explorers.devices import COMPARED, TEXTBOOK, WIDTHS

EXAMPLE = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18_944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152_064,
    "tie_word_embeddings": False,
}


def _parameters(
    groups: Sequence[Any],
    embedding_tables: Value,
    vocab_size: Value,
    hidden_dim: Value,
    other: Value,
) -> Value:
    """Return the parameters of a network: the sum over its vocabulary, its layers and the rest."""
    vocabulary = embedding_tables * vocab_size * hidden_dim
    rest = vocabulary + other
    for group in groups:
        each_layer = group.parameters(hidden_dim)
        layers = group.count * each_layer
        rest = rest + layers
    return rest


def _size(model: TransformerModel) -> Reading:
    """Read the parameters of a model, matrix by matrix."""
    count = partial(_parameters, model.groups)
    shape = {n: getattr(model, n) for n in ("embedding_tables", "vocab_size", "hidden_dim")}
    other = amount(model.parameters, "param") - count(**shape, other=0)
    given = {
        name: Input(name, Q_(float(value), ""), "", f"config.{name}", model.source_of(name))
        for name, value in shape.items()
    }
    rest, told = "norms, biases, routers and towers", model.source_of("parameters")
    given["other"] = Input("other", Q_(other, ""), "", rest, told)
    return by_formula("Parameters", count, "", given, shown="billion", scale=1e-9)


_PARTS = {
    "attention": "attention",
    "feed_forward": "feed-forward blocks",
    "experts": "experts",
    "embeddings": "embeddings",
}


def _stated_formats(model: TransformerModel) -> list[str]:
    """Return the parts of a model whose file states their format, with that format."""
    formats = {part: getattr(model.formats, part, None) for part in _PARTS}
    return [f"{_PARTS[part]} ({item.name})" for part, item in formats.items() if item is not None]


def _keeps_all(model: TransformerModel) -> bool:
    """Return whether the file states the formats of all weights that can be narrow."""
    narrow = ("attention", "feed_forward", "experts")[: 3 if model.moe_layers else 2]
    return all(getattr(model.formats, part, None) is not None for part in narrow)


def _place(device: str, users: int) -> str:
    most = f"{users:,} user{'' if users == 1 else 's'}" if users else "too small"
    return f"{device.replace('_', ' ')}: {most}"


def _together(model: TransformerModel, plan: Mapping[str, Any]) -> str:
    """Return how many of the largest GPUs hold a model that is too large for one."""
    node = Systems.Nodes.DGX_B200
    for count in (2, 4, 8):
        try:
            result = ServingSolver.solve(model=model, hardware=node, tp_size=count, **plan)
        except ConfigError:
            continue  # heads that these GPUs cannot share
        if result.max_batch_size:
            return f"; {count} x {node.accelerator.name} fit it with tp_size = {count}."
    return f"; 8 x {node.accelerator.name} do not fit it either."


def _import(s: Mapping[str, Any]) -> Answer:
    config = parsed(s["config"].encode("utf-8", "replace"), "config")
    model = Models.from_config(config, name="Your model")
    stated = _stated_formats(model)
    plan = {
        "seq_len": s["context"],
        "precision": "bf16",
        "weight_precision": s["weights"],
        "efficiency": TEXTBOOK,
    }
    found, refused = {}, []
    for name in COMPARED:
        device = getattr(Hardware, name)
        try:
            found[name] = ServingSolver.solve(model=model, hardware=device, **plan)
        except ConfigError as fault:
            refused.append(f"{device.name}: {fault.message}")
    if not found:
        raise ConfigError(refused[0], argument="config")
    result = next(iter(found.values()))
    users = {name: one.max_batch_size for name, one in found.items()}
    fits = [name for name, most in users.items() if most]
    best = max(users, key=lambda name: users[name])
    need = amount(result.total_memory_required, "GB")
    size = _size(model)
    return Answer(
        f"Your model has {size.text} parameters. With one user of {s['context']:,} tokens it needs "
        f"{figure(need)} GB and fits on {len(fits)} of {len(COMPARED)} devices"
        + (
            f"; {getattr(Hardware, best).name} fits the most users, {users[best]:,}."
            if fits
            else _together(model, plan)
        )
        + (f" The file keeps its own formats of {', '.join(stated)}." if stated else "")
        + (f" About the file: {model.source.note}." if model.source.note else ""),
        (
            size,
            read("Weights", result, "model_weights_size", "GB"),
            read("KV cache per user", result, "kv_cache_size", "GB"),
            read("Memory needed", result, "total_memory_required", "GB"),
        ),
        (
            bars(
                axis("Memory (GB)", zero=True),
                [
                    part(
                        _place(name, users[name]),
                        "memory",
                        amount(one.memory_capacity, "GB"),
                    )
                    for name, one in found.items()
                ],
                rules=[rule(need, "needed for one user", of="x")],
            ),
        ),
        "good" if fits else "bad",
        unused=("weights",) if _keeps_all(model) else (),
    )


IMPORT = Explorer(
    "import",
    "Paste a config.json: it stays in your browser",
    "One device, computing in bf16. Only the tokens of the prompts count; output needs more room.",
    (
        Paste("config", "config.json", json.dumps(EXAMPLE, indent=2)),
        Slider("context", "Tokens per user", 8192, (512, 2048, 8192, 32_768, 131_072)),
        Selector("weights", "Weight format", "bf16", WIDTHS),
    ),
    _import,
)
"""A model from its configuration, and where it fits."""
