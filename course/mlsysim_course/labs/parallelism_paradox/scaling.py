"""The model behind Act I: data-parallel training on more and more GPUs.

The scenario is LLaMA 7B on servers of eight H100 GPUs connected by Ethernet. Replicas shard the
optimizer state (ZeRO-1), because the model would not fit otherwise. Every microbatch is one
sequence, so the matrices on a GPU do not depend on the number of GPUs.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass

from mlsysim.core import formulas as f
from mlsysim.core.errors import ConfigError
from mlsysim.core.types import Fleet, NetworkFabric, TransformerModel
from mlsysim.registry import Models, Systems
from mlsysim.registry.calibration.training import Calibrations
from mlsysim.solvers import DistributedResult, DistributedSolver, EconomicsSolver

__all__ = [
    "FABRICS",
    "GPUS",
    "MAIL",
    "MODELS",
    "STORY",
    "Run",
    "all_reduce_volume",
    "daily_cost",
    "solve",
    "undone",
]

GPUS = (8, 16, 32, 64, 128, 256, 512, 1024)
STORY = (8, 64, 512)
"""The sizes in the email."""

MODELS: dict[str, TransformerModel] = {
    "7b": Models.Llama1_7B,
    "13b": Models.Llama1_13B,
    "33b": Models.Llama1_33B,
    "65b": Models.Llama1_65B,
    "175b": Models.GPT3,
}
FABRICS: dict[str, NetworkFabric] = {
    "ethernet_100g": Systems.Fabrics.Ethernet_100G,
    "infiniband_hdr": Systems.Fabrics.InfiniBand_HDR,
    "infiniband_ndr": Systems.Fabrics.InfiniBand_NDR,
    "nvlink4": Systems.Links.NVLink4,
}
HIDING = Calibrations.H100_Megatron
# We know of no published run that delays the exchange, so there is no error band.
WAITING = HIDING.but(gradient_overlap=0.0).without_bands()
_NODE = Systems.Nodes.DGX_H100


@dataclass(frozen=True)
class Run:
    """A run: keys of the model and the fabric, number of GPUs, sequences per step."""

    model: str = "7b"
    fabric: str = "ethernet_100g"
    gpus: int = 512
    batch: int = 512
    hides: bool = False
    """Whether the exchange begins during the backward pass."""

    @property
    def sequences(self) -> float:
        """Sequences per GPU and step."""
        return self.batch / self.gpus

    def on(self, gpus: int) -> Run:
        """Return the same run on another number of GPUs, with the same global batch."""
        return dataclasses.replace(self, gpus=gpus)


MAIL = Run()


@functools.lru_cache(maxsize=512)
def solve(run: Run) -> DistributedResult:
    """Time one step of a run."""
    return _step(run, _fleet(run))


def _fleet(run: Run) -> Fleet:
    count = run.gpus // _NODE.accelerators_per_node
    return Fleet(name=f"{run.gpus} H100", node=_NODE, count=count, fabric=FABRICS[run.fabric])


def _step(run: Run, fleet: Fleet, compression: float = 1) -> DistributedResult:
    return DistributedSolver.solve(
        model=MODELS[run.model],
        fleet=fleet,
        batch_size=run.batch,
        precision="bf16",
        microbatch_count=max(1, run.batch // run.gpus),
        zero_stage=1,
        calibration=HIDING if run.hides else WAITING,
        gradient_compression=compression,
    )


@functools.lru_cache(maxsize=64)
def undone(run: Run, cause: str) -> DistributedResult:
    """Time the step with one cause removed.

    Parameters
    ----------
    run
        The run that is slow.
    cause
        ``"latency"``: empty messages take no time. ``"sharing"``: each GPU keeps the sequences it
        had on the smallest cluster. ``"memory"``: GPU memory is ten times as fast. ``"volume"``:
        each GPU sends as many bytes as on the smallest cluster. ``"network"``: the network is as
        fast as NVLink. ``"arithmetic"``: GPUs compute twice as fast. ``"bytes"``: gradients are
        half as wide on the wire.
    """
    fleet = _fleet(run)
    if cause == "sharing":
        return solve(dataclasses.replace(run, batch=run.batch // GPUS[0] * run.gpus))
    if cause == "network":
        return solve(dataclasses.replace(run, fabric="nvlink4"))
    if cause == "latency":
        return _step(run, _wired(fleet, latency=0.0))
    if cause == "volume":
        return _step(run, _wired(fleet, speed=all_reduce_volume(run.gpus) / _LEAST))
    if cause == "bytes":
        return _step(run, fleet, compression=2)
    gpu = fleet.node.accelerator
    if cause == "memory":
        memory = dataclasses.replace(gpu.memory, bandwidth=10 * gpu.memory.bandwidth)
        gpu = dataclasses.replace(gpu, memory=memory)
    elif cause == "arithmetic":
        rate = gpu.compute.rate("bf16")
        gpu = dataclasses.replace(gpu, compute=dataclasses.replace(gpu.compute, bf16=2 * rate))
    else:
        raise KeyError(cause)
    node = dataclasses.replace(fleet.node, accelerator=gpu)
    return _step(run, dataclasses.replace(fleet, node=node))


def _wired(fleet: Fleet, *, speed: float = 1.0, latency: float = 1.0) -> Fleet:
    """Return the fleet with the bandwidth and latency of all links multiplied."""

    def changed(link: NetworkFabric) -> NetworkFabric:
        return dataclasses.replace(
            link, bandwidth=speed * link.bandwidth, latency=latency * link.latency
        )

    node = dataclasses.replace(fleet.node, scale_up=changed(fleet.node.scale_up))
    return dataclasses.replace(fleet, node=node, fabric=changed(fleet.fabric))


def all_reduce_volume(gpus: int) -> float:
    """Return the bytes that a GPU sends in a ring all-reduce, per byte of gradients."""
    return float(f.ring_all_reduce_time(1.0, gpus, 1.0, 0.0))


_LEAST = all_reduce_volume(GPUS[0])


@functools.lru_cache(maxsize=1)
def daily_cost() -> float:
    """Return the daily cost in USD of the email's largest fleet: purchase, energy and upkeep."""
    cost = EconomicsSolver.solve(fleet=_fleet(MAIL), duration_days=1).period_cost
    if cost is None:
        raise ConfigError(f"{_NODE.name} has no price: add one in the catalog")
    return float(cost.to("USD").magnitude)
