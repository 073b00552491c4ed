"""Explorer of a reader's own model: its size, its cache, and the devices that hold it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mlsysim.core.errors import ConfigError
from mlsysim.labs.controls import Paste, Selector, Slider
from mlsysim.labs.explorers.charts import axis, bars, part, rule
from mlsysim.labs.explorers.declare import Answer, Explorer, Reading, amount, figure, read
from mlsysim.labs.explorers.devices import COMPARED
from mlsysim.registry import Hardware, Models
from mlsysim.solvers import ServingSolver

__all__ = ["IMPORT"]

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


def _import(s: Mapping[str, Any]) -> Answer:
    try:
        config = json.loads(s["config"])
    except ValueError as fault:
        raise ConfigError(f"config is not JSON: {fault}", argument="config") from None
    if not isinstance(config, dict):
        raise ConfigError("config must be a JSON object: { ... }", argument="config")
    model = Models.from_config(config, name="Your model")
    found, refused = {}, []
    for name in COMPARED:
        device = getattr(Hardware, name)
        try:
            found[name] = ServingSolver.solve(
                model=model,
                hardware=device,
                seq_len=s["context"],
                precision="bf16",
                weight_precision=s["weights"],
                efficiency=0.5,
            )
        except ConfigError as fault:
            refused.append(f"{device.name}: {fault.message}")
    if not found:
        raise ConfigError(refused[0], argument="config")
    result = next(iter(found.values()))
    users = {name: one.max_batch_size for name, one in found.items()}
    fits = [name for name, most in users.items() if most]
    best = max(users, key=lambda name: users[name])
    need = amount(result.total_memory_required, "GB")
    size = Reading("Parameters", amount(model.parameters, "Gparam"), "billion")
    return Answer(
        f"Your model has {size.text} parameters. With one user of {s['context']:,} tokens it needs "
        f"{figure(need)} GB and fits on {len(fits)} of {len(COMPARED)} devices"
        + (
            f"; {getattr(Hardware, best).name} holds the most users, {users[best]:,}."
            if fits
            else "."
        ),
        (
            size,
            read("Weights", result, "model_weights_size", "GB"),
            read("Cache of one user", result, "kv_cache_size", "GB"),
            read("Memory needed", result, "total_memory_required", "GB"),
        ),
        (
            bars(
                axis("GB (names: most users)", zero=True),
                [
                    part(
                        f"{name}: {users[name]:,}",
                        "memory",
                        amount(one.memory_capacity, "GB"),
                    )
                    for name, one in found.items()
                ],
                rules=[rule(need, "needed for one user", of="x")],
            ),
        ),
        "good" if fits else "bad",
    )


IMPORT = Explorer(
    "import",
    "Paste a config.json: it stays in your browser",
    (
        Paste("config", "config.json", json.dumps(EXAMPLE, indent=2)),
        Slider("context", "Tokens of each user", (512, 2048, 8192, 32_768, 131_072), 8192),
        Selector(
            "weights", "Format of the weights", {n: n for n in ("bf16", "fp8", "int4")}, "bf16"
        ),
    ),
    _import,
)
"""A model from its configuration, and where it fits."""
