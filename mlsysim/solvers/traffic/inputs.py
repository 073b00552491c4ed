"""Inputs of open-loop serving."""

from __future__ import annotations

import math
from typing import Any

from mlsysim.core.inputs import default
from mlsysim.core.numeric import Value
from mlsysim.solvers.base import Rule
from mlsysim.solvers.serving.inputs import RULES as SERVING_RULES
from mlsysim.solvers.serving.inputs import ServingInputs

__all__ = ["RULES", "OpenLoopInputs"]


class OpenLoopInputs(ServingInputs):
    """Inputs of open-loop serving: the arguments of `OpenLoopSolver.solve`, and constants."""

    arrival_rate: Value
    burstiness: Value
    input_variation: Value
    output_variation: Value
    cached_share: Value
    batch_limit: Value
    efficiency: Value = default(lambda i: math.nan)


def _whole_token(name: str) -> Rule[OpenLoopInputs]:
    return Rule(
        name,
        lambda i: getattr(i, name) >= 1,
        lambda i: f"{name} = {getattr(i, name):g} is a mean of less than a token: give at least 1",
    )


RULES: tuple[Rule[Any], ...] = (
    *SERVING_RULES,
    _whole_token("seq_len"),
    _whole_token("output_len"),
)
