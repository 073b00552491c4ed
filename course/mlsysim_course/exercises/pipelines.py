"""Exercises of the tutorial on pipelines: schedules simulated pass by pass."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

from mlsysim import ConfigError, Models
from mlsysim.schedules import Pass, Timeline, play, simulate_pipeline
from mlsysim_course.answers import AmountAsked, ChoiceAsked, CountAsked, Parts, exercise

_MODEL = Models.Llama3_8B
_QUARTER = Fraction(1, 4)


def _small(schedule: str = "1f1b", **given: Any) -> Timeline:
    """Return three stages with four microbatches."""
    return simulate_pipeline(schedule, **{"pp_size": 3, "microbatch_count": 4, **given})


def _idle_share(schedule: str, backward: int) -> float:
    """Return the idle share if a backward pass takes so many forwards."""
    step = simulate_pipeline(
        schedule, pp_size=4, microbatch_count=8, backward_time=backward, weight_time=1
    )
    return step.bubble_fraction


def _change(schedule: str) -> str:
    """Return how the idle share changes if a backward pass takes three forwards instead of two."""
    usual, longer = (_idle_share(schedule, backward) for backward in (2, 3))
    if longer == usual:
        return "stays"
    return "rises" if longer > usual else "falls"


def _table() -> float:
    """Return the work of the output layer in layers of the model."""
    weights = float(_MODEL.parameters.to("param").magnitude)
    table = _MODEL.vocab_size * _MODEL.hidden_dim
    return table * _MODEL.layers / (weights - 2 * table)


def _length(plan: Sequence[float]) -> float:
    """Return the length of a step whose last stage also has the output layer."""
    loads = [*plan[:-1], plan[-1] + _table()]
    return float(
        simulate_pipeline(
            pp_size=len(plan),
            microbatch_count=16,
            forward_time=loads,
            backward_time=[2 * load for load in loads],
        ).makespan
    )


@lru_cache(maxsize=1)
def _shortest() -> tuple[int, ...]:
    """Return the plan with the shortest step; stages of very unequal depth are not tried."""
    plans = [plan for plan in product(range(4, 12), repeat=4) if sum(plan) == _MODEL.layers]
    return min(plans, key=_length)


def _even() -> tuple[int, ...]:
    return 4 * (_MODEL.layers // 4,)


def _dealt(plan: Sequence[float] | None = None) -> float:
    """Return how much longer the even plan takes than the best plan, or than a given one."""
    return _length(_even()) / _length(plan or _shortest()) - 1


def _ahead(times: int) -> Timeline:
    """Simulate an order that runs `times` as many forward passes ahead as 1F1B does."""
    orders = []
    for stage in range(4):
        ahead = times * (3 - stage)
        order = [Pass("F", part) for part in range(ahead)]
        for part in range(32):
            order += [Pass("F", ahead + part)] * (ahead + part < 32)
            order.append(Pass("B", part))
        orders.append(order)
    return play(orders, transfer_time=_QUARTER)


def _crossed() -> str:
    """Return when a step ends if two stages process their microbatches in opposite orders."""
    first = [Pass("F", 0), Pass("B", 0), Pass("F", 1), Pass("B", 1)]
    try:
        played = play([first, first[2:] + first[:2]])
    except ConfigError:
        return "never"
    usual = simulate_pipeline(pp_size=2, microbatch_count=2)
    return "later" if played.makespan > usual.makespan else "soon"


@exercise
def _pipelines_1() -> Parts:
    step = _small()
    busy_time = step.makespan - step.bubble_time
    yield CountAsked(
        "length",
        asks="the length of the step in ticks",
        truth=step.makespan,
        hint="Does a stage run a forward pass where it could run a backward pass, or start a "
        "backward pass before the next stage has finished its own?",
        mistakes={
            busy_time: "That is how long one stage works. When does the last stage start, and "
            "when does the first one finish?",
            3 * busy_time: "Stages can work at the same time, on different microbatches.",
        },
    )
    yield CountAsked(
        "idle",
        asks="the ticks that each stage idles",
        truth=step.bubble_time,
        hint="Subtract a stage's work from the length of the step.",
        mistakes={
            _small(backward_time=1).bubble_time: "A backward pass takes two ticks here.",
            _small(pp_size=4).bubble_time: "A stage waits only for the other stages, not for "
            "itself.",
            3 * step.bubble_time: "That is the idle time of all stages together.",
        },
    )


@exercise
def _pipelines_2() -> Parts:
    yield ChoiceAsked(
        "one_f_one_b",
        asks='whether the idle share of 1F1B `"rises"`, `"falls"` or `"stays"` the same',
        options=("rises", "falls", "stays"),
        truth=_change("1f1b"),
        hint="A longer backward pass makes a stage wait longer. How does it change the work?",
    )
    yield ChoiceAsked(
        "zb_h1",
        asks='whether the idle share of ZB-H1 `"rises"`, `"falls"` or `"stays"` the same',
        options=("rises", "falls", "stays"),
        truth=_change("zb-h1"),
        hint="Which of the two parts of a backward pass gets longer? Which of them fills gaps?",
    )


@exercise
def _pipelines_3() -> Parts:
    equal = (_MODEL.layers + _table()) / 4
    perfect = _dealt([equal, equal, equal, equal - _table()])
    yield AmountAsked(
        "gain",
        asks="how much longer the even plan takes, as a share of the best plan's time",
        truth=_dealt(),
        hint="Simulate all plans of 32 layers, with the output layer on the last stage.",
        mistakes={
            1 - 1 / (1 + _dealt()): "That is a share of the even plan's time. Divide by the "
            "time of the best plan.",
            perfect: "Layers cannot be split.",
            _dealt((8, 8, 9, 7)): "One layer has moved. Is the last stage still the longest?",
            _dealt((8, 9, 9, 6)): "The last stage is right. Which of the other stages should "
            "be the long one?",
        },
    )


@exercise
def _pipelines_4() -> Parts:
    gain = float(_ahead(1).makespan / _ahead(2).makespan) - 1
    yield AmountAsked(
        "gain",
        asks="how much longer 1F1B takes, as a share of your order's time",
        truth=gain,
        hint="Compare both with transfers. In yours, only the transfers of filling and "
        "draining remain.",
        mistakes={
            1 - 1 / (1 + gain): "That is a share of 1F1B's time. Divide by the time of your order.",
        },
    )
    yield CountAsked(
        "in_flight",
        asks="the largest number of microbatches that its first stage has to remember",
        truth=_ahead(2).peak_activations[0],
        hint="Some forward passes run ahead, and then one runs before each backward pass.",
        mistakes={
            _ahead(1).peak_activations[0]: "That is the memory of 1F1B.",
            2 * _ahead(1).peak_activations[0]: "Twice as many run ahead, but the one in "
            "progress does not count as ahead.",
            32: "That is the memory of GPipe, which runs all of them ahead.",
        },
    )


@exercise
def _pipelines_self_check() -> Parts:
    yield ChoiceAsked(
        "ends",
        asks='whether the step ends as `"soon"` as with 1F1B, `"later"`, or `"never"`',
        options=("soon", "later", "never"),
        truth=_crossed(),
        hint="Simulate it by hand. For each stage, note what its next pass needs and which "
        "pass of the other stage makes it.",
    )
