"""Which layers are on which pipeline stage, and which stages may need the most memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, first_known, is_known, maximum, minimum, tabulated, where
from mlsysim.core.types.layers import LayerGroup
from mlsysim.solvers.training.inputs import TrainingInputs
from mlsysim.solvers.work import LayerRun, layer_runs, layers_within, longer_between


@dataclass(frozen=True)
class Layout:
    """Layers of the pipeline's stages."""

    longest: Value
    first: Value
    last: Value


def stated_stages(i: TrainingInputs) -> Value:
    """Return how many of the two end stages have a stated number of layers."""
    ends = (i.first_stage_layers, i.last_stage_layers)
    return where(is_known(ends[0]), 1, 0) + where(is_known(ends[1]), 1, 0)


def unstated_layers(i: TrainingInputs) -> Value:
    """Return the layers that the stages without a stated number share."""
    first, last = i.first_stage_layers, i.last_stage_layers
    return i.model.layers - first_known(first, 0) - first_known(last, 0)


def stage_layout(i: TrainingInputs) -> Layout:
    """Return the layers of the stages: as stated for the end stages, and equal otherwise.

    If layers do not divide, the last stage has fewer, and then the first.
    """
    first, last, v = i.first_stage_layers, i.last_stage_layers, i.virtual_stages
    stated, rest = stated_stages(i), unstated_layers(i)
    others = maximum(1, i.pp_size - stated)
    longest = f.layers_per_stage(rest, others, v)
    spare = others * longest - rest
    last = first_known(last, f.end_layers(longest, v, spare))
    spare = where(i.last_stage_layers == last, spare, spare - (longest - last))
    first = first_known(first, minimum(f.end_layers(longest, v, spare), i.model.layers - last))
    single = i.pp_size == 1
    return Layout(
        longest=maximum(where(i.pp_size > stated, longest, 0), maximum(first, last)),
        first=where(single, last, first),
        last=last,
    )


@dataclass(frozen=True)
class Between:
    """A stage between the first and the last one."""

    index: Value
    """Its position, counted from 0."""
    layers: list[Value]
    """Its layers of each group."""
    mirrored: list[Value]
    """Layers of each group on its mirror image, if microbatches enter at both ends."""


@dataclass(frozen=True)
class Arrangement:
    """Layers of each group on the first and the last stage, and on those between to compare."""

    first: list[Value]
    last: list[Value]
    between: list[Between]


def arranged(
    groups: tuple[LayerGroup, ...],
    pp_size: Value,
    virtual_stages: Value,
    first: Value,
    last: Value,
    bidirectional: Value,
) -> Arrangement:
    """Return the layers of each stage. The end stages have `first` and `last`.

    Stages between that cannot need more memory than another one are left out. If rows of a sweep
    have different numbers of them, the missing ones have no layers.
    """
    positions = tuple(group.at for group in groups)

    def stage_layers(
        pp: float, chunks: float, first: float, last: float, both: float, *sizes: float
    ) -> tuple[float, ...]:
        return _stage_layers(positions, pp, chunks, first, last, both, sizes)

    sizes = [size for group in groups for size in (group.first, group.count)]
    every = tabulated(stage_layers, pp_size, virtual_stages, first, last, bidirectional, *sizes)
    n = len(groups)
    return Arrangement(
        first=every[:n],
        last=every[n : 2 * n],
        between=[
            Between(every[at], every[at + 1 : at + 1 + n], every[at + 1 + n : at + 1 + 2 * n])
            for at in range(2 * n, len(every), 2 * n + 1)
        ],
    )


@lru_cache(maxsize=4096)
def _stage_layers(
    positions: tuple[tuple[int, ...] | None, ...],
    pp: float,
    chunks: float,
    first: float,
    last: float,
    both: float,
    sizes: tuple[float, ...],
) -> tuple[float, ...]:
    """Return the layers of each group on the first and last stage, then those between."""
    runs = layer_runs(positions, sizes)
    n = len(positions)
    if pp == 1 or not 1 < pp * chunks <= runs[-1].end + 2:  # a rule refuses such a pipeline
        whole = [float(sum(run.length for run in runs if run.kind == k)) for k in range(n)]
        return (*whole, *whole)
    stages = _stages(runs, n, int(pp), int(chunks), int(first), int(last))
    # A stage holds at least as many microbatches as those after it.
    chosen = _both_ends(stages) if both else longer_between(stages)
    answer = [*stages[0], *stages[-1]]
    for index in chosen:
        answer += [index, *stages[index], *stages[-1 - index]]
    return tuple(float(value) for value in answer)


def _stages(
    runs: list[LayerRun], groups: int, pp: int, chunks: int, first: int, last: int
) -> list[tuple[int, ...]]:
    """Return how many layers of each group are on each stage.

    Chunks follow each other from stage to stage, as often as a stage has chunks. Those between the
    ends share the remaining layers, and the later ones have fewer if they do not divide.
    """
    between = (pp - 2) * chunks
    rest = max(0, runs[-1].end - first - last)
    longest = ceil(rest / between) if between else ceil(max(first, last) / chunks)
    longer = rest - between * (longest - 1)  # chunks with the longest number of layers
    ends = {0: _end(first, chunks, longest), pp - 1: _end(last, chunks, longest)[::-1]}
    counts = [[0] * groups for _ in range(pp)]
    start = seen = 0
    for chunk in range(pp * chunks):
        turn, stage = divmod(chunk, pp)
        if stage in ends:
            size = ends[stage][turn]
        else:
            size = longest if seen < longer else longest - 1
            seen += 1
        for kind, count in enumerate(layers_within(runs, start, size, groups)):
            counts[stage][kind] += count
        start += size
    return [tuple(count) for count in counts]


def _end(layers: int, chunks: int, longest: int) -> list[int]:
    """Return the layers of the chunks of an end stage, the outermost chunk first.

    If they do not divide, the outermost chunk has fewer: it also has the embedding or the output.
    """
    short = layers - (chunks - 1) * longest
    if 0 <= short <= longest:
        return [short, *[longest] * (chunks - 1)]
    each = ceil(layers / chunks)
    return [layers - (chunks - 1) * each, *[each] * (chunks - 1)]


def _both_ends(stages: list[tuple[int, ...]]) -> list[int]:
    """Return the first and the last of the equal devices, each with a stage and its mirror image.

    Between two equal devices, memory changes in proportion to the position.
    """
    devices: dict[tuple[tuple[int, ...], ...], list[int]] = {}
    for index in range(1, len(stages) // 2):
        devices.setdefault((stages[index], stages[-1 - index]), []).append(index)
    return sorted({end for equal in devices.values() for end in (equal[0], equal[-1])})
