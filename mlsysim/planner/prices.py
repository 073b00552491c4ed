"""Prices of devices, and of the fleets of a search: one basis for all, rent or ownership."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import si_number
from mlsysim.core.types import Accelerator, Fleet
from mlsysim.core.units import Q_, format_number, si_factor
from mlsysim.registry.operations import on_demand_offers, usual_offer
from mlsysim.solvers import EconomicsSolver


@dataclass(frozen=True)
class Price:
    """Price of a fleet.

    Attributes
    ----------
    arguments : Mapping[str, object]
        The price as `EconomicsSolver` takes it; empty if it is that of the registry's server.
    rented : bool
        Whether the devices are rented rather than owned.
    amount : str
        The price in words, such as "6.03 USD/h".
    source : str
        Where it comes from: the name of the argument, or an offer with its date.
    """

    arguments: Mapping[str, Any]
    rented: bool
    amount: str
    source: str

    @property
    def column(self) -> str:
        """Field of `EconomicsResult` with the cost of a time."""
        return "rental_cost" if self.rented else "period_cost"


def prices_of(fleets: Sequence[Fleet], *, unit_price: Any, rental_price: Any) -> dict[str, Price]:
    """Return the price of each fleet by its name, all rented or all owned.

    A rent that is given comes first, then a purchase price that is given, then the registry's
    purchase prices, and then its offers, if all fleets have them.
    """
    for name, value in (("rental_price", rental_price), ("unit_price", unit_price)):
        if value is None:
            continue
        unit = "USD/h" if name == "rental_price" else "USD per server"
        return {
            fleet: Price({name: price}, name == "rental_price", f"{price:,.10g} {unit}", name)
            for fleet, price in _by_fleet(name, value, fleets).items()
        }
    servers = {fleet.name: fleet.node.unit_price for fleet in fleets}
    if None not in servers.values():
        return {
            fleet: Price({}, False, f"{format_number(price)} per server", "price of the server")
            for fleet, price in servers.items()
        }
    offers = {fleet.name: _offered(fleet.node.accelerator) for fleet in fleets}
    known = {name: price for name, price in offers.items() if price is not None}
    if len(known) == len(fleets):
        return known
    lacking = [fleet for fleet in fleets if fleet.name not in known]
    devices = ", ".join(dict.fromkeys(fleet.node.accelerator.name for fleet in lacking))
    owned = [fleet.name for fleet in lacking if fleet.node.unit_price is not None]
    only = (
        f"; {', '.join(map(shown, owned))} has a purchase price, which is not compared with rents"
        if owned
        else ""
    )
    pairs = ", ".join(f"{fleet.name!r}: ..." for fleet in fleets)
    example = "rental_price=2.5" if len(fleets) == 1 else f"rental_price={{{pairs}}}"
    raise ConfigError(
        f"rental_price is missing: no rental offer of {devices} is known, and the servers of the "
        f"fleets do not all have a purchase price{only}; give the rent of a device in USD per "
        f"hour, as in {example}, or the price of a server (unit_price)",
        argument="rental_price",
    )


def _offered(device: Accelerator) -> Price | None:
    """Return the usual on-demand offer for a device, if there is one, and its rank among all."""
    offers, usual = on_demand_offers(device), usual_offer(device)
    if usual is None:
        return None
    rents = [format_number(offer.price.to("USD/h").magnitude, 3) for offer in offers]
    if len(offers) == 1:
        rank = "the only on-demand offer"
    elif len(offers) == 2:
        rank = f"the cheaper of {' and '.join(rents)} on demand"
    else:
        median = "median" if len(offers) % 2 else "lower median"
        rank = f"{median} of {len(offers)} on-demand offers, {rents[0]} to {rents[-1]}"
    source = f"{rank}: {usual.name}, {usual.date}"
    amount = f"{usual.price.to('USD/h').magnitude:,.10g} USD/h"
    return Price({"rental_offer": usual}, True, amount, source)


def _by_fleet(name: str, value: Any, fleets: Sequence[Fleet]) -> dict[str, float]:
    """Return a price in dollars for each fleet: one for all, one each in order, or by name."""
    names = [fleet.name for fleet in fleets]
    if isinstance(value, Mapping):
        devices = [fleet.node.accelerator.name for fleet in fleets]
        strange = [key for key in value if key not in (*names, *devices)]
        missing = [
            each
            for each, device in zip(names, devices, strict=True)
            if each not in value and device not in value
        ]
        if strange or missing:
            fault = (
                f"has {shown(strange[0])}, which is neither a fleet of the search nor its device"
                if strange
                else f"has no price for {', '.join(map(shown, missing))}"
            )
            known = ", ".join(map(shown, dict.fromkeys((*names, *devices))))
            raise ConfigError(f"{name} {fault}: give a price for {known}", argument=name)
        prices = {
            each: value[each] if each in value else value[device]
            for each, device in zip(names, devices, strict=True)
        }
    elif isinstance(value, (list, tuple)):
        if len(value) != len(names):
            raise ConfigError(
                f"{name} has {len(value)} prices for {len(names)} fleets: give one price, one for "
                "each fleet in their order, or a mapping by name",
                argument=name,
            )
        prices = dict(zip(names, value, strict=True))
    else:
        prices = dict.fromkeys(names, value)
    kind = EconomicsSolver.parameters[name]
    per_unit = si_factor("USD/h" if name == "rental_price" else "USD")
    dollars = {fleet: kind.admit(name, price) / per_unit for fleet, price in prices.items()}
    if name == "rental_price" and 0 in dollars.values():
        raise ConfigError(
            "rental_price = 0 makes every plan free: give a price above zero, or leave it out to "
            "count the cost of owning",
            argument=name,
        )
    return dollars


def price_of(device: Accelerator, prices: Any) -> float:
    """Return the price of a device in USD per second; NaN if it is unknown."""
    if prices is None:
        offer = usual_offer(device)
        return math.nan if offer is None else offer.si("price")
    if isinstance(prices, Mapping):
        if device.name not in prices:
            return math.nan
        prices = prices[device.name]
    return si_number(prices, "rental_price", "rental_price", {"unit": "USD/s", "zero": False})


def price_words(device: Accelerator, prices: Any) -> str:
    """Return the price of a device and where it comes from, such as an offer and its date."""
    if prices is not None and not math.isnan(price := price_of(device, prices)):
        return f"{format_number(Q_(price, 'USD/s').to('USD/h'))}, as given"
    offer = _offered(device) if prices is None else None
    return "unknown: give a rental_price" if offer is None else f"{offer.amount} ({offer.source})"
