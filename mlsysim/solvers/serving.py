"""How fast does a device, or a node, answer prompts, and how many fit at once?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from mlsysim.core.errors import ConfigError
from mlsysim.core.types import (
    Accelerator,
    MoETransformerModel,
    Node,
    PowerCalibration,
    ServingCalibration,
    TransformerModel,
    find_precision,
)
from mlsysim.core.units import format_number
from mlsysim.registry.calibration.power import power_calibration_for
from mlsysim.registry.calibration.serving import serving_calibration_for
from mlsysim.registry.conventions import CONVENTIONS
from mlsysim.registry.operations import POWER_DRAW
from mlsysim.solvers.arguments import Argument, Noun, PrecisionName, Share, Whole
from mlsysim.solvers.base import Plan, Solver
from mlsysim.solvers.results.serving import ServingResult
from mlsysim.solvers.serving_plans import (
    DEVICE,
    NODE,
    RULES,
    TEXTBOOK_DEVICE,
    TEXTBOOK_NODE,
)

__all__ = ["ServingSolver"]


class ServingSolver(Solver[ServingResult]):
    """How fast does a device, or a node, answer prompts, and how many fit at once?

    Prefill reads a prompt in one pass: much arithmetic per byte. Decode makes one token per
    sequence and pass, and for it reads all keys and values and all weights, of experts those that
    its tokens visit: few operations per byte. By default every operator is timed with the
    constants of a serving engine, and requests are batched continuously: as one ends, the next is
    read while the others go on. With `efficiency` given, each pass is one roofline, arithmetic at
    that share of the peak rate and memory at the datasheet's bandwidth, and the batch is static:
    all prompts are read at once, then decoded.
    """

    parameters: ClassVar[Mapping[str, Argument]] = {
        "model": Noun(kinds=(TransformerModel,), hint="Models.Llama3_8B"),
        "hardware": Noun(
            kinds=(Accelerator, Node), hint="Hardware.H100, or the node Systems.Nodes.DGX_H100"
        ),
        "seq_len": Whole(),
        "output_len": Whole(minimum=0),
        "batch_size": Whole(),
        "precision": PrecisionName(),
        "weight_precision": PrecisionName(optional=True),
        "kv_precision": PrecisionName(optional=True),
        "tp_size": Whole(),
        "waves": Whole(optional=True),
        "arrivals": Whole(),
        "efficiency": Share(optional=True),
        "calibration": Noun(
            optional=True,
            kinds=(ServingCalibration,),
            hint="ServingCalibrations.Hopper_vLLM",
        ),
        "power_calibration": Noun(
            optional=True, kinds=(PowerCalibration,), hint="PowerCalibrations.Hopper"
        ),
    }
    rules = RULES
    constants: ClassVar[Mapping[str, Any]] = {
        "conventions": CONVENTIONS,
        "power_draw": POWER_DRAW,
        "alone": 0,
        "one": 1,
        "endless": math.inf,
    }
    result = ServingResult

    @classmethod
    def solve(
        cls,
        *,
        model: TransformerModel,
        hardware: Accelerator | Node,
        seq_len: int = 2048,
        output_len: int = 0,
        batch_size: int = 1,
        precision: str = "fp16",
        weight_precision: str | None = None,
        kv_precision: str | None = None,
        tp_size: int = 1,
        waves: int | None = None,
        arrivals: int = 1,
        efficiency: float | None = None,
        calibration: ServingCalibration | None = None,
        power_calibration: PowerCalibration | None = None,
    ) -> ServingResult:
        """Time prefill and decode of requests in flight, and weigh their memory.

        Parameters
        ----------
        model
            A transformer that generates.
        hardware
            A device; or a node, for tensor parallelism.
        seq_len
            Tokens of each prompt.
        output_len
            Tokens generated for each prompt. The decode step is timed at the mean context,
            `seq_len` plus half of `output_len`; memory is counted at the full one. With 0 nothing
            ends: all prompts arrive at once, and no prefill holds up a decode.
        batch_size
            Requests in flight: clients that send the next request when the last is answered.
        precision
            Number format of the arithmetic and the activations.
        weight_precision
            Format in which weights are stored; `None` takes `precision`.
        kv_precision
            Format in which keys and values are stored; `None` takes `precision`.
        tp_size
            Devices of the node that share each layer.
        waves
            Requests that each client sends in turn. All clients start at once, so that the first
            ones queue; `None` is a run so long that the start does not matter.
        arrivals
            Requests that arrive together once the start is over: 1 where clients are
            independent.
        efficiency
            Share of the dense peak rate that arithmetic reaches: the textbook's one constant.
            `None` times every operator instead, with a calibration's constants.
        calibration
            Constants for the operators; `None` takes those of TensorRT-LLM, or what was fitted.
        power_calibration
            Constants of power; `None` takes those fitted for the device's generation.

        Returns
        -------
        ServingResult
            Latencies, throughput, power, energy, memory, and what fits.

        Raises
        ------
        ConfigError
            If an argument is out of range, or the model does not generate.
        ParallelismError
            If `tp_size` does not divide the heads, or is more than the node has devices.

        Notes
        -----
        Requests that do not all fit still get times: those that fit run, and the others wait;
        `feasible` is then False, with the `reasons`. With more memory more of them run. Under a
        steady load (`waves` is `None`), throughput then rises, latency falls, and the time between
        tokens grows; with a few `waves`, latency may rise as well.

        Examples
        --------
        >>> from mlsysim import Hardware, Models, ServingSolver
        >>> r = ServingSolver.solve(model=Models.Llama3_8B, hardware=Hardware.H100, seq_len=2048)
        >>> r.itl_bottleneck
        'memory'
        >>> print(f"{r.itl.to('ms'):.2f}")
        6.54 ms
        >>> busy = ServingSolver.solve(
        ...     model=Models.Llama3_8B,
        ...     hardware=Hardware.H100,
        ...     seq_len=2048,
        ...     output_len=256,
        ...     batch_size=64,
        ... )
        >>> print(f"{busy.decode_latency.to('ms'):.1f}, with prefills {busy.itl.to('ms'):.1f}")
        13.0 ms, with prefills 25.0 ms

        References
        ----------
        Pope et al. (2022), Efficiently Scaling Transformer Inference, https://arxiv.org/abs/2211.05102
        """
        return cls._run(
            model=model,
            hardware=hardware,
            seq_len=seq_len,
            output_len=output_len,
            batch_size=batch_size,
            precision=precision,
            weight_precision=weight_precision,
            kv_precision=kv_precision,
            tp_size=tp_size,
            waves=waves,
            arrivals=arrivals,
            efficiency=efficiency,
            calibration=calibration,
            power_calibration=power_calibration,
        )

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check every argument, and that they agree with each other."""
        arguments = super().admit(given)
        hardware, model = arguments["hardware"], arguments["model"]
        device = _device(hardware)
        if arguments["power_calibration"] is None:
            arguments["power_calibration"] = power_calibration_for(device)
        _check_rate(device, arguments["precision"])
        arguments["wide_precision"] = find_precision(
            device.compute.wide_precision(arguments["precision"].name)
        )
        arguments["stored_precision"] = arguments["weight_precision"] or arguments["precision"]
        if arguments["calibration"] is None:
            arguments["calibration"] = serving_calibration_for(device)
        constants = arguments["calibration"].in_format(arguments["precision"].name)
        # No published run in our table serves a mixture of experts.
        arguments["calibration"] = (
            constants.without_bands() if isinstance(model, MoETransformerModel) else constants
        )
        if not model.causal:
            raise ConfigError(
                f"model = {model.name} reads whole texts and generates none; time its forward "
                "pass with SingleNodeSolver",
                argument="model",
            )
        return arguments

    @classmethod
    def plan(cls, arguments: Mapping[str, Any]) -> Plan:
        """Choose the operators' kernel, or the textbook's where an efficiency is given."""
        node = isinstance(arguments["hardware"], Node)
        if arguments["efficiency"] is None:
            return NODE if node else DEVICE
        return TEXTBOOK_NODE if node else TEXTBOOK_DEVICE

    @classmethod
    def rest(
        cls, values: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> dict[str, Callable[[], Any]]:
        """Add the reasons."""
        return {
            "calibration": lambda: _basis(values, arguments),
            "power_calibration": lambda: arguments["power_calibration"].name,
            "reasons": lambda: _reasons(values, arguments),
        }


def _reasons(values: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    if values["feasible"]:
        return ()
    need, have = values["total_memory_required"], values["memory_capacity"]
    advice = (
        f"at most {values['max_batch_size']:.0f} such sequences fit"
        if values["max_batch_size"] >= 1
        else "not one such sequence fits: store weights more narrowly, shorten the "
        "context, or raise tp_size"
    )
    if (running := int(values["running_batch_size"])) < arguments["batch_size"]:
        advice += f"; {running} requests run at a time, and the others wait"
    return (
        f"memory: each device needs {format_number(need)} and has {format_number(have)}, "
        f"{format_number(need - have)} too little; {advice}",
    )


def _device(hardware: Accelerator | Node) -> Accelerator:
    return hardware.accelerator if isinstance(hardware, Node) else hardware


def _basis(values: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    if arguments["efficiency"] is not None:
        return "textbook: one efficiency"
    name: str = arguments["calibration"].name
    return name if values["itl_low"] is not None else f"{name} (no run to compare with)"


def _check_rate(device: Accelerator, precision: Any) -> None:
    """Refuse a format that the device only stores, and say which argument is for that."""
    try:
        device.compute.rate(precision)
    except ConfigError as fault:
        fault.message += (
            "; to store weights or the cache in a format that it does not compute in, pass "
            "weight_precision= or kv_precision="
        )
        raise
