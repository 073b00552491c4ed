"""Exchange with experts while devices compute: within a batch, or between its two halves."""

from __future__ import annotations

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, is_zero, when, where
from mlsysim.solvers.inference import ExpertPlan, routed_work
from mlsysim.solvers.layer import Device, beside_exchange
from mlsysim.solvers.serving.inputs import ServingInputs
from mlsysim.solvers.serving.links import exchange_times
from mlsysim.solvers.work import mean_over

__all__ = ["batch_parts", "hidden_exchange"]


def batch_parts(i: ServingInputs, each: Value) -> Value:
    """Return into how many parts a rank splits its batch: one that cannot be split stays whole."""
    if is_zero(i.overlap_batches):
        return 1
    split = (i.overlap_batches == 2) & (i.attention_dp > 1) & (each >= 2)
    return where(split, 2.0, 1.0)


def hidden_exchange(
    i: ServingInputs, d: Device, plan: ExpertPlan, tokens: Value, parts: Value, computation: Value
) -> Value:
    """Return the time of a mean layer's exchange that computation hides.

    Two halves of a batch take turns: while one computes a layer, the other one's tokens are on
    their way. Within a single batch, shared experts run while tokens are sent, and the experts'
    last product runs while its first results are sent back.
    """
    experts = any(group.experts is not None for group in i.model.groups)
    if i.links is None or not experts or is_zero(i.overlap_batches):
        return 0
    hidden: list[Value] = []
    for group in i.model.groups:
        if (block := group.experts) is None:
            hidden.append(None)
            continue
        dispatch, combine = exchange_times(i, i.links, block, plan.tokens)
        met = routed_work(d, block, tokens, i.tp_size, plan)
        shared, last = beside_exchange(d, i.model, block, tokens, i.tp_size, met)
        within = _hidden(dispatch, shared) + _hidden(combine, last)
        between = _hidden(dispatch + combine, computation)
        alone = when((i.overlap_batches == 1) & (i.attention_dp > 1), within)
        hidden.append(where(parts > 1, between, alone))
    return mean_over(i.model, hidden)


def _hidden(exchange: Value, cover: Value) -> Value:
    return exchange - f.covered_time(exchange, 1.0, cover)
