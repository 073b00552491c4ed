"""Speculative decoding in published runs whose table does not state its drafts.

InferenceX publishes the scripts that started its servers, which set how many tokens a draft has.
It also publishes mean acceptance lengths per model and draft length, measured with the coding
prompts of SPEED-Bench (`golden_al_distribution`, June 2026), with and without thinking. The table
of runs states neither, so predictions that use them say so, and their bands cover the published
range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlsysim.validation.rows import Row

__all__ = ["Drafts", "drafts_of"]

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
    tokens = _length(row)
    least = min(known[tokens][0] for known in _ACCEPTED.values())
    most = max(known[tokens][1] for known in _ACCEPTED.values())
    name = _family(row)
    low, high = _ACCEPTED[name][tokens] if name in _ACCEPTED else (least, most)
    # Coding is where most drafts are accepted, so the least of all models bounds other prompts.
    return Drafts(tokens, least, (low + high) / 2, high, certain=spec == "mtp")


def _family(row: Row) -> str:
    return row.text("model").rsplit("/", 1)[-1].lower().split("-")[0]


def _length(row: Row) -> int:
    """Return the length of a draft in the published scripts."""
    if row.text("engine").lower() != "trtllm":
        return 2 if _family(row) == "deepseek" else 3
    if row.text("mode") != "disagg":
        return 1 if row.text("dp_attention") == "1" else 3
    if row.text("decode_dp_attention") != "1":
        return 3
    ranks = row.whole("decode_tp")
    clients = row.whole("concurrency") / (row.whole("decode_workers") * ranks)
    return 3 if clients < (_MEDIUM if ranks <= _FEW_RANKS else _LONG) else 1
