"""Dated predictions of results before their publication, and their scores."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.table import Column, Table
from mlsysim.validation.rows import Row, Skip, read_rows

FROZEN = Path(__file__).parent / "frozen"
"""The built-in forecasts: one file per date, never edited."""


@dataclass(frozen=True)
class Forecast:
    """One frozen prediction.

    Attributes
    ----------
    id : str
        Name that results use to refer to it.
    made : str
        Date of the prediction.
    version : str
        Version of the package that made it.
    asks : str
        The predicted quantity.
    settled_by : str
        The publication that will settle it.
    unit : str
        Unit of the three numbers.
    predicted, low, high : float
        The prediction and its band.
    coverage : float
        Share of such bands that are meant to contain the result.
    basis : str
        Basis of the band.
    """

    id: str
    made: str
    version: str
    asks: str
    settled_by: str
    unit: str
    predicted: float
    low: float
    high: float
    coverage: float
    basis: str


@dataclass(frozen=True)
class Outcome:
    """A forecast with a known result."""

    forecast: Forecast
    measured: float

    @property
    def ratio(self) -> float:
        """Measured over predicted."""
        return self.measured / self.forecast.predicted

    @property
    def within_band(self) -> bool:
        """Whether the band contains the result."""
        return self.forecast.low <= self.measured <= self.forecast.high

    @property
    def interval_score(self) -> float:
        """Width of the band plus a penalty for a miss, both in logarithms; smaller is better.

        The penalty is the distance to the band times 2 / (1 - coverage). On average, no band scores
        better than the one between the intended quantiles (Gneiting and Raftery 2007, equation 43).
        """
        low, high = math.log(self.forecast.low), math.log(self.forecast.high)
        x = math.log(self.measured)
        miss = max(low - x, x - high, 0.0)
        return high - low + 2 / (1 - self.forecast.coverage) * miss


class Scores:
    """Result of `score`.

    Attributes
    ----------
    outcomes : list of Outcome
        Forecasts with known results.
    open : list of Forecast
        All others.
    """

    def __init__(self, outcomes: Iterable[Outcome], still_open: Iterable[Forecast]) -> None:
        self.outcomes = list(outcomes)
        self.open = list(still_open)

    @property
    def coverage(self) -> float | None:
        """Share of results within their band; None without results."""
        inside = [outcome.within_band for outcome in self.outcomes]
        return sum(inside) / len(inside) if inside else None

    @property
    def median_factor(self) -> float | None:
        """Median factor between prediction and result, one or more; None without results."""
        factors = [math.exp(abs(math.log(outcome.ratio))) for outcome in self.outcomes]
        return statistics.median(factors) if factors else None

    @property
    def interval_score(self) -> float | None:
        """Mean of the outcomes' interval scores; None without results."""
        scores = [outcome.interval_score for outcome in self.outcomes]
        return statistics.fmean(scores) if scores else None

    def table(self) -> Table:
        """Return all forecasts, those with a result first."""
        known = {outcome.forecast.id: outcome for outcome in self.outcomes}
        every = [outcome.forecast for outcome in self.outcomes] + self.open
        outcomes = [known.get(forecast.id) for forecast in every]
        return Table(
            {
                name: Column([getattr(forecast, name) for forecast in every])
                for name in ("id", "made", "predicted", "low", "high", "unit")
            }
            | {
                "measured": Column([known and known.measured for known in outcomes]),
                "within_band": Column([known and known.within_band for known in outcomes]),
            },
            limit=None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: a summary, the outcomes, and the forecasts that are open."""
        return {
            "results": len(self.outcomes),
            "open": len(self.open),
            "coverage": self.coverage,
            "median_factor": self.median_factor,
            "interval_score": self.interval_score,
            "outcomes": [
                {
                    **vars(outcome.forecast),
                    "measured": outcome.measured,
                    "ratio": outcome.ratio,
                    "within_band": outcome.within_band,
                    "interval_score": outcome.interval_score,
                }
                for outcome in self.outcomes
            ],
            "forecasts": [dict(vars(forecast)) for forecast in self.open],
        }

    def __str__(self) -> str:
        lines = [str(self.table()), f"{len(self.outcomes)} with a result, {len(self.open)} open"]
        if self.outcomes:
            inside = sum(outcome.within_band for outcome in self.outcomes)
            lines.append(
                f"{inside} of {len(self.outcomes)} results are in their band; median factor "
                f"{self.median_factor:.2f}; interval score {self.interval_score:.2f}"
            )
        return "\n".join(lines)


def read_forecasts(file: str | Path | None = None) -> list[Forecast]:
    """Read frozen forecasts.

    Parameters
    ----------
    file
        A CSV file with the columns of `Forecast`; `None` takes all built-in forecasts.

    Raises
    ------
    ConfigError
        If a file cannot be read, a row is incomplete, or a name is used twice.
    """
    files = sorted(FROZEN.glob("*.csv")) if file is None else [file]
    forecasts: dict[str, Forecast] = {}
    for path in files:
        for row in read_rows(path):
            forecast = _forecast(row, path)
            if forecast.id in forecasts:
                raise ConfigError(
                    f"{path} has the forecast {shown(forecast.id)} twice: each needs an id of its "
                    "own",
                    argument="file",
                )
            forecasts[forecast.id] = forecast
    return list(forecasts.values())


def _forecast(row: Row, path: str | Path) -> Forecast:
    place = f"the forecast {shown(row.name)} in {path}"
    if row.fault:
        raise ConfigError(f"{place} is broken: {row.fault}", argument="file")
    columns = [each.name for each in fields(Forecast)]
    missing = [name for name in columns if not row.text(name)]
    if missing:
        raise ConfigError(
            f"{place} has no {', '.join(missing)}: a file of forecasts has the columns "
            f"{', '.join(columns)}",
            argument="file",
        )
    try:
        values: dict[str, Any] = {
            each.name: row.measured(each.name) if each.type == "float" else row.text(each.name)
            for each in fields(Forecast)
        }
        forecast = Forecast(**values)
    except Skip as fault:
        raise ConfigError(f"{place} is broken: {fault}", argument="file") from fault
    if not forecast.low <= forecast.predicted <= forecast.high or not forecast.coverage < 1:
        raise ConfigError(
            f"{place} needs low <= predicted <= high, and a coverage below 1", argument="file"
        )
    return forecast


def score(forecasts: Sequence[Forecast], results: str | Path | Iterable[Row]) -> Scores:
    """Compare forecasts with results.

    Parameters
    ----------
    forecasts
        Forecasts from `read_forecasts`.
    results
        A CSV file, or its rows, with the columns ``id``, ``value`` and ``unit``. A column
        ``source`` is ignored.

    Returns
    -------
    Scores
        Outcomes, and the forecasts that are still open.

    Raises
    ------
    ConfigError
        If a result names no forecast, is in another unit, is not a number above zero, or is given
        twice.
    """
    known = {forecast.id: forecast for forecast in forecasts}
    outcomes: dict[str, Outcome] = {}
    for row in read_rows(results) if isinstance(results, (str, Path)) else results:
        if row.name not in known:
            raise UnknownEntryError.build(row.name, "forecast", known)
        forecast = known[row.name]
        if row.name in outcomes:
            raise ConfigError(
                f"{row.name} has two results: give the one that settles it", argument="results"
            )
        if row.text("unit") != forecast.unit:
            raise ConfigError(
                f"{row.name} was made in {shown(forecast.unit)}, and its result is in "
                f"{shown(row.text('unit'))}: convert it",
                argument="results",
            )
        try:
            outcomes[row.name] = Outcome(forecast, row.measured())
        except Skip as fault:
            raise ConfigError(
                f"the result of {row.name} is broken: {fault}", argument="results"
            ) from fault
    return Scores(outcomes.values(), [each for each in forecasts if each.id not in outcomes])
