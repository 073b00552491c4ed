"""Measured serving runs, one run per row with all its figures, as calls of `ServingSolver`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mlsysim.core.errors import shown
from mlsysim.core.types import (
    Accelerator,
    ServingCalibration,
    find_precision,
)
from mlsysim.registry import Hardware
from mlsysim.registry.calibration.serving import ServingCalibrations
from mlsysim.solvers import ServingSolver
from mlsysim.validation import open_loop
from mlsysim.validation.aliases import accelerator_named, model_named, usual_server
from mlsysim.validation.report import Comparison
from mlsysim.validation.rows import Row, Skip

__all__ = ["arguments", "compare", "formats_of", "refuse_what_is_not_modeled"]

_REQUESTS = 10
"""Requests that each client of a closed loop sends, as in our other table."""
_ARRIVALS = 5
"""Requests that arrive together in a closed loop. In the `calibrate` rows the time to first token
stays at a few prefills even with few clients; 5 fits better than 1 on six of nine pairs of engine
and device."""
_MEAN_LENGTH = 0.9
"""Mean of lengths that are uniform between 0.8 and 1.0 of the stated ones."""
_STORED = (
    # Labels of llama.cpp count a mean over tensors: Q4_K_M takes some 4.8 bits of a weight.
    (r"q8_0|int8|.*8bit", "int8"),
    (r"(ud-)?q4_.*|iq4_.*|int4|gptq4?|awq|.*4bit", "int4"),
    (r"nvfp4|fp4", "fp4"),
    (r"mxfp4", "mxfp4"),
    (r"fp8", "fp8"),
    (r"(f16|fp16)( \(gguf\))?", "fp16"),
    (r"bf16|bfloat16|16 bit \(fp16 or bf16\)", "bf16"),
)
_KEPT = {"fp8": "fp8", "fp8_e4m3": "fp8", "q8_0": "int8", "q4_0": "int4"}
_KEPT_WIDE = ("16 bit", "f16", "fp16", "bf16")
_LOADS = ("closed loop", "one batch", "one sequence")
# These give each device layers of its own, so a sequence passes one device after another.
_BY_LAYERS = ("llama.cpp", "llamacpp", "ollama")
_OPEN = "open loop"
_SINGLE = ("one request", "one request at a time")


def refuse_what_is_not_modeled(row: Row) -> None:
    """Skip a run that no argument of the solver describes.

    Raises
    ------
    Skip
        With what the run has and the solver lacks.
    """
    if row.text("dubious"):
        raise Skip("marked dubious: left out")
    if row.text("mode") == "disagg":
        raise Skip("disaggregated: prefill and decode on devices of their own are not modeled")
    if row.text("load") == "batch":
        raise Skip("load = 'batch': it may count tokens in a pass or requests")
    spec = row.text("spec_decoding")
    if spec.startswith("mtp"):
        raise Skip("speculative decoding is not modeled")
    if spec in ("ambiguous", "unmatched"):
        raise Skip("it is not known whether the run used speculative decoding")
    if row.text("dp_attention") not in ("", "0"):
        raise Skip("data-parallel attention, each rank with its own requests, is not modeled")
    if row.whole("pp", default=1) > 1:
        raise Skip("pipeline parallelism in serving is not modeled")


def _devices(row: Row) -> int:
    """Return the devices that share each layer."""
    count, tp = row.whole("n_gpus", default=1), row.number("tp")
    if row.text("engine").lower() in _BY_LAYERS:
        return 1
    if tp is None and count > 1:
        raise Skip(f"n_gpus = {count} and tp is not stated")
    size = row.whole("tp", default=1)
    if size != count:
        raise Skip(
            "n_gpus differs from tp: experts over more devices than attention, or replicas, are "
            "not modeled"
        )
    return size


def formats_of(label: str, kept: str, device: Accelerator) -> tuple[str, str, str]:
    """Return the formats of arithmetic, weights, and keys and values.

    Arithmetic is in the format of the weights where the device has it, or else in 16 bits. Where
    `kept`, the format of keys and values, is not stated, engines take 8 bits for weights in FP8 or
    FP4, and 16 for others.

    Raises
    ------
    Skip
        If the label names no format that weights are stored in.
    """
    text = label.lower()
    stored = next((name for words, name in _STORED if re.fullmatch(words, text)), None)
    if text in ("", "unstated"):
        raise Skip("the format of the weights is not stated")
    if stored is None:
        raise Skip(f"weight_precision = {shown(label)}: weights of that width are not modeled")
    rates = device.compute.precisions
    wide = "bf16" if "bf16" in rates else "fp16"
    if find_precision(stored).bits >= 16:
        arithmetic = stored if stored in rates else wide
        stored = arithmetic
    else:
        arithmetic = stored if stored in ("fp8", "fp4") and stored in rates else wide
    return arithmetic, stored, _kept(kept.lower(), arithmetic, wide)


def _kept(label: str, arithmetic: str, wide: str) -> str:
    if label in ("", "unstated"):
        return "fp8" if arithmetic in ("fp8", "fp4") else wide
    if label in _KEPT_WIDE:
        return wide
    if label not in _KEPT:
        raise Skip(f"kv_precision = {shown(label)}: keys and values of that width are not modeled")
    return _KEPT[label]


def _calibration(row: Row, device: Accelerator) -> ServingCalibration | None:
    engine, blackwell = row.text("engine").lower(), device.generation == "blackwell"
    if device.generation not in ("hopper", "blackwell"):
        return None
    if "vllm" in engine:
        return ServingCalibrations.Blackwell_vLLM if blackwell else ServingCalibrations.Hopper_vLLM
    if "sglang" in engine and not blackwell:
        return ServingCalibrations.Hopper_SGLang
    return None


def _length(row: Row, column: str, default: int | None = None) -> int:
    stated = row.whole(column, default=default)
    uniform = row.text("len_note") == "uniform 0.8-1.0"
    return max(1, round(_MEAN_LENGTH * stated)) if uniform else stated


def _device(row: Row) -> Accelerator:
    if row.text("note").startswith("cpu_only"):
        raise Skip("it ran on a processor without an accelerator, none of which is in the registry")
    if row.text("group").startswith("llm_inference_bench") and row.text("hardware") == "a100":
        # What fits and what does not tells that it is the smaller one; the source does not say.
        return Hardware.A100_40GB
    label = row.text("hardware")
    try:
        return accelerator_named(label)
    except Skip:
        raise Skip(f"hardware {shown(label)} is not in the registry") from None


def arguments(row: Row) -> dict[str, Any]:
    """Return the solver's arguments for a measured run; those of `OpenLoopSolver` in an open loop.

    Raises
    ------
    Skip
        If the row lacks what a prediction needs, or the solver what the run had.
    """
    refuse_what_is_not_modeled(row)
    device = _device(row)
    model = model_named(row)
    load = row.text("load")
    if load not in _LOADS and load not in _SINGLE and not load.startswith(_OPEN):
        raise Skip(f"load = {shown(load)} is not one of {', '.join((*_LOADS, *_SINGLE))}")
    precision, weight, kv = formats_of(
        row.text("weight_precision"), row.text("kv_precision"), device
    )
    tp = _devices(row)
    node = usual_server(device)
    if tp > 1 and node is None:
        raise Skip(f"tp = {tp}, and no server of {device.name} is in the registry")
    if load.startswith(_OPEN):
        plan = {"model": model, "hardware": node or device, "tp_size": tp}
        formats = {"precision": precision, "weight_precision": weight, "kv_precision": kv}
        return open_loop.arguments(row, plan | formats, device)
    single = load in _SINGLE
    return {
        "model": model,
        "hardware": node or device,
        "seq_len": _length(row, "isl", 1 if single else None),
        "output_len": _length(row, "osl", 200 if single else None),
        "batch_size": row.whole("concurrency"),
        "precision": precision,
        "weight_precision": weight,
        "kv_precision": kv,
        "tp_size": tp,
        "waves": _REQUESTS if load == "closed loop" else 1,
        "arrivals": _ARRIVALS if load == "closed loop" else 1,
        "calibration": _calibration(row, device),
    }


_Said = tuple[str, str, str, tuple[Any, Any, Any]]
# What a column measured, as a field of the result; bands where the result has them.
_TIMES = (("ttft_mean_ms", "ttft", "ttft"), ("tpot_mean_ms", "tpot", "itl"))


def _found(row: Row, given: dict[str, Any], result: Any) -> Iterator[_Said]:
    """Yield column, quantity and unit, and the prediction with its band where it has one."""
    load = row.text("load")
    if load == "closed loop":
        for column, quantity, field in _TIMES:
            said, low, high = (
                None if value is None else value.to("ms").magnitude
                for value in (result.get(f"{field}{edge}") for edge in ("", "_low", "_high"))
            )
            yield column, quantity, "ms", (said, low, high)
        tokens = given["seq_len"] + given["output_len"]
        rate = tokens * result.request_throughput.to_base_units().magnitude / given["tp_size"]
        yield "total_tokens_per_s_per_gpu", "tokens per device", "token/s", (rate, None, None)
    elif load in _SINGLE:
        rate = result.decode_throughput.to_base_units().magnitude
        yield "output_tokens_per_s_per_user", "decode rate", "token/s", (rate, None, None)
    else:
        time = result.latency.to("ms").magnitude
        yield "e2e_mean_ms", "batch time", "ms", (time, None, None)


def compare(row: Row) -> tuple[Comparison, ...]:
    """Predict every figure of a run that the solver has.

    Raises
    ------
    Skip
        If the row lacks what a prediction needs, or the solver what the run had.
    """
    given = arguments(row)
    if row.text("load").startswith(_OPEN):
        return open_loop.compare_open_loop(row, given)
    result = ServingSolver.solve(**given)
    if row.text("load") == "one batch" and result.running_batch_size < given["batch_size"]:
        raise Skip("the batch does not fit, and the source does not say how it was divided")
    found = tuple(
        Comparison(
            id=row.name,
            group=f"{row.group}: {quantity}",
            split=row.text("split"),
            quantity=f"{quantity} ({unit})",
            measured=row.measured(column),
            predicted=said,
            low=low,
            high=high,
        )
        for column, quantity, unit, (said, low, high) in _found(row, given, result)
        if row.text(column)
    )
    if not found:
        raise Skip(f"nothing that is predicted for load = {shown(row.text('load'))} was measured")
    return found
