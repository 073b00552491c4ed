"""What does a fleet cost, bought or rented, and what does a token cost?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from mlsysim.core import formulas as f
from mlsysim.core.errors import ConfigError
from mlsysim.core.fields import number, quantity, record
from mlsysim.core.inputs import default
from mlsysim.core.numeric import Value, first_known
from mlsysim.core.result import InUnit, Result
from mlsysim.core.types import Datacenter, Fleet, GridProfile, RentalOffer
from mlsysim.core.units import Quantity, format_number
from mlsysim.registry import Infra
from mlsysim.registry.operations import usual_offer
from mlsysim.solvers.arguments import Amount, Noun, Portion
from mlsysim.solvers.base import Model, Solver
from mlsysim.solvers.running.facility import RunningInputs, as_datacenter, check_power, energy_of


@record
class EconomicsResult(Result):
    """Answer of `EconomicsSolver`: what a fleet costs, bought or rented.

    A field is `None` if it needs a price, a power or a throughput that is not known. A fleet that
    is only rented needs no power figure.
    """

    capex: Quantity | None = quantity("USD")
    """Purchase price of all servers."""
    opex_energy: Quantity | None = quantity("USD")
    """Electricity of the facility."""
    opex_maintenance: Quantity | None = quantity("USD")
    """Repair and support."""
    total_opex: Quantity | None = quantity("USD")
    """Electricity and maintenance."""
    tco: Quantity | None = quantity("USD")
    """Total cost of ownership: the whole purchase price plus operation for this time."""
    capex_share: Quantity | None = quantity("USD")
    """Share of the purchase price for this time: time divided by service life."""
    period_cost: Quantity | None = quantity("USD")
    """Cost of this time: `capex_share` plus `total_opex`."""
    cost_per_device_hour: Quantity | None = quantity("USD/h")
    """`period_cost` per device and hour, to compare with renting."""
    rental_cost: Quantity | None = quantity("USD")
    """Rent of all devices for this time, including everything."""
    cost_per_token: Quantity | None = quantity("USD/Mtoken")
    """`period_cost` per token."""
    rental_cost_per_token: Quantity | None = quantity("USD/Mtoken")
    """`rental_cost` per token."""
    cost_per_input_token: Quantity | None = quantity("USD/Mtoken", zero=True)
    """Cost of a new prompt token: its device time at `cost_per_device_hour`."""
    cost_per_cached_token: Quantity | None = quantity("USD/Mtoken", zero=True)
    """The same for a cached prompt token, to which new ones attend."""
    cost_per_output_token: Quantity | None = quantity("USD/Mtoken", zero=True)
    """The same for a generated token."""
    rental_cost_per_input_token: Quantity | None = quantity("USD/Mtoken", zero=True)
    """Cost of a new prompt token: its device time at the rent."""
    rental_cost_per_cached_token: Quantity | None = quantity("USD/Mtoken", zero=True)
    """The same for a cached prompt token."""
    rental_cost_per_output_token: Quantity | None = quantity("USD/Mtoken", zero=True)
    """The same for a generated token."""
    training_time: Quantity | None = quantity("day")
    """Time of a run over `training_tokens`."""
    training_cost: Quantity | None = quantity("USD")
    """Cost of that run if the fleet is owned."""
    rental_training_cost: Quantity | None = quantity("USD")
    """Cost of that run if the fleet is rented."""
    device_hours: Quantity = quantity("h")
    """Total time of all devices."""
    it_energy: Quantity | None = quantity("kWh")
    """Energy of the servers."""
    total_energy: Quantity | None = quantity("kWh")
    """Energy of the facility: the servers' energy times PUE."""
    it_power: Quantity | None = quantity("kW")
    """Mean power of all servers."""
    device_power: Quantity | None = quantity("W")
    """Mean power of one device."""
    host_power: Quantity | None = quantity("W")
    """Power of one server without its devices."""
    pue: float = number()
    """Power usage effectiveness: facility energy over IT energy."""
    offer_name: str | None
    """The offer that sets the rent, with its date; `None` if a price was given or known."""
    kwh_price_source: str
    """Region of the price of electricity. If the grid has no price, it is the United States."""

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


class EconomicsInputs(RunningInputs):
    """Inputs of the cost of a fleet. NaN means that a price or a rate was not given."""

    kwh_price: Value = default(
        lambda i: first_known(i.datacenter.grid.kwh_price, i.us_grid.kwh_price)
    )
    us_grid: GridProfile = default(lambda i: Infra.Grids.US_Avg)
    """For grids without a price."""
    grid: GridProfile | None
    unit_price: Value = default(lambda i: i.fleet.node.unit_price)
    maintenance_rate: Value = default(lambda i: i.ownership.maintenance_rate)
    rental_offer: RentalOffer | None
    rental_price: Value = default(
        # NaN in the unit of a price per time, like the price of a device's electricity.
        lambda i: (
            math.nan * i.us_grid.kwh_price * i.fleet.node.accelerator.tdp
            if i.rental_offer is None
            else i.rental_offer.price
        )
    )
    token_throughput: Value
    training_tokens: Value
    input_token_time: Value
    cached_token_time: Value
    output_token_time: Value


def fleet_cost(i: EconomicsInputs) -> dict[str, Any]:
    """Return the cost of a fleet over a period, bought or rented."""
    energy, duration = energy_of(i), i.duration_days
    device_hours = i.devices * duration
    tokens = i.token_throughput * duration

    # Bought: the whole price (tco), and its share for this time (period_cost).
    capex = i.fleet.count * i.unit_price
    electricity = i.kwh_price * energy.total_energy
    maintenance = i.maintenance_rate * capex * duration
    operation = electricity + maintenance
    share = f.amortized_cost(capex, duration, i.service_life)
    period_cost = f.ownership_cost(share, operation)
    cost_per_token = period_cost / tokens

    # Rented: the rent includes electricity, maintenance and building.
    rent = i.rental_price * device_hours
    rent_per_token = rent / tokens
    return {
        "capex": capex,
        "opex_energy": electricity,
        "opex_maintenance": maintenance,
        "total_opex": operation,
        "tco": f.ownership_cost(capex, operation),
        "capex_share": share,
        "period_cost": period_cost,
        "cost_per_device_hour": period_cost / device_hours,
        "rental_cost": rent,
        "cost_per_token": cost_per_token,
        "rental_cost_per_token": rent_per_token,
        **_token_costs(i, period_cost / device_hours),
        "training_time": i.training_tokens / i.token_throughput,
        "training_cost": i.training_tokens * cost_per_token,
        "rental_training_cost": i.training_tokens * rent_per_token,
        "device_hours": device_hours,
        **vars(energy),
    }


def _token_costs(i: EconomicsInputs, owned: Value) -> dict[str, Value]:
    """Return the cost of each kind of token, for an owned and for a rented device's time."""
    return {
        "cost_per_input_token": owned * i.input_token_time,
        "cost_per_cached_token": owned * i.cached_token_time,
        "cost_per_output_token": owned * i.output_token_time,
        "rental_cost_per_input_token": i.rental_price * i.input_token_time,
        "rental_cost_per_cached_token": i.rental_price * i.cached_token_time,
        "rental_cost_per_output_token": i.rental_price * i.output_token_time,
    }


class EconomicsSolver(Solver[EconomicsInputs, EconomicsResult]):
    """What does a fleet cost, bought or rented, and what does a token cost?

    Bought: servers, electricity and maintenance. Rented: a price per device and hour. Network,
    building, staff, capital and resale are not counted.
    """

    inputs = EconomicsInputs
    result = EconomicsResult

    @classmethod
    def solve(
        cls,
        *,
        fleet: Annotated[Fleet, Noun(hint="Systems.Clusters.Research_256")],
        duration_days: Annotated[float | Quantity, Amount(unit="day", plain=True)],
        kwh_price: Annotated[
            float | Quantity | None, Amount(unit="USD/kWh", plain=True, zero=True)
        ] = None,
        datacenter: Annotated[
            Datacenter | GridProfile | None, Noun(hint="Infra.Hyperscale_US")
        ] = None,
        grid: Annotated[GridProfile | None, Noun(hint="Infra.US_Avg")] = None,
        utilization: Annotated[float | None, Portion()] = None,
        host_power: Annotated[Quantity | None, Amount(unit="W", zero=True)] = None,
        unit_price: Annotated[
            float | Quantity | None, Amount(unit="USD", plain=True, zero=True)
        ] = None,
        maintenance_rate: Annotated[
            float | Quantity | None, Amount(unit="1/year", plain=True, zero=True)
        ] = None,
        service_life: Annotated[Quantity | None, Amount(unit="year")] = None,
        rental_price: Annotated[
            float | Quantity | None, Amount(unit="USD/h", plain=True, zero=True)
        ] = None,
        rental_offer: Annotated[RentalOffer | None, Noun(hint="Systems.Lambda_H100")] = None,
        token_throughput: Annotated[float | Quantity | None, Amount(unit="1/s", plain=True)] = None,
        training_tokens: Annotated[float | None, Amount(unit="token", plain=True)] = None,
        input_token_time: Annotated[Quantity | None, Amount(unit="us", zero=True)] = None,
        cached_token_time: Annotated[Quantity | None, Amount(unit="us", zero=True)] = None,
        output_token_time: Annotated[Quantity | None, Amount(unit="us", zero=True)] = None,
    ) -> EconomicsResult:
        """Sum up the cost of the fleet over a period.

        Parameters
        ----------
        fleet
            The servers. The network between them is not counted.
        duration_days
            Time in days, or a quantity of time.
        kwh_price
            Price of electricity in USD per kWh. `None` takes the grid's price for large industrial
            consumers or, if that is not known, the price in the United States
            (`kwh_price_source`).
        datacenter
            The facility, for its PUE.
        grid
            Region that sets a typical PUE if no `datacenter` is given. `None` takes the United
            States.
        utilization
            Position of the devices' power between idle (0) and design power (1): a guess, or the
            `power_utilization` of a training step or a serving engine. `None` takes 1.
        host_power
            Power of one server without its devices. `None` takes the server's rated power less that
            of its devices, times the share that was measured.
        unit_price
            Price of one server with its devices, in USD; `None` takes that of `fleet.node`.
        maintenance_rate
            Repair and support per year, as a share of the purchase price; `None` takes 5%.
        service_life
            Time over which the purchase price is spread; `None` takes three years.
        rental_price
            Rent of one device, in USD per hour; `None` takes that of `rental_offer`.
        rental_offer
            A dated row of `Systems.Offers`, or one of your own. `None` takes the lower median of
            the on-demand offers for the device, if no other price is given.
        token_throughput
            Tokens that the whole fleet processes, per second.
        training_tokens
            Tokens of a training run to price; needs `token_throughput`.
        input_token_time, cached_token_time, output_token_time
            Device time per prompt token that is new, or cached, and per generated token, such as
            those of `ServingSolver`'s result, for a price of each.

        Returns
        -------
        EconomicsResult
            Costs; `None` where a price or a throughput was not given.

        Raises
        ------
        ConfigError
            If an argument is out of range, if neither a purchase price nor a rent is known, if the
            offer is for another device, or if the power of the servers is not known.

        Notes
        -----
        `tco` includes the whole purchase price, however short the period. `period_cost` is the cost
        of the period itself, with its share of the price; costs per hour and per token are based on
        it.

        Examples
        --------
        >>> from mlsysim import EconomicsSolver, Systems
        >>> r = EconomicsSolver.solve(
        ...     fleet=Systems.Clusters.Research_256, duration_days=365, kwh_price=0.08
        ... )
        >>> print(f"{r.capex_usd:,.0f} {r.total_opex_usd:,.0f} {r.tco_usd:,.0f}")
        8,640,000 695,618 9,335,618
        >>> print(f"{r.cost_per_device_hour:.2f}")
        1.59 USD/h
        """
        return cls._answer(locals())

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> EconomicsInputs:
        """Check every argument, and that enough prices are known."""
        inputs = super().admit(given)
        place = inputs.datacenter or inputs.grid or Infra.Grids.US_Avg
        inputs = _priced(inputs)
        bought = inputs.gives("unit_price") or inputs.fleet.node.unit_price is not None
        if bought or not (inputs.gives("rental_price") or inputs.rental_offer):
            check_power(inputs)  # the rent includes electricity
        if inputs.training_tokens is not None and inputs.token_throughput is None:
            raise ConfigError(
                "training_tokens needs the rate at which the fleet processes them: pass "
                "token_throughput=, such as token_throughput of DistributedSolver's result",
                argument="training_tokens",
            )
        return inputs.but(datacenter=as_datacenter(place), grid=None)

    @classmethod
    def model(cls, inputs: EconomicsInputs) -> Model[EconomicsInputs]:
        """Return the only model."""
        return fleet_cost

    @classmethod
    def rest(
        cls, values: Mapping[str, Any], inputs: EconomicsInputs
    ) -> dict[str, Callable[[], Any]]:
        """Name the offer, and the region of the price of electricity."""
        return {
            "offer_name": lambda: _offer_name(inputs),
            "kwh_price_source": lambda: _kwh_price_source(inputs),
        }


def _offer_name(inputs: EconomicsInputs) -> str | None:
    offer = None if inputs.gives("rental_price") else inputs.rental_offer
    return None if offer is None else f"{offer.name}, {offer.date}"


def _kwh_price_source(inputs: EconomicsInputs) -> str:
    if inputs.gives("kwh_price"):
        return "kwh_price, as given"
    grid = inputs.datacenter.grid
    if grid.kwh_price is not None:
        return grid.name
    return f"{inputs.us_grid.name} (the price of {grid.name} is not known: pass kwh_price)"


def _priced(inputs: EconomicsInputs) -> EconomicsInputs:
    """Return the inputs with an offer if no price is given or known."""
    node, offer = inputs.fleet.node, inputs.rental_offer
    if offer is not None and offer.accelerator.name != node.accelerator.name:
        raise ConfigError(
            f"rental_offer = {offer.name} is for {offer.accelerator.name}, and the fleet has "
            f"{node.accelerator.name}: choose an offer for that, or pass rental_price",
            argument="rental_offer",
        )
    given = offer is not None or inputs.gives("unit_price") or inputs.gives("rental_price")
    if given or node.unit_price is not None:
        return inputs
    usual = usual_offer(node.accelerator)
    if usual is not None:
        return inputs.but(rental_offer=usual)
    device = node.accelerator.unit_price
    hint = (
        ""
        if device is None
        else f" (its {node.accelerators_per_node} devices alone cost "
        f"{format_number(device * node.accelerators_per_node)})"
    )
    power = "" if node.power is not None else ", with host_power, which is not known either,"
    raise ConfigError(
        f"unit_price is missing: the price of {node.name} is not known{hint}, and Systems.Offers "
        f"has no price on demand of {node.accelerator.name}; pass "
        f'unit_price=Q_(..., "USD") for one server with its devices{power} or rental_price='
        'Q_(..., "USD/h") for one device',
        argument="unit_price",
    )
