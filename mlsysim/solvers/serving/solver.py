"""How fast does a device or a node answer prompts, and how many requests fit at once?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Unpack

from mlsysim.core.errors import ConfigError
from mlsysim.core.types import (
    Accelerator,
    Fleet,
    Node,
    TransformerModel,
)
from mlsysim.core.units import format_number
from mlsysim.registry.calibration.serving import ServingCalibrations
from mlsysim.solvers.arguments import Noun, Share, Whole
from mlsysim.solvers.base import Model, Solver, check_one_model
from mlsysim.solvers.device import memory_account
from mlsysim.solvers.serving.inputs import RULES, ServingArguments, ServingInputs
from mlsysim.solvers.serving.operators import serve_operators
from mlsysim.solvers.serving.result import ServingResult
from mlsysim.solvers.serving.sessions import serve_sessions
from mlsysim.solvers.serving.textbook import serve_textbook

__all__ = ["ServingSolver"]


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
        if not inputs.model.causal:
            raise ConfigError(
                f"model = {inputs.model.name} encodes text but does not generate any; time its "
                "forward pass with SingleNodeSolver",
                argument="model",
            )
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
        inputs = super().admit(given)
        constants = inputs.calibration.in_format(inputs.precision.name).serving(inputs.model.name)
        return inputs.but(calibration=constants)

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
        }


def _reasons(values: Mapping[str, Any], inputs: ServingInputs) -> tuple[str, ...]:
    if values["feasible"]:
        return ()
    need, have = values["total_memory_required"], values["memory_capacity"]
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
    again = values.get("recomputed_tokens") or 0
    if again >= 1 and values["max_batch_size"] >= 1:
        advice += (
            f"; running requests outgrow the cache, so that {again:,.0f} tokens per request are "
            "recomputed"
        )
    if values.get("batch_adapters") is not None:
        advice += f"; {format_number(values['adapter_memory'])} of all devices are for adapters"
    return (
        f"memory: a device needs {memory_account(need, have)}, "
        f"{format_number(need - have)} short; {advice}",
    )


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
