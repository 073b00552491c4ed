"""Power grids, racks and data centers."""

from __future__ import annotations

from mlsysim.core.fields import number, quantity, record, require
from mlsysim.core.types.source import Entry
from mlsysim.core.units import Quantity

__all__ = ["Datacenter", "GridProfile", "Rack"]


@record
class GridProfile(Entry):
    """A region's electricity, and the overhead of a typical facility there.

    Attributes
    ----------
    carbon_intensity : Quantity
        Greenhouse gas per unit of electricity, as CO2 equivalent.
    pue : float
        Power usage effectiveness: facility energy over IT energy, 1 or more.
    wue : Quantity
        Water usage effectiveness: water consumed on site per unit of IT energy.
    """

    carbon_intensity: Quantity = quantity("g/kWh")
    pue: float = number(least=1)
    wue: Quantity = quantity("L/kWh", zero=True)


@record
class Rack(Entry):
    """A rack and the way in which it is cooled.

    Attributes
    ----------
    power : Quantity
        Power that the rack can deliver and remove.
    cooling : str
        ``"air"`` or ``"liquid"``.
    pue : float
        Power usage effectiveness that is typical of facilities with such racks.
    """

    power: Quantity = quantity("kW")
    cooling: str
    pue: float = number(least=1)


@record
class Datacenter(Entry):
    """A facility on a grid; its own PUE and WUE replace the grid's typical ones."""

    grid: GridProfile
    pue: float = number(least=1)
    wue: Quantity = quantity("L/kWh", zero=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, grid=GridProfile)
