"""Operations: power, cost, embodied carbon and failures of fleets.

The defaults of the solvers for sustainability, economics and reliability.
"""

from mlsysim.core.fields import number, quantity, record
from mlsysim.core.types import Entry
from mlsysim.core.units import Q_, Quantity
from mlsysim.registry.sources import operations as src

__all__ = [
    "EMBODIED_CARBON",
    "INTERRUPTIONS",
    "OWNERSHIP",
    "POWER_DRAW",
    "RECOVERY",
    "EmbodiedCarbon",
    "FailureRecord",
    "Ownership",
    "PowerDraw",
    "Recovery",
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
        Power of a server without its devices, as a share of the part of its rating that is not
        for devices.
    """

    utilization: float = number(zero=True, most=1)
    idle_share: float = number(zero=True, most=1)
    host_share: float = number(zero=True, most=1)


@record
class EmbodiedCarbon(Entry):
    """Greenhouse gas of making the hardware.

    Attributes
    ----------
    device : Quantity
        CO2 equivalent of one device.
    host : Quantity
        CO2 equivalent of a server without its devices.
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
    kwh_price : Quantity
        Price of electricity.
    """

    service_life: Quantity = quantity("year")
    maintenance_rate: Quantity = quantity("1/year", zero=True)
    kwh_price: Quantity = quantity("USD/kWh", zero=True)


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
        Time from the interruption until training goes on: detection, repair, loading.
    storage_bandwidth : Quantity
        Rate at which storage takes checkpoints, per device of the job.
    """

    restart_time: Quantity = quantity("minute", zero=True)
    storage_bandwidth: Quantity = quantity("MB/s")


POWER_DRAW = PowerDraw(
    name="Power draw",
    source=src.MODEL_CARDS,
    field_sources={"idle_share": src.IDLE_POWER, "host_share": src.NODE_POWER},
    estimated=frozenset({"utilization", "idle_share", "host_share"}),
    utilization=1.0,
    idle_share=0.1,
    host_share=0.61,
)
"""Devices at their design power, and a host as measured on an H100 server."""

EMBODIED_CARBON = EmbodiedCarbon(
    name="Embodied carbon",
    source=src.HGX_H100_CARBON,
    field_sources={"host": src.ECOLOGITS},
    estimated=frozenset({"device", "host"}),
    device=Q_(164, "kg"),
    host=Q_(3000, "kg"),
)
"""A server with eight H100; we use the same values for all others, which have no figures."""

OWNERSHIP = Ownership(
    name="Ownership",
    source=src.ECOLOGITS,
    field_sources={"maintenance_rate": src.MAINTENANCE, "kwh_price": src.EIA_2023},
    estimated=frozenset({"service_life", "maintenance_rate", "kwh_price"}),
    service_life=Q_(5, "year"),
    maintenance_rate=Q_(0.05, "1/year"),
    kwh_price=Q_(0.0806, "USD/kWh"),
)
"""Round industry figures for the United States."""

INTERRUPTIONS = FailureRecord(
    name="Llama 3 405B",
    source=src.LLAMA3,
    devices=16_384,
    duration=Q_(54, "day"),
    interruptions=419,
)
"""The largest run with published interruptions: one per 3.1 hours on 16,384 H100."""

RECOVERY = Recovery(
    name="Recovery",
    source=src.RESEARCH_CLUSTERS,
    field_sources={"storage_bandwidth": src.LLAMA3_STORAGE},
    estimated=frozenset({"restart_time", "storage_bandwidth"}),
    restart_time=Q_(10, "minute"),
    storage_bandwidth=Q_(122, "MB/s"),
)
"""Restart of a large job, and the storage of one: 2 TB/s for 16,384 devices."""
