"""Other models with published weights."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import (
    Attention,
    Experts,
    FeedForward,
    Layers,
    LinearAttention,
    TopKeys,
    TransformerModel,
    cite,
)
from mlsysim.core.units import Q_
from mlsysim.registry.models.published import published

__all__ = ["OpenModels"]


class OpenModels(Catalog):
    """Other models with published weights."""

    Llama3_2_1B = published("meta-llama/Llama-3.2-1B", name="Llama 3.2 1B", seq_len=4_096)
    """Input and output share a table."""

    Llama3_2_3B = published("meta-llama/Llama-3.2-3B", name="Llama 3.2 3B", seq_len=4_096)
    """Input and output share a table."""

    Llama4_Scout = published(
        "meta-llama/Llama-4-Scout-17B-16E-Instruct", name="Llama 4 Scout", seq_len=4_096
    )
    """16 experts in each layer; three layers of four attend in chunks. Towers are not counted."""

    Llama4_Maverick = published(
        "meta-llama/Llama-4-Maverick-17B-128E-Instruct", name="Llama 4 Maverick", seq_len=4_096
    )
    """128 experts in every other layer. Towers are not counted."""

    TinyLlama_1_1B = published("TinyLlama/TinyLlama-1.1B-Chat-v1.0", name="TinyLlama 1.1B")
    """Llama's design at a size for experiments."""

    SmolLM2_135M = published("HuggingFaceTB/SmolLM2-135M", name="SmolLM2 135M")
    """30 narrow layers."""

    SmolLM2_360M = published("HuggingFaceTB/SmolLM2-360M", name="SmolLM2 360M")
    """32 narrow layers."""

    LFM2_1_2B = published("LiquidAI/LFM2-1.2B", name="LFM2 1.2B", seq_len=4_096)
    """Ten of sixteen layers are short convolutions. LFM2.5 1.2B has the same shape."""

    LFM2_350M = published("LiquidAI/LFM2-350M", name="LFM2 350M", seq_len=4_096)
    """Ten of sixteen layers are short convolutions. LFM2.5 350M has the same shape."""

    LFM2_8B_A1B = published("LiquidAI/LFM2-8B-A1B", name="LFM2 8B-A1B", seq_len=4_096)
    """32 experts, four per token; 18 of 24 layers are short convolutions."""

    SmolLM3_3B = published("HuggingFaceTB/SmolLM3-3B", name="SmolLM3 3B", seq_len=4_096)
    """Every fourth layer has no rotary positions, which changes no count."""

    DeepSeek_MoE_16B = published("deepseek-ai/deepseek-moe-16b-base", name="DeepSeekMoE 16B")
    """64 small experts, six per token, and two shared ones."""

    DeepSeek_V2_Lite = published(
        "deepseek-ai/DeepSeek-V2-Lite", name="DeepSeek-V2-Lite", seq_len=4_096
    )
    """The smallest model with latent attention."""

    DeepSeek_V3_2 = published(
        "deepseek-ai/DeepSeek-V3.2", name="DeepSeek-V3.2", seq_len=4_096, length=cite("length_4k")
    )
    """DeepSeek-V3 with an indexer, which selects 2,048 tokens to attend to."""

    Kimi_K3 = published("moonshotai/Kimi-K3", name="Kimi K3", seq_len=4_096)
    """896 experts, 16 per token, of half the model's width. Three of four layers are linear. The
    vision tower is not counted; attention over earlier residuals is counted, but not timed."""

    Kimi_K2_5 = published("moonshotai/Kimi-K2.5", name="Kimi K2.5", seq_len=4_096)
    """The shape of Kimi K2, with a vision tower that is not counted."""

    GLM_4_5 = published("zai-org/GLM-4.5", name="GLM-4.5", seq_len=4_096)
    """160 experts, eight per token, and a shared one; the first three layers are dense."""

    GLM_4_5_Air = published("zai-org/GLM-4.5-Air", name="GLM-4.5-Air", seq_len=4_096)
    """Like GLM-4.5, but narrower and half as deep."""

    GLM_4_7_Flash = published("zai-org/GLM-4.7-Flash", name="GLM-4.7-Flash", seq_len=4_096)
    """64 experts, four per token, and a shared one, with latent attention."""

    GLM_5 = published("zai-org/GLM-5", name="GLM-5", seq_len=4_096)
    """Latent attention with an indexer, as in DeepSeek-V3.2."""

    GLM_5_2 = published("zai-org/GLM-5.2", name="GLM-5.2", seq_len=4_096)
    """GLM-5, in which only 21 of 78 layers have an indexer; the others reuse its choice."""

    ERNIE_4_5_21B_A3B = published(
        "baidu/ERNIE-4.5-21B-A3B-PT", name="ERNIE 4.5 21B-A3B", seq_len=4_096
    )
    """64 experts, six per token, and two shared ones; the first layer is dense."""

    Granite_4_H_Small = published(
        "ibm-granite/granite-4.0-h-small", name="Granite 4.0 H Small", seq_len=4_096
    )
    """Mamba-2 in nine of ten layers, and 72 experts in all of them."""

    MiniMax_M2_5 = published("MiniMaxAI/MiniMax-M2.5", name="MiniMax-M2.5", seq_len=4_096)
    """256 experts, eight per token. M2.7 has the same shape."""

    MiniMax_M3 = TransformerModel(
        name="MiniMax-M3",
        source=cite("minimax_m3"),
        estimated=frozenset({"seq_len"}),
        hidden_dim=6_144,
        vocab_size=200_064,
        seq_len=4_096,
        context=1_048_576,
        stack=(
            Layers(
                count=3,
                attention=Attention(heads=64, kv_heads=4, head_dim=128),
                feed_forward=FeedForward(width=12_288, gated=True),
            ),
            Layers(
                count=57,
                attention=Attention(
                    heads=64,
                    kv_heads=4,
                    head_dim=128,
                    reach=TopKeys(tokens=2_048, heads=4, head_dim=128),
                ),
                feed_forward=Experts(
                    count=128, per_token=4, width=3_072, shared_width=3_072, gated=True
                ),
            ),
        ),
    )
    """128 experts, four per token, and a shared one. All layers but the first three attend to the
    16 blocks of 128 tokens that an indexer selects. The row leaves out the
    layers for multi-token prediction: the file states both 1 and 7 of them."""

    OLMo2_7B = published("allenai/OLMo-2-1124-7B", name="OLMo 2 7B")
    """Every head has its own keys and values."""

    OLMo2_13B = published("allenai/OLMo-2-1124-13B", name="OLMo 2 13B")
    """Like OLMo 2 7B, but deeper and wider."""

    OLMo2_32B = published("allenai/OLMo-2-0325-32B", name="OLMo 2 32B")
    """Eight heads of keys and values."""

    Olmo_Hybrid_7B = TransformerModel(
        name="Olmo Hybrid 7B",
        source=cite("olmo_hybrid"),
        hidden_dim=3_840,
        vocab_size=100_352,
        seq_len=8_192,
        context=65_536,
        estimated=frozenset({"seq_len"}),
        stack=(
            Layers(
                at=tuple(place for place in range(32) if place % 4 != 3),
                attention=LinearAttention(
                    heads=30,
                    key_heads=30,
                    key_dim=96,
                    value_dim=192,
                    conv_width=4,
                    gates=2,
                    delta_rule=True,
                ),
                feed_forward=FeedForward(width=11_008, gated=True),
            ),
            Layers(
                at=range(3, 32, 4),
                attention=Attention(heads=30, kv_heads=30, head_dim=128),
                feed_forward=FeedForward(width=11_008, gated=True),
            ),
        ),
    )
    """Gated DeltaNet in three of four layers. The length of its training is assumed to be that of
    OLMo 3."""

    Olmo3_1_32B = published("allenai/Olmo-3.1-32B-Instruct", name="Olmo 3.1 32B", seq_len=4_096)
    """Three layers of four have a window of 4,096 tokens."""

    Phi3_5_Mini = published("microsoft/Phi-3.5-mini-instruct", name="Phi-3.5 mini", seq_len=4_096)
    """3.8 billion parameters, with keys and values for all heads."""

    Phi3_5_MoE = published("microsoft/Phi-3.5-MoE-instruct", name="Phi-3.5 MoE", seq_len=4_096)
    """16 experts, two per token."""

    Phi_4_Mini = published("microsoft/Phi-4-mini-instruct", name="Phi-4 mini", seq_len=4_096)
    """Dense, with a vocabulary of 200,064; input and output share a table."""

    Phi_4 = published("microsoft/phi-4", name="Phi-4", seq_len=4_096)
    """Dense, 14.7 billion parameters."""

    StarCoder2_7B = published("bigcode/starcoder2-7b", name="StarCoder2 7B", seq_len=4_096)
    """For code; every layer has a window of 4,096 tokens."""

    CodeLlama_34B = published("codellama/CodeLlama-34b-hf", name="Code Llama 34B", seq_len=4_096)
    """For code; Llama 2's design with eight heads of keys and values."""

    GPT2_Medium = published("openai-community/gpt2-medium", name="GPT-2 medium")
    """The second smallest GPT-2."""

    GPT_J_6B = published("EleutherAI/gpt-j-6b", name="GPT-J 6B")
    """Attention and the feed-forward block run side by side."""

    GPT_NeoX_20B = published("EleutherAI/gpt-neox-20b", name="GPT-NeoX 20B")
    """Attention and the feed-forward block run side by side."""

    Falcon_180B = published("tiiuae/falcon-180B", name="Falcon 180B")
    """Falcon 40B's design, wider and deeper, with an output table of its own."""

    Falcon_40B = published("tiiuae/falcon-40b", name="Falcon 40B")
    """Eight heads of keys and values for 128 of queries."""

    BLOOM_176B = published("bigscience/bloom", name="BLOOM 176B")
    """Dense, multilingual; positions are biases of the scores."""

    BLOOM_7B1 = published("bigscience/bloom-7b1", name="BLOOM 7.1B")
    """BLOOM's design at 7.1 billion parameters; half a billion of them are embeddings."""

    OPT_6_7B = published("facebook/opt-6.7b", name="OPT 6.7B")
    """Learned positions, no gate, and keys and values for all heads."""

    Aquila_7B = TransformerModel(
        name="Aquila-7B",
        source=cite("aquila"),
        layers=32,
        hidden_dim=4_096,
        heads=32,
        kv_heads=32,
        head_dim=128,
        ffn_dim=11_008,
        gated_mlp=True,
        vocab_size=100_008,
        seq_len=2_048,
        context=2_048,
    )
    """Llama's design with a vocabulary of 100,008."""

    DeciLM_7B = TransformerModel(
        name="DeciLM-7B",
        source=cite("decilm"),
        parameters=Q_(7_043_551_232, "param"),
        hidden_dim=4_096,
        vocab_size=32_000,
        seq_len=8_192,
        context=8_192,
        stack=(
            Layers(
                at=(0, 1, 2, 3, 4, 10, 31),
                attention=Attention(heads=32, kv_heads=4, head_dim=128),
                feed_forward=FeedForward(width=14_336, gated=True),
            ),
            Layers(
                at=(5, 6, 7, 8, 9, *range(11, 20)),
                attention=Attention(heads=32, kv_heads=2, head_dim=128),
                feed_forward=FeedForward(width=14_336, gated=True),
            ),
            Layers(
                at=range(20, 31),
                attention=Attention(heads=32, kv_heads=1, head_dim=128),
                feed_forward=FeedForward(width=14_336, gated=True),
            ),
        ),
    )
    """Four, two or one heads of keys and values per layer, chosen by an architecture search."""

    BERT_Large = published("google-bert/bert-large-uncased", name="BERT-Large")
    """BERT-Large, uncased: an encoder."""

    ModernBERT_Base = published("answerdotai/ModernBERT-base", name="ModernBERT base")
    """An encoder; two layers of three have a window of 128 tokens."""

    Jamba_v0_1 = published("ai21labs/Jamba-v0.1", name="Jamba v0.1", seq_len=4_096)
    """One layer in eight has attention, the others have states; every other layer has experts."""

    DBRX = published("databricks/dbrx-base", name="DBRX", seq_len=4_096)
    """16 experts, four per token."""

    Command_R = published("CohereLabs/c4ai-command-r-v01", name="Command R", seq_len=4_096)
    """35 billion parameters, with keys and values for all heads."""

    Aya_23_8B = published("CohereLabs/aya-23-8B", name="Aya 23 8B")
    """Command R's design at 8 billion parameters."""

    EXAONE_4_32B = published("LGAI-EXAONE/EXAONE-4.0-32B", name="EXAONE 4.0 32B", seq_len=4_096)
    """Three layers of four have a window of 4,096 tokens."""

    InternLM2_7B = published("internlm/internlm2-7b", name="InternLM2 7B", seq_len=4_096)
    """Llama's design with a larger vocabulary."""

    ChatGLM3_6B = published("THUDM/chatglm3-6b", name="ChatGLM3 6B")
    """Two heads of keys and values."""

    Baichuan2_7B = published("baichuan-inc/Baichuan2-7B-Chat", name="Baichuan 2 7B")
    """Llama's design with a vocabulary of 125,696."""

    Orion_14B = published("OrionStarAI/Orion-14B-Base", name="Orion 14B")
    """40 layers, with keys and values for all heads."""

    StableLM_3B = published("stabilityai/stablelm-3b-4e1t", name="StableLM 3B")
    """Trained on one trillion tokens for four epochs."""

    StableLM2_1_6B = published("stabilityai/stablelm-2-1_6b", name="StableLM 2 1.6B")
    """24 layers."""
