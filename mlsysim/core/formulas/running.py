"""Running a fleet: power and energy, carbon and water, and cost."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum, minimum

__all__ = [
    "amortized_carbon",
    "amortized_cost",
    "device_power",
    "embodied_carbon",
    "facility_energy",
    "host_power",
    "operational_carbon",
    "ownership_cost",
    "power_utilization",
    "site_water",
    "workload_power",
]


@formula
def amortized_carbon(carbon: Value, time: Value, service_life: Value) -> Value:
    r"""Part of the embodied carbon that is attributed to a time of use.

    $$ C_t = C_m\,\frac{t}{\Lambda} $$

    Parameters
    ----------
    carbon : [kg]
        $C_m$, CO2 equivalent of making the hardware.
    time : [s]
        $t$, time of use.
    service_life : [s]
        $\Lambda$, total service life of the hardware.

    Returns
    -------
    carbon : [kg]
        $C_t$, CO2 equivalent of that time.

    References
    ----------
    @ecologits_method, request embodied impacts
    """
    return carbon * time / service_life


@formula
def amortized_cost(capex: Value, time: Value, service_life: Value) -> Value:
    r"""Part of a purchase price attributed to a time of use, equal for every hour of service.

    $$ K_t = K\,\frac{t}{\Lambda} $$

    Parameters
    ----------
    capex : [USD]
        $K$, purchase price.
    time : [s]
        $t$, time of use.
    service_life : [s]
        $\Lambda$, total service life of the hardware.

    Returns
    -------
    cost : [USD]
        $K_t$, cost of that time.

    References
    ----------
    @server_lives: cost of servers spread over their useful lives
    """
    return capex * time / service_life


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
        $u$, position between idle (0) and design power (1).

    Returns
    -------
    power : [W]
        $W$, mean power.

    References
    ----------
    @cloud_carbon_footprint, energy of compute: between minimum and maximum power in proportion to
    utilization
    """
    return design_power * (idle_share + (1 - idle_share) * utilization)


@formula
def embodied_carbon(
    nodes: Value, devices_per_node: Value, device_carbon: Value, host_carbon: Value
) -> Value:
    r"""Greenhouse gas of making a fleet's servers.

    $$ C_m = n\,(g\,c_d + c_h) $$

    Parameters
    ----------
    nodes : [1]
        $n$, servers.
    devices_per_node : [1]
        $g$, devices of a server.
    device_carbon : [kg]
        $c_d$, CO2 equivalent of making a device.
    host_carbon : [kg]
        $c_h$, CO2 equivalent of making a server without its devices.

    Returns
    -------
    carbon : [kg]
        $C_m$, CO2 equivalent.

    References
    ----------
    @ecologits_method, server embodied impacts
    """
    return nodes * (devices_per_node * device_carbon + host_carbon)


@formula
def facility_energy(it_energy: Value, pue: Value) -> Value:
    r"""Energy of the whole facility for the energy of its computers.

    $$ E_f = \mathrm{PUE}\,E $$

    Parameters
    ----------
    it_energy : [J]
        $E$, energy of the computers.
    pue : [1]
        $\mathrm{PUE}$, power usage effectiveness.

    Returns
    -------
    energy : [J]
        $E_f$, energy of the facility.

    References
    ----------
    @patterson2021, section 2.5
    """
    return it_energy * pue


@formula
def host_power(
    node_power: Value, design_power: Value, devices_per_node: Value, host_share: Value
) -> Value:
    r"""Power of a server without its devices: processors, memory, network, fans.

    It is a share of the server's rated power less the design power of its devices.

    $$ W_h = \eta\,\max(W_n - g\,W_d,\ 0) $$

    Parameters
    ----------
    node_power : [W]
        $W_n$, maximum power of the server.
    design_power : [W]
        $W_d$, design power of a device.
    devices_per_node : [1]
        $g$, devices of the server.
    host_share : [1]
        $\eta$, part of the remainder that is drawn.

    Returns
    -------
    power : [W]
        $W_h$, power of the host.

    References
    ----------
    @latif2025
    """
    return host_share * maximum(node_power - devices_per_node * design_power, 0 * node_power)


@formula
def operational_carbon(energy: Value, carbon_intensity: Value) -> Value:
    r"""Greenhouse gas of electricity from a grid.

    $$ C = \gamma\,E $$

    Parameters
    ----------
    energy : [J]
        $E$, electricity drawn.
    carbon_intensity : [kg/J]
        $\gamma$, CO2 equivalent per unit of electricity.

    Returns
    -------
    carbon : [kg]
        $C$, CO2 equivalent.

    References
    ----------
    @patterson2021, section 2.5
    """
    return energy * carbon_intensity


@formula
def ownership_cost(capital: Value, operating: Value) -> Value:
    r"""Cost of owning a fleet.

    $$ O = K + X $$

    Parameters
    ----------
    capital : [USD]
        $K$, capital cost: the whole purchase price, or the share for a period.
    operating : [USD]
        $X$, operating cost of the period.

    Returns
    -------
    cost : [USD]
        $O$, cost of owning.

    References
    ----------
    @koomey_ownership
    """
    return capital + operating


@formula
def power_utilization(power: Value, design_power: Value, idle_share: Value) -> Value:
    r"""Position of a device's power between idle and design power: the inverse of `device_power`.

    $$ u = \frac{W / W_d - \iota}{1 - \iota} $$

    Parameters
    ----------
    power : [W]
        $W$, mean power.
    design_power : [W]
        $W_d$, design power.
    idle_share : [1]
        $\iota$, power of the idle device over its design power.

    Returns
    -------
    utilization : [1]
        $u$, 0 at idle and 1 at the design power.

    References
    ----------
    Definition: the inverse of `device_power`.
    """
    return (power / design_power - idle_share) / (1 - idle_share)


@formula
def site_water(it_energy: Value, wue: Value) -> Value:
    r"""Water that a facility consumes on site, without the water of power plants.

    $$ V = \omega\,E $$

    Parameters
    ----------
    it_energy : [J]
        $E$, energy of the computers.
    wue : [m**3/J]
        $\omega$, water usage effectiveness.

    Returns
    -------
    water : [m**3]
        $V$, water.

    References
    ----------
    @green_grid_wue
    """
    return it_energy * wue


@formula
def workload_power(
    design_power: Value,
    constant_share: Value,
    compute_share: Value,
    memory_share: Value,
    hfu: Value,
    mbu: Value,
) -> Value:
    r"""Mean power of a device from the work that it does: the energy roofline.

    Each operation and each byte costs energy, in addition to a constant power. All three are given
    as shares of the design power: $\kappa$ is the energy of an operation times the peak rate, and
    $\mu$ the energy of a byte times the bandwidth. The power limit of the board caps the sum at the
    design power.

    $$ W = W_d\,\min\left(1,\; \pi_0 + \kappa\,u_f + \mu\,u_b\right) $$

    Parameters
    ----------
    design_power : [W]
        $W_d$, design power, at which the board limits itself.
    constant_share : [1]
        $\pi_0$, power of an idle device that a program occupies, over $W_d$.
    compute_share : [1]
        $\kappa$, power that arithmetic at the peak rate would add, over $W_d$.
    memory_share : [1]
        $\mu$, power that traffic at the full bandwidth would add, over $W_d$.
    hfu : [1]
        $u_f$, executed operations divided by what the peak rate allows.
    mbu : [1]
        $u_b$, memory traffic divided by what the bandwidth allows.

    Returns
    -------
    power : [W]
        $W$, mean power.

    References
    ----------
    @choi2013
    """
    share = constant_share + compute_share * hfu + memory_share * mbu
    return design_power * minimum(1, share)
