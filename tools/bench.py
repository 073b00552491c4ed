"""Benchmarks: how fast the package imports, solves and sweeps. Prints JSON.

Times are minima over several runs in one process tree. You can compare times within one report,
but not across machines. Solves and plans count processor time, which other programs on the machine
hardly change. `--peers FOLDER` also times other tools (see `research.peers`). `--law CELLS`
instead compares this number of fields of random sweeps with `solve`; if a sweep differs, it prints
the sweep and exits with 1. `--memory` prints the most memory that sweeps of ten million rows use.
`--mutants N` prints the share of small defects that the tests detect, for N defects in formulas and
N in models (see `tools.mutants`). `--pages SITE ...` times the explorers of built sites in turn, in
Chromium (see `tools.page_times`).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mlsysim import (
    Q_,
    Advice,
    Best,
    DistributedResult,
    DistributedSolver,
    Fleet,
    Hardware,
    Models,
    OpenLoopResult,
    OpenLoopSolver,
    Quantiles,
    ServingPlan,
    ServingResult,
    ServingSolver,
    SingleNodeResult,
    SingleNodeSolver,
    Sweep,
    Systems,
    Traffic,
    advise,
    plan_serving,
    sweep,
)
from mlsysim.core.formulas import ring_all_reduce_time
from mlsysim_course.labs.parallelism_paradox import SPLIT
from research.peers import peers
from tools import mutants
from tools.page_times import page_times
from tools.sweep_law import Tally, try_sweeps

_CONFIGURATION: dict[str, Any] = {
    "model": Models.Llama3_70B,
    "fleet": Systems.Clusters.Research_256,
    "batch_size": 256,
    "seq_len": 2048,
    "tp_size": 8,
    "pp_size": 4,
    "microbatch_count": 16,
}
_TRAFFIC = Traffic(
    arrival_rate=Q_(20, "1/s"),
    seq_len=1000,
    output_len=200,
    output_variation=0.5,
    input_variation=0,
)
_LIMITS = {"ttft_p99": Q_(1, "s"), "tpot_p99": Q_(50, "ms")}
_MILLION = 1_000_000
_READ = ["step_latency_total", "mfu", "memory"]
# No two the same in a run of the benchmark: a lab remembers what it was asked last.
_MOVES = itertools.product((1, 2, 4, 8), (1, 2, 4, 8, 16, 32, 64), (8, 16))


def best(
    run: Callable[[], object],
    repeats: int,
    calls: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Return the shortest time of one call, in seconds."""
    times = []
    for _ in range(repeats):
        start = clock()
        for _ in range(calls):
            run()
        times.append((clock() - start) / calls)
    return min(times)


def microseconds(run: Callable[[], object], calls: int) -> float:
    """Return the shortest processor time of one call, in microseconds."""
    return round(1e6 * best(run, 7, calls, time.process_time), 2)


def single_node_solve() -> SingleNodeResult:
    """Solve one forward pass by the textbook."""
    return SingleNodeSolver.solve(model=Models.ResNet50, hardware=Hardware.A100, batch_size=32)


def operator_pass_solve() -> SingleNodeResult:
    """Solve one forward pass, operator by operator."""
    return SingleNodeSolver.solve(model=Models.Llama3_8B, hardware=Hardware.A100, batch_size=4)


def distributed_solve() -> DistributedResult:
    """Solve one training step."""
    return DistributedSolver.solve(**_CONFIGURATION)


def import_time(module: str) -> float:
    """Return the time that a fresh interpreter takes to import a module, bytecode at hand."""
    code = f"import time; t = time.perf_counter()\nimport {module}\nprint(time.perf_counter() - t)"

    # An installed module has its bytecode; one in a checkout gets it at its first import.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def run() -> float:
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        return float(done.stdout)

    return min(run() for _ in range(7))


def dense_sweep() -> object:
    """Sweep a million configurations, all numeric arguments different in every row."""
    draw = np.random.default_rng(0)
    return sweep(
        DistributedSolver,
        how="zip",
        model=Models.Llama3_70B,
        fleet=Systems.Clusters.Research_256,
        batch_size=draw.integers(1, 4096, _MILLION),
        seq_len=draw.integers(128, 8192, _MILLION),
        tp_size=2 ** draw.integers(0, 4, _MILLION),
        pp_size=2 ** draw.integers(0, 4, _MILLION),
        microbatch_count=draw.integers(1, 64, _MILLION),
        efficiency=draw.uniform(0.3, 0.7, _MILLION),
    )


def serving_sweep(rows: int = 100_000) -> Sweep:
    """Sweep engines with clients that wait, lengths and clients different in every row."""
    draw = np.random.default_rng(0)
    return sweep(
        ServingSolver,
        how="zip",
        model=Models.Llama3_8B,
        hardware=Hardware.H100,
        seq_len=draw.integers(128, 8192, rows),
        output_len=draw.integers(1, 1024, rows),
        batch_size=draw.integers(1, 256, rows),
    )


def open_loop_sweep(rows: int = 20_000) -> Sweep:
    """Sweep engines under random arrivals, lengths and rates different in every row."""
    draw = np.random.default_rng(0)
    return sweep(
        OpenLoopSolver,
        how="zip",
        model=Models.Llama3_8B,
        hardware=Hardware.H100,
        seq_len=draw.integers(128, 4096, rows),
        output_len=draw.integers(2, 512, rows),
        arrival_rate=draw.uniform(0.1, 8, rows),
    )


def textbook_solve() -> DistributedResult:
    """Solve one training step by the textbook."""
    return DistributedSolver.solve(**_CONFIGURATION, efficiency=0.5)


def serving_solve() -> ServingResult:
    """Solve served requests, operator by operator."""
    return ServingSolver.solve(
        model=Models.Llama3_8B, hardware=Hardware.H100, output_len=128, batch_size=16
    )


def open_loop_solve() -> OpenLoopResult:
    """Solve an engine under random arrivals."""
    return OpenLoopSolver.solve(
        model=Models.Llama3_8B, hardware=Hardware.H100, arrival_rate=8, output_len=128
    )


def service_plans() -> ServingPlan:
    """Choose among all engines and replicas on four kinds of nodes."""
    nodes = Systems.Nodes
    return plan_serving(
        Models.Llama3_70B,
        _TRAFFIC,
        _LIMITS,
        [nodes.DGX_H100, nodes.HGX_H200, nodes.DGX_B200, nodes.DGX_A100],
        weight_precision=["bf16", "fp8"],
        kv_precision=["bf16", "fp8"],
        most_devices=1100,
    )


def expert_plans() -> ServingPlan:
    """Choose among all engines and replicas for a mixture of experts on four kinds of nodes."""
    nodes = Systems.Nodes
    return plan_serving(
        Models.DeepSeek_V3,
        _TRAFFIC,
        _LIMITS,
        [nodes.DGX_H100, nodes.HGX_H200, nodes.DGX_B200, nodes.MI300X_Platform],
        precision="fp8",
        kv_precision=["bf16", "fp8"],
        most_devices=2300,
    )


def grid_sweep(efficiency: float | None = None) -> Sweep:
    """Sweep a grid of a million configurations over models, precisions and sizes."""
    return sweep(
        DistributedSolver,
        efficiency=efficiency,
        model=[Models.Llama3_70B, Models.GPT3],
        fleet=Systems.Clusters.Research_256,
        precision=["fp16", "bf16"],
        recompute=["selective", "full"],
        batch_size=np.arange(1, 1001),
        tp_size=[1, 2, 4, 8],
        pp_size=[1, 2, 4, 8],
        microbatch_count=[1, 2, 4, 8, 16, 32, 64, 128],
    )


def frontier_advice() -> Advice:
    """Choose among all configurations of 16,384 devices, best first, with reasons."""
    return advise(
        model=Models.Llama3_405B,
        fleet=Fleet(
            name="16,384 H100",
            node=Systems.Nodes.DGX_H100,
            count=2048,
            fabric=Systems.Fabrics.RoCE_400G,
        ),
        batch_size=2048,
        precision="bf16",
    )


def lab_view() -> object:
    """Show the configurator of a lab after its sliders have moved."""
    tp, pp, microbatches = next(_MOVES)
    return SPLIT.view({"tp": tp, "pp": pp, "microbatches": microbatches})


# The resident memory of a process that imports the package, and of one that also sweeps.
_SWEPT = """
import resource, sys, tempfile
from tools.bench import large_sweep
with tempfile.TemporaryDirectory() as folder:
    large_sweep(sys.argv[1], folder)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
_WAYS = ("nothing", "table", "columns", "into", "reduce")


def large_sweep(way: str, folder: str) -> None:
    """Sweep ten million configurations that differ in every axis, and read all that is kept."""
    if way == "nothing":
        return
    ways: dict[str, dict[str, Any]] = {
        "table": {},
        "columns": {"columns": _READ},
        "into": {"columns": _READ, "into": f"{folder}/rows"},
        "reduce": {"reduce": [Best("mfu", 10), Quantiles("mfu", "memory")]},
    }
    kept = sweep(
        DistributedSolver,
        model=Models.Llama3_70B,
        fleet=Systems.Clusters.Research_256,
        batch_size=np.arange(1, 1001),
        seq_len=np.arange(1, 101) * 64,
        tp_size=[1, 2, 4, 8],
        pp_size=[1, 2, 4, 8, 16],
        microbatch_count=[8, 16, 32, 64, 128],
        **ways[way],
    )
    if isinstance(kept, Sweep):
        for name in kept.columns:
            if name in _READ or way == "table":
                kept[name].sum()


def memory() -> int:
    """Print the most memory that each way to sweep ten million rows uses, in MB."""
    megabytes = {}
    for way in _WAYS:
        done = subprocess.run(
            [sys.executable, "-c", _SWEPT, way], capture_output=True, text=True, check=True
        )
        megabytes[way] = round(int(done.stdout) * 1024 / 1e6)
    without = megabytes["nothing"]
    more = {way: megabytes[way] - without for way in _WAYS[1:]}
    ratios = {way: round(size / more["table"], 3) for way, size in more.items()}
    print(json.dumps({"process_MB": megabytes, "sweep_MB": more, "to_table": ratios}, indent=2))
    return 0


def law(cells: int, seed: int) -> int:
    """Compare random sweeps with `solve`; return 1 if a row differs."""
    start = time.perf_counter()

    def show(tally: Tally) -> None:
        took = time.perf_counter() - start
        print(
            f"{tally.cells:,} of {cells:,} cells, {tally.exact:,} equal to the last bit: "
            f"{tally.sweeps:,} sweeps, {tally.rows:,} rows, {took:.0f} s",
            flush=True,
        )

    try:
        show(try_sweeps(cells, seed, show))
    except AssertionError as fault:
        print(fault)
        return 1
    return 0


def main() -> int:
    """Run all benchmarks and print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--law", type=int, metavar="CELLS", help="compare sweeps with solve")
    parser.add_argument("--seed", type=int, default=0, help="seed for sweeps and mutants")
    parser.add_argument("--memory", action="store_true", help="memory of ten million rows")
    parser.add_argument("--mutants", type=int, metavar="N", help="test mutants of the equations")
    parser.add_argument("--peers", type=Path, metavar="FOLDER", help="also time other tools")
    parser.add_argument("--pages", type=Path, nargs="+", metavar="SITE", help="time built sites")
    options = parser.parse_args()
    if options.law is not None:
        return law(options.law, options.seed)
    if options.memory:
        return memory()
    if options.mutants is not None:
        return mutants.score(options.mutants, options.seed)
    if options.pages is not None:
        print(json.dumps(page_times(options.pages), indent=2))
        return 0
    report(options.peers)
    return 0


def report(folder: Path | None) -> None:
    """Time everything, and print the times."""
    pint_import = import_time("pint")
    own_import = import_time("mlsysim")
    grid = grid_sweep()
    figures = {
        "machine": {"python": platform.python_version(), "platform": platform.machine()},
        "import_s": {
            "pint": round(pint_import, 4),
            "mlsysim": round(own_import, 4),
            "difference": round(own_import - pint_import, 4),
        },
        "scalar_us": {
            "formula": microseconds(lambda: ring_all_reduce_time(1e9, 8, 1e9, 1e-6), 20_000),
            "single_node_solve": microseconds(single_node_solve, 200),
            "operator_pass_solve": microseconds(operator_pass_solve, 200),
            "distributed_solve": microseconds(distributed_solve, 200),
            "distributed_solve_textbook": microseconds(textbook_solve, 200),
            "serving_solve": microseconds(serving_solve, 200),
            "open_loop_solve": microseconds(open_loop_solve, 20),
            "explain": microseconds(lambda: str(distributed_solve().explain()), 5),
            "lab_view": microseconds(lab_view, 5),
        },
        "sweep_configurations_per_s": {
            "dense": round(_MILLION / best(dense_sweep, 5)),
            "serving": round(len(serving_sweep()) / best(serving_sweep, 5)),
            "open_loop": round(len(open_loop_sweep()) / best(open_loop_sweep, 3)),
            "grid": round(len(grid) / best(grid_sweep, 5)),
            "grid_textbook": round(len(grid) / best(lambda: grid_sweep(0.5), 5)),
        },
        "advice": {
            "configurations": frontier_advice().searched,
            "processor_s": round(best(frontier_advice, 5, clock=time.process_time), 3),
        },
        "service_plans": {
            "plans": service_plans().searched,
            "processor_s": round(best(service_plans, 5, clock=time.process_time), 3),
        },
        "expert_plans": {
            "plans": expert_plans().searched,
            "processor_s": round(best(expert_plans, 5, clock=time.process_time), 3),
        },
    }
    if folder is not None:
        figures["peers_scalar_us"] = {
            name: microseconds(run, 20) for name, run in peers(folder).items()
        }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    sys.exit(main())
