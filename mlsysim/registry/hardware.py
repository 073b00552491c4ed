"""Hardware: devices from data center GPUs to microcontrollers, tier by tier.

Rates are dense and those of the fastest unit for the format: `fp64` is the tensor-core rate if
there is one. Link rates are per direction. Capacities are as stated by the vendor; a driver may
report a few percent more or less.

The devices are in `mlsysim/registry/data/hardware`, in one file per maker. `hardware.pyi` names
them for editors and type checkers: `python -m tools.stubs` writes it.
"""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator
from mlsysim.registry.tables import Sections, record_of

__all__ = ["Cloud", "Edge", "Hardware", "Mobile", "Tiny", "Workstation"]

_MAKERS = (
    "nvidia",
    "apple",
    "amd",
    "google",
    "huawei",
    "amazon",
    "intel",
    "qualcomm",
    "microcontrollers",
    "generic",
)
"""Files of devices, in the order of the catalog."""
_WORKSTATIONS = """
    MacBook_M3_Max M1_Max M2_Max M2_Ultra M4_Max RTX_3090 RTX_4090 RTX_5090 DGX_Spark
    Strix_Halo M3_Ultra M5 M5_Max GTX_1050_Ti RTX_2080 RTX_3060 RTX_3080 RTX_3070 RTX_4080
    RTX_4070 RTX_5070 RX_7900_XT RTX_2070_Super RTX_3080_Ti RTX_3090_Ti RTX_4070_Super
    RTX_5080 RTX_5880_Ada RTX_A4000 RTX_A5000 RTX_A6000 RTX_4000_Ada RTX_5000_Ada
    RTX_6000_Ada RTX_PRO_6000_Workstation RTX_PRO_6000_Max_Q Arc_Pro_B60 M1 Arc_140V
"""
"""Workstations in the order of the catalog; all others follow, maker by maker."""
_devices = Sections(
    [f"hardware/{maker}.toml" for maker in _MAKERS],
    lambda where, content: record_of(where, content, Accelerator),
)


class Cloud(Catalog, rows=_devices("Cloud")):
    """Data center accelerators."""


class Workstation(Catalog, rows=_devices("Workstation", *_WORKSTATIONS.split())):
    """Machines for one developer."""


class Mobile(Catalog, rows=_devices("Mobile")):
    """The neural engines of phones.

    Phone makers state one figure in "TOPS" without a number format. It is listed as int8, and half
    of it as an estimate for fp16.
    """


class Edge(Catalog, rows=_devices("Edge")):
    """Modules and boxes next to a sensor."""


class Tiny(Catalog, rows=_devices("Tiny")):
    """Microcontrollers, with on-chip SRAM in binary kilobytes."""


class Hardware(Cloud, Workstation, Mobile, Edge, Tiny):
    """All devices: `Hardware.H100` and `Hardware.Cloud.H100` are the same object."""

    Cloud = Cloud
    Workstation = Workstation
    Mobile = Mobile
    Edge = Edge
    Tiny = Tiny
