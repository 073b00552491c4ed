"""Edge: modules and boxes next to a sensor."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Memory, cite
from mlsysim.core.units import Q_
from mlsysim.registry.hardware.rates import rates


class Edge(Catalog):
    """Modules and boxes next to a sensor."""

    Jetson_Orin_NX = Accelerator(
        name="NVIDIA Jetson Orin NX 16GB",
        release_year=2023,
        compute=rates(fp32=1.88, fp16=15.0, int8=30.1),
        memory=Memory(capacity=Q_(16, "GiB"), bandwidth=Q_(102, "GB/s")),
        tdp=Q_(25, "W"),
        source=cite("orin_nx_datasheet"),
        field_sources={"release_year": cite("assumption")},
        estimated=frozenset({"release_year"}),
    )
    """GPU only, dense: 32 tensor cores x 1,024 int8 operations x 918 MHz; fp16 at half that. The
    advertised 100 TOPS are sparse: 60 from the GPU and 40 from two fixed-function DLA engines. The
    later "Super" mode takes 40 W and is advertised with 157 TOPS."""

    Jetson_AGX_Orin = Accelerator(
        name="NVIDIA Jetson AGX Orin 64GB",
        release_year=2022,
        compute=rates(fp32=5.3, fp16=42.5, int8=85),
        memory=Memory(capacity=Q_(64, "GiB"), bandwidth=Q_(204.8, "GB/s")),
        tdp=Q_(60, "W"),
        source=cite("agx"),
        field_sources={
            "compute": cite("orin_nx_datasheet"),
            "compute.fp32": cite("assumption"),
            "memory": cite("assumption"),
        },
        estimated=frozenset({"compute.fp32", "memory"}),
    )
    """GPU only, dense: half of its 170 sparse TOPS. The advertised 275 also count two
    fixed-function engines."""

    Jetson_AGX_Thor = Accelerator(
        name="NVIDIA Jetson AGX Thor 128GB",
        release_year=2025,
        compute=rates(fp32=8.1, fp16=259, bf16=259, fp8=517.5, fp4=1035),
        memory=Memory(capacity=Q_(128, "GiB"), bandwidth=Q_(273, "GB/s")),
        tdp=Q_(130, "W"),
        source=cite("thor"),
        field_sources={
            "release_year": cite("agx"),
            "memory": cite("assumption"),
            "compute.fp32": cite("assumption"),
            "compute.fp16": cite("assumption"),
            "compute.bf16": cite("assumption"),
            "compute.fp8": cite("assumption"),
        },
        estimated=frozenset(
            {"compute.bf16", "compute.fp16", "compute.fp32", "compute.fp8", "memory"}
        ),
    )
    """Dense: half of the advertised 2,070 TFLOP/s in fp4. Wider formats are assumed to reach a half
    and a quarter of that."""

    Coral = Accelerator(
        name="Google Coral Dev Board (Edge TPU)",
        release_year=2019,
        compute=rates(int8=4),
        memory=Memory(capacity=Q_(1, "GiB"), bandwidth=Q_(0.5, "GB/s")),
        tdp=Q_(2, "W"),
        source=cite("coral_faq"),
        field_sources={
            "release_year": cite("coral"),
            "memory.capacity": cite("coral_dev_board"),
            "memory.bandwidth": cite("assumption"),
        },
        estimated=frozenset({"memory.bandwidth"}),
    )
    """int8 only. Weights that exceed the chip's own few megabytes stream from the board's memory
    over one PCIe 2.0 lane, assumed to carry 0.5 GB/s; a model that fits on the chip is faster."""

    NUC_Movidius = Accelerator(
        name="Intel NUC with Movidius Myriad X",
        release_year=2018,
        compute=rates(fp16=1),
        memory=Memory(capacity=Q_(16, "GiB"), bandwidth=Q_(25.6, "GB/s")),
        tdp=Q_(15, "W"),
        source=cite("myriad_x"),
        field_sources={
            "release_year": cite("assumption"),
            "memory": cite("assumption"),
            "tdp": cite("assumption"),
        },
        estimated=frozenset({"memory", "release_year", "tdp"}),
    )
    """A small PC with a vision processor that computes in fp16. Memory and power are assumptions
    about the PC: one channel of DDR4 at 3,200 MT/s, and a 15 W processor."""

    Generic_Server = Accelerator(
        name="Generic edge server",
        release_year=2024,
        compute=rates(fp32=1, fp16=1, int8=4),
        memory=Memory(capacity=Q_(128, "GiB"), bandwidth=Q_(100, "GB/s")),
        tdp=Q_(300, "W"),
        source=cite("assumption"),
        estimated=frozenset({"compute", "memory", "release_year", "tdp"}),
    )
    """Not a product: a server without an accelerator, in round numbers, for exercises."""
