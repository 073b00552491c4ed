"""Measured serving runs as calls of `ServingSolver`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlsysim.core.errors import shown
from mlsysim.core.types import Accelerator, TransformerModel
from mlsysim.registry import Hardware
from mlsysim.registry.calibration.serving import serving_calibration_for
from mlsysim.solvers import ServingSolver
from mlsysim.validation.report import Comparison, comparison
from research.readers import serving_runs
from research.readers.aliases import accelerator_named, model_named, shape_of, usual_server
from research.rows import Row, Skip

# The result's field for a quantity, by the first key that matches its beginning.
_FIELDS = {
    "measured TTFT": "ttft",
    "prefill latency": "ttft",
    "measured TPOT": "itl",
    "decode latency per token": "decode_latency",
    "decode rate": "decode_throughput",
    "tg128 decode rate": "decode_throughput",
    "total latency": "latency",
    "max output throughput": "output_throughput",
}
# Widths of heads that differ from the residual width divided by the number of heads.
_HEAD_DIM = {"qwen3-32b": 128}
_HELD_STEPS = 20
"""Decode steps for which TensorRT-LLM was told to wait for more requests, in runs of Llama 3.3 70B
with prompts and answers of 1,024 tokens on fewer than eight devices: the script that started them,
https://github.com/SemiAnalysisAI/InferenceX, benchmarks/70b_fp8_b200_trt_slurm.sh until
October 2025."""
_OFFLINE = 100_000
"""Sequences in decode at once if the row states no limit."""
_GENERATED = 200
"""Tokens generated if the row states none: the default of gpt-fast."""


def field_of(row: Row) -> str:
    """Return the result's field that a row measured.

    Raises
    ------
    Skip
        If the solver predicts no such quantity.
    """
    quantity = row.text("quantity")
    for name, field in _FIELDS.items():
        if quantity.startswith(name):
            return field
    raise Skip(f"quantity {shown(quantity)} is not one that the solver predicts")


def _model(row: Row) -> TransformerModel:
    """Return the model of a row, with parameters counted from its shape; or the one it names."""
    if row.number("layers") is None:
        return model_named(row)
    stated = row.number("gated")
    gated = "GPT" not in row.text("model") if stated is None else bool(stated)
    head_dim = _HEAD_DIM.get(row.text("model"))
    return shape_of(
        row,
        row.whole("isl", default=2048),
        vocab=50_257,
        gated_mlp=gated,
        tied_embeddings=not gated,
        **({} if head_dim is None else {"head_dim": head_dim}),
    )


def _formats(row: Row) -> tuple[str, str, str]:
    """Return the formats of arithmetic, weights, and keys and values.

    If a row does not state the format, the name of its checkpoint does: repositories without FP8
    or FP4 in their name hold 16-bit weights. The decode times of the `calibrate` rows agree: H100s
    read the 8B model at three quarters of their bandwidth if it has 16 bits, and the 32B model
    waits for memory on one H100, which it would not in 8 bits.
    """
    weight, name = row.text("weight_precision").lower(), row.text("note").split(";")[0].lower()
    if "fp4" in weight or (weight == "unstated" and "fp4" in name):
        return "fp4", "fp4", "fp8"
    if "fp8" in weight or (weight == "unstated" and "fp8" in name):
        return "fp8", "fp8", "fp8"
    if weight.startswith("int8"):
        return "fp16", "int8", "fp16"
    if weight.startswith(("int4", "q4")):
        return "fp16", "int4", "fp16"
    wide = "fp16" if weight == "fp16" else "bf16"
    return wide, wide, wide


def _clients(row: Row, device: Accelerator) -> tuple[int | None, int]:
    """Return how many requests each client sent, and how many arrived together later.

    The source does not state this, so it is inferred from the `calibrate` rows by comparing the
    time to first token with the time of one prefill. That ratio grows with the number of clients as
    if each sent ten requests, but with SGLang on the H100 as if each sent one. In the runs of 2025,
    which state the version of the engine, it stays at a few prefills even with few clients, as if
    requests came in groups; not so where a request also waits for a place. NIM was measured with
    clients that each wait for their own answer.
    """
    engine = row.text("engine").lower()
    if row.text("quantity").startswith("max"):
        return None, 1
    if "sglang" in engine and device is Hardware.H100:
        return 1, 1
    alone = engine in ("trtllm", "vllm") or engine.startswith("nim") or _one_place_short(row)
    return 10, 1 if alone else 5


def _one_place_short(row: Row) -> bool:
    """Whether a server ran one request fewer than there were clients.

    The source does not state this. With up to 32 clients of Llama 3.1 8B on TensorRT-LLM 1.0, the
    time to first token of the `calibrate` rows grows with the length of answers: by the time of one
    answer, divided by the number of clients. That is the wait of clients for one missing place. The
    same engine's runs of Qwen3 32B take as long with answers of 128 tokens as with 512.
    """
    return (
        row.text("model") == "llama3.1-8b"
        and row.text("engine").lower().startswith("trtllm 1.0")
        and row.whole("concurrency") > 1
    )


def _held_steps(row: Row) -> float:
    held = (
        row.text("engine").lower() == "trtllm"
        and row.text("model") == "llama3.3-70b"
        and row.whole("isl", default=1) == row.whole("osl", default=1) == 1024
        and row.whole("tp", default=1) < 8
    )
    return _HELD_STEPS if held else 0


def arguments(row: Row) -> dict[str, Any]:
    """Return the solver's arguments for a measured run.

    Raises
    ------
    Skip
        If the row lacks required data.
    """
    device = accelerator_named(row.text("hardware"))
    if device is Hardware.GB200 and row.text("weight_precision") == "unstated":
        raise Skip(
            "neither number format nor concurrency of one replica is stated; times fall as "
            "concurrency rises"
        )
    precision, weight, kv = _formats(row)
    waves, arrivals = _clients(row, device)
    offline = row.text("concurrency").startswith("max")
    return {
        "model": _model(row),
        "hardware": usual_server(device) or device,
        "seq_len": row.whole("isl", default=1),
        "output_len": row.whole("osl", default=_GENERATED),
        "batch_size": _OFFLINE if offline else row.whole("concurrency"),
        "precision": precision,
        "weight_precision": weight,
        "kv_precision": kv,
        "tp_size": row.whole("tp", default=1),
        "pp_size": row.whole("pp", default=1),
        "max_sequences": row.whole("concurrency") - 1 if _one_place_short(row) else None,
        "waves": waves,
        "arrivals": arrivals,
        "calibration": replace(
            serving_calibration_for(device, row.text("engine")), hold_steps=_held_steps(row)
        ),
    }


def measured(row: Row) -> float:
    """Return the measured value in SI units.

    Raises
    ------
    Skip
        If the row has none.
    """
    value = row.measured()
    return value / 1000 if row.text("unit") == "ms" else value


def compare(row: Row) -> Comparison | tuple[Comparison, ...]:
    """Predict a measured quantity, or all of a run whose row has several.

    Raises
    ------
    Skip
        If the row lacks required data.
    """
    if "quantity" not in row.cells:
        return serving_runs.compare(row)
    field, value = field_of(row), measured(row)
    result = ServingSolver.solve(**arguments(row))
    unit = "token/s" if "throughput" in field else "s"
    quantity = f"{row.text('quantity')} ({row.text('unit')})"
    return comparison(row, result, field, unit, value, quantity=quantity)
