"""The model behind Act II: GPT-3 on 1,024 H100 GPUs, split three ways at once.

The global batch is that of a published run of this model: 1,536 sequences (Narayanan et al. 2021,
Table 2). Tensor-parallel ranks also split norms and dropouts (sequence parallelism), which sends
the same number of bytes and stores fewer.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from mlsysim.core.errors import ParallelismError
from mlsysim.core.types import Fleet
from mlsysim.core.units import Quantity
from mlsysim.registry import Models, Systems
from mlsysim.solvers import DistributedResult, DistributedSolver

__all__ = [
    "BATCH",
    "BUBBLE_CEILING",
    "FLEET",
    "MODEL",
    "OPTIONS",
    "TARGET_MFU",
    "Design",
    "Option",
    "Outcome",
    "best",
    "solve",
    "states",
]

MODEL = Models.GPT3
FLEET = Fleet(
    name="1,024 H100",
    node=Systems.Nodes.DGX_H100,
    count=128,
    fabric=Systems.Fabrics.InfiniBand_NDR,
)
BATCH = 1536
BUBBLE_CEILING = 0.1
"""Idle share of the pipeline that the email allows."""
TARGET_MFU = 0.4
"""Utilization that the email requires."""


@dataclass(frozen=True)
class Design:
    """Group sizes, microbatches per replica, and whether the optimizer state is sharded."""

    tp: int
    pp: int
    microbatches: int
    sharded: bool

    @property
    def spans_servers(self) -> bool:
        """Whether a tensor-parallel group is larger than a server."""
        return self.tp > FLEET.node.accelerators_per_node

    @property
    def uneven(self) -> bool:
        """Whether some stages have more layers than others."""
        return MODEL.layers % self.pp > 0


@dataclass(frozen=True)
class Outcome:
    """A result, or the reason why there is none, and the email's rules that the design breaks."""

    design: Design
    result: DistributedResult | None
    refusal: str
    failures: tuple[str, ...]
    """Of ``"sizes"``, ``"memory"``, ``"microbatches"``, ``"servers"``, ``"bubble"``."""

    @property
    def accepted(self) -> bool:
        """Whether the design meets the requirements of the email."""
        return not self.failures and self.result is not None and self.result.mfu >= TARGET_MFU


@functools.lru_cache(maxsize=512)
def solve(design: Design) -> Outcome:
    """Time one step of a design and name every rule that it breaks."""
    try:
        result = DistributedSolver.solve(
            model=MODEL,
            fleet=FLEET,
            batch_size=BATCH,
            precision="bf16",
            tp_size=design.tp,
            pp_size=design.pp,
            microbatch_count=design.microbatches,
            zero_stage=int(design.sharded),
            sequence_parallel=True,
        )
    except ParallelismError as error:
        return Outcome(design, None, error.message, ("sizes",))
    broken = {
        "memory": not result.fits_memory,
        "microbatches": not result.whole_microbatches,
        "servers": design.spans_servers,
        "bubble": result.bubble_fraction > BUBBLE_CEILING,
    }
    return Outcome(design, result, "", tuple(name for name, is_so in broken.items() if is_so))


def states(result: DistributedResult) -> Quantity:
    """Return the memory for the parameters: weights, gradients and optimizer state."""
    kept: Quantity = result.weights_memory + result.gradient_memory + result.optimizer_memory
    return kept


@dataclass(frozen=True)
class Option:
    """One option in the prediction of this act."""

    tp: int
    pp: int
    words: str

    @property
    def dp(self) -> int:
        """Number of replicas."""
        return FLEET.total_accelerators // (self.tp * self.pp)

    @property
    def label(self) -> str:
        """The option as it is shown."""
        return f"TP {self.tp} × PP {self.pp} × DP {self.dp}: {self.words}"


OPTIONS = {
    "wide": Option(32, 1, "each layer is split across many GPUs."),
    "balanced": Option(
        8, 4, "each layer is split within a server, and four servers form a pipeline."
    ),
    "deep": Option(1, 32, "a deep pipeline in which no layer waits for an all-reduce."),
    "flat": Option(8, 1, "one server holds the model, and no GPU waits for a pipeline."),
}


@functools.lru_cache(maxsize=16)
def best(name: str) -> Outcome:
    """Return an option at its best.

    The optimizer state is sharded, and the microbatches have 1, 2, 4, 8 or 16 sequences. The best
    is the fastest that breaks no rule; failing that, the fastest that fits in memory; failing that,
    the one that needs the least memory.
    """
    option = OPTIONS[name]
    counts = {
        BATCH // (option.dp * size) for size in (1, 2, 4, 8, 16) if BATCH % (option.dp * size) == 0
    }
    return max((solve(Design(option.tp, option.pp, m, True)) for m in counts), key=_rank)


def _rank(outcome: Outcome) -> tuple[bool, bool, float]:
    result = outcome.result
    if result is None:
        return False, False, float("-inf")
    need: float = result.memory.to("GB").magnitude
    return outcome.accepted, result.feasible, result.mfu if result.feasible else -need
