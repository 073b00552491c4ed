"""The model behind both acts: Llama 3 405B on a large fleet of H100 GPUs that fail.

The time between failures of a device comes from the published run of Llama 3 405B. The price of
storage bandwidth is part of the story; every other number comes from the package.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

from mlsysim.core.errors import ConfigError
from mlsysim.core.types import Fleet
from mlsysim.core.units import Q_
from mlsysim.registry import Models, Systems
from mlsysim.solvers import EconomicsSolver, ReliabilityResult, ReliabilitySolver

__all__ = [
    "BANDWIDTHS",
    "BUDGET",
    "DAYS",
    "GPUS",
    "INTERVALS",
    "MAIL",
    "MODEL",
    "STORAGE_PRICE",
    "TARGET",
    "Plan",
    "Waste",
    "accepted",
    "fleet_cost",
    "solve",
    "waste",
    "young",
]

MODEL = Models.Llama3_405B
DAYS = 54
GPUS = (1024, 2048, 4096, 8192, 16_384, 32_768, 65_536)
BANDWIDTHS = (25, 50, 100, 200, 300, 400, 800)
"""Rates at which the fleet writes to storage, in GB/s."""
INTERVALS = (2, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64, 96, 120, 192, 256)
"""Minutes of work between checkpoints."""
STORAGE_PRICE = 4000
"""Dollars per GB/s of storage bandwidth for the whole run, in the story."""
TARGET = 0.88
"""Goodput that the email requires."""
BUDGET = 4_900_000
"""Most dollars that lost time and storage may cost together."""


@dataclass(frozen=True)
class Plan:
    """A run: GPUs, GB/s to storage, minutes between checkpoints, and changes to its failures.

    `interval` is `None` for the best one.
    """

    gpus: int = 16_384
    bandwidth: float = 100
    interval: float | None = 120
    restart: float = 1
    """Restart time as a multiple of the package's."""
    lifetime: float = 1
    """Time between failures of a device as a multiple of the published one."""

    @property
    def best(self) -> Plan:
        """The same run with the best interval."""
        return replace(self, interval=None)


MAIL = Plan()


@functools.lru_cache(maxsize=1024)
def solve(plan: Plan) -> ReliabilityResult:
    """Return failures, checkpoints and goodput of a run."""
    usual = {}
    if plan.restart != 1 or plan.lifetime != 1:
        base = solve(replace(plan, restart=1, lifetime=1))
        usual = {
            "restart_time": plan.restart * base.restart_time,
            "device_mtbf": plan.lifetime * base.device_mtbf,
        }
    return ReliabilitySolver.solve(
        fleet=_fleet(plan.gpus),
        job_duration_hours=DAYS * 24,
        model=MODEL,
        precision="bf16",
        storage_bandwidth=Q_(plan.bandwidth, "GB/s"),
        checkpoint_interval=None if plan.interval is None else Q_(plan.interval, "minute"),
        **usual,
    )


def _fleet(gpus: int) -> Fleet:
    node = Systems.Nodes.DGX_H100
    count = gpus // node.accelerators_per_node
    return Fleet(
        name=f"{gpus:,} H100", node=node, count=count, fabric=Systems.Fabrics.InfiniBand_NDR
    )


@functools.lru_cache(maxsize=16)
def fleet_cost(gpus: int) -> float:
    """Return the cost of the fleet in dollars for the run: purchase, energy and maintenance."""
    cost = EconomicsSolver.solve(fleet=_fleet(gpus), duration_days=DAYS).period_cost
    if cost is None:
        raise ConfigError("the fleet has no price: add a price to its node in the catalog")
    return float(cost.to("USD").magnitude)


@dataclass(frozen=True)
class Waste:
    """The cost of a plan in dollars, beyond the time that makes progress."""

    lost: float
    storage: float

    @property
    def total(self) -> float:
        """Lost time and storage together."""
        return self.lost + self.storage


def waste(plan: Plan) -> Waste:
    """Return the cost of a plan's lost time and storage."""
    lost = fleet_cost(plan.gpus) * (1 - solve(plan).goodput)
    return Waste(lost, STORAGE_PRICE * plan.bandwidth)


def accepted(plan: Plan) -> bool:
    """Return whether a plan meets the requirements of the email."""
    return solve(plan).goodput >= TARGET and waste(plan).total <= BUDGET


def young(plan: Plan) -> float:
    """Return the best interval of a run in minutes."""
    return float(solve(plan.best).optimal_checkpoint_interval.to("minute").magnitude)
