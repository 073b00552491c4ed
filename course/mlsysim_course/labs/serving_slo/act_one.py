"""Act I: how random arrivals affect the p99 as load grows."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlsysim.core.derivation import Derivation
from mlsysim_course.controls import Estimate, Question, Slider, Toggle
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
    text,
)
from mlsysim_course.labs.serving_slo.model import (
    GROWTH,
    HARDWARE,
    LIMITS,
    MAIL,
    MODEL,
    OUTPUT,
    PROMPT,
    Service,
    Times,
    each,
    solve,
    span,
)
from mlsysim_course.labs.words import percent

__all__ = ["ACT", "RATES", "service"]

RATES = (20, 40, 60, 70, 75, 80, 85, 87, 89, 90, 91, 92, 93, 94, 95, 96, 98)

PREDICTION = Estimate(
    id="act1_prediction",
    label=f"Your prediction: what is the p99 of the time to first token at {GROWTH.rate} requests "
    "per second?",
    truth=lambda: 1e3 * solve(GROWTH).ttft_p99,
    unit="ms",
    low=10,
    high=100_000,
    factor=2,
)
REFLECTION = Question(
    id="act1_reflection",
    label=f"Reflection: what do the slowest requests wait for at {GROWTH.rate} requests per "
    "second?",
    options={
        "prompts": "For prefill of their own prompts, which takes longer at high load.",
        "places": "For memory: all slots for sequences are taken until some answer ends.",
        "tokens": "For their answers, which take so long that the first token comes late.",
        "everyone": "For nothing special: every request is slower by about the same factor.",
    },
    right="places",
)
DERIVATION = Toggle(
    id="show_derivation_1", label="How the number of sequences that fit follows from the inputs"
)
CONTROLS = (
    Slider(id="rate", label="Requests per second", values=RATES, first=MAIL.rate),
    Slider(
        id="burstiness",
        label="Burstiness (0: evenly spaced, 1: random, more: in bursts)",
        values=(0, 1, 2, 4, 8),
        first=MAIL.burstiness,
    ),
    Slider(
        id="limit",
        label="Sequences that a GPU may run at once",
        values=(32, 64, 128, 256),
        first=MAIL.limit,
    ),
)


def service(state: Mapping[str, Any]) -> Service:
    """Return the service that the controls describe."""
    return replace(MAIL, rate=state["rate"], burstiness=state["burstiness"], limit=state["limit"])


def _opening() -> list[Block]:
    now = solve(MAIL)
    growth = GROWTH.rate / MAIL.rate - 1
    return [
        message(
            "a1_mail",
            "Head of product",
            f"We serve {MODEL.name} on {MAIL.gpus} H100 GPUs. Each holds the whole model in BF16 "
            f"and takes a random share of {MAIL.rate} requests per second. We promise that 99 of "
            f"100 requests get their first token within {span(LIMITS.ttft)} (the p99 of TTFT, the "
            f"time to first token), and that 99 of 100 get the rest at {span(LIMITS.tpot)} per "
            "token or less (the p99 of TPOT, the time per output token).",
            f"Today the mean TTFT is {span(now.ttft_mean)} and its p99 is {span(now.ttft_p99)}; "
            f"the p99 of TPOT is {span(now.tpot_p99)}. The GPUs are at "
            f"{percent(now.utilization, 0)} of their capacity. Next week brings "
            f"{percent(growth, 0)} more traffic: {GROWTH.rate} requests per second. The GPUs have "
            "the capacity for that. Can we keep our promise?",
        ),
        text(
            "a1_framing",
            "The email is fictional. The times come from mlsysim's OpenLoopSolver, with constants "
            f"fitted to published runs of vLLM on {HARDWARE.name}. Requests arrive at random "
            f"(Poisson). Prompts have {PROMPT:,} tokens and answers {OUTPUT} on average, and both "
            "vary widely: their standard deviations equal their means.",
            "A GPU works in passes. Each pass generates a token for every running sequence and "
            "runs prefill for the prompts that have arrived. A sequence needs memory for its keys "
            "and values until its answer ends. The percentiles come from a formula, so they are "
            "approximate: a simulation of the same requests differs by up to a factor of two.",
            "Commit to a number before you see the instruments. You cannot change it afterward.",
        ),
    ]


def _explain(answer: float) -> str:
    before, after = solve(MAIL), solve(GROWTH)
    return (
        f"With {percent(GROWTH.rate / MAIL.rate - 1, 0)} more requests, the median TTFT goes from "
        f"{span(before.ttft_p50)} to {span(after.ttft_p50)} and the mean from "
        f"{span(before.ttft_mean)} to {span(after.ttft_mean)}. Both are still below "
        f"{span(LIMITS.ttft)}. The p99 goes from {span(before.ttft_p99)} to "
        f"{span(after.ttft_p99)}: {after.ttft_p99 / before.ttft_p99:.0f} times as long. You "
        f"predicted {span(answer / 1e3)}."
    )


def _reflect(answer: str) -> str:
    before, after = solve(MAIL), solve(GROWTH)
    prompt = span(float(each(GROWTH).prefill_latency.to("s").magnitude))
    share = (
        f"{percent(after.waiting)} of the requests find all {after.places} slots taken, but at "
        f"{MAIL.rate} requests per second almost none do"
    )
    if answer == "places":
        return (
            f"{share}. A p99 reflects the slowest request in a hundred, so it jumps once more than "
            "1% of them wait. The median does not reflect them at all."
        )
    if answer == "prompts":
        return f"A prompt adds {prompt} to a pass at any load. But {share}."
    if answer == "tokens":
        return (
            f"The p99 of TPOT grows from {span(before.tpot_p99)} to {span(after.tpot_p99)}, far "
            f"less than that of TTFT. The first token does not wait for later tokens. But {share}."
        )
    return (
        f"The median grows by a factor of {after.ttft_p50 / before.ttft_p50:.1f} and the p99 by "
        f"{after.ttft_p99 / before.ttft_p99:.0f}. {share}."
    )


def _instruments(state: Mapping[str, Any]) -> list[Block]:
    chosen = service(state)
    times = solve(chosen)
    is_open = state[DERIVATION.id]
    return [
        heading("a1_explorer_heading", 3, "The explorer"),
        text(
            "a1_explorer_text",
            "The explorer starts with today's traffic. Raise it step by step and compare the mean "
            "with the p99. Then find the p99 for requests that arrive evenly spaced or in bursts, "
            "and see what happens if a GPU may run fewer sequences at once.",
        ),
        controls("a1_controls", CONTROLS, state),
        _curve(chosen),
        readouts(
            "a1_readouts",
            readout(
                "TTFT, p99",
                span(times.ttft_p99),
                tone="good" if times.ttft_p99 <= LIMITS.ttft else "bad",
                hint=f"limit: {span(LIMITS.ttft)}",
            ),
            readout("TTFT, mean", span(times.ttft_mean)),
            readout("TTFT, median", span(times.ttft_p50)),
            readout(
                "TPOT, p99",
                span(times.tpot_p99),
                tone="good" if times.tpot_p99 <= LIMITS.tpot else "bad",
                hint=f"limit: {span(LIMITS.tpot)}",
            ),
            readout("Load", percent(times.utilization), hint="of the capacity"),
            readout(
                "Wait for a slot",
                percent(times.waiting),
                hint=f"of requests; a GPU has {times.places} slots",
            ),
        ),
        *_alerts(times),
        derivation(DERIVATION, is_open, _explained(chosen) if is_open else None),
    ]


def _alerts(times: Times) -> list[Block]:
    if not times.stable:
        words = (
            f"More requests arrive than {MAIL.gpus} GPUs can answer: the load is "
            f"{percent(times.utilization)} of their capacity, so the queue grows as long as the "
            "traffic lasts."
        )
        return [alert("a1_overload", "bad", "The queue grows without end", words)]
    if times.meets(LIMITS):
        return []
    late = times.ttft_p99 > LIMITS.ttft >= times.ttft_mean
    words = f"The p99 of TTFT is {span(times.ttft_p99)}, and that of TPOT {span(times.tpot_p99)}."
    if late:
        words += f" A dashboard that shows the mean, {span(times.ttft_mean)}, would not tell you."
    return [alert("a1_late", "warn", "The promise is broken", words)]


@functools.lru_cache(maxsize=32)
def _explained(chosen: Service) -> Derivation:
    return each(chosen).explain("places")


def _curve(chosen: Service) -> Block:
    by_rate = [(rate, solve(replace(chosen, rate=rate))) for rate in RATES]
    kept = [(rate, times) for rate, times in by_rate if times.stable]
    lines = [
        series("p99", [(rate, 1e3 * times.ttft_p99) for rate, times in kept]),
        series("mean", [(rate, 1e3 * times.ttft_mean) for rate, times in kept], "good"),
        series("median", [(rate, 1e3 * times.ttft_p50) for rate, times in kept], "other"),
    ]
    here, end = solve(chosen), kept[-1]
    return chart(
        "a1_chart",
        caption="Time to first token by requests per second, on a logarithmic axis. The ring marks "
        "your setting.",
        alt=f"At {end[0]} requests per second, the p99 is {span(end[1].ttft_p99)}, the mean "
        f"{span(end[1].ttft_mean)} and the median {span(end[1].ttft_p50)}. Your p99 is "
        f"{span(here.ttft_p99)}.",
        x={"label": "Requests per second", "scale": "linear", "ticks": list(range(20, 121, 20))},
        y=log_axis(
            "Time to first token (ms)", [y for one in lines for _, y in one["points"]], " ms"
        ),
        lines=lines,
        marker={"x": chosen.rate, "y": 1e3 * here.ttft_p99, "label": span(here.ttft_p99)}
        if here.stable
        else None,
        rule={
            "y": 1e3 * LIMITS.ttft,
            "label": f"limit of the p99: {span(LIMITS.ttft)}",
            "side": "left",
        },
    )


ACT = Act(
    id="a1",
    title="Act I: the slowest of a hundred",
    opening=_opening,
    prediction=PREDICTION,
    explain=_explain,
    controls=(*CONTROLS, DERIVATION),
    instruments=_instruments,
    reflection=REFLECTION,
    reflect=_reflect,
)
