"""Which split of a training job is best? An exhaustive search."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated, Any, Unpack

import numpy as np

from mlsysim.core.errors import ConfigError, OOMError, ParallelismError, shown
from mlsysim.core.result import Result
from mlsysim.core.types import (
    Datacenter,
    Fleet,
    GridProfile,
    TransformerModel,
    find_precision,
)
from mlsysim.core.units import Q_, Quantity, is_quantity, real_number
from mlsysim.planner.prices import Price, prices_of
from mlsysim.planner.training.advice import Advice, Alternative, Bill, alternatives
from mlsysim.planner.training.contrasts import compared
from mlsysim.planner.training.diagnosis import diagnose
from mlsysim.planner.training.goals import GOALS, MILLION, Goal
from mlsysim.planner.training.search import Plans, Search, front
from mlsysim.planner.training.space import EXCHANGE, LEVERS
from mlsysim.registry.calibration.published import best_published
from mlsysim.solvers import DistributedSolver, EconomicsSolver
from mlsysim.solvers.arguments import Amount, Choice, Portion, Switch, is_axis
from mlsysim.solvers.signatures import composed, defaults_in, given_to
from mlsysim.solvers.training.inputs import TrainingArguments
from mlsysim.sweeps.slices import Executors, Progress, reporter

_MOST_CHOICES = 10_000
"""Choices for one argument."""
_MOST_SEARCHES = 1_000
"""Most pairs of a fleet and a batch; each takes 10 to 100 ms."""


@dataclass(frozen=True)
class Reserve(Amount):
    """Memory to leave free: a quantity, or a share of the device's memory."""

    unit: str = "byte"  # type: ignore[misc]
    zero: bool = True
    plain: bool = True
    optional: bool = True

    @property
    def wanted(self) -> str:
        """What to give, in words."""
        return (
            "a share of the device's memory from 0 to below 1, such as 0.08, or a quantity such as "
            'Q_(5, "GB")'
        )

    def _admit(self, name: str, value: Any) -> Callable[[float], float]:
        if is_quantity(value):
            size: float = super()._admit(name, value)
            return lambda capacity: size
        share = real_number(value)
        if share is None:
            raise ConfigError(
                f"{name} = {shown(value)} is neither a number nor a quantity: give {self.wanted}",
                argument=name,
            )
        if not 0 <= share < 1:
            raise self._refusal(name, value, share)
        return lambda capacity: share * capacity


_STEP, _PRICES = DistributedSolver.parameters, EconomicsSolver.parameters
_RESERVE, _FAILURES, _WITHIN = Reserve(), Switch(), Portion()


@composed(dict.fromkeys(LEVERS))
def advise(
    *,
    model: Annotated[TransformerModel, _STEP["model"]],
    fleet: Annotated[Fleet | Sequence[Fleet], _STEP["fleet"]],
    batch_size: Annotated[int | Sequence[int], _STEP["batch_size"]],
    goal: Annotated[str, Choice.among(GOALS)] = "throughput",
    training_tokens: Annotated[float | None, _PRICES["training_tokens"]] = None,
    datacenter: Annotated[Datacenter | GridProfile | None, _PRICES["datacenter"]] = None,
    kwh_price: Annotated[float | Quantity | None, _PRICES["kwh_price"]] = None,
    unit_price: Annotated[
        float | Quantity | Sequence[Any] | Mapping[str, Any] | None, _PRICES["unit_price"]
    ] = None,
    rental_price: Annotated[
        float | Quantity | Sequence[Any] | Mapping[str, Any] | None, _PRICES["rental_price"]
    ] = None,
    memory_reserve: Annotated[float | Quantity | None, _RESERVE] = 0.08,
    failures: Annotated[bool, _FAILURES] = True,
    within: Annotated[float, _WITHIN] = 0.05,
    executor: Executors | None = None,
    progress: Progress = False,
    **job: Unpack[
        TrainingArguments[
            int | Sequence[int] | None, str | Sequence[str] | None, bool | Sequence[bool] | None
        ]
    ],
) -> Advice:
    """Find the best way to split a training job, by trying all of them.

    Levers that are left out are searched over all sensible values. A single value fixes a lever,
    and a list limits it.

    Parameters
    ----------
    model
        A transformer.
    fleet
        The nodes and the network between them, or several fleets to choose from.
    batch_size
        Sequences in the global batch, or several sizes to choose from. With a larger batch, a fleet
        trains more tokens per second but learns less from each; the model covers only throughput.
    goal
        ``"throughput"`` (tokens per second), ``"time"`` (of the training run), ``"cost"`` or
        ``"carbon"`` (of the run, or of a million tokens), or ``"fewest_devices"``: the fewest nodes
        of the fleet on which training is as fast as on all of them, up to a slowdown of `within`.
    training_tokens
        Tokens of the training run.
    datacenter
        The facility or the grid, for carbon and for the energy in the cost.
    kwh_price
        Price of electricity, as in `EconomicsSolver`. Rents include it.
    unit_price
        Price of a server: one for all fleets, one for each in their order, or a mapping from the
        names of fleets or devices.
    rental_price
        Rent of a device in USD per hour, in the same forms. All fleets are compared on one basis:
        `rental_price` if given, else `unit_price`, else the registry's purchase prices if all
        servers have one, else the lower median of the on-demand offers for each device. The answer
        states the basis.
    memory_reserve
        Memory of a device to leave free for what the model does not count: the driver, buffers of
        collectives, fragmentation. A share of the device's memory, or a quantity; `None` reserves
        nothing. Plans that leave less are not advised.
    failures
        Whether training time, cost and carbon include the time lost to failures and checkpoints, by
        `ReliabilitySolver` with its defaults.
    within
        How much slower than the best a plan with fewer devices may be, for
        ``goal="fewest_devices"`` and for the remark about a quarter of the devices.
    executor
        Where slices of the search are computed, as in `sweep`.
    progress
        Whether to draw a progress bar, or a function that is called with the configurations done
        and the total.

    Returns
    -------
    Advice
        The best plan, all feasible plans in order, the Pareto front, and the reasons.

    Raises
    ------
    ConfigError
        If an argument is out of range or has too many choices, or if the goal needs an argument
        that is missing.
    ParallelismError
        If no sizes within the limits tile the fleet.
    OOMError
        If no configuration fits in memory.

    Notes
    -----
    The search covers group sizes, the microbatches, chunks and schedule of the pipeline,
    `zero_stage`, `sequence_parallel` and `recompute`; other arguments are not searched, and plans
    that are incompatible with them are left out. It tries the schedules of the calibration's
    framework: ``"1f1b"`` and, for models without experts, ``"gpipe"``; for HAI-LLM ``"1f1b"`` and
    ``"dualpipe"``. Others it tries only if you list them. For models with experts, it recomputes
    parts of layers, as in ``"selective+norms+swiglu"``, where the framework has them and a plan
    that would otherwise not fit could then be the fastest. `exchange_overlap`, `expert_nodes` and
    `dispatch_precision` that are left out are what the framework can switch on: with Megatron-Core,
    exchanges that overlap with another microbatch (not with full recomputation, and in a pipeline
    only if it is interleaved), and tokens that are sent to each node once.

    All microbatches are whole, and chunks divide the layers evenly. Options without an effect are
    not tried: sequence parallelism without a tensor group, sharding without replicas, and
    recompute="none" with fused attention.

    Plans use the overlap of exchanges only if they also have room for the activations of one more
    microbatch (of one more chunk in a pipeline), which the solver's memory does not count.

    The best of many plans is partly the one that the model flatters most. The answer therefore
    compares it with the fastest published run of the model on the device, if there is one, and says
    that it is untested where it is faster or no run is known (`Advice.published`, `Advice.band`).

    Among almost equal plans, the simpler one comes first: context parallelism must gain more than
    1%, and tensor groups across nodes more than 3%. Among equal plans, the one with fewer context
    ranks, a lower ZeRO stage, fewer chunks and less memory comes first.

    Examples
    --------
    >>> from mlsysim import Models, Systems, advise
    >>> advice = advise(
    ...     model=Models.Llama3_8B,
    ...     fleet=Systems.Clusters.Research_256,
    ...     batch_size=512,
    ...     tp_size=[1, 2, 4, 8],
    ...     cp_size=1,
    ... )
    >>> advice.configuration["tp_size"]
    2
    >>> advice.best.feasible
    True
    """
    given = given_to(defaults_in(advise), locals(), job)
    fleets, batches = _several("fleet", fleet), _several("batch_size", batch_size)
    _check_searches(fleets, batches)
    economics = {
        "training_tokens": training_tokens,
        "datacenter": datacenter,
        "kwh_price": kwh_price,
    }
    fixed = _fixed(given, economics)
    tokens = EconomicsSolver.parameters["training_tokens"].admit("training_tokens", training_tokens)
    reserved = _RESERVE.admit("memory_reserve", memory_reserve)
    parts = (
        [(item, part) for item in fleets for part in _parts(item, batches)]
        if goal == "fewest_devices"
        else []
    )
    given_price = goal == "cost" or unit_price is not None or rental_price is not None
    try:
        prices = prices_of(fleets, unit_price=unit_price, rental_price=rental_price)
    except ConfigError:
        if given_price:
            raise
        prices = {}  # other goals need none
    prices |= {part.name: prices[item.name] for item, part in parts if item.name in prices}
    target = Goal(
        goal,
        tokens,
        prices,
        datacenter,
        kwh_price=kwh_price,
        failures=_FAILURES.admit("failures", failures),
        within=_WITHIN.admit("within", within),
    )
    exchange = {name: fixed[name] for name in EXCHANGE}
    if model.moe_layers and fixed["efficiency"] is None:
        fixed = {name: value for name, value in fixed.items() if name not in EXCHANGE}
    some = Search(
        model=model,
        fixed=fixed,
        exchange=exchange,
        given={n: _several(n, given[n]) for n in LEVERS if given[n] is not None},
        goal=target,
        reserve=reserved or (lambda capacity: 0.0),
        executor=executor,
        report=None if progress is False else reporter(progress),
    )
    small = [part for _, part in parts]
    search = replace(some, optional=frozenset(item.name for item in small))
    plans = search.run([*fleets, *small], batches)
    best, chosen = plans.result(0), plans.configuration(0)
    days = None if tokens is None else tokens / best.token_throughput.to("1/day").magnitude
    capacity = best.memory_capacity.to("byte").magnitude
    return Advice(
        goal=goal,
        best=best,
        configuration=chosen,
        plans=plans,
        front=front(plans, *target.against),
        alternatives=alternatives(plans, search),
        diagnoses=diagnose(best),
        searched=search.searched,
        quarter=None if goal == "fewest_devices" else _quarter(some, plans, batches),
        reliability=target.reliability(chosen["fleet"], model, fixed["precision"], days),
        prices={item.name: prices[item.name] for item in fleets if item.name in prices},
        reserve=Q_(some.reserve(capacity), "byte").to("GB"),
        published=best_published(
            model.name,
            chosen["fleet"].node.accelerator.name,
            find_precision(fixed["precision"]).name,
            int(fixed["seq_len"] or model.seq_len),
        )
        if fixed["lora_rank"] is None
        else None,
        bill=_bill(plans, target, prices, tokens),
        tight=search.tight,
        tight_gain=search.tight_rate / _fastest(plans) - 1 if search.tight else None,
    )


def _check_searches(fleets: Sequence[Fleet], batches: Sequence[int]) -> None:
    """Reject fleets of one name, and more pairs of a fleet and a batch than can be searched."""
    if len({item.name for item in fleets}) < len(fleets):
        raise ConfigError(
            "fleet: two fleets have the same name; give them different names", argument="fleet"
        )
    if len(fleets) * len(batches) > _MOST_SEARCHES:
        raise ConfigError(
            f"fleet x batch_size = {len(fleets)} x {len(batches)} choices are more than the "
            f"{_MOST_SEARCHES:,} that can be searched: give fewer, such as powers of two",
            argument="fleet" if len(fleets) > len(batches) else "batch_size",
        )


def _fixed(given: Mapping[str, Any], economics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the job that are not searched; each has one value."""
    searched = ("fleet", "batch_size", *LEVERS)
    fixed = {n: given[n] for n in DistributedSolver.parameters if n in given and n not in searched}
    for name, value in (fixed | dict(economics)).items():
        if is_axis(value):
            raise ConfigError(
                f"{name} = {shown(value)} has several values: give one, because it is not searched",
                argument=name,
            )
    for name, value in fixed.items():
        option = DistributedSolver.parameters[name].admit(name, value)
        if name in ("attention", "cp_kind", "loss", "optimizer"):
            fixed[name] = option.name  # options with the same name are the same
    for name, value in economics.items():
        EconomicsSolver.parameters[name].admit(name, value)
    return fixed | {"usable_memory": 1.0}  # the memory to leave free is `memory_reserve`


def _bill(
    plans: Plans, goal: Goal, prices: Mapping[str, Price], tokens: float | None
) -> Bill | None:
    """Return time, cost and carbon of the run, or those of a million tokens if that is the goal."""
    row, fleet = plans.row(0), plans.configuration(0)["fleet"]
    if tokens is None and goal.name not in ("cost", "carbon"):
        return None
    rate = row["token_throughput"].to("token/day").magnitude * (row.get("goodput") or 1.0)
    days = (MILLION if tokens is None else tokens) / rate
    price = prices.get(fleet.name)
    drawn = row["power_utilization"]
    use = (fleet, np.array([days]), np.array([math.nan if drawn is None else drawn]))
    bill = Bill(time=None if tokens is None else Q_(days, "day"))
    if goal.name == "carbon":
        footprint = goal.footprints(*use).result(0)
        bill = replace(
            bill,
            carbon=None if tokens is None else row["carbon"],
            carbon_per_token=row["carbon"]
            if tokens is None
            else row["carbon"] / Q_(tokens, "token"),
            carbon_source=_carbon_source(footprint),
        )
    if price is None:
        return bill
    costs = goal.costs(*use)
    cost = float(costs[price.column].to("USD").magnitude[0])
    source = price.source
    if not price.rented:
        electricity = costs.result(0)["kwh_price_source"]
        source = f"{price.source}: {price.amount}; electricity: {electricity}"
    return replace(
        bill,
        cost=None if tokens is None else Q_(cost, "USD"),
        cost_per_token=Q_(cost / (tokens or MILLION) * MILLION, "USD/Mtoken"),
        price=Q_(cost / (24 * days * fleet.total_accelerators), "USD/h"),
        rented=price.rented,
        source=source,
    )


def _carbon_source(footprint: Result) -> str:
    """Return what the carbon of a run includes."""
    electricity = f"electricity of {footprint['region_name']}"
    if footprint["total_carbon"] is None:
        return f"{electricity}; that of making the hardware is not known"
    return f"{electricity}, and a share of that of making the hardware"


def _fastest(plans: Plans) -> float:
    return float(plans["token_throughput"].to("token/s").magnitude.max())


def _parts(fleet: Fleet, batches: Sequence[int]) -> list[Fleet]:
    """Return fleets of some of the nodes.

    Groups and replicas divide the devices and the batch evenly, so their sizes are products of the
    prime factors of both; other sizes are not tried.
    """
    whole = fleet.count * math.prod(batches)
    return [
        replace(fleet, name=f"{count} nodes of {fleet.name}", count=count)
        for count in range(1, fleet.count)
        if whole ** count.bit_length() % count == 0
    ]


def _quarter(some: Search, plans: Plans, batches: Sequence[int]) -> Alternative | None:
    """Return the best plan on a quarter of the nodes, if it is about as fast as the best of all."""
    chosen, best = plans.configuration(0), plans.row(0)
    fleet, within = chosen["fleet"], some.goal.within
    # If devices cannot be used four times as well, there is nothing to search.
    if fleet.count % 4 or 4 * (1 - within) * best["mfu"] > 1:
        return None
    quarter = replace(fleet, name=f"a quarter of {fleet.name}", count=fleet.count // 4)
    plain = Goal("throughput", None, {}, None, kwh_price=None, failures=False, within=within)
    search = replace(some, goal=plain, report=None)
    try:
        quarter_plans = search.run([quarter], batches)
    except (OOMError, ParallelismError):
        return None
    against = compared(quarter_plans.row(0), best)
    if 1 / (1 + against.loss) < 1 - within:
        return None
    return Alternative(
        lever="devices",
        value=quarter.total_accelerators,
        configuration=quarter_plans.configuration(0),
        loss=against.loss,
        words=against.words,
    )


def _several(name: str, value: Any) -> list[Any]:
    """Return the choices for an argument, each validated by the solver."""
    kind = DistributedSolver.parameters[name]
    if isinstance(value, (str, Mapping)) or not is_axis(value):
        values = [value]
    else:
        values = list(islice(value, _MOST_CHOICES + 1))  # a range may have billions
    if len(values) > _MOST_CHOICES:
        raise ConfigError(
            f"{name} = {shown(value)} has more than {_MOST_CHOICES:,} choices: give a shorter "
            "list, such as [1, 2, 4]",
            argument=name,
        )
    if not values:
        raise ConfigError(f"{name} is empty: give one or more values", argument=name)
    options = [kind.admit(name, item) for item in values]
    if name in ("schedule", "recompute"):
        return [item.name for item in options]
    return [item.item() if hasattr(item, "item") else item for item in values]
