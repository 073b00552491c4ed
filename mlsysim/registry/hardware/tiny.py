"""Tiny: microcontrollers, with on-chip SRAM in binary kilobytes."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Compute, Memory
from mlsysim.core.units import Q_
from mlsysim.registry.sources import hardware as src


class Tiny(Catalog):
    """Microcontrollers."""

    ESP32_S3 = Accelerator(
        name="Espressif ESP32-S3",
        release_year=2021,
        compute=Compute(fp32=Q_(0.96, "GFLOP/s"), int8=Q_(15.36, "GOPS")),
        memory=Memory(capacity=Q_(512, "KiB"), bandwidth=Q_(7.68, "GB/s")),
        tdp=Q_(0.356, "W"),
        source=src.ESP32_S3_BOARD,
        field_sources={
            "release_year": src.ASSUMPTION,
            "compute": src.ASSUMPTION,
            "memory.bandwidth": src.ASSUMPTION,
            "tdp": src.ESP32_S3_DATASHEET,
        },
        estimated=frozenset({"compute", "memory.bandwidth", "release_year"}),
    )
    """Two cores at 240 MHz. Peak by counting: 16 int8 products, or one fp32 product with its sum,
    or 16 bytes per clock and core. No kernel sustains all of them at once. Radio off."""

    Himax_WE_I_Plus = Accelerator(
        name="Himax WE-I Plus (HX6537-A)",
        release_year=2020,
        compute=Compute(int8=Q_(1.6, "GOPS")),
        memory=Memory(capacity=Q_(2, "MiB"), bandwidth=Q_(3.2, "GB/s")),
        tdp=Q_(43.6, "mW"),
        source=src.HIMAX_COURSE,
        field_sources={
            "release_year": src.ASSUMPTION,
            "compute": src.ASSUMPTION,
            "memory.bandwidth": src.ASSUMPTION,
            "tdp": src.ARC_POWER,
        },
        estimated=frozenset({"compute", "memory.bandwidth", "release_year", "tdp"}),
    )
    """One signal processor at 400 MHz. Peak by counting: two int8 products and eight bytes per
    clock.
    """
