"""Publications that the mixtures of experts in `mlsysim.registry.models.moe` cite."""

from mlsysim.core.types import Source

__all__ = [
    "DEEPSEEK_V3",
    "DEEPSEEK_V3_CONTEXT",
    "DEEPSEEK_V3_REPORT",
    "GPT_OSS_LENGTH",
    "HY3",
    "HY3_CARD",
    "KIMI_K2",
    "KIMI_K2_CONTEXT",
    "LENGTH_4K",
    "MINIMAX_M3",
    "MIXTRAL_8X7B",
    "MIXTRAL_8X22B",
    "QWEN3_MOE",
]

_CHECKED = "2026-11-20"

MIXTRAL_8X7B = Source(
    title="Mixtral-8x7B-Instruct-v0.1, config.json",
    url="https://huggingface.co/mistralai/Mixtral-8x7B-Instruct-v0.1/blob/main/config.json",
    checked=_CHECKED,
    note="Counted from the shape: 46,702,792,704 in all, 12.9e9 per token; Mistral AI prints "
    "46.7B and 12.9B.",
)
MIXTRAL_8X22B = Source(
    title="Mixtral-8x22B-Instruct-v0.1, config.json",
    url="https://huggingface.co/mistralai/Mixtral-8x22B-Instruct-v0.1/blob/main/config.json",
    checked=_CHECKED,
    note="Counted from the shape: 140,630,071,296 in all, 39.2e9 per token; Mistral AI prints 141B "
    "and 39B. The base model has 32,000 words in its table, this one 32,768. Quoted from "
    "copies of the file and litgpt's config.py.",
)
QWEN3_MOE = Source(
    title="litgpt, config.py, after the config.json of Qwen3-30B-A3B and Qwen3-235B-A22B",
    url="https://github.com/Lightning-AI/litgpt/blob/2685705/litgpt/config.py",
    locator="qwen_3_moe",
    checked=_CHECKED,
    note="Counted from the shapes: 30,532,122,624 and 235,093,634,560 in all, 3.3e9 and 22.1e9 "
    "per token; the names print 30B-A3B and 235B-A22B.",
)
GPT_OSS_LENGTH = Source(
    title="gpt-oss, reference implementation",
    url="https://github.com/openai/gpt-oss/blob/a194b990f370fe9976bed6e6468a6d549b13c2fd/gpt_oss/torch/model.py",
    locator="ModelConfig.initial_context_length",
    checked=_CHECKED,
    note="4,096, the length before RoPE scaling",
)
DEEPSEEK_V3 = Source(
    title="DeepSeek-V3, config_671B.json and README_WEIGHTS.md",
    url="https://github.com/deepseek-ai/DeepSeek-V3/blob/9b4e978/inference/configs/config_671B.json",
    checked=_CHECKED,
    note="Counted from the published shape: 671,026,419,200 in all; the authors print 671B, and "
    "36.7B per token. The layer that predicts a second token, `mtp_parameters`, is counted "
    "separately.",
)
DEEPSEEK_V3_REPORT = Source(
    title="DeepSeek-V3 Technical Report",
    url="https://arxiv.org/abs/2412.19437",
    locator="sections 2.2 and 4.2",
    checked="2026-11-23",
    note="one layer for multi-token prediction; its config.json states one too",
)
HY3 = Source(
    title="transformers, HYV3Config: defaults, which are those of tencent/Hy3-preview",
    url="https://github.com/huggingface/transformers/blob/008e574/src/transformers/models/hy_v3/"
    "configuration_hy_v3.py",
    checked="2026-11-23",
    note="Counted from the shape, with routers and norms: 295.0e9 in all; the model card prints "
    "295B, and 21B per token.",
)
HY3_CARD = Source(
    title="Hy3 preview, model card",
    url="https://cnb.cool/ai-models/tencent/Hy3-preview",
    locator="first table",
    checked="2026-11-23",
    note="256K tokens of context, and one layer for multi-token prediction with 3.8B parameters",
)
MINIMAX_M3 = Source(
    title="MiniMaxAI/MiniMax-M3, config.json, as quoted in aiconfigurator",
    url="https://github.com/ai-dynamo/aiconfigurator/blob/095f58a/aic-core/src/"
    "aiconfigurator_core/model_configs/MiniMaxAI--MiniMax-M3_config.json",
    checked="2026-11-23",
    note="Without the vision tower. News of its release print 428B in all and 23B per token. The "
    "indexer chooses blocks of 128 keys by their best one; here it chooses keys.",
)
KIMI_K2 = Source(
    title="Megatron Bridge, KimiK2Provider",
    url="https://docs.nvidia.com/nemo/megatron-bridge/latest/apidocs/bridge/bridge.models.kimi.kimi_provider.html",
    checked=_CHECKED,
    note="Counted from the published shape, with DeepSeek-V3's ranks, which Kimi K2 keeps: "
    "1,026,408,232,448 in all; the model card prints 1T, and 32B per token. 163,840 words: "
    "config.json of Kimi-K2-Instruct-0905.",
)
LENGTH_4K = Source(
    title="Megatron Bridge, performance summary",
    url="https://github.com/NVIDIA-NeMo/Megatron-Bridge/blob/067f987/docs/performance-summary-archive.md",
    locator="rows DeepSeekV3, column Sequence Length",
    checked=_CHECKED,
    note="4,096, the length in NVIDIA's training benchmarks",
)
DEEPSEEK_V3_CONTEXT = Source(
    title="DeepSeek-V3, config.json, as quoted in aiconfigurator",
    url="https://github.com/ai-dynamo/aiconfigurator/blob/095f58a/aic-core/src/"
    "aiconfigurator_core/model_configs/deepseek-ai--DeepSeek-V3_config.json",
    locator="max_position_embeddings",
    checked="2026-11-23",
    note="163,840 positions",
)
KIMI_K2_CONTEXT = Source(
    title="Kimi-K2-Instruct, config.json, as quoted in aiconfigurator",
    url="https://github.com/ai-dynamo/aiconfigurator/blob/095f58a/aic-core/src/"
    "aiconfigurator_core/model_configs/moonshotai--Kimi-K2-Instruct_config.json",
    locator="max_position_embeddings",
    checked="2026-11-23",
    note="131,072 positions",
)
