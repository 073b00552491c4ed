"""Results of load generators compared with a prediction: the gap, and where to look next."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import record
from mlsysim.core.files import named, printable, read_bytes
from mlsysim.core.table import Column, Table
from mlsysim.core.units import Quantity, format_number, is_quantity
from mlsysim.planner.sensitivities import sensitivity
from mlsysim.solvers import OpenLoopResult, ServingResult

__all__ = ["Benchmark", "Gap", "compare", "read_benchmark"]

_MAX_BYTES = 64 * 1024**2
_TIMES = tuple(f"{t}_{p}" for t in ("ttft", "tpot", "e2e") for p in ("mean", "p50", "p90", "p99"))
_RATES = ("request_throughput", "output_throughput")
# Fields for a closed loop, which has only means.
_CLOSED = {"ttft_mean": "ttft", "tpot_mean": "itl", "e2e_mean": "latency"}
_CLOSE = 0.1
"""Gap that is within run-to-run variation."""
_ODD = 100
"""Ratio of times beyond which they probably have another unit."""
_OWN = ("hardware.", "calibration.")
"""Inputs that may explain a gap; the model and the load are those of the measurement."""
_MILLISECONDS = {"ms": 1.0, "s": 1e3, "us": 1e-3, "ns": 1e-6, "sec": 1e3}


@dataclass(frozen=True)
class Benchmark:
    """The result of a load generator."""

    tool: str
    """The format of the file."""
    values: Mapping[str, float]
    """Times in ms, and rates per second, by the fields of `OpenLoopResult`."""


@record
class Gap:
    """Answer of `compare`.

    Attributes
    ----------
    tool : str
        The load generator.
    table : Table
        Measured and predicted values, and the relative error of the prediction.
    parts : Mapping[str, float] or None
        Shares of the first token and of the tokens after it in the gap of the mean end-to-end time;
        `None` if the file lacks one of the three means.
    depends_on : str
        The input that the worst part depends on most.
    words : str
        A summary in words.
    """

    tool: str
    table: Table
    parts: Mapping[str, float] | None
    depends_on: str
    words: str

    def __str__(self) -> str:
        return printable(f"{self.words}\n\n{self.table}", lines=True)


def read_benchmark(path: str | Path) -> Benchmark:
    """Read the result of a load generator.

    Supports the files of vLLM's `benchmark_serving` (``--save-result``), SGLang's `bench_serving`,
    AIPerf, GenAI-Perf and llm-bench. In a file with one result per line, the last line counts.

    Parameters
    ----------
    path
        The JSON file.

    Returns
    -------
    Benchmark
        Times and rates.

    Raises
    ------
    ConfigError
        If the file cannot be read, or has another format.
    """
    name = named(path)
    try:
        text = read_bytes(path, _MAX_BYTES).decode("utf-8-sig")
        data = _parsed(text)
    except (UnicodeDecodeError, ValueError, RecursionError) as fault:
        if isinstance(fault, ConfigError):
            raise
        raise ConfigError(f"{name} is not JSON: {fault}", argument="benchmark") from None
    if isinstance(data, dict):
        for tool, knows, read in _READERS:
            if knows(data):
                values = {key: _number(name, key, value) for key, value in read(data).items()}
                found = {key: value for key, value in values.items() if value is not None}
                if found:
                    return Benchmark(tool, found)
    raise ConfigError(
        f"{name} has no known times: give the JSON file of vLLM's or SGLang's serving benchmark, "
        "AIPerf, GenAI-Perf or llm-bench",
        argument="benchmark",
    )


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2:
            raise
        return json.loads(lines[-1])


def _number(name: str, key: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"{name}: {key} = {shown(value)} is not a number", argument="benchmark")
    if value < 0:
        raise ConfigError(f"{name}: {key} = {value:g} is below zero", argument="benchmark")
    return float(value) or None  # a tool writes zero for what it did not measure


def _flat(data: Mapping[str, Any]) -> dict[str, Any]:
    """Read the names of vLLM and SGLang, which differ for end-to-end time."""
    words = {"mean": "mean", "p50": "median", "p90": "p90", "p99": "p99"}
    found: dict[str, Any] = {name: data.get(name) for name in _RATES}
    for part, word in words.items():
        for time in ("ttft", "tpot"):
            found[f"{time}_{part}"] = data.get(f"{word}_{time}_ms", data.get(f"{part}_{time}_ms"))
        for key in (f"{word}_e2el_ms", f"{word}_e2e_latency_ms", f"{part}_e2el_ms"):
            if data.get(key) is not None:
                found[f"e2e_{part}"] = data[key]
    return found


_PERF = {"ttft": "time_to_first_token", "tpot": "inter_token_latency", "e2e": "request_latency"}
_PERF_RATES = {
    "request_throughput": "request_throughput",
    "output_throughput": "output_token_throughput",
}


def _perf(data: Mapping[str, Any]) -> dict[str, Any]:
    """Read the names of AIPerf and GenAI-Perf: a block of statistics with its unit."""
    found: dict[str, Any] = {}
    for time, metric in _PERF.items():
        block = data.get(metric) or {}
        unit = str(block.get("unit", "ms"))
        if unit not in _MILLISECONDS:
            raise ConfigError(
                f"{metric}: unit = {shown(unit)} is unknown: give {', '.join(_MILLISECONDS)}",
                argument="benchmark",
            )
        for part, key in (("mean", "avg"), ("p50", "p50"), ("p90", "p90"), ("p99", "p99")):
            value = block.get(key)
            found[f"{time}_{part}"] = None if value is None else value * _MILLISECONDS[unit]
    for rate, metric in _PERF_RATES.items():
        found[rate] = (data.get(metric) or {}).get("avg")
    return found


def _llm_bench(data: Mapping[str, Any]) -> dict[str, Any]:
    """Read the names of llm-bench: sections for latency and throughput."""
    latency, rates = data["latency"], data.get("throughput") or {}
    names = {"ttft": "ttft", "tpot": "tpot", "e2e": "request"}
    found = {
        f"{time}_{part}": latency.get(f"{name}_{part}_ms")
        for time, name in names.items()
        for part in ("mean", "p50", "p90", "p99")
    }
    return found | {
        "request_throughput": rates.get("requests_per_second"),
        "output_throughput": rates.get("output_tokens_per_second"),
    }


_Reader = tuple[str, Callable[[Any], bool], Callable[[Any], dict[str, Any]]]
_READERS: tuple[_Reader, ...] = (
    ("llm-bench", lambda d: isinstance(d.get("latency"), dict), _llm_bench),
    (
        "AIPerf or GenAI-Perf",
        lambda d: any(isinstance(d.get(m), dict) for m in _PERF.values()),
        _perf,
    ),
    ("SGLang", lambda d: "mean_e2e_latency_ms" in d, _flat),
    ("vLLM", lambda d: any(key in d for key in ("mean_ttft_ms", "median_ttft_ms")), _flat),
)


def compare(result: OpenLoopResult | ServingResult, benchmark: str | Path | Benchmark) -> Gap:
    """Compare a prediction with what a load generator measured.

    Parameters
    ----------
    result
        A result of `OpenLoopSolver.solve`, or of `ServingSolver.solve` for a closed loop (only
        means are compared).
    benchmark
        The JSON file of a load generator, or the result of `read_benchmark`.

    Returns
    -------
    Gap
        Where the gap is, and the input that this part depends on most.

    Raises
    ------
    ConfigError
        If the file is not from a supported tool, or has no time in common with the result.
    """
    measured = benchmark if isinstance(benchmark, Benchmark) else read_benchmark(benchmark)
    if not isinstance(result, OpenLoopResult | ServingResult):
        raise ConfigError(
            f"result = {shown(result)} is not a result of OpenLoopSolver or ServingSolver",
            argument="result",
        )
    rows = []
    for name in (*_TIMES, *_RATES):
        said = _predicted(result, name)
        if said is not None and name in measured.values:
            rows.append((name, measured.values[name], said, said / measured.values[name] - 1))
    if not rows:
        raise ConfigError(
            "benchmark has no time in common with the result; a result without a steady state has "
            "no times",
            argument="benchmark",
        )
    heads = ("quantity", "measured", "predicted", "error")
    table = Table(
        {h: Column(list(v)) for h, v in zip(heads, zip(*rows, strict=True), strict=True)},
        limit=None,
    )
    errors = {name: error for name, _, _, error in rows}
    parts = _parts(measured.values, {name: said for name, _, said, _ in rows})
    field, words = _diagnosed(errors, parts)
    depends_on = _lever(result, field)
    return Gap(
        tool=measured.tool,
        table=table,
        parts=parts,
        depends_on=depends_on,
        words=f"{_doubts(result, measured, errors)}{words} {field} depends most on {depends_on}.",
    )


def _doubts(result: Any, measured: Benchmark, errors: Mapping[str, float]) -> str:
    """Return why the two may not belong together: units, or the load."""
    found = ""
    ratios = [1 + errors[name] for name in _TIMES if name in errors]
    if ratios and (min(ratios) > _ODD or max(ratios) < 1 / _ODD):
        found += (
            f"Predicted times are {format_number(min(ratios))} to {format_number(max(ratios))} "
            "times the measured ones: check the unit of the file's times. "
        )
    rate = measured.values.get("request_throughput")
    if rate is None or not isinstance(result, OpenLoopResult):
        return found
    given = result.__dict__["_origin"][1]["arrival_rate"]
    given = float(given.to("1/s").magnitude if is_quantity(given) else given)
    if abs(math.log(rate / given)) > _CLOSE:
        found += (
            f"The file has {format_number(rate)} requests per second, and the prediction "
            f"{format_number(given)}: compare at the same load, unless the server was saturated. "
        )
    return found


def _predicted(result: Any, name: str) -> float | None:
    """Return a time in ms, or a rate per second."""
    if isinstance(result, OpenLoopResult):
        if name == "request_throughput":  # this is the arrival rate, which was given
            return None
        field = name
    else:
        field = _CLOSED.get(name, name if name in _RATES else "")
        if not field:
            return None
    value: Quantity | None = result[field]
    if value is None:
        return None
    return float(value.to("ms").magnitude if name in _TIMES else value.to_base_units().magnitude)


def _parts(
    measured: Mapping[str, float], predicted: Mapping[str, float]
) -> dict[str, float] | None:
    """Divide the gap of the mean end-to-end time between the first token and the others."""
    if not {"ttft_mean", "e2e_mean"} <= measured.keys() & predicted.keys():
        return None
    whole = measured["e2e_mean"] - predicted["e2e_mean"]
    first = measured["ttft_mean"] - predicted["ttft_mean"]
    if whole == 0:
        return {"first token": 0.0, "tokens after it": 0.0}
    return {"first token": first / whole, "tokens after it": 1 - first / whole}


def _diagnosed(errors: Mapping[str, float], parts: Mapping[str, float] | None) -> tuple[str, str]:
    """Return the field with the most important gap, and a diagnosis."""
    first = next((n for n in ("ttft_mean", "ttft_p50", "ttft_p99") if n in errors), None)
    later = next((n for n in ("tpot_mean", "tpot_p50", "tpot_p99") if n in errors), None)
    worst = max(errors, key=lambda name: abs(math.log1p(errors[name])))
    if abs(errors[worst]) <= _CLOSE:
        return worst, f"All quantities agree within {_CLOSE:.0%}."
    share = ""
    if parts is not None and all(0 <= value <= 1 for value in parts.values()):
        share = f" The first token accounts for {parts['first token']:.0%} of the end-to-end gap."
    if later is not None and abs(errors[later]) > _CLOSE:
        slow = errors[later] < 0
        return later, (
            f"Tokens arrive {'more slowly' if slow else 'faster'} than predicted ({later} is off "
            f"by {errors[later]:+.0%}): "
            + (
                "check the size of the running batch, gaps between kernel launches, and whether "
                "speculative decoding or CUDA graphs are off."
                if slow
                else "the engine may use speculative decoding, store weights or the cache in a "
                "narrower format, or generate fewer tokens than requested."
            )
            + share
        )
    if first is not None and abs(errors[first]) > _CLOSE:
        slow = errors[first] < 0
        return first, (
            f"Decode agrees, but the first token arrives {'later' if slow else 'earlier'} than "
            f"predicted ({first} is off by {errors[first]:+.0%}): "
            + (
                "check for queueing in the client or the gateway, bursts, a cold start, and "
                "prompts that miss the cache."
                if slow
                else "prompts may be in the cache (cached_share), or shorter than stated."
            )
            + share
        )
    return worst, (
        f"Means agree, but {worst} is off by {errors[worst]:+.0%}: check for bursts, a wider "
        "spread of lengths, and a cold start."
    )


def _lever(result: Any, field: str) -> str:
    """Return the input with the largest elasticity of a time."""
    name = field if isinstance(result, OpenLoopResult) else _CLOSED.get(field, field)
    table = sensitivity(result, name)
    names, sizes = list(table["input"]), [float(value) for value in table["elasticity"]]
    free = [row for row, path in enumerate(names) if path.startswith(_OWN)]
    best = max(free, key=lambda row: abs(sizes[row]))
    return f"{names[best]} (elasticity {format_number(sizes[best])})"
