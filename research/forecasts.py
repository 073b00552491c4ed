"""Make dated forecasts: ``python -m research.forecasts`` compares frozen ones with today's answers.

``--freeze`` writes all questions that are not in a frozen file yet to a new file with the date as
its name. Existing files are never changed; a revised forecast gets a new name.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import mlsysim
from mlsysim import (
    DistributedResult,
    DistributedSolver,
    Fleet,
    Hardware,
    Models,
    ServingSolver,
    Systems,
)
from mlsysim.core.types import Accelerator
from mlsysim.scenario.systems import standalone_fleet
from mlsysim.validation.forecasts import FROZEN, Forecast, read_forecasts
from research.rows import write_table

_COVERAGE = 0.8
# No run of these devices exists to compare with, and the solver gives no band for serving on them.
_JUDGED = 2.0

_NEXT_ROUND = (
    "First MLPerf Training round published after the date; closed division, median of the logged "
    "step times of the fastest submission that fits the description"
)
_FIRST_REPORT = (
    "First measurement published after the date by the vendor, MLCommons or a named laboratory, "
    "with the shape stated"
)


def _step(**given: Any) -> tuple[float, float, float, str]:
    """Seconds of a step of Llama 3.1 8B as MLPerf trains it, with the solver's own band."""
    r = DistributedSolver.solve(
        model=Models.Llama3_8B, seq_len=8192, zero_stage=1, recompute="none", **given
    )
    return *_seconds(r), f"solver, {r.band} systems: {r.calibration}"


def _seconds(r: DistributedResult) -> tuple[float, float, float]:
    """Return a step's time and its band."""
    if r.step_latency_low is None or r.step_latency_high is None:
        raise ValueError(f"{r.calibration} gives no band: a forecast needs one")
    low, high = r.step_latency_low.to("s").magnitude, r.step_latency_high.to("s").magnitude
    return float(r.step_latency_total.to("s").magnitude), float(low), float(high)


def _rate(
    hardware: Accelerator, precision: str, recompute: str = "none"
) -> tuple[float, float, float, str]:
    """Tokens per second and device, from one sequence on one device."""
    r = DistributedSolver.solve(
        model=Models.Llama3_8B,
        fleet=standalone_fleet(hardware),
        batch_size=1,
        seq_len=8192,
        precision=precision,
        recompute=recompute,
    )
    step, low, high = _seconds(r)
    return 8192 / step, 8192 / high, 8192 / low, f"solver, {r.band} systems: {r.calibration}"


def _decode(**given: Any) -> tuple[float, float, float, str]:
    """Milliseconds between tokens, with a band by judgment."""
    result = ServingSolver.solve(seq_len=1024, output_len=1024, **given)
    itl = float(result.itl.to("ms").magnitude)
    return itl, itl / _JUDGED, itl * _JUDGED, f"judgment: a factor of {_JUDGED:g} either way"


def _servers(node: Any, count: int) -> Fleet:
    return Fleet(name="forecast", node=node, count=count, fabric=Systems.Fabrics.InfiniBand_XDR)


@dataclass(frozen=True)
class Quantity:
    """What several questions ask for: where it will be published, and how it is predicted."""

    settled_by: str
    unit: str
    answer: Callable[..., tuple[float, float, float, str]]


STEP = Quantity(_NEXT_ROUND, "s", _step)
RATE = Quantity(_FIRST_REPORT, "token/s", _rate)
DECODE = Quantity(_FIRST_REPORT, "ms", _decode)


@dataclass(frozen=True)
class Question:
    """A quantity that will be published, and the arguments that predict it."""

    id: str
    quantity: Quantity
    asks: str
    arguments: Mapping[str, Any]


QUESTIONS = (
    Question(
        "mlperf-8b-b300x8-fp4",
        STEP,
        "Step time of Llama 3.1 8B on 8 B300 in one server, FP4, batch of 16",
        {"fleet": _servers(Systems.Nodes.DGX_B300, 1), "batch_size": 16, "precision": "fp4"},
    ),
    Question(
        "mlperf-8b-gb300x72-fp8",
        STEP,
        "Step time of Llama 3.1 8B on 72 GB300 in one rack, FP8, batch of 36",
        {
            "fleet": _servers(Systems.Nodes.GB300_NVL72, 1),
            "batch_size": 36,
            "precision": "fp8",
            "cp_size": 2,
        },
    ),
    Question(
        "mlperf-8b-gb300x512-fp8",
        STEP,
        "Step time of Llama 3.1 8B on 512 GB300, FP8, batch of 64",
        {
            "fleet": _servers(replace(Systems.Nodes.GB300_NVL72, accelerators_per_node=64), 8),
            "batch_size": 64,
            "precision": "fp8",
            "tp_size": 2,
            "cp_size": 4,
            "sequence_parallel": True,
        },
    ),
    Question(
        "rubin-8b-train-bf16",
        RATE,
        "Tokens per second and GPU, training of Llama 3 8B on Rubin, bf16, 8,192 tokens",
        {"hardware": Hardware.Rubin, "precision": "bf16"},
    ),
    Question(
        "rubin-8b-train-fp8",
        RATE,
        "Tokens per second and GPU, training of Llama 3 8B on Rubin, FP8, 8,192 tokens",
        {"hardware": Hardware.Rubin, "precision": "fp8"},
    ),
    Question(
        "rubin-70b-decode-fp8-b1",
        DECODE,
        "Time per output token of Llama 3 70B on one Rubin GPU, FP8, one user, 1,024 + 1,024 "
        "tokens",
        {"model": Models.Llama3_70B, "hardware": Hardware.Rubin, "precision": "fp8"},
    ),
    Question(
        "rubin-70b-decode-fp4-b64",
        DECODE,
        "Time per output token of Llama 3 70B on one Rubin GPU, FP4, 64 users, 1,024 + 1,024 "
        "tokens",
        {
            "model": Models.Llama3_70B,
            "hardware": Hardware.Rubin,
            "precision": "fp4",
            "batch_size": 64,
        },
    ),
    Question(
        "trainium3-8b-train-bf16",
        RATE,
        "Tokens per second and chip, training of Llama 3 8B on Trainium 3, bf16, 8,192 tokens, "
        "full recomputation",
        {"hardware": Hardware.Trainium3, "precision": "bf16", "recompute": "full"},
    ),
    Question(
        "trainium3-8b-decode-bf16-b1",
        DECODE,
        "Time per output token of Llama 3 8B on one Trainium 3 chip, bf16, one user, 1,024 + "
        "1,024 tokens",
        {"model": Models.Llama3_8B, "hardware": Hardware.Trainium3, "precision": "bf16"},
    ),
    Question(
        "trainium3-70b-decode-fp8-b16",
        DECODE,
        "Time per output token of Llama 3 70B on one Trainium 3 chip, FP8, 16 users, 1,024 + "
        "1,024 tokens",
        {
            "model": Models.Llama3_70B,
            "hardware": Hardware.Trainium3,
            "precision": "fp8",
            "batch_size": 16,
        },
    ),
)


def made_today(question: Question) -> Forecast:
    """Answer a question with the package as it is."""
    predicted, low, high, basis = question.quantity.answer(**question.arguments)
    return Forecast(
        id=question.id,
        made=datetime.date.today().isoformat(),
        version=mlsysim.__version__,
        asks=question.asks,
        settled_by=question.quantity.settled_by,
        unit=question.quantity.unit,
        predicted=float(f"{predicted:.4g}"),
        low=float(f"{low:.4g}"),
        high=float(f"{high:.4g}"),
        coverage=_COVERAGE,
        basis=basis,
    )


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m research.forecasts", description=__doc__)
    parser.add_argument("--freeze", action="store_true", help="write the new questions")
    options = parser.parse_args()
    frozen = {forecast.id: forecast for forecast in read_forecasts()}
    new = [made_today(question) for question in QUESTIONS if question.id not in frozen]
    for question in QUESTIONS:
        if question.id in frozen:
            now, then = made_today(question), frozen[question.id]
            print(
                f"{then.id:<30} {then.made}  {then.predicted:g} {then.unit}, now {now.predicted:g}"
            )
    for forecast in new:
        print(
            f"{forecast.id:<30} new  {forecast.predicted:g} {forecast.unit} "
            f"({forecast.low:g} to {forecast.high:g})"
        )
    if not options.freeze or not new:
        return 0
    path = FROZEN / f"{new[0].made}.csv"
    if path.exists():
        print(f"{path} was written today: forecasts in it stay as they are", file=sys.stderr)
        return 1
    write_table(path, [vars(forecast) for forecast in new])
    print(f"Wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
