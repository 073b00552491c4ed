"""The models: every count is repeated here from the published shape, by other arithmetic."""

from dataclasses import replace
from itertools import pairwise

import pytest

from mlsysim import Hardware, ServingSolver
from mlsysim.core.errors import ConfigError
from mlsysim.core.types import FixedShapeModel, MoETransformerModel, TransformerModel
from mlsysim.registry.importer.published import configurations
from mlsysim.registry.models import Models
from tests.importer.test_published import read

ROWS = dict(Models.items())
# The importer counts these from their configurations; tests/importer compares the counts.
IMPORTED = {
    name
    for name, row in ROWS.items()
    if row.source.title.removesuffix(", config.json") in configurations()
}
MIXTURES = [
    name
    for name, row in ROWS.items()
    if isinstance(row, MoETransformerModel) and name not in IMPORTED
]
DENSE = [
    name
    for name, row in ROWS.items()
    if isinstance(row, TransformerModel)
    and name not in MIXTURES
    and name not in IMPORTED
    and not row.stack
    and "parameters" not in row.estimated
]


def attention_matrices(model):
    """Weights of queries, keys, values and output of one layer."""
    if model.latent is not None:
        # Ranks 1,536 and 512; 128 + 64 columns of a query or key, 128 of a value.
        width, heads = model.hidden_dim, model.heads
        queries = width * 1536 + 1536 * heads * (128 + 64)
        keys_and_values = width * (512 + 64) + 512 * heads * (128 + 128)
        return queries + keys_and_values + heads * 128 * width
    return 2 * model.hidden_dim * model.head_dim * (model.heads + model.kv_heads)


def matrices_of_layer(model):
    """Weights of the linear layers of one transformer layer."""
    mlp = (3 if model.gated_mlp else 2) * model.hidden_dim * model.ffn_dim
    return attention_matrices(model) + mlp


def matrices_of_mixture(model, experts):
    """Weights of all layers and tables of a mixture, `experts` of them in each layer."""
    gates, width = 3 if model.gated_mlp else 2, model.hidden_dim
    routed = experts * model.expert_ffn_dim + model.shared_ffn_dim
    layer = gates * width * routed + model.experts * width
    dense = (model.layers - model.moe_layers) * gates * width * model.ffn_dim
    tables = (1 if model.tied_embeddings else 2) * model.vocab_size * width
    return model.layers * attention_matrices(model) + model.moe_layers * layer + dense + tables


class ConvNet:
    """Counts parameters, multiply-accumulates and outputs, layer by layer."""

    def __init__(self, channels, size):
        self.channels, self.size = channels, size
        self.parameters = self.macs = self.outputs = 0

    def conv(self, out, kernel=1, stride=1, *, groups=1, bias=False, norm=True, keep=False):
        """A square convolution with 'same' padding; `keep` leaves the state (a side branch)."""
        rows, columns = (kernel, kernel) if isinstance(kernel, int) else kernel
        size = tuple(-(-side // stride) for side in self.size)
        positions = size[0] * size[1]
        weights = out * self.channels // groups * rows * columns
        self.parameters += weights + (out if bias else 0) + (2 * out if norm else 0)
        self.macs += weights * positions
        self.outputs += out * positions
        if not keep:
            self.channels, self.size = out, size

    def depthwise(self, kernel, stride=1, *, bias=False):
        self.conv(self.channels, kernel, stride, groups=self.channels, bias=bias)

    def linear(self, out):
        self.parameters += self.channels * out + out
        self.macs += self.channels * out
        self.outputs += out
        self.channels = out

    def pool(self, size):
        self.size = size


def resnet50():
    net = ConvNet(3, (224, 224))
    net.conv(64, 7, 2)
    net.pool((56, 56))
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            step = stride if block == 0 else 1
            if block == 0:
                net.conv(4 * width, 1, step, keep=True)
            net.conv(width)
            net.conv(width, 3, step)
            net.conv(4 * width)
    net.linear(1000)
    return net


def resnet8():
    net = ConvNet(3, (32, 32))
    net.conv(16, 3, bias=True)
    for width, stride in ((16, 1), (32, 2), (64, 2)):
        if stride > 1:
            net.conv(width, 1, stride, bias=True, norm=False, keep=True)
        net.conv(width, 3, stride, bias=True)
        net.conv(width, 3, bias=True)
    net.linear(10)
    return net


def mobilenet_v1_quarter():
    net = ConvNet(3, (96, 96))
    net.conv(8, 3, 2, bias=True)
    for number, out in enumerate((16, 32, 32, 64, 64, *[128] * 6, 256, 256)):
        net.depthwise(3, 2 if number in (1, 3, 5, 11) else 1, bias=True)
        net.conv(out, bias=True)
    net.linear(2)
    return net


def mobilenet_v2(width, size, classes):
    def scaled(channels):
        rounded = max(8, int(channels * width + 4) // 8 * 8)
        return rounded + 8 if rounded < 0.9 * channels * width else rounded

    net = ConvNet(3, (size, size))
    net.conv(scaled(32), 3, 2)
    blocks = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
    for expansion, channels, repeats, stride in (*blocks, (6, 160, 3, 2), (6, 320, 1, 1)):
        for repeat in range(repeats):
            if expansion > 1:
                net.conv(net.channels * expansion)
            net.depthwise(3, stride if repeat == 0 else 1)
            net.conv(scaled(channels))
    net.conv(1280)
    net.linear(classes)
    return net


def alexnet():
    net = ConvNet(3, (220, 220))  # 55 x 55 after a stride of 4, as with 224 and padding 2
    net.conv(64, 11, 4, bias=True, norm=False)
    net.pool((27, 27))
    net.conv(192, 5, bias=True, norm=False)
    net.pool((13, 13))
    for channels in (384, 256, 256):
        net.conv(channels, 3, bias=True, norm=False)
    net.channels *= 6 * 6
    for out in (4096, 4096, 1000):
        net.linear(out)
    return net


def ds_cnn():
    net = ConvNet(1, (49, 10))
    net.conv(64, (10, 4), 2, bias=True)
    for _ in range(4):
        net.depthwise(3, bias=True)
        net.conv(64, bias=True)
    net.linear(12)
    return net


def c2f(net, channels, repeats):
    half = channels // 2
    net.conv(2 * half)
    net.channels = half
    for _ in range(2 * repeats):
        net.conv(half, 3)
    net.channels = (2 + repeats) * half
    net.conv(channels)


def yolov8_nano():
    net = ConvNet(3, (640, 640))
    net.conv(16, 3, 2)
    for channels, repeats in ((32, 1), (64, 2), (128, 2), (256, 1)):
        net.conv(channels, 3, 2)
        c2f(net, channels, repeats)
    net.conv(128)
    net.channels = 4 * 128  # three poolings beside their input
    net.conv(256)
    for size, joined, channels in ((40, 256 + 128, 128), (80, 128 + 64, 64)):
        net.channels, net.size = joined, (size, size)
        c2f(net, channels, 1)
    for joined, channels in ((64 + 128, 128), (128 + 256, 256)):
        net.conv(net.channels, 3, 2)
        net.channels = joined
        c2f(net, channels, 1)
    for size, channels in ((80, 64), (40, 128), (20, 256)):
        for hidden, out in ((64, 64), (80, 80)):
            net.channels, net.size = channels, (size, size)
            net.conv(hidden, 3)
            net.conv(hidden, 3)
            net.conv(out, bias=True, norm=False)
    net.channels, net.size = 16, (4, 8400)
    net.conv(1, norm=False)
    return net


def anomaly_detector():
    net = ConvNet(640, (1, 1))
    for out in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        net.linear(out)
        net.parameters += 2 * out  # batch norm
    net.linear(640)
    return net


RECOUNTED = {
    "ResNet50": resnet50,
    "ResNet8": resnet8,
    "MobileNetV1_Quarter": mobilenet_v1_quarter,
    "MobileNetV2": lambda: mobilenet_v2(1.0, 224, 1000),
    "AlexNet": alexnet,
    "YOLOv8_Nano": yolov8_nano,
    "DS_CNN": ds_cnn,
    "WakeVision": lambda: mobilenet_v2(0.25, 224, 2),
    "AnomalyDetector": anomaly_detector,
}


def test_each_configuration_has_one_row():
    read = [ROWS[name].source.title.removesuffix(", config.json") for name in IMPORTED]
    assert sorted(read) == sorted(configurations())


def test_imported_rows_point_to_the_file_that_was_read():
    for name in sorted(IMPORTED):
        row = ROWS[name]
        line = configurations()[row.source.title.removesuffix(", config.json")]
        for path in ("layers", "hidden_dim", "vocab_size", "parameters"):
            source = row.source_of(path)
            assert source.url == line["url"] or source.url.startswith(
                "https://github.com/huggingface/"
            ), name
        assert row.source.checked == line["checked"], name
        assert ("seq_len" in row.estimated) == (row.source_of("seq_len").title == "Assumed"), name


def test_an_argument_chooses_the_format_of_imported_weights():
    for name in sorted(IMPORTED):
        formats = ROWS[name].formats
        parts = ("attention", "feed_forward", "experts", "embeddings")
        assert formats is None or not any(getattr(formats, part) for part in parts), name


def test_sizes_are_estimated_of_gpt4_and_of_a_file_that_is_not_explained():
    shapes = {name: row.estimated - {"seq_len"} for name, row in ROWS.items()}
    assert {name for name, fields in shapes.items() if fields} == {"GPT4", "MiniMax_M3"}


def test_parameters_follow_from_the_shape():
    for name in DENSE:
        model = ROWS[name]
        embeddings = (1 if model.tied_embeddings else 2) * model.vocab_size * model.hidden_dim
        counted = model.layers * matrices_of_layer(model) + embeddings
        # Biases, norms, position tables and BERT's pooler are left out: half a per cent covers
        # them in all models but BERT, whose pooler and positions are one per cent of it.
        # So do positions and biases in the small models of the MPT and Megatron families.
        margins = {"BERT_Base": 1.1e-2, "MPT_125M": 2e-2, "MPT_350M": 1e-2, "GPT2_124M": 1e-2}
        margin = margins.get(name, 0.5e-2)
        assert model.si("parameters") == pytest.approx(counted, rel=margin), name


def test_parameters_of_mixtures_follow_from_the_shape():
    for name in MIXTURES:
        model = ROWS[name]
        assert model.si("parameters") == pytest.approx(
            matrices_of_mixture(model, model.experts), rel=0.1e-2
        ), name


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("Mixtral_8x7B", 46.7e9, 12.9e9),
        ("Mixtral_8x22B", 141e9, 39e9),
        ("Qwen3_30B_A3B", 30.5e9, 3.3e9),
        ("Qwen3_235B_A22B", 235e9, 22e9),
        ("DeepSeek_V3", 671e9, 37e9),
        ("Kimi_K2", 1.03e12, 32e9),
    ],
)
def test_mixtures_match_the_published_totals(name, total, active):
    model = ROWS[name]
    assert model.si("parameters") == pytest.approx(total, rel=0.5e-2)
    assert matrices_of_mixture(model, model.experts_per_token) == pytest.approx(active, rel=3e-2)


@pytest.mark.parametrize(
    ("size", "printed"),
    [
        ("1B7", 1.7), ("3B6", 3.6), ("7B5", 7.5), ("18B", 18.4), ("39B", 39.1), ("76B", 76.1),
        ("145B", 145.6), ("310B", 310.1), ("530B", 529.6), ("1T", 1008.0),
    ],
)  # fmt: skip
def test_megatron_counts_are_those_of_table_1(size, printed):
    """Equation 2 of the paper: 12 l h^2 (1 + 13 / 12h + (V + s) / 12lh)."""
    model = Models.Megatron[f"GPT_{size}"]
    layers, width = model.layers, model.hidden_dim
    words = (model.vocab_size + model.seq_len) / (12 * layers * width)
    counted = 12 * layers * width**2 * (1 + 13 / (12 * width) + words)
    assert model.si("parameters") == pytest.approx(counted, rel=1e-5)
    assert round(model.si("parameters") / 1e9, 1) == printed


@pytest.mark.parametrize(
    ("size", "printed"),
    [
        ("125M", 125_311_488), ("350M", 355_985_408), ("760M", 760_470_528),
        ("1B", 1_315_950_592), ("3B", 2_651_837_440), ("7B", 6_658_859_008),
        ("13B", 12_853_954_560), ("30B", 29_975_214_080), ("70B", 64_862_437_376),
    ],
)  # fmt: skip
def test_mpt_counts_are_those_of_the_benchmarks(size, printed):
    assert Models.MPT[f"MPT_{size}"].si("parameters") == printed


def test_decilm_has_the_published_parameters_and_heads():
    model = Models.DeciLM_7B
    assert model.layers == 32
    assert model.si("parameters") == pytest.approx(7.04e9, rel=1e-3)
    # Keys and values of 67 heads of 128 elements, in two bytes each.
    assert model.kv_cache_bytes("bf16", 1).to("byte").magnitude == 67 * 2 * 128 * 2


def test_gpt4_matches_the_reported_totals():
    model = Models.GPT4
    embeddings = 2 * model.vocab_size * model.hidden_dim
    expert = model.layers * 2 * model.hidden_dim * model.expert_ffn_dim
    assert expert == pytest.approx(111e9, rel=0.01)
    active = model.layers * attention_matrices(model) + 2 * expert + embeddings
    assert active == pytest.approx(280e9, rel=0.01)
    assert model.si("parameters") == active + 14 * expert
    assert model.si("parameters") == pytest.approx(1.8e12, rel=0.02)


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("GPT2", 1.558e9),  # nanoGPT: 1558M
        ("GPT2_124M", 124e6),  # nanoGPT: 124M
        ("GPT3", 175.0e9),  # Brown et al. 2020, table 2.1
        ("BERT_Base", 110e6),  # Devlin et al. 2019
        ("Llama2_70B", 69e9),
        ("Llama3_8B", 8.03e9),
        ("Llama3_70B", 141_107_412_992 / 2),  # bytes of the bfloat16 checkpoint
        ("ResNet50", 25_557_032),  # torchvision
        ("MobileNetV2", 3_504_872),  # torchvision
        ("AlexNet", 61.1e6),
        ("YOLOv8_Nano", 3_157_200),  # yolov8.yaml
        ("DLRM", 24e9),
        ("Llama1_7B", 6.7e9),
        ("Llama1_13B", 13.0e9),
        ("Llama1_33B", 32.5e9),
        ("Llama1_65B", 65.2e9),
        ("Llama2_7B", 6.74e9),
        ("Llama2_13B", 13.02e9),
        ("Llama3_405B", 405.9e9),
        ("Mistral_7B", 7.24e9),
        ("Qwen3_32B", 32.8e9),
        ("Nemotron4_340B", 341e9),
    ],
)
def test_parameters_match_the_published_total(name, printed):
    assert ROWS[name].si("parameters") == pytest.approx(printed, rel=0.7e-2)


def test_fixed_shapes_recounted_layer_by_layer():
    for name, network in RECOUNTED.items():
        row, net = ROWS[name], network()
        assert row.si("parameters") == net.parameters, name
        assert row.si("flops_per_sample") == 2 * net.macs, name
        assert row.si("activations_per_sample") == net.outputs, name


@pytest.mark.parametrize(
    ("name", "macs"), [("ResNet50", 4.089e9), ("MobileNetV2", 0.301e9), ("AlexNet", 0.714e9)]
)
def test_operations_are_twice_the_published_multiply_accumulates(name, macs):
    assert ROWS[name].si("flops_per_sample") == pytest.approx(2 * macs, rel=1e-3)


def test_dlrm_follows_from_its_layers():
    rows_of_tables = 187_767_399
    mlps = ((13, 512, 256, 128), (128 + 27 * 26 // 2, 1024, 1024, 512, 256, 1))
    weights = sum(a * b for mlp in mlps for a, b in pairwise(mlp))
    biases = sum(sum(mlp[1:]) for mlp in mlps)
    row = Models.DLRM
    assert row.si("parameters") == rows_of_tables * 128 + weights + biases
    assert row.si("dense_parameters") == weights + biases
    assert row.si("gathered_parameters") == 26 * 128
    assert row.si("flops_per_sample") == 2 * (weights + 27 * 26 // 2 * 128)


def test_work_per_parameter_is_plausible():
    fixed = {name: row for name, row in ROWS.items() if isinstance(row, FixedShapeModel)}
    for name, row in fixed.items():
        dense = row.dense_parameters or row.parameters
        ratio = row.si("flops_per_sample") / dense.to("param").magnitude
        assert 1.9 < ratio < 10_000, name


def test_contexts_are_those_of_the_published_files():
    """A row and its file agree, and no row is trained beyond its positions."""
    for row, name in ((Models.DeepSeek_V3, "DeepSeek-V3"), (Models.Llama3_8B, "Llama-3.1-8B")):
        assert row.context == read(name).context
    rows = [row for _, row in Models.items() if isinstance(row, TransformerModel)]
    known = [row for row in rows if row.context is not None]
    assert len(known) > 80
    for model in known:
        assert model.source_of("context") is not None
        assert model.seq_len <= model.context


def test_a_default_of_the_library_is_no_context():
    """RoPE has no table; GPT-2's positions are one."""
    small = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    assert Models.from_config({"model_type": "llama", **small}).context is None
    assert Models.from_config({"model_type": "gpt2", "n_embd": 768, "n_layer": 2}).context == 1024


def test_a_training_length_beyond_the_context_is_refused():
    with pytest.raises(ConfigError) as caught:
        replace(Models.Llama2_7B, seq_len=8_192)
    assert caught.value.argument == "seq_len"
    assert replace(Models.Llama2_7B, seq_len=8_192, context=8_192).positions == 8_192


def test_gpt_oss_fits_on_one_device_in_its_published_format():
    job = {"hardware": Hardware.B200, "seq_len": 32_768}
    row = Models.GPT_OSS_120B
    assert ServingSolver.solve(model=row, **job).max_batch_size == 0
    config = configurations()["openai/gpt-oss-120b"]["config"]
    as_published = ServingSolver.solve(model=Models.from_config(config), **job)
    stored = ServingSolver.solve(model=row, **job, weight_precision="mxfp4")
    assert stored.max_batch_size == pytest.approx(as_published.max_batch_size, rel=0.02)
