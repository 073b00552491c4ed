"""What open-loop serving depends on."""

from __future__ import annotations

from mlsysim.core.inputs import default
from mlsysim.core.numeric import Value
from mlsysim.solvers.serving.inputs import RULES as SERVING_RULES
from mlsysim.solvers.serving.inputs import ServingInputs
from mlsysim.solvers.base import Rule

__all__ = ["RULES", "OpenLoopInputs"]


class OpenLoopInputs(ServingInputs):
    """What open-loop serving depends on: the arguments of `OpenLoopSolver.solve`, and constants."""

    arrival_rate: Value
    burstiness: Value
    input_variation: Value
    output_variation: Value
    cached_share: Value
    batch_limit: Value
    arrivals: Value = default(lambda i: 1.0)
    """Of the closed loop, in which the serving model asks for the times of passes."""


RULES: tuple[Rule[OpenLoopInputs], ...] = SERVING_RULES
