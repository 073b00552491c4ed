"""The layers of a stack in order, as runs of one group, so that its depth costs nothing."""

from __future__ import annotations

from typing import NamedTuple


class LayerRun(NamedTuple):
    """Consecutive layers of one group."""

    start: int
    length: int
    kind: int
    """Index of the group."""

    @property
    def end(self) -> int:
        """Position after the last layer."""
        return self.start + self.length


def layer_runs(
    positions: tuple[tuple[int, ...] | None, ...], sizes: tuple[float, ...]
) -> list[LayerRun]:
    """Return the runs of a stack from the positions of each group, or its start and its length."""
    placed: list[tuple[int, int, int]] = []
    for kind, at in enumerate(positions):
        start, count = int(sizes[2 * kind]), int(sizes[2 * kind + 1])
        placed += [(spot, 1, kind) for spot in at] if at else [(start, count, kind)]
    runs: list[LayerRun] = []
    for _, length, kind in sorted(placed):
        runs.append(LayerRun(runs[-1].end if runs else 0, length, kind))
    return runs


def layers_within(runs: list[LayerRun], start: int, size: int, groups: int) -> list[int]:
    """Return how many of the layers from `start` on belong to each group."""
    counts = [0] * groups
    for run in runs:
        counts[run.kind] += max(0, min(run.end, start + size) - max(run.start, start))
    return counts
