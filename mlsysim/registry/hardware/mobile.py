"""Mobile: the neural engines of phones.

Phone makers state one figure in "TOPS" without a number format. It is listed as int8, and half of
it as an estimate for fp16.
"""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Memory, cite
from mlsysim.core.units import Q_
from mlsysim.registry.hardware.rates import rates


class Mobile(Catalog):
    """The neural engines of phones."""

    iPhone_15_Pro = Accelerator(  # noqa: N815 - the maker writes it so
        name="Apple iPhone 15 Pro (A17 Pro)",
        release_year=2023,
        compute=rates(fp16=17.5, int8=35),
        memory=Memory(capacity=Q_(8, "GiB"), bandwidth=Q_(51.2, "GB/s")),
        tdp=Q_(5, "W"),
        unit_price=Q_(999, "USD"),
        source=cite("a17_pro"),
        field_sources={
            "release_year": cite("iphone_15_pro"),
            "compute.fp16": cite("assumption"),
            "memory.bandwidth": cite("assumption"),
            "tdp": cite("assumption"),
            "unit_price": cite("iphone_price"),
        },
        estimated=frozenset({"compute.fp16", "memory.bandwidth", "tdp"}),
    )
    """16-core Neural Engine. Bandwidth assumed: 64 bits of LPDDR5 at 6,400 MT/s. Power assumed:
    sustained dissipation of a phone over minutes, not the chip's peak."""

    Pixel_8 = Accelerator(
        name="Google Pixel 8 (Tensor G3)",
        release_year=2023,
        compute=rates(fp16=7.5, int8=15),
        memory=Memory(capacity=Q_(8, "GiB"), bandwidth=Q_(68.3, "GB/s")),
        tdp=Q_(5, "W"),
        source=cite("assumption"),
        field_sources={
            "release_year": cite("pixel_8_memory"),
            "memory.capacity": cite("pixel_8_memory"),
        },
        estimated=frozenset({"compute", "memory.bandwidth", "tdp"}),
    )
    """Google publishes no rate: 15 TOPS is an order of magnitude. Bandwidth assumed: 64 bits of
    LPDDR5X at 8,533 MT/s."""

    Snapdragon_8_Gen_3 = Accelerator(
        name="Qualcomm Snapdragon 8 Gen 3",
        release_year=2023,
        compute=rates(fp16=22.5, int8=45),
        memory=Memory(capacity=Q_(12, "GiB"), bandwidth=Q_(76.8, "GB/s")),
        tdp=Q_(5, "W"),
        source=cite("snapdragon_memory"),
        field_sources={
            "release_year": cite("snapdragon_8_gen_3"),
            "compute.fp16": cite("assumption"),
            "compute.int8": cite("snapdragon_npu"),
            "memory.capacity": cite("assumption"),
            "tdp": cite("assumption"),
        },
        estimated=frozenset({"compute", "memory.capacity", "tdp"}),
    )
    """The Hexagon neural processor. The press reports 45 TOPS; Qualcomm publishes no figure. Phones
    with this chip commonly have 12 GB."""
