"""Links, nodes and fleets, and the facilities and grids that supply them."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Literal, get_args

from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.fields import Record, number, quantity, record, require
from mlsysim.core.types.hardware import Accelerator
from mlsysim.core.types.source import Entry, Source
from mlsysim.core.units import Quantity

Commitment = Literal["on demand", "spot", "block", "1 year", "3 years"]
"""Term of a rental. A block is a reservation of days or weeks, paid in advance."""
COMMITMENTS: tuple[Commitment, ...] = get_args(Commitment)


@record
class NetworkFabric(Entry):
    """A kind of link, within a node (NVLink) or between nodes (InfiniBand, Ethernet).

    Attributes
    ----------
    bandwidth : Quantity
        Rate of one port, per direction. Within a node: all links of one device together.
    latency : Quantity
        Time of an empty message from end to end.
    peers : int or None
        Devices to which the links of one device lead directly, if there is no switch: 7 in a server
        of eight GPUs with a link between every pair. A smaller group uses fewer links. `None` if a
        switch gives any group the full bandwidth.
    """

    bandwidth: Quantity = quantity("GB/s")
    latency: Quantity = quantity("us", zero=True)
    peers: int | None = number(default=None, whole=True)


@record
class Node(Entry):
    """A server, or a rack whose devices share one domain of fast links.

    Attributes
    ----------
    accelerator : Accelerator
        The device; there are `accelerators_per_node` of them.
    accelerators_per_node : int
        Devices of the node.
    devices_per_host : int or None
        Devices per host, if the node has several hosts: 4 in each of the 18 trays of an NVL72, 8 in
        each host of a TPU v5e pod. Links and placement refer to the whole node, failures to each
        device, and embodied carbon to each host. `None` if the node is one host.
    scale_up : NetworkFabric
        The links between devices of one node.
    nics_per_node : int
        Network ports for training traffic, each as fast as the fleet's fabric.
    power : Quantity or None
        Maximum power of the whole server.
    unit_price : Quantity or None
        Price of the whole server.
    """

    accelerator: Accelerator
    accelerators_per_node: int = number(whole=True)
    devices_per_host: int | None = number(default=None, whole=True)
    scale_up: NetworkFabric
    nics_per_node: int = number(whole=True)
    power: Quantity | None = quantity("W", default=None)
    unit_price: Quantity | None = quantity("USD", default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, accelerator=Accelerator, scale_up=NetworkFabric)
        devices = self.accelerators_per_node * self.accelerator.si("tdp")
        if self.si("power") < devices:
            raise ConfigError(
                f"{self.name}: power = {self.power} is less than its devices' design power of "
                f"{self.accelerators_per_node} x {self.accelerator.tdp}: raise power, or leave it "
                "out if it is not known",
                argument="power",
            )


@record
class Fleet(Record):
    """Equal nodes on one fabric.

    Attributes
    ----------
    name : str
        Name of the fleet, for tables and messages.
    node : Node
        The server; there are `count` of them.
    count : int
        Nodes of the fleet.
    fabric : NetworkFabric
        The network between the nodes.
    source : Source or None
        Source of the configuration, if it is published.
    note : str
        A remark, such as the system that the fleet represents.
    """

    name: str
    node: Node
    count: int = number(whole=True)
    fabric: NetworkFabric
    source: Source | None = None
    note: str = dataclasses.field(default="", compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, node=Node, fabric=NetworkFabric)
        if self.source is not None:
            require(self, source=Source)

    @property
    def total_accelerators(self) -> int:
        """Devices in all nodes together."""
        return self.count * self.node.accelerators_per_node


@record
class DeploymentTier(Entry):
    """A class of places where models run, with its typical budgets.

    Attributes
    ----------
    memory, power : Quantity
        Memory and power that one deployment can count on.
    latency : Quantity
        Time within which an answer is expected.
    """

    memory: Quantity = quantity("GB")
    power: Quantity = quantity("W")
    latency: Quantity = quantity("ms")


@record
class RentalOffer(Entry):
    """A provider's price for a device on one day. Prices change, and differ by a factor of 3.

    Attributes
    ----------
    accelerator : Accelerator
        The device.
    provider, region : str
        The provider and the region; the region is empty if the source names none.
    commitment : str
        Term of the rental: ``"on demand"``, ``"spot"``, ``"block"``, ``"1 year"`` or ``"3 years"``.
    date : str
        Day or month of the price (ISO 8601).
    price : Quantity
        Rent of one device, including everything.
    """

    accelerator: Accelerator
    provider: str
    region: str = ""
    commitment: Commitment
    date: str
    price: Quantity = quantity("USD/h")

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, accelerator=Accelerator, provider=str, region=str, date=str)
        if self.commitment not in COMMITMENTS:
            raise UnknownEntryError.build(self.commitment, "RentalOffer.commitment", COMMITMENTS)
        try:
            datetime.date.fromisoformat(self.date if len(self.date) > 7 else f"{self.date}-01")
        except ValueError:
            raise ConfigError(
                f"{self.name}: date = {shown(self.date)} is not a day or a month: write it as in "
                "2026-05-07 or 2026-05",
                argument="date",
            ) from None


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
