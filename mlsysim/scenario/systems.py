"""The parts of a system that solvers use: its device, its node, the whole fleet."""

from __future__ import annotations

import dataclasses

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.types import (
    Accelerator,
    Datacenter,
    Fleet,
    GridProfile,
    NetworkFabric,
    Node,
    Source,
)
from mlsysim.core.units import Q_
from mlsysim.registry.catalogs import Nodes

System = Accelerator | Node | Fleet
SYSTEMS = (Accelerator, Node, Fleet)

_ALONE = Source(
    title="By definition: a standalone system has no peers and no facility around it",
    note="no message crosses such a link, so its rate and latency do not affect results",
)
NO_LINK = NetworkFabric(name="no link", source=_ALONE, bandwidth=Q_(1, "B/s"), latency=Q_(0, "us"))
"""The fabric of a system without peers."""


def device_of(system: System) -> Accelerator:
    """Return the device on which a forward pass runs."""
    return system if isinstance(system, Accelerator) else node_of(system).accelerator


def node_of(system: System) -> Node:
    """Return the node of a fleet; a single device is a node without a host."""
    if isinstance(system, Fleet):
        return system.node
    return system if isinstance(system, Node) else _bare_node(system)


def standalone_fleet(system: System) -> Fleet:
    """Create a fleet of one device or one node, without peers.

    Use it to model training, energy and cost of a laptop or a microcontroller. A device becomes a
    node without a host: the power and price of the node are those of the device.

    Parameters
    ----------
    system
        A device or a node. A fleet is returned unchanged.

    Returns
    -------
    Fleet
        One node on no network.

    Raises
    ------
    ConfigError
        If `system` is something else.

    Examples
    --------
    >>> from mlsysim import Hardware, standalone_fleet
    >>> standalone_fleet(Hardware.MacBook_M3_Max).total_accelerators
    1
    """
    if not isinstance(system, SYSTEMS):
        raise ConfigError(
            f"system = {shown(system)} is not a system: pass a device such as Hardware.H100, a "
            "node such as Systems.Nodes.DGX_H100, or a fleet such as Systems.Clusters.Research_256",
            argument="system",
        )
    if isinstance(system, Fleet):
        return system
    return Fleet(name=system.name, node=node_of(system), count=1, fabric=NO_LINK)


def part_of_server(server: Accelerator | Node, devices: int) -> Node:
    """Return a server with only some of its devices, such as two cards of eight.

    It has an equal share of the network ports, but at least one. Its power is that of the server
    without the other devices, and its price is not known.

    Parameters
    ----------
    server
        The server.
    devices
        How many of its devices are used.

    Raises
    ------
    ConfigError
        If it is not a server, or has fewer devices.

    Examples
    --------
    >>> from mlsysim import Systems, part_of_server
    >>> part_of_server(Systems.Nodes.L40S_Server, 2).accelerators_per_node
    2
    """
    if not isinstance(server, Node):
        servers = [
            name
            for name, node in Nodes.items()
            if isinstance(node, Node) and node.accelerator == server
        ]
        raise ConfigError(
            f"{getattr(server, 'name', shown(server))} is not a server, so it has no part of "
            f"{devices} devices: choose one such as {' or '.join(servers) or 'DGX_H100'}",
            argument="server",
        )
    total = server.accelerators_per_node
    if type(devices) is not int or not 1 <= devices <= total:
        raise ConfigError(
            f"devices = {shown(devices)} of {server.name}: give 1 to {total}", argument="devices"
        )
    if devices == total:
        return server
    power, device = server.power, server.accelerator
    if power is not None:
        power = None if device.tdp is None else power - (total - devices) * device.tdp
    return dataclasses.replace(
        server,
        name=f"{server.name}, {devices} of {total} devices",
        accelerators_per_node=devices,
        devices_per_host=server.devices_per_host and min(server.devices_per_host, devices),
        nics_per_node=max(1, server.nics_per_node * devices // total),
        power=power,
        unit_price=None,
        estimated=server.estimated | {"nics_per_node", *(["power"] if power is not None else [])},
    )


def without_facility(grid: GridProfile) -> Datacenter:
    """Return the location of a device outside of data centers: a home, a car.

    The device is the only consumer of power, and no water evaporates to cool it.
    """
    return Datacenter(
        name=f"{grid.name}, no facility",
        source=_ALONE,
        grid=grid,
        pue=1.0,
        wue=Q_(0, "L/kWh"),
    )


def _bare_node(device: Accelerator) -> Node:
    """Wrap a device; the node's values keep the sources and estimates of the device's."""
    origins = {"power": "tdp", "unit_price": "unit_price"}
    return Node(
        name=device.name,
        source=_ALONE,
        field_sources={field: device.source_of(origin) for field, origin in origins.items()},
        estimated=frozenset(f for f, origin in origins.items() if device.is_estimated(origin)),
        accelerator=device,
        accelerators_per_node=1,
        scale_up=NO_LINK,
        nics_per_node=1,
        power=device.tdp,
        unit_price=device.unit_price,
    )
