"""Power grids, racks and data centers."""

from __future__ import annotations

import dataclasses

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import number, quantity, record, require
from mlsysim.core.types.source import Entry
from mlsysim.core.units import Quantity


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
    kwh_price : Quantity or None
        Price of electricity for a large industrial consumer, without taxes.
    hourly : tuple of float
        Carbon intensity of each hour of the day, in g/kWh, from midnight in local standard time;
        empty if no profile is known. Only its shape is used.
    """

    carbon_intensity: Quantity = quantity("g/kWh")
    pue: float = number(least=1)
    wue: Quantity = quantity("L/kWh", zero=True)
    kwh_price: Quantity | None = quantity("USD/kWh", default=None, zero=True)
    hourly: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, hourly=tuple)
        plain = all(isinstance(value, (int, float)) and value > 0 for value in self.hourly)
        if self.hourly and not (len(self.hourly) == 24 and plain):
            raise ConfigError(
                f"{self.name}: hourly = {shown(self.hourly)} is not a profile of a day: give 24 "
                "positive numbers, from midnight on, or leave it out",
                argument="hourly",
            )

    def during(self, start: int, stop: int) -> GridProfile:
        """Return the grid during some hours of the day, for a job that runs only then.

        Parameters
        ----------
        start, stop
            First hour, and the hour at which the job stops, 0 to 24 in local standard time. A job
            that stops at an earlier hour than it starts runs past midnight.

        Returns
        -------
        GridProfile
            The same grid with the mean carbon intensity of these hours, and no profile.

        Raises
        ------
        ConfigError
            If the grid has no hourly profile, or an hour is not a whole number from 0 to 24.

        Examples
        --------
        >>> from mlsysim import Infra
        >>> noon, evening = Infra.California.during(9, 15), Infra.California.during(18, 24)
        >>> print(f"{noon.carbon_intensity:.0f~P}, {evening.carbon_intensity:.0f~P}")
        178 g/kWh, 305 g/kWh
        """
        for name, hour in (("start", start), ("stop", stop)):
            if isinstance(hour, bool) or not isinstance(hour, int) or not 0 <= hour <= 24:
                raise ConfigError(
                    f"{name} = {shown(hour)} is not an hour: give a whole number from 0 to 24",
                    argument=name,
                )
        if not self.hourly:
            raise ConfigError(
                f"{self.name} has no hourly profile: give hourly=, 24 numbers from midnight on, or "
                "choose a grid that has one, such as Infra.California",
                argument="hourly",
            )
        length = (stop - start) % 24 or 24
        hours = [self.hourly[(start + passed) % 24] for passed in range(length)]
        share = (sum(hours) / length) / (sum(self.hourly) / 24)
        return dataclasses.replace(
            self,
            name=f"{self.name}, {start} to {stop} h",
            carbon_intensity=self.carbon_intensity * share,
            hourly=(),
        )


@record
class Rack(Entry):
    """A rack and how it is cooled.

    Attributes
    ----------
    power : Quantity
        Power that the rack can deliver and remove.
    cooling : str
        ``"air"`` or ``"liquid"``.
    pue : float
        Typical power usage effectiveness of facilities with such racks.
    """

    power: Quantity = quantity("kW")
    cooling: str
    pue: float = number(least=1)


@record
class Datacenter(Entry):
    """A facility on a grid; its own PUE and WUE replace the grid's typical ones.

    Attributes
    ----------
    grid : GridProfile
        The grid that supplies its electricity.
    pue : float
        Power usage effectiveness: energy of the facility over energy of its computers.
    wue : Quantity
        Water usage effectiveness: water consumed on site per unit of the computers' energy.
    """

    grid: GridProfile
    pue: float = number(least=1)
    wue: Quantity = quantity("L/kWh", zero=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, grid=GridProfile)
