"""Fit the constants of single kernels: ``python -m research.fits.kernels``.

Reads the measured kernels in ``research/measurements/kernels.csv``. Only rows marked ``calibrate``
are fitted; rows marked ``check`` are held out, and their errors are reported. The fit evaluates the
formulas on arrays of all rows. Writes the constants to ``kernel_products.toml`` and
``kernel_links.toml`` in ``mlsysim/registry/data``, and prints the errors on both splits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from research import MEASUREMENTS
from research.fits.files import write_rows
from research.readers.kernels import (
    Collective,
    Product,
    collective_of,
    collective_time,
    product_of,
)
from research.rows import Row, read_rows, usable

Floats = NDArray[np.float64]
DATA = MEASUREMENTS / "kernels.csv"
# Where a fit starts; times in seconds.
PRODUCT_START = {"efficiency": 0.7, "memory_efficiency": 0.8, "overhead": 5e-6}
LINK_START = {
    "link_efficiency": 0.75,
    "start": 5e-6,
    "hop_latency": 1e-6,
    "segment_time": 3e-6,
    "switch_efficiency": 0.65,
    "switch_start": 20e-6,
}
OUTLIER = 0.1
"""Errors well above this, in log, count by their size and not by its square."""


@dataclass(frozen=True)
class Fit:
    """Constants of one row of the registry, and what they were fitted to."""

    key: str
    constants: dict[str, float]
    rows: int
    errors: Floats
    """On the rows marked ``check``, in percent."""


def _gather(items: Sequence[Any]) -> dict[str, Any]:
    """Return one array per numeric field of records of one kind, and the words of the first."""
    names = [item.name for item in fields(items[0])]
    columns = {name: [getattr(item, name) for item in items] for name in names}
    return {
        name: values[0] if isinstance(values[0], str) else np.array(values, dtype=float)
        for name, values in columns.items()
    }


def _fit(
    key: str,
    start: dict[str, float],
    calibrate: Callable[[dict[str, float]], Floats],
    check: Callable[[dict[str, float]], Floats],
    fixed: dict[str, float],
) -> Fit:
    """Fit the logarithms of constants; `calibrate` and `check` give log predicted over measured."""
    names = list(start)

    def constants(x: Floats) -> dict[str, float]:
        return fixed | dict(zip(names, np.exp(x).tolist(), strict=True))

    found = least_squares(
        lambda x: calibrate(constants(x)),
        np.log(list(start.values())),
        loss="soft_l1",
        f_scale=OUTLIER,
    )
    best = constants(found.x)
    return Fit(key, best, len(calibrate(best)), 100 * (np.exp(check(best)) - 1))


def _rows(group: str) -> list[Row]:
    return [row for row in read_rows(DATA) if row.group == group]


def product_fits() -> list[Fit]:
    """Fit matrix products: one row per device and number format."""
    found: dict[str, dict[str, list[tuple[Product, float]]]] = {}
    for row in _rows("gemm_sweep"):
        product = product_of(row)
        key = f"{product.chip}_{product.precision}"
        splits = found.setdefault(key, {"calibrate": [], "check": []})
        splits[row.text("split")].append((product, 1e-3 * (row.number("value") or 0)))

    def errors(pairs: list[tuple[Product, float]]) -> Callable[[dict[str, float]], Floats]:
        every = Product(**_gather([product for product, _ in pairs]))
        times = np.array([time for _, time in pairs])
        return lambda constants: np.log(every.time(constants) / times)

    return [
        _fit(key, PRODUCT_START, errors(splits["calibrate"]), errors(splits["check"]), {})
        for key, splits in sorted(found.items())
    ]


def _measured(row: Row, message: Collective) -> float:
    """Return a measured time in seconds; bus bandwidth is the bytes that a link carried."""
    value = row.number("value") or 0
    if row.text("quantity") == "latency":
        return 1e-3 * value
    passes = 2 if message.operation == "all_reduce" else 1
    carried = passes * (message.ranks - 1) / message.ranks * message.message_size
    return float(carried) / (1e9 * value)


def link_fits() -> list[Fit]:
    """Fit collectives: one row per generation of links."""
    found: dict[str, dict[str, list[tuple[Collective, float]]]] = {}
    for row, message in usable(_rows("nccl_latency_sweep") + _rows("nccl_busbw"), collective_of):
        splits = found.setdefault(message.link, {"calibrate": [], "check": []})
        splits[row.text("split")].append((message, _measured(row, message)))

    def errors(pairs: list[tuple[Collective, float]]) -> Callable[[dict[str, float]], Floats]:
        kinds: dict[tuple[str, str], list[tuple[Collective, float]]] = {}
        for pair in pairs:
            kinds.setdefault((pair[0].operation, pair[0].algorithm), []).append(pair)
        parts = [
            (Collective(**_gather([m for m, _ in part])), np.array([t for _, t in part]))
            for part in kinds.values()
        ]
        return lambda constants: np.concatenate(
            [np.log(collective_time(every, constants) / times) for every, times in parts]
        )

    fits = []
    for key, splits in sorted(found.items()):
        start, fixed = dict(LINK_START), {}
        if key == "NVLink3":  # its switch does not compute
            fixed = {name: float("nan") for name in start if name.startswith("switch")}
            start = {name: value for name, value in start.items() if name not in fixed}
        fits.append(_fit(key, start, errors(splits["calibrate"]), errors(splits["check"]), fixed))
    return fits


def row_of(fit: Fit) -> dict[str, Any]:
    """Return what a fit determines of a row of the registry, times in microseconds."""
    times = {"overhead", "start", "hop_latency", "segment_time", "switch_start"}
    constants = {
        name: float(f"{1e6 * value if name in times else value:.3g}")
        for name, value in fit.constants.items()
        if value == value
    }
    return {"run_count": fit.rows, "fitted": constants}


def main() -> None:
    """Fit everything, write it, and print the errors."""
    for file, fits in (("kernel_products", product_fits()), ("kernel_links", link_fits())):
        write_rows(f"{file}.toml", {fit.key: row_of(fit) for fit in fits})
        for fit in fits:
            sizes = np.abs(fit.errors)
            mean, median = sizes.mean(), np.median(sizes)
            print(fit.key, row_of(fit))
            print(f"    check: n {len(sizes)}, MAPE {mean:.1f}%, median {median:.1f}")


if __name__ == "__main__":
    main()
