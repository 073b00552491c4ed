"""Which split of a training job is best, by exhaustive search?"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.types import (
    Calibration,
    Datacenter,
    Fleet,
    GridProfile,
    PowerCalibration,
    TransformerModel,
)
from mlsysim.core.units import Quantity
from mlsysim.planner.advice import Advice, alternatives
from mlsysim.planner.diagnosis import diagnose
from mlsysim.planner.goals import GOALS, Goal
from mlsysim.planner.plans import front
from mlsysim.planner.search import Search
from mlsysim.planner.space import LEVERS
from mlsysim.slices import Executors, Progress, reporter
from mlsysim.solvers import DistributedSolver, EconomicsSolver
from mlsysim.solvers.arguments import Amount, Argument, Choice, is_axis

__all__ = ["PARAMETERS", "advise"]

_RESERVE = Amount(unit="byte", zero=True, optional=True)

_MOST_CHOICES = 10_000
"""Choices for one argument."""
_MOST_SEARCHES = 1_000
"""Most pairs of a fleet and a batch: each takes 10 to 100 ms."""


def advise(
    *,
    model: TransformerModel,
    fleet: Fleet | Sequence[Fleet],
    batch_size: int | Sequence[int],
    goal: str = "throughput",
    precision: str = "fp16",
    seq_len: int | None = None,
    tp_size: int | Sequence[int] | None = None,
    pp_size: int | Sequence[int] | None = None,
    cp_size: int | Sequence[int] | None = None,
    ep_size: int | Sequence[int] | None = None,
    microbatch_count: int | Sequence[int] | None = None,
    virtual_stages: int | Sequence[int] | None = None,
    zero_stage: int | Sequence[int] | None = None,
    sequence_parallel: bool | Sequence[bool] | None = None,
    recompute: str | Sequence[str] | None = None,
    attention: str = "fused",
    gradient_precision: str | None = None,
    gradient_compression: float = 1,
    gradient_overlap: float | None = None,
    efficiency: float | None = None,
    calibration: Calibration | None = None,
    power_calibration: PowerCalibration | None = None,
    training_tokens: float | None = None,
    datacenter: Datacenter | GridProfile | None = None,
    kwh_price: float | Quantity | None = None,
    unit_price: float | Quantity | None = None,
    rental_price: float | Quantity | None = None,
    memory_reserve: Quantity | None = None,
    executor: Executors | None = None,
    progress: Progress = False,
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
        Sequences in the global batch, or several sizes to choose from. A larger batch trains more
        tokens per second but learns less from each; the model covers only the former.
    goal
        ``"throughput"`` (tokens per second), ``"time"`` (of the training run), ``"cost"`` or
        ``"carbon"`` (of the run, or of a million tokens).
    precision
        Number format of arithmetic, weights, gradients and activations.
    seq_len
        Tokens per sequence; `None` takes the model's training length.
    tp_size, pp_size, cp_size, ep_size
        Ranks that share a layer, stages, ranks that share a sequence, ranks that share experts.
    microbatch_count, virtual_stages
        The pipeline's schedule.
    zero_stage
        What is sharded over the replicas, 0 to 3.
    sequence_parallel
        Whether tensor-parallel ranks split norms and dropouts as well.
    recompute
        Activations that are recomputed: ``"none"``, ``"selective"`` or ``"full"``.
    attention
        ``"fused"`` or ``"unfused"``.
    gradient_precision, gradient_compression, gradient_overlap
        Format, volume and overlap of the gradients that replicas send, as in `DistributedSolver`.
    efficiency
        The textbook's constant; `None` times every operator.
    calibration, power_calibration
        Constants; `None` takes those fitted for the device and the software that the plan implies.
    training_tokens
        Tokens of the training run.
    datacenter
        The facility or the grid, for carbon and for the energy in the cost.
    kwh_price, unit_price, rental_price
        Prices of electricity, of a server and of a device-hour, as in `EconomicsSolver`. With
        `rental_price`, the cost is the rent.
    memory_reserve
        Memory of a device to leave free for the driver, buffers of collectives and fragmentation,
        which the model does not count. `None` leaves nothing free.
    executor
        Where slices of the search are computed, as in `sweep`.
    progress
        Whether to draw a bar, or a function of the configurations done and the total.

    Returns
    -------
    Advice
        The best plan, all feasible plans in order, the Pareto front, and reasons.

    Raises
    ------
    ConfigError
        If an argument is out of range or has too many choices, or the goal needs one that is
        missing.
    ParallelismError
        If no sizes within the limits tile the fleet.
    OOMError
        If no configuration fits in memory.

    Notes
    -----
    All microbatches are whole, and chunks divide the layers evenly. Options without an effect are
    not tried: sequence parallelism without a tensor group, sharding without replicas, and
    recompute="none" with fused attention.

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
    1
    >>> advice.best.feasible
    True
    """
    given = dict(locals())
    limits = {name: given[name] for name in LEVERS}
    kept = ("fleet", "batch_size", *LEVERS)
    fixed = {n: given[n] for n in DistributedSolver.parameters if n in given and n not in kept}
    fleets, batches = _several("fleet", fleet), _several("batch_size", batch_size)
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
    prices = {"kwh_price": kwh_price, "unit_price": unit_price, "rental_price": rental_price}
    economics = prices | {"training_tokens": training_tokens, "datacenter": datacenter}
    for name, value in (fixed | economics).items():
        if is_axis(value):
            raise ConfigError(
                f"{name} = {shown(value)} has several values: give one, since it is not searched",
                argument=name,
            )
    for name, value in fixed.items():
        found = DistributedSolver.parameters[name].admit(name, value)
        if name == "attention":
            fixed[name] = found.name  # an option of the same name is the same attention
    admitted = {
        name: EconomicsSolver.parameters[name].admit(name, value)
        for name, value in economics.items()
    }
    if isinstance(goal, str) and goal == "cost" and admitted["rental_price"] == 0:
        raise ConfigError(
            "rental_price = 0 makes every plan free: give a price above zero, or leave it "
            "out to count the cost of owning",
            argument="rental_price",
        )
    search = Search(
        model=model,
        fixed=fixed,
        given={n: _several(n, v) for n, v in limits.items() if v is not None},
        goal=Goal(goal, admitted["training_tokens"], prices, datacenter),
        reserve=_RESERVE.admit("memory_reserve", memory_reserve) or 0.0,
        executor=executor,
        report=None if progress is False else reporter(progress),
    )
    plans = search.run(fleets, batches)
    best = plans.result(0)
    return Advice(
        goal=goal,
        best=best,
        configuration=plans.configuration(0),
        plans=plans,
        front=front(plans, *search.goal.against),
        alternatives=alternatives(plans, search),
        diagnoses=diagnose(best),
        searched=search.searched,
    )


_KINDS: Mapping[str, Argument] = {
    **EconomicsSolver.parameters,
    **DistributedSolver.parameters,
    "goal": Choice(options=dict(zip(GOALS, GOALS, strict=True))),
    "memory_reserve": _RESERVE,
}
PARAMETERS: Mapping[str, Argument] = {
    name: _KINDS[name] for name in inspect.signature(advise).parameters if name in _KINDS
}
"""What each argument of `advise` that describes the job may be, as `parameters` of a solver."""


def _several(name: str, value: Any) -> list[Any]:
    """Return the choices for an argument, each admitted by the solver's own rules."""
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
        raise ConfigError(f"{name} is empty: give a value, or several", argument=name)
    for item in values:
        kind.admit(name, item)
    return [item.item() if hasattr(item, "item") else item for item in values]
