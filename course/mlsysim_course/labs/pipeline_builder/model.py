"""The model behind both acts: schedules pass by pass, and a pipeline of real servers.

Act I simulates stages of equal length whose backward passes take twice as long as the forward ones.
Act II trains Llama 3 70B on eight servers of H100 GPUs, connected by a slow network.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from mlsysim.core.errors import ConfigError, ParallelismError
from mlsysim.core.types import Fleet
from mlsysim.registry import Models, Systems
from mlsysim.schedules import Timeline, simulate_pipeline
from mlsysim.solvers import DistributedResult, DistributedSolver

__all__ = [
    "BATCH",
    "FLEET",
    "MAIL",
    "MICROBATCHES",
    "MODEL",
    "SCHEDULES",
    "TARGET",
    "Line",
    "Pipeline",
    "accepted",
    "best",
    "idle",
    "simulate",
    "solve",
]

SCHEDULES: dict[str, tuple[str, int]] = {
    "gpipe": ("gpipe", 1),
    "1f1b": ("1f1b", 1),
    "interleaved_2": ("1f1b", 2),
    "interleaved_5": ("1f1b", 5),
    "zb-h1": ("zb-h1", 1),
}
"""Name of the schedule, and chunks of layers per stage."""

MODEL = Models.Llama3_70B
FLEET = Fleet(
    name="64 H100 on slow Ethernet",
    node=Systems.Nodes.DGX_H100,
    count=8,
    fabric=Systems.Fabrics.Ethernet_10G,
)
BATCH = 64
"""Sequences per step in Act II."""
SEQUENCE = 8192
MICROBATCHES = (8, 16, 32, 64)
TARGET = 0.33
"""Utilization that the email of Act II requires."""


@dataclass(frozen=True)
class Line:
    """Stages of equal length: how many, the schedule, and microbatches per step."""

    stages: int = 8
    schedule: str = "1f1b"
    microbatches: int = 16


MAIL = Line()


@functools.lru_cache(maxsize=512)
def simulate(line: Line) -> Timeline | str:
    """Simulate a step pass by pass, or return why the schedule cannot run it."""
    schedule, chunks = SCHEDULES[line.schedule]
    try:
        return simulate_pipeline(
            schedule,
            pp_size=line.stages,
            microbatch_count=line.microbatches,
            virtual_stages=chunks,
        )
    except ConfigError as error:
        return error.message


def idle(line: Line) -> float | None:
    """Return the share of the time that stages idle; `None` if the schedule cannot run."""
    found = simulate(line)
    return None if isinstance(found, str) else float(found.bubble_fraction)


@dataclass(frozen=True)
class Pipeline:
    """A design for Act II: stages, the schedule, and microbatches per replica."""

    stages: int
    schedule: str
    microbatches: int


@functools.lru_cache(maxsize=256)
def solve(design: Pipeline) -> DistributedResult | str:
    """Time a step of a design, or return why there is none."""
    schedule, chunks = SCHEDULES[design.schedule]
    try:
        return DistributedSolver.solve(
            model=MODEL,
            fleet=FLEET,
            batch_size=BATCH,
            precision="bf16",
            tp_size=FLEET.node.accelerators_per_node,
            pp_size=design.stages,
            microbatch_count=design.microbatches,
            virtual_stages=chunks,
            schedule=schedule,
            sequence_parallel=True,
            zero_stage=1,
            seq_len=SEQUENCE,
        )
    except ParallelismError as error:
        return error.message


def accepted(design: Pipeline) -> bool:
    """Return whether a design meets the requirements of the email."""
    found = solve(design)
    return (
        not isinstance(found, str)
        and found.feasible
        and found.whole_microbatches
        and found.mfu >= TARGET
    )


@functools.lru_cache(maxsize=16)
def best(schedule: str) -> tuple[Pipeline, DistributedResult]:
    """Return the fastest design of a schedule with eight stages that fits in memory.

    If none fits, return the one that needs the least memory.
    """
    found = []
    for count in MICROBATCHES:
        design = Pipeline(FLEET.count, schedule, count)
        result = solve(design)
        if not isinstance(result, str):
            found.append((design, result))
    return max(found, key=lambda one: _rank(one[1]))


def _rank(result: DistributedResult) -> tuple[bool, float]:
    fits = result.feasible
    return fits, result.mfu if fits else -result.memory.to("GB").magnitude
