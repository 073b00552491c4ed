"""Act II: the interval and the storage, within a budget."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mlsysim.core.derivation import Derivation
from mlsysim_course.controls import Question, Slider, Toggle
from mlsysim_course.labs.blocks import (
    Block,
    alert,
    controls,
    derivation,
    heading,
    message,
    readout,
    readouts,
    table,
    text,
)
from mlsysim_course.labs.checkpointing.act_one import alerts, curve, tone
from mlsysim_course.labs.checkpointing.model import (
    BANDWIDTHS,
    BUDGET,
    DAYS,
    INTERVALS,
    MAIL,
    STORAGE_PRICE,
    TARGET,
    Plan,
    accepted,
    fleet_cost,
    solve,
    waste,
    young,
)
from mlsysim_course.labs.lab import Act
from mlsysim_course.labs.words import hours, millions, minutes, percent, seconds

__all__ = ["ACT", "CHANGES", "plan"]

CHANGES: dict[str, Callable[[], Plan]] = {
    "storage": lambda: replace(MAIL, bandwidth=2 * MAIL.bandwidth).best,
    "restart": lambda: replace(MAIL, restart=0.5).best,
    "lifetime": lambda: replace(MAIL, lifetime=2).best,
    "often": lambda: replace(MAIL, interval=young(MAIL) / 2),
}
"""The runs that this act's prediction compares, each at its best interval if it has a choice."""

PREDICTION = Question(
    id="act2_prediction",
    label="Your prediction: the run now uses the best interval. Which change raises its "
    "goodput the most?",
    options={
        "storage": "Storage that is twice as fast.",
        "restart": "Restarts that take half as long.",
        "lifetime": "GPUs that fail half as often.",
        "often": "Checkpoints that are twice as frequent.",
    },
    right="lifetime",
    locks=True,
)
REFLECTION = Question(
    id="act2_reflection",
    label="Reflection: why is the fastest storage not the cheapest plan?",
    options={
        "root": "Lost time shrinks only with the square root of the bandwidth, while the price "
        "grows in proportion.",
        "failures": "Writing more often makes GPUs fail more often.",
        "restart": "A faster write makes each restart slower.",
        "interval": "Fast storage works only with long intervals.",
    },
    right="root",
)
DERIVATION = Toggle(id="show_derivation_2", label="How the goodput of this plan follows")
CONTROLS = (
    Slider(
        id="plan_bandwidth",
        label="Storage bandwidth to rent",
        values=BANDWIDTHS,
        first=100,
        unit="GB/s",
    ),
    Slider(
        id="plan_interval",
        label="Work between checkpoints",
        values=INTERVALS,
        first=120,
        unit="minutes",
    ),
)


def plan(state: Mapping[str, Any]) -> Plan:
    """Return the plan that the controls describe."""
    return Plan(bandwidth=state["plan_bandwidth"], interval=state["plan_interval"])


def _opening() -> list[Block]:
    now = waste(MAIL.best)
    return [
        message(
            "a2_mail",
            "Head of infrastructure",
            f"These {DAYS} days cost us {millions(fleet_cost(MAIL.gpus))}, so every percentage "
            f"point of lost goodput costs {millions(fleet_cost(MAIL.gpus) / 100)}. At the best "
            f"interval, lost time and storage cost {millions(now.total)} together. Storage is "
            f"${STORAGE_PRICE:,} for each GB/s for the run.",
            f"I want a goodput of at least {percent(TARGET, 0)}, and I want to pay at most "
            f"{millions(BUDGET)} for lost time and storage together. Choose the bandwidth and the "
            "interval.",
        ),
        text(
            "a2_framing",
            "The price of storage is part of the story. The cost of the fleet comes from "
            "mlsysim's EconomicsSolver: the purchase spread over the years of use, energy and "
            "maintenance, with an estimated server price.",
            "Three things cost time: writing checkpoints, repeating work after a failure, and "
            "restarting. The interval trades the first for the second. The third depends only on "
            "how often the fleet fails and how long a restart takes.",
            "Commit to an answer before you see the instruments. You cannot change it afterward.",
        ),
    ]


def _explain(answer: str) -> str:
    before, after = solve(MAIL.best), solve(CHANGES[answer]())
    gain = f"Goodput goes from {percent(before.goodput)} to {percent(after.goodput)}."
    if answer == "lifetime":
        return (
            f"{gain} A failure then comes every {hours(after.fleet_mtbf)}. That saves restarts as "
            "well as repeated work, and the run can write less often: every "
            f"{minutes(after.checkpoint_interval)}."
        )
    if answer == "storage":
        return (
            f"{gain} A checkpoint takes {seconds(after.checkpoint_time)}, and the best interval "
            f"shrinks to {minutes(after.checkpoint_interval)}. Writing and repeated work shrink by "
            "the square root of two, and restarts take as long as before."
        )
    if answer == "restart":
        return (
            f"{gain} It saves half of each restart, {minutes(after.restart_time)}, but none of the "
            "writing or repeated work."
        )
    return (
        f"{gain} The interval was already the best one. Half of it saves repeated work but doubles "
        f"the time for writing, from {hours(before.checkpoint_overhead)} to "
        f"{hours(after.checkpoint_overhead)}."
    )


def _reflect(answer: str) -> str:
    slow, fast = (replace(MAIL, bandwidth=b).best for b in (200, 800))
    money = (
        f"From {slow.bandwidth:g} to {fast.bandwidth:g} GB/s, the cost of lost time falls from "
        f"{millions(waste(slow).lost)} to {millions(waste(fast).lost)}, and storage rises from "
        f"{millions(waste(slow).storage)} to {millions(waste(fast).storage)}"
    )
    if answer == "root":
        return f"{money}. Restarts cost the same on any storage, so the returns diminish."
    if answer == "failures":
        return (
            f"The model has a failure every {hours(solve(fast).fleet_mtbf)} in both cases: writing "
            f"does not change how often a GPU fails. {money}."
        )
    if answer == "restart":
        return f"A restart takes {minutes(solve(fast).restart_time)} in both cases. {money}."
    return (
        "It is the other way around: the best interval shrinks from "
        f"{minutes(solve(slow).checkpoint_interval)} to "
        f"{minutes(solve(fast).checkpoint_interval)}. {money}."
    )


def _instruments(state: Mapping[str, Any]) -> list[Block]:
    chosen = plan(state)
    result, cost = solve(chosen), waste(chosen)
    is_open = state[DERIVATION.id]
    return [
        _changes(),
        heading("a2_planner_heading", 3, "The planner"),
        text(
            "a2_planner_text",
            "The planner starts with the storage and the interval of the first email. Find a plan "
            "that meets both requirements.",
        ),
        controls("a2_controls", CONTROLS, state),
        curve("a2_chart", chosen),
        readouts(
            "a2_readouts",
            readout(
                "Goodput",
                f"{100 * result.goodput:.1f}",
                "%",
                "good" if result.goodput >= TARGET else "bad",
                f"target: {percent(TARGET, 0)} or more",
            ),
            readout(
                "Lost time and storage",
                millions(cost.total),
                tone="good" if cost.total <= BUDGET else "bad",
                hint=f"budget: {millions(BUDGET)}",
            ),
            readout("Lost time", millions(cost.lost), hint=hours(result.lost_time)),
            readout("Storage", millions(cost.storage), hint=f"${STORAGE_PRICE:,} for each GB/s"),
            readout(
                "Checkpoint",
                seconds(result.checkpoint_time),
                tone=tone(chosen),
                hint=f"best interval: {minutes(result.optimal_checkpoint_interval)}",
            ),
        ),
        *alerts("a2", chosen),
        *_verdict(chosen),
        derivation(DERIVATION, is_open, _explained(chosen) if is_open else None),
    ]


def _changes() -> Block:
    before = solve(MAIL.best).goodput
    return table(
        "a2_changes",
        "The four options, compared with the run in the first email at its best interval.",
        ["Change", "Goodput", "Gain in points"],
        [
            [PREDICTION.options[name], percent(after), f"{100 * (after - before):+.1f}"]
            for name in CHANGES
            for after in (solve(CHANGES[name]()).goodput,)
        ],
    )


def _verdict(chosen: Plan) -> list[Block]:
    result, cost = solve(chosen), waste(chosen)
    if accepted(chosen):
        return [
            alert(
                "a2_accepted",
                "info",
                "This plan meets the requirements",
                f"Its goodput is {percent(result.goodput)}, and lost time and storage cost "
                f"{millions(cost.total)} together.",
            )
        ]
    if result.goodput >= TARGET:
        return [
            alert(
                "a2_budget",
                "warn",
                "Above the budget",
                f"Storage costs {millions(cost.storage)} and lost time {millions(cost.lost)}. "
                f"Together, that is {millions(cost.total - BUDGET)} more than the budget.",
            )
        ]
    return []


@functools.lru_cache(maxsize=32)
def _explained(chosen: Plan) -> Derivation:
    return solve(chosen).explain("checkpoint_time", "goodput")


ACT = Act(
    id="a2",
    title="Act II: save within a budget",
    opening=_opening,
    prediction=PREDICTION,
    explain=_explain,
    controls=(*CONTROLS, DERIVATION),
    instruments=_instruments,
    reflection=REFLECTION,
    reflect=_reflect,
)
