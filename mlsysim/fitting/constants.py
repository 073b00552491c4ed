"""The constants that runs of one cluster may adjust, and inputs with other values of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.fields import priors, units_of
from mlsysim.core.forms import replaced
from mlsysim.core.types import Calibration, Machine, Software
from mlsysim.solvers.training.inputs import TrainingInputs

Floats = NDArray[np.float64]
SPREAD = 0.06
"""Relative error of a run with known constants: the spread between runs."""
_PRIORS = {"machine": priors(Machine), "software": priors(Software)}


@dataclass(frozen=True)
class Constant:
    """One factor, and the fields that it multiplies; its name is that of the first one."""

    name: str
    part: str
    """The record that contains the fields: "machine" or "software"."""
    fields: tuple[str, ...]
    spread: float
    """Standard deviation of its logarithm in the prior."""

    def edges(self, calibration: Calibration) -> tuple[float, float]:
        """Return the bounds of the factor's logarithm, from a base."""
        values = amounts(getattr(calibration, self.part))
        known = _PRIORS[self.part]
        low, high = -math.inf, math.inf
        for field in self.fields:
            if values[field] > 0:
                prior = known[field] if known[field].spread else known[self.name]
                low = max(low, math.log(prior.low / values[field]))
                high = min(high, math.log(prior.high / values[field]))
        # A base beyond the bounds is not moved.
        return min(low, 0.0), max(high, 0.0)


def _constant(part: str, *fields: str, speed: str = "") -> Constant:
    """Declare a constant; `speed` is the framework's part of it, which runs cannot separate."""
    spreads = [_PRIORS[part][fields[0]].spread, _PRIORS["software"][speed].spread if speed else 0]
    return Constant(fields[0], part, fields, math.hypot(*(spread or 0 for spread in spreads)))


_CONSTANTS = (
    _constant(
        "machine",
        "gemm_efficiency",
        "gemm_efficiency_fp8",
        "gemm_efficiency_fp4",
        speed="gemm_speed",
    ),
    _constant("machine", "attention_efficiency", speed="attention_speed"),
    _constant("machine", "link_efficiency"),
    _constant("machine", "nic_efficiency"),
    _constant("software", "hidden_bytes"),
    _constant("software", "cast_bytes"),
    _constant("software", "score_bytes"),
    _constant("software", "collective_overhead"),
    _constant("software", "gather_overlap"),
    _constant("software", "gradient_overlap", "plain_overlap"),
    _constant("software", "tensor_overlap"),
    _constant("software", "layer_launch"),
    _constant("software", "expert_launch"),
    _constant("software", "expert_efficiency"),
    _constant("software", "routing_bytes"),
    _constant("software", "exchange_overlap"),
    _constant("software", "step_overhead"),
)
_OF_EXPERTS = {"expert_launch", "expert_efficiency", "routing_bytes", "exchange_overlap"}


def constants_of(base: Calibration, runs: Iterable[TrainingInputs]) -> tuple[Constant, ...]:
    """Return the constants that apply to a cluster's runs, whether or not the runs determine them.

    Constants of experts need a model with experts, those of conversion a narrow format, and those
    of scores attention that is not fused. A constant of zero is switched off.
    """
    runs = tuple(runs)
    absent = set()
    if not any(i.model.routed_layers > 0 for i in runs):
        absent |= _OF_EXPERTS
    if not any(i.precision.bits < 16 for i in runs):
        absent.add("cast_bytes")
    if all(i.attention.fused for i in runs):
        absent.add("score_bytes")
    return tuple(
        constant
        for constant in _CONSTANTS
        if constant.name not in absent
        and any(amounts(getattr(base, constant.part))[field] > 0 for field in constant.fields)
    )


def amounts(row: Any) -> dict[str, float]:
    """Return a record's numbers in the units that its class declares."""
    return {
        field: getattr(row, field) if plain else getattr(row, field).to(unit).magnitude
        for field, unit, plain in units_of(type(row))
    }


def changed(i: TrainingInputs, constants: Sequence[Constant], logs: Floats) -> TrainingInputs:
    """Return plain inputs with constants times factors: one row of logarithms for each result."""
    made: dict[str, dict[str, Any]] = {"machine": {}, "software": {}}
    for constant, column in zip(constants, logs.T, strict=True):
        held = getattr(i.calibration, constant.part)
        for field in constant.fields:
            made[constant.part][field] = getattr(held, field) * np.exp(column)
    parts = {part: replaced(getattr(i.calibration, part), **made[part]) for part in made}
    return i.but(calibration=replaced(i.calibration, **parts))
