"""Answer of the economics solver."""

from __future__ import annotations

from mlsysim.core.fields import number, quantity, record
from mlsysim.core.result import InUnit, Result
from mlsysim.core.units import Quantity

__all__ = ["EconomicsResult"]


@record
class EconomicsResult(Result):
    """Answer of `EconomicsSolver`: what a fleet costs, bought or rented.

    `None` stands where a price or a throughput that the figure needs was not given.
    """

    capex: Quantity | None = quantity("USD")
    """Purchase price of all servers."""
    opex_energy: Quantity = quantity("USD")
    """Electricity of the facility."""
    opex_maintenance: Quantity | None = quantity("USD")
    """Repair and support."""
    total_opex: Quantity | None = quantity("USD")
    """Electricity and maintenance."""
    tco: Quantity | None = quantity("USD")
    """Total cost of ownership: the whole purchase price and the operation of this time."""
    capex_share: Quantity | None = quantity("USD")
    """Part of the purchase price that falls to this time: time over service life."""
    period_cost: Quantity | None = quantity("USD")
    """What this time costs: `capex_share` and `total_opex`."""
    cost_per_device_hour: Quantity | None = quantity("USD/h")
    """`period_cost` per device and hour: to be compared with a rent."""
    rental_cost: Quantity | None = quantity("USD")
    """Rent of all devices for this time, everything included."""
    cost_per_token: Quantity | None = quantity("USD/Mtoken")
    """`period_cost` per token."""
    rental_cost_per_token: Quantity | None = quantity("USD/Mtoken")
    """`rental_cost` per token."""
    training_time: Quantity | None = quantity("day")
    """Time of a run over `training_tokens`."""
    training_cost: Quantity | None = quantity("USD")
    """Cost of that run on the fleet as owned."""
    rental_training_cost: Quantity | None = quantity("USD")
    """Cost of that run on the fleet as rented."""
    device_hours: Quantity = quantity("h")
    """Time of all devices together."""
    it_energy: Quantity = quantity("kWh")
    """Energy of the servers."""
    total_energy: Quantity = quantity("kWh")
    """Energy of the facility: the servers' times PUE."""
    it_power: Quantity = quantity("kW")
    """Mean power of all servers."""
    device_power: Quantity = quantity("W")
    """Mean power of one device."""
    host_power: Quantity = quantity("W")
    """Power of one server apart from its devices."""
    pue: float = number()
    """Power usage effectiveness: facility energy over IT energy."""

    capex_usd = InUnit("capex", "USD")
    """`capex` as a plain number."""
    opex_energy_usd = InUnit("opex_energy", "USD")
    """`opex_energy` as a plain number."""
    opex_maintenance_usd = InUnit("opex_maintenance", "USD")
    """`opex_maintenance` as a plain number."""
    total_opex_usd = InUnit("total_opex", "USD")
    """`total_opex` as a plain number."""
    tco_usd = InUnit("tco", "USD")
    """`tco` as a plain number."""
