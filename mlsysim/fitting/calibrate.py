"""Adjust published constants to the runs of one cluster."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mlsysim.core.errors import ConfigError, MLSysError
from mlsysim.core.fields import units_of
from mlsysim.core.result import plain
from mlsysim.core.types import Band, Calibration, Covered, Machine, Software
from mlsysim.fitting.constants import SPREAD, amounts, constants_of
from mlsysim.fitting.posterior import (
    Posterior,
    contradictions,
    fit_without_outliers,
    log_times,
    slopes,
)
from mlsysim.fitting.runs import Run, base_of, check_alike, run_of, runs_of
from mlsysim.scenario.cluster import ClusterCalibration, assemble
from mlsysim.scenario.names import named_calibration
from mlsysim.solvers import DistributedSolver
from mlsysim.solvers.training.reasons import choice_of
from mlsysim.validation.rows import Row, rows_of

MAX_ROWS = 300
"""More rows are rejected; twenty runs are enough to calibrate a cluster."""
_LONGEST = 300
"""Most characters of an identifier or of a reason in the artifact."""


def calibrate(
    source: str | Path | Iterable[Row | Mapping[str, Any]] | Any,
    *,
    base: Calibration | str | Path | None = None,
    name: str | None = None,
) -> ClusterCalibration:
    """Fit the constants of training to measured steps of one cluster.

    The fit starts from published constants and adjusts each one within the range of differences
    between machines and frameworks. Three runs are enough for most plans, and even one helps.

    Parameters
    ----------
    source
        A CSV file with a header and one measured run per row; or rows in memory, such as those of
        `csv.DictReader` or a pandas DataFrame. The columns are those of `validate` for training.
    base
        Constants to start from: a calibration, its name in `Calibrations`, or the path of a file
        written by `ClusterCalibration.save`. `None` takes those of the column ``calibration``, or
        else those of the device.
    name
        Name of the cluster; `None` takes the name of the file.

    Returns
    -------
    ClusterCalibration
        Constants to pass as ``calibration=``, with the uncertainty of each, the band of
        predictions, the rejected rows with reasons, and the run to measure next.

    Raises
    ------
    ConfigError
        If `source` cannot be read, has runs of several devices, or has no row that can be used.

    Notes
    -----
    The factors on the constants are the most probable ones. The prior of their logarithms is normal
    around zero with the spread of the fitted population. The logarithm of measured over predicted
    time is normal with a spread of 6%, with exponential tails beyond. The uncertainty of the
    factors is that of the normal distribution with the same curvature (Laplace's approximation).
    The band covers four of five runs of the measured plans and their neighbors; it is wider if the
    runs agree less with each other than the model expects.

    A row is rejected if a cell is missing or wrong, if its arithmetic would need more than the peak
    rate, or if it is far slower than the other runs explain. If two runs contradict each other, it
    is unclear which one is wrong, so both are used and `conflicts` names them.

    The narrow band applies to plans like the runs. `covered` contains the range of their sizes and
    their other choices. Every other plan has the band of unseen systems, and `outside` in its
    result gives the reasons.

    Examples
    --------
    >>> import mlsysim
    >>> from mlsysim import Q_
    >>> runs = [
    ...     dict(
    ...         id="short",
    ...         model="Llama3_8B",
    ...         fleet="DGX_H100",
    ...         batch_size=16,
    ...         microbatch_count=2,
    ...         seq_len=8192,
    ...         precision="bf16",
    ...         zero_stage=3,
    ...         step_latency_total=Q_(3.2, "s"),
    ...     ),
    ...     dict(
    ...         id="typo",
    ...         model="Llama3_8B",
    ...         fleet="DGX_H100",
    ...         batch_size=16,
    ...         microbatch_count=2,
    ...         seq_len=8192,
    ...         precision="bf16",
    ...         zero_stage=3,
    ...         step_latency_total=Q_(0.32, "s"),
    ...     ),
    ... ]
    >>> ours = mlsysim.calibrate(runs, name="ours")
    >>> [row.id for row in ours.rows], [row.id for row in ours.refused]
    (['short'], ['typo'])
    >>> row = ours.rows[0]
    >>> abs(row.after - row.measured) < abs(row.before - row.measured)
    True
    """
    given = None if base is None else named_calibration(base, "base")
    rows = rows_of(source)
    if len(rows) > MAX_ROWS:
        raise ConfigError(
            f"source has {len(rows)} rows: give at most {MAX_ROWS}, such as three to twenty of "
            "different plans",
            argument="source",
        )
    runs, refused = runs_of(rows, given)
    if not runs:
        reasons = "; ".join(f"{row}: {reason}" for row, reason in refused[:3])
        more = f"; and {len(refused) - 3} more" if len(refused) > 3 else ""
        raise ConfigError(
            f"source has no run to calibrate with ({reasons}{more})"
            if refused
            else "source = [] holds no measurements",
            argument="source",
        )
    check_alike(runs, given)
    base = base_of(runs) if given is None else given
    constants = constants_of(base, [run.admitted for run in runs])
    kept, found, slow = fit_without_outliers(runs, constants, base)
    return assemble(
        _artifact(
            name or (Path(source).stem if isinstance(source, str | Path) else "cluster"),
            base,
            kept,
            found,
            pool_of(kept, found),
            [*refused, *slow],
            contradictions(kept, constants),
        )
    )


def _artifact(
    name: str,
    base: Calibration,
    runs: Sequence[Run],
    found: Posterior,
    pool: Pool,
    refused: Sequence[tuple[str, str]],
    conflicts: Sequence[tuple[str, str, float]],
) -> dict[str, Any]:
    """Compose the artifact as plain data, rounded to significant digits."""
    band = _band(pool.half_band)
    after = log_times(runs, found.constants, found.logs[None])[:, 0]
    data: dict[str, Any] = {
        "name": name,
        "device": runs[0].admitted.device.name,
        "base": {"machine": base.machine.name, "software": base.software.name},
        "band": plain(band),
        # The band of plans unlike the runs is that of the base, but no narrower than our own.
        "unseen_band": plain(base.unseen_band.union(band)),
        "covers": _covered(runs),
        "formats": list(base.formats),
        "factors": {
            constant.name: {
                "factor": _short(math.exp(log)),
                "uncertainty": _short(constant.spread * share),
                "prior": _short(constant.spread),
            }
            for constant, log, share in zip(
                found.constants, found.logs, found.shrinkage, strict=True
            )
        },
        "rows": [
            {
                "id": run.id[:_LONGEST],
                "measured": _short(run.measured),
                "before": _short(run.predicted),
                "after": _short(math.exp(log)),
            }
            for run, log in zip(runs, after, strict=True)
        ],
        "refused": [{"id": row[:_LONGEST], "reason": reason[:_LONGEST]} for row, reason in refused],
    }
    if conflicts:
        data["conflicts"] = [
            {"fast": fast[:_LONGEST], "slow": slow[:_LONGEST], "ratio": _short(ratio)}
            for fast, slow, ratio in conflicts
        ]
    if pool.best is not None:
        data["next_run"] = {
            "like": pool.best.like[:_LONGEST],
            "changes": pool.best.changes,
            "band": plain(_band(pool.best.half_band)),
        }
    factors: dict[str, dict[str, float]] = {"machine": {}, "software": {}}
    for constant, log in zip(found.constants, found.logs, strict=True):
        factors[constant.part] |= dict.fromkeys(constant.fields, math.exp(log))
    data["machine"] = _multiplied(base.machine, factors["machine"])
    data["software"] = {"release": base.software.release} | _multiplied(
        base.software, factors["software"]
    )
    return data


def _covered(runs: Sequence[Run]) -> dict[str, Any]:
    """Return which plans the runs covered, as a `Covered` record."""
    found: dict[str, Any] = {}
    for name in Covered.sizes():
        values = [int(getattr(run.admitted, name)) for run in runs]
        found[name] = {"least": min(values), "most": max(values)}
    for name in Covered.choices():
        found[name] = sorted({choice_of(run.admitted, name) for run in runs})
    return found


def _multiplied(row: Machine | Software, factors: Mapping[str, float]) -> dict[str, Any]:
    """Return a record's numbers times factors: plain numbers as such, others with their unit."""
    units = {field: unit for field, unit, plain in units_of(type(row)) if not plain}
    found: dict[str, Any] = {}
    for field, value in amounts(row).items():
        number = float(f"{value * factors.get(field, 1.0):.6g}")
        found[field] = f"{number:.6g} {units[field]}" if field in units else number
    return found


def _band(half: float) -> Band:
    return Band(low=_short(math.exp(-half)), high=_short(math.exp(half)))


def _short(value: float) -> float:
    return float(f"{value:.4g}")


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
    """Measured plans and their neighbors, over which the band is pooled."""

    half_band: float
    best: Proposal | None
    """The plan that narrows the band most; `None` if no other plan is feasible."""


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
