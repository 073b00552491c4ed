"""How fast does a device, or a node, answer prompts, and how many fit at once?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from mlsysim.core.errors import ConfigError, ParallelismError
from mlsysim.core.types import Accelerator, Node, TransformerModel
from mlsysim.core.units import format_number
from mlsysim.registry.calibration import CONVENTIONS, TEXTBOOK_EFFICIENCY
from mlsysim.solvers.arguments import Argument, Noun, PrecisionName, Share, Whole
from mlsysim.solvers.base import Plan, Rule, Solver
from mlsysim.solvers.kernels.serving import serve
from mlsysim.solvers.results.serving import ServingResult

__all__ = ["ServingSolver"]

_SHAPE = ("layers", "hidden_dim", "heads", "kv_heads", "head_dim", "ffn_dim", "mlp_matrices")
_ORIGINS: dict[str, str | tuple[str, ...]] = {
    **{name: f"model.{name}" for name in (*_SHAPE, "vocab_size", "attended_fraction")},
    **{name: name for name in ("batch_size", "output_len", "tp_size")},
    "parameters": "model.parameters",
    "seq_len": "seq_len",
    "efficiency": ("efficiency", "textbook.value"),
    "bytes_per_element": "precision.bytes_per_element",
    "weight_bytes": ("weight_precision.bytes_per_element", "precision.bytes_per_element"),
    "kv_bytes": ("kv_precision.bytes_per_element", "precision.bytes_per_element"),
    "flops_per_mac": "conventions.flops_per_mac",
    "forward_all_reduces": "conventions.forward_all_reduces",
}
_DEVICE = Plan(
    serve,
    {
        **_ORIGINS,
        "peak_rate": "hardware.compute.{precision}",
        "bandwidth": "hardware.memory.bandwidth",
        "memory_capacity": "hardware.memory.capacity",
        # A device alone talks to nobody: any link gives the same zero.
        "link_bandwidth": "hardware.memory.bandwidth",
        "link_latency": "alone",
    },
)
_NODE = Plan(
    serve,
    {
        **_ORIGINS,
        "peak_rate": "hardware.accelerator.compute.{precision}",
        "bandwidth": "hardware.accelerator.memory.bandwidth",
        "memory_capacity": "hardware.accelerator.memory.capacity",
        "link_bandwidth": "hardware.scale_up.bandwidth",
        "link_latency": "hardware.scale_up.latency",
    },
)
_RULES = (
    Rule(
        "tp_size",
        lambda i: i["heads"] % i["tp_size"] == 0,
        lambda i: (
            f"tp_size = {i['tp_size']} does not divide the model's {i['heads']} attention heads: "
            "choose a divisor of the number of heads"
        ),
        ParallelismError,
    ),
)


class ServingSolver(Solver[ServingResult]):
    """How fast does a device, or a node, answer prompts, and how many fit at once?

    Two regimes. Prefill reads all prompts in one pass: much arithmetic per byte. Decode makes one
    token per sequence and pass, and reads all weights, keys and values for it: few operations per
    byte. Both are rooflines with arithmetic at a constant share of the peak rate and memory at the
    datasheet's bandwidth, plus the all-reduces of tensor parallelism.
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
        "efficiency": Share(optional=True),
    }
    rules = _RULES
    constants: ClassVar[Mapping[str, Any]] = {
        "conventions": CONVENTIONS,
        "textbook": TEXTBOOK_EFFICIENCY,
        "alone": 0,
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
        efficiency: float | None = None,
    ) -> ServingResult:
        """Time prefill and decode of a batch, and weigh its memory.

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
            `seq_len` plus half of `output_len`; memory is counted at the full one.
        batch_size
            Sequences in flight.
        precision
            Number format of the arithmetic and the activations.
        weight_precision
            Format in which weights are stored; `None` takes `precision`.
        kv_precision
            Format in which keys and values are stored; `None` takes `precision`.
        tp_size
            Devices of the node that share each layer.
        efficiency
            Share of the dense peak rate that arithmetic reaches; `None` takes the textbook
            value, one half.

        Returns
        -------
        ServingResult
            Latencies, throughput, memory, and what fits.

        Raises
        ------
        ConfigError
            If an argument is out of range, or the model does not generate.
        ParallelismError
            If `tp_size` does not divide the heads, or is more than the node has devices.

        Examples
        --------
        >>> from mlsysim import Hardware, Models, ServingSolver
        >>> r = ServingSolver.solve(model=Models.Llama3_8B, hardware=Hardware.H100, seq_len=2048)
        >>> r.itl_bottleneck
        'memory'
        >>> print(f"{r.itl.to('ms'):.2f}")
        4.87 ms

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
            efficiency=efficiency,
        )

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check every argument, and that they agree with each other."""
        arguments = super().admit(given)
        hardware, model = arguments["hardware"], arguments["model"]
        device = hardware.accelerator if isinstance(hardware, Node) else hardware
        _check_rate(device, arguments["precision"])
        if not model.causal:
            raise ConfigError(
                f"model = {model.name} reads whole texts and generates none; time its forward "
                "pass with SingleNodeSolver",
                argument="model",
            )
        most = hardware.accelerators_per_node if isinstance(hardware, Node) else 1
        if _largest(arguments["tp_size"]) > most:
            advice = "at most that" if most > 1 else "or pass a node such as Systems.Nodes.DGX_H100"
            raise ParallelismError(
                f"tp_size = {_largest(arguments['tp_size'])} is more than the {most} device(s) of "
                f"{hardware.name}: choose {advice}",
                argument="tp_size",
            )
        return arguments

    @classmethod
    def plan(cls, arguments: Mapping[str, Any]) -> Plan:
        """One device, or the devices of a node."""
        return _NODE if isinstance(arguments["hardware"], Node) else _DEVICE

    @classmethod
    def finish(cls, values: dict[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Add the reasons."""
        reasons: tuple[str, ...] = ()
        if not values["feasible"]:
            need, have = values["total_memory_required"], values["memory_capacity"]
            advice = (
                f"at most {values['max_batch_size']:.0f} such sequences fit"
                if values["max_batch_size"] >= 1
                else "not one such sequence fits: store weights more narrowly, shorten the "
                "context, or raise tp_size"
            )
            reasons = (
                f"memory: each device needs {format_number(need)} and has {format_number(have)}, "
                f"{format_number(need - have)} too little; {advice}",
            )
        return {
            **values,
            "max_batch_size": int(values["max_batch_size"]),
            "max_seq_len": int(values["max_seq_len"]),
            "reasons": reasons,
        }


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


def _largest(value: Any) -> int:
    return int(value.max() if hasattr(value, "max") else value)
