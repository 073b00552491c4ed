"""Which model runs on which device, in which number format, and how well it is validated.

A matrix in which you can look up your own system. A solver computes every entry; there is no list
of supported combinations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.table import Column, Table
from mlsysim.core.types import PRECISIONS, Accelerator, FixedShapeModel, Fleet, Node, Workload
from mlsysim.core.units import Quantity, is_quantity
from mlsysim.registry import Hardware, Models, Systems
from mlsysim.registry.calibration.networks import network_calibration_for
from mlsysim.registry.calibration.serving import pass_calibration_for, serving_calibration_for
from mlsysim.registry.calibration.training import calibration_for
from mlsysim.scenario.systems import standalone_fleet
from mlsysim.solvers import DistributedSolver, ServingSolver, SingleNodeSolver

BANDED = "banded"
UNBANDED = "unbanded"
TOO_LARGE = "too large"
REFUSED = "refused"
STATUSES = (BANDED, UNBANDED, TOO_LARGE, REFUSED)

PROMPT, OUTPUT = 512, 128
"""Tokens of the single request: within the context of every model in the catalog."""
MOST_SERVERS = 1024
WIDEST_TENSOR_GROUP = 8
FABRIC = Systems.Fabrics.InfiniBand_NDR
"""The network between servers. Neither memory nor bands depend on it."""


@dataclass(frozen=True)
class _Entry:
    status: str
    devices: int | None = None
    memory: float = math.nan
    """GB that a device needs."""
    capacity: float = math.nan
    """GB that a device has."""
    reason: str = ""


@dataclass(frozen=True)
class _Answer:
    """A solver's result for one device; similar devices share parts of it."""

    memory: float
    """GB that a device needs: the same for every device with this format."""
    capacity: float
    """GB that the device itself has."""
    band: tuple[str, str]
    """A status and the name of the calibration: the same for every device with its constants."""


def _entry(devices: int, memory: float, capacity: float, band: tuple[str, str]) -> _Entry:
    """Return an entry, depending on whether the memory fits."""
    status, reason = band
    if memory > capacity:
        status = TOO_LARGE
        reason = f"a device needs {memory:.3g} GB and has {capacity:.3g} GB"
    return _Entry(status, devices, memory, capacity, reason)


@dataclass
class _Survey:
    """Results so far that also apply to other entries."""

    refusals: dict[tuple[Any, ...], _Entry] = field(default_factory=dict)
    memories: dict[tuple[Any, ...], float] = field(default_factory=dict)
    """GB that a job needs on each device, for every device with the format."""
    bands: dict[tuple[Any, ...], tuple[str, str]] = field(default_factory=dict)
    """Status and calibration of a job, for every device with the same fitted constants."""
    capacities: dict[tuple[str, str], float] = field(default_factory=dict)
    """GB of each device that each question may use."""
    states: dict[tuple[Any, ...], tuple[float, float]] = field(default_factory=dict)
    """GB of a training step: a part for all devices together, and a part for each device."""
    rungs: dict[str, list[Fleet]] = field(default_factory=dict)

    @cached_property
    def servers(self) -> dict[str, Node]:
        """The first server of the catalog that has each device, by the device's name."""
        nodes = [node for node in Systems.Nodes if isinstance(node, Node)]
        return {node.accelerator.name: node for node in reversed(nodes)}

    def entry(self, question: str, model: Workload, device: Accelerator, precision: str) -> _Entry:
        """Solve one question, unless an earlier error already covers it."""
        by_format = question, type(model), device.name, precision
        if by_format in self.refusals:
            return self.refusals[by_format]
        try:
            return QUESTIONS[question](_Case(self, model, device, precision))
        except ConfigError as fault:
            entry = _Entry(REFUSED, reason=fault.message)
            # Such an error depends only on the device, so most entries need no new call.
            if getattr(fault, "argument", None) == "precision":
                self.refusals[by_format] = entry
            return entry


@dataclass(frozen=True)
class _Case:
    """One model on one device in one format."""

    survey: _Survey
    model: Any
    device: Accelerator
    precision: str

    @property
    def server(self) -> Node | None:
        """The first server of the catalog that has the device."""
        server = self.survey.servers.get(self.device.name)
        return server if server is not None and server.accelerator is self.device else None

    @property
    def fleets(self) -> list[Fleet]:
        """One device, parts of its server, then more servers."""
        rungs = self.survey.rungs
        if self.device.name not in rungs:
            rungs[self.device.name] = list(_fleets(self.device, self.server))
        return rungs[self.device.name]

    def capacity(self, question: str) -> float | None:
        """Return the usable GB, once a solver has reported them."""
        return self.survey.capacities.get((question, self.device.name))

    def ask(
        self, question: str, constants: str, devices: int, tp: int, solve: Callable[[], _Answer]
    ) -> _Entry:
        """Call a solver, unless other devices already have its memory and its band.

        The rates of a device change neither the memory it needs nor whether there is a band.
        Fitted constants do not change the memory, and the number of devices not the band.
        """
        survey = self.survey
        has_format = self.precision in self.device.compute.precisions
        job = question, self.model.name, self.precision, has_format
        memory, band = survey.memories.get((*job, devices, tp)), survey.bands.get((*job, constants))
        capacity = self.capacity(question)
        if memory is None or band is None or capacity is None:
            answer = solve()
            memory, band, capacity = answer.memory, answer.band, answer.capacity
            survey.memories[*job, devices, tp] = memory
            survey.bands[*job, constants] = band
            survey.capacities[question, self.device.name] = capacity
        return _entry(devices, memory, capacity, band)

    def widest(self, limit: int) -> int:
        """Return the largest power of two up to `limit` that heads and server allow."""
        devices = 1 if self.server is None else self.server.accelerators_per_node
        size = 1
        while 2 * size <= min(limit, devices) and self.model.split_heads % (2 * size) == 0:
            size *= 2
        return size


def _fleets(device: Accelerator, server: Node | None) -> Iterator[Fleet]:
    yield standalone_fleet(device)
    if server is None:
        return
    size = 2
    while size < server.accelerators_per_node:
        yield standalone_fleet(replace(server, accelerators_per_node=size))
        size *= 2
    count = 1
    while count <= MOST_SERVERS:
        yield Fleet(name=server.name, node=server, count=count, fabric=FABRIC)
        count *= 2


def _training(case: _Case) -> _Entry:
    """Find the fewest devices that fit a step with everything sharded and recomputed.

    Beyond one server, tensor parallelism within servers may need fewer.
    """
    entry = _sharded(case, 1)
    server = case.server
    if server is None or (entry.devices or 0) <= server.accelerators_per_node:
        return entry
    wide = case.widest(WIDEST_TENSOR_GROUP)
    other = entry if wide == 1 else _sharded(case, wide)
    return min(entry, other, key=lambda one: (one.status == TOO_LARGE, one.devices))


def _sharded(case: _Case, tp: int) -> _Entry:
    fleets = [one for one in case.fleets if one.node.accelerators_per_node >= tp]
    constants = calibration_for(case.device).name

    def entry(spot: int) -> _Entry:
        fleet = fleets[spot]
        step = partial(_step, case, fleet, tp)
        return case.ask("training", constants, fleet.total_accelerators, tp, step)

    states = case.survey.states.get((case.model.name, case.precision, tp))
    capacity = case.capacity("training")
    spot = 0
    if states is not None and capacity is not None:
        spot = _first_that_fits(fleets, capacity, *states)
    # The estimate saves most steps of this search. A larger fleet never needs more on each device.
    smallest = entry(spot)
    while smallest.status == TOO_LARGE and spot + 1 < len(fleets):
        spot += 1
        smallest = entry(spot)
    while spot > 0 and (smaller := entry(spot - 1)).status != TOO_LARGE:
        spot, smallest = spot - 1, smaller
    return smallest


def _step(case: _Case, fleet: Fleet, tp: int) -> _Answer:
    step = DistributedSolver.solve(
        model=case.model,
        fleet=fleet,
        precision=case.precision,
        batch_size=fleet.total_accelerators // tp,
        tp_size=tp,
        sequence_parallel=tp > 1,
        zero_stage=3,
        recompute="full",
    )
    # Sharded states shrink with the number of devices; the rest does not.
    each = _gigabytes(step.weights_memory + step.gradient_memory + step.optimizer_memory)
    total = each * fleet.total_accelerators
    states = total, _gigabytes(step.memory) - each
    case.survey.states[case.model.name, case.precision, tp] = states
    return _answer(step, step.memory, step.step_latency_low)


def _first_that_fits(fleets: list[Fleet], capacity: float, sharded: float, rest: float) -> int:
    """Return the index of the smallest fleet that should be enough, or of the largest."""
    need = (sharded / fleet.total_accelerators + rest for fleet in fleets)
    return next((spot for spot, each in enumerate(need) if each <= capacity), len(fleets) - 1)


def _serving(case: _Case) -> _Entry:
    """Find the fewest devices of a server that fit one request."""
    constants = serving_calibration_for(case.device).name
    tp = 1
    while True:
        entry = case.ask("serving", constants, tp, tp, partial(_serve, case, tp))
        if entry.status != TOO_LARGE or (wider := case.widest(2 * tp)) == tp:
            return entry
        tp = wider


def _serve(case: _Case, tp: int) -> _Answer:
    answer = ServingSolver.solve(
        model=case.model,
        hardware=case.server or case.device,
        seq_len=PROMPT,
        output_len=OUTPUT,
        precision=case.precision,
        tp_size=tp,
    )
    return _answer(answer, answer.total_memory_required, answer.itl_low)


def _inference(case: _Case) -> _Entry:
    """Solve one forward pass of one sample on one device."""
    constants = pass_calibration_for(case.device).name
    if isinstance(case.model, FixedShapeModel):
        fitted = network_calibration_for(case.device, case.precision, network=case.model.name)
        constants = "" if fitted is None else fitted.name
    return case.ask("inference", constants, 1, 1, partial(_pass, case))


def _pass(case: _Case) -> _Answer:
    answer = SingleNodeSolver.solve(
        model=case.model, hardware=case.device, precision=case.precision
    )
    return _answer(answer, answer.memory, answer.latency_low)


def _answer(answer: Any, memory: Quantity, low: Quantity | None) -> _Answer:
    status = UNBANDED if low is None else BANDED
    capacity = _gigabytes(answer.memory_capacity)
    return _Answer(_gigabytes(memory), capacity, (status, answer.calibration))


def _gigabytes(memory: Quantity) -> float:
    return float(memory.to("GB").magnitude)


QUESTIONS: dict[str, Callable[[_Case], _Entry]] = {
    "training": _training,
    "serving": _serving,
    "inference": _inference,
}


def support(
    *,
    models: Iterable[Workload] | None = None,
    devices: Iterable[Accelerator] | None = None,
    precisions: Iterable[str] | None = None,
    questions: Iterable[str] | None = None,
    statuses: Iterable[str] | None = None,
) -> Table:
    """Report for every model, device and number format whether it runs, and how well validated.

    Parameters
    ----------
    models
        Models to include; `None` takes the whole zoo.
    devices
        Devices to include; `None` takes the whole zoo.
    precisions
        Number formats of the arithmetic; `None` takes all of them.
    questions
        Some of ``"training"`` (of `DistributedSolver`), ``"serving"`` (of `ServingSolver`) and
        ``"inference"`` (one forward pass, of `SingleNodeSolver`); `None` takes all three.
    statuses
        Rows to keep, by their `status`; `None` keeps all.

    Returns
    -------
    Table
        One row per combination. `status` is ``"banded"`` (a result with a band that covers four of
        five comparable runs), ``"unbanded"`` (a result, but no comparable run), ``"too large"`` (a
        result, but it does not fit in memory) or ``"refused"`` (an error). `devices` is the
        smallest number that fits, or the largest that was tried. `memory` is what each of them
        needs, and `capacity` what each may use. `reason` is the calibration of a result, and
        otherwise the reason why there is none.

    Raises
    ------
    ConfigError
        If an argument is neither `None` nor a list of such entries.

    Notes
    -----
    A training step has one sequence per device, sharded states (`zero_stage=3`) and recomputed
    layers. It runs on one device, on a part of the catalog's first server with this device, or on
    up to 1,024 of these servers, with up to eight devices per layer; a device without a server
    trains by itself. Serving is one request with a prompt of 512 tokens and 128 output tokens,
    within one server. Another plan can change whether something fits, but not whether its result
    has a band.

    Examples
    --------
    >>> from mlsysim import Hardware, Models, support
    >>> found = support(
    ...     models=[Models.Llama3_70B],
    ...     devices=[Hardware.H100],
    ...     precisions=["fp16"],
    ...     questions=["serving"],
    ... )
    >>> found.row(0)["status"], found.row(0)["devices"]
    ('banded', 2)
    """
    axes = (
        _listed("questions", questions, tuple(QUESTIONS), _is_named("question", QUESTIONS)),
        _listed("models", models, tuple(Models), lambda one: isinstance(one, Workload)),
        _listed("devices", devices, tuple(Hardware), lambda one: isinstance(one, Accelerator)),
        _listed("precisions", precisions, tuple(PRECISIONS), _is_named("precision", PRECISIONS)),
    )
    shown_statuses = _listed("statuses", statuses, STATUSES, _is_named("status", STATUSES))
    survey = _Survey()
    asked = (
        (model, device, precision, question, survey.entry(question, model, device, precision))
        for question in axes[0]
        for model in axes[1]
        for device in axes[2]
        for precision in axes[3]
    )
    rows = [row for row in asked if row[-1].status in shown_statuses]
    entries = [row[-1] for row in rows]
    columns = {
        "model": Column([row[0].name for row in rows]),
        "device": Column([row[1].name for row in rows]),
        "precision": Column([row[2] for row in rows]),
        "question": Column([row[3] for row in rows]),
    }
    return Table(
        columns
        | {
            "status": Column([one.status for one in entries]),
            "devices": Column([one.devices for one in entries]),
            "memory": Column([one.memory for one in entries], "GB", head="memory per device"),
            "capacity": Column([one.capacity for one in entries], "GB", head="capacity for this"),
            "reason": Column([one.reason for one in entries]),
        }
    )


def _is_named(kind: str, known: Collection[str]) -> Callable[[Any], bool]:
    """Return a test for a known name; it refuses an unknown one with those that are near."""

    def is_known(name: Any) -> bool:
        if isinstance(name, str) and name not in known:
            raise UnknownEntryError.build(name, kind, known)
        return isinstance(name, str)

    return is_known


def _listed(
    argument: str, given: Any, known: tuple[Any, ...], right: Callable[[Any], bool]
) -> tuple[Any, ...]:
    if given is None:
        return known
    if isinstance(given, str) or is_quantity(given) or not isinstance(given, Iterable):
        raise ConfigError(
            f"{argument} = {shown(given)} is not a list: put it in brackets, or leave it out",
            argument=argument,
        )
    entries = tuple(given)
    for one in entries:
        if not right(one):
            raise ConfigError(
                f"{argument} holds {shown(one)}: give entries such as {shown(known[0])}",
                argument=argument,
            )
    return entries
