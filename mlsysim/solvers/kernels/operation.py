"""Kernels of running a fleet: energy first, then carbon and water, or cost."""

from __future__ import annotations

from typing import Any

from mlsysim.core.formulas import (
    amortized_carbon,
    amortized_cost,
    carbon_sum,
    cost_per_token,
    cost_rate,
    device_energy,
    device_power,
    device_time,
    electricity_cost,
    embodied_carbon,
    facility_energy,
    fleet_devices,
    fleet_power,
    host_power,
    maintenance_cost,
    operating_cost,
    operational_carbon,
    ownership_cost,
    purchase_cost,
    rental_cost,
    run_cost,
    run_time,
    site_water,
    tokens_made,
)
from mlsysim.core.numeric import Value, first_known

__all__ = ["fleet_cost", "fleet_footprint"]


def _energy(
    nodes: Value,
    devices_per_node: Value,
    duration: Value,
    *,
    design_power: Value,
    node_power: Value,
    given_host_power: Value,
    utilization: Value,
    idle_share: Value,
    host_share: Value,
    pue: Value,
) -> dict[str, Any]:
    """Shared start of both kernels: from ratings to energy."""
    device = device_power(design_power, idle_share, utilization)
    host = first_known(
        given_host_power, host_power(node_power, design_power, devices_per_node, host_share)
    )
    power = fleet_power(nodes, devices_per_node, device, host)
    it_energy = device_energy(power, duration)
    return {
        "it_energy": it_energy,
        "total_energy": facility_energy(it_energy, pue),
        "it_power": power,
        "device_power": device,
        "host_power": host,
        "pue": pue,
    }


def fleet_footprint(
    nodes: Value,
    devices_per_node: Value,
    duration: Value,
    carbon_intensity: Value,
    wue: Value,
    device_carbon: Value,
    host_carbon: Value,
    service_life: Value,
    **power: Value,
) -> dict[str, Any]:
    """Energy, greenhouse gas and water of a fleet over a time.

    Parameters
    ----------
    nodes : [1]
        Servers of the fleet.
    devices_per_node : [1]
        Devices of a server.
    duration : [s]
        Time.
    carbon_intensity : [kg/J]
        CO2 equivalent of the grid's electricity.
    wue : [m**3/J]
        Water usage effectiveness.
    device_carbon : [kg]
        CO2 equivalent of making a device.
    host_carbon : [kg]
        CO2 equivalent of making a server without its devices.
    service_life : [s]
        Time that the hardware serves in all.
    design_power : [W]
        Design power of a device.
    node_power : [W]
        Maximum power of a server.
    given_host_power : [W]
        Power of a server apart from its devices, if known.
    utilization : [1]
        Place of the devices between idle and design power.
    idle_share : [1]
        Power of an idle device over its design power.
    host_share : [1]
        Part of the server's remaining rating that its host draws.
    pue : [1]
        Power usage effectiveness.
    """
    energy = _energy(nodes, devices_per_node, duration, **power)
    operational = operational_carbon(energy["total_energy"], carbon_intensity)
    made = embodied_carbon(nodes, devices_per_node, device_carbon, host_carbon)
    embodied = amortized_carbon(made, duration, service_life)
    return {
        "carbon_footprint": operational,
        "embodied_carbon": embodied,
        "total_carbon": carbon_sum(operational, embodied),
        "water_usage": site_water(energy["it_energy"], wue),
        **energy,
        "carbon_intensity": carbon_intensity,
    }


def fleet_cost(
    nodes: Value,
    devices_per_node: Value,
    duration: Value,
    unit_price: Value,
    kwh_price: Value,
    maintenance_rate: Value,
    service_life: Value,
    rental_price: Value,
    token_throughput: Value,
    training_tokens: Value,
    **power: Value,
) -> dict[str, Any]:
    """Cost of a fleet over a time, bought or rented.

    Parameters
    ----------
    nodes : [1]
        Servers of the fleet.
    devices_per_node : [1]
        Devices of a server.
    duration : [s]
        Time.
    unit_price : [USD]
        Price of a server with its devices.
    kwh_price : [USD/J]
        Price of electricity.
    maintenance_rate : [1/s]
        Cost of maintenance per unit of time, as a share of the purchase price.
    service_life : [s]
        Time that the hardware serves in all.
    rental_price : [USD/s]
        Rent of one device for a unit of time.
    token_throughput : [1/s]
        Tokens that the fleet processes per unit of time.
    training_tokens : [token]
        Tokens of a training run.
    design_power : [W]
        Design power of a device.
    node_power : [W]
        Maximum power of a server.
    given_host_power : [W]
        Power of a server apart from its devices, if known.
    utilization : [1]
        Place of the devices between idle and design power.
    idle_share : [1]
        Power of an idle device over its design power.
    host_share : [1]
        Part of the server's remaining rating that its host draws.
    pue : [1]
        Power usage effectiveness.
    """
    energy = _energy(nodes, devices_per_node, duration, **power)
    hours = device_time(fleet_devices(nodes, devices_per_node), duration)
    tokens = tokens_made(token_throughput, duration)

    # Bought: the whole price (tco), and the part of it that falls to this time (period_cost).
    capex = purchase_cost(nodes, unit_price)
    electricity = electricity_cost(energy["total_energy"], kwh_price)
    maintenance = maintenance_cost(capex, maintenance_rate, duration)
    opex = operating_cost(electricity, maintenance)
    share = amortized_cost(capex, duration, service_life)
    period = ownership_cost(share, opex)
    token = cost_per_token(period, tokens)

    # Rented: electricity, maintenance and building are in the rent.
    rent = rental_cost(hours, rental_price)
    rented_token = cost_per_token(rent, tokens)
    return {
        "capex": capex,
        "opex_energy": electricity,
        "opex_maintenance": maintenance,
        "total_opex": opex,
        "tco": ownership_cost(capex, opex),
        "capex_share": share,
        "period_cost": period,
        "cost_per_device_hour": cost_rate(period, hours),
        "rental_cost": rent,
        "cost_per_token": token,
        "rental_cost_per_token": rented_token,
        "training_time": run_time(training_tokens, token_throughput),
        "training_cost": run_cost(training_tokens, token),
        "rental_training_cost": run_cost(training_tokens, rented_token),
        "device_hours": hours,
        **energy,
    }
