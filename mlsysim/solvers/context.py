"""The rule that a sequence is not longer than the positions of its model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlsysim.core.numeric import Value
from mlsysim.core.types import TransformerModel
from mlsysim.solvers.base import Rule


def within_context(tokens: Callable[[Any], Value], what: str) -> Rule[Any]:
    """Return the rule that a sequence fits into the positions of the model.

    `tokens` counts those of the longest sequence, and `what` names the arguments that decide them.
    """

    def holds(i: Any) -> Value:
        if not isinstance(i.model, TransformerModel):
            return True
        return tokens(i) <= i.model.positions

    return Rule(
        "seq_len",
        holds,
        lambda i: (
            f"{what} = {tokens(i):,.0f} tokens is more than the context of {i.model.name}, "
            f"{i.model.context:,}: shorten the sequence, or state a longer context if the model's "
            f"positions are extended: dataclasses.replace(model, context={tokens(i):.0f})"
        ),
    )
