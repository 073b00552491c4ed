"""Exercises of the tutorial "Mixtures of experts"."""

from __future__ import annotations

from typing import Any

from mlsysim import Hardware, Models, ServingResult, ServingSolver, TransformerModel
from mlsysim.core import formulas as f
from mlsysim_course.answers import AmountAsked, ChoiceAsked, Parts, exercise

_DENSE, _MIXTURE = Models.Qwen3_32B, Models.Qwen3_30B_A3B


def _chat(model: TransformerModel, users: int = 1, **given: Any) -> ServingResult:
    return ServingSolver.solve(
        model=model,
        hardware=Hardware.H200,
        precision="bf16",
        seq_len=1024,
        output_len=256,
        efficiency=0.5,
        batch_size=users,
        **given,
    )


def _gain(users: int) -> float:
    return float(_chat(_DENSE, users).itl / _chat(_MIXTURE, users).itl)


def _claim() -> float:
    return float(_DENSE.parameters / _MIXTURE.active_parameters)


@exercise
def _mixtures_1() -> Parts:
    routed_share = Models.DeepSeek_V3.experts_per_token / Models.DeepSeek_V3.experts
    yield AmountAsked(
        "share",
        asks="the share of the parameters that are active",
        truth=float(Models.DeepSeek_V3.active_parameters / Models.DeepSeek_V3.parameters),
        hint="The catalog has `active_parameters` and `parameters`.",
        mistakes={
            routed_share: "That is the share of the routed experts. Attention and one shared "
            "expert process every token.",
        },
    )


@exercise
def _mixtures_2() -> Parts:
    yield AmountAsked(
        "experts",
        asks="the mean number of experts that are read",
        truth=float(f.experts_visited(8, 2, 4)),
        hint="Put the numbers into the tutorial's equation.",
        mistakes={
            8.0: "Some users choose the same experts.",
            2.0: "That is for one user.",
        },
    )


@exercise
def _mixtures_3() -> Parts:
    wide, narrow = (_chat(_MIXTURE, 32, weight_precision=form) for form in ("bf16", "fp8"))
    factor = float(wide.itl / narrow.itl)
    yield AmountAsked(
        "factor",
        asks="the ratio of the old token time to the new one",
        truth=factor,
        hint="The weights are only part of the bytes that a step reads.",
        mistakes={
            2.0: "That would be right if a step read only weights.",
            1 / factor: "That is the ratio of the new time to the old one.",
        },
    )


@exercise
def _mixtures_4() -> Parts:
    dense, mixture = _chat(_DENSE), _chat(_MIXTURE)
    users = mixture.max_batch_size / dense.max_batch_size
    weights = abs(1 - float(dense.model_weights_size / mixture.model_weights_size))
    cache = abs(1 - float(dense.kv_cache_size / mixture.kv_cache_size))
    yield AmountAsked(
        "users",
        asks="the ratio of users with the mixture to users with the dense model",
        truth=users,
        hint="Compare `max_batch_size`.",
        mistakes={
            _claim(): "Inactive parameters take memory as well.",
            1 / users: "Invert the ratio.",
        },
    )
    yield ChoiceAsked(
        "part",
        asks='what decides: `"weights"` or `"cache"`',
        options=("weights", "cache"),
        truth="cache" if cache > weights else "weights",
        hint="Which of the two differs between the models?",
    )


@exercise
def _mixtures_5() -> Parts:
    yield AmountAsked(
        "ratio",
        asks="the ratio of the dense model's GPU-seconds to the mixture's",
        truth=_gain(64),
        hint="With equal batches, this is the ratio of the token times.",
        mistakes={
            _claim(): "Compute is not the limit of decode here.",
            _gain(1): "That is for one user.",
        },
    )
