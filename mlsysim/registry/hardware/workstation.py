"""Workstation: machines for one developer."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Compute, Memory
from mlsysim.core.units import Q_
from mlsysim.registry.sources import apple
from mlsysim.registry.sources import hardware as src


class Workstation(Catalog):
    """Machines for one developer."""

    MacBook_M3_Max = Accelerator(
        name="Apple MacBook Pro M3 Max 128GB",
        release_year=2023,
        compute=Compute(
            fp32=Q_(14.2, "TFLOP/s"),
            fp16=Q_(14.2, "TFLOP/s"),
            bf16=Q_(14.2, "TFLOP/s"),
        ),
        memory=Memory(capacity=Q_(128, "GB"), bandwidth=Q_(400, "GB/s")),
        tdp=Q_(90, "W"),
        unit_price=Q_(5000, "USD"),
        source=apple.M3_MAX_PAGE,
        field_sources={"memory.bandwidth": apple.M3_MAX_BANDWIDTH},
        estimated=frozenset({"compute", "tdp", "unit_price"}),
    )
    """The 40-core GPU of a laptop with memory shared by CPU and GPU. Apple publishes no rate: 40
    cores x 128 lanes x 2 at about 1.4 GHz, in 16 bits as in 32. The Neural Engine is not counted.
    """

    M1_Max = Accelerator(
        name="Apple M1 Max 64GB",
        release_year=2021,
        compute=Compute(fp32=Q_(10.4, "TFLOP/s"), fp16=Q_(10.4, "TFLOP/s")),
        memory=Memory(capacity=Q_(64, "GB"), bandwidth=Q_(400, "GB/s")),
        tdp=Q_(90, "W"),
        source=apple.M1_MAX,
        field_sources={
            "release_year": src.ASSUMPTION,
            "compute.fp16": src.ASSUMPTION,
            "tdp": src.ASSUMPTION,
        },
        estimated=frozenset({"compute.fp16", "release_year", "tdp"}),
    )
    """32-core GPU, in 16 bits as fast as in 32. Power assumed: as the M3 Max."""

    M2_Max = Accelerator(
        name="Apple M2 Max 96GB",
        release_year=2023,
        compute=Compute(
            fp32=Q_(13.6, "TFLOP/s"), fp16=Q_(13.6, "TFLOP/s"), bf16=Q_(13.6, "TFLOP/s")
        ),
        memory=Memory(capacity=Q_(96, "GB"), bandwidth=Q_(400, "GB/s")),
        tdp=Q_(90, "W"),
        source=apple.M2_MAX,
        field_sources={
            "compute": apple.APPLE_CLOCKS,
            "tdp": src.ASSUMPTION,
        },
        estimated=frozenset({"compute", "tdp"}),
    )
    """38 cores x 128 lanes x 2 at 1.398 GHz. Power assumed: as the M3 Max."""

    M2_Ultra = Accelerator(
        name="Apple M2 Ultra 192GB",
        release_year=2023,
        compute=Compute(
            fp32=Q_(27.2, "TFLOP/s"), fp16=Q_(27.2, "TFLOP/s"), bf16=Q_(27.2, "TFLOP/s")
        ),
        memory=Memory(capacity=Q_(192, "GB"), bandwidth=Q_(800, "GB/s")),
        tdp=Q_(180, "W"),
        source=apple.M2_ULTRA_M4_MAX,
        field_sources={
            "release_year": src.ASSUMPTION,
            "compute": apple.APPLE_CLOCKS,
            "tdp": src.ASSUMPTION,
        },
        estimated=frozenset({"compute", "release_year", "tdp"}),
    )
    """Two M2 Max in one package: 76 cores. Power assumed: twice that of one."""

    M4_Max = Accelerator(
        name="Apple M4 Max 128GB",
        release_year=2024,
        compute=Compute(
            fp32=Q_(17.2, "TFLOP/s"), fp16=Q_(17.2, "TFLOP/s"), bf16=Q_(17.2, "TFLOP/s")
        ),
        memory=Memory(capacity=Q_(128, "GB"), bandwidth=Q_(546, "GB/s")),
        tdp=Q_(90, "W"),
        source=apple.M2_ULTRA_M4_MAX,
        field_sources={
            "release_year": apple.M3_MAX_BANDWIDTH,
            "compute": apple.APPLE_CLOCKS,
            "tdp": src.ASSUMPTION,
        },
        estimated=frozenset({"compute", "tdp"}),
    )
    """40 cores x 128 lanes x 2 at 1.678 GHz. Power assumed: as the M3 Max."""
