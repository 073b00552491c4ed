"""How much do three runs of a cluster help? ``python -m research.transfer``.

For every family and device with at least eight usable rows marked ``calibrate``, draw three of
them, calibrate on those, and predict the others. If there are at most a hundred choices of three,
it takes all of them, and otherwise a hundred, drawn with a fixed seed. Writes
``research/measurements/three_runs.csv``. Rows marked ``check`` are never read.

The registry's constants were not fitted to a user's cluster, so each family starts from constants
that are fitted without it. This takes minutes; ``--registry`` starts from the registry instead and
does not write anything.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from mlsysim.core.fields import units_of
from mlsysim.core.types import Software
from mlsysim.core.units import Q_
from mlsysim.fitting.calibrate import pool_of
from mlsysim.fitting.constants import constants_of
from mlsysim.fitting.posterior import fit_without_outliers, log_times
from mlsysim.fitting.runs import Run, base_of, float_of, run_of, runs_of
from mlsysim.registry.calibration.training import Frameworks, Machines
from mlsysim.validation import rows as tidy
from research.families import FAMILIES, family_of
from research.fits.training import DATA, SWITCHED, free, load, solve
from research.readers import training
from research.readers.aliases import find_accelerator
from research.rows import Row, read_rows, usable, write_table

FEWEST, DRAWN = 8, 3
TARGET = DATA / "three_runs.csv"


@dataclass
class Score:
    """Errors of the runs that a calibration did not see, over all choices of those that it did."""

    family: str
    device: str
    runs: int
    choices: int
    mape_before: float
    mape_after: float
    bias_before: float
    bias_after: float
    coverage: float


def families() -> Iterator[tuple[str, str, list[Row]]]:
    """Yield the rows of each family on each device."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in read_rows(DATA / "training.csv"):
        device = find_accelerator(row.text("hardware"))
        family = family_of(row.group)
        if row.text("split") == "calibrate" and family is not None and device is not None:
            found[family, device.name].append(row)
    for (family, name), rows in sorted(found.items()):
        yield family, name, rows


@cache
def _fitted() -> dict[tuple[str, str], float]:
    """Return constants that are fitted to all families: those of all but one are not far away."""
    return solve(load("calibrate"))


@cache
def _fitted_without(family: str) -> dict[tuple[str, str], float]:
    """Return constants that are fitted to the other families; what these cannot tell is the prior.

    They are keyed by machine or framework, and field.
    """
    every = load("calibrate")
    own = np.isin(every.group.astype(str), FAMILIES[family])
    fitted = solve(every.take(~own), _fitted())
    unknown = {key: prior for key, (prior, *_) in free(every.take(own)).items()}
    return unknown | fitted


def without(family: str, runs: Sequence[Run]) -> list[Run]:
    """Return runs with constants that are fitted to the other families."""
    fitted = _fitted_without(family)
    catalogs: tuple[Any, ...] = (Machines, Frameworks)
    keys = {row.name: key for catalog in catalogs for key, row in catalog.items()}
    units = {field: unit for field, unit, plain in units_of(Software) if not plain}

    def changed(row: Any) -> Any:
        """Return a record with the constants of its key; what a recipe switched off stays off."""
        return replace(
            row,
            **{
                field: Q_(value, units[field]) if field in units else value
                for (owner, field), value in fitted.items()
                if owner == keys[row.name]
                and not (field in SWITCHED and float_of(getattr(row, field)) == 0)
            },
        )

    made = []
    for run in runs:
        known = run.admitted.calibration
        own = replace(known, machine=changed(known.machine), software=changed(known.software))
        made.append(run_of(run.id, run.arguments | {"calibration": own}, run.measured))
    return made


def choices(count: int, most: int) -> list[tuple[int, ...]]:
    """Return all ways to choose three of so many, or a seeded sample of them."""
    if math.comb(count, DRAWN) <= most:
        return list(itertools.combinations(range(count), DRAWN))
    draw = random.Random(f"{count} choose {DRAWN}")
    return [tuple(sorted(draw.sample(range(count), DRAWN))) for _ in range(most)]


def score(family: str, device: str, runs: Sequence[Run], most: int) -> Score:
    """Calibrate on three runs at a time, and predict the others."""
    before, after, inside = [], [], []
    drawn = choices(len(runs), most)
    for chosen in drawn:
        own = [runs[place] for place in chosen]
        base = base_of(own)
        constants = constants_of(base, [run.admitted for run in runs])
        kept, found, _ = fit_without_outliers(own, constants, base)
        reach = pool_of(kept, found).half_band
        rest = [run for place, run in enumerate(runs) if place not in chosen]
        for run, log in zip(rest, log_times(rest, constants, found.logs[None])[:, 0], strict=True):
            before.append(run.predicted / run.measured - 1)
            after.append(math.exp(log) / run.measured - 1)
            inside.append(abs(log - math.log(run.measured)) <= reach)
    return Score(
        family,
        device,
        len(runs),
        len(drawn),
        mape_before=100 * statistics.fmean(map(abs, before)),
        mape_after=100 * statistics.fmean(map(abs, after)),
        bias_before=100 * statistics.fmean(before),
        bias_after=100 * statistics.fmean(after),
        coverage=100 * statistics.fmean(inside),
    )


def main() -> None:
    """Score every family, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--choices", type=int, default=100, help="choices of three per family")
    parser.add_argument("--registry", action="store_true", help="start from the registry's rows")
    options = parser.parse_args()
    scores = []
    for family, device, rows in families():
        stated = [tidy.Row.of(run) for _, run in usable(rows, training.tidy)]
        runs, _ = runs_of(stated, None)
        if len(runs) < FEWEST:
            continue
        if not options.registry:
            runs = without(family, runs)
        found = score(family, device, runs, options.choices)
        scores.append(found)
        print(
            f"{family:24s} {device:32s} n={found.runs:4d} MAPE {found.mape_before:5.1f} -> "
            f"{found.mape_after:5.1f} bias {found.bias_before:+6.1f} -> {found.bias_after:+6.1f} "
            f"coverage {found.coverage:5.1f}",
            flush=True,
        )
    if options.registry:
        return
    write_table(
        TARGET,
        [
            {name: f"{v:.1f}" if isinstance(v, float) else v for name, v in vars(found).items()}
            for found in scores
        ],
    )


if __name__ == "__main__":
    main()
