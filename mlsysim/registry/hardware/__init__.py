"""Hardware: devices from data center GPUs to microcontrollers, tier by tier.

Rates are dense and those of the fastest unit for the format: `fp64` is the tensor-core rate if
there is one. Link rates are per direction. Capacities are as stated by the vendor; a driver may
report a few percent more or less.
"""

from mlsysim.registry.hardware import cloud, edge, mobile, tiny, workstation

__all__ = ["Hardware"]


class Hardware(cloud.Cloud, workstation.Workstation, mobile.Mobile, edge.Edge, tiny.Tiny):
    """All devices: `Hardware.H100` and `Hardware.Cloud.H100` are the same object."""

    Cloud = cloud.Cloud
    Workstation = workstation.Workstation
    Mobile = mobile.Mobile
    Edge = edge.Edge
    Tiny = tiny.Tiny
