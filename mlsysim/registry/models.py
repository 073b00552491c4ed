"""Models: shapes, parameters and work per sample.

Parameters of transformers are counted from the shape, biases, norms and position tables
included, and compared with the published total in the source's note. Operations of the other
models count each multiply-accumulate as two. Activations are the outputs of convolutions and
linear layers; norms and activation functions are taken as fused into them. Input shapes put
channels first.
"""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import FixedShapeModel, TransformerModel
from mlsysim.core.units import Q_
from mlsysim.registry.sources import models as src

__all__ = ["Models"]


class Language(Catalog):
    """Transformers for text."""

    GPT2 = TransformerModel(
        name="GPT-2",
        source=src.GPT2_XL,
        parameters=Q_(1_557_611_200, "param"),
        layers=48,
        hidden_dim=1600,
        heads=25,
        kv_heads=25,
        head_dim=64,
        ffn_dim=6400,
        vocab_size=50_257,
        seq_len=1024,
        tied_embeddings=True,
    )
    """The largest GPT-2, of 1.5 billion parameters."""

    GPT3 = TransformerModel(
        name="GPT-3",
        source=src.GPT3_PAPER,
        parameters=Q_(174_604_259_328, "param"),
        layers=96,
        hidden_dim=12_288,
        heads=96,
        kv_heads=96,
        head_dim=128,
        ffn_dim=49_152,
        vocab_size=50_257,
        seq_len=2048,
        tied_embeddings=True,
    )
    """GPT-3 175B."""

    GPT4 = TransformerModel(
        name="GPT-4 (unofficial)",
        source=src.GPT4_REPORTS,
        estimated=frozenset(
            {
                "parameters",
                "layers",
                "hidden_dim",
                "heads",
                "kv_heads",
                "head_dim",
                "ffn_dim",
                "gated_mlp",
                "vocab_size",
                "seq_len",
                "tied_embeddings",
            }
        ),
        parameters=Q_(1.8e12, "param"),
        layers=120,
        hidden_dim=10_752,
        heads=96,
        kv_heads=96,
        head_dim=112,
        ffn_dim=2 * 43_008,
        vocab_size=100_277,
        seq_len=8192,
    )
    """Reported, never published. A mixture of experts: `ffn_dim` is that of the two experts
    which a token visits, so that the shape yields the reported 280e9 active parameters, while
    `parameters` counts all that are stored."""

    BERT_Base = TransformerModel(
        name="BERT-Base",
        source=src.BERT_CONFIG,
        parameters=Q_(109_482_240, "param"),
        layers=12,
        hidden_dim=768,
        heads=12,
        kv_heads=12,
        head_dim=64,
        ffn_dim=3072,
        vocab_size=30_522,
        seq_len=512,
        tied_embeddings=True,
        causal=False,
    )
    """BERT-Base, uncased: an encoder."""

    Llama2_70B = TransformerModel(
        name="Llama 2 70B",
        source=src.LLAMA2_SHAPE,
        field_sources={"seq_len": src.LLAMA2_MODEL_CARD},
        parameters=Q_(68_976_648_192, "param"),
        layers=80,
        hidden_dim=8192,
        heads=64,
        kv_heads=8,
        head_dim=128,
        ffn_dim=28_672,
        gated_mlp=True,
        vocab_size=32_000,
        seq_len=4096,
    )
    """Llama 2 70B: grouped-query attention, 69 billion parameters by count."""

    Llama3_8B = TransformerModel(
        name="Llama 3 8B",
        source=src.LLAMA3_SHAPE,
        field_sources={"seq_len": src.LLAMA3_MODEL_CARD},
        parameters=Q_(8_030_261_248, "param"),
        layers=32,
        hidden_dim=4096,
        heads=32,
        kv_heads=8,
        head_dim=128,
        ffn_dim=14_336,
        gated_mlp=True,
        vocab_size=128_256,
        seq_len=8192,
    )
    """Llama 3 8B; Llama 3.1 8B has the same shape."""

    Llama3_70B = TransformerModel(
        name="Llama 3 70B",
        source=src.LLAMA3_SHAPE,
        field_sources={"seq_len": src.LLAMA3_MODEL_CARD},
        parameters=Q_(70_553_706_496, "param"),
        layers=80,
        hidden_dim=8192,
        heads=64,
        kv_heads=8,
        head_dim=128,
        ffn_dim=28_672,
        gated_mlp=True,
        vocab_size=128_256,
        seq_len=8192,
    )
    """Llama 3 70B; Llama 3.1 70B and 3.3 70B have the same shape."""


class Vision(Catalog):
    """Convolutional networks for images."""

    ResNet50 = FixedShapeModel(
        name="ResNet-50",
        source=src.RESNET50,
        parameters=Q_(25_557_032, "param"),
        flops_per_sample=Q_(2 * 4_089_184_256, "flop"),
        activations_per_sample=Q_(11_114_984, "count"),
        input_shape=(3, 224, 224),
    )
    """ResNet-50 (v1.5) for 1,000 classes."""

    MobileNetV2 = FixedShapeModel(
        name="MobileNetV2",
        source=src.MOBILENET_V2,
        parameters=Q_(3_504_872, "param"),
        flops_per_sample=Q_(2 * 300_774_272, "flop"),
        activations_per_sample=Q_(6_679_112, "count"),
        input_shape=(3, 224, 224),
    )
    """MobileNetV2 of width 1.0 for 1,000 classes."""

    YOLOv8_Nano = FixedShapeModel(
        name="YOLOv8-Nano",
        source=src.YOLOV8,
        parameters=Q_(3_157_200, "param"),
        flops_per_sample=Q_(2 * 4_371_993_600, "flop"),
        activations_per_sample=Q_(15_131_200, "count"),
        input_shape=(3, 640, 640),
    )
    """YOLOv8n, a detector for 80 classes."""

    AlexNet = FixedShapeModel(
        name="AlexNet",
        source=src.ALEXNET_DEFINITION,
        parameters=Q_(61_100_840, "param"),
        flops_per_sample=Q_(2 * 714_188_480, "flop"),
        activations_per_sample=Q_(494_184, "count"),
        input_shape=(3, 224, 224),
    )
    """AlexNet: most parameters in linear layers, most work in convolutions."""


class Tiny(Catalog):
    """Networks for microcontrollers."""

    DS_CNN = FixedShapeModel(
        name="DS-CNN",
        source=src.TINY_KEYWORDS,
        parameters=Q_(23_756, "param"),
        flops_per_sample=Q_(2 * 2_656_768, "flop"),
        activations_per_sample=Q_(72_012, "count"),
        input_shape=(1, 49, 10),
    )
    """Keyword spotting: one second of speech, 12 classes."""

    WakeVision = FixedShapeModel(
        name="Wake Vision",
        source=src.WAKE_VISION,
        parameters=Q_(240_674, "param"),
        flops_per_sample=Q_(2 * 35_923_872, "flop"),
        activations_per_sample=Q_(2_277_914, "count"),
        input_shape=(3, 224, 224),
    )
    """Person detection: is anybody in the picture?"""

    AnomalyDetector = FixedShapeModel(
        name="Anomaly detector",
        source=src.TINY_ANOMALY,
        parameters=Q_(267_928, "param"),
        flops_per_sample=Q_(2 * 264_192, "flop"),
        activations_per_sample=Q_(1672, "count"),
        input_shape=(640,),
    )
    """Machine sounds: an autoencoder that fails to reproduce what it never heard."""


class Recommendation(Catalog):
    """Recommenders, whose parameters are tables that a sample hardly touches."""

    DLRM = FixedShapeModel(
        name="DLRM",
        source=src.DLRM_MLPERF,
        parameters=Q_(24_036_595_969, "param"),
        flops_per_sample=Q_(2 * (2_365_184 + 44_928), "flop"),
        activations_per_sample=Q_(7392, "count"),
        dense_parameters=Q_(2_368_897, "param"),
        gathered_parameters=Q_(26 * 128, "param"),
        input_shape=(13 + 26,),
    )
    """DLRM as in MLPerf: 24e9 embedding parameters, 2.4e6 in the two MLPs. A sample reads one
    row of each of the 26 tables and all of the MLPs."""


class Models(Language, Vision, Tiny, Recommendation):
    """All models, by name and by kind."""

    Language = Language
    Vision = Vision
    Tiny = Tiny
    Recommendation = Recommendation
