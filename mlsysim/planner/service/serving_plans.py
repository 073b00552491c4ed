"""Plans of a service: the table of plans that meet its limits, and the result that contains it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import record
from mlsysim.core.files import printable
from mlsysim.core.table import Column, Table
from mlsysim.core.types import Accelerator, Fleet, Node
from mlsysim.core.units import Quantity, format_number, strip
from mlsysim.planner.plans import PlanTable, numbers
from mlsysim.planner.service.engines import LEVERS, applied, device_of
from mlsysim.planner.service.limits import SLO
from mlsysim.registry.calibration.serving import ServingCalibrations
from mlsysim.registry.operations import CHAT_LENGTHS
from mlsysim.solvers import OpenLoopResult, OpenLoopSolver
from mlsysim.solvers.serving.inputs import SIZES
from mlsysim.sweeps.reductions import unbeaten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SERVING_GOALS = {
    "fewest_devices": "devices",
    "cost": "cost_per_token",
    "energy": "energy_per_token",
    "latency": "e2e_mean",
}
"""Goals, and the column that each one minimizes."""
_SAME = 1e-6
"""Change of a goal below which a plan is not better."""
UNMEASURED = ServingCalibrations.Uncalibrated.name
"""Constants of devices without a published run."""

POOL_LEVERS = tuple(
    name for name in LEVERS if name not in ("draft_tokens", "kv_precision", "batch_limit")
)
"""Levers of a prefill pool that can differ; the format of keys and values cannot, and only decode
has drafts."""
_GROUPS = {"TP": "tp_size", "PP": "pp_size", "DP": "attention_dp", "EP": "ep_size"}
"""Groups of devices, with the names that engines use."""
UNITS = {
    **dict.fromkeys(SLO, "ms"),
    "cost_per_token": "USD/Mtoken",
    "cost_per_input_token": "USD/Mtoken",
    "cost_per_output_token": "USD/Mtoken",
    "cost_per_cached_token": "USD/Mtoken",
    "energy_per_token": "J",
    "tokens_per_s_per_user": "token/s",
    "tokens_per_s_per_user_low": "token/s",
    "tokens_per_s_per_user_high": "token/s",
    "tokens_per_s_per_device": "token/s",
}


class ServingTable(PlanTable):
    """Plans: levers, replicas, times and costs, best first."""

    def __init__(
        self,
        columns: Mapping[str, Column],
        traffic: Mapping[str, Any],
        others: Mapping[str, Any],
        nouns: Mapping[str, Any],
    ) -> None:
        super().__init__(columns, traffic, others, nouns)
        self._traffic, self._nouns = dict(traffic), dict(nouns)
        self._fixed = {**traffic, **others}

    def configuration(self, index: int, role: str = "") -> dict[str, Any]:
        """Return the arguments of `OpenLoopSolver` for one engine of a row.

        Parameters
        ----------
        index
            The row.
        role
            Of separate pools, ``"prefill"`` or ``"decode"``, which is the default.

        Raises
        ------
        ConfigError
            If there is no such row, or it has no engine of this role.
        """
        row = self.row(index)
        two_pools = row.get("pools") == "separate"
        known = ("", "prefill", "decode") if two_pools else ("", "both")
        if role not in known:
            raise ConfigError(
                f"role = {shown(role)} is not one of plan {index}: choose one of "
                f"{', '.join(known[1:])}",
                argument="role",
            )
        levers = {name: row[name] for name in LEVERS}
        replicas = row["replicas"]
        if role == "prefill":
            levers |= {name: row[f"prefill_{name}"] for name in POOL_LEVERS}
            replicas = row["prefill_replicas"]
        levers |= {name: self._nouns[levers[name]] for name in ("hardware", "calibration")}
        rate = self._fixed["arrival_rate"] / replicas
        if two_pools:
            levers["role"] = role or "decode"
        return applied({**self._fixed, **levers, "arrival_rate": rate})

    def engine(self, index: int, role: str = "") -> dict[str, Any]:
        """Return the arguments of `capacity` for one engine of a row, without the traffic.

        Parameters
        ----------
        index
            The row.
        role
            Of separate pools, ``"prefill"`` or ``"decode"``, which is the default.

        Raises
        ------
        ConfigError
            If there is no such row, or it has no engine of this role.
        """
        given = self.configuration(index, role)
        return {name: value for name, value in given.items() if name not in self._traffic}

    def result(self, index: int, role: str = "") -> OpenLoopResult:
        """Solve one engine of a row, for its derivation.

        Parameters
        ----------
        index
            The row.
        role
            Of separate pools, ``"prefill"`` or ``"decode"``, which is the default.

        Raises
        ------
        ConfigError
            If there is no such row, or it has no engine of this role.
        """
        return OpenLoopSolver.solve(**self.configuration(index, role))

    def servers(self, index: int) -> dict[str, int]:
        """Return how many servers of each kind the engines of a row take.

        An engine is on as few servers as possible. The result is empty for devices that are not in
        a node.

        Raises
        ------
        ConfigError
            If there is no such row.
        """
        row, counts = self.row(index), dict[str, int]()
        for prefix in ("", "prefill_") if row.get("pools") == "separate" else ("",):
            noun = self._nouns[row[f"{prefix}hardware"]]
            node = noun.node if isinstance(noun, Fleet) else noun
            if isinstance(node, Node):
                each, size = int(node.accelerators_per_node), _engine_size(row, prefix)
                count = math.ceil(row[f"{prefix}replicas"] / max(each // size, 1))
                counts[node.name] = counts.get(node.name, 0) + count * math.ceil(size / each)
        return counts

    @property
    def devices(self) -> dict[str, str]:
        """Name of the device in each kind of hardware of the search."""
        kinds = Accelerator | Node | Fleet
        return {
            n: device_of(noun).name for n, noun in self._nouns.items() if isinstance(noun, kinds)
        }

    def front(self) -> ServingTable:
        """Return the plans that no other one beats both per user and per device."""
        rates = [numbers(self, f"tokens_per_s_per_{share}") for share in ("user", "device")]
        return self.take(unbeaten(-np.nan_to_num(np.column_stack(rates))))


@record
class ServingPlan:
    """Answer of `plan_serving`.

    Attributes
    ----------
    goal : str
        The quantity that was minimized.
    limits : Mapping[str, Quantity]
        The limits of the service.
    confidence : float or None
        The probability of meeting every limit that was wanted.
    least_confidence : float or None
        The probability that every one of the `plans` has: `confidence`, or if no plan has it, the
        highest one that a plan has, in whole percents.
    searched : int
        Plans that were tried. With separate pools, each pool's engines are tried separately, and
        this counts their pairs.
    plans : ServingTable
        Plans that meet every limit with `least_confidence`, best first. Pairs of pools in which one
        of the two is worse than another one in every respect are left out.
    front : ServingTable
        Plans among these that no other plan beats both in tokens per second per user and in tokens
        per second per device. Four of five measured runs are between `tokens_per_s_per_user_low`
        and `tokens_per_s_per_user_high`.
    alternatives : Table
        For each other value of each lever, the best plan, and how much worse the goal is.
    headroom : Mapping[str, float]
        The growth of each time of the best plan before it exceeds its limit, and of the rate before
        it reaches capacity, as shares.
    keeps_limits : float
        Probability that the best plan meets every limit, given the errors of pass times and of the
        queueing model.
    certainty : Table
        For several probabilities of meeting every limit (`confidence`), the best plan that has it:
        its devices, how many more these are than in the best plan if predictions were exact
        (`confidence` 0), and how much worse the goal is. From row to row, the probability rises and
        the goal gets worse, also if the hardware changes. The last rows are missing if no plan is
        so certain.
    stays_best : float or None
        Probability that it beats the best plans on `rivals`; `None` if there are none.
    rivals : tuple of str
        Other devices with plans, if the constants of the best one have a band of measured runs for
        this model and format (and for its energy, if that is the goal). There are none if the
        constants of the best plan of all have no band.
    untested : tuple of str
        Devices whose best plan has constants without a band. No probability compares it with other
        devices, so its place in the order is a guess. Empty if only one device has plans.
    prices : Mapping[str, str]
        Price of each device and where it comes from: the offer and its date.
    remarks : tuple of str
        What the answer depends on: lengths without variation, devices without published runs,
        limits on sequences at the end of those tried, devices without a server.
    refused : Mapping[str, int]
        Number of engines that cannot run, by reason.
    """

    goal: str
    limits: Mapping[str, Quantity]
    confidence: float | None
    least_confidence: float | None
    searched: int
    plans: ServingTable
    front: ServingTable
    alternatives: Table
    headroom: Mapping[str, float]
    keeps_limits: float
    certainty: Table
    stays_best: float | None
    rivals: tuple[str, ...]
    untested: tuple[str, ...]
    prices: Mapping[str, str]
    remarks: tuple[str, ...]
    refused: Mapping[str, int]

    @property
    def best(self) -> dict[str, Any]:
        """The best plan, with its times and costs."""
        return self.plans.row(0)

    @property
    def outside(self) -> tuple[str, ...]:
        """Ways in which the load of the best plan is outside all simulated systems.

        The errors of its times are not known there, and `keeps_limits` does not include them.
        """
        roles = ("prefill", "decode") if self.best.get("pools") == "separate" else ("",)
        ways = [way for role in roles for way in self.plans.result(0, role).outside]
        return tuple(dict.fromkeys(ways))

    def measured(self, source: Any, *, within: float | None = 2) -> Table:
        """Return published runs of the model, each with its prediction.

        These are runs on the devices of the search, with weights in a format of the plans. The
        package contains no runs.

        Parameters
        ----------
        source
            Runs as `validate` takes them, one per row, of clients that wait for their answers: the
            arguments of `ServingSolver` or `DisaggregatedSolver`, and the measured ``ttft`` and
            ``itl``.
        within
            Largest factor between a run's mean prompts and answers and those of the traffic; `None`
            takes runs of all lengths.

        Returns
        -------
        Table
            Each run with its source, its output tokens per second, and those that the model
            predicts for the same clients, formats and engine. Runs with `split` "calibrate" were
            available to the fit; others were held out. Runs that cannot be predicted are left out;
            `validate` gives the reasons.

        Raises
        ------
        ConfigError
            If `source` cannot be read or has no times, or `within` is less than one.
        """
        from mlsysim.planner.service.published import published_runs

        fixed = self.plans._fixed
        return published_runs(
            source,
            model=fixed["model"].name,
            devices=self.plans.devices.values(),
            formats=np.unique(self.plans["weight_precision"]).tolist(),
            lengths=(float(fixed["seq_len"]), float(fixed["output_len"])),
            within=within,
        )

    def plot(self, measured: Table | None = None, *, ax: Axes | None = None) -> tuple[Figure, Axes]:
        """Draw the frontier of each kind of hardware, as `plot_frontier` does."""
        from mlsysim.viz.frontier import plot_frontier

        return plot_frontier(self, measured, ax=ax)

    def _other_certainties(self) -> Iterator[str]:
        """Yield other plans with their probability, from the least certain to the most."""
        column = SERVING_GOALS[self.goal]
        best = (self.best["devices"], self.best["hardware"], self.keeps_limits)
        seen = {best}
        for row in (self.certainty.row(index) for index in range(len(self.certainty))):
            plan = (row["devices"], row["hardware"], row["keeps_limits"])
            change = float(row[column] / self.best[column]) - 1
            useful = row["keeps_limits"] > self.keeps_limits or change < -_SAME
            if plan not in seen and useful:
                seen.add(plan)
                cost = "" if column == "devices" else f", {column} {change:+.0%}"
                share = percent(row["keeps_limits"])
                yield f"{share} with {row['devices']} devices ({row['hardware']}{cost})"

    def _odds(self) -> Iterator[str]:
        """Yield the probability of keeping the limits, and those of other plans."""
        limits = ", ".join(f"{name} <= {format_number(v)}" for name, v in self.limits.items())
        if self.confidence is None or self.confidence == self.least_confidence:
            yield f"They keep {limits} with a probability of {percent(self.keeps_limits)}."
        else:
            yield (
                f"No plan keeps {limits} with a probability of {exact_percent(self.confidence)}. "
                f"This is the best of the most certain ones: {percent(self.keeps_limits)}."
            )
        others = ", ".join(self._other_certainties())
        if others:
            yield f"less or more certain plans (confidence): {others}"

    def _order(self) -> Iterator[str]:
        """Yield how certain the order of devices is."""
        if self.stays_best is not None:
            yield (
                f"beats the best plan on {' and '.join(self.rivals)} with a probability of "
                f"{percent(self.stays_best)}"
            )
        if self.untested:
            yield (
                f"the comparison of {' and '.join(self.untested)} with other devices is not "
                "tested, because the constants have no band of measured runs: measure before you "
                "buy"
            )

    def __str__(self) -> str:
        best, least = self.best, self.least_confidence
        two_pools = best.get("pools") == "separate"
        used = dict.fromkeys(
            self.plans.devices[best[name]]
            for name in ("hardware", "prefill_hardware")[: 1 + two_pools]
        )
        lines = [
            f"Traffic: {traffic_words(self.plans._traffic)}",
            f"{best['devices']} x {' and '.join(used)}: {self._counted(two_pools)}",
            *self._odds(),
            *(f"this probability is not reliable: {way}" for way in self.outside),
            *self._order(),
            *self.remarks,
            f"{'decode: ' * two_pools}{_engine(best)}, keys and values in {best['kv_precision']}, "
            f"at most {best['batch_limit']} sequences",
            *([f"prefill: {_engine(best, 'prefill_')}"] if two_pools else []),
            *(f"price of {name}: {price}" for name, price in self.prices.items()),
            *(
                f"{name}: {format_number(best[name])}"
                for name in (*SLO, *UNITS)
                if name in best and best[name] is not None
            ),
            "headroom: " + ", ".join(f"{n} {share:.0%}" for n, share in self.headroom.items()),
            f"{len(self.plans):,} of {self.searched:,} plans meet every limit"
            + (f" with at least {exact_percent(least)}" if least else ""),
        ]
        lines += [
            f"engines that cannot run: {count} ({why})" for why, count in self.refused.items()
        ]
        return "\n".join([*map(printable, dict.fromkeys(lines)), "", str(self.alternatives)])

    def _counted(self, two_pools: bool) -> str:
        """Return the engines and servers of the best plan, in words."""
        pools = {"prefill_": " for prefill", "": " for decode"} if two_pools else {"": ""}
        engines = " and ".join(
            f"{_several(self.best[f'{prefix}replicas'], 'engine')} of "
            f"{_several(_engine_size(self.best, prefix), 'device')}"
            f"{_sizes(self.best, prefix)}{pool}"
            for prefix, pool in pools.items()
        )
        servers = self.plans.servers(0)
        on = " and ".join(f"{_several(n, 'server')} ({name})" for name, n in servers.items())
        return engines + (f" on {on}" if on else "")


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _engine_size(plan: Mapping[str, Any], prefix: str = "") -> int:
    """Return the devices of an engine."""
    sizes = (plan[f"{prefix}{name}"] for name in ("tp_size", "pp_size", "attention_dp"))
    return math.prod(int(size) for size in sizes)


def _sizes(plan: Mapping[str, Any], prefix: str = "") -> str:
    """Return the sizes of an engine's groups above 1, with the names that engines use."""
    sizes = {short: plan[f"{prefix}{name}"] for short, name in _GROUPS.items()}
    listed = ", ".join(f"{short} = {size}" for short, size in sizes.items() if size > 1)
    return f" ({listed})" if listed else ""


def percent(probability: float) -> str:
    """Format a probability, but never as certain."""
    if 0.005 <= probability < 0.995:
        return f"{probability:.0%}"
    return "over 99%" if probability >= 0.995 else "under 1%"


def exact_percent(probability: float) -> str:
    """Format a probability that was chosen, with all its digits."""
    return f"{100 * probability:.10g}%"


def traffic_words(traffic: Mapping[str, Any]) -> str:
    """Describe the traffic of a service, with every assumption about it."""
    shown = {name: format_number(value) for name, value in traffic.items()}
    words = [
        f"prompts of {shown['seq_len']} tokens (variation {shown['input_variation']})",
        f"answers of {shown['output_len']} tokens (variation {shown['output_variation']})",
    ]
    if "arrival_rate" in traffic:
        rate = strip(traffic["arrival_rate"], "1/s", "arrival_rate")
        words.insert(0, f"{format_number(rate)} requests/s")
    others = ("burstiness", "cached_share", "turns", "turn_tokens", "think_time")
    return ", ".join([*words, *(f"{name} = {shown[name]}" for name in others if name in shown)])


def equal_lengths(traffic: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a remark on lengths without variation."""
    kinds = {"input_variation": "prompts", "output_variation": "answers"}
    names = [name for name in kinds if traffic[name] == 0]
    if not names:
        return ()
    usual = " and ".join(f"{name} = {getattr(CHAT_LENGTHS, name):g}" for name in names)
    return (
        f"all {' and '.join(kinds[name] for name in names)} have the same length, which shortens "
        f"queues and tails; a public trace of conversations has {usual}",
    )


def without_runs(device: str) -> str:
    """Return a remark on a device without published runs."""
    return (
        f"no published run on {device} is available: its times have default constants and wide "
        "bands, so measure it before you buy"
    )


def _engine(plan: Mapping[str, Any], prefix: str = "") -> str:
    """Describe the software and the settings of a pool's engines."""
    parts = [
        f"{name} = {value}"
        for name in SIZES
        if name not in _GROUPS.values() and (value := plan.get(prefix + name)) is not None
        if value != OpenLoopSolver.defaults[name]
    ]
    weights = f"weights in {plan[f'{prefix}weight_precision']}"
    return ", ".join([plan[f"{prefix}calibration"], *parts, weights])
