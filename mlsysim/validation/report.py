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
from mlsysim.core.result import Result
from mlsysim.core.table import Column, Table
from mlsysim.core.units import Q_, is_quantity
from mlsysim.validation.rows import Row, Skip


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
    field : str
        Field of the solver's result that was measured; empty if it was computed in another way.
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
    field: str = ""

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


Edges = tuple[float | None, float | None]
"""The edges of a band around a prediction, in its unit, if there is a band."""


def in_unit(result: Result, field: str, unit: str) -> Any:
    """Return a field of a result as a number in a unit; `None` if it has no value."""
    value = result.get(field)
    if value is None:
        return None
    if not is_quantity(value):
        declared = type(result).__dataclass_fields__[field].metadata["unit"]
        if unit in ("", declared):
            return float(value)
        value = Q_(value, declared)
    return float(value.to(unit).magnitude)


def comparison(
    row: Row,
    result: Result,
    field: str,
    unit: str,
    measured: float,
    *,
    quantity: str = "",
    group: str = "",
    note: str = "",
    band: Edges | None = None,
) -> Comparison:
    """Compare a measured value with a field of a result that has one, and with its band.

    Both are in `unit`. The name of the `quantity`, the `group` and the `band` are those of the
    field and the row, unless others are given; a `note` says what the prediction assumes.
    """
    predicted = in_unit(result, field, unit)
    if predicted is None:
        raise Skip(f"{field} has no prediction")
    low, high = band or band_of(result, field, unit)
    return Comparison(
        id=row.name,
        group=group or row.group,
        split=row.text("split"),
        quantity=quantity or (f"{field} ({unit})" if unit else field),
        measured=measured,
        predicted=predicted,
        low=low,
        high=high,
        note=note,
        field=field,
    )


_BANDS = {"step_latency_total": "step_latency"}
"""Fields whose band has another name."""


def band_of(result: Result, field: str, unit: str) -> Edges:
    """Return the edges of a field's own band in a unit; `None` without a band."""
    name = _BANDS.get(field, field)
    return in_unit(result, f"{name}_low", unit), in_unit(result, f"{name}_high", unit)


def combined_band(result: Result, field: str, unit: str) -> Edges:
    """Return the band of a field: its own, or one combined from those of the times in it.

    The latency of a request has the edges of its first token and of the tokens after it. A rate of
    tokens or requests has those of the total rate, or else of the time between tokens.
    """
    own = band_of(result, field, unit)
    if own[0] is not None or field not in (*_RATES, "latency"):
        return own
    first, between = band_of(result, "ttft", "s"), band_of(result, "itl", "s")
    if None in between or (field == "latency" and None in first):
        return None, None
    usual = in_unit(result, "itl", "s")
    if field == "latency":
        later = in_unit(result, "latency", "s") - in_unit(result, "ttft", "s")
        edges = (start + later * each / usual for start, each in zip(first, between, strict=True))
        low, high = (Q_(edge, "s").to(unit).magnitude for edge in edges)
        return low, high
    rate, total = in_unit(result, field, unit), in_unit(result, "output_throughput", "token/s")
    low, high = band_of(result, "output_throughput", "token/s")
    if low is None:
        return rate * usual / between[1], rate * usual / between[0]
    return rate * low / total, rate * high / total


_RATES = ("decode_throughput", "output_throughput", "request_throughput", "throughput_per_device")
"""Fields that fall as the time between tokens grows."""


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
        families: dict[str, list[Comparison]] = {}
        for row in self.comparisons:
            families.setdefault(row.group, []).append(row)
        return {name: Statistics.of(rows) for name, rows in families.items()}

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
            "groups": {name: errors.to_dict() for name, errors in self.groups.items()},
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
