"""Devices and models of measurements: registry rows by their names there, and stated shapes.

A name must match as a whole, because "H200" is also part of "GH200", and an "H100 PCIe" is not an
H100 SXM.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mlsysim.core.errors import shown
from mlsysim.core.types import Accelerator, Node, Source, TransformerModel, Workload
from mlsysim.registry import Hardware, Models, Systems
from research.rows import Row, Skip

DEVICES: Mapping[str, tuple[str, ...]] = {
    "V100": ("V100-SXM2", "V100-SXM2-32GB", "Tesla V100-SXM2-32GB"),
    "T4": ("Tesla T4",),
    "A100_40GB": ("A100-SXM-40GB", "A100-SXM4-40GB"),
    "A100": (
        "A100-SXM",
        "A100-80GB",
        "A100-SXM-80GB",
        "A100-SXM4-80GB",
        "DGX-A100",
        # A power limit set for this run.
        "A100-SXM-80GB (330 W limit)",
    ),
    "A100_PCIe": ("A100-PCIe-80GB",),
    "A100_PCIe_40GB": ("A100-PCIe-40GB",),
    "H100": (
        "H100-SXM",
        "H100-SXM5",
        "H100-80GB",
        "H100-SXM-80GB",
        "H100-SXM5-80GB",
        "H100 80GB HBM3",
        "DGX-H100",
    ),
    "H100_HBM2e": ("H100-SXM 96GB HBM2e 500W (Grand Teton)",),
    "H100_PCIe": ("H100-PCIe-80GB", "H100 (PCIe)"),
    "H200": ("H200-SXM", "H200-141GB", "H200-SXM-141GB", "HGX-H200"),
    "H200_NVL": ("H200-NVL-141GB",),
    "H20": ("H20-SXM-96GB",),
    "H800": ("H800-SXM", "H800-SXM-80GB", "H800-SXM5-80GB"),
    "B200": ("B200-SXM", "B200-180GB", "B200-SXM-180GB", "DGX-B200"),
    "B200_Limited": ("B200-SXM (power limited)",),
    "B300": ("B300-SXM", "B300-SXM-270GB", "DGX-B300"),
    "GB200": (
        "GB200-SXM",
        "DGX-GB200",
        "GB200-NVL72",
        # Runs that filled 180 GiB: a B200 has 179, and a tray of GB200 has these four GPUs.
        "B200-class Blackwell, 4 GPUs, model not stated",
    ),
    "GB300": ("DGX-GB300", "GB300-NVL72"),
    "MI300X": ("AMD MI300X", "Instinct MI300X"),
    "MI325X": ("AMD MI325X", "Instinct MI325X"),
    "MI350X": ("AMD MI350X", "Instinct MI350X"),
    "MI355X": ("AMD MI355X", "Instinct MI355X"),
    "TPUv5p": ("TPU-v5p",),
    "TPUv6e": ("TPU-v6e", "TPU-v6e (Trillium)", "Trillium"),
    "TPUv7x": ("TPU7x", "TPU-v7x", "TPU7x (Ironwood)", "Ironwood"),
    "RTX_3090": ("GeForce RTX 3090",),
    "RTX_4090": ("GeForce RTX 4090",),
    "RTX_5090": ("GeForce RTX 5090",),
    "RTX_3060": ("GeForce RTX 3060",),
    "RTX_3080": ("GeForce RTX 3080",),
    "RTX_2070_Super": ("GeForce RTX 2070 SUPER", "RTX 2070 SUPER"),
    "RTX_3080_Ti": ("GeForce RTX 3080 Ti",),
    "RTX_3090_Ti": ("GeForce RTX 3090 Ti",),
    "RTX_4070_Super": ("GeForce RTX 4070 SUPER",),
    "RTX_5080": ("GeForce RTX 5080",),
    "RTX_5880_Ada": ("RTX 5880 Ada",),
    "Arc_140V": ("Intel Arc Graphics 130V/140V (integrated)",),
    "DGX_Spark": ("NVIDIA GB10",),
    "M3_Pro": ("Apple M3 Pro",),
    "M4_Pro": ("Apple M4 Pro", "Apple M4 M4 Pro"),
    "M5_Pro": ("Apple M5 Pro",),
    # Processors with the same memory, whose graphics may have helped.
    "Ryzen_7_7840HS": (
        "AMD Ryzen 7 8745H w/ Radeon 780M",
        "AMD Ryzen 7 8745H w/ Radeon 780M Graphics",
        "AMD Ryzen 5 7640U",
        "Intel(R) Core(TM) Ultra 7 155H",
    ),
    "M4_Max": ("Apple M4 Max", "Apple M4 M4 Max"),
    "M5_Max": ("Apple M5 Max",),
    "M1_Max": ("Apple M1 Max", "Apple M1 M1 Max", "Apple M1 Max (400 GB/s)"),
    "M2_Max": ("Apple M2 Max", "Apple M2 Max 30-core (400 GB/s)"),
}
"""Names of a device in measurements, besides its key and its name in the registry."""

_MODELS = {
    "DeepSeek V3 671B": "DeepSeek_V3",
    "DeepSeek-V3 671B-A37B": "DeepSeek_V3",
    "DeepSeek3-671B": "DeepSeek_V3",
    "Nemotron V3 Ultra 550B": "Nemotron_3_Ultra",
    "Nemotron V3 Nano 30B": "Nemotron_3_Nano",
    "gemma4-26b": "Gemma4_26B_A4B",
}
"""Names of a model in measurements, besides its key, its name and its repository."""

_HUB: Mapping[str, str] = {
    "Llama-3.1-8B": "Llama3_8B",
    "Llama-3.1-70B": "Llama3_70B",
    "Llama-3.3-70B": "Llama3_70B",
    "Llama-3.1-405B": "Llama3_405B",
    "DeepSeek-R1-Distill-Llama-8B": "Llama3_8B",
    "DeepSeek-R1-Distill-Llama-70B": "Llama3_70B",
    "Qwen2.5-1.5B": "Qwen2_1_5B",
    "DeepSeek-R1-Distill-Qwen-1.5B": "Qwen2_1_5B",
    "Qwen2.5-0.5B": "Qwen2_0_5B",
    "LFM2.5-1.2B": "LFM2_1_2B",
    "LFM2.5-350M": "LFM2_350M",
    "LFM2.5-8B-A1B": "LFM2_8B_A1B",
    "Phi-4-mini-reasoning": "Phi_4_Mini",
    "phi4-mini": "Phi_4_Mini",
    "DeepSeek-R1-Distill-Qwen-7B": "Qwen2_5_7B",
    "DeepSeek-R1-Distill-Qwen-14B": "Qwen2_5_14B",
    "DeepSeek-R1-Distill-Qwen-32B": "Qwen2_5_32B",
    "DeepSeek-R1-0528-Qwen3-8B": "Qwen3_8B",
    "Qwen2.5-Coder-3B": "Qwen2_5_3B",
    "Qwen2.5-Coder-7B": "Qwen2_5_7B",
    "Qwen2.5-Coder-14B": "Qwen2_5_14B",
    "Qwen2.5-Coder-32B": "Qwen2_5_32B",
    "Mistral-Small-3.2-24B": "Mistral_Small_24B",
    "Magistral-Small": "Mistral_Small_24B",
    "Devstral-Small": "Mistral_Small_24B",
    "devstral-24b": "Mistral_Small_24B",
    "Codestral-22B": "Mistral_Small_22B",
    "DeepSeek-Coder-V2-Lite": "DeepSeek_V2_Lite",
    "Nemotron-Cascade-2-30B-A3B": "Nemotron_3_Nano",
    "Nemotron-3-Nano-Omni-30B-A3B": "Nemotron_3_Nano",
    "nemotron3-33b": "Nemotron_3_Nano",
    "qwen3-coder-next": "Qwen3_Next_80B_A3B",
    "Hermes-3-Llama-3.1-8B": "Llama3_8B",
    "Llama-3.1-Tulu-3-8B": "Llama3_8B",
    "nvidia_Llama-3.1-Nemotron-Nano-8B-v1": "Llama3_8B",
    "llama-7b": "Llama1_7B",
    "Mistral-7B-v0.1": "Mistral_7B",
    "DeepSeek-R1": "DeepSeek_V3",
    "DeepSeek-R1-0528": "DeepSeek_V3",
    "DeepSeek-V3.1": "DeepSeek_V3",
    "Qwen3-Coder-30B-A3B": "Qwen3_30B_A3B",
    # Language models of the vision-language family.
    "Qwen3-VL-4B": "Qwen3_4B",
    "Qwen3-VL-8B": "Qwen3_8B",
    "Qwen3-VL-32B": "Qwen3_32B",
    "Qwen3-VL-30B-A3B": "Qwen3_30B_A3B",
    # Tags of Ollama, which leave out what a model was distilled into, or its active part.
    "qwen3-vl-30b": "Qwen3_30B_A3B",
    "deepseek-r1-1.5b": "Qwen2_1_5B",
    "deepseek-r1-7b": "Qwen2_5_7B",
    "deepseek-r1-8b": "Qwen3_8B",
    "deepseek-r1-14b": "Qwen2_5_14B",
    "deepseek-r1-32b": "Qwen2_5_32B",
    "deepseek-r1-70b": "Llama3_70B",
    "deepseek-v2-16b": "DeepSeek_V2_Lite",
    "deepseek-coder-v2-16b": "DeepSeek_V2_Lite",
    "command-r-35b": "Command_R",
    "Qwen3.6-27B": "Qwen3_5_27B",
    "Qwen3.6-35B-A3B": "Qwen3_5_35B_A3B",
    "MiniMax-M2.7": "MiniMax_M2_5",
    "Kimi-K2.6": "Kimi_K2_5",
    "GLM-5.1": "GLM_5",
}
"""Checkpoints with the shape of a registry row, by their names without what `_REMARKS` removes.

The language models of the Llama 3 family differ in training and in rotation, R1 and V3.1 from V3
in training."""

_FORMAT = r"(?:UD-)?I?Q\d(?:_[0-9A-Z]+)*(?:-fp16)?|(?:NV|MX)?FP[48](?:-dynamic)?|AWQ|GPTQ(?:-Int4)?"
_REMARKS = re.compile(
    rf"(?:[-.:](?:gguf|{_FORMAT}|GGUF|hf|it|Instruct|Thinking|chat|Base|2507|v0\.1|v0\.3|BF16|mlx|latest))+$",
    re.IGNORECASE,
)
"""Suffixes of a checkpoint's name that do not affect its shape."""

# The registry has the servers of vendors before those of clouds: the first one is the usual one.
_NODES: tuple[Any, ...] = tuple(Systems.Nodes)
_SERVERS: Mapping[str, Node] = {
    **{node.accelerator.name: node for node in reversed(_NODES)},
    Hardware.B200_Limited.name: replace(Systems.DGX_B200, accelerator=Hardware.B200_Limited),
}


def _plain(text: str) -> str:
    return re.sub(r"[\W_]", "", text.lower())


# The place of a run does not identify the device; the rest of a remark may.
_PLACE = re.compile(
    r" \((?:GCP|AWS|Azure|OCI|DGX|Meta|Selene)[^()]*\)$| \([^()]*(?:cluster|node)\)$", re.IGNORECASE
)


def _device(label: str) -> str:
    """Return what of a label must match: the name without a count, a place, or NVIDIA's name."""
    name = _PLACE.sub("", re.sub(r"^\d+ ?[xX×] ?", "", label.strip()))
    return _plain(name).removeprefix("nvidia")


_ROWS: Mapping[str, Accelerator] = {
    _device(name): Hardware[key]
    for key in Hardware.names()
    for name in (key, Hardware[key].name, *DEVICES.get(key, ()))
}


def find_accelerator(label: str) -> Accelerator | None:
    """Return the registry's device with the name `label` in measurements, or `None`.

    Case, spaces, punctuation, a number of devices before the name ("8x") and "NVIDIA" are ignored.
    """
    return _ROWS.get(_device(label))


def accelerator_named(label: str) -> Accelerator:
    """Return the registry's device that measurements call `label`.

    Raises
    ------
    Skip
        If there is no such device; the message lists the known ones.
    """
    found = find_accelerator(label)
    if found is None:
        raise Skip(
            f"hardware {shown(label)} is not in the registry; known: {', '.join(Hardware.names())}"
        )
    return found


def usual_server(device: Accelerator) -> Node | None:
    """Return the server that a device usually runs in, or `None` if the registry has none."""
    return _SERVERS.get(device.name)


def server_of(device: Accelerator) -> Node:
    """Return the usual server of a device.

    Raises
    ------
    Skip
        If the registry has none.
    """
    server = usual_server(device)
    if server is None:
        raise Skip(f"no server of {device.name} is in the registry")
    return server


@functools.cache
def spellings() -> tuple[tuple[str, str], ...]:
    """Return pairs of a name and a key: those of all models, later ones before earlier ones."""
    known = [(name, key) for key in Models.names() for name in _spellings(Models[key])]
    known += [(key, key) for key in Models.names()]
    return (*known, *_HUB.items(), *_MODELS.items())


@functools.cache
def _models() -> Mapping[str, str]:
    """Return the keys of all models by their lowercase names in measurements."""
    return {_plain(name): key for name, key in spellings()}


def _spellings(model: Any) -> tuple[str, ...]:
    """Return the name of a model, and that of the repository that its source names."""
    repository = model.source.title.removesuffix(", config.json")
    return (model.name, *(_names(repository) if "/" in repository else ()))


def _names(label: str) -> Iterator[str]:
    """Yield what a label may call a model: as it is, and as its checkpoint on a hub is named."""
    yield label
    name = label.rsplit("/", 1)[-1]
    # Files of others' conversions begin with the name of the author: Qwen_Qwen3-32B.
    for start in (name, name.split("_", 1)[-1]):
        for end in (start, _REMARKS.sub("", start)):
            yield end
            yield end.removeprefix("Meta-").removeprefix("NVIDIA-")


def find_model(label: str) -> Workload | None:
    """Return the registry's model with the name `label` in measurements, or `None`.

    Case, punctuation and the owner of a repository are ignored. A name with the mark of a variant,
    such as "-Instruct" or "-FP8", finds its base if it has no row of its own.
    """
    found = (_models().get(_plain(name)) for name in _names(label))
    key = next((key for key in found if key), None)
    return None if key is None else Models[key]


def model_named(row: Row) -> TransformerModel:
    """Return the registry's model that a row without a shape names.

    Raises
    ------
    Skip
        If there is none, or it is not a transformer.
    """
    # Adapters and remarks do not change the shape of a model.
    text = re.sub(r" LoRA\b.*$| \(.*\)$", "", row.text("model"))
    model = find_model(text)
    if model is None:
        raise Skip(f"model {shown(row.text('model'))}: no shape given, and none in the registry")
    if not isinstance(model, TransformerModel):
        raise Skip(f"model {shown(row.text('model'))} is not a transformer")
    return model


_RUN = Source(title="A measured run")


def shape_of(
    row: Row, seq_len: int, *, ffn: int | None = None, vocab: int | None = None, **shape: Any
) -> TransformerModel:
    """Return the transformer that a row describes by its shape, with its parameters counted.

    `ffn` and `vocab` are for rows that state none; `shape` has the fields that other columns tell.

    Raises
    ------
    Skip
        If the row lacks a part of the shape.
    """
    hidden, heads = row.whole("hidden"), row.whole("heads")
    stated = {
        "layers": row.whole("layers"),
        "ffn_dim": row.whole("ffn", default=ffn),
        "kv_heads": row.whole("kv_heads", default=heads),
        "vocab_size": row.whole("vocab", default=vocab),
        "head_dim": hidden // heads,
    }
    return TransformerModel(
        name=row.text("model") or "model",
        source=_RUN,
        hidden_dim=hidden,
        heads=heads,
        seq_len=seq_len,
        **(stated | shape),
    )
