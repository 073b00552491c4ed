"""Published runs of the model and the devices of a plan, to compare the plan with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from mlsysim.core.errors import ConfigError, MLSysError, shown
from mlsysim.core.table import Column, Table
from mlsysim.planner.engines import device_of
from mlsysim.validation import serving_runs
from mlsysim.validation.rows import Row, Skip
from mlsysim.validation.sizes import model_or_estimate
from mlsysim.validation.validate import rows_of

__all__ = ["published_runs"]

_TIMES = ("ttft", "tpot")
_NEEDED = ("isl", "ttft_mean_ms", "tpot_mean_ms")
_USER, _DEVICE = "tokens_per_s_per_user", "tokens_per_s_per_device"
_UNITS = dict.fromkeys(
    (_USER, f"{_USER}_low", f"{_USER}_high", f"predicted_{_USER}", _DEVICE, f"predicted_{_DEVICE}"),
    "token/s",
)
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
    """Return the runs of a model on some devices and in some formats, with predictions.

    Raises
    ------
    ConfigError
        If `source` cannot be read or has no times, or `within` is less than one.
    """
    usable = isinstance(within, (int, float)) and not isinstance(within, bool) and within >= 1
    if within is not None and not usable:
        raise ConfigError(
            f"within = {shown(within)} is out of range: give a factor of 1 or more, or None for "
            "runs of all lengths",
            argument="within",
        )
    rows = rows_of(source)
    missing = [name for name in _NEEDED if not rows or name not in rows[0].cells]
    if missing:
        raise ConfigError(
            f"source = {shown(source)} has no column {', '.join(missing)}: give runs with one row "
            "each, such as those of research/measurements/serving_2.csv in the repository",
            argument="source",
        )
    found = []
    for row in rows:
        try:
            if not row.fault and model_or_estimate(row)[0].name == model:
                found.append(_run(row))
        except (Skip, MLSysError, ArithmeticError):
            continue  # `validate` lists these, with reasons
    kept = [
        run
        for run in found
        if run["device"] in devices
        and run["weight_precision"] in formats
        and (within is None or _near(run, lengths, within))
    ]
    return Table(
        {name: Column([run[name] for run in kept], _UNITS.get(name, "")) for name in _COLUMNS}
    )


def _near(run: Mapping[str, Any], lengths: tuple[float, float], within: float) -> bool:
    return all(
        1 / within <= run[name] / length <= within
        for name, length in zip(("seq_len", "output_len"), lengths, strict=True)
    )


def _run(row: Row) -> dict[str, Any]:
    """Return a run and its prediction for the same clients."""
    if row.text("load") != "closed loop":
        raise Skip("not in a closed loop, so that its clients do not give its rate")
    compared = {item.quantity.split(" (")[0]: item for item in serving_runs.compare(row)}
    if not all(name in compared for name in _TIMES):
        raise Skip("times to the first token and per token are not both stated")
    given = serving_runs.arguments(row)
    prompt, answer, clients = (int(given[n]) for n in ("seq_len", "output_len", "batch_size"))
    devices = row.whole("n_gpus", default=1)

    def rate(kind: str) -> float:
        """Return output tokens per second and device, measured or predicted."""
        stated = compared.get("tokens per device")
        if stated is not None:
            return float(getattr(stated, kind)) * answer / (prompt + answer)
        first, each = (float(getattr(compared[name], kind)) for name in _TIMES)
        return 1e3 * clients * answer / (first + (answer - 1) * each) / devices

    each = compared["tpot"]
    nothing = float("nan")
    place = (row.text("source"), row.text("url"))
    return {
        "run": row.name,
        "device": device_of(given["hardware"]).name,
        "calibration": given["calibration"].name,
        "weight_precision": given["weight_precision"],
        "devices": devices,
        "clients": clients,
        "seq_len": prompt,
        "output_len": answer,
        "draft_tokens": given.get("draft_tokens", 0),
        _USER: 1e3 / each.measured,
        _DEVICE: rate("measured"),
        f"predicted_{_USER}": 1e3 / each.predicted,
        f"{_USER}_low": nothing if each.high is None else 1e3 / each.high,
        f"{_USER}_high": nothing if each.low is None else 1e3 / each.low,
        f"predicted_{_DEVICE}": rate("predicted"),
        "split": row.text("split"),
        "source": " ".join(part for part in place if part),
    }
