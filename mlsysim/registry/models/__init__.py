"""Models: shapes, parameters and work per sample.

Parameters of transformers are counted from the shape, including biases, norms and position
tables, and compared with the published total in the source's note. Operations of the other
models count each multiply-accumulate as two. Activations are the outputs of convolutions and
linear layers; norms and activation functions are taken as fused into them. Input shapes put
channels first.
"""

from mlsysim.registry.models import language, megatron, moe, mpt, recommendation, tiny, vision

__all__ = ["Models"]


class Models(
    language.Language,
    moe.MoE,
    megatron.Megatron,
    mpt.MPT,
    vision.Vision,
    tiny.Tiny,
    recommendation.Recommendation,
):
    """All models: `Models.Llama3_8B` and `Models.Language.Llama3_8B` are the same object."""

    Language = language.Language
    MoE = moe.MoE
    Megatron = megatron.Megatron
    MPT = mpt.MPT
    Vision = vision.Vision
    Tiny = tiny.Tiny
    Recommendation = recommendation.Recommendation
