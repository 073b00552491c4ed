"""Settings with which published runs were started, where their table does not state them.

InferenceX publishes the scripts that started its servers. They set how many tokens a pass takes,
how often an engine looks for requests, and the format of keys and values. Each setting holds from
the day on which the script has it. Where a script leaves one out, the engine's own default holds:
vLLM and SGLang keep keys and values in 16 bits.

The scripts also set how many tokens a draft has. InferenceX publishes mean acceptance lengths per
model and draft length, measured with the coding prompts of SPEED-Bench (`golden_al_distribution`,
June 2026), with and without thinking. The table of runs states neither, so predictions that use
them say so, and their bands cover the published range.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mlsysim.core.types import ServingCalibration
from mlsysim.core.units import Q_
from research.rows import Row

_SOURCE = "aiconfigurator"
"""Collection whose runs are those of InferenceX."""
_FIRST_NARROW = {
    # From these days on, the scripts of vLLM have `--kv-cache-dtype fp8`, and those of MiniMax a
    # pass of two prompts.
    ("minimax", "b200", "fp8"): "2026-04-03",
    ("minimax", "b200", "fp4"): "2026-04-08",
    ("minimax", "b300", "fp8"): "2026-04-17",
    ("minimax", "b300", "fp4"): "2026-04-17",
    ("kimi", "b200", "fp4"): "2026-04-20",
    ("kimi", "b300", "fp4"): "2026-04-20",
}
_BUSY = 16
"""Clients from which the scripts of SGLang let the scheduler look for requests less often."""
_RARELY, _OFTEN = 30, 10
_RELEASES = 60
"""Steps after which TensorRT-LLM's scripts release the prompts that ranks of attention hold back to
take them together (`timeout_iters` of `attention_dp_config`). The engine counts steps whether
prompts wait or not, so that a prompt finds the count anywhere."""
_LARGE, _SMALL = 32_768, 16_384
_COMPILES, _COMPILE_S = ("2025-11-10", "b200", "fp4"), 70.0
"""Day, device and format of runs of SGLang whose first full pass compiled kernels, and the seconds
that it took: in the `calibrate` rows, the mean over ten requests per client is 7 s longer from
16,384 tokens of prompts in the first wave. Runs of 2025-11-18 do not wait."""


@dataclass(frozen=True)
class Recipe:
    """Settings of a server."""

    kept: str = ""
    """Format of keys and values; empty if it is not known."""
    budget: int | None = None
    """Tokens of a pass; `None` if it is not known."""
    poll_steps: float = 1
    hold_steps: float = 0
    compile_s: float = 0
    aligned_ranks: float = 0
    """1 where ranks of attention prefill prompts in the same passes."""
    expert_padding: float = 0
    """Rows that grouped products add for each expert on a device."""

    def applied(self, constants: ServingCalibration) -> ServingCalibration:
        """Return constants of an engine with these settings."""
        return replace(
            constants,
            poll_steps=self.poll_steps,
            hold_steps=self.hold_steps,
            compile_time=Q_(self.compile_s, "s"),
            aligned_ranks=self.aligned_ranks,
            expert_padding=self.expert_padding,
        )


def recipe_of(row: Row) -> Recipe:
    """Return the settings of a run, as far as they are published."""
    if row.text("source") != _SOURCE or row.text("mode") != "agg":
        return Recipe()
    engine = row.text("engine").lower()
    found = {"sglang": _sglang, "vllm": _vllm, "trtllm": _tensorrt}.get(engine)
    # The scripts of TensorRT-LLM and SGLang balance the prompts of ranks. Those of vLLM have no
    # such setting, but times between tokens of its `calibrate` rows agree better with it.
    return Recipe() if found is None else replace(found(row), aligned_ranks=1)


def energy_recipe_of(row: Row) -> Recipe:
    """Return the settings of a run of the ML.ENERGY Benchmark, from its published configurations.

    Keys and values stay in vLLM's default format, that of the activations. Weights of Qwen3 in
    FP8 have a scale per block, so vLLM 0.11 runs their experts with DeepGEMM. Its buffer has room
    to align the rows of each expert to 128 (`compute_aligned_M`), and runs agree best with the time
    and power of computing all of it. DeepSeek's are run with FlashInfer instead, and those of
    Llama 4 have a scale per channel, for which there are other kernels.
    """
    if row.group != "mlenergy_llm":
        return Recipe()
    name = row.text("model").rsplit("/", 1)[-1]
    aligned = name.startswith("Qwen3") and name.endswith("-FP8")
    return Recipe(kept="16 bit", budget=8192, expert_padding=127 if aligned else 0)


def _parts(row: Row) -> tuple[str, str, str]:
    """Return the first word of the model, the device and the format of the weights."""
    name = row.text("model").rsplit("/", 1)[-1].lower()
    device = row.text("hardware").split("_")[0]
    return name.split("-")[0], device, row.text("weight_precision")


def _vllm(row: Row) -> Recipe:
    model, device, weight = _parts(row)
    first = _FIRST_NARROW.get((model, device, weight))
    if first is None or row.text("measured_on") < first:
        return Recipe(kept="16 bit")
    isl = row.whole("isl")
    return Recipe(kept="fp8", budget=2 * isl if model == "minimax" else None)


def _sglang(row: Row) -> Recipe:
    model, device, weight = _parts(row)
    clients = row.whole("concurrency")
    usual = _RARELY if clients >= _BUSY else _OFTEN
    if device not in ("b200", "b300"):
        narrow = model == "qwen3.5"
        budget = {"deepseek": _LARGE, "qwen3.5": _SMALL}.get(model)
        return Recipe(kept="fp8" if narrow else "16 bit", budget=budget)
    if model == "glm":
        return Recipe("fp8", _LARGE, _OFTEN if weight == "fp4" else 1)
    if model == "qwen3.5":
        if weight == "bf16" or (weight == "fp4" and device == "b300"):
            return Recipe("16 bit" if weight == "bf16" else "fp8", _LARGE, usual)
        eager = _OFTEN if device == "b300" or clients <= 4 else _RARELY
        return Recipe("fp8", _SMALL, eager)
    if weight == "fp4":
        apart = row.text("dp_attention") == "1"
        compiles = (row.text("measured_on"), device, weight) == _COMPILES
        budget, polls = (_LARGE, 1) if apart else (_SMALL, usual)
        return Recipe("fp8", budget, polls, compile_s=_COMPILE_S if compiles else 0)
    if row.whole("tp", default=1) == 4:
        return Recipe("fp8", 8192, _OFTEN)
    return Recipe("fp8", _LARGE, usual)


def _tensorrt(row: Row) -> Recipe:
    model, device, weight = _parts(row)
    if model != "deepseek":
        return Recipe()
    clients, isl, osl = row.whole("concurrency"), row.whole("isl"), row.whole("osl")
    # The scripts round up to whole blocks of 64 tokens.
    budget = -(-(clients + isl + 64) // 64) * 64
    day = row.text("measured_on")
    fp8 = device == "b200" and weight == "fp8"
    if fp8 and day >= "2026-01-21":
        budget = max(budget, 8192)
    held = fp8 and day >= "2026-01-29" and (isl, osl) == (1024, 1024) and clients >= 64
    apart = row.text("dp_attention") == "1"
    return Recipe("fp8", budget, _RELEASES if apart else 1, hold_steps=40 if held else 0)


_ACCEPTED: dict[str, dict[int, tuple[float, float]]] = {
    # DeepSeek-V3's are those of V4-Pro: its report has only the first draft, 1.85 to 1.90.
    "deepseek": {1: (1.79, 1.92), 2: (2.27, 2.61), 3: (2.49, 2.97)},
    "qwen3.5": {1: (1.92, 1.93), 2: (2.70, 2.73), 3: (3.33, 3.39)},
    "glm": {1: (1.84, 1.84), 2: (2.50, 2.50), 3: (2.99, 2.99)},
}
"""Mean tokens that a step yields, from the least to the most published, by model and draft."""
_LONG, _MEDIUM = 64, 96
"""Clients per rank of attention up to which scripts of TensorRT-LLM draft 3 tokens: on any number
of ranks, and on 8 or fewer."""
_FEW_RANKS = 8


@dataclass(frozen=True)
class Drafts:
    """Drafts that a run is assumed to have used."""

    tokens: int
    low: float
    """Least published acceptance length."""
    accepted: float
    high: float
    certain: bool
    """Whether the run drafted at all; if not, a run without drafts is as likely."""

    def arguments(self, accepted: float | None = None) -> dict[str, Any]:
        """Return the arguments of the solver."""
        return {"draft_tokens": self.tokens, "acceptance_length": accepted or self.accepted}

    @property
    def note(self) -> str:
        """What is assumed."""
        either = "" if self.certain else "either no drafts or "
        return (
            f"assumes {either}drafts of {self.tokens} and an acceptance length of "
            f"{self.accepted:.2f} ({self.low:.2f} to {self.high:.2f})"
        )


def drafts_of(row: Row) -> Drafts | None:
    """Return the drafts of a run, if it had or may have had any."""
    spec = row.text("spec_decoding")
    if not (spec == "mtp" or spec in ("ambiguous", "unmatched")):
        return None
    tokens = _draft_length(row)
    least = min(known[tokens][0] for known in _ACCEPTED.values())
    most = max(known[tokens][1] for known in _ACCEPTED.values())
    name = _model_family(row)
    low, high = _ACCEPTED[name][tokens] if name in _ACCEPTED else (least, most)
    # Coding is where most drafts are accepted, so the least of all models bounds other prompts.
    return Drafts(tokens, least, (low + high) / 2, high, certain=spec == "mtp")


def _model_family(row: Row) -> str:
    return row.text("model").rsplit("/", 1)[-1].lower().split("-")[0]


def _draft_length(row: Row) -> int:
    """Return the length of a draft in the published scripts."""
    if row.text("engine").lower() != "trtllm":
        return 2 if _model_family(row) == "deepseek" else 3
    if row.text("mode") != "disagg":
        return 1 if row.text("dp_attention") == "1" else 3
    if row.text("decode_dp_attention") != "1":
        return 3
    ranks = row.whole("decode_tp")
    clients = row.whole("concurrency") / (row.whole("decode_workers") * ranks)
    return 3 if clients < (_MEDIUM if ranks <= _FEW_RANKS else _LONG) else 1
