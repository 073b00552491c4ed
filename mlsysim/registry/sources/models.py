"""Publications that the rows of `mlsysim.registry.models` cite."""

from mlsysim.core.types import Source

__all__ = [
    "ALEXNET_DEFINITION",
    "AQUILA",
    "BERT_CONFIG",
    "DECILM",
    "DLRM_MLPERF",
    "GPT2_XL",
    "GPT3_PAPER",
    "GPT4_REPORTS",
    "LLAMA1",
    "LLAMA2_MODEL_CARD",
    "LLAMA2_SHAPE",
    "LLAMA2_SMALL",
    "LLAMA3_405B",
    "LLAMA3_CONTEXT",
    "LLAMA3_MODEL_CARD",
    "LLAMA3_SHAPE",
    "MEGATRON",
    "MEGATRON_LARGE",
    "MISTRAL_7B_CONTEXT",
    "MOBILENET_V2",
    "MPT",
    "NEMOTRON4",
    "OLMO_HYBRID",
    "QWEN3_32B",
    "QWEN3_CONTEXT",
    "QWEN3_REPORT",
    "RESNET50",
    "TINY_ANOMALY",
    "TINY_IMAGES",
    "TINY_KEYWORDS",
    "TINY_PERSONS",
    "WAKE_VISION",
    "YOLOV8",
]

_CHECKED = "2026-11-20"

GPT2_XL = Source(
    title="nanoGPT, model.py: shapes of the published GPT-2 checkpoints",
    url="https://github.com/karpathy/nanoGPT/blob/3adf61e/model.py",
    locator="GPT.from_pretrained",
    checked=_CHECKED,
    note="Counted from the shape: 1,557,611,200, printed there as 1558M. OpenAI's model card "
    "says 1.5 billion.",
)
GPT3_PAPER = Source(
    title="Brown et al. 2020, Language Models are Few-Shot Learners",
    url="https://arxiv.org/abs/2005.14165",
    locator="Table 2.1, row 'GPT-3 175B'",
    checked=_CHECKED,
    note="Counted from the shape, with GPT-2's vocabulary and biases: 174.6e9; the paper prints "
    "175.0B. Every other layer has banded attention; the row treats all layers as dense.",
)
GPT4_REPORTS = Source(
    title="The Decoder 2023, GPT-4 architecture, datasets, costs and more leaked",
    url="https://the-decoder.com/gpt-4-architecture-datasets-costs-and-more-leaked/",
    locator="summary of the SemiAnalysis report",
    checked=_CHECKED,
    note="OpenAI has published no size. The reports say about 1.8e12 parameters, 120 layers, "
    "16 experts of about 111e9 each, 2 of them per token, about 55e9 shared for attention. "
    "Widths are solved from these totals.",
)
BERT_CONFIG = Source(
    title="bert-base-uncased, config.json",
    url="https://huggingface.co/google-bert/bert-base-uncased/blob/main/config.json",
    checked=_CHECKED,
    note="Counted from the shape, pooler included: 109,482,240. The authors print 110M "
    "(google-research/bert, README).",
)
LLAMA2_SHAPE = Source(
    title="torchtune, builder of Llama 2 70B",
    url="https://github.com/pytorch/torchtune/blob/ed281c751c50045234f69d09875940c2f6f53c75/torchtune/models/llama2/_model_builders.py",
    locator="llama2_70b",
    checked=_CHECKED,
    note="Counted from the shape: 68,976,648,192; the model card prints 70B.",
)
LLAMA2_MODEL_CARD = Source(
    title="Llama 2 model card",
    url="https://github.com/meta-llama/llama-models/blob/a9c89c4/models/llama2/MODEL_CARD.md",
    locator="Model Architecture",
    checked=_CHECKED,
    note="Context length 4k for all sizes.",
)
LLAMA3_SHAPE = Source(
    title="torchtune, builders of Llama 3 8B and 70B",
    url="https://github.com/pytorch/torchtune/blob/dcb6dc4bdbc8af62e57e5fcfe425bbffbe04810a/torchtune/models/llama3/_model_builders.py",
    locator="llama3_8b, llama3_70b",
    checked=_CHECKED,
    note="Counted from the shapes: 8,030,261,248 and 70,553,706,496. The bfloat16 checkpoint of "
    "the 70B model has 141,107,412,992 bytes, which is the same count.",
)
LLAMA3_MODEL_CARD = Source(
    title="Llama 3 model card",
    url="https://github.com/meta-llama/llama-models/blob/a9c89c4/models/llama3/MODEL_CARD.md",
    locator="Model Architecture",
    checked=_CHECKED,
    note="Trained on sequences of 8,192 tokens. Llama 3.1 has the same shapes and a longer "
    "context.",
)
LLAMA3_405B = Source(
    title="litgpt, config.py, after the config.json of Meta-Llama-3.1-405B",
    url="https://github.com/Lightning-AI/litgpt/blob/2685705/litgpt/config.py",
    locator="Llama-3.1-405B",
    checked=_CHECKED,
    note="Counted from the shape: 405,853,388,800. torchtitan's llama3_configs has the same shape.",
)
LLAMA1 = Source(
    title="LLaMA, config.json of 30B and 65B; Touvron et al. 2023, Table 2",
    url="https://huggingface.co/huggyllama/llama-65b/blob/main/config.json",
    locator="Touvron et al., Table 2, for depth, width and heads",
    checked=_CHECKED,
    note="Counted from the shapes: 6.7e9, 13.0e9, 32.5e9 and 65.3e9; the paper prints 6.7B, 13.0B, "
    "32.5B and 65.2B. The inner widths of 7B and 13B are those of Llama 2; with them the "
    "counts are those of the paper. The table is quoted from transcriptions.",
)
LLAMA2_SMALL = Source(
    title="torchtune, builders of Llama 2 7B and 13B",
    url="https://github.com/pytorch/torchtune/blob/ed281c751c50045234f69d09875940c2f6f53c75/torchtune/models/llama2/_model_builders.py",
    locator="llama2_7b, llama2_13b",
    checked=_CHECKED,
    note="The inner width of 7B, 11,008, is in litgpt's config.py. Counted from the shapes: "
    "6,738,415,616 and 13,015,864,320.",
)
MISTRAL_7B_CONTEXT = Source(
    title="Mistral-7B-v0.1, discussion 117: fix context length in config",
    url="https://huggingface.co/mistralai/Mistral-7B-v0.1/discussions/117",
    checked=_CHECKED,
    note="8,192; config.json states 32,768 positions.",
)
QWEN3_32B = Source(
    title="litgpt, config.py, after the config.json of Qwen3-32B",
    url="https://github.com/Lightning-AI/litgpt/blob/2685705/litgpt/config.py",
    locator="qwen_3_32b",
    checked=_CHECKED,
    note="Counted from the shape: 32,762,123,264; torchtitan's qwen3_configs has the same shape.",
)
QWEN3_REPORT = Source(
    title="Qwen3 Technical Report (arXiv 2505.09388), reading card",
    url="https://ai-papers.xuzou.cn/papers/qwen3_2025",
    locator="Compute Setup",
    checked=_CHECKED,
    note="35 of 36 trillion tokens in sequences of 4,096, the last stage in 32,768",
)
NEMOTRON4 = Source(
    title="Nemotron-4-340B-Base, config.json of a conversion",
    url="https://huggingface.co/mgoin/Nemotron-4-340B-Base-hf/blob/main/config.json",
    checked=_CHECKED,
    note="Counted from the shape: 341,029,195,776; NVIDIA prints 340B. Its report states that "
    "training uses no dropout.",
)
MEGATRON = Source(
    title="Narayanan et al. 2021, Efficient Large-Scale Language Model Training on GPU Clusters",
    url="https://arxiv.org/abs/2104.04473",
    locator="Table 1",
    checked=_CHECKED,
    note="Counted from the shape, including biases, norms and 2,048 positions; matches all digits "
    "of the table. Quoted from a transcription.",
)
MEGATRON_LARGE = Source(
    title="Narayanan et al. 2021, Efficient Large-Scale Language Model Training on GPU Clusters",
    url="https://arxiv.org/abs/2104.04473",
    locator="Tables 1 and 2, rows of 529.6 and 1008.0 billion",
    checked=_CHECKED,
    note="Counted from the shape; matches all digits of the table. Quoted from transcriptions.",
)
MPT = Source(
    title="llm-foundry, training benchmarks and their configurations",
    url="https://github.com/mosaicml/llm-foundry/tree/8c8dd48/scripts/train/yamls/pretrain",
    locator="mpt-*.yaml; column NumParams of scripts/train/benchmarking/README.md",
    checked=_CHECKED,
    note="Counted from the shape, with 2,048 learned positions and biases; matches the numbers in "
    "the README. MPTConfig sets all three dropout rates to 0.",
)
RESNET50 = Source(
    title="torchvision, ResNet50_Weights",
    url="https://pytorch.org/vision/stable/models/generated/torchvision.models.resnet50.html",
    locator="num_params, GFLOPS",
    checked=_CHECKED,
    note="Its 'GFLOPS', 4.089, are multiply-accumulates; the row counts two operations each. "
    "Our own count from the layers gives the same parameters and 4.089e9.",
)
MOBILENET_V2 = Source(
    title="torchvision, MobileNet_V2_Weights",
    url="https://pytorch.org/vision/stable/models/generated/torchvision.models.mobilenet_v2.html",
    locator="num_params, GFLOPS",
    checked=_CHECKED,
    note="Its 'GFLOPS', 0.30, are multiply-accumulates; our own count from the layers is "
    "0.3008e9 and the same parameters.",
)
ALEXNET_DEFINITION = Source(
    title="torchvision, AlexNet",
    url="https://github.com/pytorch/vision/blob/00658a2/torchvision/models/alexnet.py",
    locator="class AlexNet",
    checked=_CHECKED,
    note="The one-column variant of 2014, counted from its layers: 61,100,840 parameters and "
    "0.714e9 multiply-accumulates. Krizhevsky et al. 2012 print 60 million for two columns.",
)
YOLOV8 = Source(
    title="Ultralytics, yolov8.yaml",
    url="https://github.com/ultralytics/ultralytics/blob/023641f/ultralytics/cfg/models/v8/yolov8.yaml",
    locator="scale n",
    checked=_CHECKED,
    note="Printed: 3,157,200 parameters, 8.9 GFLOPs before layers are fused. These are true "
    "operations, two per multiply-accumulate. Our own count of convolutions alone is 8.74e9.",
)
TINY_KEYWORDS = Source(
    title="MLPerf Tiny, keyword spotting: reference model",
    url="https://github.com/mlcommons/tiny/blob/1afd2c9/benchmark/training/keyword_spotting/keras_model.py",
    locator="ds_cnn; 49 x 10 MFCC input from kws_util.py",
    checked=_CHECKED,
    note="Counted from the layers, trainable parameters. As an int8 file the model has 53,936 "
    "bytes.",
)
TINY_ANOMALY = Source(
    title="MLPerf Tiny, anomaly detection: reference model",
    url="https://github.com/mlcommons/tiny/blob/1afd2c9/benchmark/training/anomaly_detection/keras_model.py",
    locator="get_model; 5 frames x 128 mel bands from baseline.yaml",
    checked=_CHECKED,
    note="Counted from the layers, trainable parameters, one window of five frames. As an int8 "
    "file the model has 276,976 bytes.",
)
TINY_IMAGES = Source(
    title="MLPerf Tiny, image classification: reference model",
    url="https://github.com/mlcommons/tiny/blob/1afd2c9/benchmark/training/image_classification/keras_model.py",
    locator="resnet_v1_eembc; 32 x 32 x 3 input",
    checked="2026-11-22",
    note="Counted from the layers, trainable parameters; additions are not counted as layers. "
    "With the statistics of its normalization the model has 78,666 parameters.",
)
TINY_PERSONS = Source(
    title="MLPerf Tiny, visual wake words: reference model",
    url="https://github.com/mlcommons/tiny/blob/1afd2c9/benchmark/training/visual_wake_words/vww_model.py",
    locator="mobilenet_v1, 8 filters in the first layer; 96 x 96 x 3 input",
    checked="2026-11-22",
    note="Counted from the layers, trainable parameters. With the statistics of its normalization "
    "the model has the 221,794 parameters that NXP's eIQ model zoo prints.",
)
WAKE_VISION = Source(
    title="Wake Vision, training code of the data set's MobileNetV2",
    url="https://github.com/harvard-edge/Wake_Vision/blob/bab1ce4/experiment_config.py",
    locator="INPUT_SHAPE, MODEL_SIZE; train.py",
    checked=_CHECKED,
    note="Wake Vision is a data set; the row is its base configuration, MobileNetV2 of width "
    "0.25 at 224 x 224. Our count at 160 x 160 gives the 18,329,760 multiply-accumulates that "
    "its evaluation notebook prints.",
)
DLRM_MLPERF = Source(
    title="DLRM, reference implementation: MLPerf configuration",
    url="https://github.com/facebookresearch/dlrm/blob/3be4eac856611ab9272d8b9663fe8f1226f43125/bench/run_and_time.sh",
    locator="--arch-*, --max-ind-range=40000000",
    checked=_CHECKED,
    note="Criteo Terabyte: 26 tables of 187,767,399 rows in all, as MLPerf submissions list "
    "them. Operations count each pair of the 27 vectors once. MLPerf replaced this network by "
    "DLRMv2, and in 2026 by DLRMv3 (https://mlcommons.org/2026/02/dlrmv3-inference-meta/).",
)
OLMO_HYBRID = Source(
    title="transformers, OlmoHybridConfig: defaults, which are those of allenai/OLMo-Hybrid",
    url="https://github.com/huggingface/transformers/blob/06ad6bc/src/transformers/models/"
    "olmo_hybrid/configuration_olmo_hybrid.py",
    checked="2026-11-23",
    note="Counted from the shape without norms; Ai2 prints 7B.",
)
AQUILA = Source(
    title="Ling, config_aquila.py",
    url="https://github.com/inclusionAI/Ling/blob/67a4491/mindie_config/atb_models/output/atb_models/atb_llm/models/aquila/config_aquila.py",
    locator="AquilaConfig, defaults",
    checked="2026-11-22",
    note="LiBai's configuration of Aquila has the same sizes. Counted from the shape: 7.3 billion.",
)
DECILM = Source(
    title="Deci/DeciLM-7B-instruct, config.json",
    url="https://huggingface.co/Deci/DeciLM-7B-instruct/blob/b0b6c53729de7960a50ef5295b42eb1e6ee96f76/config.json",
    locator="num_key_value_heads_per_layer and sizes",
    checked="2026-11-22",
    note="DeciLM-7B has the same shape. Counted from the shape, norms included: 7,043,551,232.",
)
LLAMA3_CONTEXT = Source(
    title="Meta-Llama-3.1-8B, 70B and 405B, config.json, as quoted in aiconfigurator",
    url="https://github.com/ai-dynamo/aiconfigurator/blob/095f58a/aic-core/src/"
    "aiconfigurator_core/model_configs/meta-llama--Meta-Llama-3.1-8B_config.json",
    locator="max_position_embeddings",
    checked="2026-11-23",
    note="131,072 positions; the first Llama 3 has 8,192",
)
QWEN3_CONTEXT = Source(
    title="Qwen3-32B, Qwen3-30B-A3B and Qwen3-235B-A22B, config.json, as quoted in aiconfigurator",
    url="https://github.com/ai-dynamo/aiconfigurator/blob/095f58a/aic-core/src/"
    "aiconfigurator_core/model_configs/Qwen--Qwen3-32B_config.json",
    locator="max_position_embeddings",
    checked="2026-11-23",
    note="40,960 positions, for 32,768 of a prompt and an answer",
)
