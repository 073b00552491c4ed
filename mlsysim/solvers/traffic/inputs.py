"""Arguments and inputs of open-loop serving."""

from __future__ import annotations

import math
from typing import Annotated, Any

from mlsysim.core.inputs import default
from mlsysim.core.numeric import Value, zero_like
from mlsysim.core.types import ServingCalibration
from mlsysim.registry.calibration.serving import serving_calibration_for
from mlsysim.solvers.arguments import Amount, Whole
from mlsysim.solvers.base import Rule
from mlsysim.solvers.serving.inputs import (
    NOTHING_TO_LOAD,
    ColocatedArguments,
    Format,
    Only,
    ServingInputs,
    Size,
    unused,
)
from mlsysim.solvers.serving.inputs import RULES as SERVING_RULES
from mlsysim.solvers.signatures import marked

ROLES = {name: name for name in ("both", "prefill", "decode")}
"""The role of an engine: all of a request, or the part of one pool."""


class OpenLoopArguments(ColocatedArguments[Size, Format], total=False):
    """Arguments of an engine at which requests arrive by themselves.

    Attributes
    ----------
    turn_tokens
        Mean new tokens per prompt after the first, in addition to the previous answer.
    batch_limit
        Most sequences that the engine runs at once, such as vLLM's `max_num_seqs`. Memory may allow
        fewer.
    """

    turn_tokens: Annotated[float | None, Amount(unit="token", plain=True, default=None)]
    batch_limit: Annotated[Size, Whole(default=256)]


ONLY = {
    "prefill": marked(OpenLoopArguments, Only.PREFILL),
    "decode": marked(OpenLoopArguments, Only.DECODE),
}
"""Arguments that have an effect in only one of two pools, by its role."""


class OpenLoopInputs(ServingInputs):
    """Inputs of open-loop serving: the arguments of `OpenLoopSolver.solve`, and constants."""

    batch_size: Value = default(lambda i: 1.0)
    arrivals: Value = default(lambda i: 1.0)

    arrival_rate: Value
    burstiness: Value
    input_variation: Value
    output_variation: Value
    batch_limit: Value
    role: str = default(lambda i: "both")
    _role: tuple[str, ...] = default(lambda i: (i.role,))
    """The role as structure: rows of a sweep with different ones are computed separately."""
    efficiency: Value = default(lambda i: math.nan)
    calibration: ServingCalibration = default(
        lambda i: serving_calibration_for(i.device, pools=i.role != "both")
    )

    @property
    def answer(self) -> Value:
        """Tokens of an answer that the engine generates: only the first in a prefill pool."""
        if self.role == "both":
            return self.output_len
        return self.output_len - 1 if self.role == "decode" else zero_like(self.output_len) + 1

    @property
    def kept_output(self) -> Value:
        """Tokens of an answer that stay in the prefix cache: the decode pool keeps none of them."""
        return zero_like(self.output_len) if self.role == "prefill" else self.output_len


def _whole_token(name: str) -> Rule[OpenLoopInputs]:
    return Rule(
        name,
        lambda i: getattr(i, name) >= 1,
        lambda i: (
            f"{name} = {getattr(i, name):g} is a mean of less than one token: give at least 1"
        ),
    )


_WITHOUT = {
    "prefill": ("decode", "receives the keys and values of whole prompts"),
    "decode": ("prefill", "generates one token of each answer"),
}
"""The pool in which the arguments of the other one have no effect, and why."""


def _of_one_pool(name: str, role: str) -> Rule[OpenLoopInputs]:
    other, why = _WITHOUT[role]
    left_out = unused(name)
    return Rule(
        name,
        lambda i: (i.role != other) | left_out(i),
        lambda i: (
            f"{name} = {getattr(i, name):g} has no effect with role = {other!r}, because a {other} "
            f"pool {why}: leave it out"
        ),
    )


RULES: tuple[Rule[Any], ...] = (
    *SERVING_RULES,
    _whole_token("seq_len"),
    _whole_token("output_len"),
    NOTHING_TO_LOAD,
    *(_of_one_pool(name, role) for role, names in ONLY.items() for name in names),
    Rule(
        "output_len",
        lambda i: (i.role != "decode") | (i.output_len >= 2),
        lambda i: (
            f"output_len = {i.output_len:g} leaves no tokens for a decode pool, because the "
            "prefill pool generates the first token: give at least 2"
        ),
    ),
)
