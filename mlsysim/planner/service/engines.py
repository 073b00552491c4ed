"""Engines that a service can choose from: every one that runs, with its price and its error."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.forms import structure
from mlsysim.core.numeric import is_unknown, vectorized
from mlsysim.core.types import Accelerator, Fleet, Node, ServingCalibration
from mlsysim.planner.prices import price_of
from mlsysim.planner.sensitivities.questions import question_of
from mlsysim.planner.service.probabilities import LogError
from mlsysim.registry.calibration.power import PowerCalibrations
from mlsysim.registry.calibration.serving import (
    ServingCalibrations,
    plain_engine,
    serving_calibration_for,
)
from mlsysim.solvers import OpenLoopSolver
from mlsysim.solvers.serving.inputs import FORMATS, SIZES
from mlsysim.solvers.serving.memory import device_cache
from mlsysim.solvers.traffic.engine import Engine, engine_of
from mlsysim.solvers.traffic.inputs import ONLY, OpenLoopInputs
from mlsysim.solvers.traffic.queue import queue_at, settled
from mlsysim.traffic import Traffic

LEVERS = ("hardware", "calibration", *SIZES, *FORMATS, "batch_limit")
ENGINES = ("DeepSpeed", "SGLang", "TensorRT-LLM", "llama.cpp", "vLLM")
"""Software with constants for some devices."""
_USUAL = {name: OpenLoopSolver.defaults[name] for name in SIZES}
"""Size of each lever that is left out."""
_POOLED = {"both": "", "prefill": " in a prefill pool", "decode": " in a decode pool"}
LIMITS_PER_RANK = tuple(2**power for power in range(3, 11))
"""Usual limits on the sequences of each rank of attention."""
_SELDOM = 1e-9
"""Arrivals per second at which each request has an engine, and all prefixes, to itself."""


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
    log_errors: tuple[LogError, ...]
    """Errors of its time to first token, of its steps, of its energy, and of its capacity."""
    moved: float
    """Bytes of a prompt's keys and values that one device sends to, or receives from, a pool."""
    inputs: OpenLoopInputs
    """Its inputs in base units, with the largest limit on sequences."""
    at: Callable[[Any], Engine] | None = None
    """The engine at arrival rates, if its cached prefixes depend on them."""


@dataclass
class Choices:
    """Values that each lever may have, and the arguments of `OpenLoopSolver` that are `fixed`."""

    fixed: Mapping[str, Any]
    hardware: Sequence[Accelerator | Node | Fleet]
    engines: Sequence[str | None]
    """Software; `None` takes the device's default constants."""
    sizes: Mapping[str, Sequence[int] | None]
    """Sizes to choose from; `None` takes all sizes that the hardware and the model allow."""
    weights: Sequence[str]
    caches: Sequence[str]
    limits: Sequence[int] | None
    """Limits on the sequences that an engine runs at once; `None` takes `LIMITS_PER_RANK` for each
    rank of attention."""
    prices: Any
    """Price per device and time, or a mapping from device names; `None` takes the registry's."""
    largest_limit: bool = False
    """Whether to try only the largest limit."""
    constants: dict[str, ServingCalibration] = field(default_factory=dict)
    """Hardware that engines use, by name."""

    def of(self, role: str, refused: dict[str, int]) -> list[Choice]:
        """Return every engine of a role that can run, and count the others in `refused`."""
        admitted = list(self._admitted(role, refused))
        choices: list[Choice] = []
        for (levers, inputs, plain), whole in zip(
            admitted, _engines([plain for _, _, plain in admitted]), strict=True
        ):
            count, device, c = int(plain.replica_devices), inputs.device, inputs.calibration
            if whole.fits < 1:
                weights = inputs.weight_precision.name
                _count(
                    refused,
                    f"memory: not one sequence fits on {count} {device.name} in {weights}",
                )
                continue
            self.constants[c.name] = c
            one = Choice(
                levers=(*levers, 0),
                devices=count,
                engine=whole,
                answer=float(plain.answer),
                price=price_of(device, self.prices),
                software=c.engine,
                log_errors=log_errors_of(inputs),
                moved=float(plain.attention_dp * device_cache(plain, 1, plain.seq_len)),
                inputs=plain,
            )
            for limit in self.limits_of(int(plain.attention_dp)):
                limited = _limited(whole, limit)
                choices.append(
                    replace(
                        one,
                        levers=(*levers, limit),
                        engine=limited,
                        at=at_rates(inputs, limited),
                    )
                )
        return choices

    def limits_of(self, ranks: int) -> list[int]:
        """Return the limits on sequences of an engine with this number of attention ranks."""
        limits = self.limits or [ranks * limit for limit in LIMITS_PER_RANK]
        return [max(limits)] if self.largest_limit else list(limits)

    def _admitted(
        self, role: str, refused: dict[str, int]
    ) -> Iterator[tuple[tuple[Any, ...], OpenLoopInputs, OpenLoopInputs]]:
        """Yield levers, inputs and their plain form; count those that contradict each other."""
        for noun, engine in itertools.product(self.hardware, self.engines):
            device = device_of(noun)
            constants = self.fixed["calibration"]
            if engine is not None:
                constants = _constants(device, engine, role)
                if constants is None:
                    _count(refused, f"no constants of {engine} for {device.name}{_POOLED[role]}")
                    continue
            for sizes, weights, kept in itertools.product(
                self._sizes(noun, role), self.weights, self.caches
            ):
                given = applied(
                    {
                        **self.fixed,
                        **sizes,
                        "hardware": noun,
                        "role": role,
                        "calibration": constants,
                        "weight_precision": weights,
                        "kv_precision": kept,
                        "batch_limit": max(self.limits_of(sizes["attention_dp"])),
                    }
                )
                try:
                    inputs: Any = question_of(OpenLoopSolver, given).inputs
                    for fault in OpenLoopSolver.faults(inputs):
                        raise fault
                except ConfigError as fault:
                    _count(refused, fault.message)
                    continue
                levers = (noun.name, inputs.calibration.name, *sizes.values(), weights, kept)
                yield levers, inputs, inputs.plain()

    def _sizes(self, noun: Accelerator | Node | Fleet, role: str) -> Iterator[dict[str, int]]:
        """Yield sizes: the given ones, and for the others all that the hardware allows.

        Only decode divides contexts and verifies drafts, so a prefill pool does not. Only ranks
        that exchange tokens can hide an exchange, and only groups of experts can be uneven.
        """
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
                idle = {*_OTHERS[role]}
                idle |= set() if experts and dp > 1 else {"overlap_batches"}
                idle |= {"redundant_experts"} if experts and ep == 1 else set()
                chosen = {"tp_size": tp, "pp_size": pp, "attention_dp": dp, "ep_size": ep}
                choices = {
                    name: usual if name in idle else self.sizes[name] or usual
                    for name, usual in ((n, [_USUAL[n]]) for n in SIZES if n not in chosen)
                }
                for others in itertools.product(*choices.values()):
                    yield chosen | dict(zip(choices, others, strict=True))


_OTHERS = {"both": (), "prefill": ONLY["decode"], "decode": ONLY["prefill"]}
"""Arguments that matter only to the other pool."""


def applied(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a service that apply to one of its engines.

    A decode pool receives the keys and values of whole prompts, so prefixes do not matter to it. An
    engine of one rank exchanges no tokens, one group of experts has no imbalance, and without
    drafts none are accepted.
    """
    idle = set(_OTHERS[arguments.get("role", "both")])
    if arguments.get("role") == "decode" and arguments.get("resident_adapters") is None:
        idle.add("host_link")
    if arguments["draft_tokens"] == 0:
        idle.add("acceptance_length")
    if arguments["model"].moe_layers > 0:
        idle |= {"dispatch_precision"} if arguments["attention_dp"] == 1 else set()
        idle |= {"expert_imbalance"} if arguments["ep_size"] == 1 else set()
    return {name: value for name, value in arguments.items() if name not in idle}


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
    constants = serving_calibration_for(device, engine, pools=role != "both")
    return constants if plain_engine(engine) in plain_engine(constants.engine) else None


def _count(refused: dict[str, int], reason: str) -> None:
    refused[reason] = refused.get(reason, 0) + 1


def log_errors_of(inputs: OpenLoopInputs) -> tuple[LogError, ...]:
    """Return the errors of an engine's time to first token, steps, energy, and capacity.

    Without runs of the throughput, an engine whose steps take longer serves fewer requests.
    """
    c, unmeasured = inputs.calibration, ServingCalibrations.Uncalibrated
    steps = LogError.of(c.itl_band, unmeasured.itl_band)
    energy = LogError.of(
        inputs.power_calibration.energy_band, PowerCalibrations.Uncalibrated.energy_band
    )
    capacity = LogError(-steps.mean, steps.deviation)
    if c.throughput_band.known:
        capacity = LogError.of(c.throughput_band, unmeasured.throughput_band)
    return LogError.of(c.ttft_band, unmeasured.ttft_band), steps, energy, capacity


def _engines(forms: Sequence[OpenLoopInputs]) -> list[Engine]:
    """Return the engine of each of these inputs. Those of one structure are computed together."""
    kinds: dict[Any, list[int]] = {}
    for place, form in enumerate(forms):
        kinds.setdefault(structure(form), []).append(place)
    engines: dict[int, Engine] = {}
    for places in kinds.values():
        inputs = OpenLoopInputs.stacked([forms[place] for place in places], _joined)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            whole = engine_of(inputs)

        def each(value: Any, count: int = len(places)) -> list[float]:
            numbers: list[float] = np.broadcast_to(np.asarray(value, float), count).tolist()
            return numbers

        fields = [
            list(zip(*map(each, value), strict=True)) if isinstance(value, tuple) else each(value)
            for value in vars(whole).values()
        ]
        for place, values in zip(places, zip(*fields, strict=True), strict=True):
            engines[place] = Engine(**dict(zip(vars(whole), values, strict=True)))
    return [engines[place] for place in range(len(forms))]


def _joined(values: Sequence[float]) -> Any:
    """Return one number if all are equal, so that models can leave out a term of zero."""
    first = values[0]
    same = all(value == first or (is_unknown(value) and is_unknown(first)) for value in values)
    return first if same else np.array(values)


def _limited(engine: Engine, limit: int) -> Engine:
    """Return the engine with fewer slots; its steps are interpolated if needed."""
    places = min(float(limit), engine.places)
    sizes = tuple(min(size, places) for size in engine.sizes)
    return replace(
        engine,
        places=places,
        sizes=sizes,
        **{
            name: tuple(np.interp(sizes, engine.sizes, getattr(engine, name)).tolist())
            for name in ("decodes", "savings", "waits", "powers", "preempted")
        },
    )


def shared_arguments(
    engine: Mapping[str, Any], taken: Iterable[str], why: str = "traffic has it already"
) -> dict[str, Any]:
    """Return other arguments of `OpenLoopSolver` that all engines share, none of them taken."""
    if wrong := sorted(engine.keys() - OpenLoopSolver.parameters.keys()):
        raise ConfigError(
            f"{', '.join(wrong)}: not an argument of OpenLoopSolver; choose among "
            f"{', '.join(OpenLoopSolver.parameters)}",
            argument=wrong[0],
        )
    if twice := sorted(engine.keys() & set(taken)):
        raise ConfigError(f"{', '.join(twice)}: {why}; change it there instead", argument=twice[0])
    for name, value in engine.items():
        OpenLoopSolver.parameters[name].admit(name, value)
    return dict(engine)


def at_rates(inputs: OpenLoopInputs, engine: Engine) -> Callable[[Any], Engine] | None:
    """Return the engine at arrival rates on which its cached prefixes depend; `None` if none do."""
    if inputs.turns == 1:
        return None
    plain = inputs.plain()
    return lambda rates: settled(engine, plain.but(arrival_rate=rates))[0]


def queue_times(engine: Engine, rate: Any, traffic: Traffic, answer: Any = None) -> dict[str, Any]:
    """Return the times and the capacity of engines at arrival rates."""
    with vectorized():  # a search compares plans, so that their last digits do not matter
        return queue_at(
            engine,
            rate,
            traffic.output_len if answer is None else answer,
            traffic.burstiness,
            traffic.input_variation,
            traffic.output_variation,
        )


def stacked(choices: Sequence[Choice], rates: Any = _SELDOM) -> Engine:
    """Return one engine with a column of numbers in each field.

    Numbers that depend on the rates of arrivals have a column for each of them.
    """

    def column(values: Iterable[Any]) -> Any:
        numbers = [np.asarray(value, float) for value in values]
        if any(value.ndim for value in numbers):
            return np.stack(np.broadcast_arrays(*numbers))
        return np.array(numbers)[:, None]

    engines = [item.engine if item.at is None else item.at(rates) for item in choices]
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
    """Return one or several values of a kind as a list of distinct values."""
    several = isinstance(value, Iterable) and not isinstance(value, (kinds, str, Mapping))
    choices = list(value) if several else [value]
    wrong = [item for item in choices if not isinstance(item, kinds) or isinstance(item, bool)]
    if wrong or not choices:
        names: dict[Any, str] = {int: "whole numbers", str: "names"}
        wanted = names.get(kinds, "devices, nodes or fleets")
        raise ConfigError(
            f"{name} = {shown(wrong[0] if wrong else value)} cannot be chosen: give one or more "
            f"{wanted}",
            argument=name,
        )
    return list(dict.fromkeys(choices))
