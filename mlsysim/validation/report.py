"""Predictions compared with measurements: errors per family, and skipped rows."""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.files import inert, printable, write_text
from mlsysim.core.table import Column, Table

__all__ = ["Comparison", "Report", "Statistics"]


@dataclass(frozen=True)
class Comparison:
    """One row: the measured value and the predicted one.

    Attributes
    ----------
    id : str
        Name of the row in its table.
    group : str
        Rows over which errors are pooled, with the quantity if a row has several.
    split : str
        ``"calibrate"`` for rows that may be used in a fit, ``"check"`` for held-out rows.
    quantity : str
        What was measured, with its unit, as in ``"step time (s)"``.
    measured : float
        Measured value, in the unit of `quantity`.
    predicted : float
        Predicted value, in the same unit.
    low, high : float or None
        Edges of the band of the prediction; `None` without a band.
    note : str
        What the prediction assumes where the measurement leaves something open; otherwise empty.
    """

    id: str
    group: str
    split: str
    quantity: str
    measured: float
    predicted: float
    low: float | None = None
    high: float | None = None
    note: str = ""

    @property
    def error(self) -> float:
        """Relative error: predicted over measured, minus one."""
        return self.predicted / self.measured - 1

    @property
    def within_band(self) -> bool | None:
        """Whether the measurement is in the band; None without a band."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.measured <= self.high


@dataclass(frozen=True)
class Statistics:
    """Errors of a family of rows, in percent."""

    n: int
    mape: float
    median_ape: float
    bias: float
    within_10: float
    band_coverage: float | None

    @classmethod
    def of(cls, rows: Sequence[Comparison]) -> Statistics:
        """Summarize comparisons."""
        errors = [100 * row.error for row in rows]
        sizes = [abs(error) for error in errors]
        banded = [row.within_band for row in rows if row.within_band is not None]
        return cls(
            n=len(rows),
            mape=statistics.fmean(sizes),
            median_ape=statistics.median(sizes),
            bias=statistics.fmean(errors),
            within_10=100 * sum(size <= 10 + 1e-9 for size in sizes) / len(sizes),
            band_coverage=100 * sum(banded) / len(banded) if banded else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name, rounded to a hundredth of a percent."""
        return {
            name: value if value is None or name == "n" else round(value, 2)
            for name, value in vars(self).items()
        }


class Report:
    """Result of `validate`.

    Attributes
    ----------
    comparisons : list of Comparison
        Rows that could be predicted.
    skipped : list of (str, str)
        Identifier and reason for each row that could not.
    """

    def __init__(
        self, comparisons: Iterable[Comparison], skipped: Iterable[tuple[str, str]]
    ) -> None:
        self.comparisons = list(comparisons)
        self.skipped = list(skipped)

    @property
    def groups(self) -> dict[str, Statistics]:
        """Errors per family."""
        found: dict[str, list[Comparison]] = {}
        for row in self.comparisons:
            found.setdefault(row.group, []).append(row)
        return {name: Statistics.of(rows) for name, rows in found.items()}

    @property
    def pooled(self) -> Statistics | None:
        """Errors over all rows; None if none could be predicted."""
        return Statistics.of(self.comparisons) if self.comparisons else None

    def only(self, split: str) -> Report:
        """Return the part of the report on rows of one split (``"calibrate"``, ``"check"``)."""
        return Report([row for row in self.comparisons if row.split == split], self.skipped)

    def table(self) -> Table:
        """Return the families, and all rows pooled, as a table."""
        rows = dict(self.groups)
        if self.pooled is not None:
            rows["all"] = self.pooled
        every = [statistics.to_dict() for statistics in rows.values()]
        columns = {"group": Column(list(rows))}
        for name in ("n", "mape", "median_ape", "bias", "within_10", "band_coverage"):
            unit = "" if name == "n" else "%"
            columns[name] = Column([row[name] for row in every], unit)
        return Table(columns, limit=None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: errors per group, pooled, and skipped rows with reasons."""
        nothing = {"n": 0} | {f.name: None for f in fields(Statistics) if f.name != "n"}
        return {
            "groups": {name: found.to_dict() for name, found in self.groups.items()},
            "pooled": self.pooled.to_dict() if self.pooled else nothing,
            "skipped": [{"id": name, "reason": reason} for name, reason in self.skipped],
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def to_csv(self, path: str | Path) -> None:
        """Write every comparison to a CSV file.

        Text that a spreadsheet would execute as a formula is prefixed with an apostrophe, and
        unprintable characters are escaped. An existing file is replaced only once the new one is
        complete.

        Raises
        ------
        ConfigError
            If the file cannot be written.
        """
        names = ("id", "group", "split", "quantity", "measured", "predicted", "low", "high")
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow([*names, "error_percent", "note"])
        for row in self.comparisons:
            values = [inert(getattr(row, name)) for name in names]
            writer.writerow([*values, f"{100 * row.error:.3f}", inert(row.note)])
        try:
            write_text(path, text.getvalue())
        except (OSError, TypeError, ValueError) as fault:
            raise ConfigError(
                f"path = {shown(path)} cannot be written: {fault}; give the path of a CSV file",
                argument="path",
            ) from fault

    def __str__(self) -> str:
        lines = [str(self.table())]
        notes = {row.id: row.note for row in self.comparisons if row.note}
        if notes:
            lines.append(f"{_rows(len(notes))} predicted with an assumption:")
            lines += _counted(notes.values())
        if self.skipped:
            lines.append(f"{_rows(len(self.skipped))} skipped:")
            lines += _counted(reason for _, reason in self.skipped)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def _rows(count: int) -> str:
    return f"{count} {'row' if count == 1 else 'rows'}"


def _counted(texts: Iterable[str]) -> list[str]:
    """Return a line for each different text, with how often it occurs."""
    return [f"  {count} x {printable(text)}" for text, count in Counter(texts).items()]
