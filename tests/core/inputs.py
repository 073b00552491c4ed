"""Inputs for formulas, drawn by unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from mlsysim.core.formula import FORMULAS
from mlsysim.core.units import Q_, ureg

COUNTS = ("", "1", "param", "token", "sample")
"""Units of counts. The package counts in whole numbers: greatest common divisors need them."""

OTHER_UNITS: Mapping[str, tuple[str, ...]] = {
    "s": ("ms", "us", "ns", "minute", "hour"),
    "byte": ("kB", "GB", "GiB", "TB", "bit", "Gbit"),
    "byte/s": ("GB/s", "TB/s", "Gbit/s", "MiB/ms", "kB/us"),
    "flop": ("MFLOP", "TFLOP", "PFLOP"),
    "flop/s": ("TFLOP/s", "GFLOPS", "TOPS", "PFLOP/hour"),
    "flop/byte": ("TFLOP/GB", "GFLOP/MiB", "flop/bit"),
    "W": ("kW", "mW", "MJ/hour"),
    "J": ("kWh", "MWh", "mJ"),
    "kg/J": ("g/kWh", "tonne/MWh"),
    "kg": ("g", "tonne"),
    "USD": ("kUSD", "MUSD"),
    "USD/J": ("USD/kWh", "kUSD/MWh"),
    "USD/s": ("USD/hour", "kUSD/day"),
    "m**3": ("L", "ML"),
    "m**3/J": ("L/kWh",),
    "1/s": ("1/ms", "1/hour"),
    "s**2": ("ms**2", "s*minute"),
}
"""Units of the same dimension: no two arguments of a call need share a prefix."""

COUNT_UNITS = ("", "count", "layer", "Kicount", "Micount")
"""Binary prefixes scale whole numbers without rounding, so that `ceil` and `gcd` stay exact."""

_SHARES = ("efficiency", "fraction", "share", "kept_scores")
# A device that works draws more than an idle one, whose power is the zero of a scale.
_ORDERED: Mapping[str, tuple[float, float]] = {
    "idle_share": (0.01, 0.25),
    "constant_share": (0.3, 1.0),
}
_SWITCHES = ("sequence_parallel",)


def is_share(name: str) -> bool:
    return name.endswith(_SHARES)


def values(name: str, unit: str) -> st.SearchStrategy[float]:
    """Numbers in SI base units that an argument of this name and unit may take."""
    if name in _SWITCHES:
        return st.integers(0, 1)
    if unit in COUNTS and name in _ORDERED:
        return st.floats(*_ORDERED[name])
    if unit in COUNTS and is_share(name):
        return st.floats(0.01, 1.0)
    if unit in COUNTS:
        return st.integers(1, 64)
    return st.floats(1e-6, 1e15)


def other_units(name: str, unit: str) -> st.SearchStrategy[str]:
    """Units in which the same number may be given."""
    if unit in COUNTS:
        return st.sampled_from(("", "percent") if is_share(name) else COUNT_UNITS)
    return st.sampled_from(OTHER_UNITS[unit])


def _whole_groups(drawn: dict[str, Any]) -> dict[str, Any]:
    """A hierarchical collective has a whole number of groups."""
    return drawn | {"ranks": drawn["ranks"] * drawn["local"]}


def _within_reach(drawn: dict[str, Any]) -> dict[str, Any]:
    """Times of one order, so that neither all nor none of a job survives its failures."""
    times = ("time", "interval", "checkpoint_time", "restart_time", "mtbf")
    return drawn | {name: 1e3 + drawn[name] % 1e5 for name in times if name in drawn}


_LOADS = ("deviation", "found_busy", "load", "share", "utilization")


def _with_room(drawn: dict[str, Any]) -> dict[str, Any]:
    """Return loads below one: a queue with more has no steady state."""
    made = drawn | {n: drawn[n] / 100 for n in _LOADS if n in drawn and drawn[n] >= 1}
    if "capacity" in drawn:
        made["rate"] = drawn["capacity"] * 0.01 * (1 + drawn.get("places", 1))
    for time in ("prefill", "slope"):
        if time in drawn and "rate" in drawn:
            made[time] = 0.7 / drawn["rate"]
    return made


_CONSISTENT: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "checkpoint_goodput": _within_reach,
    "failure_probability": _within_reach,
    **dict.fromkeys(
        (
            "budget_wait",
            "fluctuation_over_a_stay",
            "in_flight_variance",
            "lognormal_quantile",
            "mean_in_flight",
            "normal_score",
            "place_queue_wait",
            "requests_at_balance",
            "share_found_busy",
            "steps_with_backlog",
            "waiting_probability",
        ),
        _with_room,
    ),
    "hierarchical_all_reduce_time": _whole_groups,
    "node_all_to_all_time": _whole_groups,
    "node_tree_all_reduce_time": _whole_groups,
    "group_hop_latency": _whole_groups,
}
WHOLE_GROUPS = tuple(name for name, made in _CONSISTENT.items() if made is _whole_groups)
"""Formulas whose `local` divides their `ranks`."""


@dataclass(frozen=True)
class Subject:
    """A formula, on which the laws are tested."""

    name: str
    function: Callable[..., Any]
    units: Mapping[str, str]
    """Documented unit of each argument."""
    returns: str
    """Documented unit of the value."""

    def draw(self, data: st.DataObject) -> dict[str, Any]:
        """Arguments in SI base units."""
        drawn = {
            name: data.draw(values(name, unit), label=name) for name, unit in self.units.items()
        }
        return _CONSISTENT.get(self.name, dict)(drawn)

    def quantities(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The same arguments with their units."""
        return {name: Q_(value, si_unit(self.units[name])) for name, value in arguments.items()}

    def __call__(self, arguments: Mapping[str, Any]) -> Any:
        """Call by keyword."""
        return self.function(**arguments)


def si_unit(unit: str) -> str:
    """The unit without names of counts, which stick to products."""
    return "" if unit in COUNTS else unit


def dimension(unit: str) -> Any:
    return ureg.Unit("" if unit == "1" else unit).dimensionality


def formula_subjects() -> list[Subject]:
    found = []
    for name, entry in FORMULAS.items():
        manual = entry.documentation
        units = {key: symbol.unit for key, symbol in manual.parameters.items()}
        assert manual.returns, name
        found.append(Subject(name, entry.function, units, manual.returns.unit))
    return found
