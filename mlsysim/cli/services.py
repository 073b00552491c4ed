"""Services: engines for a load, replicas over a day, and measurements against predictions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click
import numpy as np

from mlsysim.cli.formats import attributes, formatted, show
from mlsysim.cli.options import Asking, Parameter, Signature, answer_fields, key_value, signature_of
from mlsysim.cli.questions import ROWS, show_rows
from mlsysim.core.errors import ConfigError
from mlsysim.core.result import plain
from mlsysim.core.units import Q_, format_number, is_quantity
from mlsysim.planner import capacity as find_capacity
from mlsysim.planner import compare as find_gap
from mlsysim.planner import plan_serving, read_benchmark
from mlsysim.planner.benchmarks.gaps import predict_load
from mlsysim.planner.service.limits import SLO
from mlsysim.solvers import OpenLoopSolver, ServingSolver
from mlsysim.solvers.arguments import Amount
from mlsysim.traffic import Trace, Traffic, read_trace
from mlsysim.traffic.trace import UNITS

_LOAD = (
    "arrival_rate",
    "seq_len",
    "output_len",
    "burstiness",
    "input_variation",
    "output_variation",
)
_SOLVER = signature_of(OpenLoopSolver).parameters
_TIMES = {"ttft": "time to first token", "tpot": "time per output token", "e2e": "time to the end"}


def _signature(name: str, function: Any) -> Signature:
    """Return a function's arguments, with those of its model, hardware, traffic and limits."""
    load = {argument: _SOLVER[argument] for argument in ("model", "hardware", *_LOAD)}
    # A trace may contain the rate.
    load["arrival_rate"] = load["arrival_rate"]._replace(default=None)
    for variation in ("input_variation", "output_variation"):
        kind, _, note = load[variation]
        note += " The default is that of conversations in a public trace of Azure."
        load[variation] = Parameter(kind, getattr(Traffic, variation), note)
    limits = {}
    for limit in SLO:
        time, part = limit.split("_")
        note = f"Limit of the {_TIMES[time]}, {part}."
        limits[limit] = Parameter(Amount(unit="s", optional=True), None, note)
    return Signature(name, {**load, **Signature.of(function).parameters, **limits})


_SERVICE = (
    *("goal", "confidence", "least_confidence", "traffic", "searched", "keep_limits", "best"),
    *("servers", "prices"),
    *("remarks", "headroom", "keeps_limits", "outside", "certainty", "stays_best", "rivals"),
    *("untested", "plans", "front", "alternatives", "refused"),
)
_PLAN, _DAY = _signature("serve-plan", plan_serving), _signature("capacity", find_capacity)
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


def _trace_of(path: str | None, **reading: Any) -> tuple[Trace | None, str]:
    """Return the trace that the options describe, and its name."""
    given = {name: value for name, value in reading.items() if value not in ((), None)}
    if path is None:
        for name in given:
            raise ConfigError(
                f"{name} applies only to a trace: give --trace too, or leave it out", argument=name
            )
        return None, ""
    only = dict(key_value(text, "only", "COLUMN=WORD") for text in given.pop("only", ()))
    return read_trace(path, only, **given), Path(path).stem


def _traffic(arguments: dict[str, Any], trace: Trace | None, name: str) -> Traffic:
    """Take the traffic out of the arguments, or return that of a trace."""
    stated = {name: arguments.pop(name) for name in _LOAD if name in arguments}
    if trace is not None:
        if stated:
            raise ConfigError(
                f"{', '.join(stated)}: a trace already contains this; leave out one of the two",
                argument="trace",
            )
        traffic = Traffic.of(trace, name=name)
        if traffic.cached_share is not None and "cached_share" in arguments:
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
    means = {name: _SOLVER[name].default for name in ("seq_len", "output_len")}
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


def _without_limits(arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments that are not limits, and the limits."""
    slo = {name: arguments.pop(name) for name in SLO if arguments.get(name) is not None}
    if not slo:
        raise ConfigError(
            'no limit is given: add at least one, such as --ttft-p99 "500 ms"', argument="slo"
        )
    # Without a confidence, predictions are exact; every other null is the default.
    known = {
        name: value
        for name, value in arguments.items()
        if value is not None or name == "confidence"
    }
    return known, slo


@click.command(
    "serve-plan",
    cls=Asking,
    signature=_PLAN,
    axes=True,
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
    arguments: dict[str, Any],
    limit: int,
    runs: str | None,
    fields: tuple[str, ...],
    form: str,
    trace: str | None,
    **reading: Any,
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
    requests, name = _trace_of(trace, **reading)
    given, slo = _without_limits(arguments)
    traffic = _traffic(given, requests, name)
    plan = plan_serving(given.pop("model"), traffic, slo, given.pop("hardware"), **given)
    plans = plan.plans.select(*fields) if fields else plan.plans
    if form in ("csv", "md"):
        show_rows(form, plans, limit)
        return
    tables = {} if runs is None else {"measured": plan.measured(runs)}
    show(
        form,
        plan,
        text=lambda: "\n\nmeasured:\n".join(
            [_described(requests, traffic) + str(plan), *map(str, tables.values())]
        ),
        data=lambda: attributes(
            plan,
            *_SERVICE,
            *tables,
            traffic=traffic.arguments(),
            keep_limits=len(plan.plans),
            servers=plan.plans.servers(0),
            plans=plans.take(range(min(limit, len(plans)))),
            **tables,
        ),
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
    arguments: dict[str, Any], day: str | None, form: str, trace: str | None, **reading: Any
) -> None:
    """Compute the replicas needed over a day, and compare renting, reserving, owning and an API.

    Give the day as rates, or count it from a trace.
    """
    if day is not None and trace is not None:
        raise _both_rates("trace")
    requests, name = _trace_of(trace, **reading)
    given, slo = _without_limits(arguments)
    rates: Any = requests
    if day is not None:
        if given.get("arrival_rate") is not None:
            raise _both_rates("arrival_rate")
        rates = _rates(day)
        given["arrival_rate"] = max([*rates, 1e-9])
    traffic = _traffic(given, requests, name)
    plan = find_capacity(
        given.pop("model"), given.pop("hardware"), traffic, slo, day=rates, **given
    )
    show(
        form,
        plan,
        text=lambda: _described(requests, traffic) + str(plan),
        data=lambda: {"traffic": plain(traffic.arguments()), **plain(plan)},
        table=lambda: plan.slots,
    )


def _both_rates(name: str) -> ConfigError:
    return ConfigError(f"day and {name} both give rates: leave out one of the two", argument=name)


def _rates(text: str) -> list[float]:
    rates = []
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
        rates.append(rate)
    return rates


_CLOSED = signature_of(ServingSolver).parameters
_EITHER = {**_CLOSED, **_SOLVER}
# The file may state the load.
for _load in ("arrival_rate", "batch_size"):
    _EITHER[_load] = _EITHER[_load]._replace(default=None)


@click.command(
    cls=Asking,
    signature=Signature("compare", _EITHER),
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
def compare(arguments: dict[str, Any], file: str, form: str, table: str) -> None:
    """Compare the JSON FILE of a load generator with the prediction for the same load.

    The file may come from vLLM's or SGLang's serving benchmark, AIPerf, GenAI-Perf or llm-bench.
    The load (--arrival-rate, or --batch-size for a fixed number of clients, --seq-len and
    --output-len) and the engine's constants (--calibration) follow the file unless you give them.
    """
    benchmark = read_benchmark(file)
    result, load = predict_load(benchmark, arguments)
    gap = find_gap(result, benchmark)
    remarks = [load] if load else []
    show(
        form,
        gap,
        text=lambda: "\n".join([*remarks, str(gap)]),
        data=lambda: {**plain(gap), "notes": [*remarks, *filter(None, gap.notes)]},
        table=lambda: getattr(gap, table),
    )
