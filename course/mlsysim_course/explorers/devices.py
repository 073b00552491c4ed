"""Explorers of one device: the roofline, and which device fits a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsysim.core.errors import ConfigError
from mlsysim.core.types import PRECISIONS
from mlsysim.registry import Hardware, Models
from mlsysim.solvers import ServingSolver, SingleNodeSolver
from mlsysim_course.controls import Selector, Slider
from mlsysim_course.explorers.charts import axis, bars, line, lines, mark, part
from mlsysim_course.explorers.declare import Answer, Explorer, amount, figure, options, read

DEVICES = ("A100", "H100", "H200", "B200", "MI300X", "L4", "L40S", "T4", "V100", "TPUv5e")
NETWORKS = ("ResNet50", "MobileNetV2", "BERT_Base", "GPT2", "Llama3_8B", "Llama3_70B")
SERVED = ("Llama3_8B", "Qwen3_14B", "Gemma3_27B", "Qwen3_32B", "Llama3_70B", "Mixtral_8x7B")
COMPARED = ("L4", "L40S", "A100", "H100", "H200", "B200", "MI300X", "RTX_4090")
WIDTHS = {name: name for name in ("bf16", "fp8", "int4")}
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_RATE, _INTENSITY = "TFLOP/s", "FLOP/B"
TEXTBOOK = 0.5
"""Share of the peak rate that programs reach in textbooks."""


def device_control(first: str, names: tuple[str, ...] = DEVICES) -> Selector:
    """Return the choice of a device."""
    return Selector("device", "Device", first, options(Hardware, names))


def _formats() -> dict[str, str]:
    usual = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8")
    return {name: name for name in usual if name in PRECISIONS}


def _roofline(s: Mapping[str, Any]) -> Answer:
    device, model = getattr(Hardware, s["device"]), getattr(Models, s["model"])
    result = SingleNodeSolver.solve(
        model=model,
        hardware=device,
        batch_size=s["batch"],
        precision=s["precision"],
        efficiency=TEXTBOOK,
    )
    peak = amount(device.compute.rate(s["precision"]), _RATE)
    bandwidth = amount(device.memory.bandwidth, "TB/s")
    ridge = peak / bandwidth
    at = amount(result.arithmetic_intensity, _INTENSITY)
    reached = amount(result.flops / result.latency, _RATE)
    low, high = min(1.0, at / 2), max(4 * ridge, 2 * at)
    roof = [(low, low * bandwidth), (ridge, peak), (high, peak)]
    own = [(low, low * bandwidth), (TEXTBOOK * ridge, TEXTBOOK * peak), (high, TEXTBOOK * peak)]
    bound = "memory bandwidth" if result.bottleneck == "memory" else "compute"
    return Answer(
        f"{model.name} on {device.name} in {s['precision']}: at batch size {s['batch']:,}, the "
        f"intensity is {figure(at)} {_INTENSITY} and {bound} is the limit. A pass takes "
        f"{figure(amount(result.latency, 'ms'))} ms.",
        (
            read("Time of a pass", result, "latency", "ms"),
            read("Throughput", result, "throughput", "1/s", shown="samples/s"),
            read("Intensity", result, "arithmetic_intensity", _INTENSITY),
            read("Ridge point of the program", result, "ridge_point", _INTENSITY),
        ),
        (
            lines(
                axis(f"Arithmetic intensity ({_INTENSITY})", log=True),
                axis(f"Rate ({_RATE})", log=True),
                [
                    line(f"at {TEXTBOOK:.0%} of the peak", own),
                    line("roof of the device", roof, dashed=True),
                ],
                marks=[mark(at, reached, f"batch {s['batch']:,}")],
            ),
        ),
    )


ROOFLINE = Explorer(
    "roofline",
    "Move a program under the roof",
    f"One pass on one device. Compute reaches {TEXTBOOK:.0%} of the peak and memory its full "
    "bandwidth, with no other cost.",
    (
        device_control("A100"),
        Selector("model", "Model", "ResNet50", options(Models, NETWORKS)),
        Slider("batch", "Batch size", 1, BATCHES),
        Selector("precision", "Number format", "fp16", _formats()),
    ),
    _roofline,
)
"""The roofline of a device, and a program under it."""


def _which(s: Mapping[str, Any]) -> Answer:
    model = getattr(Models, s["model"])
    found, refused = [], []
    for name in COMPARED:
        device = getattr(Hardware, name)
        try:
            result = ServingSolver.solve(
                model=model,
                hardware=device,
                batch_size=s["users"],
                seq_len=s["context"],
                precision="bf16",
                weight_precision=s["weights"],
                efficiency=TEXTBOOK,
            )
        except ConfigError as fault:
            refused.append(f"{device.name}: {fault.message}")
            continue
        found.append((name, device, result))
    if not found:
        raise ConfigError("; ".join(refused), argument="weights")
    fits = sorted(
        (case[1:] for case in found if case[2].feasible), key=lambda case: amount(case[1].itl, "ms")
    )
    chart = bars(
        axis("GB", zero=True),
        [
            item
            for name, _, result in found
            for item in (
                part(
                    name,
                    "needed" if result.feasible else "does not fit",
                    amount(result.total_memory_required, "GB"),
                ),
                part(name, "free", _free(result)),
            )
        ],
    )
    asked = f"{model.name} with {s['users']:,} users of {s['context']:,} tokens"
    if not fits:
        need = read("Memory needed", found[0][2], "total_memory_required", "GB")
        return Answer(
            f"{asked} does not fit on any of these devices: it needs {need.text}.",
            (need,),
            (chart,),
            "bad",
        )
    device, best = fits[0]
    return Answer(
        f"{asked} fits on {len(fits)} of {len(COMPARED)} devices. The fastest is {device.name}, "
        f"with {figure(amount(best.itl, 'ms'))} ms between tokens.",
        (
            read("Memory needed", best, "total_memory_required", "GB"),
            read("Time between tokens", best, "itl", "ms"),
            read("Time to first token, all prompts at once", best, "ttft", "s"),
            read("Throughput, all users", best, "decode_throughput", "1/s", shown="tokens/s"),
        ),
        (chart,),
        "good",
    )


def _free(result: Any) -> float:
    need, room = (
        amount(getattr(result, name), "GB") for name in ("total_memory_required", "memory_capacity")
    )
    return max(0.0, room - need)


WHICH_GPU = Explorer(
    "which-gpu",
    "Which GPU for this model?",
    f"One device, computing in bf16. The users have prompts of equal length and no output yet. "
    f"Compute reaches {TEXTBOOK:.0%} of the peak and memory its full bandwidth.",
    (
        Selector("model", "Model", "Llama3_8B", options(Models, SERVED)),
        Slider("users", "Concurrent users", 16, (1, 2, 4, 8, 16, 32, 64, 128)),
        Slider("context", "Tokens per user", 8192, (512, 2048, 8192, 32_768)),
        Selector("weights", "Weight format", "bf16", WIDTHS),
    ),
    _which,
)
"""The devices with enough memory for a model, and the fastest of them."""
