"""Links, nodes and fleets: how devices are connected."""

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
