"""Explorers of serving: the KV wall, latency against throughput, and the cost of a token."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from mlsysim.core.types import TransformerModel
from mlsysim.core.units import Q_
from mlsysim.registry import Hardware, Infra, Models, Systems
from mlsysim.scenario.systems import standalone_fleet
from mlsysim.solvers import EconomicsSolver, ServingSolver
from mlsysim_course.controls import Selector, Slider
from mlsysim_course.explorers.charts import axis, line, lines, mark
from mlsysim_course.explorers.declare import Answer, Explorer, amount, figure, options, read
from mlsysim_course.explorers.devices import TEXTBOOK, device_control

CONTEXTS = (512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CACHED = (
    "Llama2_7B",
    "Llama3_8B",
    "Qwen3_14B",
    "Gemma3_12B",
    "DeepSeek_V2_Lite",
    "Mistral_7B_v0_3",
)
_OUTPUT = 256  # tokens
_GPUS = ("A100", "H100", "H200", "B200", "MI300X")

AS_PUBLISHED, ONE_EACH, ONE = "own", "mha", "mqa"
HEADS = {
    AS_PUBLISHED: "as published",
    ONE_EACH: "one per query head (MHA)",
    ONE: "one for all query heads (MQA)",
}


def with_heads(model: TransformerModel, heads: str) -> TransformerModel:
    """Return the model with another number of key-value heads, which also changes its matrices."""
    if heads == AS_PUBLISHED or model.kv_heads is None:
        return model
    number = model.heads if heads == ONE_EACH else 1
    added = 2 * model.layers * model.hidden_dim * (number - model.kv_heads) * model.head_dim
    return dataclasses.replace(
        model, kv_heads=number, parameters=model.parameters + Q_(added, "param")
    )


def _kv_wall(s: Mapping[str, Any]) -> Answer:
    device = getattr(Hardware, s["device"])
    published = getattr(Models, s["model"])
    model = with_heads(published, s["heads"])

    def solve(network: TransformerModel, context: int, kv_format: str) -> Any:
        return ServingSolver.solve(
            model=network,
            hardware=device,
            seq_len=context,
            precision="bf16",
            kv_precision=kv_format,
            efficiency=TEXTBOOK,
        )

    def wall(network: TransformerModel, kv_format: str) -> Iterator[tuple[float, float]]:
        for context in CONTEXTS:
            if context > network.positions:
                return
            most = solve(network, context, kv_format).max_batch_size
            if most:  # the scale is logarithmic
                yield context, most

    beyond = s["context"] > model.positions
    extended = dataclasses.replace(model, context=s["context"]) if beyond else model
    result = solve(extended, s["context"], "bf16")
    most = result.max_batch_size
    series = [
        line("cache in bf16", wall(model, "bf16")),
        line("cache in fp8", wall(model, "fp8"), dashed=True),
    ]
    return Answer(
        f"{model.name} on {device.name}: with {s['context']:,} tokens each, "
        f"{'at most ' + format(most, ',') if most else 'no'} user{'' if most == 1 else 's'} fit"
        f"{'s' if most == 1 else ''}. The weights take "
        f"{figure(amount(result.model_weights_size, 'GB'))} GB of "
        f"{figure(amount(result.memory_capacity, 'GB'))} GB."
        + (
            f" Its positions end at {model.positions:,}, so they would be extended."
            if beyond
            else ""
        ),
        (
            read("Most users", result, "max_batch_size"),
            read("KV cache per user", result, "kv_cache_size", "GB"),
            read("Weights", result, "model_weights_size", "GB"),
        ),
        (
            lines(
                axis("Tokens per user", log=True),
                axis("Most users", log=True),
                series,
                marks=[mark(s["context"], most, f"{most:,} users")] if most else (),
            ),
        ),
        "plain" if most else "bad",
    )


KV_WALL = Explorer(
    "kv-wall",
    "Push the KV wall",
    "One GPU with the weights in bf16. Only the tokens of the prompts count; output needs more "
    "room.",
    (
        Selector("model", "Model", "Llama3_8B", options(Models, CACHED)),
        device_control("H100", _GPUS),
        Slider("context", "Tokens per user", 8192, CONTEXTS),
        Selector("heads", "Key-value heads", AS_PUBLISHED, HEADS),
    ),
    _kv_wall,
)
"""How many users fit, by the length of their contexts."""


def _latency(s: Mapping[str, Any]) -> Answer:
    device, model = getattr(Hardware, s["device"]), getattr(Models, s["model"])

    def solve(batch: int) -> Any:
        return ServingSolver.solve(
            model=model,
            hardware=device,
            batch_size=batch,
            seq_len=s["context"],
            output_len=_OUTPUT,
            precision="bf16",
            efficiency=TEXTBOOK,
        )

    result = solve(s["batch"])
    most = result.max_batch_size
    sizes = sorted({*(size for size in BATCHES if size <= most), *([most] if most else [])})
    points = [_point(solve(size)) for size in sizes]
    fits = result.feasible
    what = f"{model.name} on {device.name} with {s['batch']:,} users of {s['context']:,} tokens"
    return Answer(
        f"{what}: {figure(amount(result.decode_throughput, '1/s'))} tokens per second in all, "
        f"{figure(amount(result.itl, 'ms'))} ms between the tokens of each user, by the textbook "
        "roofline without queues or overheads."
        if fits
        else f"{what} does not fit. The limit is {most:,} users.",
        (
            read("Time between tokens", result, "itl", "ms"),
            read("Throughput, all users", result, "decode_throughput", "1/s", shown="tokens/s"),
            read("Time to first token, all prompts at once", result, "ttft", "s"),
            read("Most users", result, "max_batch_size"),
        ),
        (
            lines(
                axis("Time between tokens (ms)", zero=True),
                axis("Tokens per second, all users", zero=True),
                [line("batch sizes that fit", points)],
                marks=[mark(*_point(result), f"batch {s['batch']:,}")] if fits else (),
            ),
        ),
        "plain" if fits else "bad",
    )


def _point(result: Any) -> tuple[float, float]:
    return amount(result.itl, "ms"), amount(result.decode_throughput, "1/s")


LATENCY = Explorer(
    "latency-throughput",
    "Trade latency for throughput",
    f"One GPU in bf16. Every user has a prompt of equal length and gets {_OUTPUT} tokens. Compute "
    f"reaches {TEXTBOOK:.0%} of the peak and memory its full bandwidth.",
    (
        Selector("model", "Model", "Llama3_8B", options(Models, CACHED)),
        device_control("H100", _GPUS),
        Slider("context", "Tokens per prompt", 2048, CONTEXTS[:7]),
        Slider("batch", "Concurrent users", 16, BATCHES),
    ),
    _latency,
)
"""Tokens per second over the time between tokens, by the batch."""


def _offers() -> dict[str, str]:
    found = {}
    for name in dir(Systems.Offers):
        offer = getattr(Systems.Offers, name)
        if not name.startswith("_") and amount(offer.accelerator.memory.capacity, "GB") >= 40:
            rent = figure(amount(offer.price, "USD/h"))
            found[name] = f"{offer.name}: ${rent}/h, {offer.commitment}"
    return found


def _cost(s: Mapping[str, Any]) -> Answer:
    offer, model = getattr(Systems.Offers, s["offer"]), getattr(Models, s["model"])
    fleet = standalone_fleet(offer.accelerator)

    def solve(batch: int) -> tuple[Any, Any]:
        served = ServingSolver.solve(
            model=model,
            hardware=offer.accelerator,
            batch_size=batch,
            seq_len=s["context"],
            output_len=_OUTPUT,
            precision="bf16",
        )
        paid = EconomicsSolver.solve(
            fleet=fleet,
            duration_days=1,
            datacenter=Infra.US_Avg,
            rental_offer=offer,
            token_throughput=served.output_throughput,
            unit_price=0,
        )
        return served, paid

    def price(paid: Any) -> float:
        return 1e6 * amount(paid.rental_cost_per_token, "USD")

    served, paid = solve(s["batch"])
    sizes = [size for size in BATCHES if size <= served.max_batch_size]
    points = [(size, price(solve(size)[1])) for size in sizes]
    fits = served.feasible
    what = f"{model.name} on {offer.name}, {s['batch']:,} users of {s['context']:,} tokens"
    return Answer(
        f"{what}: ${figure(price(paid))} per million output tokens, with "
        "a continuous stream of new prompts."
        if fits
        else f"{what} does not fit. The limit is {served.max_batch_size:,} users.",
        (
            read(
                "Cost per million tokens",
                paid,
                "rental_cost_per_token",
                "USD",
                shown="$",
                scale=1e6,
            ),
            read("Throughput, all users", served, "output_throughput", "1/s", shown="tokens/s"),
            read("Time between tokens", served, "itl", "ms"),
        ),
        (
            lines(
                axis("Concurrent users", log=True),
                axis("Dollars per million output tokens", log=True),
                [line("batch sizes that fit", points)],
                marks=[mark(s["batch"], price(paid), f"batch {s['batch']:,}")] if fits else (),
            ),
        ),
        "plain" if fits else "bad",
    )


COST = Explorer(
    "cost",
    "What does a million tokens cost?",
    f"One rented device in bf16 that is never idle: each user sends the next prompt at once and "
    f"gets {_OUTPUT} tokens. The operator-level model gives the times.",
    (
        Selector("model", "Model", "Llama3_8B", options(Models, CACHED)),
        Selector("offer", "Rented device", "Lambda_H100", _offers()),
        Slider("context", "Tokens per prompt", 2048, CONTEXTS[:6]),
        Slider("batch", "Concurrent users", 16, BATCHES),
    ),
    _cost,
)
"""The rent of a device for a million tokens, by the batch."""
