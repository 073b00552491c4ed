"""Exercises of the error museum: published mistakes, each corrected."""

from __future__ import annotations

from typing import Any

from mlsysim import Q_, Hardware, Models, Quantity, Systems, TransformerModel
from mlsysim.core import formulas as f
from mlsysim_course.answers import AmountAsked, ChoiceAsked, CountAsked, Parts, exercise

# As printed in the accounts that the page names.
_REPORTED_MFU = 1.04
_ISSUE_RATE = Q_(480, "TFLOP/s")
_BUS = Q_(512, "bit")
_TRANSFERS = Q_(6.4e9, "1/s")
_PRINTED_RATE = Q_(400, "Gbit/s")
_CONTEXT = 8192


def _peak(device: str) -> Any:
    return Hardware[device].compute.fp16


def _block_parameters(mlp_matrices: int) -> int:
    """Parameters in the layers' matrices, for a number of matrices per feed-forward block."""
    m = Models.Llama1_7B
    attention = f.attention_parameters(m.hidden_dim, m.heads, m.kv_heads, m.head_dim)
    mlp = f.mlp_parameters(m.hidden_dim, m.ffn_dim, mlp_matrices)
    return int(m.layers * (attention + mlp))


def _cache(model: TransformerModel, context: int, heads: int, head_dim: int) -> Quantity:
    """Keys and values of one sequence in 16 bits."""
    return Q_(2 * model.layers * heads * head_dim * 2 * context, "byte")


@exercise
def _museum_1() -> Parts:
    achieved_rate = _REPORTED_MFU * _peak("A100")
    inverted_ratio = _REPORTED_MFU * _peak("H100") / _peak("A100")
    yield AmountAsked(
        "mfu",
        asks="the utilization of the H100, as a share",
        truth=float(achieved_rate / _peak("H100")),
        hint="The achieved rate is the printed share times the peak that it was divided by.",
        mistakes={
            achieved_rate / (2 * _peak("H100")): "That peak counts structured sparsity, which the "
            "run does not use.",
            inverted_ratio: "At the same rate, a faster device has a lower utilization. "
            "Invert the ratio.",
        },
    )


@exercise
def _museum_2() -> Parts:
    yield AmountAsked(
        "mfu",
        asks="the utilization against the dense peak, as a share",
        truth=float(_ISSUE_RATE / _peak("H100")),
        hint="Divide the rate by the peak of dense matrix products in 16 bits.",
        mistakes={
            _ISSUE_RATE / (2 * _peak("H100")): "You divided by the peak with sparsity, as "
            "the question in the thread did.",
        },
    )
    yield ChoiceAsked(
        "halved",
        asks='whether a script that halves a dense peak prints an MFU that is too `"high"` '
        'or too `"low"`',
        options=("high", "low"),
        truth="high" if 1 / (_peak("A100") / 2) > 1 / _peak("A100") else "low",
        hint="The peak is in the denominator.",
    )


@exercise
def _museum_3() -> Parts:
    yield CountAsked(
        "parameters",
        asks="parameters in the matrices of all layers, without embeddings and norms",
        truth=_block_parameters(Models.Llama1_7B.mlp_matrices),
        hint="Count four square matrices of attention and those of the feed-forward block.",
        mistakes={
            _block_parameters(2): "That is the published count: its feed-forward block lacks "
            "the gate.",
            round(Models.Llama1_7B.parameters.magnitude): "That is the whole network, with its "
            "embeddings and norms.",
        },
    )


@exercise
def _museum_4() -> Parts:
    cache_of_query_heads = _cache(
        Models.Llama3_70B,
        _CONTEXT,
        Models.Llama3_70B.heads,
        Models.Llama3_70B.head_dim,
    )
    cache = Models.Llama3_70B.kv_cache_bytes("bf16", _CONTEXT)
    yield AmountAsked(
        "cache",
        asks="the cache of one sequence",
        unit="GB",
        truth=cache,
        hint="Count keys and values for every layer, every key-value head and every token.",
        mistakes={
            cache_of_query_heads: "You counted the query heads. Several of them share one "
            "key-value head.",
            0.5 * cache: "Keys and values are both cached, and a number in bf16 takes more "
            "than one byte.",
        },
    )


@exercise
def _museum_5() -> Parts:
    cache_of_narrow_heads = _cache(
        Models.Qwen3_4B,
        1,
        Models.Qwen3_4B.kv_heads,
        Models.Qwen3_4B.hidden_dim // Models.Qwen3_4B.heads,
    )
    yield AmountAsked(
        "cache",
        asks="the cache of one token",
        unit="kB",
        truth=Models.Qwen3_4B.kv_bytes_per_token("bf16"),
        hint="Look up `head_dim` in the catalog instead of dividing.",
        mistakes={
            cache_of_narrow_heads: "The width of a head is a separate choice. In this model "
            "it is not the hidden width divided by the number of heads.",
        },
    )


@exercise
def _museum_6() -> Parts:
    half_of_peak = 0.5 * _peak("A100") * Q_(1, "s")
    image = Models.ResNet50.flops_per_sample
    yield AmountAsked(
        "images",
        asks="images per second at half of the A100's peak",
        form=",.0f",
        truth=float(half_of_peak / image),
        hint="Divide half of the peak by the operations of one image.",
        mistakes={
            2 * half_of_peak / image: "A multiplication and an addition are separate operations "
            "in the peak rate.",
        },
    )


@exercise
def _museum_7() -> Parts:
    yield AmountAsked(
        "bandwidth",
        asks="the bandwidth of the memory",
        unit="GB/s",
        tolerance=0.03,  # vendors round it
        truth=_BUS * _TRANSFERS,
        hint="Multiply the width of the bus by the transfers per second, then change units.",
        mistakes={
            _PRINTED_RATE: "That is the printed figure. Compute the bandwidth from the "
            "bus instead.",
            8 * _BUS * _TRANSFERS: "The width of the bus is given in bits.",
        },
    )


@exercise
def _museum_8() -> Parts:
    stages, microbatches = 8, 16
    idle_share = float(f.pipeline_bubble_fraction(stages, microbatches, 1))
    yield AmountAsked(
        "bubble",
        asks="the bubble divided by the busy time of a stage",
        truth=float(f.pipeline_bubble_time(1.0, stages, microbatches, 1)),
        hint="A stage waits for the other stages to fill and drain, once per step.",
        mistakes={
            idle_share: "That is the bubble's share of the whole time, including the "
            "bubble itself.",
        },
    )


@exercise
def _museum_9() -> Parts:
    node, size = Systems.Nodes.DGX_H100, 2 * Models.Llama3_70B.parameters.magnitude
    one_direction = node.scale_up.bandwidth.to("B/s").magnitude

    def all_reduce(bandwidth: float) -> Quantity:
        time = f.ring_all_reduce_time(size, node.accelerators_per_node, bandwidth, 0.0)
        return Q_(float(time), "s")

    yield AmountAsked(
        "time",
        asks="the time of the all-reduce, without latency",
        unit="ms",
        truth=all_reduce(one_direction),
        hint="Use the bandwidth in one direction in the ring's formula.",
        mistakes={
            all_reduce(2 * one_direction): "A ring sends in one direction while it "
            "receives in the other: the printed figure adds them up.",
        },
    )
