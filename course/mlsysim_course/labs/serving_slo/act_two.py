"""Act II: meet the service level again, and then a stricter one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mlsysim.core.derivation import Derivation
from mlsysim_course.controls import Question, Selector, Slider, Toggle
from mlsysim_course.labs.acts import Act
from mlsysim_course.labs.blocks import (
    Block,
    alert,
    chart,
    controls,
    derivation,
    heading,
    log_axis,
    message,
    readout,
    readouts,
    series,
    table,
    text,
)
from mlsysim_course.labs.serving_slo.model import (
    BUDGET,
    GROWTH,
    LIMITS,
    MAIL,
    OFFER,
    STRICT,
    Service,
    Times,
    accepted,
    each,
    pools,
    possible,
    rent,
    solve,
    span,
    splits,
)
from mlsysim_course.labs.words import dollars, percent

__all__ = ["ACT", "CHANGES", "plan"]

RATES = (25, 50, 75, 90, 95, 99, 105, 110, 125, 150, 175, 200)

CHANGES: dict[str, Callable[[], Service]] = {
    "replica": lambda: replace(GROWTH, gpus=GROWTH.gpus + 1),
    "budget": lambda: replace(GROWTH, token_budget=2 * GROWTH.token_budget),
    "fp8": lambda: replace(GROWTH, precision="fp8"),
    "pools": lambda: min(splits(GROWTH), key=lambda split: solve(split).utilization),
}
"""The services that this act's prediction compares; pools have the split with the least load."""

NAMES = {
    "replica": "One more GPU",
    "budget": "Larger passes",
    "fp8": "FP8",
    "pools": "Separate pools",
}

PREDICTION = Question(
    id="act2_prediction",
    label=f"Your prediction: with one of these changes, the GPUs cannot keep up with {GROWTH.rate} "
    "requests per second at all. Which one?",
    options={
        "replica": "One more GPU that works like the others.",
        "budget": "Passes with a budget of twice as many prompt tokens.",
        "fp8": "Weights, keys and values in FP8 instead of BF16.",
        "pools": "Separate pools: some of the ten GPUs only run prefill, and the others only "
        "generate.",
    },
    right="pools",
    locks=True,
)
REFLECTION = Question(
    id="act2_reflection",
    label="Reflection: under the stricter promise, pools need fewer GPUs than replicas. Why?",
    options={
        "prompts": "No prompt delays a token, so pools keep the promise at a higher load than "
        "replicas can.",
        "memory": "Each pool stores only part of the weights, which leaves room for sequences.",
        "faster": "A GPU that only runs prefill processes each prompt faster.",
        "capacity": "Pools can answer more requests per second in total.",
    },
    right="prompts",
)
DERIVATION = Toggle(
    id="show_derivation_2", label="How the number of sequences that fit on a GPU follows"
)
CONTROLS = (
    Slider(id="plan_gpus", label="GPUs", values=(6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 24), first=10),
    Slider(
        id="plan_prompt_gpus",
        label="Of these, GPUs that only run prefill (0: every GPU does both)",
        values=tuple(range(13)),
        first=0,
    ),
    Selector(
        id="plan_precision",
        label="Weights, keys and values",
        options={"bf16": "BF16", "fp8": "FP8"},
        first="bf16",
    ),
    Slider(
        id="plan_token_budget",
        label="Prompt tokens per pass",
        # Shorter passes split many prompts, and there the closed form is too optimistic.
        values=(8192, 16_384, 32_768),
        first=GROWTH.token_budget,
    ),
)


def plan(state: Mapping[str, Any]) -> Service:
    """Return the service that the controls describe."""
    return replace(
        GROWTH,
        gpus=state["plan_gpus"],
        prompt_gpus=state["plan_prompt_gpus"],
        precision=state["plan_precision"],
        token_budget=state["plan_token_budget"],
    )


def _opening() -> list[Block]:
    now = solve(GROWTH)
    return [
        message(
            "a2_mail",
            "Head of product",
            f"The traffic came, and the p99 of TTFT is {span(now.ttft_p99)}. Your colleagues have "
            f"four proposals: rent one more GPU; let each pass take {2 * GROWTH.token_budget:,} "
            f"prompt tokens instead of {GROWTH.token_budget:,}; store and compute in FP8; or "
            "separate the GPUs into a prefill pool and a decode pool, as large providers do.",
            f"A GPU costs {dollars(rent(replace(GROWTH, gpus=1)))} a month. Which of the four "
            "should we try?",
        ),
        text(
            "a2_framing",
            f"The rent is {OFFER.provider}'s price of {OFFER.date}, on demand. FP8 costs no rent, "
            "but it changes the answers a little, so you have to check their quality. A solver "
            "cannot do that for you.",
            "The pools are two queues in series, each computed by OpenLoopSolver. The keys and "
            "values of a prompt move between them over InfiniBand at 400 Gb/s. For the pools, the "
            "question is about the best split of the GPUs.",
            "Commit to an answer before you see the instruments. You cannot change it afterward.",
        ),
    ]


def _split(service: Service) -> str:
    """Describe the loads of two pools in a sentence without its period."""
    first, second = (percent(pool.utilization, 0) for pool in pools(service))
    return (
        f"With {service.prompt_gpus} GPUs for prefill and {service.gpus - service.prompt_gpus} for "
        f"decode, the former are at {first} of the load that they can take, and the latter at "
        f"{second}"
    )


def _explain(answer: str) -> str:
    changed = CHANGES[answer]()
    times, before = solve(changed), solve(GROWTH)
    if answer == "pools":
        other = replace(changed, prompt_gpus=changed.prompt_gpus - 1)
        return (
            f"{_split(changed)}. {_split(other)}. No split of the {GROWTH.gpus} GPUs works. The "
            "work is the same as before, so pools add no capacity. They lose some, because a GPU "
            "of one pool cannot help the other."
        )
    reached = (
        f"The load goes from {percent(before.utilization)} of capacity to "
        f"{percent(times.utilization)}, and the p99 of TTFT from {span(before.ttft_p99)} to "
        f"{span(times.ttft_p99)}."
    )
    if answer == "replica":
        return (
            f"{reached} With {percent(1 / GROWTH.gpus, 0)} more GPUs, the p99 is "
            f"1/{before.ttft_p99 / times.ttft_p99:.0f} as long. A little more capacity makes up "
            "for a little more traffic."
        )
    if answer == "fp8":
        return (
            f"{reached} Each pass reads half as many bytes, and more sequences fit: "
            f"{times.places} instead of {before.places}."
        )
    return (
        f"{reached} Few passes ever fill {GROWTH.token_budget:,} tokens, so a larger limit does "
        f"not help. It takes some memory, which leaves {times.places} places for sequences instead "
        f"of {before.places}. But the GPUs keep up."
    )


@functools.cache
def _cheapest(pools: bool) -> Service:
    """Return the service with the fewest GPUs in FP8 that keeps the stricter promise."""
    for gpus in range(1, 100):
        whole = replace(GROWTH, gpus=gpus, precision="fp8")
        for service in splits(whole) if pools else [whole]:
            if solve(service).meets(STRICT):
                return service
    raise ArithmeticError("no number of GPUs keeps the promise")


def _reflect(answer: str) -> str:
    apart, both = _cheapest(True), _cheapest(False)
    load = (
        f"{apart.gpus} GPUs in pools keep the stricter promise at a load of "
        f"{percent(solve(apart).utilization, 0)}. Replicas need {both.gpus}, at "
        f"{percent(solve(both).utilization, 0)}"
    )
    if answer == "prompts":
        return (
            f"{load}. On a replica, a token waits while the pass runs prefill, so its load has to "
            "stay low. It was the other way around in BF16 and under the first promise: capacity "
            "was the limit there, and pools have less of it."
        )
    if answer == "memory":
        places = solve(apart).places
        return (
            f"Every GPU holds all the weights in both designs and has slots for {places} "
            f"sequences. {load}."
        )
    if answer == "faster":
        adds = float(each(both).prefill_latency.to("ms").magnitude)
        return (
            f"A prompt takes {adds:.3g} ms of a pass in either design. With fewer GPUs for "
            f"prefill, the p99 of TTFT is even longer: {span(solve(apart).ttft_p99)} rather than "
            f"{span(solve(both).ttft_p99)}. {load}."
        )
    split = min(splits(both), key=lambda one: solve(one).utilization)
    return (
        f"They can answer fewer: with {both.gpus} GPUs, the load of the best pools is "
        f"{percent(solve(split).utilization, 0)} of their capacity, and that of replicas is "
        f"{percent(solve(both).utilization, 0)}. {load}."
    )


def _instruments(state: Mapping[str, Any]) -> list[Block]:
    chosen = plan(state)
    is_open = state[DERIVATION.id]
    return [
        _changes(),
        message(
            "a2_second_mail",
            "Head of product",
            "We keep our promise again. Now coding agents will use the service, and they wait for "
            f"every token: the p99 of TPOT must be at most {span(STRICT.tpot)} instead of "
            f"{span(LIMITS.tpot)}. The p99 of TTFT stays at {span(STRICT.ttft)}, and the traffic "
            f"at {GROWTH.rate} requests per second. The quality of FP8 has been checked. The GPUs "
            f"may cost {dollars(BUDGET)} a month.",
        ),
        heading("a2_planner_heading", 3, "The planner"),
        text(
            "a2_planner_text",
            f"The planner starts with the {MAIL.gpus} GPUs of the first email. Find a service that "
            "meets all three requirements.",
        ),
        controls("a2_controls", CONTROLS, state),
        _curve(chosen),
        _readings(chosen),
        *_verdict(chosen),
        derivation(DERIVATION, is_open, _explained(chosen) if is_open else None),
    ]


def _changes() -> Block:
    def row(label: str, service: Service) -> list[str]:
        times = solve(service)
        kept = "yes" if times.meets(LIMITS) else "no"
        more = rent(service) - rent(GROWTH)
        return [label, span(times.ttft_p99), span(times.tpot_p99), kept, f"+{dollars(more)}"]

    return table(
        "a2_changes",
        f"The four proposals at {GROWTH.rate} requests per second: whether each keeps the promise, "
        "and how much it adds to the rent.",
        ["Change", "TTFT, p99", "TPOT, p99", "Kept", "A month"],
        [
            row("Nothing", GROWTH),
            *(row(NAMES[name], change()) for name, change in CHANGES.items()),
        ],
    )


def _readings(chosen: Service) -> Block:
    times, cost = _times(chosen), rent(chosen)
    found = [
        readout(
            "TTFT, p99",
            "–" if times is None else span(times.ttft_p99),
            tone="bad" if times is None or times.ttft_p99 > STRICT.ttft else "good",
            hint=f"limit: {span(STRICT.ttft)}",
        ),
        readout(
            "TPOT, p99",
            "–" if times is None else span(times.tpot_p99),
            tone="bad" if times is None or times.tpot_p99 > STRICT.tpot else "good",
            hint=f"limit: {span(STRICT.tpot)}",
        ),
        readout(
            "Rent",
            f"${cost / 1e3:.1f}k",
            tone="good" if cost <= BUDGET else "bad",
            hint=f"a month; budget: {dollars(BUDGET)}",
        ),
        readout(
            "Load",
            "–" if times is None else percent(times.utilization),
            hint="of the busier pool's capacity" if chosen.prompt_gpus else "of the capacity",
        ),
    ]
    return readouts("a2_readouts", *found)


def _times(chosen: Service) -> Times | None:
    """Return the times of a service, or `None` if no GPU generates."""
    return solve(chosen) if possible(chosen) else None


def _verdict(chosen: Service) -> list[Block]:
    times = _times(chosen)
    if times is None:
        words = f"{chosen.prompt_gpus} of {chosen.gpus} GPUs run prefill. Leave some for decode."
        return [alert("a2_empty", "bad", "No GPU generates", words)]
    if not times.stable:
        words = f"The load is {percent(times.utilization)} of the capacity."
        if chosen.prompt_gpus:
            words += " That is the busier pool. Move GPUs to it, or add some."
        return [alert("a2_overload", "bad", "The queue grows without end", words)]
    if accepted(chosen):
        words = (
            f"The p99 of TTFT is {span(times.ttft_p99)}, that of TPOT is {span(times.tpot_p99)}, "
            f"and the GPUs cost {dollars(rent(chosen))} a month."
        )
        return [alert("a2_accepted", "info", "This service meets the requirements", words)]
    if times.meets(STRICT):
        words = f"The GPUs cost {dollars(rent(chosen) - BUDGET)} a month more than the budget."
        return [alert("a2_budget", "warn", "Above the budget", words)]
    late = [
        f"{name} takes {span(value)}, and its limit is {span(most)}"
        for name, value, most in (
            ("TTFT", times.ttft_p99, STRICT.ttft),
            ("TPOT", times.tpot_p99, STRICT.tpot),
        )
        if value > most
    ]
    return [alert("a2_late", "warn", "The p99 is too high", f"{'. '.join(late)}.")]


def _curve(chosen: Service) -> Block:
    def points(service: Service, name: str) -> list[tuple[float, float]]:
        limit = getattr(STRICT, name.removesuffix("_p99"))
        by_rate = [(rate, solve(replace(service, rate=rate))) for rate in RATES]
        return [(rate, 100 * getattr(t, name) / limit) for rate, t in by_rate if t.stable]

    own = chosen if possible(chosen) else None
    lines = [
        series(label, found, tone)
        for label, service, name, tone in (
            ("TTFT, your setting", own, "ttft_p99", "plain"),
            ("TPOT, your setting", own, "tpot_p99", "good"),
            ("TTFT, today's service", GROWTH, "ttft_p99", "other"),
        )
        if service is not None and (found := points(service, name))
    ]
    times = _times(chosen)
    share = "unbounded"
    marker = None
    if times is not None and times.stable:
        worst = 100 * max(times.ttft_p99 / STRICT.ttft, times.tpot_p99 / STRICT.tpot)
        share = f"{worst:,.0f}%"
        marker = {"x": chosen.rate, "y": worst, "label": share}
    values = [y for one in lines for _, y in one["points"]]
    return chart(
        "a2_chart",
        caption="Both percentiles as a share of their limits, by requests per second. The ring "
        f"marks the worse of the two at {GROWTH.rate}.",
        alt=f"At {GROWTH.rate} requests per second, the worse of the two percentiles is {share} of "
        "its limit.",
        x={"label": "Requests per second", "scale": "linear", "ticks": list(range(25, 201, 25))},
        y=log_axis("p99 over its limit (%)", values, "%"),
        lines=lines,
        marker=marker,
        rule={"y": 100, "label": "the limit"},
    )


@functools.lru_cache(maxsize=32)
def _explained(chosen: Service) -> Derivation:
    return each(chosen).explain("places")


ACT = Act(
    id="a2",
    title="Act II: keep the promise",
    opening=_opening,
    prediction=PREDICTION,
    explain=_explain,
    controls=(*CONTROLS, DERIVATION),
    instruments=_instruments,
    reflection=REFLECTION,
    reflect=_reflect,
)
