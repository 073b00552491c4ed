"""Answer of the sustainability solver."""

from __future__ import annotations

from mlsysim.core.fields import number, quantity, record
from mlsysim.core.result import InUnit, Result
from mlsysim.core.units import Quantity

__all__ = ["SustainabilityResult"]


@record
class SustainabilityResult(Result):
    """Answer of `SustainabilitySolver`: energy, greenhouse gas and water of a fleet."""

    it_energy: Quantity = quantity("kWh")
    """Energy of the servers."""
    total_energy: Quantity = quantity("kWh")
    """Energy of the facility: the servers' times PUE."""
    carbon_footprint: Quantity = quantity("kg")
    """Greenhouse gas of the electricity, as CO2 equivalent; the hardware's is not in it."""
    embodied_carbon: Quantity | None = quantity("kg")
    """Greenhouse gas of making the hardware: the share of this time in its service life; `None`
    where no figure is known."""
    total_carbon: Quantity | None = quantity("kg")
    """Electricity and hardware together; `None` where the hardware's part is not known."""
    water_usage: Quantity = quantity("L")
    """Water consumed on site; power plants consume more, which is not counted."""
    it_power: Quantity = quantity("kW")
    """Mean power of all servers."""
    device_power: Quantity = quantity("W")
    """Mean power of one device."""
    host_power: Quantity = quantity("W")
    """Power of one server apart from its devices."""
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
