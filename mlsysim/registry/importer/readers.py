"""Kinds of models, each with a row of `architectures.toml` that says how its files are read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mlsysim.core.errors import UnknownEntryError
from mlsysim.registry.importer.keys import Keys
from mlsysim.registry.importer.rules import RULES
from mlsysim.registry.tables import read_toml

Switch = str | bool
"""A Boolean, or the key that contains it."""


@dataclass(frozen=True)
class Reader:
    """How the configurations of one `model_type` are read.

    A row of the table has a value for each field that differs from the default. Callables are the
    names of functions in `rules.py`, or mappings with a `rule` and its settings.

    Attributes
    ----------
    library : str
        Folder of the configuration class in `models/` of the library, whose defaults are in
        `library_defaults.json`. Empty for kinds with code that comes with the weights.
    defaults : Mapping
        Further defaults, by key.
    names : Mapping
        Keys of fields that have other names in this kind of model. Keys of a field that nothing
        reads (``"always"``, ``"never"``) are known, but change no count.
    norm, norms : int
        Vectors of a norm (2 with a bias, 0 without weights), and norms of a layer.
    bias : str or bool
        Whether all products of attention add a bias.
    qkv_bias, out_bias, mlp_bias, head_bias : str or bool
        Which products add a bias in any case.
    qk_norm : str
        ``"head"`` if queries and keys have a norm as wide as a head, ``"width"`` if as wide as all
        heads.
    qk_norm_if : str or bool
        Whether they have one.
    gated : bool
        Whether feed-forward blocks have a gate.
    kinds : callable or None
        Kinds of the layers, if no list states them.
    mixture : callable or None
        Whether each layer has experts; `None` for a dense model.
    attention : str
        ``"heads"`` or ``"latent"``.
    latent_if : str or bool
        Whether attention is latent if `attention` is ``"latent"``.
    indexers : callable or None
        Whether each layer has its own indexer or attends to the keys that an earlier one chose;
        `None` if all have one.
    linear : str
        Kind of linear layers: ``"delta"``, ``"kda"``, ``"mamba"``, ``"mamba2"``, ``"lightning"`` or
        ``"conv"``.
    parallel : bool
        Whether each layer has linear attention next to its attention.
    single : bool
        Whether each layer is one block only.
    gaps : bool
        Whether some layers lack a block: attention according to their kind, the feed-forward block
        if its width is zero.
    output_gate : str or bool
        Whether a gate scales the output of attention.
    global_heads : bool
        Whether layers with full attention have their own heads (Gemma 4).
    sinks : bool
        Whether each head has a sink.
    router_bias, expert_bias, shared_gate : bool
        Whether the router and the experts add biases, and whether a gate scales the shared expert.
    positions : int or None
        Rows of a table of positions beyond the sequence length; `None` without a table.
    final_norm, causal : bool
        Whether a norm follows the last layer, and whether tokens attend only to earlier ones.
    needs : Mapping
        Values that keys must have if they are stated, because other values change the structure.
    outside, in_layer : callable
        Further parameters outside the layers, and in each layer.
    modules : Mapping
        Unusual names of the blocks ``"dense"``, ``"experts"``, ``"shared"`` and ``"mixer"`` (linear
        attention) in weight files.
    """

    library: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    norm: int = 1
    norms: int | Callable[[Keys], int] = 2
    bias: Switch = False
    qkv_bias: Switch = False
    out_bias: Switch = False
    mlp_bias: Switch = False
    head_bias: Switch = False
    qk_norm: str = ""
    qk_norm_if: Switch = True
    gated: bool = True
    kinds: Callable[[Keys, int], list[str]] | None = None
    mixture: Callable[[Keys, int], list[bool]] | None = None
    attention: str = "heads"
    latent_if: Switch = True
    indexers: Callable[[Keys, int], list[bool]] | None = None
    linear: str = ""
    parallel: bool = False
    single: bool = False
    gaps: bool = False
    output_gate: Switch = False
    global_heads: bool = False
    sinks: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    shared_gate: bool = False
    positions: int | None = None
    final_norm: bool = True
    causal: bool = True
    needs: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    outside: Callable[[Keys], int] | None = None
    in_layer: int = 0
    modules: Mapping[str, str] = field(default_factory=dict)


_FIELDS = {item.name: item for item in dataclasses.fields(Reader)}
_MAPPINGS = ("defaults", "names", "needs", "modules")


def reader_of(rows: Mapping[str, Mapping[str, Any]], kind: str) -> Reader:
    """Return the reader of a row, which adds its fields to those of the row that it is `like`.

    Raises
    ------
    UnknownEntryError
        If a row, field or rule with this name does not exist.
    """
    row = _known(rows, kind, "row of architectures.toml")
    parent = reader_of(rows, row["like"]) if "like" in row else Reader()
    values: dict[str, Any] = {}
    for name, value in row.items():
        if name not in ("like", "also"):
            _known(_FIELDS, name, f"architectures.toml, {kind}: field")
            values[name] = _value(name, value)
    for name in _MAPPINGS:
        values[name] = {**getattr(parent, name), **values.get(name, {})}
    return dataclasses.replace(parent, **values)


def _value(name: str, value: Any) -> Any:
    """Return the value of a field: a name of a rule becomes its function, and false means none."""
    if name in ("names", "needs"):
        return {key: tuple(listed) for key, listed in value.items()}
    if value is False and _FIELDS[name].default is None:
        return None
    if name not in RULES or isinstance(value, int):
        return value
    if isinstance(value, str):
        return _known(RULES[name], value, f"architectures.toml: rule of {name}")
    settings = dict(value)
    return _known(RULES[name], settings.pop("rule"), f"architectures.toml: rule of {name}")(
        **settings
    )


def _known(entries: Mapping[str, Any], name: str, kind: str) -> Any:
    if name not in entries:
        raise UnknownEntryError.build(name, kind, entries)
    return entries[name]


_ROWS = read_toml("architectures.toml")["kinds"]
READERS: Mapping[str, Reader] = {
    name: reader_of(_ROWS, kind)
    for kind, row in _ROWS.items()
    for name in (kind, *row.get("also", ()))
}
"""Kinds of models that can be read."""
REFUSED: Mapping[str, str] = {
    kind: group["reason"]
    for group in read_toml("architectures.toml")["refused"]
    for kind in group["kinds"]
}
"""Kinds of models that cannot be expressed, and the reason."""
