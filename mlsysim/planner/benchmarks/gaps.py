"""Results of load generators compared with a prediction: the gap, its causes, the next lever."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import record
from mlsysim.core.files import printable
from mlsysim.core.gradient import plain
from mlsysim.core.table import Column, Table
from mlsysim.core.types import ServingCalibration
from mlsysim.core.units import format_number
from mlsysim.planner.benchmarks.components import FAR, Component, components_of, needed_factor
from mlsysim.planner.benchmarks.levers import devices_of, levers_of
from mlsysim.planner.benchmarks.load_files import RATES, Benchmark, read_benchmark
from mlsysim.planner.sensitivities.questions import question_behind
from mlsysim.planner.service.engines import device_of
from mlsysim.planner.service.limits import SLO
from mlsysim.registry.calibration.serving import plain_engine, serving_calibration_for
from mlsysim.solvers import OpenLoopResult, OpenLoopSolver, ServingResult, ServingSolver

# Fields for a closed loop, which has only means.
_CLOSED = {"ttft_mean": "ttft", "tpot_mean": "itl", "e2e_mean": "latency"}
_FLIGHT = "requests_in_flight"
_UNITS = {"request_throughput": "1/s", "output_throughput": "token/s", _FLIGHT: ""}
_CLOSE = 0.1
"""Gap that is within run-to-run variation, for quantities without a band."""
_SAME = 0.05
"""Difference between two loads that we do not mention."""
_ODD = 100
"""Ratio of times beyond which they probably have another unit."""
_WORTH = 0.01
"""Improvement below which a lever is not worth a change."""
_FEW = 10
"""Requests per client below which the start of a run shows in its means."""
_CHECKS = {
    ("decode", "weights and activations"): "the format of the weights, clocks, and other jobs on "
    "the device",
    ("decode", "KV cache"): "the format of the cache, and longer contexts than stated",
    ("decode", "arithmetic"): "clocks, power limits, and untuned kernels",
    ("decode", "communication"): "links, and which all-reduce the engine uses",
    ("decode", "fixed overhead"): "CUDA graphs (--enforce-eager), the host's CPU, and logging",
    ("prefill", "arithmetic"): "clocks, power limits, untuned kernels, and prompts that hit the "
    "prefix cache",
    ("prefill", "weights and activations"): "the format of the weights, and clocks",
    ("prefill", "communication"): "links, and which all-reduce the engine uses",
    ("prefill", "fixed overhead"): "CUDA graphs (--enforce-eager), and the host's CPU",
    ("wait", "prefills of other requests"): "chunk size (token_budget), bursts, and prompts that "
    "hit the prefix cache",
    ("wait", "wait for passes"): "bursts, a cold start, and queues in the client or a gateway",
    ("wait", "wait for a slot"): "max_sequences (--max-num-seqs), and free memory for the cache",
    ("wait", "request handling"): "tokenization, the gateway, and the network",
}

_FASTER = {
    "ttft_mean": "for prompts that hit the prefix cache or are shorter than stated",
    "tpot_mean": "for speculative decoding, narrower formats, and answers shorter than requested",
}


@record
class Gap:
    """Answer of `compare`.

    Attributes
    ----------
    tool : str
        The load generator.
    table : Table
        Measured and predicted values, the relative `error` of the prediction, the band, and whether
        the measured value is `within` it; `None` if the quantity has no band.
    parts : Mapping[str, float] or None
        Shares of the first token and of the tokens after it in the gap of the mean end-to-end time;
        `None` if the file lacks one of the means. They do not depend on the model's components.
    components : Table
        The parts of the predicted mean times to the first token and per token: the `time` and
        `share` of each, the `factor` by which it alone would have to differ to explain the
        measurement, and a `verdict`: ``"possible"``, ``"ruled out"``, ``"no gap"``, or ``"not
        measured"``.
    levers : Table
        Changes of one setting, each with the predicted times and rates, and the `change` of the
        time to improve.
    next_lever : str
        In words, the best of the levers that serve the same requests, do not lower the throughput
        per device, and have a gain that does not depend on what the requests contain.
    calibration : str
        The constants of the prediction.
    notes : tuple of str
        Differences between the two loads or engines, failed requests, and other doubts.
    words : str
        A summary in words.
    """

    tool: str
    table: Table
    parts: Mapping[str, float] | None
    components: Table
    levers: Table
    next_lever: str
    calibration: str
    notes: tuple[str, ...]
    words: str

    def __str__(self) -> str:
        tables = [table for table in (self.table, self.components, self.levers) if len(table)]
        text = [*self.notes, f"Constants of the prediction: {self.calibration}.", self.words]
        return printable("\n\n".join(["\n".join(text), *map(str, tables)]), lines=True)


def compare(result: OpenLoopResult | ServingResult, benchmark: str | Path | Benchmark) -> Gap:
    """Compare a prediction with what a load generator measured.

    Parameters
    ----------
    result
        A result of `OpenLoopSolver.solve`, or of `ServingSolver.solve` for a closed loop (a fixed
        number of clients). For a closed loop, only means are compared.
    benchmark
        The JSON file of a load generator, or the result of `read_benchmark`.

    Returns
    -------
    Gap
        Where the gap is, which components of the prediction could explain it, and the next lever.

    Raises
    ------
    ConfigError
        If the file is not from a supported tool, has no time or rate in common with the result, or
        one of them is a closed loop and the other one is open.

    Notes
    -----
    The `factor` of a component is found by solving again with the constants that scale it, so that
    longer passes also lengthen the queue. A component that would have to differ by more than a
    factor of 10, or to exceed the datasheet's rates, is ruled out as the only cause. If the engine
    could not serve all arrivals with it, the time to first token has no limit, and the time per
    token is that of an engine at its capacity. No constant scales a wait, so its factor is the
    ratio of the wait that would explain the measurement to the predicted one.
    """
    measured = benchmark if isinstance(benchmark, Benchmark) else read_benchmark(benchmark)
    if not isinstance(result, OpenLoopResult | ServingResult):
        raise ConfigError(
            f"result = {shown(result)} is not a result of OpenLoopSolver or ServingSolver",
            argument="result",
        )
    if isinstance(result, OpenLoopResult) and _given(result)["role"] != "both":
        raise ConfigError(
            f"result is that of one pool (role = {shown(_given(result)['role'])}), and clients "
            "measure the whole service: predict it with role = 'both'",
            argument="result",
        )
    notes = [*measured.notes, *_load_notes(result, measured), *_engine_notes(result, measured)]
    notes += [f"The prediction is not feasible: {why}." for why in result.reasons]
    rows = [row for name in (*SLO, *RATES, _FLIGHT) if (row := _row(result, measured, name))]
    if not any(row.name in SLO or row.name in RATES for row in rows):
        raise ConfigError(
            "benchmark has no time or rate in common with the result; a result without a steady "
            "state has no times",
            argument="benchmark",
        )
    notes += _unit_notes(rows)
    parts = _parts({row.name: row for row in rows})
    found = _explained(result, rows)
    goal = _goal(result, rows)
    levers, best = _levers(result, goal)
    return Gap(
        tool=measured.tool,
        table=_table(rows),
        parts=parts,
        components=_component_table(found),
        levers=levers,
        next_lever=best,
        calibration=result.calibration,
        notes=tuple(notes),
        words="\n".join(
            filter(None, [_agreement(rows), _measured(rows, parts), *_causes(rows, found), best])
        ),
    )


def predict_load(
    benchmark: Benchmark, given: Mapping[str, Any]
) -> tuple[OpenLoopResult | ServingResult, str]:
    """Predict the load that a benchmark states, with arguments that replace it.

    The second value says which arguments and constants come from the file. It is an error if
    neither the arguments nor the file state a load and its lengths, or if they state two loads.
    """
    load = benchmark.load
    stated = {n for n in ("arrival_rate", "batch_size") if given.get(n) is not None}
    if not stated:
        stated = {n for n in ("arrival_rate", "batch_size") if n in load}
    if len(stated) != 1:
        ways = "give arrival_rate (open loop) or batch_size (clients of a closed loop)"
        if stated:
            rate, clients = (given.get(n, load.get(n)) for n in ("arrival_rate", "batch_size"))
            raise ConfigError(
                f"arrival_rate = {format_number(rate)} and batch_size = {format_number(clients)} "
                "describe two different loads: if the limit on concurrent requests was never "
                "reached, give only arrival_rate; otherwise, give only batch_size",
                argument="arrival_rate",
            )
        raise ConfigError(
            f"the file states neither a request rate nor a number of clients: {ways}",
            argument="arrival_rate",
        )
    closed = "batch_size" in stated
    solver: Any = ServingSolver if closed else OpenLoopSolver
    foreign = [name for name in given if name not in solver.parameters]
    if foreign:
        raise ConfigError(
            f"{foreign[0]} is not an argument of {solver.__name__}, which predicts a load with "
            f"{next(iter(stated))}: leave it out",
            argument=foreign[0],
        )
    own = {name: value for name, value in load.items() if name in solver.parameters}
    if closed and ("batch_size" in given or given.get("efficiency") is not None):
        own.pop("waves", None)  # it belongs to the file's clients, and to the operator-level model
    for name, words in (("seq_len", "a prompt"), ("output_len", "an answer")):
        if name not in own and given.get(name) is None:
            raise ConfigError(
                f"the file does not state {name}: give the mean tokens of {words}", argument=name
            )
    taken = {name: _plain(value, closed) for name, value in own.items() if name not in given}
    known = {name: _plain(value, closed) for name, value in given.items()}
    listed = ", ".join(f"{name} = {format_number(value)}" for name, value in taken.items())
    sources = [f"From the file: {listed}."] if taken else []
    given_constants = any(known.get(name) is not None for name in ("calibration", "efficiency"))
    if not given_constants and benchmark.engine:
        device, release = device_of(known["hardware"]), benchmark.version
        constants = serving_calibration_for(device, benchmark.engine, version=release)
        known["calibration"] = constants
        if _same_engine(benchmark.engine, constants):
            sources.append(f"The file names {benchmark.engine}, so constants of this engine apply.")
    result = solver.solve(**taken, **known)
    if not given_constants and not benchmark.engine:
        sources.append(
            f"The file does not name the engine. {result.calibration} is the default for this "
            "device; give the calibration of your engine if it is another one."
        )
    return result, " ".join(sources)


def _same_engine(engine: str, constants: ServingCalibration) -> bool:
    return plain_engine(engine) in plain_engine(constants.engine)


def _engine_notes(result: Any, measured: Benchmark) -> list[str]:
    """Return whether the constants of a prediction are those of another engine than measured."""
    inputs: Any = question_behind(result).inputs
    textbook = inputs.efficiency is not None and not math.isnan(plain(inputs.efficiency))
    if textbook or not measured.engine or _same_engine(measured.engine, inputs.calibration):
        return []
    return [
        f"The file is from {measured.engine}, and the constants of the prediction are not "
        f"({inputs.calibration.name}): give a calibration of {measured.engine}, or fit one to your "
        "runs."
    ]


def _plain(value: Any, whole: bool) -> Any:
    """Return a whole number as such, where a closed loop takes no other ones."""
    return int(value) if whole and isinstance(value, float) and value.is_integer() else value


def _given(result: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = result.__dict__["_origin"][1]
    return found


@dataclass(frozen=True)
class _Row:
    """One quantity, measured and predicted. Times are in ms."""

    name: str
    measured: float
    predicted: float
    low: float | None
    high: float | None

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1

    @property
    def within(self) -> bool | None:
        """Whether the measured value is in the band; `None` without a band."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.measured <= self.high

    @property
    def agrees(self) -> bool:
        return abs(self.error) <= _CLOSE if self.within is None else self.within

    @property
    def unit(self) -> str:
        return _UNITS.get(self.name, "ms")


def _row(result: Any, measured: Benchmark, name: str) -> _Row | None:
    """Return a quantity that both have."""
    seen = measured.values.get(name)
    if name == _FLIGHT:  # Little's law
        rate, stay = (measured.values.get(n) for n in ("request_throughput", "e2e_mean"))
        seen = rate * stay / 1e3 if rate and stay else None
    value, low, high = _predicted(result, name)
    if seen is None or value is None:
        return None
    return _Row(name, seen, value, low, high)


def _predicted(result: Any, name: str) -> tuple[float | None, float | None, float | None]:
    """Return a prediction and its band: times in ms, rates per second."""
    if isinstance(result, OpenLoopResult):
        # The rate of requests is the arrival rate, which was given.
        field = "" if name == "request_throughput" else name
    else:
        field = {**_CLOSED, _FLIGHT: "batch_size"}.get(name, name if name in RATES else "")
    if field == "batch_size":
        return float(_given(result)["batch_size"]), None, None
    if field == "itl" and _given(result)["output_len"] <= 1:  # no token follows the first one
        return None, None, None
    if not field or result[field] is None:
        return None, None, None
    scale = 1e3 if name in SLO else 1.0
    value = scale * plain(result[field])
    banded = field
    if field == "request_throughput":  # the band of rates is that of tokens per second
        banded = "output_throughput"
    edges = [result[n] if (n := f"{banded}_{edge}") in result else None for edge in ("low", "high")]
    base = plain(result[banded])
    if edges[0] is None or edges[1] is None or base == 0:  # no tokens are generated
        return value, None, None
    low, high = (value * plain(edge) / base for edge in edges)
    return value, low, high


def _load_notes(result: Any, measured: Benchmark) -> list[str]:
    """Return how the load of the file differs from that of the prediction."""
    given, load, closed = _given(result), measured.load, isinstance(result, ServingResult)
    own, other = ("batch_size", "arrival_rate") if closed else ("arrival_rate", "batch_size")
    if other in load and own not in load:
        loop = (
            ("open", "arrival_rate of OpenLoopSolver")
            if closed
            else ("closed", "batch_size of ServingSolver")
        )
        raise ConfigError(
            f"benchmark has {other} = {format_number(load[other])} ({loop[0]} loop), and result "
            f"has {own} = {format_number(plain(given[own]))}: predict the load with {loop[1]}",
            argument="benchmark",
        )
    notes = []
    for name in ("batch_size", "arrival_rate", "burstiness", "seq_len", "output_len"):
        if name in load and name in given:
            theirs, ours = load[name], plain(given[name])
            if abs(theirs - ours) > _SAME * max(abs(theirs), abs(ours)):
                notes.append(
                    f"The file has {name} = {format_number(theirs)}, and the prediction "
                    f"{format_number(ours)}: compare the same load."
                )
    waves = load.get("waves")
    if closed and waves and waves < _FEW and given["waves"] is None:
        notes.append(
            f"Each client sent {waves:.0f} requests, and the first ones queue: predict with waves "
            f"= {waves:.0f}."
        )
    rate, sent = measured.values.get("request_throughput"), load.get("arrival_rate")
    if not closed and rate is not None:
        ours = plain(given["arrival_rate"])
        if abs(math.log(rate / ours)) > _CLOSE and (sent is None or rate < ours):
            notes.append(
                f"{format_number(rate)} requests per second were completed, and the prediction has "
                f"{format_number(ours)}: the server was saturated, the run was short, or the load "
                "differs."
            )
    return notes


def _unit_notes(rows: list[_Row]) -> list[str]:
    ratios = [1 + row.error for row in rows if row.name in SLO]
    if ratios and (min(ratios) > _ODD or max(ratios) < 1 / _ODD):
        return [
            f"Predicted times are {format_number(min(ratios))} to {format_number(max(ratios))} "
            "times the measured ones: check the unit of the file's times."
        ]
    return []


def _parts(rows: Mapping[str, _Row]) -> dict[str, float] | None:
    """Divide the gap of the mean end-to-end time between the first token and the others."""
    if not {"ttft_mean", "e2e_mean"} <= rows.keys():
        return None
    whole, first = (rows[n].measured - rows[n].predicted for n in ("e2e_mean", "ttft_mean"))
    if whole == 0:
        return {"first token": 0.0, "tokens after it": 0.0}
    return {"first token": first / whole, "tokens after it": 1 - first / whole}


@dataclass(frozen=True)
class _Cause:
    """A component of a prediction, and whether it could explain the gap."""

    component: Component
    share: float
    factor: float | None
    verdict: str


def _explained(result: Any, rows: list[_Row]) -> list[_Cause]:
    """Return, for each component, the factor that would explain the gap of its quantity."""
    question, known = question_behind(result), {row.name: row for row in rows}
    found = []
    for component in components_of(result):
        field = component.quantity
        if isinstance(result, ServingResult):
            field = _CLOSED[field]
        whole, row = plain(result[field]), known.get(component.quantity)
        factor, verdict = None, "not measured"
        if row is not None and row.agrees:
            verdict = "no gap"
        elif row is not None:
            factor = needed_factor(component, question, field, whole, row.measured / 1e3)
            near = factor is not None and 1 / FAR <= factor <= FAR
            verdict = "possible" if near else "ruled out"
        found.append(_Cause(component, component.seconds / whole, factor, verdict))
    return found


def _goal(result: Any, rows: list[_Row]) -> str:
    """Return the time to improve: the one that is slow by most, or else the time to the end."""
    off = [row for row in rows if not row.agrees and row.error < 0 and row.name in SLO]
    if off:
        return max(off, key=lambda row: row.measured / row.predicted).name
    return "e2e_mean" if _predicted(result, "e2e_mean")[0] is not None else "ttft_mean"


def _levers(result: Any, goal: str) -> tuple[Table, str]:
    """Return the table of levers, and the best one in words."""
    opened = isinstance(result, OpenLoopResult)
    rate, unit = ("request_capacity", "1/s") if opened else ("output_throughput", "token/s")
    now, before = _predicted(result, goal)[0], plain(result[rate])
    rows: list[tuple[Any, ...]] = []
    best: tuple[str, float, float, float] | None = None
    for lever in levers_of(result):
        times = [_predicted(lever.result, n)[0] for n in ("ttft_mean", "tpot_mean", "e2e_mean")]
        after, more = _predicted(lever.result, goal)[0], plain(lever.result[rate])
        if not now or after is None:
            continue
        change = after / now - 1
        rows.append((lever.words, *times, more, lever.devices, change))
        kept = more / lever.devices >= (1 - _WORTH) * before / devices_of(result)
        if kept and lever.sure and change < min(-_WORTH, best[-1] if best else 0.0):
            best = (lever.words, after, more, change)
    rows.sort(key=lambda row: row[-1])
    heads = ("lever", "ttft_mean", "tpot_mean", "e2e_mean", rate, "devices", "change")
    units = ("", "ms", "ms", "ms", unit, "", "")
    columns = list(zip(*rows, strict=True)) or [()] * len(heads)
    table = Table(
        {h: Column(list(c), u) for h, c, u in zip(heads, columns, units, strict=True)}, limit=None
    )
    if now is None:
        return table, "The prediction has no times that a setting could shorten."
    if best is None:
        return table, f"No setting that we tried shortens {goal} at the same throughput per device."
    words, after, more, change = best
    said = (
        f"Next lever: {words} takes {goal} from {format_number(now, 3)} to "
        f"{format_number(after, 3)} ms ({change:+.0%}), and {rate} from {format_number(before, 3)} "
        f"to {format_number(more, 3)} {unit}, according to the model."
    )
    return table, said


_SHOWN = ("measured", "predicted", "unit", "error", "low", "high", "within")


def _table(rows: list[_Row]) -> Table:
    return Table(
        {
            "quantity": Column([row.name for row in rows]),
            **{name: Column([getattr(row, name) for row in rows]) for name in _SHOWN},
        },
        limit=None,
    )


def _component_table(causes: list[_Cause]) -> Table:
    return Table(
        {
            "quantity": Column([cause.component.quantity for cause in causes]),
            "phase": Column([cause.component.phase for cause in causes]),
            "component": Column([cause.component.name for cause in causes]),
            "time": Column([1e3 * cause.component.seconds for cause in causes], "ms"),
            "share": Column([cause.share for cause in causes]),
            "factor": Column([cause.factor for cause in causes]),
            "verdict": Column([cause.verdict for cause in causes]),
        },
        limit=None,
    )


def _agreement(rows: list[_Row]) -> str:
    """Return which quantities are in their bands."""
    banded = [row for row in rows if row.within is not None]
    off = [row for row in rows if not row.agrees]
    if not off:
        return f"All {len(rows)} quantities agree: {len(banded)} are within their band" + (
            f", the others within {_CLOSE:.0%}." if len(banded) < len(rows) else "."
        )
    listed = ", ".join(f"{row.name} ({row.error:+.0%})" for row in off)
    return (
        f"{len(off)} of {len(rows)} quantities are outside their band (or, if they have none, off "
        f"by more than {_CLOSE:.0%}): {listed}."
    )


def _measured(rows: list[_Row], parts: Mapping[str, float] | None) -> str:
    """Return what the measurement separates without a model."""
    known, said = {row.name: row for row in rows}, []
    if (
        parts is not None
        and not known["e2e_mean"].agrees
        and all(0 <= part <= 1 for part in parts.values())
    ):
        said.append(
            f"The first token accounts for {parts['first token']:.0%} of the end-to-end gap."
        )
    for time in ("ttft", "tpot", "e2e"):
        tail, middle = known.get(f"{time}_p99"), known.get(f"{time}_p50")
        if tail and middle and middle.agrees and not tail.agrees:
            said.append(
                f"The tail of {time} is off, but its median is not (p99 is "
                f"{tail.measured / middle.measured:.1f} times the median; "
                f"{tail.predicted / middle.predicted:.1f} times was predicted): check for bursts, "
                "a wider spread of lengths, and a cold start."
            )
    flight = known.get(_FLIGHT)
    if flight is not None and not flight.agrees:
        said.append(
            f"By Little's law, {format_number(flight.measured, 3)} requests were in flight, not "
            f"{format_number(flight.predicted, 3)}."
        )
    return " ".join(said)


def _causes(rows: list[_Row], causes: list[_Cause]) -> list[str]:
    """Return which components could explain each gap."""
    said = []
    for row in rows:
        own = [cause for cause in causes if cause.component.quantity == row.name]
        if row.agrees or not own:
            continue
        likely = [cause for cause in own if cause.verdict == "possible" and cause.factor]
        likely.sort(key=lambda cause: abs(math.log(cause.factor or 1)))
        out = [cause.component.name for cause in own if cause.verdict == "ruled out"]
        slow = row.error < 0
        ways = "; ".join(
            f"{cause.component.name} ×{format_number(cause.factor, 2)}"
            + (f" (check {check})" if slow and (check := _CHECKS.get(_key(cause))) else "")
            for cause in likely
        )
        text = (
            f"{row.name} is {format_number(row.measured, 3)} ms, and "
            f"{format_number(row.predicted, 3)} ms was predicted. "
        )
        text += (
            f"Any one of these alone would explain it: {ways}."
            if ways
            else ("No component alone explains it: check the load, the model and the hardware.")
        )
        if ways and out:
            text += f" Ruled out: {', '.join(out)}."
        if not slow:
            text += f" It is faster than predicted: check {_FASTER[row.name]}."
        said.append(text)
    return said


def _key(cause: _Cause) -> tuple[str, str]:
    return cause.component.phase, cause.component.name
