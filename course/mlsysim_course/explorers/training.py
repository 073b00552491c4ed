"""Explorers of training: a ring, memory, a split, checkpoints and a budget."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.errors import ConfigError
from mlsysim.core.numeric import Value, maximum
from mlsysim.core.recording import Input
from mlsysim.core.types import Fleet
from mlsysim.core.units import Q_
from mlsysim.registry import Infra, Models, Systems
from mlsysim.solvers import DistributedSolver, EconomicsSolver, ReliabilitySolver
from mlsysim_course.controls import Selector, Slider
from mlsysim_course.explorers.charts import axis, bars, cells, line, lines, mark, part, rule
from mlsysim_course.explorers.declare import (
    Answer,
    Explorer,
    amount,
    by_formula,
    figure,
    options,
    read,
)

LINKS = ("NVLink4", "NVLink5", "InfiniBand_NDR", "InfiniBand_HDR", "RoCE_400G", "Ethernet_100G")
FABRICS = ("InfiniBand_NDR", "InfiniBand_HDR", "RoCE_400G", "Ethernet_100G")
TRAINED = ("Llama3_2_1B", "Llama3_8B", "Qwen3_14B", "Llama3_70B")
POWERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_TEXTBOOK = 0.5
# Fields of a training step and their labels.
TIMES = {
    "compute_latency": "compute",
    "tp_communication_latency": "tensor parallelism",
    "pp_communication_latency": "stage to stage",
    "pipeline_bubble_latency": "bubble",
    "dp_communication_latency": "gradients",
}
STATES = {
    "weights_memory": "weights",
    "gradient_memory": "gradients",
    "optimizer_memory": "optimizer",
    "activation_memory": "activations",
    "working_memory": "working space",
}


def _ring(s: Mapping[str, Any]) -> Answer:
    ranks = s["ranks"]
    link = getattr(Systems, s["link"])
    size = Q_(float(s["size"]), "MB")
    last = 2 * (ranks - 1)
    step = min(s["step"], last)
    chart = cells(
        axis("Part of the message"),
        axis("Rank"),
        [
            {"x": chunk + 1, "y": rank + 1, "value": number / ranks, "text": str(number)}
            for rank in range(ranks)
            for chunk, number in enumerate(_sums(ranks, step)[rank])
        ],
    )
    complete = sum(number == ranks for row in _sums(ranks, step) for number in row)
    phase = f", in the {'reduce-scatter' if step < ranks else 'all-gather'}" if step else ""
    done = f"After step {step} of {last} on a ring of {ranks} ranks{phase}"
    if step < s["step"]:
        done = f"A ring of {ranks} ranks has only {last} steps, and all are done"
    row = {"bandwidth": link.bandwidth, "latency": link.latency}
    given = {
        "message_size": size,
        "ranks": ranks,
        **{
            name: Input(name, value, "", f"{link.name}.{name}", link.source_of(name))
            for name, value in row.items()
        },
    }
    whole = by_formula("Whole all-reduce", f.ring_all_reduce_time, "ms", given)
    return Answer(
        f"{done}: {complete} of {ranks**2} parts are complete sums. All {last} steps take "
        f"{figure(whole.value)} ms on {link.name}.",
        (
            whole,
            by_formula("Bus bandwidth", _ring_bandwidth, "GB/s", given),
            by_formula(
                "Complete parts",
                _complete_parts,
                "",
                {"ranks": ranks, "steps": step},
                shown=f"of {ranks**2}",
            ),
        ),
        (chart,),
    )


def _ring_bandwidth(message_size: Value, ranks: Value, bandwidth: Value, latency: Value) -> Value:
    """Return the bus bandwidth of a ring all-reduce."""
    time = f.ring_all_reduce_time(message_size, ranks, bandwidth, latency)
    return f.bus_bandwidth(message_size, ranks, time)


def _complete_parts(ranks: Value, steps: Value) -> Value:
    """Return the complete sums: one per rank after the reduce-scatter, one more after each step."""
    gathered = steps - (ranks - 1)
    return ranks * maximum(0, 1 + gathered)


def _sums(ranks: int, steps: int) -> list[list[int]]:
    """Return how many ranks' values each part on each rank holds after some steps of a ring."""
    held = [[1] * ranks for _ in range(ranks)]
    for step in range(steps):
        gathering = step >= ranks - 1
        sent = []
        for rank in range(ranks):
            chunk = (rank - step) % ranks
            sent.append((chunk, held[rank][chunk]))
        for rank, (chunk, number) in enumerate(sent):
            to = (rank + 1) % ranks
            held[to][chunk] = number if gathering else held[to][chunk] + number
    return held


RING = Explorer(
    "ring",
    "Step around a ring",
    "One all-reduce over ranks that each have one link of the given kind. The parts of the message "
    "are equal.",
    (
        Slider("step", "Steps completed", 0, tuple(range(15))),
        Slider("ranks", "Ranks", 4, (2, 3, 4, 5, 6, 7, 8)),
        Slider("size", "Message size", 1000, (1, 10, 100, 1000, 10_000), "MB"),
        Selector("link", "Link", "NVLink4", options(Systems, LINKS)),
    ),
    _ring,
)
"""A ring all-reduce, step by step, and its time."""


def _fleet(devices: int, fabric: str = "InfiniBand_NDR") -> Fleet:
    """Return a fleet of H100 servers; fewer than eight devices share one server."""
    node = Systems.Nodes.DGX_H100
    return Fleet(
        name=f"{devices} H100",
        node=node,
        count=devices // node.accelerators_per_node,
        fabric=getattr(Systems, fabric),
    )


_LENGTH = 8192  # tokens of a sequence


def _memory(s: Mapping[str, Any]) -> Answer:
    model = getattr(Models, s["model"])
    result = DistributedSolver.solve(
        model=model,
        fleet=_fleet(s["devices"]),
        batch_size=s["devices"],
        seq_len=_LENGTH,
        precision="bf16",
        zero_stage=int(s["zero"]),
        recompute=s["recompute"],
        efficiency=_TEXTBOOK,
    )
    need, room = amount(result.memory, "GB"), amount(result.memory_capacity, "GB")
    verdict = "fits" if result.fits_memory else "does not fit"
    return Answer(
        f"{model.name} on {s['devices']:,} H100 GPUs, one sequence of {_LENGTH:,} tokens on each: "
        f"a GPU needs {figure(need)} GB and has {figure(room)} GB, so the step {verdict}.",
        (
            read("Memory per GPU", result, "memory", "GB"),
            *(read(name.capitalize(), result, key, "GB") for key, name in STATES.items()),
        ),
        (memory_bar(result),),
        "good" if result.fits_memory else "bad",
    )


def memory_bar(result: Any) -> dict[str, Any]:
    """Return a chart of the memory of a GPU in a training step by its parts."""
    return bars(
        axis("GB per GPU", zero=True),
        [part("memory", name, amount(getattr(result, key), "GB")) for key, name in STATES.items()],
        rules=[rule(amount(result.memory_capacity, "GB"), "capacity", of="x")],
    )


RECOMPUTE = {"none": "nothing", "selective": "attention only", "full": "whole layers"}

MEMORY = Explorer(
    "memory",
    "Make a training step fit",
    "One step in bf16 with AdamW on H100 servers, without tensor or pipeline parallelism: one "
    f"sequence of {_LENGTH:,} tokens on each GPU.",
    (
        Selector("model", "Model", "Llama3_8B", options(Models, TRAINED)),
        Slider("devices", "GPUs", 64, (8, 16, 32, 64, 128, 256)),
        Selector("zero", "ZeRO stage", "0", {str(n): str(n) for n in range(4)}),
        Selector("recompute", "Recompute", "selective", RECOMPUTE),
    ),
    _memory,
)
"""The memory of a device in a training step."""


_SPLIT_GPUS = 256
SPLIT_JOB: dict[str, Any] = {
    "model": Models.Llama3_70B,
    "batch_size": 256,
    "seq_len": 2048,
    "precision": "fp16",
    "efficiency": _TEXTBOOK,
}
"""The job of the tutorial that shows this explorer, which compares its plans."""


def _split(s: Mapping[str, Any]) -> Answer:
    result = DistributedSolver.solve(
        fleet=_fleet(_SPLIT_GPUS, s["fabric"]),
        tp_size=s["tp"],
        pp_size=s["pp"],
        microbatch_count=s["microbatches"],
        **SPLIT_JOB,
    )
    seconds = amount(result.step_latency_total, "s")
    runs = "" if result.feasible else " This plan cannot run: " + "; ".join(result.reasons) + "."
    return Answer(
        f"TP = {s['tp']}, PP = {s['pp']} and {result.dp_size} replicas: a step takes "
        f"{figure(seconds)} s, at an MFU of {figure(100 * result.mfu)}%.{runs}",
        (
            read("Step time", result, "step_latency_total", "s"),
            read("MFU", result, "mfu", shown="%", scale=100),
            read("Memory per GPU", result, "memory", "GB"),
            read("Scaling efficiency", result, "scaling_efficiency", shown="%", scale=100),
        ),
        (
            bars(
                axis("Seconds", zero=True),
                [part("time", name, amount(getattr(result, k), "s")) for k, name in TIMES.items()],
            ),
            memory_bar(result),
        ),
        "good" if result.feasible else "bad",
    )


SPLIT = Explorer(
    "split",
    "Split 256 GPUs yourself",
    f"One step of {SPLIT_JOB['model'].name} in {SPLIT_JOB['precision']} on {_SPLIT_GPUS} H100 "
    f"GPUs: {SPLIT_JOB['batch_size']} sequences of {SPLIT_JOB['seq_len']:,} tokens, without ZeRO. "
    f"Compute reaches {_TEXTBOOK:.0%} of the peak, and nothing overlaps.",
    (
        Slider("tp", "Tensor-parallel GPUs (TP)", 8, (1, 2, 4, 8)),
        Slider("pp", "Pipeline stages (PP)", 4, (1, 2, 4, 8, 16)),
        Slider("microbatches", "Microbatches", 32, POWERS),
        Selector("fabric", "Network", "Ethernet_100G", options(Systems, FABRICS)),
    ),
    _split,
)
"""A model of 70 billion parameters over 256 GPUs: the time of a step, and the memory."""


_DAYS = 54
INTERVALS = (2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240)


def _checkpoint(s: Mapping[str, Any]) -> Answer:
    fleet = _fleet(s["devices"])

    def solve(minutes: float | None) -> Any:
        return ReliabilitySolver.solve(
            fleet=fleet,
            job_duration_hours=Q_(float(_DAYS), "day"),
            checkpoint_time_s=s["write"],
            restart_time=Q_(float(s["restart"]), "minute"),
            checkpoint_interval=None if minutes is None else Q_(float(minutes), "minute"),
        )

    result, best = solve(s["interval"]), solve(None)
    tried = [(minutes, solve(minutes)) for minutes in INTERVALS]
    job = 24.0 * _DAYS
    curves: dict[str, Callable[[Any], float]] = {
        "all": lambda r: 100 * (1 - r.goodput),
        "writing": lambda r: 100 * amount(r.checkpoint_overhead, "h") / job,
        "failures": lambda r: 100 * amount(r.failure_loss, "h") / job,
    }
    young = amount(best.optimal_checkpoint_interval, "minute")
    waste = curves["all"]
    return Answer(
        f"{s['devices']:,} GPUs that write a checkpoint every {s['interval']} minutes lose "
        f"{figure(waste(result))}% of the time. The best interval, {figure(young)} minutes, loses "
        f"{figure(waste(best))}%.",
        (
            read("Goodput", result, "goodput", shown="%", scale=100),
            read("Best interval", result, "optimal_checkpoint_interval", "minute", shown="min"),
            read("Time between failures", result, "fleet_mtbf", "h"),
            read("Lost to failures", result, "failure_loss", "h"),
        ),
        (
            lines(
                axis("Minutes of work between checkpoints", log=True),
                axis("Lost share of the time (%)", zero=True),
                [
                    line(name, [(minutes, curve(r)) for minutes, r in tried], dashed=name != "all")
                    for name, curve in curves.items()
                ],
                marks=[mark(s["interval"], waste(result), f"{s['interval']} min")],
                rules=[rule(young, "best", of="x")] if young <= INTERVALS[-1] else (),
            ),
        ),
    )


CHECKPOINT = Explorer(
    "checkpoint",
    "Choose the checkpoint interval",
    f"A job that is planned for {_DAYS} days on H100 servers, which fail as often as the GPUs of "
    "Llama 3's training did.",
    (
        Slider("interval", "Minutes between checkpoints", 60, INTERVALS, "min"),
        Slider("devices", "GPUs", 16_384, (256, 1024, 4096, 16_384, 65_536)),
        Slider("write", "Time to write one", 60, (5, 15, 30, 60, 120, 300), "s"),
        Slider("restart", "Time to restart", 10, (1, 5, 10, 30, 60), "min"),
    ),
    _checkpoint,
)
"""The time lost to failures and checkpoints, by interval."""


# A search of all plans needs NumPy and takes longer than a reader waits, so this compares a few
# plans for each number of GPUs: these tensor-parallel sizes, pipeline stages and ZeRO stages.
PLANS = ((1, 1, 3), (8, 1, 1), (8, 4, 1))
SIZES = (8, 32, 128, 512, 2048)
_COMPARED = (
    f"This compares only {len(PLANS) * len(SIZES)} plans: {SIZES[0]} to {SIZES[-1]:,} GPUs, each "
    f"split in {len(PLANS)} ways."
)
_BATCH, _CONTEXT = 2048, 4096


@functools.cache
def _best(model: str, devices: int) -> Any:
    """Return the fastest of the plans that can run, or nothing."""
    found = [result for plan in PLANS if (result := _plan(model, devices, *plan)) is not None]
    return min(found, key=lambda r: amount(r.step_latency_total, "s"), default=None)


def _plan(model: str, devices: int, tp: int, pp: int, zero: int) -> Any:
    try:
        result = DistributedSolver.solve(
            model=getattr(Models, model),
            fleet=_fleet(devices),
            batch_size=_BATCH,
            seq_len=_CONTEXT,
            precision="bf16",
            tp_size=tp,
            pp_size=pp,
            microbatch_count=max(1, _BATCH * tp * pp // devices),
            zero_stage=zero,
            recompute="full",
        )
    except ConfigError:  # it does not divide the fleet or the model
        return None
    return result if result.feasible else None


@functools.cache
def _priced(model: str, devices: int, offer: str, tokens: int) -> Any:
    result = _best(model, devices)
    return EconomicsSolver.solve(
        fleet=_fleet(devices),
        duration_days=1,
        datacenter=Infra.US_Avg,
        rental_offer=getattr(Systems.Offers, offer),
        token_throughput=result.token_throughput,
        training_tokens=1e9 * tokens,
    )


def _cases(s: Mapping[str, Any]) -> Iterator[tuple[int, Any, float, float]]:
    """Yield each number of GPUs that can run, its plan, the days and the cost in dollars."""
    for devices in SIZES:
        result = _best(s["model"], devices)
        if result is not None:
            priced = _priced(s["model"], devices, s["offer"], s["tokens"])
            days = amount(priced.training_time, "day")
            yield devices, result, days, amount(priced.rental_training_cost, "USD")


def _advice(s: Mapping[str, Any]) -> Answer:
    model, budget = getattr(Models, s["model"]), 1000.0 * s["budget"]
    cases = list(_cases(s))
    if not cases:
        raise ConfigError(f"{model.name} does not fit on any of these fleets", argument="model")
    paid = [case for case in cases if case[3] <= budget]
    devices, result, days, cost = min(paid or cases, key=lambda c: c[2] if paid else c[3])
    priced = _priced(s["model"], devices, s["offer"], s["tokens"])
    plan = f"TP = {result.parallelism.tp}, PP = {result.parallelism.pp}, {result.dp_size} replicas"
    what = f"{model.name} on {s['tokens']:,} billion tokens for at most ${budget:,.0f}"
    # A fraction of a day is easier to read in hours.
    unit, long = ("day", "days") if days >= 2 else ("h", "hours")
    time = figure(amount(priced.training_time, unit))
    found = (
        f"{devices:,} GPUs finish first, in {time} {long} for ${cost:,.0f} ({plan})"
        if paid
        else f"none of these fleets is cheap enough. The cheapest, {devices:,} GPUs, costs "
        f"${cost:,.0f} ({plan})"
    )
    return Answer(
        f"{what}: {found}. {_COMPARED}",
        (
            read("Training time", priced, "training_time", unit, shown=long),
            read("Rent", priced, "rental_training_cost", "USD", shown="$"),
            read("Tokens per second", result, "token_throughput", "1/s", shown="tokens/s"),
            read("Memory per GPU", result, "memory", "GB"),
        ),
        (
            lines(
                axis("Days", log=True),
                axis("Dollars", log=True),
                [line("fleets, from large to small", [(c[2], c[3]) for c in reversed(cases)])],
                marks=[mark(days, cost, f"{devices:,} GPUs")],
                rules=[rule(budget, "budget")],
            ),
        ),
        "good" if paid else "bad",
    )


_H100_OFFERS = ("Lambda_H100", "AWS_H100", "AWS_H100_Block", "RunPod_H100")

ADVICE = Explorer(
    "advice",
    "Plan a run within a budget",
    f"Steps of {_BATCH:,} sequences of {_CONTEXT:,} tokens in bf16 on H100 servers with InfiniBand "
    "NDR. Every layer is recomputed. The operator-level model gives the times.",
    (
        Selector("model", "Model", "Llama3_8B", options(Models, TRAINED)),
        Slider(
            "tokens", "Training tokens", 200, (10, 20, 50, 100, 200, 500, 1000, 2000), "billion"
        ),
        Slider(
            "budget",
            "Budget",
            100,
            (10, 20, 50, 100, 200, 500, 1000, 2000, 5000),
            "thousand dollars",
        ),
        Selector("offer", "Rent", "Lambda_H100", options(Systems.Offers, _H100_OFFERS)),
    ),
    _advice,
)
"""The fastest of a few fleets of H100 that stays within a budget."""
