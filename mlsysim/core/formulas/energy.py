"""Energy: the power that servers draw, and power over time."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum

__all__ = [
    "device_energy",
    "device_power",
    "facility_energy",
    "fleet_power",
    "host_power",
]


@formula
def device_power(design_power: Value, idle_share: Value, utilization: Value) -> Value:
    r"""Mean power of a device that is busy for a part of its time.

    $$ W = W_d\,\bigl(\iota + (1 - \iota)\,u\bigr) $$

    Parameters
    ----------
    design_power : [W]
        $W_d$, design power.
    idle_share : [1]
        $\iota$, power of the idle device over its design power.
    utilization : [1]
        $u$, place between idle (0) and design power (1).

    Returns
    -------
    power : [W]
        $W$, mean power.

    References
    ----------
    Thoughtworks (2021), Cloud Carbon Footprint, energy of compute: between minimum and maximum
    power in proportion to utilization,
    https://github.com/cloud-carbon-footprint/cloud-carbon-footprint
    """
    return design_power * (idle_share + (1 - idle_share) * utilization)


@formula
def host_power(
    node_power: Value, design_power: Value, devices_per_node: Value, host_share: Value
) -> Value:
    r"""Power of a server apart from its devices: processors, memory, network, fans.

    A part of what the server's rating leaves once its devices have their design power.

    $$ W_h = \eta\,\max(W_n - d\,W_d,\ 0) $$

    Parameters
    ----------
    node_power : [W]
        $W_n$, maximum power of the server.
    design_power : [W]
        $W_d$, design power of a device.
    devices_per_node : [1]
        $d$, devices of the server.
    host_share : [1]
        $\eta$, part of the remainder that is drawn.

    Returns
    -------
    power : [W]
        $W_h$, power of the host.

    References
    ----------
    Latif et al. (2025), Single-Node Power Demand During AI Training: Measurements on an 8-GPU
    NVIDIA H100 System, https://arxiv.org/abs/2412.08602
    """
    return host_share * maximum(node_power - devices_per_node * design_power, 0 * node_power)


@formula
def fleet_power(
    nodes: Value, devices_per_node: Value, device_power: Value, host_power: Value
) -> Value:
    r"""Power of all servers of a fleet; switches between them are not counted.

    $$ W_f = n\,(d\,W + W_h) $$

    Parameters
    ----------
    nodes : [1]
        $n$, servers.
    devices_per_node : [1]
        $d$, devices of a server.
    device_power : [W]
        $W$, mean power of a device.
    host_power : [W]
        $W_h$, power of a server apart from its devices.

    Returns
    -------
    power : [W]
        $W_f$, power of the fleet.

    References
    ----------
    Counting.
    """
    return nodes * (devices_per_node * device_power + host_power)


@formula
def device_energy(power: Value, time: Value) -> Value:
    r"""Energy drawn at constant power.

    $$ E = W\,t $$

    Parameters
    ----------
    power : [W]
        $W$, power.
    time : [s]
        $t$, time.

    Returns
    -------
    energy : [J]
        $E$, energy.

    References
    ----------
    Definition of power.
    """
    return power * time


@formula
def facility_energy(it_energy: Value, pue: Value) -> Value:
    r"""Energy of the whole facility for the energy of its computers.

    $$ E_f = \epsilon\,E $$

    Parameters
    ----------
    it_energy : [J]
        $E$, energy of the computers.
    pue : [1]
        $\epsilon$, power usage effectiveness.

    Returns
    -------
    energy : [J]
        $E_f$, energy of the facility.

    References
    ----------
    Patterson et al. (2021), Carbon Emissions and Large Neural Network Training, section 2.5,
    https://arxiv.org/abs/2104.10350
    """
    return it_energy * pue
