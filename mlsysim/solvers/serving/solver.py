"""How fast does a device or a node answer prompts, and how many requests fit at once?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Unpack

from mlsysim.core.errors import ConfigError
from mlsysim.core.fields import number, quantity, record
from mlsysim.core.result import Result
from mlsysim.core.types import Accelerator, Fleet, Node, TransformerModel
from mlsysim.core.units import Quantity, format_number
from mlsysim.registry.calibration.serving import ServingCalibrations
from mlsysim.solvers.arguments import Noun, Share, Whole
from mlsysim.solvers.base import Model, Solver, check_one_model
from mlsysim.solvers.device import beyond, memory_account
from mlsysim.solvers.serving.inputs import (
    RULES,
    ServingArguments,
    ServingInputs,
    check_generates,
    with_bands,
)
from mlsysim.solvers.serving.operators import serve_operators
from mlsysim.solvers.serving.sessions import serve_sessions
from mlsysim.solvers.serving.textbook import serve_textbook

MEASURED: Mapping[str, tuple[float, float]] = {
    "seq_len": (1, 196_661),
    "output_len": (0, 8192),
    "images": (0, 0),
    "tp_size": (1, 16),
    "pp_size": (1, 1),
    "attention_dp": (1, 48),
    "ep_size": (1, 48),
    "dcp_size": (1, 1),
    "redundant_experts": (0, 32),
    "overlap_batches": (0, 0),
    "draft_tokens": (0, 3),
    "loaded_share": (0, 0),
    "turns": (1, 1),
    "adapters": (1, 1),
}
"""The smallest and the largest value of each in any measured run, together or in separate pools,
and of the defaults."""


@record
class ServingResult(Result):
    """Answer of `ServingSolver`: a language model on one device or one tensor-parallel group.

    A band, from a `_low` to a `_high` field, covers four of five comparable runs; its bounds are
    `None` if no such run is known.
    """

    ttft: Quantity = quantity("ms")
    """Mean time to first token that clients see with `batch_size` requests in flight. With
    `efficiency`: the time to prefill all prompts of the batch together, without a queue."""
    ttft_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `ttft`."""
    ttft_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `ttft`."""
    itl: Quantity = quantity("ms")
    """Mean inter-token latency that clients see: a decode step at its mean context, plus the delay
    from other requests' prefills. With `efficiency`: the step alone."""
    itl_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `itl`."""
    itl_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `itl`."""
    calibration: str
    """The calibration used."""
    latency: Quantity = quantity("ms")
    """Time from a request to the last token of its answer."""
    prefill_latency: Quantity = quantity("ms")
    """Time to prefill one prompt with nothing else running; with `efficiency`, to prefill the
    batch."""
    decode_latency: Quantity = quantity("ms")
    """Time of one decode step without a concurrent prefill."""
    ttft_bottleneck: str
    """What limits the prefill: ``"compute"`` or ``"memory"``."""
    itl_bottleneck: str
    """What limits a decode step: ``"compute"`` or ``"memory"``."""
    decode_throughput: Quantity = quantity("token/s")
    """Generated tokens per second while all sequences decode and none is prefilled."""
    request_throughput: Quantity = quantity("1/s")
    """Requests per second under continuous batching, including prefills."""
    output_throughput: Quantity = quantity("token/s")
    """Generated tokens per second under continuous batching, including prefills."""
    output_throughput_low: Quantity | None = quantity("token/s")
    """Lower bound of the band around `output_throughput`."""
    output_throughput_high: Quantity | None = quantity("token/s")
    """Upper bound of the band around `output_throughput`."""
    energy_per_token: Quantity | None = quantity("J")
    """Energy of all devices per generated token, including prefills but not hosts; `None` without a
    design power."""
    energy_per_token_low: Quantity | None = quantity("J")
    """Lower bound of the band around `energy_per_token`."""
    energy_per_token_high: Quantity | None = quantity("J")
    """Upper bound of the band around `energy_per_token`."""
    input_token_time: Quantity = quantity("us", zero=True)
    """Device time per new prompt token: all devices' time per request, split by work. Times the
    price of a device it is a price per token, as in `EconomicsSolver`. The time for which devices
    wait for the host link is included, and the link itself has no price and no energy."""
    cached_token_time: Quantity | None = quantity("us", zero=True)
    """Device time per cached or loaded prompt token: new tokens attend to it. `None` without any.
    """
    output_token_time: Quantity | None = quantity("us", zero=True)
    """Device time per generated token after the first, divided by all generated tokens; `None` if
    there are none."""
    device_power: Quantity | None = quantity("W")
    """Mean power of one device under continuous batching, from its operations and its memory
    traffic."""
    power_utilization: float | None = number()
    """Where `device_power` lies between idle (0) and design power (1)."""
    power_calibration: str
    """The power calibration used, and whether any measurement supports it."""
    hfu: float = number()
    """Hardware FLOPs utilization under continuous batching. Each operation counts at the peak rate
    of its number format."""
    mbu: float = number()
    """Model bandwidth utilization: memory traffic divided by what a device's bandwidth allows."""
    running_batch_size: int = number(whole=True)
    """Sequences that run together; the other requests in flight wait."""
    running_limit: str
    """What limits them: ``"clients"`` if all requests run, ``"max_sequences"``, ``"adapters"`` if
    there is no memory for more different ones, or ``"memory"`` for keys and values."""
    recomputed_tokens: float | None = number(unit="token")
    """Mean tokens recomputed per request because it was preempted while the cache was full; 0 if
    all running sequences fit at full length. `None` with `efficiency`."""
    cached_tokens: float | None = number(unit="token", zero=True)
    """Mean tokens of a prompt that are cached in the devices' memory. `None` with `efficiency`."""
    loaded_tokens: float | None = number(unit="token", zero=True)
    """Mean tokens of a prompt that are loaded over the host link. `None` with `efficiency`."""
    prefix_hit_share: float | None = number()
    """Share of the repeated part of prompts that is still in the devices' or the host's memory;
    `None` without `turns`."""
    sessions: float | None = number()
    """Sessions with a request in flight or a user who is thinking; `None` without `turns`."""
    loading_latency: Quantity | None = quantity("ms", zero=True)
    """Mean time to load the tokens of a prompt that the host keeps, and the request's adapter if it
    is not resident, including the wait for the link; it is part of `ttft`. `None` with
    `efficiency`."""
    adapter_memory: Quantity | None = quantity("GB", zero=True)
    """Resident low-rank adapters on all devices. `None` with `efficiency`."""
    batch_adapters: float | None = number()
    """Mean number of different adapters in a decode step of one rank; `None` without adapters."""
    load_crossover: float | None = number(unit="token")
    """Prefix length above which loading over `host_link` is faster than recomputing; `None` without
    that link, or if loading is never faster."""
    replica_devices: int = number(whole=True)
    """Devices that serve these requests together; divide `output_throughput` by it for the rate per
    device."""
    model_weights_size: Quantity = quantity("GB")
    """Weights of the whole model."""
    kv_cache_size: Quantity = quantity("GB")
    """Keys and values of all sequences at full length, in the whole model."""
    total_memory_required: Quantity = quantity("GB")
    """Memory that the fullest device needs, of all pipeline stages: its share of weights, keys and
    values. Without `efficiency`, also the activations of the largest pass and the share that the
    engine keeps free."""
    fullest_stage: int = number(whole=True)
    """Pipeline stage of this device, counted from 0."""
    memory_capacity: Quantity = quantity("GB")
    """Memory of each device: by its datasheet with `efficiency`, otherwise as the driver reports
    it, if that is known."""
    memory_utilization: float = number()
    """Memory needed divided by memory capacity; above 1 it does not fit."""
    max_batch_size: int = number(whole=True)
    """Most sequences of this length that fit."""
    max_seq_len: int | None = number(whole=True)
    """Most tokens, prompt and output together, that each sequence of this batch may have; `None` if
    no cache grows with the context, as in models with only linear attention."""
    feasible: bool
    """Whether weights, caches and workspace fit in memory."""
    reasons: tuple[str, ...]
    """Why they do not fit; empty if they do."""
    outside: tuple[str, ...]
    """Ways in which the load or the engine lies outside all measured runs, where the bands are less
    reliable; empty with `efficiency`, which has no band."""


class ServingSolver(Solver[ServingInputs, ServingResult]):
    """How fast does a device or a node answer prompts, and how many requests fit at once?

    Prefill processes a prompt in one pass, with many operations per byte. Each decode pass yields
    one token per sequence and reads all keys and values and all weights (of experts, only those
    visited), so it does few operations per byte. By default every operator is timed with the
    constants of a serving engine, and requests are batched continuously: when one ends, the next is
    prefilled while the others keep decoding. With `efficiency`, each pass is one roofline, with
    arithmetic at that share of the peak rate and memory at the datasheet's bandwidth, and the batch
    is static: all prompts are prefilled together, then decoded.
    """

    inputs = ServingInputs
    rules = RULES
    result = ServingResult

    @classmethod
    def solve(
        cls,
        *,
        model: Annotated[TransformerModel, Noun(hint="Models.Llama3_8B")],
        hardware: Annotated[
            Accelerator | Node | Fleet,
            Noun(hint="Hardware.H100, or the node Systems.Nodes.DGX_H100"),
        ],
        output_len: Annotated[int, Whole(minimum=0, unit="token")] = 0,
        batch_size: Annotated[int, Whole()] = 1,
        max_sequences: Annotated[int | None, Whole()] = None,
        arrivals: Annotated[int, Whole()] = 1,
        efficiency: Annotated[float | None, Share()] = None,
        **engine: Unpack[ServingArguments],
    ) -> ServingResult:
        """Predict latencies, throughput and memory of the requests in flight.

        Parameters
        ----------
        model
            A transformer that generates text.
        hardware
            A device; a node, if one replica uses several devices; or a fleet of nodes.
        output_len
            Tokens generated for each prompt. The decode step is timed at the mean context,
            `seq_len` plus half of `output_len`; memory is counted at the full one. With 0 or 1
            there is no decode, as in classification: each prompt waits for those before it.
        batch_size
            Requests in flight: the number of clients. Each client sends its next request as soon as
            the last one is answered.
        max_sequences
            Most requests that run together; with `None`, only memory limits them.
        arrivals
            Requests that arrive together after the start: 1 if clients are independent.
        efficiency
            Share of the dense peak rate that arithmetic reaches: the textbook's one constant.
            `None` times every operator instead, with a calibration's constants.

        Returns
        -------
        ServingResult
            Latencies, throughput, power, energy and memory.

        Raises
        ------
        ConfigError
            If an argument is out of range, or the model does not generate.
        ParallelismError
            If `tp_size` does not divide the heads, a plan needs more devices than there are, or
            groups or ranks do not divide what they share.

        Notes
        -----
        If not all requests fit, those that fit run and the others wait. The result still has times,
        with `feasible` False and the `reasons`. With more memory, more of them run: under a steady
        load (`waves` is `None`), throughput rises, latency falls, and the time between tokens
        grows; with a few `waves`, latency may rise too.

        Examples
        --------
        >>> from mlsysim import Hardware, Models, ServingSolver
        >>> r = ServingSolver.solve(model=Models.Llama3_8B, hardware=Hardware.H100, seq_len=2048)
        >>> r.itl_bottleneck
        'memory'
        >>> print(f"{r.itl.to('ms'):.2f}")
        6.70 ms
        >>> busy = ServingSolver.solve(
        ...     model=Models.Llama3_8B,
        ...     hardware=Hardware.H100,
        ...     seq_len=2048,
        ...     output_len=256,
        ...     batch_size=64,
        ... )
        >>> print(f"{busy.decode_latency.to('ms'):.1f}, with prefills {busy.itl.to('ms'):.1f}")
        13.0 ms, with prefills 24.0 ms

        References
        ----------
        Pope et al. (2022), Efficiently Scaling Transformer Inference, https://arxiv.org/abs/2211.05102
        """
        return cls._answer(locals(), engine)

    @classmethod
    def check(cls, inputs: ServingInputs) -> None:
        """Reject formats in which the device cannot compute, and models that do not generate."""
        _check_rate(inputs)
        check_one_model(inputs)
        check_generates(inputs)
        if inputs.gives("power_calibration") and inputs.device.tdp is None:
            raise ConfigError(
                f"power_calibration = {inputs.power_calibration.name} has no effect, because the "
                f"design power of {inputs.device.name} is unknown: leave it out, or add tdp to the "
                "device",
                argument="power_calibration",
            )

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> ServingInputs:
        """Check every argument, and that the arguments are consistent."""
        return with_bands(super().admit(given))

    @classmethod
    def model(cls, inputs: ServingInputs) -> Model[ServingInputs]:
        """Choose the operator-level model, or the textbook model if an efficiency is given."""
        if inputs.efficiency is not None:
            return serve_textbook
        return serve_operators if inputs.turns == 1 else serve_sessions

    @classmethod
    def rest(cls, values: Mapping[str, Any], inputs: ServingInputs) -> dict[str, Callable[[], Any]]:
        """Add the reasons."""
        return {
            "calibration": lambda: _basis(values, inputs),
            "power_calibration": lambda: inputs.power_calibration.name,
            "reasons": lambda: _reasons(values, inputs),
            "outside": lambda: _outside(inputs),
        }


def _reasons(values: Mapping[str, Any], inputs: ServingInputs) -> tuple[str, ...]:
    if values["feasible"]:
        return ()
    need, have = values["total_memory_required"], values["memory_capacity"]
    stage = f" of stage {values['fullest_stage']}" if inputs.pp_size > 1 else ""
    advice = (
        f"at most {values['max_batch_size']:.0f} such sequences fit"
        if values["max_batch_size"] >= 1
        else "not even one such sequence fits: store weights in a narrower format, shorten the "
        "context, or raise tp_size"
    )
    if (running := int(values["running_batch_size"])) < inputs.batch_size:
        advice += f"; {running} requests run at a time, and the others wait"
        if values["running_limit"] == "adapters":
            advice += (
                f", because there is memory for {inputs.resident_adapters} of "
                f"{inputs.adapters} adapters"
            )
    recomputed = values.get("recomputed_tokens") or 0
    if recomputed >= 1 and values["max_batch_size"] >= 1:
        advice += (
            f"; running requests outgrow the cache, so that {recomputed:,.0f} tokens per request "
            "are recomputed"
        )
    if values.get("batch_adapters") is not None:
        advice += f"; {format_number(values['adapter_memory'])} of all devices are for adapters"
    return (
        f"memory: a device{stage} needs {memory_account(need, have)}, "
        f"{format_number(need - have)} short; {advice}",
    )


def _outside(inputs: ServingInputs) -> tuple[str, ...]:
    if inputs.efficiency is not None:
        return ()
    ranges = ((name, *limits) for name, limits in MEASURED.items())
    return tuple(beyond(inputs, ranges, "measured run"))


def _basis(values: Mapping[str, Any], inputs: ServingInputs) -> str:
    if inputs.efficiency is not None:
        return "textbook: one efficiency"
    name = inputs.calibration.name
    if values["itl_low"] is None:
        return f"{name} (no run to compare with)"
    if name == ServingCalibrations.Uncalibrated.name:
        return f"{name} (the band is that of all engines)"
    return name


def _check_rate(inputs: ServingInputs) -> None:
    """Reject a format that the device can only store, and name the arguments for storage."""
    try:
        inputs.device.compute.rate(inputs.precision.name)
    except ConfigError as fault:
        fault.message += (
            "; to store weights or the cache in a format in which it cannot compute, pass "
            "weight_precision= or kv_precision="
        )
        raise
