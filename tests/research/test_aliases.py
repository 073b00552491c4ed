"""Names of devices and models in measurements: each means one row, and only whole names count."""

import csv
from pathlib import Path

import pytest

from mlsysim import Hardware, Models, Systems
from research.readers import kernels, passes, serving, training
from research.readers.aliases import (
    DEVICES,
    accelerator_named,
    find_accelerator,
    find_model,
    model_named,
    usual_server,
)
from research.rows import Row, Skip
from research.validate import validate

DATA = Path(__file__).parents[2] / "research/measurements"
# Devices of measurements that the registry does not have.
UNKNOWN = {"GH200-SXM", "MI250X (one GCD)", "A2"}
# Tables of other people's machines: most are devices that the registry does not have.
OTHERS = {"serving_2.csv"}


def test_a_device_goes_by_its_key_its_name_and_its_aliases():
    for key in Hardware.names():
        row = Hardware[key]
        for name in (key, row.name, row.name.removeprefix("NVIDIA "), *DEVICES.get(key, ())):
            for label in (name, name.upper(), name.lower(), name.replace("-", " "), f"8x{name}"):
                assert accelerator_named(label) is row, key


def test_a_place_is_dropped_and_a_part_is_not():
    for label, key in [
        ("H100-SXM-80GB (Meta 24K RoCE cluster)", "H100"),
        ("H200-SXM-141GB (GCP A3 Ultra)", "H200"),
        ("B200-SXM-180GB (GCP A4)", "B200"),
        ("A100-SXM (single 8-GPU node)", "A100"),
        ("A100-SXM-80GB (Selene)", "A100"),
        ("H100 (PCIe)", "H100_PCIe"),
        ("H100-SXM 96GB HBM2e 500W (Grand Teton)", "H100_HBM2e"),
        ("TPU7x (Ironwood)", "TPUv7x"),
        ("TPU-v6e (Trillium)", "TPUv6e"),
    ]:
        assert accelerator_named(label) is Hardware[key], label


def test_aliases_belong_to_devices_of_the_registry():
    assert set(DEVICES) <= set(Hardware.names())


@pytest.mark.parametrize(
    "label",
    ["", "H", "100", "GH20", "A100X", "H100 SXM6", "H2", "my H100", "H100 (80 W)", "東京H100"],
)
def test_a_part_of_a_name_is_not_a_name(label):
    assert find_accelerator(label) is None
    with pytest.raises(Skip) as caught:
        accelerator_named(label)
    assert all(name in str(caught.value) for name in Hardware.names())


def test_every_device_of_the_published_runs_is_known_or_listed_here():
    unknown = set()
    for path in DATA.glob("*.csv"):
        if path.name in OTHERS:
            continue
        with path.open(encoding="utf-8", newline="") as file:
            labels = {row.get("hardware") or "" for row in csv.DictReader(file)}
        unknown |= {label for label in labels if label and find_accelerator(label) is None}
    assert unknown == UNKNOWN


def test_the_usual_server_holds_the_device():
    for key in Hardware.names():
        server = usual_server(Hardware[key])
        if server is not None:
            assert server.accelerator is Hardware[key], key
        else:
            assert Hardware[key] not in [node.accelerator for node in Systems.Nodes], key


@pytest.mark.parametrize(
    ("device", "server"),
    [
        (Hardware.H100, Systems.DGX_H100),
        (Hardware.A100_40GB, Systems.DGX_A100_40GB),
        (Hardware.H200, Systems.HGX_H200),
        (Hardware.B200, Systems.DGX_B200),
        (Hardware.B300, Systems.DGX_B300),
    ],
)
def test_the_usual_server_is_not_that_of_a_cloud(device, server):
    assert usual_server(device) is server


@pytest.mark.parametrize(
    ("reader", "row"),
    [
        (passes.arguments, {}),
        (serving.arguments, {}),
        (kernels.product_of, {"dtype": "bf16"}),
        (
            training.arguments,
            {"model": "Llama3_8B", "global_batch": "8", "n_gpus": "8", "seq_len": "4096"},
        ),
    ],
)
def test_readers_refuse_a_device_whose_name_holds_another(reader, row):
    with pytest.raises(Skip, match="'A100X' is not in the registry"):
        reader(Row(row | {"hardware": "A100X"}))


def test_grace_blackwell_is_not_taken_for_a_b200():
    row = {"model": "Llama3_8B", "global_batch": "64", "seq_len": "8192", "step_time_s": "9"}
    row |= {"n_gpus": "8", "tp": "8", "flash_attention": "1"}
    one, other = (
        validate([row | {"hardware": name}]).comparisons[0].predicted for name in ("GB200", "B200")
    )
    assert one < other
    assert kernels.product_of(
        Row({"hardware": "gb200", "dtype": "bf16", "m": "8", "n": "8", "k": "8"})
    ).peak_rate == Hardware.GB200.compute.si("bf16")


def test_a_model_goes_by_its_repository_and_by_its_base():
    for label, key in [
        ("Qwen/Qwen3-30B-A3B", "Qwen3_30B_A3B"),
        ("Qwen/Qwen3-235B-A22B-FP8", "Qwen3_235B_A22B"),
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen2_5_7B"),
        ("Qwen3-4B-Instruct-2507", "Qwen3_4B"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "Llama3_8B"),
        ("meta-llama/Llama-2-70b-hf", "Llama2_70B"),
        ("mistralai/Mistral-7B-v0.1", "Mistral_7B"),
        ("mistralai/Mistral-7B-v0.3", "Mistral_7B_v0_3"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4", "Nemotron_3_Nano"),
        ("Nemotron_3_Super", "Nemotron_3_Super"),
        ("deepseek-ai/DeepSeek-R1", "DeepSeek_V3"),
        ("google/gemma-3-12b-it", "Gemma3_12B"),
        ("unsloth/Qwen3.6-27B", "Qwen3_5_27B"),
        ("meta-llama/Llama-3.1-8B-Instruct", "Llama3_8B"),
        ("Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", "Llama3_8B"),
        ("nvidia/DeepSeek-V3.1-NVFP4", "DeepSeek_V3"),
        ("Qwen/Qwen3-235B-A22B-Thinking-2507-FP8", "Qwen3_235B_A22B"),
        ("Qwen_Qwen3-30B-A3B-Thinking-2507-Q4_K_M.gguf", "Qwen3_30B_A3B"),
        ("gpt-oss-20b-MXFP4.gguf", "GPT_OSS_20B"),
        ("mistralai/Mixtral-8x22B-Instruct-v0.1", "Mixtral_8x22B"),
        ("huggyllama/llama-7b", "Llama1_7B"),
    ]:
        assert find_model(label) is Models[key], label


@pytest.mark.parametrize(
    "label",
    ["Qwen/Qwen3-31B", "", "gemma4-2b", "/", "-it", "Qwen3-32B-Pruned", "org/Llama-3", "-Instruct"],
)
def test_part_of_a_name_finds_no_model(label):
    assert find_model(label) is None
    with pytest.raises(Skip, match="no shape given, and none in the registry"):
        model_named(Row({"model": label}))


def test_every_model_is_found_by_its_key_and_its_name():
    for key in Models.names():
        assert find_model(key) is find_model(Models[key].name) is Models[key], key
