"""Services: engines for a load, replicas over a day, and measurements against predictions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click
import numpy as np

from mlsysim.cli.arguments import Signature, signature_of
from mlsysim.cli.formats import formatted, records, show
from mlsysim.cli.options import Asking, answer_fields
from mlsysim.cli.questions import ROWS, show_rows
from mlsysim.core.errors import ConfigError
from mlsysim.core.units import Q_, format_number, is_quantity
from mlsysim.planner import capacity as find_capacity
from mlsysim.planner import compare as find_gap
from mlsysim.planner import plan_serving, read_benchmark
from mlsysim.planner.benchmarks import predict_load
from mlsysim.planner.service import SLO
from mlsysim.scenario.scorecard import plain
from mlsysim.solvers import OpenLoopSolver, ServingSolver
from mlsysim.solvers.arguments import Amount, Argument
from mlsysim.traffic import Trace, Traffic, read_trace
from mlsysim.traffic.trace import UNITS

__all__ = ["capacity", "compare", "serve_plan"]

_LOAD = (
    "arrival_rate",
    "seq_len",
    "output_len",
    "burstiness",
    "input_variation",
    "output_variation",
)
_SOLVER = signature_of(OpenLoopSolver)
_LIMITS: dict[str, Argument] = {name: Amount(unit="s", optional=True) for name in SLO}
_WORDS = {"ttft": "time to first token", "tpot": "time per output token", "e2e": "time to the end"}


def _signature(name: str, function: Any) -> Signature:
    """Return a function's arguments, with those of its model, hardware, traffic and limits."""
    arguments = Signature.of(function)
    load = {n: _SOLVER.kinds[n] for n in ("model", "hardware", *_LOAD)}
    defaults = {n: _SOLVER.defaults[n] for n in load}
    defaults["arrival_rate"] = None  # a trace may contain it
    notes = {n: _SOLVER.notes[n] for n in load}
    for variation in ("input_variation", "output_variation"):
        defaults[variation] = getattr(Traffic, variation)
        notes[variation] += " The default is that of conversations in a public trace of Azure."
    for limit in SLO:
        time, part = limit.split("_")
        notes[limit] = f"Limit of the {_WORDS[time]}, {part}."
    return Signature(
        name,
        kinds={**load, **arguments.kinds, **_LIMITS},
        defaults={**defaults, **arguments.defaults, **dict.fromkeys(_LIMITS)},
        notes={**arguments.notes, **notes},
    )


_PLAN, _DAY = _signature("serve-plan", plan_serving), _signature("capacity", find_capacity)
_READING = ("only", "ignore", "time_unit", "hash_block", "cache_blocks")
_TRACE = (
    click.option(
        "--trace",
        type=click.Path(),
        help="A CSV file with arrival_s, input_tokens, output_tokens, for rate and lengths, and "
        "optionally cached_tokens or hash_ids, for the share in the prefix cache. Azure's and "
        "Mooncake's traces are read as published.",
    ),
    click.option(
        "--only",
        metavar="COLUMN=WORD",
        multiple=True,
        help="Only rows of the trace with this value.",
    ),
    click.option(
        "--ignore",
        metavar="COLUMN",
        multiple=True,
        help="A column of the trace to leave out; may be repeated.",
    ),
    click.option(
        "--time-unit",
        type=click.Choice(list(UNITS)),
        help="Unit of a trace's column timestamp, ms for Mooncake's traces; confirms the unit of "
        "arrival_s or arrival_ms if requests are unusually few or many.",
    ),
    click.option(
        "--hash-block",
        type=click.IntRange(1),
        help="Tokens in each block of a trace's hash_ids; 512 if left out.",
    ),
    click.option(
        "--cache-blocks",
        type=click.IntRange(1),
        help="Blocks that the prefix cache keeps, for hash_ids; all if left out.",
    ),
)


def _takes_trace(command: Any) -> Any:
    """Add the options for a trace to a command."""
    for option in reversed(_TRACE):
        command = option(command)
    return command


def _trace_of(words: dict[str, Any]) -> tuple[Trace | None, str]:
    """Take the options for a trace out of a command's, and return the trace and its name."""
    path, given = words.pop("trace"), {name: words.pop(name) for name in _READING}
    given = {name: value for name, value in given.items() if value not in ((), None)}
    if path is None:
        if given:
            name = next(iter(given))
            raise ConfigError(
                f"{name} applies only to a trace: give --trace too, or leave it out", argument=name
            )
        return None, ""
    return read_trace(path, _words(given.pop("only", ())), **given), Path(path).stem


def _traffic(given: dict[str, Any], trace: Trace | None, name: str) -> Traffic:
    """Return the traffic of a trace, or of the arguments."""
    stated = {name: given.pop(name) for name in _LOAD if name in given}
    if trace is not None:
        if stated:
            raise ConfigError(
                f"{', '.join(stated)}: a trace already contains this; leave out one of the two",
                argument="trace",
            )
        traffic = Traffic.of(trace, name=name)
        if traffic.cached_share is not None and "cached_share" in given:
            raise ConfigError(
                "cached_share: the trace already contains this; leave it out, or ignore the "
                "trace's column cached_tokens or hash_ids",
                argument="cached_share",
            )
        return traffic
    if stated.get("arrival_rate") is None:
        raise ConfigError(
            "arrival_rate is missing: add it, as in --arrival-rate 20, or a --trace",
            argument="arrival_rate",
        )
    rate = stated.pop("arrival_rate")
    rate = rate if is_quantity(rate) else Q_(rate, "1/s")
    means = {n: _SOLVER.defaults[n] for n in ("seq_len", "output_len")}
    return Traffic(arrival_rate=rate, **{**means, **stated})


def _described(trace: Trace | None, traffic: Traffic) -> str:
    """Return what was read from a trace, as a line of text."""
    if trace is None:
        return ""
    cached = "" if traffic.cached_share is None else f" ({traffic.cached_share:.1%} cached)"
    return (
        f"{traffic.name}: {len(trace):,} requests in {np.ptp(trace.arrivals) / 3600:.4g} h, "
        f"{format_number(traffic.arrival_rate)}, on average {traffic.seq_len:,.0f} tokens{cached} "
        f"in and {traffic.output_len:,.0f} out\n"
    )


def _words(only: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for item in only:
        column, equals, word = item.partition("=")
        if not equals:
            raise ConfigError(f"--only {item!r} is not COLUMN=WORD", argument="only")
        found[column.strip()] = word.strip()
    return found


def _read(
    signature: Signature, words: Any, settings: Any, axes: bool
) -> tuple[dict[str, Any], Any]:
    """Return the arguments without limits, and the limits."""
    given = signature.read(words, settings, axes=axes)
    slo = {name: given.pop(name) for name in SLO if given.get(name) is not None}
    if not slo:
        raise ConfigError(
            'no limit is given: add at least one, such as --ttft-p99 "500 ms"', argument="slo"
        )
    # Without a confidence, predictions are exact; every other null is the default.
    known = {n: value for n, value in given.items() if value is not None or n == "confidence"}
    return known, slo


@click.command(
    "serve-plan",
    cls=Asking,
    signature=_PLAN,
    example="mlsysim serve-plan --model Llama3_70B --hardware HGX_H200 "
    "--arrival-rate '2000 req/min' --seq-len 1000 --output-len 200 --ttft-p99 '1 s'",
)
@_takes_trace
@click.option(
    "--limit", type=click.IntRange(1), default=ROWS, show_default=True, help="Plans to list."
)
@click.option(
    "--runs",
    type=click.Path(),
    help="A CSV file of measured runs, as for validate; those of this model on these devices are "
    "listed.",
)
@answer_fields
@formatted
def serve_plan(
    settings: tuple[str, ...],
    limit: int,
    runs: str | None,
    fields: tuple[str, ...],
    form: str,
    **words: Any,
) -> None:
    """Find the engines for a service: devices, tensor parallelism, formats and replicas.

    Comma-separated values are choices. Give at least one limit, such as --ttft-p99 "500 ms". CSV
    and Markdown list the best plans.
    """
    if runs is not None and form in ("csv", "md"):
        raise ConfigError(
            f"runs adds a second table, but --format {form} has only plans: leave out one of "
            "the two",
            argument="runs",
        )
    trace, name = _trace_of(words)
    given, slo = _read(_PLAN, words, settings, axes=True)
    traffic = _traffic(given, trace, name)
    plan = plan_serving(given.pop("model"), traffic, slo, given.pop("hardware"), **given)
    plans = plan.plans.select(*fields) if fields else plan.plans
    if form in ("csv", "md"):
        show_rows(form, plans, limit)
        return
    top = plans.take(range(min(limit, len(plans))))
    measured = None if runs is None else plan.measured(runs)
    show(
        form,
        text=lambda: "\n\nmeasured:\n".join(
            [_described(trace, traffic) + str(plan), *([] if measured is None else [str(measured)])]
        ),
        data=lambda: {
            "goal": plan.goal,
            "confidence": plan.confidence,
            "traffic": _load(traffic),
            "searched": plan.searched,
            "keep_limits": len(plan.plans),
            "best": plain(plan.best),
            "servers": plan.plans.servers(0),
            "prices": dict(plan.prices),
            "remarks": list(plan.remarks),
            "headroom": dict(plan.headroom),
            "keeps_limits": plan.keeps_limits,
            "outside": list(plan.outside),
            "certainty": list(records(plan.certainty)),
            "stays_best": plan.stays_best,
            "rivals": list(plan.rivals),
            "untested": list(plan.untested),
            "plans": list(records(top)),
            "front": list(records(plan.front)),
            "alternatives": list(records(plan.alternatives)),
            "refused": dict(plan.refused),
            **({} if measured is None else {"measured": list(records(measured))}),
        },
        table=lambda: plans,
    )


@click.command(
    cls=Asking,
    signature=_DAY,
    example="mlsysim capacity --model Llama3_8B --hardware H100 --day 2,1,4,9,12,6 --slot '4 h' "
    "--seq-len 1000 --output-len 200 --ttft-p99 '1 s'",
)
@_takes_trace
@click.option(
    "--day",
    metavar="RATES",
    help="Requests per second in each part, separated by commas: 24 of them, or with --slot as "
    "many as make a day.",
)
@formatted
def capacity(
    settings: tuple[str, ...],
    day: str | None,
    form: str,
    **words: Any,
) -> None:
    """Compute the replicas needed over a day, and compare renting, reserving, owning and an API.

    Give the day as rates, or count it from a trace.
    """
    if day is not None and words["trace"] is not None:
        raise _both_rates("trace")
    trace, name = _trace_of(words)
    given, slo = _read(_DAY, words, settings, axes=False)
    rates: Any = trace
    if day is not None:
        if given.get("arrival_rate") is not None:
            raise _both_rates("arrival_rate")
        rates = _rates(day)
        given["arrival_rate"] = max([*rates, 1e-9])
    traffic = _traffic(given, trace, name)
    found = find_capacity(
        given.pop("model"), given.pop("hardware"), traffic, slo, day=rates, **given
    )
    costs = {name: plain(cost) for name, cost in found.costs.items()}
    show(
        form,
        text=lambda: _described(trace, traffic) + str(found),
        data=lambda: {
            "traffic": _load(traffic),
            "rate_per_replica": plain(found.rate_per_replica),
            "keeps_limits": found.keeps_limits,
            "outside": list(found.outside),
            "peak": found.peak,
            "costs": costs,
            "reserved_replicas": found.reserved_replicas,
            "api_cost": plain(found.api_cost),
            "break_even": plain(found.break_even),
            "slots": list(records(found.slots)),
            "words": found.words,
        },
        table=lambda: found.slots,
    )


def _load(traffic: Traffic) -> dict[str, Any]:
    return {name: plain(value) for name, value in traffic.arguments().items()}


def _both_rates(name: str) -> ConfigError:
    return ConfigError(f"day and {name} both give rates: leave out one of the two", argument=name)


def _rates(text: str) -> list[float]:
    found = []
    for spot, part in enumerate(text.split(",")):
        try:
            rate = float(part)
        except ValueError:
            rate = math.nan
        if not 0 <= rate < math.inf:
            raise ConfigError(
                f"day[{spot}] = {part.strip()!r} is not a rate: give requests per second, zero or "
                "more",
                argument="day",
            )
        found.append(rate)
    return found


def _either_loop() -> Signature:
    """Return the arguments of both loops. The file may state the load."""
    closed = signature_of(ServingSolver)
    return Signature(
        name="compare",
        kinds={**closed.kinds, **_SOLVER.kinds},
        defaults={**closed.defaults, **_SOLVER.defaults, "arrival_rate": None, "batch_size": None},
        notes={**closed.notes, **_SOLVER.notes},
    )


_EITHER = _either_loop()


@click.command(
    cls=Asking,
    signature=_EITHER,
    example="mlsysim compare benchmark.json --model Llama3_8B --hardware H100",
)
@click.argument("file", type=click.Path())
@click.option(
    "--table",
    type=click.Choice(("table", "components", "levers")),
    default="table",
    show_default=True,
    help="The table that CSV and Markdown contain; other formats contain all three.",
)
@formatted
def compare(
    file: str, settings: tuple[str, ...], form: str, table: str, **words: tuple[str, ...]
) -> None:
    """Compare the JSON FILE of a load generator with the prediction for the same load.

    The file may come from vLLM's or SGLang's serving benchmark, AIPerf, GenAI-Perf or llm-bench.
    The load (--arrival-rate, or --batch-size for a fixed number of clients, --seq-len and
    --output-len) and the engine's constants (--calibration) follow the file unless you give them.
    """
    benchmark = read_benchmark(file)
    result, taken = predict_load(benchmark, _EITHER.read(words, settings))
    gap = find_gap(result, benchmark)
    notes = [note for note in (taken, *gap.notes) if note]
    show(
        form,
        text=lambda: "\n".join([*([taken] if taken else []), str(gap)]),
        data=lambda: {
            "tool": gap.tool,
            "calibration": gap.calibration,
            "notes": notes,
            "parts": None if gap.parts is None else dict(gap.parts),
            "next_lever": gap.next_lever,
            "words": gap.words,
            "table": list(records(gap.table)),
            "components": list(records(gap.components)),
            "levers": list(records(gap.levers)),
        },
        table=lambda: getattr(gap, table),
    )
