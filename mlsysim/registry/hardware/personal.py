"""More devices that people run models on at home: cards, laptops, and a processor alone."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Compute, Memory, cite
from mlsysim.core.units import Q_

__all__ = ["Personal"]


class Personal(Catalog):
    """Devices that appear in measurements of single users.

    Decode depends on the memory, whose bandwidth the sources state. The arithmetic rates are
    mostly estimated, by lanes and clock, from those of a larger device of the same generation.
    """

    RTX_2070_Super = Accelerator(
        name="NVIDIA GeForce RTX 2070 SUPER",
        release_year=2019,
        compute=Compute(fp32=Q_(9.06, "TFLOP/s"), fp16=Q_(36.2, "TFLOP/s")),
        memory=Memory(capacity=Q_(8, "GiB"), bandwidth=Q_(448, "GB/s")),
        source=cite("rtx_2070_super"),
        field_sources={"compute": cite("assumption"), "memory": cite("assumption")},
        estimated=frozenset({"compute", "memory"}),
    )
    """Turing, with the memory of the RTX 2080 and 2,560 of its 2,944 lanes."""

    RTX_3080_Ti = Accelerator(
        name="NVIDIA GeForce RTX 3080 Ti",
        release_year=2021,
        compute=Compute(
            fp32=Q_(34.1, "TFLOP/s"), fp16=Q_(68.2, "TFLOP/s"), bf16=Q_(68.2, "TFLOP/s")
        ),
        memory=Memory(capacity=Q_(12, "GiB"), bandwidth=Q_(912, "GB/s")),
        source=cite("assumption"),
        estimated=frozenset({"compute", "memory", "release_year"}),
    )
    """Ampere: 384 bits of memory at 19 Gbit/s, from secondary sources."""

    RTX_3090_Ti = Accelerator(
        name="NVIDIA GeForce RTX 3090 Ti",
        release_year=2022,
        compute=Compute(fp32=Q_(40, "TFLOP/s"), fp16=Q_(80, "TFLOP/s"), bf16=Q_(80, "TFLOP/s")),
        memory=Memory(
            capacity=Q_(24, "GB"), reported=Q_(24_564, "MiB"), bandwidth=Q_(1008, "GB/s")
        ),
        tdp=Q_(450, "W"),
        source=cite("rtx_3090_ti"),
        field_sources={
            "compute.fp16": cite("assumption"),
            "compute.bf16": cite("assumption"),
            "memory.reported": cite("rtx_3090_ti_printout"),
        },
        estimated=frozenset({"compute.fp16", "compute.bf16"}),
    )
    """Ampere with the memory rate of the RTX 4090."""

    RTX_4070_Super = Accelerator(
        name="NVIDIA GeForce RTX 4070 SUPER",
        release_year=2024,
        compute=Compute(
            fp32=Q_(35.5, "TFLOP/s"),
            fp16=Q_(71, "TFLOP/s"),
            bf16=Q_(71, "TFLOP/s"),
            fp8=Q_(142, "TFLOP/s"),
        ),
        memory=Memory(capacity=Q_(12, "GiB"), bandwidth=Q_(504, "GB/s")),
        source=cite("rtx_4070_super"),
        field_sources={"compute": cite("assumption"), "memory": cite("assumption")},
        estimated=frozenset({"compute", "memory"}),
    )
    """Ada with the memory of the RTX 4070 and more lanes."""

    RTX_5080 = Accelerator(
        name="NVIDIA GeForce RTX 5080",
        release_year=2025,
        compute=Compute(
            fp32=Q_(56.3, "TFLOP/s"),
            fp16=Q_(112.6, "TFLOP/s"),
            bf16=Q_(112.6, "TFLOP/s"),
            fp8=Q_(225.1, "TFLOP/s"),
            fp4=Q_(900, "TFLOP/s"),
            mxfp4=Q_(900, "TFLOP/s"),
        ),
        memory=Memory(capacity=Q_(16, "GiB"), bandwidth=Q_(960, "GB/s")),
        tdp=Q_(360, "W"),
        source=cite("rtx_5080"),
        field_sources={
            "compute": cite("assumption"),
            "compute.mxfp4": cite("mxfp4_rate"),
            "tdp": cite("rtx_5080_printout"),
        },
        estimated=frozenset({"compute", "memory.bandwidth"}),
    )
    """Blackwell for games. The source is of the launch: 256 bits of memory at 30 Gbit/s."""

    RTX_5880_Ada = Accelerator(
        name="NVIDIA RTX 5880 Ada Generation",
        release_year=2024,
        compute=Compute(
            fp32=Q_(69.3, "TFLOP/s"),
            fp16=Q_(277, "TFLOP/s"),
            bf16=Q_(277, "TFLOP/s"),
            fp8=Q_(554, "TFLOP/s"),
        ),
        memory=Memory(capacity=Q_(48, "GiB"), bandwidth=Q_(960, "GB/s")),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("assumption"),
        estimated=frozenset({"compute", "host_bandwidth", "memory", "release_year"}),
    )
    """Ada for workstations. The figures are from secondary sources."""

    RTX_A4000 = Accelerator(
        name="NVIDIA RTX A4000",
        release_year=2021,
        compute=Compute(
            fp32=Q_(19.2, "TFLOP/s"),
            fp16=Q_(76.7, "TFLOP/s"),
            bf16=Q_(76.7, "TFLOP/s"),
            int8=Q_(153.4, "TOPS"),
        ),
        memory=Memory(capacity=Q_(16, "GiB"), bandwidth=Q_(448, "GB/s")),
        tdp=Q_(140, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("waterline"),
        field_sources={
            "release_year": cite("assumption"),
        },
        estimated=frozenset({"release_year"}),
    )
    """Ampere for workstations."""

    RTX_A5000 = Accelerator(
        name="NVIDIA RTX A5000",
        release_year=2021,
        compute=Compute(
            fp32=Q_(27.8, "TFLOP/s"),
            fp16=Q_(111.1, "TFLOP/s"),
            bf16=Q_(111.1, "TFLOP/s"),
            int8=Q_(222.2, "TOPS"),
        ),
        memory=Memory(capacity=Q_(24, "GiB"), bandwidth=Q_(768, "GB/s")),
        tdp=Q_(230, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("waterline"),
        field_sources={
            "release_year": cite("assumption"),
        },
        estimated=frozenset({"release_year"}),
    )
    """Ampere for workstations."""

    RTX_A6000 = Accelerator(
        name="NVIDIA RTX A6000",
        release_year=2020,
        compute=Compute(
            fp32=Q_(38.7, "TFLOP/s"),
            fp16=Q_(154.8, "TFLOP/s"),
            bf16=Q_(154.8, "TFLOP/s"),
            int8=Q_(309.7, "TOPS"),
        ),
        memory=Memory(capacity=Q_(48, "GiB"), bandwidth=Q_(768, "GB/s")),
        tdp=Q_(300, "W"),
        interconnect_bandwidth=Q_(56.25, "GB/s"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("waterline"),
        field_sources={
            "release_year": cite("assumption"),
        },
        estimated=frozenset({"release_year"}),
    )
    """Ampere for workstations; a bridge joins two."""

    RTX_4000_Ada = Accelerator(
        name="NVIDIA RTX 4000 Ada Generation",
        release_year=2023,
        compute=Compute(
            fp32=Q_(26.7, "TFLOP/s"),
            fp16=Q_(106.9, "TFLOP/s"),
            bf16=Q_(106.9, "TFLOP/s"),
            fp8=Q_(213.8, "TFLOP/s"),
            int8=Q_(213.8, "TOPS"),
        ),
        memory=Memory(capacity=Q_(20, "GiB"), bandwidth=Q_(360, "GB/s")),
        tdp=Q_(130, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("assumption"),
        estimated=frozenset({"compute", "host_bandwidth", "memory", "release_year", "tdp"}),
    )
    """Ada for workstations, in one slot. The figures are from secondary sources."""

    RTX_5000_Ada = Accelerator(
        name="NVIDIA RTX 5000 Ada Generation",
        release_year=2023,
        compute=Compute(
            fp32=Q_(65.3, "TFLOP/s"),
            fp16=Q_(261, "TFLOP/s"),
            bf16=Q_(261, "TFLOP/s"),
            fp8=Q_(522, "TFLOP/s"),
            int8=Q_(522, "TOPS"),
        ),
        memory=Memory(capacity=Q_(32, "GiB"), bandwidth=Q_(576, "GB/s")),
        tdp=Q_(250, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("assumption"),
        estimated=frozenset({"compute", "host_bandwidth", "memory", "release_year", "tdp"}),
    )
    """Ada for workstations. The figures are from secondary sources; tensor rates are assumed to be
    four and eight times that of fp32."""

    RTX_6000_Ada = Accelerator(
        name="NVIDIA RTX 6000 Ada Generation",
        release_year=2022,
        compute=Compute(
            fp32=Q_(91.1, "TFLOP/s"),
            fp16=Q_(364.2, "TFLOP/s"),
            bf16=Q_(364.2, "TFLOP/s"),
            fp8=Q_(728.5, "TFLOP/s"),
            int8=Q_(728.5, "TOPS"),
        ),
        memory=Memory(capacity=Q_(48, "GiB"), bandwidth=Q_(960, "GB/s")),
        tdp=Q_(300, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("waterline"),
        field_sources={
            "release_year": cite("assumption"),
        },
        estimated=frozenset({"release_year"}),
    )
    """The largest Ada card for workstations."""

    RTX_PRO_6000_Workstation = Accelerator(
        name="NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
        release_year=2025,
        compute=Compute(
            fp32=Q_(126, "TFLOP/s"),
            tf32=Q_(251.9, "TFLOP/s"),
            fp16=Q_(503.8, "TFLOP/s"),
            bf16=Q_(503.8, "TFLOP/s"),
            fp8=Q_(1007.6, "TFLOP/s"),
            int8=Q_(1007.6, "TOPS"),
            fp4=Q_(2015.2, "TFLOP/s"),
            mxfp4=Q_(2015.2, "TFLOP/s"),
        ),
        memory=Memory(
            capacity=Q_(96, "GB"), bandwidth=Q_(1792, "GB/s"), reported=Q_(97_887, "MiB")
        ),
        tdp=Q_(600, "W"),
        host_bandwidth=Q_(64, "GB/s"),
        source=cite("rtx_pro_6000_whitepaper"),
        field_sources={
            "compute.mxfp4": cite("mxfp4_rate"),
            "memory.reported": cite("rtx_pro_6000_aic"),
        },
    )
    """The RTX PRO 6000 for desks, with faster memory than the Server Edition."""

    RTX_PRO_6000_Max_Q = Accelerator(
        name="NVIDIA RTX PRO 6000 Blackwell Max-Q",
        release_year=2025,
        compute=Compute(
            fp32=Q_(109.7, "TFLOP/s"),
            tf32=Q_(219.5, "TFLOP/s"),
            fp16=Q_(438.9, "TFLOP/s"),
            bf16=Q_(438.9, "TFLOP/s"),
            fp8=Q_(877.9, "TFLOP/s"),
            int8=Q_(877.9, "TOPS"),
            fp4=Q_(1755.7, "TFLOP/s"),
            mxfp4=Q_(1755.7, "TFLOP/s"),
        ),
        memory=Memory(
            capacity=Q_(96, "GB"), bandwidth=Q_(1792, "GB/s"), reported=Q_(97_887, "MiB")
        ),
        tdp=Q_(300, "W"),
        host_bandwidth=Q_(64, "GB/s"),
        source=cite("rtx_pro_6000_whitepaper"),
        field_sources={
            "compute.mxfp4": cite("mxfp4_rate"),
            "memory.reported": cite("rtx_pro_6000_aic"),
        },
    )
    """The same card at half of the power."""

    Arc_Pro_B60 = Accelerator(
        name="Intel Arc Pro B60",
        release_year=2025,
        compute=Compute(
            fp32=Q_(12.28, "TFLOP/s"),
            fp16=Q_(98.3, "TFLOP/s"),
            bf16=Q_(98.3, "TFLOP/s"),
            int8=Q_(197, "TOPS"),
        ),
        memory=Memory(capacity=Q_(24, "GiB"), bandwidth=Q_(456, "GB/s")),
        tdp=Q_(200, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("arc_pro_b60"),
        field_sources={
            "release_year": cite("assumption"),
        },
        estimated=frozenset({"release_year"}),
    )
    """Battlemage for workstations."""

    M1 = Accelerator(
        name="Apple M1 16GB",
        release_year=2020,
        compute=Compute(
            fp32=Q_(2.6, "TFLOP/s"),
            fp16=Q_(2.6, "TFLOP/s"),
        ),
        memory=Memory(capacity=Q_(16, "GiB"), bandwidth=Q_(68.3, "GB/s")),
        source=cite("assumption"),
        estimated=frozenset({"compute", "memory", "release_year"}),
    )
    """8 GPU cores and 128 bits of LPDDR4X, from secondary sources."""

    Arc_140V = Accelerator(
        name="Intel Arc Graphics 140V",
        release_year=2024,
        compute=Compute(fp32=Q_(4, "TFLOP/s"), fp16=Q_(32, "TFLOP/s"), bf16=Q_(32, "TFLOP/s")),
        memory=Memory(capacity=Q_(32, "GiB"), bandwidth=Q_(136.5, "GB/s")),
        source=cite("lunar_lake"),
        field_sources={"compute": cite("assumption")},
        estimated=frozenset({"compute", "memory"}),
    )
    """The graphics of Lunar Lake: 128 bits of LPDDR5X at 8,533 MT/s, shared with the processor."""

    M3_Pro = Accelerator(
        name="Apple M3 Pro 36GB",
        release_year=2023,
        compute=Compute(
            fp32=Q_(6.44, "TFLOP/s"), fp16=Q_(6.44, "TFLOP/s"), bf16=Q_(6.44, "TFLOP/s")
        ),
        memory=Memory(capacity=Q_(36, "GiB"), bandwidth=Q_(150, "GB/s")),
        source=cite("m3_pro"),
        field_sources={
            "compute": cite("m3_pro_rate"),
            "compute.bf16": cite("assumption"),
            "memory.capacity": cite("assumption"),
        },
        estimated=frozenset({"compute.bf16", "memory.capacity"}),
    )
    """18 GPU cores."""

    M4_Pro = Accelerator(
        name="Apple M4 Pro 64GB",
        release_year=2024,
        compute=Compute(fp32=Q_(8.6, "TFLOP/s"), fp16=Q_(8.6, "TFLOP/s"), bf16=Q_(8.6, "TFLOP/s")),
        memory=Memory(capacity=Q_(64, "GiB"), bandwidth=Q_(273, "GB/s")),
        source=cite("m4_pro"),
        field_sources={"compute": cite("assumption")},
        estimated=frozenset({"compute"}),
    )
    """20 GPU cores: half of the M4 Max."""

    M5_Pro = Accelerator(
        name="Apple M5 Pro 64GB",
        release_year=2026,
        compute=Compute(
            fp32=Q_(11.4, "TFLOP/s"), fp16=Q_(34.4, "TFLOP/s"), bf16=Q_(34.4, "TFLOP/s")
        ),
        memory=Memory(capacity=Q_(64, "GiB"), bandwidth=Q_(307, "GB/s")),
        source=cite("m5_pro"),
        field_sources={"compute": cite("assumption")},
        estimated=frozenset({"compute"}),
    )
    """20 GPU cores: half of the M5 Max."""

    Ryzen_7_7840HS = Accelerator(
        name="AMD Ryzen 7 7840HS",
        release_year=2023,
        compute=Compute(fp32=Q_(0.5, "TFLOP/s"), fp16=Q_(0.5, "TFLOP/s"), bf16=Q_(0.5, "TFLOP/s")),
        memory=Memory(capacity=Q_(64, "GiB"), bandwidth=Q_(89.6, "GB/s")),
        source=cite("ryzen_7840"),
        field_sources={"compute": cite("assumption"), "memory.capacity": cite("assumption")},
        estimated=frozenset({"compute", "memory"}),
    )
    """A processor for laptops, without its graphics: eight Zen 4 cores and two channels of
    DDR5-5600. Rates are those of 16 operations per clock and core, at 4 GHz."""
