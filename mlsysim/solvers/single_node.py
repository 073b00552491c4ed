"""How long does one device take for a forward pass, and what limits it?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from mlsysim.core.errors import ConfigError
from mlsysim.core.types import Accelerator, FixedShapeModel, TransformerModel, Workload
from mlsysim.core.units import format_number
from mlsysim.registry.conventions import CONVENTIONS, TEXTBOOK_EFFICIENCY
from mlsysim.solvers.arguments import Argument, Noun, PrecisionName, Share, Whole
from mlsysim.solvers.base import Plan, Solver
from mlsysim.solvers.kernels.forward_pass import fixed_shape_pass, transformer_pass
from mlsysim.solvers.results import SingleNodeResult

__all__ = ["SingleNodeSolver"]


_DEVICE: dict[str, str | tuple[str, ...]] = {
    "peak_rate": "hardware.compute.{precision}",
    "bandwidth": "hardware.memory.bandwidth",
    "efficiency": ("efficiency", "textbook.value"),
    "power": "hardware.tdp",
    "memory_capacity": "hardware.memory.capacity",
    "bytes_per_element": "precision.bytes_per_element",
    "batch_size": "batch_size",
    "parameters": "model.parameters",
}
_FIXED_SHAPE = Plan(
    fixed_shape_pass,
    {
        "flops_per_sample": "model.flops_per_sample",
        "dense_parameters": "model.dense_parameters",
        "gathered_parameters": "model.gathered_parameters",
        "activations": "model.activations_per_sample",
        **_DEVICE,
    },
)
_SHAPE = ("layers", "hidden_dim", "heads", "kv_heads", "head_dim", "ffn_dim", "mlp_matrices")
_TRANSFORMER = Plan(
    transformer_pass,
    {
        **{name: f"model.{name}" for name in (*_SHAPE, "vocab_size", "attended_fraction")},
        "seq_len": ("seq_len", "model.seq_len"),
        "flops_per_mac": "conventions.flops_per_mac",
        **_DEVICE,
    },
)


class SingleNodeSolver(Solver[SingleNodeResult]):
    """How long does one device take for a forward pass, and what limits it?

    The roofline model: arithmetic at a constant share of the peak rate, memory traffic at the
    datasheet's bandwidth, the two overlapped fully.
    """

    parameters: ClassVar[Mapping[str, Argument]] = {
        "model": Noun(kinds=(TransformerModel, FixedShapeModel), hint="Models.ResNet50"),
        "hardware": Noun(kinds=(Accelerator,), hint="Hardware.A100"),
        "batch_size": Whole(),
        "precision": PrecisionName(),
        "efficiency": Share(optional=True),
        "seq_len": Whole(optional=True),
    }
    constants: ClassVar[Mapping[str, Any]] = {
        "conventions": CONVENTIONS,
        "textbook": TEXTBOOK_EFFICIENCY,
    }
    result = SingleNodeResult

    @classmethod
    def solve(
        cls,
        *,
        model: Workload,
        hardware: Accelerator,
        batch_size: int = 1,
        precision: str = "fp16",
        efficiency: float | None = None,
        seq_len: int | None = None,
    ) -> SingleNodeResult:
        """Time one forward pass of a batch.

        Parameters
        ----------
        model
            A transformer or a model of fixed shape.
        hardware
            The device.
        batch_size
            Samples in the batch; sequences, for a transformer.
        precision
            Number format of arithmetic, weights and activations.
        efficiency
            Share of the dense peak rate that the arithmetic reaches; `None` takes the textbook
            value, one half.
        seq_len
            Tokens per sequence; `None` takes the model's training length. For transformers only.

        Returns
        -------
        SingleNodeResult
            Times, traffic, memory and what limits the pass.

        Raises
        ------
        ConfigError
            If an argument is out of range, or the device does not compute in `precision`.

        Examples
        --------
        >>> from mlsysim import Hardware, Models, SingleNodeSolver
        >>> r = SingleNodeSolver.solve(model=Models.ResNet50, hardware=Hardware.A100, batch_size=32)
        >>> r.bottleneck
        'compute'
        >>> print(f"{r.latency.to('ms'):.2f}")
        1.68 ms

        References
        ----------
        Williams, Waterman and Patterson (2009), Roofline, https://doi.org/10.1145/1498765.1498785
        """
        return cls._run(
            model=model,
            hardware=hardware,
            batch_size=batch_size,
            precision=precision,
            efficiency=efficiency,
            seq_len=seq_len,
        )

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check every argument, and that they agree with each other."""
        arguments = super().admit(given)
        arguments["hardware"].compute.rate(arguments["precision"])
        if arguments["seq_len"] is not None and isinstance(arguments["model"], FixedShapeModel):
            raise ConfigError(
                f"seq_len = {arguments['seq_len']} has no meaning for {arguments['model'].name}, "
                "whose work per sample is fixed; leave it out",
                argument="seq_len",
            )
        return arguments

    @classmethod
    def plan(cls, arguments: Mapping[str, Any]) -> Plan:
        """Choose the kernel for the kind of model."""
        fixed = isinstance(arguments["model"], FixedShapeModel)
        return _FIXED_SHAPE if fixed else _TRANSFORMER

    @classmethod
    def finish(cls, values: dict[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Add the reasons."""
        reasons: tuple[str, ...] = ()
        if not values["feasible"]:
            lack = values["memory"] - values["memory_capacity"]
            reasons = (
                f"{arguments['model'].name} needs {format_number(values['memory'])}, which is "
                f"{format_number(lack)} more than {arguments['hardware'].name} has "
                f"({format_number(values['memory_capacity'])}): use a narrower precision, a "
                "smaller batch, or split the model over several devices",
            )
        return {**values, "reasons": reasons}
