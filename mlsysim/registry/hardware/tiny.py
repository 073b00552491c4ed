"""Tiny: microcontrollers, with on-chip SRAM in binary kilobytes."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Compute, Memory, cite
from mlsysim.core.units import Q_


class Tiny(Catalog):
    """Microcontrollers."""

    ESP32_S3 = Accelerator(
        name="Espressif ESP32-S3",
        release_year=2021,
        compute=Compute(fp32=Q_(0.96, "GFLOP/s"), int8=Q_(15.36, "GOPS")),
        memory=Memory(capacity=Q_(512, "KiB"), bandwidth=Q_(7.68, "GB/s")),
        tdp=Q_(0.356, "W"),
        source=cite("esp32_s3_board"),
        field_sources={
            "release_year": cite("assumption"),
            "compute": cite("assumption"),
            "memory.bandwidth": cite("assumption"),
            "tdp": cite("esp32_s3_datasheet"),
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
        source=cite("himax_course"),
        field_sources={
            "release_year": cite("assumption"),
            "compute": cite("assumption"),
            "memory.bandwidth": cite("assumption"),
            "tdp": cite("arc_power"),
        },
        estimated=frozenset({"compute", "memory.bandwidth", "release_year", "tdp"}),
    )
    """One signal processor at 400 MHz. Peak by counting: two int8 products and eight bytes per
    clock.
    """

    STM32L4R5 = Accelerator(
        name="STMicroelectronics STM32L4R5",
        release_year=2017,
        compute=Compute(fp32=Q_(0.24, "GFLOP/s"), int8=Q_(0.48, "GOPS")),
        memory=Memory(capacity=Q_(640, "KiB"), bandwidth=Q_(0.48, "GB/s")),
        tdp=Q_(40.3, "mW"),
        source=cite("mlperf_tiny"),
        field_sources={
            "release_year": cite("assumption"),
            "compute": cite("assumption"),
            "memory.bandwidth": cite("assumption"),
            "memory.capacity": cite("stm32l4r5_board"),
            "tdp": cite("mlperf_tiny_power"),
        },
        estimated=frozenset({"compute", "memory.bandwidth", "release_year"}),
    )
    """A Cortex-M4 at 120 MHz. Peak by counting: two int8 products (packed in 16 bits), or one
    fp32 product with its sum, or four bytes per clock."""

    STM32U575 = Accelerator(
        name="STMicroelectronics STM32U575",
        release_year=2021,
        compute=Compute(fp32=Q_(0.32, "GFLOP/s"), int8=Q_(0.64, "GOPS")),
        memory=Memory(capacity=Q_(786, "KiB"), bandwidth=Q_(0.64, "GB/s")),
        tdp=Q_(23, "mW"),
        source=cite("mlperf_tiny"),
        field_sources={
            "release_year": cite("assumption"),
            "compute": cite("assumption"),
            "memory.bandwidth": cite("assumption"),
            "memory.capacity": cite("stm32u575_board"),
            "tdp": cite("mlperf_tiny_power"),
        },
        estimated=frozenset({"compute", "memory.bandwidth", "release_year"}),
    )
    """A Cortex-M33 at 160 MHz, with the same operations per clock as a Cortex-M4."""

    STM32H7A3 = Accelerator(
        name="STMicroelectronics STM32H7A3",
        release_year=2020,
        compute=Compute(fp32=Q_(0.56, "GFLOP/s"), int8=Q_(1.12, "GOPS")),
        memory=Memory(capacity=Q_(1.4, "MB"), bandwidth=Q_(2.24, "GB/s")),
        tdp=Q_(125, "mW"),
        source=cite("mlperf_tiny"),
        field_sources={
            "release_year": cite("assumption"),
            "compute": cite("assumption"),
            "memory.bandwidth": cite("assumption"),
            "memory.capacity": cite("stm32h7a3_board"),
            "tdp": cite("mlperf_tiny_power"),
        },
        estimated=frozenset({"compute", "memory.bandwidth", "release_year"}),
    )
    """A Cortex-M7 at 280 MHz: two instructions per clock, but still two int8 products. It loads
    eight bytes per clock."""

    STM32F746 = Accelerator(
        name="STMicroelectronics STM32F746",
        release_year=2015,
        compute=Compute(fp32=Q_(0.432, "GFLOP/s"), int8=Q_(0.864, "GOPS")),
        memory=Memory(capacity=Q_(320, "KiB"), bandwidth=Q_(1.728, "GB/s")),
        source=cite("mlperf_tiny"),
        field_sources={
            "release_year": cite("assumption"),
            "compute": cite("assumption"),
            "memory.bandwidth": cite("assumption"),
            "memory.capacity": cite("stm32f746_board"),
        },
        estimated=frozenset({"compute", "memory.bandwidth", "release_year"}),
    )
    """The same core at 216 MHz."""

    STM32G0B1 = Accelerator(
        name="STMicroelectronics STM32G0B1",
        release_year=2020,
        compute=Compute(int8=Q_(0.128, "GOPS")),
        memory=Memory(capacity=Q_(144, "KiB"), bandwidth=Q_(0.256, "GB/s")),
        source=cite("mlperf_tiny"),
        field_sources={
            "release_year": cite("assumption"),
            "compute": cite("assumption"),
            "memory.bandwidth": cite("assumption"),
            "memory.capacity": cite("stm32g0b1_board"),
        },
        estimated=frozenset({"compute", "memory.bandwidth", "release_year"}),
    )
    """A Cortex-M0+ at 64 MHz: one product per clock, and no floating point."""

    PSoC_62 = Accelerator(
        name="Infineon PSoC 62 (CY8C624A)",
        release_year=2018,
        compute=Compute(fp32=Q_(0.3, "GFLOP/s"), int8=Q_(0.6, "GOPS")),
        memory=Memory(capacity=Q_(1, "MiB"), bandwidth=Q_(0.6, "GB/s")),
        source=cite("mlperf_tiny"),
        field_sources={
            "release_year": cite("assumption"),
            "compute": cite("assumption"),
            "memory.bandwidth": cite("assumption"),
            "memory.capacity": cite("psoc62_board"),
        },
        estimated=frozenset({"compute", "memory.bandwidth", "release_year"}),
    )
    """A Cortex-M4 at 150 MHz; the second, slower core is not counted."""

    RA8D1 = Accelerator(
        name="Renesas RA8D1",
        release_year=2023,
        compute=Compute(int8=Q_(7.68, "GOPS")),
        memory=Memory(capacity=Q_(1, "MiB"), bandwidth=Q_(3.84, "GB/s")),
        source=cite("mlperf_tiny"),
        field_sources={
            "release_year": cite("assumption"),
            "compute": cite("assumption"),
            "memory.bandwidth": cite("assumption"),
            "memory.capacity": cite("ra8d1_board"),
        },
        estimated=frozenset({"compute", "memory.bandwidth", "release_year"}),
    )
    """A Cortex-M85 at 480 MHz. Its vector unit computes eight int8 products per clock."""

    RH850_F1KM = Accelerator(
        name="Renesas RH850/F1KM-S4",
        release_year=2018,
        compute=Compute(fp32=Q_(0.48, "GFLOP/s"), int8=Q_(0.48, "GOPS")),
        memory=Memory(capacity=Q_(512, "KiB"), bandwidth=Q_(0.96, "GB/s")),
        source=cite("mlperf_tiny"),
        field_sources={
            "release_year": cite("assumption"),
            "compute": cite("assumption"),
            "memory.bandwidth": cite("assumption"),
            "memory.capacity": cite("assumption"),
        },
        estimated=frozenset({"compute", "memory.bandwidth", "release_year", "memory.capacity"}),
    )
    """An automotive core at 240 MHz without packed products: one product per clock. The size of its
    memory is assumed."""

    NDP120_30MHz = Accelerator(
        name="Syntiant NDP120 at 30.7 MHz",
        release_year=2021,
        compute=Compute(int8=Q_(1.965, "GOPS")),
        memory=Memory(capacity=Q_(1, "MiB"), bandwidth=Q_(0.9824, "GB/s")),
        tdp=Q_(6.41, "mW"),
        source=cite("mlperf_tiny"),
        field_sources={
            "release_year": cite("assumption"),
            "compute": cite("assumption"),
            "memory.bandwidth": cite("assumption"),
            "memory.capacity": cite("assumption"),
            "tdp": cite("mlperf_tiny_power"),
        },
        estimated=frozenset({"compute", "memory.bandwidth", "release_year", "memory.capacity"}),
    )
    """A neural network core at 0.9 V. Peak by counting: 32 int8 products and 32 bytes per clock,
    both assumed, like the size of its memory."""

    NDP120_98MHz = Accelerator(
        name="Syntiant NDP120 at 98.7 MHz",
        release_year=2021,
        compute=Compute(int8=Q_(6.317, "GOPS")),
        memory=Memory(capacity=Q_(1, "MiB"), bandwidth=Q_(3.158, "GB/s")),
        tdp=Q_(25.5, "mW"),
        source=cite("mlperf_tiny"),
        field_sources={
            "release_year": cite("assumption"),
            "compute": cite("assumption"),
            "memory.bandwidth": cite("assumption"),
            "memory.capacity": cite("assumption"),
            "tdp": cite("mlperf_tiny_power"),
        },
        estimated=frozenset({"compute", "memory.bandwidth", "release_year", "memory.capacity"}),
    )
    """The same core at 1.1 V, with four times the power."""
