"""How much energy, carbon and water does a fleet use?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from mlsysim.core import formulas as f
from mlsysim.core.fields import number, quantity, record
from mlsysim.core.inputs import default
from mlsysim.core.numeric import Value, first_known, where, zero_like
from mlsysim.core.result import InUnit, Result
from mlsysim.core.types import Datacenter, Fleet, GridProfile
from mlsysim.core.units import Quantity
from mlsysim.registry.operations import EmbodiedCarbon, embodied_carbon_for
from mlsysim.solvers.arguments import Amount, Noun, Portion
from mlsysim.solvers.base import Model, Solver
from mlsysim.solvers.running.facility import RunningInputs, as_datacenter, check_power, energy_of


@record
class SustainabilityResult(Result):
    """Answer of `SustainabilitySolver`: energy, greenhouse gas and water of a fleet."""

    it_energy: Quantity = quantity("kWh")
    """Energy of the servers."""
    total_energy: Quantity = quantity("kWh")
    """Energy of the facility: the servers' energy times PUE."""
    carbon_footprint: Quantity = quantity("kg")
    """Greenhouse gas emissions of the electricity, as CO2 equivalent, without the hardware's
    share."""
    embodied_carbon: Quantity | None = quantity("kg")
    """Greenhouse gas emissions of making the hardware, in proportion to the part of its service
    life that is used; `None` if no figure is known."""
    total_carbon: Quantity | None = quantity("kg")
    """Electricity and hardware together; `None` if the hardware's part is not known."""
    water_usage: Quantity = quantity("L")
    """Water consumed on site. Power plants consume more, which is not counted."""
    it_power: Quantity = quantity("kW")
    """Mean power of all servers."""
    device_power: Quantity = quantity("W")
    """Mean power of one device."""
    host_power: Quantity = quantity("W")
    """Power of one server without its devices."""
    pue: float = number()
    """Power usage effectiveness: facility energy over IT energy."""
    carbon_intensity: Quantity = quantity("g/kWh")
    """CO2 equivalent of the grid's electricity."""
    region_name: str
    """Name of the grid."""

    it_energy_kwh = InUnit("it_energy", "kWh")
    """`it_energy` as a plain number."""
    total_energy_kwh = InUnit("total_energy", "kWh")
    """`total_energy` as a plain number."""
    carbon_footprint_kg = InUnit("carbon_footprint", "kg")
    """`carbon_footprint` as a plain number."""
    water_usage_liters = InUnit("water_usage", "L")
    """`water_usage` as a plain number."""


class SustainabilityInputs(RunningInputs):
    """Inputs of the energy, carbon and water of a fleet."""

    # A standalone device is not a server, so server figures do not apply, and it has no host.
    device_carbon: Value = default(
        lambda i: where(i.alone, math.nan * i.embodied.device, i.embodied.device)
    )
    host_carbon: Value = default(
        lambda i: where(i.alone, zero_like(i.embodied.host), i.embodied.host)
    )
    embodied: EmbodiedCarbon = default(lambda i: embodied_carbon_for(i.fleet.node))

    @property
    def alone(self) -> Value:
        """Whether the servers consist of their devices only."""
        node = self.fleet.node
        power: Value | None = node.power
        design_power: Value | None = node.accelerator.tdp
        if power is None or design_power is None:
            return False  # not known, as in a comparison with NaN
        return power <= node.accelerators_per_node * design_power


def fleet_footprint(i: SustainabilityInputs) -> dict[str, Any]:
    """Return energy, greenhouse gas and water of a fleet over a time."""
    energy = energy_of(i)
    intensity = i.datacenter.grid.carbon_intensity
    operational = f.operational_carbon(energy.total_energy, intensity)
    of_host: Value = i.fleet.node.devices_per_host
    per_host = first_known(of_host, i.fleet.node.accelerators_per_node)
    made = f.embodied_carbon(i.devices / per_host, per_host, i.device_carbon, i.host_carbon)
    embodied = f.amortized_carbon(made, i.duration_days, i.service_life)
    return {
        "carbon_footprint": operational,
        "embodied_carbon": embodied,
        "total_carbon": operational + embodied,
        "water_usage": f.site_water(energy.it_energy, i.datacenter.wue),
        **vars(energy),
        "carbon_intensity": intensity,
    }


class SustainabilitySolver(Solver[SustainabilityInputs, SustainabilityResult]):
    """How much energy, carbon and water does a fleet use?

    Device power rises from idle to design power in proportion to utilization, and the power of the
    rest of the server is added. PUE accounts for the facility, the grid's carbon intensity for
    emissions of the electricity, and WUE for water on site. The hardware's embodied carbon counts
    in proportion to the time.
    """

    inputs = SustainabilityInputs
    result = SustainabilityResult

    @classmethod
    def solve(
        cls,
        *,
        fleet: Annotated[Fleet, Noun(hint="Systems.Clusters.Research_256")],
        duration_days: Annotated[float | Quantity, Amount(unit="day", plain=True)],
        datacenter: Annotated[
            Datacenter | GridProfile,
            Noun(hint="Infra.Hyperscale_US, or the grid Infra.US_Avg"),
        ],
        utilization: Annotated[float | None, Portion()] = None,
        host_power: Annotated[Quantity | None, Amount(unit="W", zero=True)] = None,
        device_carbon: Annotated[
            float | Quantity | None, Amount(unit="kg", plain=True, zero=True)
        ] = None,
        host_carbon: Annotated[
            float | Quantity | None, Amount(unit="kg", plain=True, zero=True)
        ] = None,
        service_life: Annotated[Quantity | None, Amount(unit="year")] = None,
    ) -> SustainabilityResult:
        """Sum up energy, carbon and water.

        Parameters
        ----------
        fleet
            The servers. The network between them is not counted.
        duration_days
            Time in days, or a quantity of time.
        datacenter
            The data center, or a grid, which implies a typical data center of its region.
        utilization
            Position of the devices' power between idle (0) and design power (1): a guess, or the
            `power_utilization` of a training step or a serving engine, predicted from its work.
            `None` takes 1, as model cards do: an upper bound.
        host_power
            Power of one server without its devices. `None` takes the server's rated power less that
            of its devices, times the share that was measured on one server.
        device_carbon
            CO2 equivalent of making one device, in kg. `None` takes the B200's for Blackwell and
            the H100's for all other devices of a server. For a standalone device, such as a laptop
            or a microcontroller, there is no figure, and neither `embodied_carbon` nor
            `total_carbon` is known.
        host_carbon
            CO2 equivalent of making a server without its devices, or one tray of a rack, in kg.
            `None` takes that of a server for eight GPUs or of a tray for four, and zero for a
            standalone device.
        service_life
            Time over which the carbon of making the hardware is spread; `None` takes three years.

        Returns
        -------
        SustainabilityResult
            Energy, carbon and water.

        Raises
        ------
        ConfigError
            If an argument is out of range, or the power of the servers is not known.

        Notes
        -----
        Carbon is location-based, so contracts for green electricity do not change it. Water is the
        consumption on site, without that of power plants.

        Examples
        --------
        >>> from mlsysim import Infra, SustainabilitySolver, Systems
        >>> r = SustainabilitySolver.solve(
        ...     fleet=Systems.Clusters.Research_256, duration_days=30, datacenter=Infra.Quebec
        ... )
        >>> print(f"{r.total_energy.to('MWh'):.0f}, {r.carbon_footprint.to('tonne'):.1f}")
        271 MWh, 7.3 t
        >>> r.region_name
        'Québec'
        """
        return cls._answer(locals())

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> SustainabilityInputs:
        """Check every argument, and that the power is known."""
        inputs = super().admit(given)
        check_power(inputs)
        return inputs.but(datacenter=as_datacenter(inputs.datacenter))

    @classmethod
    def model(cls, inputs: SustainabilityInputs) -> Model[SustainabilityInputs]:
        """Return the only model."""
        return fleet_footprint

    @classmethod
    def rest(
        cls, values: Mapping[str, Any], inputs: SustainabilityInputs
    ) -> dict[str, Callable[[], Any]]:
        """Name the region."""
        return {"region_name": lambda: inputs.datacenter.grid.name}
