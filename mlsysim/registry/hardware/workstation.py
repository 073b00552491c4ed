"""Workstation: machines that one person develops on."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Compute, Memory
from mlsysim.core.units import Q_
from mlsysim.registry.sources import hardware as src


class Workstation(Catalog):
    """Machines that one person develops on."""

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
        source=src.M3_MAX_PAGE,
        field_sources={"memory.bandwidth": src.M3_MAX_BANDWIDTH},
        estimated=frozenset({"compute", "tdp", "unit_price"}),
    )
    """The 40-core GPU of a laptop with memory shared by CPU and GPU. Apple publishes no rate: 40
    cores x 128 lanes x 2 at about 1.4 GHz, in 16 bits as in 32. The Neural Engine is not counted.
    """
