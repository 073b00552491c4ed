"""Shared by energy, carbon and cost: the fleet's location, and the power that it draws."""

from __future__ import annotations

from dataclasses import dataclass

from mlsysim.core import formulas as f
from mlsysim.core.errors import ConfigError
from mlsysim.core.inputs import Inputs, default
from mlsysim.core.numeric import Value, first_known
from mlsysim.core.types import Datacenter, Fleet, GridProfile
from mlsysim.registry.operations import OWNERSHIP, Ownership, PowerDraw, power_draw_for


class RunningInputs(Inputs):
    """Inputs of the energy of a fleet."""

    fleet: Fleet
    duration_days: Value
    """In seconds, as all times are."""
    datacenter: Datacenter
    utilization: Value = default(lambda i: i.power_draw.utilization)
    host_power: Value
    """NaN means that it is computed from the server's rated power."""
    service_life: Value = default(lambda i: i.ownership.service_life)
    power_draw: PowerDraw = default(lambda i: power_draw_for(i.fleet.node.accelerator))
    ownership: Ownership = default(lambda i: OWNERSHIP)

    @property
    def devices(self) -> Value:
        """Devices of the fleet."""
        return self.fleet.count * self.fleet.node.accelerators_per_node


@dataclass(frozen=True)
class Energy:
    """Power and energy of a fleet over a time."""

    it_energy: Value
    total_energy: Value
    """Including the facility's overhead."""
    it_power: Value
    device_power: Value
    host_power: Value
    pue: Value


def energy_of(i: RunningInputs) -> Energy:
    """Return the energy of a fleet from the ratings of its servers."""
    node, draw = i.fleet.node, i.power_draw
    design_power = node.accelerator.tdp
    device_power = f.device_power(design_power, draw.idle_share, i.utilization)
    host_power = first_known(
        i.host_power,
        f.host_power(node.power, design_power, node.accelerators_per_node, draw.host_share),
    )
    it_power = i.fleet.count * (node.accelerators_per_node * device_power + host_power)
    it_energy = it_power * i.duration_days
    return Energy(
        it_energy=it_energy,
        total_energy=f.facility_energy(it_energy, i.datacenter.pue),
        it_power=it_power,
        device_power=device_power,
        host_power=host_power,
        pue=i.datacenter.pue,
    )


def as_datacenter(place: Datacenter | GridProfile) -> Datacenter:
    """Return the data center itself, or a typical one on the given grid."""
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


def check_power(inputs: RunningInputs) -> None:
    """Reject a fleet if the design power of its devices, or the power of its hosts, is unknown."""
    node = inputs.fleet.node
    if node.accelerator.tdp is None:
        raise ConfigError(
            f"fleet: the design power of {node.accelerator.name} is not known; pass a fleet "
            "with an accelerator that states its tdp",
            argument="fleet",
        )
    if node.power is None and inputs.host_power is None:
        raise ConfigError(
            f"host_power is missing: the power of {node.name} is not known, so that of its host "
            'cannot be computed; pass host_power=Q_(..., "W"), or Q_(0, "W") for devices only',
            argument="host_power",
        )
