"""The answer of `advise`: the best plan, all others ranked, and the loss of each other choice."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mlsysim.core.fields import ReadOnlyMapping, quantity, record
from mlsysim.core.files import printable
from mlsysim.core.table import Column, Table
from mlsysim.core.units import Q_, Quantity, format_number
from mlsysim.planner.prices import Price
from mlsysim.planner.sensitivities.certainty import Odds, odds_between
from mlsysim.planner.training.contrasts import compared, parts_of, spent
from mlsysim.planner.training.diagnosis import Diagnosis
from mlsysim.planner.training.search import Plans, Search
from mlsysim.planner.training.space import EXCHANGE, LEVERS
from mlsysim.registry.calibration.published import PublishedRun
from mlsysim.solvers import DistributedResult, DistributedSolver, ReliabilityResult
from mlsysim.solvers.device import memory_account

_COMPARED = 20
"""Plans in which a feature of the exchanges is switched off."""
_WORTH = 0.0005
"""Gain below which plans are reported as equally fast."""


@record
class Alternative:
    """The best plan with another value of one lever, with all other levers chosen again.

    Attributes
    ----------
    lever : str
        The argument that is held fixed.
    value : object
        Its value.
    configuration : Mapping[str, object] or None
        Arguments of the best such plan; `None` if none is feasible.
    loss : float or None
        How much longer a token takes than under the best plan of all.
    words : str
        Where that time goes, or why no such plan is feasible.
    """

    lever: str
    value: Any
    configuration: Mapping[str, Any] | None
    loss: float | None
    words: str

    def __str__(self) -> str:
        return printable(f"{self.lever} = {self.value}: {self.words}", lines=True)


@record
class Bill:
    """Time, cost and carbon of a training run, with the price and the grid that were assumed.

    Attributes
    ----------
    time : Quantity or None
        Time of the run; `None` if its tokens are not given.
    cost : Quantity or None
        Cost of the run; `None` if its tokens or prices are not known.
    cost_per_token : Quantity or None
        Cost of a token; `None` if no price is known.
    price : Quantity or None
        Cost of a device and hour.
    rented : bool
        Whether the devices are rented rather than owned.
    source : str
        Where the price comes from: the argument, or the offers with their date; and if the devices
        are owned, the price of electricity.
    carbon : Quantity or None
        CO2 equivalent of the run; `None` unless it is the goal and the tokens are given.
    carbon_per_token : Quantity or None
        CO2 equivalent of a token; `None` unless carbon is the goal.
    carbon_source : str
        The grid, and whether the making of the hardware is included.
    """

    time: Quantity | None = quantity("day", default=None)
    cost: Quantity | None = quantity("USD", default=None)
    cost_per_token: Quantity | None = quantity("USD/Mtoken", default=None)
    price: Quantity | None = quantity("USD/h", default=None)
    rented: bool = True
    source: str = ""
    carbon: Quantity | None = quantity("kg", default=None)
    carbon_per_token: Quantity | None = quantity("kg/Mtoken", default=None)
    carbon_source: str = ""


@record
class Advice:
    """Answer of `advise`.

    Attributes
    ----------
    goal : str
        The goal by which plans are ranked.
    best : DistributedResult
        The best plan, solved.
    configuration : Mapping[str, object]
        Its arguments, as `DistributedSolver.solve` takes them.
    plans : Plans
        All feasible plans, best first.
    front : Plans
        Plans that no other plan beats in both time and memory (or time and cost, or time and
        carbon).
    alternatives : tuple of Alternative
        The best plan for every other value of every lever.
    diagnoses : tuple of Diagnosis
        Anti-patterns that the limits force on the best plan.
    searched : int
        Configurations that were evaluated.
    quarter : Alternative or None
        The best plan on a quarter of the devices, if that is about as fast.
    reliability : ReliabilityResult or None
        Effect of failures and checkpoints on the run; `None` if they are not counted.
    published : PublishedRun or None
        The fastest published run of the model on the device, in a format as wide and with sequences
        of similar length; `None` if we know of none.
    bill : Bill or None
        Time, cost and carbon of the run; `None` if neither `training_tokens` nor one of the goals
        ``"cost"`` and ``"carbon"`` is given.
    prices : Mapping[str, Price]
        Price of each fleet of the search; empty if not all of them have one.
    reserve : Quantity
        Memory that is left free on every device.
    tight : int
        Plans that fit but leave less memory free than the reserve; they are not advised.
    tight_gain : float or None
        Tokens per second that the fastest of them adds; negative if it is slower.
    """

    goal: str
    best: DistributedResult = dataclasses.field()
    configuration: Mapping[str, Any] = dataclasses.field()
    plans: Plans = dataclasses.field()
    front: Plans = dataclasses.field()
    alternatives: tuple[Alternative, ...]
    diagnoses: tuple[Diagnosis, ...]
    searched: int
    prices: Mapping[str, Price] = dataclasses.field(default_factory=dict)
    reserve: Quantity = quantity("GB", zero=True)
    quarter: Alternative | None = None
    reliability: ReliabilityResult | None = None
    published: PublishedRun | None = None
    bill: Bill | None = None
    tight: int = 0
    tight_gain: float | None = None

    @property
    def times_published(self) -> float | None:
        """Tokens per second and device over those of the best published run, if one is known."""
        if self.published is None:
            return None
        devices: int = self.configuration["fleet"].total_accelerators
        rate = float(self.best.token_throughput.to("token/s").magnitude) / devices
        return rate / float(self.published.tokens_per_second)

    @property
    def band(self) -> tuple[Quantity, Quantity] | None:
        """Band of the step; `None` without one.

        It covers four of five comparable runs of a plan that is chosen beforehand. The best of many
        plans is partly the one that the model flatters most, so where it is faster than any
        published run of the model on the device, the band includes that run's speed.
        """
        low, high = self.best.step_latency_low, self.best.step_latency_high
        if low is None or high is None:
            return None
        faster = max(1.0, self.times_published or 1.0)
        return low, max(high, faster * self.best.step_latency_total)

    @property
    def summary(self) -> str:
        """What the best plan reaches: the bill of the run, then the step and its memory."""
        best, within = self.best, ""
        reported, usable = best.memory_capacity, best.memory_capacity - self.reserve
        if self.band is not None:
            within = f" ({' to '.join(spent(end.to('s').magnitude) for end in self.band)})"
        lines = [
            f"A step takes {spent(best.step_latency_total.to('s').magnitude)}{within}: "
            f"{format_number(best.token_throughput)}, MFU {best.mfu:.0%}.",
            f"A device uses {memory_account(best.memory, usable, float(usable / reported))}.",
            *self._evidence(),
        ]
        return "\n".join([*self._run(), *lines])

    def _evidence(self) -> list[str]:
        """Return where the plan is outside all runs, and how it compares with the best of them.

        Runs that train adapters are not compared.
        """
        run, ratio, given = self.published, self.times_published, self.configuration
        outside = [f"Untested: {way}." for way in self.best.outside]
        if given.get("lora_rank") is not None:
            return outside
        if run is None or ratio is None:
            device = given["fleet"].node.accelerator.name
            return [
                *outside,
                f"Untested: we know of no published run of {given['model'].name} on {device} in "
                "this format with sequences of similar length.",
            ]
        untested = "Untested: this is" if ratio > 1 else "This is"
        return [
            *outside,
            f"{untested} {ratio:.2f} times the speed of the best published run, "
            f"{run.tokens_per_second:,.0f} tokens/s per device on {run.devices:,} ({run.source}, "
            f"{run.id}).",
        ]

    def _run(self) -> list[str]:
        """Return days, dollars and carbon of the run, with the band, the price and the grid."""
        bill, parts = self.bill, []
        if bill is None:
            return []
        if bill.time is not None:
            days, step = bill.time.to("day").magnitude, self.best.step_latency_total
            within = ""
            if self.band is not None:
                shares = [float((end / step).to("").magnitude) for end in self.band]
                within = f" ({' to '.join(_long(days * share) for share in shares)})"
            parts.append(f"{_long(days)} days{within}")
        if bill.price is None or bill.cost_per_token is None:
            parts.append("cost not known (give rental_price)")
        else:
            cost = bill.cost
            rate = bill.price.to("USD/h").magnitude
            parts.append(
                (
                    f"{bill.cost_per_token.to('USD/Mtoken').magnitude:.3g} USD per million tokens"
                    if cost is None
                    else f"{cost.to('USD').magnitude:,.0f} USD"
                )
                + f" {'rented' if bill.rented else 'owned'} at {rate:.2f} USD per device-hour "
                f"({bill.source})"
            )
        if bill.carbon_per_token is not None:
            amount = (
                f"{bill.carbon_per_token.to('g/Mtoken').magnitude:.3g} g CO2e per million tokens"
                if bill.carbon is None
                else f"{format_number(bill.carbon)} CO2e"
            )
            parts.append(f"{amount} ({bill.carbon_source})")
        return [", ".join(parts) + "."]

    @property
    def why(self) -> str:
        """Why the best plan wins: where its time goes, and the loss of the nearest alternatives."""
        parts = sorted(parts_of(self.best).items(), key=lambda item: -item[1])
        step = self.best.step_latency_total.to("s").magnitude
        lines = [
            f"Of {spent(step)} per step: "
            + ", ".join(
                f"{name} {spent(value)} ({value / step:.0%})"
                for name, value in parts
                if value > 0.005 * step
            )
            + ".",
            *self._remarks(),
            "The smallest loss from holding one lever at another value, with all other levers "
            "chosen again:",
        ]
        for lever, nearest in self._nearest().items():
            odds = self.odds.get(lever)
            # Without a band, the odds would only repeat the loss.
            sure = f"; {odds}" if odds is not None and odds.probability is not None else ""
            lines.append(f"- {nearest} (best: {self._held(lever)}{sure})")
        return "\n".join(lines)

    @functools.cached_property
    def odds(self) -> Mapping[str, Odds]:
        """How certain the choice of each lever is, compared with its best other value."""
        return ReadOnlyMapping(
            {
                lever: odds_between(self.configuration, nearest.configuration)
                for lever, nearest in self._nearest().items()
                if nearest.configuration is not None
            }
        )

    def _nearest(self) -> dict[str, Alternative]:
        """Return the best alternative for each lever."""
        best: dict[str, Alternative] = {}
        for item in self.alternatives:
            known = best.get(item.lever)
            if known is None or _cost(item) < _cost(known):
                best[item.lever] = item
        return best

    def _remarks(self) -> list[str]:
        """Return remarks on prices, memory, devices and failures."""
        remarks = []
        if len(self.prices) > 1 and self.bill is not None:
            listed = "; ".join(
                f"{fleet} {price.amount} ({price.source})" for fleet, price in self.prices.items()
            )
            basis = "rented" if self.bill.rented else "owned"
            remarks.append(f"All fleets are {basis}: {listed}.")
        if (gain := self.tight_gain or 0.0) > _WORTH:
            remarks.append(
                f"{self.tight:,} more plans fit but leave less memory free than the reserve; the "
                f"fastest of them is {gain:.1%} faster than the fastest here (memory_reserve)."
            )
        if self.quarter is not None:
            few = self.quarter.value
            remarks.append(
                f"A quarter of the devices, {few:,}, are about as fast ({self.quarter.words}): "
                f"see goal = 'fewest_devices'."
            )
        if self.reliability is not None:
            reliability = self.reliability
            remarks.append(
                f"Failures and checkpoints take {1 - reliability.goodput:.1%} of the run: a "
                f"failure comes every {format_number(reliability.fleet_mtbf)}, a checkpoint takes "
                f"{format_number(reliability.checkpoint_time)}."
            )
            remarks += reliability.reasons
        return remarks

    @property
    def losses(self) -> Table:
        """The alternatives as a table: the loss of each other value of a lever, and its cause."""
        items = self.alternatives
        return Table(
            {
                "lever": Column([item.lever for item in items]),
                "change": Column([f"{self._held(i.lever)} → {i.value}" for i in items]),
                "loss": Column(
                    ["none fits" if item.loss is None else f"{item.loss:.1%}" for item in items]
                ),
                "where": Column([item.words.partition(": ")[2] or item.words for item in items]),
            }
        )

    def _held(self, lever: str) -> Any:
        value = self.configuration[lever]
        return getattr(value, "name", value)

    def __str__(self) -> str:
        levers = {name: self.configuration.get(name) for name in (*LEVERS, *EXCHANGE)}
        sizes = ", ".join(f"{name} {value}" for name, value in levers.items() if value is not None)
        words = (
            f"{self.summary}\n{sizes}\nThis is the best of {self.searched:,} configurations by "
            f"{self.goal}; of these, {len(self.plans):,} are feasible.\n{self.why}"
        )
        return printable(words, lines=True)

    def __repr__(self) -> str:
        return f"<Advice: {self.goal}, {self.searched:,} configurations>"


def _long(days: float) -> str:
    return f"{days:,.0f}" if days >= 100 else f"{days:.1f}" if days >= 1 else f"{days:.2g}"


def _cost(item: Alternative) -> float:
    return math.inf if item.loss is None else item.loss


def alternatives(plans: Plans, search: Search) -> tuple[Alternative, ...]:
    """Find the best plan for every other value of every lever that was searched."""
    best, others = plans.row(0), []
    for lever in ("fleet", "batch_size", *LEVERS):
        column = np.asarray(plans[lever])
        tried = _tried(lever, search)
        for value in sorted(tried | set(column.tolist()), key=lambda v: (str(type(v)), v)):
            if value == best[lever]:
                continue
            rows = column == value
            if not rows.any():
                least = format_number(Q_(_least(lever, value, search), "byte").to("GB"))
                words = f"does not fit: at least {least} per device, and the reserve"
                words = words if search.tight else words.partition(",")[0]
                others.append(
                    Alternative(
                        lever=lever, value=value, configuration=None, loss=None, words=words
                    )
                )
                continue
            index = int(rows.argmax())
            row = plans.row(index)
            against = compared(row, best)
            loss, words = against.loss, against.words
            if search.goal.name in ("cost", "carbon"):
                loss = float(row[search.goal.column] / best[search.goal.column]) - 1
                words = f"{loss:.1%} more {search.goal.name}, {words}"
            others.append(
                Alternative(
                    lever=lever,
                    value=value,
                    configuration=plans.configuration(index),
                    loss=loss,
                    words=words,
                )
            )
    return (*others, *_without(plans, search))


def _without(plans: Plans, search: Search) -> list[Alternative]:
    """Return the best plan without each feature of the exchanges that the best plan uses.

    The feature is switched off in the fastest plans, and they are compared again. None of these
    features makes a step longer, so hardly any other plan can overtake them.
    """
    items, best, chosen = [], plans.row(0), plans.configuration(0)
    for lever in EXCHANGE:
        if chosen.get(lever) is None or search.exchange.get(lever) is not None:
            continue
        candidates = []
        for index in range(min(_COMPARED, len(plans))):
            given = plans.configuration(index) | {lever: None}
            result = DistributedSolver.solve(**given)
            if result.feasible:
                candidates.append((compared(result, best), given))
        if candidates:
            against, given = min(candidates, key=lambda item: item[0].loss)
            items.append(
                Alternative(
                    lever=lever,
                    value=None,
                    configuration=given,
                    loss=against.loss,
                    words=against.words,
                )
            )
    return items


def _tried(lever: str, search: Search) -> set[Any]:
    values: set[Any] = set()
    for shared, block in search.failed:
        if lever in block:
            values.update(np.unique(block[lever]).tolist())
        elif block["memory"].size:
            values.add(getattr(shared[lever], "name", shared[lever]))
    return values


def _least(lever: str, value: Any, search: Search) -> float:
    least = np.inf
    for shared, block in search.failed:
        if lever in block:
            memory = block["memory"][block[lever] == value]
        else:
            same = getattr(shared[lever], "name", shared[lever]) == value
            memory = block["memory"] if same else block["memory"][:0]
        least = min(least, memory.min(initial=np.inf))
    return float(least)
