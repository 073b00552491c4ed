"""The fullest pipeline stage of a server: its layers, weights and cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, is_zero, maximum, tabulated, where
from mlsysim.solvers.runs import layer_runs, layers_within
from mlsysim.solvers.serving.inputs import ServingInputs
from mlsysim.solvers.work import expert_bytes, stated_bytes, sum_of

__all__ = ["fullest", "most_layers", "stage_weights"]


def fullest(i: ServingInputs, size: Callable[[list[Value], Value], Value]) -> Value:
    """Return the largest size of a stage.

    `size` takes the layers of each group on a stage, and 1 if the stage is the first or the last.
    """
    groups = i.model.groups
    positions = tuple(group.at for group in groups)

    def stage_layers(pp: float, *sizes: float) -> tuple[float, ...]:
        return _stage_layers(positions, pp, sizes)

    sizes = [part for group in groups for part in (group.first, group.count)]
    every = tabulated(stage_layers, i.pp_size, *sizes)
    n = len(groups)
    stages = [every[start : start + n] for start in range(0, len(every), n)]
    largest = maximum(size(stages[0], 1), size(stages[1], 1))
    for layers in stages[2:]:
        largest = maximum(largest, size(layers, 0))
    return largest


@lru_cache(maxsize=1024)
def _stage_layers(
    positions: tuple[tuple[int, ...] | None, ...], pp: float, sizes: tuple[float, ...]
) -> tuple[float, ...]:
    """Return the layers of each group on the first stage, on the last, and on unlike ones between.

    If layers do not divide, the stages before the last have one more each (vLLM,
    distributed/utils.py, get_pp_indices).
    """
    runs = layer_runs(positions, sizes)
    if not 1 <= pp <= runs[-1].end:  # a rule refuses such a server
        pp = 1
    each, more = divmod(runs[-1].end, int(pp))
    counts, start = [], 0
    for stage in range(int(pp)):
        end = start + each + (pp - 1 - more <= stage < pp - 1)
        layers = layers_within(runs, start, end - start, len(positions))
        counts.append(tuple(map(float, layers)))
        start = end
    between = dict.fromkeys(counts[1:-1])
    return tuple(count for stage in (counts[0], counts[-1], *between) for count in stage)


def most_layers(i: ServingInputs) -> Value:
    """Return the share of the model's layers that the longest stage has."""
    if is_zero(i.pp_size - 1):
        return 1 / i.pp_size
    longest = fullest(i, lambda layers, end: sum_of(layers))
    return where(i.pp_size > 1, longest / i.model.layers, 1)


def stage_weights(i: ServingInputs, weights: Value) -> Value:
    """Return the weights on a device of the fullest stage, of all weights of the model.

    Ranks share the experts and replicate the rest. The first stage has the embedding, and the last
    the output table.
    """
    model, stored = i.model, i.weight_precision
    per_expert = expert_bytes(model, stored) * (1 + i.redundant_experts / model.experts)
    experts = [group.routed_parameters(model.hidden_dim) for group in model.groups]
    all_experts = sum_of([group.count * n for group, n in zip(model.groups, experts, strict=True)])
    common = weights - expert_bytes(model, stored) * all_experts
    tables = f.embedding_parameters(model.vocab_size, model.hidden_dim, model.embedding_tables)
    wide = stored.training_bytes
    tables = tables * (
        wide if model.formats is None else stated_bytes(model.formats.embeddings, wide)
    )
    parts = [group.unrouted_parameters(model.hidden_dim) for group in model.groups]
    every = sum_of([group.count * part for group, part in zip(model.groups, parts, strict=True)])

    def size(layers: list[Value], end: Value) -> Value:
        held = sum_of([count * part for count, part in zip(layers, parts, strict=True)]) / every
        table = where(i.pp_size > 1, end * tables / model.embedding_tables, tables)
        dense = ((common - tables) * held + table) / i.tp_size
        own = sum_of([count * part for count, part in zip(layers, experts, strict=True)])
        return dense + per_expert * own / i.stage_devices

    return fullest(i, size)
