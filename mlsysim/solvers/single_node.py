"""How long does one device take for a forward pass, and what limits it?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from mlsysim.core.errors import ConfigError
from mlsysim.core.types import (
    Accelerator,
    FixedShapeModel,
    PowerCalibration,
    ServingCalibration,
    TransformerModel,
    Workload,
    find_precision,
)
from mlsysim.core.units import format_number
from mlsysim.registry.calibration.power import power_calibration_for
from mlsysim.registry.calibration.serving import pass_calibration_for
from mlsysim.registry.conventions import CONVENTIONS, TEXTBOOK_EFFICIENCY
from mlsysim.registry.operations import POWER_DRAW
from mlsysim.solvers.arguments import Argument, Noun, PrecisionName, Share, Whole
from mlsysim.solvers.base import Plan, Solver
from mlsysim.solvers.results import SingleNodeResult
from mlsysim.solvers.single_node_plans import FIXED_SHAPE, OPERATORS, TEXTBOOK

__all__ = ["SingleNodeSolver"]


class SingleNodeSolver(Solver[SingleNodeResult]):
    """How long does one device take for a forward pass, and what limits it?

    A transformer is timed operator by operator: matrix products by their shapes, attention,
    element-wise traffic, logits, and a fixed time per layer, with the constants of a calibration.
    With `efficiency` given, and for models of fixed shape, of which only totals are known, it is
    the textbook's roofline: arithmetic at that share of the peak rate, memory traffic at the
    datasheet's bandwidth, the two overlapped fully.
    """

    parameters: ClassVar[Mapping[str, Argument]] = {
        "model": Noun(kinds=(TransformerModel, FixedShapeModel), hint="Models.ResNet50"),
        "hardware": Noun(kinds=(Accelerator,), hint="Hardware.A100"),
        "batch_size": Whole(),
        "precision": PrecisionName(),
        "efficiency": Share(optional=True),
        "seq_len": Whole(optional=True),
        "calibration": Noun(
            optional=True,
            kinds=(ServingCalibration,),
            hint="ServingCalibrations.Hopper_Library",
        ),
        "power_calibration": Noun(
            optional=True, kinds=(PowerCalibration,), hint="PowerCalibrations.Hopper"
        ),
    }
    constants: ClassVar[Mapping[str, Any]] = {
        "conventions": CONVENTIONS,
        "power_draw": POWER_DRAW,
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
        calibration: ServingCalibration | None = None,
        power_calibration: PowerCalibration | None = None,
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
            Share of the dense peak rate that the arithmetic reaches: the textbook's one constant.
            `None` times every operator of a transformer instead, with a calibration's constants;
            a model of fixed shape has no operators to time, and gets the textbook's value, one
            half.
        seq_len
            Tokens per sequence; `None` takes the model's training length. For transformers only.
        calibration
            Constants for the operators; `None` takes those fitted for the device. For transformers
            only.
        power_calibration
            Constants of what operations and bytes draw in power; `None` takes those fitted for the
            device's generation.

        Returns
        -------
        SingleNodeResult
            Times, traffic, power, energy, memory and what limits the pass.

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
        >>> r = SingleNodeSolver.solve(model=Models.BERT_Base, hardware=Hardware.A100, seq_len=128)
        >>> print(f"{r.latency:.2f}, of which {r.overhead_time:.2f} is overhead: {r.calibration}")
        0.81 ms, of which 0.59 ms is overhead: Ampere, called as a library

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
            calibration=calibration,
            power_calibration=power_calibration,
        )

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check every argument, and that they agree with each other."""
        arguments = super().admit(given)
        hardware, model = arguments["hardware"], arguments["model"]
        hardware.compute.rate(arguments["precision"])
        if arguments["power_calibration"] is None:
            arguments["power_calibration"] = power_calibration_for(hardware)
        if not isinstance(model, FixedShapeModel):
            wide = hardware.compute.wide_precision(arguments["precision"].name)
            arguments["wide_precision"] = find_precision(wide)
            if arguments["calibration"] is None:
                arguments["calibration"] = pass_calibration_for(hardware)
            return arguments
        for name, why in (("seq_len", "work per sample is fixed"), ("calibration", _NO_OPERATORS)):
            if arguments[name] is not None:
                raise ConfigError(
                    f"{name} = {getattr(arguments[name], 'name', arguments[name])} has no meaning "
                    f"for {model.name}, whose {why}; leave it out",
                    argument=name,
                )
        return arguments

    @classmethod
    def plan(cls, arguments: Mapping[str, Any]) -> Plan:
        """Choose the kernel: operators, or the textbook's for a share or a fixed shape."""
        if isinstance(arguments["model"], FixedShapeModel):
            return FIXED_SHAPE
        return OPERATORS if arguments["efficiency"] is None else TEXTBOOK

    @classmethod
    def rest(
        cls, values: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> dict[str, Callable[[], Any]]:
        """Add the reasons, and whose constants were used."""
        return {
            "calibration": lambda: _basis(values, arguments),
            "power_calibration": lambda: arguments["power_calibration"].name,
            "reasons": lambda: _reasons(values, arguments),
        }


def _reasons(values: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    if values["feasible"]:
        return ()
    lack = values["memory"] - values["memory_capacity"]
    return (
        f"{arguments['model'].name} needs {format_number(values['memory'])}, which is "
        f"{format_number(lack)} more than {arguments['hardware'].name} has "
        f"({format_number(values['memory_capacity'])}): use a narrower precision, a "
        "smaller batch, or split the model over several devices",
    )


_NO_OPERATORS = "operators are not known, only their totals"


def _basis(values: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Say whose constants were used, and whether anything is known of their error."""
    if arguments["efficiency"] is not None:
        return "textbook: one efficiency"
    if isinstance(arguments["model"], FixedShapeModel):
        return f"uncalibrated: the textbook's efficiency of {arguments['textbook'].value:g}"
    name: str = arguments["calibration"].name
    known = values["latency_low"] is not None
    return name if known else f"{name} (no band: too few passes measured)"
