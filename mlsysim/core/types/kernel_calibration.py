"""Constants of single kernels: matrix products on a device, collectives over a kind of link."""

from __future__ import annotations

from mlsysim.core.fields import number, quantity, record
from mlsysim.core.types.source import Entry
from mlsysim.core.units import Quantity

__all__ = ["LinkCalibration", "ProductCalibration"]


@record
class ProductCalibration(Entry):
    """Matrix products of one device in one number format.

    Attributes
    ----------
    precision : str
        The format, as in ``"bf16"``.
    efficiency : float
        Share of the datasheet's dense peak that large products reach.
    memory_efficiency : float
        Share of the memory bandwidth that products with few rows reach.
    overhead : Quantity
        Fixed time of a product, including the conversion of its input in narrow formats.
    """

    precision: str
    efficiency: float = number(most=1)
    memory_efficiency: float = number(most=1)
    overhead: Quantity = quantity("us")


@record
class LinkCalibration(Entry):
    """Collectives of one library within one server, over one generation of links.

    Attributes
    ----------
    link_efficiency : float
        Share of the link's bandwidth that rings and exchanges reach.
    start : Quantity
        Fixed time of a call.
    hop_latency : Quantity
        Time of one step of a ring without data.
    segment_time : Quantity
        Fixed time of one segment of a message.
    switch_efficiency : float or None
        Share of the link's bandwidth that reductions in the switch reach; `None` if the switch
        cannot compute.
    switch_start : Quantity or None
        Fixed time of a call that is reduced in the switch.
    """

    link_efficiency: float = number(most=1)
    start: Quantity = quantity("us")
    hop_latency: Quantity = quantity("us")
    segment_time: Quantity = quantity("us")
    switch_efficiency: float | None = number(default=None, most=1)
    switch_start: Quantity | None = quantity("us", default=None)
