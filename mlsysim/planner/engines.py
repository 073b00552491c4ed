"""Engines that a service can choose from: every one that runs, with its price and its error."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.types import Accelerator, Fleet, Node, ServingCalibration
from mlsysim.core.units import strip
from mlsysim.planner.questions import question_of
from mlsysim.planner.service_odds import Doubt
from mlsysim.registry.calibration.serving import plain_engine, serving_calibration_for
from mlsysim.registry.offers import usual_offer
from mlsysim.solvers import OpenLoopSolver
from mlsysim.solvers.serving.cache import own_cache
from mlsysim.solvers.traffic.engine import Engine, engine_of
from mlsysim.solvers.traffic.inputs import OpenLoopInputs
from mlsysim.solvers.traffic.queue import queue_at
from mlsysim.traffic import Traffic

__all__ = [
    "ENGINES",
    "LEVERS",
    "Choice",
    "Choices",
    "asked",
    "device_of",
    "listed",
    "planned_engine",
    "pooled",
    "price_of",
    "stacked",
]

LEVERS = (
    "hardware",
    "calibration",
    "tp_size",
    "pp_size",
    "attention_dp",
    "ep_size",
    "weight_precision",
    "kv_precision",
    "batch_limit",
)
ENGINES = ("DeepSpeed", "SGLang", "TensorRT-LLM", "llama.cpp", "vLLM")
"""Software with constants for some devices."""
_SIZES = ("tp_size", "pp_size", "attention_dp", "ep_size")
_POOLED = {"both": "", "prefill": " in a prefill pool", "decode": " in a decode pool"}


@dataclass(frozen=True)
class Choice:
    """An engine with its levers."""

    levers: tuple[Any, ...]
    devices: int
    engine: Engine
    answer: float
    """Mean tokens of an answer that the engine generates."""
    price: float
    """USD per device and second; NaN if it is unknown."""
    software: str
    doubts: tuple[Doubt, Doubt, Doubt]
    """Errors of its time to first token, of its steps, and of its energy."""
    moved: float
    """Bytes of a prompt's keys and values that one device sends to, or receives from, a pool."""


@dataclass
class Choices:
    """Values that each lever may have.

    Attributes
    ----------
    fixed : Mapping[str, object]
        Arguments of `OpenLoopSolver` that all engines share.
    hardware : Sequence[Accelerator | Node | Fleet]
        Devices, nodes and fleets.
    engines : Sequence[str | None]
        Software; `None` takes the device's default constants.
    sizes : Mapping[str, Sequence[int] | None]
        Sizes to choose from; `None` takes all sizes that the hardware and the model allow.
    weights, caches : Sequence[str]
        Formats of weights, and of keys and values.
    limits : Sequence[int]
        Limits on the sequences that run at once.
    prices : object
        Price per device and time, or a mapping from device names to prices; `None` takes the
        registry's.
    """

    fixed: Mapping[str, Any]
    hardware: Sequence[Accelerator | Node | Fleet]
    engines: Sequence[str | None]
    sizes: Mapping[str, Sequence[int] | None]
    weights: Sequence[str]
    caches: Sequence[str]
    limits: Sequence[int]
    prices: Any
    constants: dict[str, ServingCalibration] = field(default_factory=dict)
    """Hardware that engines use, by name."""

    def of(self, role: str, refused: dict[str, int]) -> list[Choice]:
        """Return every engine of a role that can run, and count the others in `refused`."""
        found: list[Choice] = []
        for noun, engine in itertools.product(self.hardware, self.engines):
            device = device_of(noun)
            constants = self.fixed["calibration"]
            if engine is not None:
                constants = _constants(device, engine, role)
                if constants is None:
                    _count(refused, f"no constants of {engine} for {device.name}{_POOLED[role]}")
                    continue
            price = price_of(device, self.prices)
            for sizes, weights, kept in itertools.product(
                self._sizes(noun), self.weights, self.caches
            ):
                given = {
                    **pooled(self.fixed, role),
                    **sizes,
                    "hardware": noun,
                    "role": role,
                    "calibration": constants,
                    "weight_precision": weights,
                    "kv_precision": kept,
                    "batch_limit": max(self.limits),
                }
                try:
                    inputs: Any = question_of(OpenLoopSolver, given).inputs
                    for fault in OpenLoopSolver.faults(inputs):
                        raise fault
                    plain = inputs.plain()
                    whole = planned_engine(inputs)
                except ConfigError as fault:
                    _count(refused, fault.message)
                    continue
                if whole.fits < 1:
                    count = int(plain.replica_devices)
                    _count(
                        refused,
                        f"memory: not one sequence fits on {count} {device.name} in {weights}",
                    )
                    continue
                c = inputs.calibration
                self.constants[c.name] = c
                one = Choice(
                    levers=(noun.name, c.name, *sizes.values(), weights, kept, 0),
                    devices=int(plain.replica_devices),
                    engine=whole,
                    answer=float(plain.answer),
                    price=price,
                    software=c.engine,
                    doubts=_doubts(inputs),
                    moved=float(plain.attention_dp * own_cache(plain, 1, plain.seq_len)),
                )
                found += [
                    replace(one, levers=(*one.levers[:-1], limit), engine=_limited(whole, limit))
                    for limit in self.limits
                ]
        return found

    def _sizes(self, noun: Accelerator | Node | Fleet) -> Iterator[dict[str, int]]:
        """Yield sizes: the given ones, and for the others all that the hardware allows."""
        held = _held(noun)
        powers = [2**p for p in range(held.bit_length()) if 2**p <= held]
        experts = self.fixed["model"].moe_layers > 0
        usual = {"tp_size": powers, "pp_size": [1], "attention_dp": powers if experts else [1]}
        free = {name for name in usual if self.sizes[name] is None}
        several = [self.sizes[name] or values for name, values in usual.items()]
        for tp, pp, dp in itertools.product(*several):
            # Given sizes that exceed the hardware are refused with a reason; others are skipped.
            if free and tp * pp * dp > held:
                continue
            both = [1, tp * dp] if experts and tp * dp > 1 else [1]
            for ep in self.sizes["ep_size"] or both:
                yield dict(zip(_SIZES, (tp, pp, dp, ep), strict=True))


def pooled(fixed: Mapping[str, Any], role: str) -> dict[str, Any]:
    """Return the arguments of a service that apply to engines of a role.

    A decode pool receives the keys and values of whole prompts, so prefixes do not matter to it.
    """
    prompts = ("cached_share",) if role == "decode" else ()
    return {name: value for name, value in fixed.items() if name not in prompts}


def _held(noun: Accelerator | Node | Fleet) -> int:
    if isinstance(noun, Fleet):
        return int(noun.count * noun.node.accelerators_per_node)
    return int(noun.accelerators_per_node) if isinstance(noun, Node) else 1


def device_of(noun: Accelerator | Node | Fleet) -> Accelerator:
    """Return the device in the hardware."""
    node = noun.node if isinstance(noun, Fleet) else noun
    return node.accelerator if isinstance(node, Node) else node


def _constants(device: Accelerator, engine: str, role: str) -> ServingCalibration | None:
    """Return an engine's constants for a device; `None` if there are none."""
    found = serving_calibration_for(device, engine, pools=role != "both")
    return found if plain_engine(engine) in plain_engine(found.engine) else None


def _count(refused: dict[str, int], reason: str) -> None:
    refused[reason] = refused.get(reason, 0) + 1


def _doubts(inputs: OpenLoopInputs) -> tuple[Doubt, Doubt, Doubt]:
    c, power = inputs.calibration.serving(inputs.model.name), inputs.power_calibration
    return (
        Doubt.of(c.ttft_band_low, c.ttft_band_high),
        Doubt.of(c.itl_band_low, c.itl_band_high),
        Doubt.of(power.energy_band_low, power.energy_band_high),
    )


def _limited(engine: Engine, limit: int) -> Engine:
    """Return the engine with fewer slots; its steps are interpolated if needed."""
    places = min(float(limit), engine.places)
    sizes = tuple(min(size, places) for size in engine.sizes)
    return replace(
        engine,
        places=places,
        sizes=sizes,
        decodes=tuple(np.interp(sizes, engine.sizes, engine.decodes).tolist()),
        powers=tuple(np.interp(sizes, engine.sizes, engine.powers).tolist()),
        preempted=tuple(np.interp(sizes, engine.sizes, engine.preempted).tolist()),
    )


def planned_engine(inputs: OpenLoopInputs) -> Engine:
    """Return the engine of a plan. Its prompts have the same cached prefix at every request rate.

    Raises
    ------
    ConfigError
        If prefixes depend on the rate of each replica, or are loaded.
    """
    if inputs.turns > 1 or inputs.loaded_share > 0:
        name = "turns" if inputs.turns > 1 else "loaded_share"
        raise ConfigError(
            f"{name}: plans do not yet model prefixes that depend on the request rate or are "
            "loaded; solve OpenLoopSolver at the rate of one replica for cached_tokens, and pass "
            "cached_share = cached_tokens / seq_len",
            argument=name,
        )
    return engine_of(inputs.plain())


def price_of(device: Accelerator, prices: Any) -> float:
    """Return the price of a device in USD per second; NaN if it is unknown."""
    if prices is None:
        offer = usual_offer(device)
        return math.nan if offer is None else offer.si("price")
    if isinstance(prices, Mapping):
        if device.name not in prices:
            return math.nan
        prices = prices[device.name]
    found = float(strip(prices, "USD/s", "rental_price"))
    if not 0 < found < math.inf:
        raise ConfigError(
            f"rental_price = {shown(prices)} is out of range: give a price above zero, such as "
            "Q_(3, 'USD/h')",
            argument="rental_price",
        )
    return found


def asked(engine: Engine, rate: Any, traffic: Traffic, answer: Any = None) -> dict[str, Any]:
    """Return the times and the capacity of engines at arrival rates."""
    return queue_at(
        engine,
        rate,
        traffic.output_len if answer is None else answer,
        traffic.burstiness,
        traffic.input_variation,
        traffic.output_variation,
    )


def stacked(choices: Sequence[Choice]) -> Engine:
    """Return one engine with a column of numbers in each field."""

    def column(values: Iterable[float]) -> Any:
        return np.array(list(values), float)[:, None]

    engines = [item.engine for item in choices]
    fields: dict[str, Any] = {}
    for name, value in vars(engines[0]).items():
        each = [getattr(e, name) for e in engines]
        fields[name] = (
            tuple(column(part) for part in zip(*each, strict=True))
            if isinstance(value, tuple)
            else column(each)
        )
    return Engine(**fields)


def listed(name: str, value: Any, kinds: type | tuple[type, ...]) -> list[Any]:
    """Return one or several values as a list of distinct values.

    Raises
    ------
    ConfigError
        If there are none, or one is of another kind.
    """
    several = isinstance(value, Iterable) and not isinstance(value, (kinds, str, Mapping))
    found = list(value) if several else [value]
    wrong = [item for item in found if not isinstance(item, kinds) or isinstance(item, bool)]
    if wrong or not found:
        raise ConfigError(
            f"{name} = {shown(wrong[0] if wrong else value)} cannot be chosen: give one or more",
            argument=name,
        )
    return list(dict.fromkeys(found))
