"""Lab: checkpointing under failures. How often to save a long run, and on which storage.

Act I finds the interval between checkpoints that loses the least time on 16,384 GPUs. Act II
chooses the interval and the storage within a budget. The time between failures of a device comes
from the published run of Llama 3 405B. The price of storage bandwidth is part of the story; every
other number comes from the package.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlsysim.core.errors import ConfigError
from mlsysim.core.numeric import Value
from mlsysim.core.recording import Input
from mlsysim.core.types import Fleet
from mlsysim.core.units import Q_
from mlsysim.registry import Models, Systems
from mlsysim.solvers import EconomicsSolver, ReliabilityResult, ReliabilitySolver
from mlsysim_course.controls import Choice, Estimate, Slider, true_claim
from mlsysim_course.explorers.charts import axis, line, lines, mark
from mlsysim_course.explorers.declare import Alert, Answer, Explorer, Reading, by_formula, read
from mlsysim_course.labs.lab import Lab
from mlsysim_course.labs.words import hours, millions, minutes, percent

MODEL = Models.Llama3_405B
DAYS = 54
GPUS = (1024, 2048, 4096, 8192, 16_384, 32_768, 65_536)
BANDWIDTHS = (25, 50, 100, 200, 300, 400, 800)
"""Rates at which the fleet writes to storage, in GB/s."""
INTERVALS = (2, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64, 96, 120, 192, 256)
"""Minutes of work between checkpoints."""
STORAGE_PRICE = 4000
"""Dollars per GB/s of storage bandwidth for the whole run, in the story."""
TARGET = 0.88
"""Goodput that the email requires."""
BUDGET = 4_900_000
"""Most dollars that lost time and storage may cost together."""


@dataclass(frozen=True)
class Plan:
    """A run: GPUs, GB/s to storage, minutes between checkpoints, and changes to its failures.

    `interval` is `None` for the best one.
    """

    gpus: int = 16_384
    bandwidth: float = 100
    interval: float | None = 120
    restart: float = 1
    """Restart time as a multiple of the package's."""
    lifetime: float = 1
    """Time between failures of a device as a multiple of the published one."""

    @property
    def best(self) -> Plan:
        """The same run with the best interval."""
        return replace(self, interval=None)


MAIL = Plan()


@functools.lru_cache(maxsize=1024)
def solve(plan: Plan) -> ReliabilityResult:
    """Return failures, checkpoints and goodput of a run."""
    usual = {}
    if plan.restart != 1 or plan.lifetime != 1:
        base = solve(replace(plan, restart=1, lifetime=1))
        usual = {
            "restart_time": plan.restart * base.restart_time,
            "device_mtbf": plan.lifetime * base.device_mtbf,
        }
    return ReliabilitySolver.solve(
        fleet=_fleet(plan.gpus),
        job_duration_hours=DAYS * 24,
        model=MODEL,
        precision="bf16",
        storage_bandwidth=Q_(plan.bandwidth, "GB/s"),
        checkpoint_interval=None if plan.interval is None else Q_(plan.interval, "minute"),
        **usual,
    )


def _fleet(gpus: int) -> Fleet:
    node = Systems.Nodes.DGX_H100
    count = gpus // node.accelerators_per_node
    return Fleet(
        name=f"{gpus:,} H100", node=node, count=count, fabric=Systems.Fabrics.InfiniBand_NDR
    )


@functools.lru_cache(maxsize=16)
def fleet_cost(gpus: int) -> float:
    """Return the cost of the fleet in dollars for the run: purchase, energy and maintenance."""
    cost = EconomicsSolver.solve(fleet=_fleet(gpus), duration_days=DAYS).period_cost
    if cost is None:
        raise ConfigError("the fleet has no price: add a price to its node in the catalog")
    return float(cost.to("USD").magnitude)


@dataclass(frozen=True)
class Waste:
    """The cost of a plan in dollars, beyond the time that makes progress."""

    lost: float
    storage: float

    @property
    def total(self) -> float:
        """Lost time and storage together."""
        return self.lost + self.storage


def waste(plan: Plan) -> Waste:
    """Return the cost of a plan's lost time and storage."""
    lost = fleet_cost(plan.gpus) * (1 - solve(plan).goodput)
    return Waste(lost, STORAGE_PRICE * plan.bandwidth)


def accepted(plan: Plan) -> bool:
    """Return whether a plan meets the requirements of the email."""
    return solve(plan).goodput >= TARGET and waste(plan).total <= BUDGET


def young(plan: Plan) -> float:
    """Return the best interval of a run in minutes."""
    return float(solve(plan.best).optimal_checkpoint_interval.to("minute").magnitude)


CHANGES: dict[str, Callable[[], Plan]] = {
    "storage": lambda: replace(MAIL, bandwidth=2 * MAIL.bandwidth).best,
    "restart": lambda: replace(MAIL, restart=0.5).best,
    "lifetime": lambda: replace(MAIL, lifetime=2).best,
    "often": lambda: replace(MAIL, interval=young(MAIL) / 2),
}
"""The runs that the second prediction compares, each at its best interval if it has a choice."""
_STRETCHES = {"half": 1 / 2, "root": math.sqrt(1 / 2), "same": 1, "double": 2}
"""What each option of the first reflection does to the best interval."""


def _stretch() -> str:
    """Return the option that is nearest to the change of the best interval on twice the GPUs."""
    change = young(replace(MAIL, gpus=2 * MAIL.gpus)) / young(MAIL)
    return min(_STRETCHES, key=lambda name: abs(math.log(change / _STRETCHES[name])))


def _best_change() -> str:
    return max(CHANGES, key=lambda name: solve(CHANGES[name]()).goodput)


def _diminishing() -> str:
    """Return the reason why the fastest storage is not the cheapest, the only true one."""
    slow, fast = (replace(MAIL, bandwidth=bandwidth).best for bandwidth in (200, 800))
    before, after = solve(slow), solve(fast)
    avoidable = [
        result.lost_time - result.expected_failures * result.restart_time
        for result in (before, after)
    ]
    return true_claim(
        {
            "root": math.isclose(avoidable[0] / avoidable[1], math.sqrt(4), rel_tol=0.1),
            "failures": after.fleet_mtbf < before.fleet_mtbf,
            "restart": after.restart_time > before.restart_time,
            "interval": after.checkpoint_interval > before.checkpoint_interval,
        }
    )


PREDICTION_1 = Estimate(
    id="act1_prediction",
    truth=lambda: young(MAIL),
    unit="minutes",
    low=0.1,
    high=10_000,
    factor=1.5,
    reply=lambda answer: (
        f"With your {answer:g} minutes, the goodput is "
        f"{percent(solve(replace(MAIL, interval=answer)).goodput)}."
    ),
)
REFLECTION_1 = Choice(id="act1_reflection", options=tuple(_STRETCHES), truth=_stretch)
PREDICTION_2 = Choice(id="act2_prediction", options=tuple(CHANGES), truth=_best_change, locks=True)
REFLECTION_2 = Choice(
    id="act2_reflection",
    options=("root", "failures", "restart", "interval"),
    truth=_diminishing,
)


def _tone(chosen: Plan) -> str:
    """Return the tone of a goodput: good within a point of the best, bad beyond five."""
    missed = solve(chosen.best).goodput - solve(chosen).goodput
    return "good" if missed < 0.01 else "warn" if missed < 0.05 else "bad"


def _alerts(chosen: Plan) -> list[Alert]:
    """Return what is wrong with a run."""
    result, best = solve(chosen), solve(chosen.best)
    if not result.feasible:
        return [Alert("stuck", "bad", "Hardly any progress", f"{result.reasons[0]}.")]
    if _tone(chosen) == "good":
        return []
    rare = result.checkpoint_interval > best.checkpoint_interval
    return [
        Alert(
            "interval",
            "warn",
            "Checkpoints are too rare" if rare else "Checkpoints are too frequent",
            f"Failures cost {hours(result.failure_loss)} and writing "
            f"{hours(result.checkpoint_overhead)}. At the best interval, failures would cost "
            f"{hours(best.failure_loss)} and writing {hours(best.checkpoint_overhead)}.",
        )
    ]


def _curve(chosen: Plan) -> dict[str, Any]:
    """Return a chart of goodput by interval for a run and for the one in the email."""

    def points(run: Plan) -> list[tuple[float, float]]:
        return [(i, 100 * solve(replace(run, interval=i)).goodput) for i in INTERVALS]

    here = 100 * solve(chosen).goodput
    email = replace(MAIL, interval=chosen.interval)
    others = [] if chosen == email else [line("The email", points(MAIL))]
    return lines(
        axis("Minutes of work between checkpoints", log=True),
        axis("Goodput (%)", zero=True),
        [line("Your setting", points(chosen)), *others],
        marks=[mark(chosen.interval or young(chosen), here, f"{here:.1f}%")],
    )


def _sentence(chosen: Plan) -> str:
    best = solve(chosen.best)
    return (
        f"{chosen.gpus:,} GPUs with {chosen.bandwidth:g} GB/s to storage, and a checkpoint every "
        f"{chosen.interval:g} minutes: the goodput is {percent(solve(chosen).goodput)}. At the "
        f"best interval, {minutes(best.checkpoint_interval)}, it would be {percent(best.goodput)}."
    )


def _goodput(result: ReliabilityResult) -> Reading:
    return read("Goodput", result, "goodput", scale=100, shown="%")


def _checkpoint(result: ReliabilityResult) -> Reading:
    return read("Checkpoint", result, "checkpoint_time", "s")


def _explore(state: Mapping[str, Any]) -> Answer:
    chosen = Plan(gpus=state["gpus"], bandwidth=state["bandwidth"], interval=state["interval"])
    result = solve(chosen)
    return Answer(
        _sentence(chosen),
        (
            _goodput(result).judged(
                _tone(chosen), f"best here: {percent(solve(chosen.best).goodput)}"
            ),
            read("Fleet fails every", result, "fleet_mtbf", "hour", shown="hours").judged(
                hint="on average"
            ),
            read("Best interval", result, "optimal_checkpoint_interval", "minute", shown="minutes"),
            _checkpoint(result).judged(hint="training waits"),
            read("Writing", result, "checkpoint_overhead", "hour", shown="hours").judged(
                hint=f"of {DAYS * 24:,} hours"
            ),
            read("Failures", result, "failure_loss", "hour", shown="hours").judged(
                hint=f"{result.expected_failures:,.0f} of them: repeated work and restarts"
            ),
        ),
        (_curve(chosen),),
        alerts=tuple(_alerts(chosen)),
    )


def _lost_cost(period_cost: Value, goodput: Value) -> Value:
    """Return the part of the fleet's cost that pays for time without progress."""
    return period_cost * (1 - goodput)


def _storage_cost(storage_price: Value, bandwidth: Value) -> Value:
    """Return the price of the storage bandwidth for the whole run."""
    return storage_price * bandwidth


def _total_cost(
    period_cost: Value, goodput: Value, storage_price: Value, bandwidth: Value
) -> Value:
    """Return the cost of lost time and storage together."""
    return _lost_cost(period_cost, goodput) + _storage_cost(storage_price, bandwidth)


def _costs(chosen: Plan) -> tuple[Reading, Reading, Reading]:
    """Return the cost of lost time and storage together, and of each."""
    lost = {
        "period_cost": Q_(fleet_cost(chosen.gpus), "USD"),
        "goodput": Input("goodput", Q_(solve(chosen).goodput, ""), "", "goodput of the plan"),
    }
    storage = {
        "storage_price": Q_(STORAGE_PRICE, "USD s/GB"),
        "bandwidth": Q_(chosen.bandwidth, "GB/s"),
    }
    dollars = functools.partial(by_formula, unit="USD", shown="$ million", scale=1e-6)
    return (
        dollars("Lost time and storage", _total_cost, given=lost | storage),
        dollars("Lost time", _lost_cost, given=lost),
        dollars("Storage", _storage_cost, given=storage),
    )


def _verdict(chosen: Plan) -> list[Alert]:
    result, cost = solve(chosen), waste(chosen)
    if accepted(chosen):
        text = (
            f"Its goodput is {percent(result.goodput)}, and lost time and storage cost "
            f"{millions(cost.total)} together."
        )
        return [Alert("accepted", "good", "This plan meets the requirements", text)]
    if result.goodput >= TARGET:
        text = (
            f"Storage costs {millions(cost.storage)} and lost time {millions(cost.lost)}. "
            f"Together, that is {millions(cost.total - BUDGET)} more than the budget."
        )
        return [Alert("budget", "warn", "Above the budget", text)]
    return []


def _plan(state: Mapping[str, Any]) -> Plan:
    return Plan(bandwidth=state["plan_bandwidth"], interval=state["plan_interval"])


def _choose(state: Mapping[str, Any]) -> Answer:
    chosen = _plan(state)
    result = solve(chosen)
    total, lost, storage = _costs(chosen)
    return Answer(
        _sentence(chosen),
        (
            _goodput(result).judged(
                "good" if result.goodput >= TARGET else "bad",
                f"target: {percent(TARGET, 0)} or more",
            ),
            total.judged(
                "good" if waste(chosen).total <= BUDGET else "bad", f"budget: {millions(BUDGET)}"
            ),
            lost.judged(hint=hours(result.lost_time)),
            storage.judged(hint=f"${STORAGE_PRICE:,} for each GB/s"),
            _checkpoint(result).judged(
                _tone(chosen), f"best interval: {minutes(result.optimal_checkpoint_interval)}"
            ),
        ),
        (_curve(chosen),),
        alerts=(*_alerts(chosen), *_verdict(chosen)),
    )


_JOB = f"{MODEL.name} for {DAYS} days on DGX H100 servers. Training waits for each checkpoint."
INTERVAL = Explorer(
    "checkpointing/interval",
    "The explorer",
    _JOB,
    (
        Slider("gpus", "GPUs", MAIL.gpus, GPUS),
        Slider("bandwidth", "Storage bandwidth of the whole fleet", 100, BANDWIDTHS, "GB/s"),
        Slider("interval", "Work between checkpoints", 120, INTERVALS, "minutes"),
    ),
    _explore,
)
PLAN = Explorer(
    "checkpointing/plan",
    "The planner",
    f"{_JOB} There are {MAIL.gpus:,} GPUs.",
    (
        Slider("plan_bandwidth", "Storage bandwidth to rent", 100, BANDWIDTHS, "GB/s"),
        Slider("plan_interval", "Work between checkpoints", 120, INTERVALS, "minutes"),
    ),
    _choose,
)
LAB = Lab(
    name="checkpointing",
    title="Checkpointing under failures",
    minutes=30,
    questions=(PREDICTION_1, REFLECTION_1, PREDICTION_2, REFLECTION_2),
    explorers=(INTERVAL, PLAN),
    requirements=f"has a goodput of {percent(TARGET, 0)} or more and costs at most "
    f"{millions(BUDGET)} for lost time and storage together",
)
