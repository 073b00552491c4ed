"""Search all engines, devices and replica counts for those that meet a service's limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.calls import expects
from mlsysim.core.errors import ConfigError, InfeasibleError, shown
from mlsysim.core.table import Column, Table
from mlsysim.core.types import (
    Accelerator,
    Fleet,
    NetworkFabric,
    Node,
    ServingCalibration,
    TransformerModel,
)
from mlsysim.core.units import Q_, Quantity, format_number
from mlsysim.planner.plans import numbers
from mlsysim.planner.prices import price_words
from mlsysim.planner.service.deployments import Deployments, disaggregated_pools, replicated_engines
from mlsysim.planner.service.engines import (
    ENGINES,
    LEVERS,
    Choice,
    Choices,
    device_of,
    listed,
    queue_times,
    shared_arguments,
    stacked,
)
from mlsysim.planner.service.limits import check_floor, limits_of
from mlsysim.planner.service.probabilities import certainty, edges, keeping, reached, wins
from mlsysim.planner.service.serving_plans import (
    SERVING_GOALS,
    UNITS,
    UNMEASURED,
    ServingPlan,
    ServingTable,
    equal_lengths,
    without_runs,
)
from mlsysim.registry.catalogs import Nodes
from mlsysim.solvers import arguments
from mlsysim.solvers.serving.inputs import FORMATS, SIZES
from mlsysim.solvers.signatures import composed
from mlsysim.solvers.traffic.inputs import OpenLoopArguments
from mlsysim.solvers.traffic.solver import overload
from mlsysim.traffic import Traffic

CONFIDENCE = 0.8
"""Usual probability of keeping all limits."""
_PRECISION = "bf16"
_GOAL = arguments.Choice.among(SERVING_GOALS)
_MOST_DEVICES = arguments.Whole(maximum=100_000)
_CONFIDENCE = arguments.Portion(optional=True)
_BATCH_LIMIT = arguments.Whole()
_ENGINE = arguments.Choice.among(ENGINES)
_LINK = arguments.Noun(kinds=(NetworkFabric,), hint="Systems.Fabrics.InfiniBand_NDR", optional=True)
PRICE = arguments.Amount(unit="USD/h", zero=True)
"""Price of a device and time."""
_EQUAL = 1e-9
"""Relative difference below which two plans are equally good."""


@composed(
    {"precision": _PRECISION, **dict.fromkeys((*SIZES, *FORMATS, "batch_limit", "cached_share"))}
)
@expects(model=TransformerModel, traffic=Traffic)
def plan_serving(
    model: TransformerModel,
    traffic: Traffic,
    slo: Mapping[str, Quantity],
    devices: Accelerator | Node | Fleet | Sequence[Accelerator | Node | Fleet],
    *,
    goal: Annotated[str, _GOAL] = "fewest_devices",
    most_devices: Annotated[int, _MOST_DEVICES] = 256,
    confidence: Annotated[float | None, _CONFIDENCE] = CONFIDENCE,
    rental_price: Annotated[Quantity | Mapping[str, Quantity] | None, PRICE] = None,
    engine: Annotated[str | Sequence[str] | None, _ENGINE] = None,
    transfer_link: Annotated[NetworkFabric | None, _LINK] = None,
    **shared: Unpack[OpenLoopArguments[int | Sequence[int] | None, str | Sequence[str] | None]],
) -> ServingPlan:
    """Find the best engines for a service: devices, software, parallelism, formats and replicas.

    The search tries all combinations: replicas of one engine, and with a `transfer_link` also
    separate pools for prefill and decode. Each engine of a pool gets an equal share of requests.

    Parameters
    ----------
    model
        A transformer that generates text.
    traffic
        Requests that arrive at the whole service.
    slo
        Limits of the service, by the field of `OpenLoopResult`: ``{"ttft_p99": Q_(500, "ms")}``.
    devices
        Devices, nodes or fleets to choose from. A node allows engines of several devices, and a
        fleet engines of several nodes.
    goal
        ``"fewest_devices"``, ``"cost"`` or ``"energy"`` per token, or ``"latency"``.
    cached_share
        Share of each prompt that is already in the prefix cache; `None` takes that of the traffic,
        which a trace may contain, and otherwise 0. Costs are split by device time:
        `cost_per_input_token` is for computing new tokens, `cost_per_cached_token` for attending
        to cached ones, `cost_per_output_token` for decode.
    most_devices
        Most devices that the service may use.
    confidence
        Lowest probability, given the error of predictions, with which a plan keeps all limits. If
        no plan reaches it, the answer is the best of the most certain plans, and says so. `None`
        takes predictions as exact; the best plan then often has little headroom. The answer always
        states its probability (`keeps_limits`), and `certainty` lists how many devices less or more
        certainty takes.
    rental_price
        Price per device and time, or a mapping from device names to prices; `None` takes the lower
        median of the registry's on-demand offers.
    engine
        Software to choose from, such as ``["TensorRT-LLM", "vLLM"]``; `None` takes each device's
        default constants. Cannot be combined with a `calibration`.
    transfer_link
        Network that carries keys and values from a prefill pool to a decode pool, such as
        ``Systems.Fabrics.InfiniBand_NDR``; `None` does not try separate pools.

    Returns
    -------
    ServingPlan
        The plans that meet the limits with this confidence, best first, and the most certain one of
        those that are equally good; the plans that no other one beats both per user and per device;
        how much worse the goal is with every other choice; and remarks on what the answer depends
        on.

    Raises
    ------
    ConfigError
        If an argument is out of range, or a limit is below what any engine can reach.
    InfeasibleError
        If no plan with at most `most_devices` is predicted to meet every limit. The message names
        the limits.

    Notes
    -----
    Sizes, formats and `batch_limit` may have several values to choose from. With `None`, the search
    tries all powers of two up to the devices of the hardware for `tp_size` and, for models with
    experts, for `attention_dp`; 1 and all devices of a stage for `ep_size`; and powers of two from
    8 to 1,024 sequences per rank of attention. Formats are `precision`, and other levers have the
    default of `OpenLoopSolver`.

    All engines share the other arguments. Engines to which one of them does not apply leave it out,
    such as `dispatch_precision` with one rank or `draft_tokens` in a prefill pool. How
    `acceptance_length` depends on `draft_tokens` is not modeled, so at most one choice of
    `draft_tokens` may be above 0; one `expert_imbalance` applies to all `redundant_experts`. The
    time to load prefixes counts toward limits and capacity; the link has no price or energy of its
    own.

    Examples
    --------
    >>> from mlsysim import Models, Q_, Systems, Traffic, plan_serving
    >>> chat = Traffic(arrival_rate=Q_(20, "1/s"), seq_len=1000, output_len=200)
    >>> plan = plan_serving(
    ...     Models.Llama3_70B,
    ...     chat,
    ...     {"ttft_p99": Q_(1, "s"), "tpot_p99": Q_(50, "ms")},
    ...     [Systems.Nodes.DGX_H100],
    ... )
    >>> plan.best["devices"], plan.best["tp_size"], plan.best["keeps_limits"] >= 0.8
    (16, 8, True)
    """
    _LINK.admit("transfer_link", transfer_link)
    _GOAL.admit("goal", goal)
    most_devices = _MOST_DEVICES.admit("most_devices", most_devices)
    wanted = _CONFIDENCE.admit("confidence", confidence)
    limits = limits_of(slo, traffic)
    space = _space(model, traffic, devices, engine, transfer_link, rental_price, shared)
    refused: dict[str, int] = {}
    choices = space.of("both", refused)
    pools: tuple[list[Choice], list[Choice]] = ([], [])
    if transfer_link is not None:
        largest = replace(space, largest_limit=True)
        pools = largest.of("prefill", refused), space.of("decode", refused)
    if not choices and not all(pools):
        raise InfeasibleError(f"no engine can run: {'; '.join([*refused, *_lone(space)])}")
    check_floor(limits, choices, pools, traffic, _lone(space))
    if goal == "cost" and all(math.isnan(item.price) for item in [*choices, *pools[0]]):
        raise ConfigError(
            "rental_price is missing: the registry has no offer for these devices; give a price "
            "such as Q_(3, 'USD/h')",
            argument="rental_price",
        )
    deployments = replicated_engines(choices, traffic, limits, most_devices)
    if transfer_link is not None and all(pools):
        deployments = deployments.joined_with(
            disaggregated_pools(*pools, transfer_link, traffic, limits, most_devices)
        )
    if not deployments.columns:
        why = _why_none(limits, [*choices, *pools[1]], traffic, most_devices)
        raise InfeasibleError("; ".join([why, *_lone(space)]))
    ranked = _ranked(deployments, limits, goal)
    columns = ranked.columns
    least = None if wanted is None else reached(wanted, float(columns["keeps_limits"].max()))
    certain = np.flatnonzero(columns["keeps_limits"] >= (least or 0.0))
    everything = ServingTable(
        {n: Column(values, UNITS.get(n, "")) for n, values in columns.items()},
        traffic.arguments(),
        space.fixed,
        {item.name: item for item in space.hardware} | space.constants,
    )
    column = SERVING_GOALS[goal]
    goal_errors = ranked.log_errors[:, 2 if goal == "energy" else 1]
    table = everything.take(certain)
    alternatives = _alternatives(table, goal)
    return ServingPlan(
        goal=goal,
        limits={name: Q_(limit, "s") for name, limit in limits.items()},
        confidence=wanted,
        least_confidence=least,
        searched=deployments.tried,
        plans=table,
        front=table.front(),
        alternatives=alternatives,
        headroom=_headroom(table, limits),
        keeps_limits=float(columns["keeps_limits"][certain[0]]),
        certainty=certainty(columns, column, UNITS.get(column, ""), wanted),
        **_contest(everything, goal, goal_errors, certain, space.constants),
        prices={
            device.name: price_words(device, space.prices)
            for device in dict.fromkeys(map(device_of, space.hardware))
        },
        remarks=(
            *equal_lengths(traffic.arguments()),
            *_unmeasured(table, space.constants),
            *_at_the_end(table, alternatives, space),
            *_lone(space),
        ),
        refused=refused,
    )


def _space(
    model: TransformerModel,
    traffic: Traffic,
    devices: Any,
    engine: Any,
    transfer_link: NetworkFabric | None,
    rental_price: Any,
    shared: Mapping[str, Any],
) -> Choices:
    """Return the values that each lever may have, and the arguments that all engines share."""
    given = dict(shared)
    precision, calibration, batch_limit = (
        given.pop(name, usual)
        for name, usual in (("precision", _PRECISION), ("calibration", None), ("batch_limit", None))
    )
    levers = {name: given.pop(name, None) for name in (*SIZES, *FORMATS)}
    if given.get("cached_share", 0) is None:
        del given["cached_share"]
    determined = [*traffic.arguments(), "hardware", "arrival_rate", "role"]
    others = shared_arguments(given, determined, "traffic, devices or transfer_link determine it")
    if transfer_link is not None and (traffic.turns > 1 or others.get("turns", 1) > 1):
        raise ConfigError(
            "transfer_link with turns: how long prefixes stay in a prefill pool depends on the "
            "time in the decode pool, and the search tries each pool by itself; leave out "
            "transfer_link, or pass cached_share instead of turns",
            argument="transfer_link",
        )
    if engine is not None and calibration is not None:
        raise ConfigError(
            "engine and calibration both choose constants: give only one of them", argument="engine"
        )
    engines = [None] if engine is None else listed("engine", engine, str)
    for name in engines:
        if name is not None:
            _ENGINE.admit("engine", name)
    sizes = {
        name: None if levers[name] is None else listed(name, levers[name], int) for name in SIZES
    }
    _check_drafts(sizes["draft_tokens"], others.get("acceptance_length"))
    weights, caches = (
        listed(name, precision if levers[name] is None else levers[name], str) for name in FORMATS
    )
    batches = [
        _BATCH_LIMIT.admit("batch_limit", limit)
        for limit in ([] if batch_limit is None else listed("batch_limit", batch_limit, int))
    ]
    space = Choices(
        fixed={
            "model": model,
            **traffic.arguments(),
            **others,
            "precision": precision,
            "calibration": calibration,
        },
        hardware=listed("devices", devices, (Accelerator, Node, Fleet)),
        engines=engines,
        sizes=sizes,
        weights=weights,
        caches=caches,
        limits=batches or None,
        prices=rental_price,
    )
    _check_prices(rental_price, space.hardware)
    return space


def _check_drafts(choices: Sequence[int] | None, accepted: float | None) -> None:
    """Reject drafts without the tokens that are accepted, and the other way around."""
    drafts = [number for number in choices or () if number > 0]
    if len(drafts) > 1:
        raise ConfigError(
            f"draft_tokens = {shown(choices)} has several numbers above 0, each of which has an "
            "acceptance_length of its own: give one of them and 0, and search again for the others",
            argument="draft_tokens",
        )
    if (accepted is None) != (not drafts):
        raise ConfigError(
            f"acceptance_length = {shown(accepted)} with draft_tokens = {shown(choices)}: give "
            "both, or leave out both",
            argument="acceptance_length",
        )


def _check_prices(prices: Any, hardware: Sequence[Accelerator | Node | Fleet]) -> None:
    """Reject a price of a device that is not among those to choose from."""
    known = list(dict.fromkeys(device_of(noun).name for noun in hardware))
    for name in prices if isinstance(prices, Mapping) else ():
        if name not in known:
            raise ConfigError(
                f"rental_price has {shown(name)}, which is not one of the devices: give prices of "
                f"{', '.join(known)}",
                argument="rental_price",
            )


def _ranked(deployments: Deployments, limits: Mapping[str, float], goal: str) -> Deployments:
    """Return the plans, best first, with their probability and their band of tokens per user."""
    columns, log_errors = deployments.columns, deployments.log_errors
    columns = columns | {"keeps_limits": keeping(columns, limits, log_errors)}
    order = _order(columns, goal)
    columns, log_errors = {n: values[order] for n, values in columns.items()}, log_errors[order]
    low, high = edges(log_errors[:, 1])
    columns["tokens_per_s_per_user_low"] = columns["tokens_per_s_per_user"] / high
    columns["tokens_per_s_per_user_high"] = columns["tokens_per_s_per_user"] / low
    return replace(deployments, columns=columns, log_errors=log_errors)


def _order(columns: Mapping[str, NDArray[Any]], goal: str) -> NDArray[Any]:
    """Sort by the goal, and equal plans by devices, then by probability and end-to-end time."""
    certain = -np.floor(100 * columns["keeps_limits"])
    keys = (columns[name] for name in ("e2e_mean", "devices", SERVING_GOALS[goal]))
    last, devices, first = (np.round(np.log(key) / _EQUAL) for key in keys)
    return np.lexsort((last, certain, devices, first))


def _alternatives(table: ServingTable, goal: str) -> Table:
    """Return the first (best) of the sorted plans for each other value of a lever."""
    column, best = SERVING_GOALS[goal], table.row(0)
    value, rows = numbers(table, column), []
    for name in (*LEVERS, "pools"):
        if name not in table.columns:
            continue
        values, first = np.unique(np.asarray(table[name]), return_index=True)
        for word, row in zip(values.tolist(), first.tolist(), strict=True):
            if word != best[name]:
                loss = value[row] / value[0] - 1
                rows.append((name, str(word), row, loss if abs(loss) > _EQUAL else 0.0))
    names = ("lever", "value", "row", "loss")
    if not rows:
        return Table({name: Column(np.array([])) for name in names})
    return Table({n: Column(list(v)) for n, v in zip(names, zip(*rows, strict=True), strict=True)})


def _headroom(table: ServingTable, limits: Mapping[str, float]) -> dict[str, float]:
    room = {n: 1e3 * limit / float(numbers(table, n)[0]) - 1 for n, limit in limits.items()}
    return room | {"arrival_rate": 1 / float(numbers(table, "utilization")[0]) - 1}


def _tested(table: ServingTable, constants: Mapping[str, ServingCalibration]) -> NDArray[np.bool_]:
    """Return which plans have only constants with a band of measured runs."""
    banded = [name for name, row in constants.items() if row.itl_band.known and name != UNMEASURED]
    tested = np.isin(np.asarray(table["calibration"]), banded)
    if "prefill_calibration" in table.columns:
        tested &= np.isin(np.asarray(table["prefill_calibration"]), [*banded, ""])
    return tested


def _contest(
    table: ServingTable,
    goal: str,
    log_errors: NDArray[Any],
    certain: NDArray[Any],
    constants: Mapping[str, ServingCalibration],
) -> dict[str, Any]:
    """Compare the best plan of each device; with separate pools, the device that decodes.

    Of the rows of `table`, those at `certain` keep the limits with the wanted confidence. Constants
    without a band have an unknown error, so no probability compares their plans with others.
    """
    devices = np.array([table.devices[name] for name in table["hardware"]])
    order = np.concatenate([certain, np.setdiff1d(np.arange(len(devices)), certain)])
    _, first = np.unique(devices[order], return_index=True)
    best = order[np.sort(first)]
    value, tested = numbers(table, SERVING_GOALS[goal])[best], _tested(table, constants)[best]
    known = tested & np.isfinite(log_errors[best]).all(axis=1) & np.isfinite(value)
    rivals = np.flatnonzero(known & known[0] & np.isin(best, certain))[1:]
    stays = None
    if len(rivals):
        stays = wins(value[0], value[rivals[0]], log_errors[best[0]], log_errors[best[rivals[0]]])
    return {
        "stays_best": stays,
        "rivals": tuple(devices[best[rivals]].tolist()),
        "untested": tuple(devices[best[~tested]].tolist()) if len(best) > 1 else (),
    }


def _unmeasured(table: ServingTable, constants: Mapping[str, ServingCalibration]) -> list[str]:
    """Return remarks on devices without runs, and on constants without a band."""
    names = {name: np.asarray(table[name]) for name in ("calibration", "hardware")}
    spots = names["calibration"] == UNMEASURED
    remarks = [
        without_runs(device)
        for device in dict.fromkeys(table.devices[name] for name in names["hardware"][spots])
    ]
    columns = ("calibration", "prefill_calibration")
    used = {str(name) for column in columns if column in table.columns for name in table[column]}
    few = sorted(name for name in used & constants.keys() if not constants[name].itl_band.known)
    if few:
        remarks.append(
            f"{', '.join(few)}: too few runs for a band, so the probability assumes errors as "
            "large as on devices without runs"
        )
    return remarks


def _at_the_end(table: ServingTable, alternatives: Table, space: Choices) -> tuple[str, ...]:
    """Return a remark if the best plan has the largest limit on sequences, and more would fit."""
    best, places = table.row(0), table.result(0)
    limit = max(space.limits_of(best["attention_dp"]))
    levers = zip(alternatives["lever"], alternatives["loss"], strict=True)
    as_good = any(lever == "batch_limit" and loss <= 0 for lever, loss in levers)
    if best["batch_limit"] < limit or places.max_batch_size <= limit or as_good:
        return ()
    return (
        f"the best plan has the largest batch_limit that was tried ({limit:,}), and "
        f"{places.max_batch_size:,} sequences fit: try larger ones",
    )


def _lone(space: Choices) -> tuple[str, ...]:
    """Return a remark on devices that are given without a server."""
    alone = [noun for noun in space.hardware if isinstance(noun, Accelerator)]
    if not alone or max(space.sizes["tp_size"] or [2]) == 1:
        return ()
    names = dict.fromkeys(device.name for device in alone)
    servers = [
        name
        for name, node in Nodes.items()
        if isinstance(node, Node) and node.accelerator.name in names
    ]
    return (
        f"{', '.join(names)}: a device by itself allows only engines of one device (tp_size = 1); "
        "for larger ones, choose " + (" or ".join(servers) or "a node with several"),
    )


def _why_none(
    limits: Mapping[str, float], choices: Sequence[Choice], traffic: Traffic, most: int
) -> str:
    """Return the reason why no plan meets the limits."""
    rate = traffic.si("arrival_rate")
    replicas = np.array([most // item.devices for item in choices], float)[:, None]
    capacity = float(
        (replicas * queue_times(stacked(choices), 1e-9, traffic)["request_capacity"]).max()
    )
    if capacity == 0:
        return f"no engine fits on {most} devices: raise most_devices"
    if capacity <= rate:
        return (
            f"{overload(rate / capacity)} with {most} devices: raise most_devices, or choose "
            "faster ones"
        )
    words = ", ".join(f"{name} <= {format_number(Q_(v, 's'))}" for name, v in limits.items())
    return (
        f"no plan with at most {most} devices meets {words} together: raise a limit or most_devices"
    )
