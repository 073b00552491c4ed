"""Files of load generators: the times and rates that they measured, and the load that they sent."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.files import named, read_bytes
from mlsysim.core.units import real_number
from mlsysim.planner.service.engines import ENGINES
from mlsysim.planner.service.limits import SLO
from mlsysim.registry.calibration.serving import plain_engine

RATES = ("request_throughput", "output_throughput")

_MAX_BYTES = 64 * 1024**2
_PARTS = {"mean": "mean", "p50": "median", "p90": "p90", "p99": "p99"}
_SECONDS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_FLAT = re.compile(
    rf"({'|'.join({**_PARTS, **dict.fromkeys(_PARTS.values())})})_(ttft|tpot|e2el)_ms"
)
_RATE_UNITS = ("requests/sec", "tokens/sec")


@dataclass(frozen=True)
class Benchmark:
    """The result of a load generator."""

    tool: str
    """The format of the file."""
    values: Mapping[str, float]
    """Times in ms, and rates per second, by the fields of `OpenLoopResult`."""
    load: Mapping[str, float] = field(default_factory=dict)
    """The load that the file states, as arguments of a solver: `batch_size` and `waves` of
    `ServingSolver` for a closed loop, `arrival_rate` and `burstiness` of `OpenLoopSolver` for an
    open one, and the mean `seq_len` and `output_len`."""
    notes: tuple[str, ...] = ()
    """Remarks on the file, such as failed requests."""
    engine: str = ""
    """The serving engine that the file names, such as ``"vLLM"``; empty if it names none."""
    version: str = ""
    """The release of the engine, if the file states it."""

    def __post_init__(self) -> None:
        """Reject other quantities, and values that cannot have been measured."""
        for name, value in self.values.items():
            if name not in (*SLO, *RATES):
                raise ConfigError(
                    f"values has {shown(name)}, which is unknown: give some of "
                    f"{', '.join((*SLO, *RATES))}",
                    argument="values",
                )
            if (_finite(value) or 0.0) <= 0:
                raise ConfigError(
                    f"values has {name} = {shown(value)}, which is out of range: give a number "
                    f"above zero, {'in ms' if name in SLO else 'per second'}",
                    argument="values",
                )


def read_benchmark(path: str | Path) -> Benchmark:
    """Read the result of a load generator.

    Supports the files of vLLM's `bench serve` (``--save-result``), SGLang's `bench_serving`,
    AIPerf, GenAI-Perf, and iopsystems' llm-bench. In a file with one result per line, the last line
    counts.

    Parameters
    ----------
    path
        The JSON file.

    Returns
    -------
    Benchmark
        Times, rates, and the load.

    Raises
    ------
    ConfigError
        If the file cannot be read, has another format, or all of its requests failed.
    """
    file = _File(named(path))
    try:
        data = file.parsed(read_bytes(path, _MAX_BYTES).decode("utf-8-sig"))
    except (UnicodeDecodeError, ValueError, RecursionError) as fault:
        if isinstance(fault, ConfigError):
            raise
        raise file.fault(f"is not JSON: {fault}") from None
    if isinstance(data, list):
        raise file.fault(f"has a list of {len(data)} items: give the file with one result")
    if not isinstance(data, dict):
        raise file.fault("has no result: give the JSON object that a load generator writes")
    if isinstance(data.get("metrics"), dict) and isinstance(data.get("metadata"), dict):
        raise file.fault(
            "has one record per request (metadata, metrics): give the file of the whole run, "
            "profile_export_aiperf.json"
        )
    for tool, knows, read in _READERS:
        if knows(data):
            values, load = read(file, data)
            found = {key: value for key, value in values.items() if value is not None}
            if found:
                known = _load(file, load, found)
                return Benchmark(tool, found, known, tuple(file.notes), *_engine(data))
    raise file.fault(
        "has no known times, such as mean_ttft_ms or time_to_first_token: give the JSON file of "
        "vLLM's or SGLang's serving benchmark, AIPerf, GenAI-Perf or llm-bench"
    )


def _finite(value: Any) -> float | None:
    """Return a finite number as a float, and `None` for other values."""
    number = real_number(value)
    try:
        return None if number is None or not math.isfinite(number) else float(number)
    except OverflowError:  # a whole number of more than 300 digits
        return None


@dataclass
class _File:
    """A file's name for errors, its requests, and notes on what it contains."""

    name: str
    notes: list[str] = field(default_factory=list)
    completed: float | None = None
    failed: float = 0.0

    def fault(self, words: str) -> ConfigError:
        return ConfigError(f"{self.name} {words}", argument="benchmark")

    def parsed(self, text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            lines = [line for line in text.splitlines() if line.strip()]
            if len(lines) < 2:
                raise
            last = json.loads(lines[-1])
            self.notes.append(f"The file has {len(lines)} lines; only the last one counts.")
            return last

    def number(self, data: Mapping[str, Any], key: str, path: str = "") -> float | None:
        """Return a number that is zero or more; `None` if there is none."""
        value, where = data.get(key), path or key
        if value is None:
            return None
        number = _finite(value)
        if number is None:
            raise self.fault(f"has {where} = {shown(value)}, which is not a number")
        if number < 0:
            raise self.fault(f"has {where} = {number:g}, which is below zero")
        return number

    def measured(self, data: Mapping[str, Any], key: str, path: str = "") -> float | None:
        """Return a measured number. Tools write zero for values that they did not measure."""
        value = self.number(data, key, path)
        if value == 0:
            self.notes.append(f"{path or key} = 0 counts as not measured.")
            return None
        return value

    def first(self, data: Mapping[str, Any], *keys: str) -> float | None:
        """Return the first of several numbers that the file has."""
        key = next((key for key in keys if data.get(key) is not None), keys[0])
        return self.measured(data, key)

    def section(self, data: Mapping[str, Any], key: str) -> dict[str, Any]:
        """Return an object inside the file; an empty one if there is none."""
        value = data.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.fault(f"has {key} = {shown(value)}, which is not an object")
        return value

    def requests(self, completed: float | None, failed: float | None, key: str) -> None:
        """Reject a run in which no request was completed, and mention those that failed."""
        if completed == 0:
            raise self.fault(f"has {key} = 0: all requests failed, so there is nothing to compare")
        if failed and completed is None:
            raise self.fault(f"has {failed:.0f} failed requests and no {key}: no request succeeded")
        if failed and completed is not None:
            self.notes.append(
                f"{failed:.0f} of {completed + failed:.0f} requests failed; they loaded the "
                "server, but the times are those of the others."
            )
        self.completed, self.failed = completed, failed or 0.0

    def lasted(self, seconds: float | None, key: str) -> float | None:
        """Return the duration of the run."""
        if seconds == 0:
            raise self.fault(f"has {key} = 0, so its rates have no meaning")
        return seconds


_Values = dict[str, float | None]


def _engine(data: Mapping[str, Any]) -> tuple[str, str]:
    """Return the engine that a file names, and its release.

    vLLM and SGLang write the kind of server as `backend`. ``"openai"`` may be any engine. vLLM also
    writes what ``--metadata version=0.12.0`` states.
    """
    backend = plain_engine(str(data.get("backend", "")))
    engine = next((name for name in ENGINES if backend.startswith(plain_engine(name))), "")
    version = data.get("version")
    return engine, version if engine and isinstance(version, str) else ""


def _load(file: _File, load: _Values, measured: Mapping[str, float]) -> dict[str, float]:
    """Return the load that is known. A closed loop has whole numbers of tokens."""
    known = {key: value for key, value in load.items() if value is not None}
    clients = known.pop("batch_size", None)
    if "arrival_rate" not in known:
        lengths: dict[str, float] = {
            n: round(known[n]) for n in ("seq_len", "output_len") if n in known
        }
        if clients is None:
            return lengths
        if file.completed is None:
            return {"batch_size": clients, **lengths}
        sent = file.completed + file.failed
        if clients > sent:
            file.notes.append(
                f"{clients:.0f} requests were allowed at once, but only {sent:.0f} were sent, all "
                "of them at the start."
            )
        waves = max(round(file.completed / clients), 1)
        return {"batch_size": min(clients, sent), "waves": waves, **lengths}
    if clients is None:
        return known
    rate, stay = (measured.get(n) for n in ("request_throughput", "e2e_mean"))
    if rate and stay and (flight := rate * stay / 1e3) <= clients / 2:
        file.notes.append(
            f"At most {clients:.0f} requests were allowed at once, and {flight:.3g} were in flight "
            "on average, so the limit did not matter."
        )
        return known
    return known | {"batch_size": clients}


def _burstiness(shape: object, smoothness: float | None = None) -> float | None:
    """Return the burstiness of the arrivals that AIPerf names; `None` if there are none."""
    known = {"poisson": 1.0, "gamma": 1 / (smoothness or 1.0), "constant": 0.0}
    return known.get(str(shape))


def _flat(file: _File, data: Mapping[str, Any]) -> tuple[_Values, _Values]:
    """Read the names of vLLM and SGLang, which differ for end-to-end time."""
    completed, asked = file.number(data, "completed"), file.number(data, "num_prompts")
    failed = file.number(data, "failed")
    if failed is None and completed is not None and asked is not None:
        failed = max(asked - completed, 0)
    file.requests(completed, failed, "completed")
    file.lasted(file.number(data, "duration"), "duration")
    values: _Values = {name: file.measured(data, name) for name in RATES}
    for part, word in _PARTS.items():
        for time in ("ttft", "tpot"):
            values[f"{time}_{part}"] = file.first(data, f"{word}_{time}_ms", f"{part}_{time}_ms")
        values[f"e2e_{part}"] = file.first(
            data, f"{word}_e2el_ms", f"{word}_e2e_latency_ms", f"{part}_e2el_ms"
        )
    clients, rate = file.measured(data, "max_concurrency"), data.get("request_rate")
    endless = rate == "inf" or rate == math.inf
    load: _Values = {"batch_size": clients}
    if data.get("ramp_up_strategy") is not None:
        load = {}
        file.notes.append("The request rate was ramped up, so the run has no steady load.")
    elif endless and clients is None and completed:
        load = {"batch_size": completed}
        file.notes.append(
            f"request_rate is infinite, and max_concurrency is not set: all {completed:.0f} "
            "requests were sent at once."
        )
    elif not endless:
        load["arrival_rate"] = file.measured(data, "request_rate")
        shape = data.get("burstiness")
        if shape is not None and load["arrival_rate"]:
            even = shape in ("inf", math.inf)
            load["burstiness"] = 0 if even else 1 / (file.measured(data, "burstiness") or 1)
    if completed:
        for name, key in (("seq_len", "total_input_tokens"), ("output_len", "total_output_tokens")):
            total = file.measured(data, key)
            load[name] = None if total is None else total / completed
    return values, load


_PERF = {"ttft": "time_to_first_token", "tpot": "inter_token_latency", "e2e": "request_latency"}
_PERF_RATES = {
    "request_throughput": "request_throughput",
    "output_throughput": "output_token_throughput",
}


def _perf(file: _File, data: Mapping[str, Any]) -> tuple[_Values, _Values]:
    """Read the names of AIPerf and GenAI-Perf: a block of statistics with its unit."""
    # Until October 2025, AIPerf put the blocks into one object.
    blocks = file.section(data, "records") or data
    if "records" in data and not data["records"]:
        raise file.fault("has empty records: no request was completed")

    def mean(metric: str) -> float | None:
        return file.number(file.section(blocks, metric), "avg", f"{metric}.avg")

    completed = mean("request_count")
    file.requests(completed, mean("error_request_count"), "request_count.avg")
    if "benchmark_duration" in blocks:
        file.lasted(mean("benchmark_duration"), "benchmark_duration.avg")
    values: _Values = {}
    for time, metric in _PERF.items():
        block = file.section(blocks, metric)
        scale = 1e3 * _SECONDS[_unit(file, block, metric, _SECONDS, "ms")]
        for part, key in (("mean", "avg"), ("p50", "p50"), ("p90", "p90"), ("p99", "p99")):
            value = file.measured(block, key, f"{metric}.{key}")
            values[f"{time}_{part}"] = None if value is None else value * scale
    for rate, metric in _PERF_RATES.items():
        block = file.section(blocks, metric)
        _unit(file, block, metric, _RATE_UNITS, _RATE_UNITS[0])
        values[rate] = file.measured(block, "avg", f"{metric}.avg")
    load = _perf_load(file, file.section(data, "input_config"))
    load["seq_len"] = mean("input_sequence_length")
    load["output_len"] = mean("output_sequence_length")
    return values, load


def _unit(file: _File, block: Mapping[str, Any], metric: str, known: Any, usual: str) -> str:
    unit = block.get("unit", usual)
    if not isinstance(unit, str) or unit not in known:
        raise file.fault(
            f"has {metric}.unit = {shown(unit)}, which is unknown: give {', '.join(known)}"
        )
    return unit


def _perf_load(file: _File, config: Mapping[str, Any]) -> _Values:
    """Return the load that AIPerf's or GenAI-Perf's own configuration describes."""
    load: _Values = {}
    phases = config.get("phases")
    stimulus = file.section(config, "perf_analyzer").get("stimulus")
    if isinstance(phases, list):  # AIPerf since schema 1.2
        named_so = [p for p in phases if isinstance(p, dict) and p.get("name") == "profiling"]
        phase = named_so[0] if named_so else {}
        load["batch_size"] = file.measured(phase, "concurrency", "phases.profiling.concurrency")
        rate, shape = file.measured(phase, "rate", "phases.profiling.rate"), phase.get("type")
        smooth = file.measured(phase, "smoothness", "phases.profiling.smoothness")
        burstiness = _burstiness(shape, smooth)
    elif isinstance(stimulus, dict):  # GenAI-Perf, which does not state how requests are spaced
        load["batch_size"] = file.measured(stimulus, "concurrency", "stimulus.concurrency")
        rate, burstiness = file.measured(stimulus, "request_rate", "stimulus.request_rate"), None
    else:
        sent = file.section(config, "loadgen")
        load["batch_size"] = file.measured(sent, "concurrency", "loadgen.concurrency")
        rate = file.measured(sent, "request_rate", "loadgen.request_rate")
        shape = sent.get("request_rate_mode") or sent.get("arrival_pattern") or "poisson"
        smooth = file.measured(sent, "arrival_smoothness", "loadgen.arrival_smoothness")
        burstiness = _burstiness(shape, smooth)
    if rate is not None:
        load |= {"arrival_rate": rate, "burstiness": burstiness}
    return load


def _llm_bench(file: _File, data: Mapping[str, Any]) -> tuple[_Values, _Values]:
    """Read the names of llm-bench: sections for latency, throughput, and the configuration."""
    latency, rates = data["latency"], file.section(data, "throughput")
    summary, sent = file.section(data, "summary"), file.section(data, "configuration")
    completed = file.number(summary, "successful_requests", "summary.successful_requests")
    failed = file.number(summary, "failed_requests", "summary.failed_requests")
    file.requests(completed, failed, "summary.successful_requests")
    lasted = file.section(data, "duration")
    whole, rest = (file.number(lasted, key, f"duration.{key}") for key in ("secs", "nanos"))
    seconds = None if whole is None else file.lasted(whole + 1e-9 * (rest or 0), "duration")
    names = {"ttft": "ttft", "tpot": "tpot", "e2e": "request"}
    values: _Values = {
        f"{time}_{part}": file.measured(latency, key, f"latency.{key}")
        for time, name in names.items()
        for part in _PARTS
        if (key := f"{name}_{part}_ms")
    }
    for name, key in (
        ("request_throughput", "requests_per_second"),
        ("output_throughput", "output_tokens_per_second"),
    ):
        values[name] = file.measured(rates, key, f"throughput.{key}")
    if completed and seconds:  # the file's own rate counts requests sent, not those completed
        values["request_throughput"] = completed / seconds
    load: _Values = {}
    rate = file.measured(sent, "qps", "configuration.qps")
    if rate is not None:  # the file does not state how requests are spaced
        load["arrival_rate"] = rate
    else:
        key = "concurrent_requests"
        load["batch_size"] = file.measured(sent, key, f"configuration.{key}")
    for name, key in (("seq_len", "total_input_tokens"), ("output_len", "total_output_tokens")):
        total = file.measured(rates, key, f"throughput.{key}")
        load[name] = total / completed if total and completed else None
    return values, load


_Reader = tuple[str, Callable[[Any], bool], Callable[[_File, Any], tuple[_Values, _Values]]]
_READERS: tuple[_Reader, ...] = (
    ("llm-bench", lambda d: isinstance(d.get("latency"), dict), _llm_bench),
    (
        "AIPerf or GenAI-Perf",
        lambda d: "records" in d or any(m in d for m in _PERF.values()),
        _perf,
    ),
    ("SGLang", lambda d: "mean_e2e_latency_ms" in d, _flat),
    # It writes only the times that --percentile-metrics names.
    ("vLLM", lambda d: any(_FLAT.fullmatch(key) for key in d), _flat),
)
