"""Which rental price a device usually has."""

from mlsysim.core.types import Accelerator, RentalOffer
from mlsysim.registry.catalogs import Offers

__all__ = ["on_demand_offers", "usual_offer"]


def on_demand_offers(accelerator: Accelerator) -> list[RentalOffer]:
    """Return a device's on-demand offers, the cheapest first."""
    found = [
        row
        for row in Offers
        if isinstance(row, RentalOffer)
        and row.commitment == "on demand"
        and row.accelerator.name == accelerator.name
    ]
    return sorted(found, key=lambda row: row.si("price"))


def usual_offer(accelerator: Accelerator) -> RentalOffer | None:
    """Return the (lower) median of a device's on-demand offers; `None` if there are none."""
    offers = on_demand_offers(accelerator)
    return offers[(len(offers) - 1) // 2] if offers else None
