"""Measured open-loop runs of servers, as calls of `OpenLoopSolver`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from mlsysim.core.errors import shown
from mlsysim.core.types import Accelerator, ServingCalibration
from mlsysim.registry.calibration.serving import ServingCalibrations
from mlsysim.solvers import OpenLoopSolver
from mlsysim.validation.report import Comparison
from mlsysim.validation.rows import Row, Skip

__all__ = ["arguments", "compare_open_loop"]

_BLOCK = 16
"""Tokens per block of vLLM's cache. The last block of a prompt is recomputed: half on average."""
_USERS = re.compile(r"system prompt \d+ shared by (\d+) users, (\d+) of them")
_REPEATS = 10
"""Requests per distinct prompt above which nearly all prompts are in the cache."""
_BATCH_LIMIT = 128
"""Sequences at once if a row states none: the setting of the collection's other runs."""
# The field of the result for each measured column.
_TIMES = (
    ("ttft_mean_ms", "mean TTFT", "ttft_mean"),
    ("ttft_p50_ms", "p50 TTFT", "ttft_p50"),
    ("ttft_p90_ms", "p90 TTFT", "ttft_p90"),
    ("ttft_p99_ms", "p99 TTFT", "ttft_p99"),
    ("tpot_mean_ms", "TPOT", "tpot_mean"),
    ("e2e_mean_ms", "mean time to the end", "e2e_mean"),
    ("e2e_p50_ms", "p50 time to the end", "e2e_p50"),
    ("e2e_p90_ms", "p90 time to the end", "e2e_p90"),
    ("e2e_p99_ms", "p99 time to the end", "e2e_p99"),
)


def _rate(row: Row) -> float:
    stated = row.text("arrival_rate_rps")
    if not stated:
        raise Skip("the arrival rate is not stated")
    if " then " in stated:
        raise Skip(f"arrival_rate_rps = {shown(stated)}: stages of different rates are pooled")
    rate = row.number("arrival_rate_rps")
    if rate is None or rate <= 0:
        raise Skip(f"arrival_rate_rps = {shown(stated)} is not above zero")
    return rate


def _cached_share(row: Row, prompt: float) -> float:
    """Return the share of each prompt that is in the cache.

    The load generator creates one prompt for each user of each system prompt, and repeats these.
    With prefix caching and thousands of requests, nearly every prompt is already cached. The second
    collection uses the same generator with the same sizes.
    """
    stated = _USERS.search(row.text("len_note"))
    if stated:
        requests = (row.number("requests_ok") or 0) + (row.number("requests_failed") or 0)
        if requests < _REPEATS * int(stated[1]) * int(stated[2]):
            raise Skip("few requests repeat a prompt: the share that is in the cache is not known")
    return 1 - min(_BLOCK / 2, prompt) / prompt


def _calibration(row: Row, device: Accelerator) -> ServingCalibration | None:
    wide = row.text("weight_precision") in ("fp16", "bf16", "fp8")
    if device.generation != "hopper" or "vllm" not in row.text("engine").lower() or not wide:
        return None
    constants = ServingCalibrations.Hopper_vLLM_Open
    budget = row.whole("max_num_batched_tokens", default=constants.pass_tokens)
    return dataclasses.replace(constants, pass_tokens=budget)


def arguments(row: Row, plan: dict[str, Any], device: Accelerator) -> dict[str, Any]:
    """Return the solver's arguments for a measured run.

    Parameters
    ----------
    row
        The run.
    plan
        Model, hardware, number formats and `tp_size`, as for any run of a server.
    device
        The device.

    Raises
    ------
    Skip
        If the row lacks required data.
    """
    if "constant spacing" not in row.text("load") and row.text("load") != "open loop":
        raise Skip(f"load = {shown(row.text('load'))}: how requests are spaced is not known")
    prompt = row.number("isl")
    if prompt is None:
        raise Skip("isl is missing")
    return {
        **plan,
        "arrival_rate": _rate(row),
        # Both collections sent requests at a constant rate.
        "burstiness": 0,
        "seq_len": prompt,
        "output_len": row.whole("osl"),
        "cached_share": _cached_share(row, prompt),
        "batch_limit": row.whole("max_num_seqs", default=_BATCH_LIMIT),
        "calibration": _calibration(row, device),
    }


def compare_open_loop(row: Row, given: dict[str, Any]) -> tuple[Comparison, ...]:
    """Predict every figure of a run.

    Raises
    ------
    Skip
        If the prediction has no steady state, as the run may not have had.
    """
    result = OpenLoopSolver.solve(**given)
    if not result.feasible:
        raise Skip(f"no steady state is predicted: {'; '.join(result.reasons)}")
    return tuple(_comparisons(row, result))


def _comparisons(row: Row, result: Any) -> Iterator[Comparison]:
    for column, quantity, field in _TIMES:
        if row.text(column):
            yield Comparison(
                id=row.name,
                group=f"{row.group}: {quantity}",
                split=row.text("split"),
                quantity=f"{quantity} (ms)",
                measured=row.measured(column),
                predicted=result[field].to("ms").magnitude,
                low=None,
                high=None,
            )
