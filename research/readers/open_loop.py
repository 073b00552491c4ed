"""Measured open-loop runs of servers, as calls of `OpenLoopSolver`."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from typing import Any

from mlsysim.core.errors import shown
from mlsysim.core.types import Accelerator, ServingCalibration
from mlsysim.registry.calibration.serving import ServingCalibrations
from mlsysim.solvers import OpenLoopSolver
from mlsysim.validation.report import Comparison, comparison
from research.rows import Row, Skip

_BLOCK = 16
"""Tokens per block of vLLM's cache. The last block of a prompt is recomputed: half on average."""
_USERS = re.compile(r"system prompt \d+ shared by (\d+) users, (\d+) of them")
_STAGE = re.compile(r"_stage[1-9]\d*$")
"""Later stages of a run, which start with the cache of the stages before."""
_REPEATS = 3
"""Requests per distinct prompt in runs that do not state their number. The means of first stages in
the `calibrate` rows agree best with this."""
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


def _new_tokens(row: Row, prompt: float) -> dict[str, float]:
    """Return the mean share of a prompt that is cached, and how much the rest of it varies.

    The load generator makes one prompt for each user of each system prompt, and repeats these. Each
    is prefilled in full the first time, and up to its last block later. The second collection uses
    the same generator with the same sizes, but does not state how many requests it sent.
    """
    stated = _USERS.search(row.text("len_note"))
    requests = (row.number("requests_ok") or 0) + (row.number("requests_failed") or 0)
    first = 1 / _REPEATS
    if stated and requests:
        first = min(1.0, int(stated[1]) * int(stated[2]) / requests)
    if _STAGE.search(row.name):
        first = 0.0
    again = min(_BLOCK / 2, prompt)
    mean = first * prompt + (1 - first) * again
    deviation = math.sqrt(first * (1 - first)) * (prompt - again)
    return {"cached_share": 1 - mean / prompt, "input_variation": deviation / mean}


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
        **_new_tokens(row, prompt),
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
            value, group = row.measured(column), f"{row.group}: {quantity}"
            yield comparison(
                row, result, field, "ms", value, quantity=f"{quantity} (ms)", group=group
            )
