"""Adjust published constants to the runs of one cluster."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlsysim.core.errors import ConfigError
from mlsysim.core.fields import units_of
from mlsysim.core.types import Calibration, Covered, Machine, Software
from mlsysim.fitting.constants import amounts, constants_of
from mlsysim.fitting.outliers import contradictions, fit_without_outliers
from mlsysim.fitting.posterior import Posterior, log_times
from mlsysim.fitting.proposals import Pool, pool_of
from mlsysim.fitting.runs import Run, base_of, check_alike, runs_of
from mlsysim.scenario.cluster import ClusterCalibration, assemble
from mlsysim.scenario.names import named_calibration
from mlsysim.solvers.training.reasons import choice_of
from mlsysim.validation.rows import Row, rows_of

__all__ = ["MAX_ROWS", "calibrate"]

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
    after = log_times(runs, found.constants, found.logs[None])[:, 0]
    data: dict[str, Any] = {
        "name": name,
        "device": runs[0].admitted.device.name,
        "base": {"machine": base.machine.name, "software": base.software.name},
        "band": _band(pool.half_band),
        "unseen_band": _wide_band(base, _band(pool.half_band)),
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
            "band": _band(pool.best.half_band),
        }
    factors: dict[str, dict[str, float]] = {"machine": {}, "software": {}}
    for constant, log in zip(found.constants, found.logs, strict=True):
        factors[constant.part] |= dict.fromkeys(constant.fields, math.exp(log))
    data["machine"] = _multiplied(base.machine, factors["machine"])
    data["software"] = {"release": base.software.release} | _multiplied(
        base.software, factors["software"]
    )
    return data


def _wide_band(base: Calibration, narrow: Mapping[str, float]) -> dict[str, float | None]:
    """Return the band of plans unlike the runs: that of the base, but no narrower than our own."""
    low, high = base.unseen_band_low, base.unseen_band_high
    return {
        "low": None if low is None else min(low, narrow["low"]),
        "high": None if high is None else max(high, narrow["high"]),
    }


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


def _band(half: float) -> dict[str, float]:
    return {"low": _short(math.exp(-half)), "high": _short(math.exp(half))}


def _short(value: float) -> float:
    return float(f"{value:.4g}")
