"""Published runs of the model and the devices of a plan, to compare the plan with."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.table import Column, Table
from mlsysim.planner.service.engines import device_of
from mlsysim.validation.columns import KINDS, Columns
from mlsysim.validation.rows import Row, Skip, read_each, rows_of

_TIMES = ("ttft", "itl")
_USER, _DEVICE = "tokens_per_s_per_user", "tokens_per_s_per_device"
_UNITS = dict.fromkeys(
    (_USER, f"{_USER}_low", f"{_USER}_high", f"predicted_{_USER}", _DEVICE, f"predicted_{_DEVICE}"),
    "token/s",
)
_DEFAULTS = {
    kind: {n: v for n, v in KINDS[kind].defaults.items() if v is not inspect.Parameter.empty}
    for kind in ("serving", "disaggregated")
}
_COLUMNS = (
    "run",
    "device",
    "calibration",
    "weight_precision",
    "devices",
    "clients",
    "seq_len",
    "output_len",
    "draft_tokens",
    _USER,
    _DEVICE,
    f"predicted_{_USER}",
    f"{_USER}_low",
    f"{_USER}_high",
    f"predicted_{_DEVICE}",
    "split",
    "source",
)


def published_runs(
    source: Any,
    *,
    model: str,
    devices: Collection[str],
    formats: Collection[str],
    lengths: tuple[float, float],
    within: float | None,
) -> Table:
    """Return the runs of a model on some devices and in some formats, with predictions."""
    usable = isinstance(within, (int, float)) and not isinstance(within, bool) and within >= 1
    if within is not None and not usable:
        raise ConfigError(
            f"within = {shown(within)} is out of range: give a factor of 1 or more, or None for "
            "runs of all lengths",
            argument="within",
        )
    rows = rows_of(source)
    if not rows:
        raise ConfigError("source = [] holds no measurements", argument="source")
    columns = Columns.of(rows)
    missing = set(_TIMES) - {head.name for head in columns.measured}
    if columns.kind not in ("serving", "disaggregated") or missing:
        raise ConfigError(
            f"source has measurements of {columns.kind} without {', '.join(sorted(missing))}: give "
            "runs of clients that wait for their answers, with the columns ttft (ms) and itl (ms)",
            argument="source",
        )
    runs, _ = read_each(rows, partial(_run, columns, model))  # `validate` lists the others
    near = [
        run
        for run in runs
        if run["device"] in devices
        and run["weight_precision"] in formats
        and (within is None or _near(run, lengths, within))
    ]
    return Table(
        {name: Column([run[name] for run in near], _UNITS.get(name, "")) for name in _COLUMNS}
    )


def _near(run: Mapping[str, Any], lengths: tuple[float, float], within: float) -> bool:
    return all(
        1 / within <= run[name] / length <= within
        for name, length in zip(("seq_len", "output_len"), lengths, strict=True)
    )


def _run(columns: Columns, model: str, row: Row) -> dict[str, Any]:
    """Return a run of a model and its prediction for the same clients."""
    given = _DEFAULTS[columns.kind] | columns.arguments_in(row)
    if given["model"].name != model:
        raise Skip(f"this is a run of {given['model'].name}")
    values, result = columns.measured_in(row), columns.solver.solve(**given)
    if not all(name in values for name in _TIMES):
        raise Skip("times to the first token and per token are not both stated")
    compared = {item.field: item for item in columns.compare_with(row, values, result)}
    prompt, answer, clients = (int(given[n]) for n in ("seq_len", "output_len", "batch_size"))
    devices = result.replica_devices if columns.kind == "serving" else result.device_count

    def si(name: str, what: str) -> float:
        """Return a compared value in SI units."""
        return columns.in_si(name, getattr(compared[name], what))

    def rate(what: str) -> Any:
        """Return output tokens per second and device, measured or predicted."""
        if "request_throughput" in compared:
            return si("request_throughput", what) * answer / devices
        if "output_throughput" in compared:
            return si("output_throughput", what) / devices
        if "throughput_per_device" in compared:
            return si("throughput_per_device", what) * answer / (prompt + answer)
        first, each = (si(name, what) for name in _TIMES)
        return clients * answer / (first + (answer - 1) * each) / devices

    edges = compared["itl"]
    unknown = float("nan")
    return {
        "run": row.name,
        "device": device_of(given["hardware"]).name,
        "calibration": getattr(given["calibration"], "name", result.calibration),
        "weight_precision": given["weight_precision"] or given["precision"],
        "devices": devices,
        "clients": clients,
        "seq_len": prompt,
        "output_len": answer,
        "draft_tokens": given["draft_tokens"],
        _USER: 1 / si("itl", "measured"),
        _DEVICE: rate("measured"),
        f"predicted_{_USER}": 1 / si("itl", "predicted"),
        f"{_USER}_low": unknown if edges.high is None else 1 / si("itl", "high"),
        f"{_USER}_high": unknown if edges.low is None else 1 / si("itl", "low"),
        f"predicted_{_DEVICE}": rate("predicted"),
        "split": row.text("split"),
        "source": row.text("source"),
    }
