"""Lab: the parallelism paradox. Why adding GPUs lowers utilization, and how to split a model.

Act I trains LLaMA 7B with data parallelism on servers of eight H100 GPUs connected by Ethernet.
Replicas shard the optimizer state (ZeRO-1), because the model would not fit otherwise. Every
microbatch is one sequence, so the matrices on a GPU do not depend on the number of GPUs.

Act II splits GPT-3 three ways across 1,024 GPUs, with the global batch of a published run: 1,536
sequences (Narayanan et al. 2021, Table 2). Tensor-parallel ranks also split norms and dropouts
(sequence parallelism), which sends the same number of bytes and stores fewer.

All numbers come from the operator-level model of `DistributedSolver`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.errors import ConfigError, ParallelismError
from mlsysim.core.numeric import Value
from mlsysim.core.recording import Input
from mlsysim.core.types import Fleet, NetworkFabric, TransformerModel
from mlsysim.core.units import Quantity
from mlsysim.registry import Models, Systems
from mlsysim.registry.calibration.training import Calibrations
from mlsysim.solvers import DistributedResult, DistributedSolver, EconomicsSolver
from mlsysim_course.controls import Choice, Selector, Slider, true_claim
from mlsysim_course.explorers.charts import axis, line, lines, mark, rule
from mlsysim_course.explorers.declare import Alert, Answer, Explorer, by_formula, read
from mlsysim_course.explorers.training import memory_bar
from mlsysim_course.labs.lab import Lab
from mlsysim_course.labs.words import (
    band,
    count,
    gigabytes,
    memory_reading,
    milliseconds,
    percent,
    ratio,
    seconds,
    utilization_reading,
)

GPUS = (8, 16, 32, 64, 128, 256, 512, 1024)
STORY = (8, 64, 512)
"""The sizes in the first email."""
MODELS: dict[str, TransformerModel] = {
    "7b": Models.Llama1_7B,
    "13b": Models.Llama1_13B,
    "33b": Models.Llama1_33B,
    "65b": Models.Llama1_65B,
    "175b": Models.GPT3,
}
FABRICS: dict[str, NetworkFabric] = {
    "ethernet_100g": Systems.Fabrics.Ethernet_100G,
    "infiniband_hdr": Systems.Fabrics.InfiniBand_HDR,
    "infiniband_ndr": Systems.Fabrics.InfiniBand_NDR,
    "nvlink4": Systems.Links.NVLink4,
}
HIDING = Calibrations.H100_Megatron
# We know of no published run that delays the exchange, so there is no error band.
WAITING = HIDING.but(gradient_overlap=0.0).without_bands()
_NODE = Systems.Nodes.DGX_H100


@dataclass(frozen=True)
class Run:
    """A run of Act I: keys of the model and the fabric, number of GPUs, sequences per step."""

    model: str = "7b"
    fabric: str = "ethernet_100g"
    gpus: int = 512
    batch: int = 512
    hides: bool = False
    """Whether the exchange begins during the backward pass."""

    def on(self, gpus: int) -> Run:
        """Return the same run on another number of GPUs, with the same global batch."""
        return replace(self, gpus=gpus)


MAIL = Run()


@functools.lru_cache(maxsize=512)
def step(run: Run) -> DistributedResult:
    """Time one step of a run."""
    return _step(run, _fleet(run))


def _fleet(run: Run) -> Fleet:
    servers = run.gpus // _NODE.accelerators_per_node
    return Fleet(name=f"{run.gpus} H100", node=_NODE, count=servers, fabric=FABRICS[run.fabric])


def _step(run: Run, fleet: Fleet, compression: float = 1) -> DistributedResult:
    return DistributedSolver.solve(
        model=MODELS[run.model],
        fleet=fleet,
        batch_size=run.batch,
        precision="bf16",
        microbatch_count=max(1, run.batch // run.gpus),
        zero_stage=1,
        calibration=HIDING if run.hides else WAITING,
        gradient_compression=compression,
    )


@functools.lru_cache(maxsize=64)
def undone(run: Run, cause: str) -> DistributedResult:
    """Time the step with one cause removed.

    Parameters
    ----------
    run
        The run that is slow.
    cause
        ``"latency"``: empty messages take no time. ``"sharing"``: each GPU keeps the sequences it
        had on the smallest cluster. ``"memory"``: GPU memory is ten times as fast. ``"volume"``:
        each GPU sends as many bytes as on the smallest cluster. ``"network"``: the network is as
        fast as NVLink. ``"arithmetic"``: GPUs compute twice as fast. ``"bytes"``: gradients are
        half as wide on the wire.
    """
    fleet = _fleet(run)
    if cause == "sharing":
        return step(replace(run, batch=run.batch // GPUS[0] * run.gpus))
    if cause == "network":
        return step(replace(run, fabric="nvlink4"))
    if cause == "latency":
        return _step(run, _wired(fleet, latency=0.0))
    if cause == "volume":
        fewer_bytes = all_reduce_volume(run.gpus) / all_reduce_volume(GPUS[0])
        return _step(run, _wired(fleet, speed=fewer_bytes))
    if cause == "bytes":
        return _step(run, fleet, compression=2)
    gpu = fleet.node.accelerator
    if cause == "memory":
        memory = replace(gpu.memory, bandwidth=10 * gpu.memory.bandwidth)
        gpu = replace(gpu, memory=memory)
    elif cause == "arithmetic":
        rate = gpu.compute.rate("bf16")
        gpu = replace(gpu, compute=replace(gpu.compute, bf16=2 * rate))
    else:
        raise KeyError(cause)
    return _step(run, replace(fleet, node=replace(fleet.node, accelerator=gpu)))


def _wired(fleet: Fleet, *, speed: float = 1.0, latency: float = 1.0) -> Fleet:
    """Return the fleet with the bandwidth and latency of all links multiplied."""

    def changed(link: NetworkFabric) -> NetworkFabric:
        return replace(link, bandwidth=speed * link.bandwidth, latency=latency * link.latency)

    node = replace(fleet.node, scale_up=changed(fleet.node.scale_up))
    return replace(fleet, node=node, fabric=changed(fleet.fabric))


def all_reduce_volume(gpus: int) -> float:
    """Return the bytes that a GPU sends in a ring all-reduce, per byte of gradients."""
    return float(f.ring_all_reduce_time(1.0, gpus, 1.0, 0.0))


@functools.lru_cache(maxsize=1)
def daily_cost() -> float:
    """Return the daily cost in USD of the email's largest fleet: purchase, energy and upkeep."""
    cost = EconomicsSolver.solve(fleet=_fleet(MAIL), duration_days=1).period_cost
    if cost is None:
        raise ConfigError(f"{_NODE.name} has no price: add one in the catalog")
    return float(cost.to("USD").magnitude)


CAUSES = {"software": "latency", "ratio": "sharing", "memory": "memory", "volume": "volume"}
"""The cause that each option of the first prediction names."""


def _main_cause() -> str:
    return max(CAUSES, key=lambda option: undone(MAIL, CAUSES[option]).mfu)


def _hiding_change() -> str:
    """Return the change that hides the exchange, the only true one of the options."""

    def shorter(changed: DistributedResult, run: Run = MAIL) -> bool:
        return bool(changed.dp_communication_latency < step(run).dp_communication_latency)

    return true_claim(
        {
            "faster": shorter(undone(MAIL, "arithmetic")),
            "overlap": shorter(step(replace(MAIL, hides=True))),
            "batch": shorter(step(MAIL), replace(MAIL, batch=2 * MAIL.batch)),
            # The exchange gets shorter, but the optimizer receives other numbers.
            "quantize": False,
        }
    )


MODEL = Models.GPT3
FLEET = Fleet(
    name="1,024 H100",
    node=_NODE,
    count=128,
    fabric=Systems.Fabrics.InfiniBand_NDR,
)
BATCH = 1536
BUBBLE_CEILING = 0.1
"""Idle share of the pipeline that the second email allows."""
TARGET_MFU = 0.4
"""Utilization that the second email requires."""


@dataclass(frozen=True)
class Design:
    """Group sizes, microbatches per replica, and whether the optimizer state is sharded."""

    tp: int
    pp: int
    microbatches: int
    sharded: bool = True

    @property
    def spans_servers(self) -> bool:
        """Whether a tensor-parallel group is larger than a server."""
        return self.tp > FLEET.node.accelerators_per_node

    @property
    def dp(self) -> int:
        """Number of replicas."""
        return FLEET.total_accelerators // (self.tp * self.pp)


@dataclass(frozen=True)
class Outcome:
    """A result, or the reason why there is none, and the email's rules that the design breaks."""

    design: Design
    result: DistributedResult | None
    refusal: str
    failures: tuple[str, ...]
    """Of ``"sizes"``, ``"memory"``, ``"microbatches"``, ``"servers"``, ``"bubble"``."""

    @property
    def accepted(self) -> bool:
        """Whether the design meets the requirements of the email."""
        return not self.failures and self.result is not None and self.result.mfu >= TARGET_MFU

    @property
    def timed(self) -> DistributedResult:
        """The result.

        Raises
        ------
        ConfigError
            If the sizes of the design do not work.
        """
        if self.result is None:
            raise ConfigError(self.refusal)
        return self.result


@functools.lru_cache(maxsize=512)
def outcome(design: Design) -> Outcome:
    """Time one step of a design and name every rule that it breaks."""
    try:
        result = DistributedSolver.solve(
            model=MODEL,
            fleet=FLEET,
            batch_size=BATCH,
            precision="bf16",
            tp_size=design.tp,
            pp_size=design.pp,
            microbatch_count=design.microbatches,
            zero_stage=int(design.sharded),
            sequence_parallel=True,
        )
    except ParallelismError as error:
        return Outcome(design, None, error.message, ("sizes",))
    broken = {
        "memory": not result.fits_memory,
        "microbatches": not result.whole_microbatches,
        "servers": design.spans_servers,
        "bubble": result.bubble_fraction > BUBBLE_CEILING,
    }
    return Outcome(design, result, "", tuple(name for name, is_so in broken.items() if is_so))


def states(result: DistributedResult) -> Quantity:
    """Return the memory for the parameters: weights, gradients and optimizer state."""
    sizes: Quantity = result.weights_memory + result.gradient_memory + result.optimizer_memory
    return sizes


OPTIONS = {"wide": (32, 1), "balanced": (8, 4), "deep": (1, 32), "flat": (8, 1)}
"""TP and PP of each option of the second prediction."""
PAIR = (Design(8, 8, 96), Design(16, 4, 96))
"""Two designs with as many GPUs per replica: tensor groups within a server, and across two."""


@functools.lru_cache(maxsize=16)
def best(name: str) -> Outcome:
    """Return an option at its best.

    The optimizer state is sharded, and the microbatches have 1, 2, 4, 8 or 16 sequences. The best
    is the fastest that breaks no rule; failing that, the fastest that fits in memory; failing that,
    the one that needs the least memory.
    """
    tp, pp = OPTIONS[name]
    sequences = BATCH // Design(tp, pp, 1).dp
    counts = {sequences // size for size in (1, 2, 4, 8, 16) if sequences % size == 0}
    return max((outcome(Design(tp, pp, m)) for m in counts), key=_rank)


def _rank(tried: Outcome) -> tuple[bool, bool, float]:
    result = tried.timed
    need: float = result.memory.to("GB").magnitude
    return tried.accepted, result.feasible, result.mfu if result.feasible else -need


def _reason_to_stay_inside() -> str:
    """Return why tensor parallelism stays within a server, the only true one of the options."""
    inside, across = (outcome(design).timed for design in PAIR)
    longer_waits = across.tp_communication_latency - inside.tp_communication_latency
    longer_step = across.step_latency_total - inside.step_latency_total
    runs_across_servers = best("wide").timed.feasible
    return true_claim(
        {
            "software": not runs_across_servers,
            "every_layer": longer_waits > 0.5 * longer_step,
            "shared_memory": not runs_across_servers,
            # A sum has the same format on either path.
            "numerics": False,
        }
    )


PREDICTION_1 = Choice(id="act1_prediction", options=tuple(CAUSES), truth=_main_cause, locks=True)
REFLECTION_1 = Choice(
    id="act1_reflection",
    options=("faster", "overlap", "batch", "quantize"),
    truth=_hiding_change,
)
PREDICTION_2 = Choice(
    id="act2_prediction",
    options=tuple(OPTIONS),
    truth=lambda: max(OPTIONS, key=lambda name: _rank(best(name))),
    locks=True,
)
REFLECTION_2 = Choice(
    id="act2_reflection",
    options=("software", "every_layer", "shared_memory", "numerics"),
    truth=_reason_to_stay_inside,
)

_GOOD, _POOR = 0.45, 0.25
"""Utilization at or above the first is shown as good; below the second, as bad."""
_BATCHES = {
    **{f"all-{n}": f"{n:,} sequences in total" for n in (256, 512, 1024, 2048, 4096)},
    **{f"each-{n}": f"{count(n, 'sequence')} per GPU" for n in (1, 2, 4, 8, 16, 32, 64)},
}


def _run(state: Mapping[str, Any]) -> Run:
    """Return the run that the controls describe."""
    shared, _, sequences = state["batch"].partition("-")
    return Run(
        model=state["model"],
        fabric=state["fabric"],
        gpus=state["gpus"],
        batch=int(sequences) * (state["gpus"] if shared == "each" else 1),
        hides=state["exchange"] == "during",
    )


def _tone(mfu: float) -> str:
    return "good" if mfu >= _GOOD else "warn" if mfu >= _POOR else "bad"


def _waiting_ratio(exposed: Value, compute: Value) -> Value:
    """Return the exposed communication as a multiple of the compute time."""
    return exposed / compute


def _run_alerts(chosen: Run, result: DistributedResult) -> list[Alert]:
    """Return what is wrong with a run."""
    alerts = []
    if not result.fits_memory:
        text = (
            f"Every GPU holds all of {MODELS[chosen.model].name}. It needs "
            f"{gigabytes(result.memory)} and has {gigabytes(result.memory_capacity)}. Adding "
            "replicas shards only the optimizer state further; every GPU keeps all weights and "
            "gradients. The times shown assume enough memory."
        )
        alerts.append(Alert("memory", "bad", "Out of memory", text))
    if not result.whole_microbatches:
        text = (
            f"{chosen.batch:,} sequences cannot keep {chosen.gpus:,} GPUs busy, because a GPU "
            "processes whole sequences. Use fewer GPUs or a larger global batch."
        )
        alerts.append(Alert("batch", "bad", "Fewer sequences than GPUs", text))
    alone = step(chosen.on(GPUS[0]))
    if result.whole_microbatches and result.mfu < alone.mfu / 2:
        text = (
            f"These {chosen.gpus:,} GPUs reach less than half the MFU of one server with the "
            f"same global batch: {percent(result.mfu)} compared with {percent(alone.mfu)}."
        )
        alerts.append(Alert("wall", "warn", "The wall", text))
    return alerts


def _scaling_curve(state: Mapping[str, Any], result: DistributedResult) -> dict[str, Any]:
    """Return a chart of the utilization by GPUs, for a setting and for the email."""
    timed = [(gpus, step(_run({**state, "gpus": gpus}))) for gpus in GPUS]
    points = [(gpus, 100 * one.mfu) for gpus, one in timed if one.whole_microbatches]
    return lines(
        axis("GPUs", log=True),
        axis("MFU (%)", zero=True),
        [
            line("Your setting", points),
            line("The email", [(gpus, 100 * step(MAIL.on(gpus)).mfu) for gpus in STORY]),
        ],
        marks=[mark(state["gpus"], 100 * result.mfu, percent(result.mfu))],
    )


def _explore(state: Mapping[str, Any]) -> Answer:
    chosen = _run(state)
    result = step(chosen)
    times = {
        name: Input(name, result[field], "", f"{name} of the step")
        for name, field in (("exposed", "dp_communication_latency"), ("compute", "compute_latency"))
    }
    waits = by_formula("Communication / compute", _waiting_ratio, "", times)
    hidden = "the rest is hidden" if chosen.hides else "none is hidden"
    return Answer(
        f"{MODELS[chosen.model].name} on {chosen.gpus:,} GPUs with "
        f"{count(chosen.batch, 'sequence')} per step: the MFU is {percent(result.mfu)}. In each "
        f"step, a GPU computes for {milliseconds(result.compute_latency)} and waits "
        f"{milliseconds(result.dp_communication_latency)} for the gradient exchange.",
        (
            read("MFU", result, "mfu", scale=100, shown="%").judged(
                _tone(result.mfu), "of the dense peak rate"
            ),
            read("Compute", result, "compute_latency", "ms").judged(
                hint=f"{count(chosen.batch / chosen.gpus, 'sequence')} per GPU"
            ),
            read("Exposed communication", result, "dp_communication_latency", "ms").judged(
                hint=hidden
            ),
            waits.judged(
                "good" if waits.value < 0.1 else "warn" if waits.value < 0.5 else "bad",
                "lower is better",
            ),
            read("Step", result, "step_latency_total", "ms").judged(
                hint=band(result, milliseconds)
            ),
            memory_reading(result),
        ),
        (_scaling_curve(state, result),),
        alerts=tuple(_run_alerts(chosen, result)),
    )


_STAGES = (1, 2, 4, 8, 16, 32, 64)
_COUNTS = (4, 16, 64)


def _design(state: Mapping[str, Any]) -> Design:
    """Return the design that the controls describe."""
    return Design(
        tp=state["tp"],
        pp=state["pp"],
        microbatches=state["microbatches"],
        sharded=state["zero"] == "sharded",
    )


def _memory_advice(result: DistributedResult) -> str:
    if states(result) > result.memory_capacity:
        return (
            "The weights, gradients and optimizer state alone do not fit. TP and PP divide all "
            "three, and ZeRO-1 divides the optimizer state."
        )
    return (
        "The weights, gradients and optimizer state fit, but the activations do not. More "
        "microbatches make each one smaller, and TP divides them."
    )


def _batch_advice(result: DistributedResult) -> str:
    sequences = BATCH / result.dp_size
    if sequences != int(sequences):
        return f"{result.dp_size:,} replicas do not divide the batch. Make TP × PP larger."
    return f"Choose a number that divides the {sequences:.0f} sequences of each replica."


def _design_alerts(tried: Outcome) -> list[Alert]:
    """Return the rules that a design breaks, or that it meets all of them."""
    result, design = tried.timed, tried.design
    microbatches = count(design.microbatches, "microbatch", "es")
    alerts = []
    if not result.fits_memory:
        text = (
            f"Each GPU has {gigabytes(result.memory_capacity)} and needs "
            f"{gigabytes(result.memory)}. {_memory_advice(result)}"
        )
        alerts.append(Alert("memory", "bad", "Out of memory", text))
    if not result.whole_microbatches:
        text = (
            f"{BATCH:,} sequences over {count(result.dp_size, 'replica')} with {microbatches} each "
            f"leave {result.microbatch_size:.4g} sequences per microbatch. {_batch_advice(result)}"
        )
        alerts.append(Alert("microbatches", "bad", "Fractions of a sequence", text))
    if design.spans_servers:
        server = FLEET.node.accelerators_per_node
        text = (
            f"A group of {design.tp} GPUs spans {-(-design.tp // server)} servers of {server}. "
            "Every all-reduce of every layer crosses the network, and no compute hides it. "
            f"GPUs wait {seconds(result.tp_communication_latency)} out of "
            f"{seconds(result.step_latency_total)} per step. Use TP = {server} or less."
        )
        alerts.append(Alert("servers", "warn", "Tensor parallelism across servers", text))
    if result.bubble_fraction > BUBBLE_CEILING:
        text = (
            f"{design.pp} stages with {microbatches} idle for ({design.pp} − 1) / "
            f"({design.microbatches} + {design.pp} − 1) = {percent(result.bubble_fraction)} of the "
            "time. Use more microbatches or fewer stages."
        )
        title = f"The bubble is above {percent(BUBBLE_CEILING, 0)}"
        alerts.append(Alert("bubble", "warn", title, text))
    if MODEL.layers % design.pp:
        text = (
            f"{MODEL.layers} layers do not divide evenly into {design.pp} stages. The longest "
            f"stage has {-(-MODEL.layers // design.pp)} layers, and all others wait for it."
        )
        alerts.append(Alert("layers", "warn", "Stages of unequal length", text))
    if tried.accepted:
        text = (
            f"It reaches an MFU of {percent(result.mfu)} with {gigabytes(result.memory)} per "
            f"GPU and a bubble of {percent(result.bubble_fraction)}."
        )
        alerts.append(Alert("accepted", "good", "This design meets the requirements", text))
    return alerts


def _bubble_curve(design: Design) -> dict[str, Any]:
    """Return a chart of the bubble by stages, for the microbatches of a design and for others."""

    def bubble(stages: int, microbatches: int) -> float:
        return 100 * float(f.pipeline_bubble_fraction(stages, microbatches, 1))

    counts = (design.microbatches, *(m for m in _COUNTS if m != design.microbatches))
    here = bubble(design.pp, design.microbatches)
    return lines(
        axis("Stages", log=True),
        axis("Bubble (%)", zero=True),
        [
            line(count(m, "microbatch", "es"), [(stages, bubble(stages, m)) for stages in _STAGES])
            for m in counts
        ],
        marks=[mark(design.pp, here, f"{here:.1f}%")],
        rules=[rule(100 * BUBBLE_CEILING, f"limit: {percent(BUBBLE_CEILING, 0)}")],
    )


def _split(state: Mapping[str, Any]) -> Answer:
    tried = outcome(_design(state))
    result, design = tried.timed, tried.design
    waits = ratio(result.tp_communication_latency, result.step_latency_total)
    replicas = f"{FLEET.total_accelerators:,} / ({design.tp} × {design.pp})"
    return Answer(
        f"TP {design.tp} × PP {design.pp} leaves {replicas} = {count(result.dp_size, 'replica')}, "
        f"with {count(result.microbatch_size, 'sequence')} per microbatch. The MFU is "
        f"{percent(result.mfu)}, whether or not the {gigabytes(result.memory)} per GPU fit.",
        (
            utilization_reading(result, TARGET_MFU),
            memory_reading(result),
            read("Bubble", result, "bubble_fraction", scale=100, shown="%").judged(
                "bad" if result.bubble_fraction > BUBBLE_CEILING else "good",
                f"limit: {percent(BUBBLE_CEILING, 0)}",
            ),
            read("Exposed all-reduces", result, "tp_communication_latency", "s").judged(
                "bad" if design.spans_servers else "plain", f"{percent(waits, 0)} of the step"
            ),
            read("Step", result, "step_latency_total", "s").judged(hint=band(result, seconds)),
        ),
        (_bubble_curve(design), memory_bar(result)),
        alerts=tuple(_design_alerts(tried)),
    )


def _bandwidth(name: str, row: NetworkFabric) -> str:
    hypothetical = " (hypothetical)" if name == "nvlink4" else ""
    return f"{row.name}: {row.bandwidth.to('GB/s').magnitude:g} GB/s{hypothetical}"


SCALING = Explorer(
    "parallelism_paradox/scaling",
    "The explorer",
    "One step of data-parallel training in bf16 on servers of eight H100 GPUs. Replicas shard the "
    "optimizer state (ZeRO-1), and a microbatch is one sequence.",
    (
        Slider("gpus", "GPUs", GPUS[0], GPUS),
        Selector("batch", "Global batch", f"all-{MAIL.batch}", _BATCHES),
        Selector("model", "Model", MAIL.model, {key: row.name for key, row in MODELS.items()}),
        Selector(
            "fabric",
            "Network bandwidth per GPU",
            MAIL.fabric,
            {name: _bandwidth(name, row) for name, row in FABRICS.items()},
        ),
        Selector(
            "exchange",
            "Gradient exchange",
            "after",
            {"after": "after the backward pass", "during": "overlaps the backward pass"},
        ),
    ),
    _explore,
)
SPLIT = Explorer(
    "parallelism_paradox/split",
    "The configurator",
    f"One step of {MODEL.name} on {FLEET.name}: {BATCH:,} sequences of {MODEL.seq_len:,} tokens in "
    "bf16, with sequence parallelism.",
    (
        Slider("tp", "GPUs per layer (TP)", 8, (1, 2, 3, 4, 8, 16, 32, 64, 128)),
        Slider("pp", "Pipeline stages (PP)", 1, (1, 2, 3, 4, 8, 16, 32, 64, 128)),
        Slider(
            "microbatches",
            "Microbatches per replica",
            1,
            (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192),
        ),
        Selector(
            "zero",
            "Optimizer state",
            "replicated",
            {
                "replicated": "replicated on every replica",
                "sharded": "sharded across replicas (ZeRO-1)",
            },
        ),
    ),
    _split,
)
LAB = Lab(
    name="parallelism_paradox",
    title="The parallelism paradox",
    minutes=40,
    questions=(PREDICTION_1, REFLECTION_1, PREDICTION_2, REFLECTION_2),
    explorers=(SCALING, SPLIT),
    requirements="runs, keeps tensor parallelism within a server, idles for at most "
    f"{percent(BUBBLE_CEILING, 0)} of its time and reaches an MFU of {percent(TARGET_MFU, 0)}",
)
