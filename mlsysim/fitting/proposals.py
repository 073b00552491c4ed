"""Further runs: plans similar to the measured ones, and which one to measure next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlsysim.core.errors import MLSysError
from mlsysim.fitting.constants import SPREAD
from mlsysim.fitting.posterior import Posterior, slopes
from mlsysim.fitting.runs import Run, run_of
from mlsysim.solvers import DistributedSolver

__all__ = ["Pool", "Proposal", "pool_of"]

_MOST_PLANS = 12
"""Measured plans that are varied, from the first to the last in equal steps."""
_FORMATS = ("bf16", "fp8")


@dataclass(frozen=True)
class Proposal:
    """A run worth measuring: a measured one with some arguments changed."""

    like: str
    changes: dict[str, Any]
    half_band: float
    """Half of the band, in logarithms, after the measurement."""


@dataclass(frozen=True)
class Pool:
    """Measured plans and their neighbors, over which the band is pooled.

    Attributes
    ----------
    half_band : float
        Half of the band, in logarithms.
    best : Proposal or None
        The plan that narrows it most; `None` if no other plan is feasible.
    """

    half_band: float
    best: Proposal | None


def pool_of(runs: Sequence[Run], found: Posterior) -> Pool:
    """Pool the variance over measured plans and their neighbors, and propose one neighbor.

    A further run adds one row to the posterior, so the effect of each candidate on all others is
    known in advance.
    """
    plans = list(_neighbours(runs))
    everything = [*runs, *(plan for plan, _, _ in plans)]
    _, slope = slopes(everything, found.constants, found.x)
    variance = found.variance(slope)
    now = found.half_band(float(variance.mean()))
    if not plans:
        return Pool(now, None)
    shared = slope @ found.covariance @ slope[len(runs) :].T
    gain = (shared**2 / (variance[len(runs) :] + SPREAD**2)).mean(axis=0)
    place = int(np.argmax(gain))
    _, like, changes = plans[place]
    then = found.half_band(float(variance.mean() - gain[place]))
    return Pool(now, Proposal(like, changes, then))


def _neighbours(runs: Sequence[Run]) -> Iterator[tuple[Run, str, dict[str, Any]]]:
    """Yield plans that differ from a measured one in a lever or two, and fit the memory."""
    known = {_key(run) for run in runs}
    step = max(1, math.ceil(len(runs) / _MOST_PLANS))
    for run in runs[::step]:
        for changes in _changes(run):
            arguments = run.arguments | changes
            if "nodes" in changes:
                fleet = replace(run.arguments["fleet"], count=changes["nodes"])
                arguments = {k: v for k, v in arguments.items() if k != "nodes"} | {"fleet": fleet}
            try:
                plan = run_of("", arguments, math.nan)
                if _key(plan) in known or not DistributedSolver.solve(**arguments).feasible:
                    continue
            except MLSysError:
                continue
            known.add(_key(plan))
            yield plan, run.id, changes


def _key(run: Run) -> tuple[float, ...]:
    """Return a key that distinguishes plans."""
    return float(f"{run.predicted:.9e}"), float(f"{run.busy:.9e}")


def _changes(run: Run) -> Iterator[dict[str, Any]]:
    """Yield other values of a plan's levers; a microbatch keeps its size unless the batch shrinks.

    The size of a microbatch stays the same, so if a lever changes, the number of microbatches
    follows.
    """
    i, fleet = run.admitted, run.arguments["fleet"]
    count, batch, tp = int(i.microbatch_count), int(i.batch_size), int(i.tp_size)
    seq_len = int(i.seq_len)
    for longer in (2, 4):
        yield {"seq_len": seq_len * longer}
        if seq_len % longer == 0:
            yield {"seq_len": seq_len // longer}
    for larger in (2, 4):
        yield {"batch_size": batch * larger, "microbatch_count": count * larger}
        if count % larger == 0:
            yield {"batch_size": batch // larger, "microbatch_count": count // larger}
    if tp * 2 <= fleet.node.accelerators_per_node:
        yield {"tp_size": tp * 2, "microbatch_count": count * 2}
    if tp % 2 == 0 and count % 2 == 0:
        yield {"tp_size": tp // 2, "microbatch_count": count // 2}
    for nodes, scaled in ((fleet.count * 2, batch * 2), (fleet.count // 2, batch // 2)):
        if nodes and (batch % 2 == 0 or nodes > fleet.count):
            yield {"nodes": nodes, "batch_size": scaled}
    for name in _FORMATS:
        if name != i.precision.name:
            yield {"precision": name}
