"""Golden values: results of the package, frozen before a change that must not affect results.

    python -m tools.golden freeze FILE    write the answers of this checkout
    python -m tools.golden compare FILE   compare them with this checkout's; exit 1 on a difference

A file has every field of every solver for a few thousand configurations, including refusals, the
inputs that derivations reach, the advice for a few jobs, and the output of executed pages. It uses
only the public interface, so a file stays valid if everything below this interface is redesigned.
"""

from __future__ import annotations

import gzip
import inspect
import json
import math
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import mlsysim
from mlsysim import (
    DistributedSolver,
    EconomicsSolver,
    Hardware,
    Infra,
    MLSysError,
    Models,
    ReliabilitySolver,
    ServingSolver,
    SingleNodeSolver,
    SustainabilitySolver,
    Systems,
    advise,
)
from mlsysim.core.units import Q_

TOLERANCE = 1e-12
EACH = 700
DERIVED = 40
SHOWN = 40

_TRANSFORMERS = ["Llama3_8B", "Llama3_70B", "GPT3", "Mixtral_8x7B", "DeepSeek_V3", "Qwen3_30B_A3B"]
_DEVICES = ["A100", "H100", "H200", "B200", "MI300X", "V100", "T4", "M3_Max"]
_FLEETS = ["Research_256", "Frontier_8K"]

CHOICES: dict[str, dict[str, list[Any]]] = {
    "SingleNodeSolver": {
        "model": [*_TRANSFORMERS[:3], "BERT_Base", "ResNet50", "MobileNetV2", "DLRM"],
        "hardware": [*_DEVICES, "Jetson_Orin_NX", "ESP32_S3"],
        "batch_size": [1, 3, 16, 256, 4096],
        "precision": ["fp16", "bf16", "int8", "fp8", "fp32", "int4"],
        "efficiency": [None, None, 0.5, 0.31],
        "seq_len": [None, 128, 2048, 40_000],
    },
    "ServingSolver": {
        "model": _TRANSFORMERS,
        "hardware": [*_DEVICES, "DGX_H100", "DGX_A100", "DGX_B200"],
        "seq_len": [1, 128, 2048, 32_768],
        "output_len": [0, 1, 128, 1000],
        "batch_size": [1, 8, 64, 500],
        "precision": ["fp16", "bf16", "fp8", "int8"],
        "weight_precision": [None, None, "int4", "fp8"],
        "kv_precision": [None, None, "fp8"],
        "tp_size": [1, 1, 2, 8],
        "waves": [None, None, 1, 10],
        "arrivals": [1, 1, 5],
        "efficiency": [None, None, 0.5],
    },
    "DistributedSolver": {
        "model": _TRANSFORMERS,
        "fleet": _FLEETS,
        "batch_size": [256, 1024, 2048, 1000],
        "precision": ["bf16", "fp16", "fp8"],
        "tp_size": [1, 2, 4, 8, 16],
        "pp_size": [1, 2, 4, 8],
        "microbatch_count": [1, 4, 8, 16],
        "virtual_stages": [1, 1, 2],
        "schedule": ["1f1b", "1f1b", "gpipe"],
        "cp_size": [1, 1, 1, 2],
        "ep_size": [1, 1, 2, 8],
        "zero_stage": [0, 1, 2, 3],
        "sequence_parallel": [False, True],
        "recompute": ["none", "selective", "full"],
        "attention": ["fused", "fused", "unfused"],
        "gradient_precision": [None, None, "fp32"],
        "gradient_compression": [1, 1, 0.25],
        "seq_len": [None, 2048, 8192, 131_072],
        "efficiency": [None, None, 0.4],
    },
    "EconomicsSolver": {
        "fleet": _FLEETS,
        "duration_days": [1, 30, 400],
        "utilization": [0.3, 1],
        "kwh_price": [None, 0.07],
        "grid": [None, "US_Avg", "Quebec"],
        "maintenance_rate": [None, 0.1],
        "rental_price": [None, 2.5],
        "token_throughput": [None, 1e5],
    },
    "SustainabilitySolver": {
        "fleet": _FLEETS,
        "duration_days": [1, 30, 400],
        "datacenter": ["US_Avg", "Quebec", "Poland", "Norway", "Hyperscale_US"],
        "utilization": [0.3, 1],
    },
    "ReliabilitySolver": {
        "fleet": _FLEETS,
        "job_duration_hours": [1, 100, 5000],
        "checkpoint_time_s": [None, 30, 600],
        "model": [None, "Llama3_70B", "ResNet50"],
        "checkpoint_interval": [None, Q_("1 h")],
    },
}
JOBS: list[dict[str, Any]] = [
    {"model": "Llama3_70B", "fleet": "Research_256", "batch_size": 256, "seq_len": 4096},
    {"model": "Mixtral_8x7B", "fleet": "Research_256", "batch_size": 512, "precision": "bf16"},
    {"model": "GPT3", "fleet": "Frontier_8K", "batch_size": 2048, "efficiency": 0.4},
    {"model": "Llama3_8B", "fleet": "Research_256", "batch_size": 512, "goal": "cost"},
]


def entry(value: Any) -> Any:
    """The catalog entry of a name; anything else as it is."""
    if not isinstance(value, str):
        return value
    places = (Models, Hardware, Systems.Nodes, Systems.Clusters, Infra)
    return next((place[value] for place in places if value in place), value)


def configurations() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Every configuration with a key of its own, always the same ones."""
    solvers = (
        SingleNodeSolver,
        ServingSolver,
        DistributedSolver,
        EconomicsSolver,
        SustainabilitySolver,
        ReliabilitySolver,
    )
    for solver in solvers:
        chance = random.Random(solver.__name__)
        known = inspect.signature(solver.solve).parameters
        choices = {k: v for k, v in CHOICES[solver.__name__].items() if k in known}
        for _ in range(EACH):
            given = {name: chance.choice(values) for name, values in choices.items()}
            yield f"{solver.__name__} {json.dumps(given, default=str)}", solver, given


def plain(value: Any) -> Any:
    """A value of a result as JSON holds it: SI numbers, texts, and lists and mappings of them."""
    if hasattr(value, "to_base_units"):
        base = value.to_base_units()
        return [float(base.magnitude), str(base.units)]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def solved(solver: Any, given: Mapping[str, Any]) -> Any:
    """The result of a configuration, or the name of the refusal."""
    try:
        return solver.solve(**{name: entry(value) for name, value in given.items()})
    except MLSysError as error:
        return type(error).__name__


def answers() -> dict[str, Any]:
    """Everything but the pages."""
    found: dict[str, Any] = {"version": mlsysim.__version__}
    derived = dict.fromkeys(CHOICES, 0)
    for key, solver, given in configurations():
        result = solved(solver, given)
        found[key] = result if isinstance(result, str) else plain(dict(result))
        if not isinstance(result, str) and derived[solver.__name__] < DERIVED:
            derived[solver.__name__] += 1
            reached = {
                f"{item.origin} {plain(item.value)[0]:.12g}"
                for item in result.explain().unpruned().inputs
            }
            found[f"inputs of {key}"] = sorted(reached)
    for job in JOBS:
        advice = advise(**{name: entry(value) for name, value in job.items()})
        rows = [plain(advice.plans.row(i)) for i in range(min(SHOWN, len(advice.plans)))]
        found[f"advice {json.dumps(job)}"] = [str(advice), rows]
    return found


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Where two answers differ by more than the tolerance."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() | new.keys():
            if key not in old or key not in new:
                yield f"{path}/{key}: only {'before' if key in old else 'now'}"
            else:
                yield from differences(old[key], new[key], f"{path}/{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, f"{path}[{index}]")
    elif isinstance(old, float) and isinstance(new, int | float):
        same = old == new or (math.isnan(old) and math.isnan(new))
        if not same and not math.isclose(old, new, rel_tol=TOLERANCE):
            yield f"{path}: {old!r} -> {new!r}"
    elif old != new:
        yield f"{path}: {old!r} -> {new!r}"


def main(arguments: list[str]) -> int:
    """Freeze or compare."""
    if len(arguments) != 2 or arguments[0] not in {"freeze", "compare"}:
        print(__doc__)
        return 2
    what, path = arguments[0], Path(arguments[1])
    now = json.loads(json.dumps(answers()))
    if what == "freeze":
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wt", encoding="utf-8") as file:
            json.dump(now, file)
        print(f"{len(now):,} answers in {path}")
        return 0
    with gzip.open(path, "rt", encoding="utf-8") as file:
        found = sorted(differences(json.load(file), now))
    print("\n".join(found[:60]))
    print(f"{len(found):,} differences in {len(now):,} answers")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
