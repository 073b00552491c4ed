"""Random sweeps of all solvers, over axes of all kinds.

`question` takes a function that chooses among options, such as `random.choice` or a draw of
Hypothesis. Axes use every container that can hold their values. Some values contradict each other,
and a few are wrong.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from mlsysim import (
    Q_,
    Calibrations,
    DisaggregatedSolver,
    DistributedSolver,
    EconomicsSolver,
    Fleet,
    Hardware,
    Infra,
    Models,
    NetworkCalibrations,
    OpenLoopSolver,
    PowerCalibrations,
    ReliabilitySolver,
    ServingCalibrations,
    ServingSolver,
    SingleNodeSolver,
    SustainabilitySolver,
    Systems,
    standalone_fleet,
)
from mlsysim.core.types import (
    PRECISIONS,
    Attention,
    Experts,
    FeedForward,
    Layers,
    LinearAttention,
    SlidingWindow,
    Source,
    TopKeys,
    TransformerModel,
)
from mlsysim.solvers.arguments import (
    Amount,
    Argument,
    Choice,
    Factor,
    Noun,
    Portion,
    PrecisionName,
    Ratio,
    Switch,
    Whole,
)
from mlsysim.solvers.base import Solver

Choose = Callable[[Sequence[Any]], Any]
SOLVERS: tuple[type[Solver[Any, Any]], ...] = (
    DistributedSolver,
    ServingSolver,
    OpenLoopSolver,
    DisaggregatedSolver,
    SingleNodeSolver,
    ReliabilitySolver,
    EconomicsSolver,
    SustainabilitySolver,
)
_MOST_ROWS = 64


def _fleet(node: Any, count: int) -> Fleet:
    return Fleet(
        name=f"{count} {node.name}", node=node, count=count, fabric=Systems.Fabrics.InfiniBand_NDR
    )


_FLEETS = (
    Systems.Clusters.Research_256,
    Systems.Clusters.Frontier_8K,
    *(
        _fleet(node, count)
        for node, count in zip(Systems.Nodes, itertools.cycle((1, 4, 2, 32, 6, 3, 2)), strict=False)
    ),
    _fleet(Systems.Nodes.DGX_H100, 10**6),
    replace(Systems.Clusters.Research_256, node=replace(Systems.Nodes.DGX_H100, unit_price=None)),
    standalone_fleet(Hardware.H100),
    standalone_fleet(Hardware.TPUv5p),
    standalone_fleet(Hardware.Tiny.ESP32_S3),
)


def _hybrid(name: str, heads: int, every: int, reach: Any) -> TransformerModel:
    """Return a network with experts, of which each so many layers have softmax attention."""
    return TransformerModel(
        name=name,
        source=Source(title="made up"),
        hidden_dim=64 * heads,
        vocab_size=32_000,
        seq_len=2_048,
        stack=(
            Layers(
                at=range(every - 1, 24, every),
                attention=Attention(heads=heads, kv_heads=8, head_dim=64, reach=reach),
                feed_forward=FeedForward(width=256 * heads, gated=heads > 16),
            ),
            Layers(
                count=24 - 24 // every,
                attention=LinearAttention(heads=heads, key_heads=8, key_dim=64, value_dim=64),
                feed_forward=Experts(count=heads, per_token=2, width=1_024, gated=True),
            ),
        ),
    )


# Pairs of one structure, with other numbers, and networks of other structures.
_STACKS = (
    _hybrid("narrow", 16, 4, None),
    _hybrid("wide", 32, 4, None),
    _hybrid("dense", 16, 2, None),
    _hybrid("near", 16, 4, SlidingWindow(tokens=512)),
    _hybrid("nearer", 32, 4, SlidingWindow(tokens=64)),
    _hybrid("picking", 16, 4, TopKeys(tokens=256, heads=4, head_dim=32)),
)
_NOUNS: Mapping[str, Sequence[Any]] = {
    "model": [*Models, *_STACKS],
    "fleet": _FLEETS,
    "hardware": [*Hardware, *Systems.Nodes],
    "datacenter": [item for item in Infra if not hasattr(item, "racks")],
    "grid": list(Infra.Grids),
    "calibration": [*Calibrations, *ServingCalibrations],
    "network_calibration": list(NetworkCalibrations),
    "power_calibration": list(PowerCalibrations),
    "rental_offer": list(Systems.Offers),
    "prefill_hardware": [*Hardware, *Systems.Nodes],
    "prefill_calibration": list(ServingCalibrations),
    "transfer_link": [Systems.Fabrics.InfiniBand_NDR, Systems.Fabrics.Ethernet_10G],
    "host_link": [Systems.Links.PCIe5, Systems.Links.NVMe4, Systems.Fabrics.Ethernet_10G],
}
ONE: Mapping[type[Solver[Any, Any]], Mapping[str, Any]] = {
    DistributedSolver: {
        "model": Models.Llama3_8B,
        "fleet": _FLEETS[0],
        "batch_size": 512,
        "tp_size": 8,
        "microbatch_count": 8,
    },
    ServingSolver: {"model": Models.Llama3_8B, "hardware": Systems.Nodes.DGX_H100},
    OpenLoopSolver: {
        "model": Models.Llama3_8B,
        "hardware": Systems.Nodes.DGX_H100,
        "arrival_rate": 4,
    },
    DisaggregatedSolver: {"model": Models.Llama3_8B, "hardware": Systems.Nodes.DGX_H100},
    SingleNodeSolver: {"model": Models.Llama3_8B, "hardware": Hardware.H100},
    ReliabilitySolver: {"fleet": _FLEETS[0], "job_duration_hours": 720, "checkpoint_time_s": 60},
    EconomicsSolver: {"fleet": _FLEETS[0], "duration_days": 30},
    SustainabilitySolver: {"fleet": _FLEETS[0], "duration_days": 30, "datacenter": Infra.Quebec},
}
"""Arguments that each solver needs, and answers."""
_SESSION = {"turns": 3, "turn_tokens": 50, "think_time": Q_(30, "s")}
"""Arguments that only make sense together."""

_SIZES = (1, 2, 4, 8, 3, 16, 32, 64, 5, 72, 100, 128, 1000, 2048, 8192, 2**20, 10**9, 10**15)
_SMALL = _SIZES[:10]
_SHARES = (0.5, 1, 0.25, 0.33, 1e-9)
_FACTORS = (1, 4, 1.5, 2**53 + 1, 1e30)
_AMOUNTS = (1, 2.5, 30, 365, 0.1, 1e-6, 1e12, 2**53 + 1, 10**20)
_WRONG = (0, -1, 1.5, math.nan, math.inf, 10**400, "8", True, 1j, Q_(1, "GB"), object())
_WIDTHS = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float32", "float64")


@dataclass(frozen=True)
class Question:
    """A sweep: what is swept, over which arguments, and how."""

    solver: type[Solver[Any, Any]]
    arguments: Mapping[str, Any]
    how: str
    invalid: str
    cached: int
    """Rows of a slice."""

    def __str__(self) -> str:
        given = "".join(f"    {name}={value!r},\n" for name, value in self.arguments.items())
        return (
            f"sweep(\n    {self.solver.__name__},\n{given}"
            f"    how={self.how!r},\n    invalid={self.invalid!r},\n)"
        )

    @cached_property
    def axes(self) -> dict[str, list[Any]]:
        """The values of each axis, in the order of the solver's arguments."""
        known = inspect.signature(self.solver.solve).parameters
        values = {n: values_of(self.arguments[n]) for n in known if n in self.arguments}
        return {name: several for name, several in values.items() if several is not None}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the arguments of every row, without the help of `sweep`."""
        combine = itertools.product if self.how == "product" else _side_by_side
        for row in combine(*self.axes.values()):
            yield {**self.arguments, **dict(zip(self.axes, row, strict=True))}


def _side_by_side(*axes: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    return zip(*axes, strict=True) if axes else iter([()])


def values_of(value: Any) -> Any:
    """Return the values of an axis as `solve` takes them; `None` if it is no axis."""
    if isinstance(value, (list, tuple, range)):
        return list(value)
    if isinstance(value, np.ndarray):
        return [one.item() if value.dtype.kind in "iufbU" else one for one in value]
    if isinstance(value, Q_) and np.ndim(value.magnitude):
        return [Q_(number, value.units) for number in value.magnitude.tolist()]
    return None


def question(choose: Choose) -> Question:
    """Choose a solver, its axes and its other arguments."""
    solver = choose(SOLVERS)
    how = choose(("product", "zip"))
    invalid = choose(("mark", "drop", "raise"))
    arguments = dict(ONE[solver])
    if "turns" in solver.parameters and choose((False,) * 5 + (True,)):
        arguments |= _SESSION
    wrong = choose((False,) * 9 + (True,))
    room = _MOST_ROWS
    length = choose((3, 2, 1, 8, 30))
    for _ in range(choose((2, 3, 1, 4, 0))):
        name = choose(list(solver.parameters))
        if values_of(arguments.get(name)) is not None:
            continue
        kind = solver.parameters[name]
        size = choose([n for n in (2, 3, 1, 4, 6) if n <= room]) if how == "product" else length
        room = room // size if how == "product" else room
        arguments[name] = _axis(choose, name, kind, size, wrong)
    for _ in range(choose((0, 1, 2))):
        name = choose(list(solver.parameters))
        if values_of(arguments.get(name)) is None:
            value = _value(choose, name, solver.parameters[name])
            if value is not None or name not in ONE[solver]:
                arguments[name] = value
    return Question(solver, arguments, how, invalid, choose((2**14, 5)))


def _axis(choose: Choose, name: str, kind: Argument, size: int, wrong: bool) -> Any:
    """Return an axis in one of the containers that hold its values."""
    values = [_value(choose, name, kind) for _ in range(size)]
    if wrong:
        values[choose(range(size))] = choose(_WRONG)
    elif isinstance(kind, Whole) and choose((False,) * 9 + (True,)):
        return range(kind.minimum, kind.minimum + size)
    several: list[Callable[[], Any]] = [lambda: values, lambda: tuple(values)]
    if all(type(value) in (int, float) and abs(value) < 2**63 for value in values):
        several.append(lambda: _array(choose, values))
        if isinstance(kind, Amount):
            several.append(lambda: Q_(np.array(values), kind.unit))
    elif all(isinstance(value, (str, bool)) for value in values):
        several.append(lambda: np.array(values))
        if isinstance(kind, Switch) and not wrong:
            several.append(lambda: list(np.array(values)))
    else:
        several.append(lambda: _objects(values))
    return choose(several)()


def _objects(values: list[Any]) -> Any:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _array(choose: Choose, values: list[Any]) -> Any:
    """Return an array of the narrowest types that hold the values, or of others."""
    with np.errstate(invalid="ignore"):
        widths = [w for w in _WIDTHS if np.array_equal(np.array(values, float).astype(w), values)]
    return np.array(values).astype(choose(widths)) if widths else np.array(values)


def _value(choose: Choose, name: str, kind: Argument) -> Any:
    """Return one value that an argument may have."""
    if kind.optional and choose((False, False, False, True)):
        return None
    if isinstance(kind, Noun | Choice | PrecisionName | Switch):
        return choose(candidates(name, kind))
    return _number(choose, name, kind)


def candidates(name: str, kind: Argument) -> Sequence[Any]:
    """Return values that an argument of this kind may have, each once."""
    if isinstance(kind, Noun):
        return [item for item in _NOUNS[name] if isinstance(item, kind.kinds)]
    if isinstance(kind, Choice):
        return list(kind.options or {})
    if isinstance(kind, PrecisionName):
        return list(PRECISIONS)
    if isinstance(kind, Switch):
        return (False, True)
    if isinstance(kind, Amount):
        return [Q_(number, kind.unit) for number in _AMOUNTS[:6]]
    if isinstance(kind, Whole):
        return [size for size in (0, *_SIZES) if kind.minimum <= size <= kind.maximum]
    return (1, 2, 1.5) if isinstance(kind, Factor | Ratio) else _SHARES


def _number(choose: Choose, name: str, kind: Argument) -> Any:
    if isinstance(kind, Whole):
        if kind.maximum < 10:
            return choose(range(kind.minimum, int(kind.maximum) + 1))
        plain = choose(_SMALL if name.endswith(("_size", "_stages", "_count")) else _SIZES)
        others = (float(plain), np.int64(plain), np.float64(plain), Decimal(plain), Q_(plain, ""))
        return choose((plain,) * 8 + others)
    if isinstance(kind, Amount):
        plain = choose((*_AMOUNTS, 0) if kind.zero else _AMOUNTS)
        amount = choose((Q_(plain, kind.unit),) * 4 + (Q_(np.float64(plain), kind.unit),))
        return choose((plain, amount)) if kind.plain else amount
    if isinstance(kind, Factor):
        return choose(_FACTORS)
    if isinstance(kind, Ratio):
        return choose((0, 1, 0.5, 4, 30))
    return choose((*_SHARES, 0) if isinstance(kind, Portion) else _SHARES)
