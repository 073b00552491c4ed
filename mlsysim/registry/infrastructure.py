"""Infrastructure: power grids, racks and data centers."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Datacenter, Rack, cite
from mlsysim.core.units import Q_
from mlsysim.registry.catalogs import Grids

__all__ = ["Infra"]


class Racks(Catalog):
    """Racks by cooling."""

    Air_Cooled = Rack(
        name="Traditional, air-cooled",
        source=cite("rack_density"),
        field_sources={"pue": cite("uptime_2025")},
        power=Q_(10, "kW"),
        cooling="air",
        pue=1.54,
    )
    """The rack for which most facilities were built; not enough for one DGX H100."""

    Liquid_Cooled = Rack(
        name="AI, liquid-cooled",
        source=cite("nvl72_rack"),
        field_sources={"pue": cite("liquid_cooling")},
        estimated=frozenset({"pue"}),
        power=Q_(120, "kW"),
        cooling="liquid",
        pue=1.15,
    )
    """A rack of 72 GPUs with cold plates."""


class Datacenters(Catalog):
    """Facilities on their grids."""

    Hyperscale_US = Datacenter(
        name="Hyperscale, United States",
        source=cite("meta_datacenters"),
        grid=Grids.US_Avg,
        pue=1.09,
        wue=Q_(0.26, "L/kWh"),
    )
    """Facilities like Meta's, on the average grid of the United States."""

    Hyperscale_Quebec = Datacenter(
        name="Hyperscale, Québec",
        source=cite("google_pue"),
        estimated=frozenset({"pue", "wue"}),
        grid=Grids.Quebec,
        pue=1.09,
        wue=Q_(0.99, "L/kWh"),
    )
    """The mean of Google's facilities worldwide, on hydropower: little carbon, but much water.
    Google publishes no figures for Québec, where a cold climate may need less water."""

    Nordic_Free_Cooling = Datacenter(
        name="Nordic, free cooling",
        source=cite("microsoft_sweden"),
        field_sources={"wue": cite("microsoft_sweden_water")},
        estimated=frozenset({"pue", "wue"}),
        grid=Grids.Norway,
        pue=1.16,
        wue=Q_(0.09, "L/kWh"),
    )
    """Facilities like Microsoft's in Sweden, on Norway's grid. The PUE is a design value at full
    load; annual means are usually worse."""

    Colocation_Poland = Datacenter(
        name="Colocation, Poland",
        source=cite("uptime_2025"),
        field_sources={"wue": cite("lbnl_2024")},
        estimated=frozenset({"pue", "wue"}),
        grid=Grids.Poland,
        pue=1.54,
        wue=Q_(0.36, "L/kWh"),
    )
    """A facility of average efficiency on a coal grid."""


class Infra(Grids, Racks, Datacenters):
    """All infrastructure, by name and by kind."""

    Grids = Grids
    Racks = Racks
    Datacenters = Datacenters
