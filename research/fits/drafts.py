"""Fit SGLang's host time per drafted token: ``python -m research.fits.drafts``.

Uses the `calibrate` rows of ``research/measurements/serving_2.csv`` that are known to have used
drafts. Their draft and acceptance lengths are those of `research.readers.recipes`, which are
published, but not for these runs. Prints the time with the smallest mean error of times between
tokens, which is the one in ``mlsysim/registry/data/serving.toml``, and the errors without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import fmean
from typing import Any

from scipy.optimize import minimize_scalar

from mlsysim.core.units import Q_
from mlsysim.solvers import DisaggregatedSolver, ServingSolver
from research import MEASUREMENTS
from research.readers.recipes import drafts_of
from research.readers.serving_runs import arguments
from research.rows import Row, read_rows

DATA = MEASUREMENTS / "serving_2.csv"
MOST = 500.0
"""Longest time that is tried, in microseconds."""


def runs(engine: str) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Yield runs of an engine to fit to, with the solver's arguments."""
    for row in read_rows(DATA):
        if row.text("split") == "calibrate" and row.text("engine") == engine:
            drafts = drafts_of(row)
            if drafts is not None and drafts.certain:
                yield row, arguments(row)


def error(found: list[tuple[Row, dict[str, Any]]], overhead: float) -> float:
    """Return the mean error of the time between tokens."""

    def one(row: Row, given: dict[str, Any]) -> float:
        solver: Any = DisaggregatedSolver if "decode_workers" in given else ServingSolver
        constants = replace(given["calibration"], draft_overhead=Q_(overhead, "us"))
        itl = solver.solve(**{**given, "calibration": constants}).itl.to("ms").magnitude
        return abs(float(itl) / row.measured("tpot_mean_ms") - 1)

    return fmean(one(*run) for run in found)


def main() -> None:
    """Print the best time and the errors, for the engines that drafted."""
    for engine in ("sglang", "trtllm"):
        found = list(runs(engine))
        best = minimize_scalar(lambda x, f=found: error(f, x), bounds=(0, MOST), method="bounded")
        print(
            f"{engine}: {len(found)} runs, draft_overhead = {best.x:.0f} us, mean error "
            f"{100 * best.fun:.1f}% ({100 * error(found, 0):.1f}% without)"
        )


if __name__ == "__main__":
    main()
