"""What the solvers of running a fleet share: its place, and the power that it draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsysim.core.errors import ConfigError
from mlsysim.core.types import Datacenter, Fleet, GridProfile
from mlsysim.solvers.amounts import Amount, Portion
from mlsysim.solvers.arguments import Argument, Noun

__all__ = ["ORIGINS", "POWER_ARGUMENTS", "as_datacenter", "check_power"]

POWER_ARGUMENTS: Mapping[str, Argument] = {
    "fleet": Noun(kinds=(Fleet,), hint="Systems.Clusters.Research_256"),
    "duration_days": Amount(unit="day", plain=True),
    "utilization": Portion(optional=True),
    "host_power": Amount(unit="W", zero=True, optional=True),
}
ORIGINS: Mapping[str, str | tuple[str, ...]] = {
    "nodes": "fleet.count",
    "devices_per_node": "fleet.node.accelerators_per_node",
    "duration": "duration_days",
    "design_power": "fleet.node.accelerator.tdp",
    "node_power": "fleet.node.power",
    "given_host_power": ("host_power", "unknown"),
    "utilization": ("utilization", "power_draw.utilization"),
    "idle_share": "power_draw.idle_share",
    "host_share": "power_draw.host_share",
    "pue": "datacenter.pue",
}


def as_datacenter(place: Datacenter | GridProfile) -> Datacenter:
    """Return the place itself, or a typical facility on the grid that it is."""
    if isinstance(place, Datacenter):
        return place
    fields = ("pue", "wue")
    return Datacenter(
        name=place.name,
        source=place.source,
        field_sources={name: place.source_of(name) for name in fields},
        estimated=frozenset(name for name in fields if place.is_estimated(name)),
        grid=place,
        pue=place.pue,
        wue=place.wue,
    )


def check_power(arguments: Mapping[str, Any]) -> None:
    """Refuse a fleet whose power no figure tells.

    Raises
    ------
    ConfigError
        If the design power of its devices is not known, or nothing tells the power of the host.
    """
    node = arguments["fleet"].node
    if node.accelerator.tdp is None:
        raise ConfigError(
            f"fleet: the design power of {node.accelerator.name} is not known; pass a fleet whose "
            'accelerator has one, made with dataclasses.replace(accelerator, tdp=Q_(..., "W"))',
            argument="fleet",
        )
    if node.power is None and arguments["host_power"] is None:
        raise ConfigError(
            f"host_power is missing: the power of {node.name} is not known, and that of its host "
            'follows from it; pass host_power=Q_(..., "W"), or Q_(0, "W") to count devices alone',
            argument="host_power",
        )
