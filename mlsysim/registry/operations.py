"""Operations: power, cost, embodied carbon and failures of fleets.

These are the defaults of the solvers for sustainability, economics and reliability.
"""

from mlsysim.core.fields import number, quantity, record
from mlsysim.core.types import Accelerator, Entry, Node, RentalOffer, cite
from mlsysim.core.units import Q_, Quantity
from mlsysim.registry.catalogs import Offers

__all__ = [
    "CHAT_LENGTHS",
    "EMBODIED_BLACKWELL",
    "EMBODIED_CARBON",
    "EMBODIED_TRAY",
    "INTERRUPTIONS",
    "OWNERSHIP",
    "POWER_DRAW",
    "POWER_DRAW_BLACKWELL",
    "RECOVERY",
    "EmbodiedCarbon",
    "FailureRecord",
    "LengthVariation",
    "Ownership",
    "PowerDraw",
    "Recovery",
    "embodied_carbon_for",
    "on_demand_offers",
    "power_draw_for",
    "usual_offer",
]


@record
class PowerDraw(Entry):
    """Shares that give the power of a server from its ratings.

    Attributes
    ----------
    utilization : float
        Position of the devices' power between idle (0) and design power (1).
    idle_share : float
        Power of an idle device, as a share of its design power.
    host_share : float
        Power of a server without its devices, as a share of its rated power less that of its
        devices.
    """

    utilization: float = number(zero=True, most=1)
    idle_share: float = number(zero=True, most=1)
    host_share: float = number(zero=True, most=1)


@record
class EmbodiedCarbon(Entry):
    """Greenhouse gas emissions of making the hardware.

    Attributes
    ----------
    device : Quantity
        CO2 equivalent of one device.
    host : Quantity
        CO2 equivalent of a server, or of a tray of a rack, without its devices.
    """

    device: Quantity = quantity("kg")
    host: Quantity = quantity("kg", zero=True)


@record
class Ownership(Entry):
    """Cost of owning a fleet.

    Attributes
    ----------
    service_life : Quantity
        Time over which the hardware's price and its embodied carbon are spread.
    maintenance_rate : Quantity
        Repair and support per year, as a share of the purchase price.
    """

    service_life: Quantity = quantity("year")
    maintenance_rate: Quantity = quantity("1/year", zero=True)


@record
class FailureRecord(Entry):
    """Interruptions of a published training run.

    Attributes
    ----------
    devices : int
        Devices of the run.
    duration : Quantity
        Time observed.
    interruptions : int
        Unexpected interruptions in that time, whatever their cause.
    """

    devices: int = number(whole=True)
    duration: Quantity = quantity("day")
    interruptions: int = number(whole=True)


@record
class Recovery(Entry):
    """Cost of an interruption in addition to the work since the last checkpoint.

    Attributes
    ----------
    restart_time : Quantity
        Time from the interruption until training resumes: detection, repair, loading.
    storage_bandwidth : Quantity
        Rate at which storage accepts checkpoints, per device of the job.
    """

    restart_time: Quantity = quantity("minute", zero=True)
    storage_bandwidth: Quantity = quantity("MB/s")


@record
class LengthVariation(Entry):
    """How much the lengths of requests vary.

    Attributes
    ----------
    input_variation, output_variation : float
        Standard deviation of the tokens of prompts, and of answers, divided by their mean.
    """

    input_variation: float = number(zero=True)
    output_variation: float = number(zero=True)


POWER_DRAW = PowerDraw(
    name="Power draw",
    source=cite("model_cards"),
    field_sources={"idle_share": cite("idle_power"), "host_share": cite("node_power")},
    estimated=frozenset({"utilization", "idle_share", "host_share"}),
    utilization=1.0,
    idle_share=0.1,
    host_share=0.61,
)
"""Devices at their design power, and the host share measured on an H100 server."""

POWER_DRAW_BLACKWELL = PowerDraw(
    name="Power draw, Blackwell",
    source=cite("model_cards"),
    field_sources={"idle_share": cite("b200_idle"), "host_share": cite("node_power")},
    estimated=frozenset({"utilization", "idle_share", "host_share"}),
    utilization=1.0,
    idle_share=0.165,
    host_share=0.61,
)
"""The same for Blackwell, which draws more power when idle."""

EMBODIED_CARBON = EmbodiedCarbon(
    name="Embodied carbon",
    source=cite("hgx_h100_carbon"),
    field_sources={"host": cite("ecologits")},
    estimated=frozenset({"device", "host"}),
    device=Q_(164, "kg"),
    host=Q_(5700, "kg"),
)
"""A server with eight H100. The same values are used for all others, which have no published
figures."""

EMBODIED_BLACKWELL = EmbodiedCarbon(
    name="Embodied carbon, Blackwell",
    source=cite("hgx_b200_carbon"),
    field_sources={"host": cite("ecologits")},
    estimated=frozenset({"device", "host"}),
    device=Q_(284, "kg"),
    host=Q_(5700, "kg"),
)
"""A server with eight B200. Its host is assumed to be like that of eight H100."""

EMBODIED_TRAY = EmbodiedCarbon(
    name="Embodied carbon, tray of a rack",
    source=cite("hgx_b200_carbon"),
    field_sources={"host": cite("ecologits")},
    estimated=frozenset({"device", "host"}),
    device=Q_(284, "kg"),
    host=Q_(2850, "kg"),
)
"""A tray with four GPUs and two processors. Its host has about half the memory and flash of a
server for eight GPUs, so half of that server's figure is assumed. The rack's switches and cables
are not counted."""

OWNERSHIP = Ownership(
    name="Ownership",
    source=cite("ecologits_life"),
    field_sources={"maintenance_rate": cite("maintenance")},
    estimated=frozenset({"service_life", "maintenance_rate"}),
    service_life=Q_(3, "year"),
    maintenance_rate=Q_(0.05, "1/year"),
)
"""Round industry figures."""

INTERRUPTIONS = FailureRecord(
    name="Llama 3 405B",
    source=cite("llama3"),
    devices=16_384,
    duration=Q_(54, "day"),
    interruptions=419,
)
"""The largest run with published interruptions: one per 3.1 hours on 16,384 H100."""

RECOVERY = Recovery(
    name="Recovery",
    source=cite("research_clusters"),
    field_sources={"storage_bandwidth": cite("llama3_storage")},
    estimated=frozenset({"restart_time", "storage_bandwidth"}),
    restart_time=Q_(10, "minute"),
    storage_bandwidth=Q_(122, "MB/s"),
)
"""Restart time of a large job, and its storage bandwidth: 2 TB/s for 16,384 devices."""

CHAT_LENGTHS = LengthVariation(
    name="Lengths of conversations",
    source=cite("azure_conversations"),
    input_variation=0.96,
    output_variation=0.77,
)
"""Requests of a chat service, and the default of `Traffic`. Lengths of answers in a coding service
vary by 2.15."""


def power_draw_for(accelerator: Accelerator) -> PowerDraw:
    """Return the shares of a device's generation."""
    return POWER_DRAW_BLACKWELL if accelerator.generation == "blackwell" else POWER_DRAW


def embodied_carbon_for(node: Node) -> EmbodiedCarbon:
    """Return the figures for a server, or for each tray of a rack."""
    if node.accelerator.generation != "blackwell":
        return EMBODIED_CARBON
    return EMBODIED_BLACKWELL if node.devices_per_host is None else EMBODIED_TRAY


def on_demand_offers(accelerator: Accelerator) -> list[RentalOffer]:
    """Return a device's on-demand offers, the cheapest first."""
    offers = [
        row
        for row in Offers
        if isinstance(row, RentalOffer)
        and row.commitment == "on demand"
        and row.accelerator.name == accelerator.name
    ]
    return sorted(offers, key=lambda row: row.si("price"))


def usual_offer(accelerator: Accelerator) -> RentalOffer | None:
    """Return the (lower) median of a device's on-demand offers; `None` if there are none."""
    offers = on_demand_offers(accelerator)
    return offers[(len(offers) - 1) // 2] if offers else None
