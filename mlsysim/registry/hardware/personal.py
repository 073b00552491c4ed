"""More devices that people run models on at home: cards, laptops, and a processor alone."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Memory, cite
from mlsysim.core.units import Q_
from mlsysim.registry.hardware.rates import rates

__all__ = ["Personal"]


class Personal(Catalog):
    """Devices that appear in measurements of single users.

    Decode depends on the memory, whose bandwidth the sources state. The arithmetic rates are
    mostly estimated, by lanes and clock, from those of a larger device of the same generation.
    """

    RTX_2070_Super = Accelerator(
        name="NVIDIA GeForce RTX 2070 SUPER",
        release_year=2019,
        compute=rates(fp32=9.06, fp16=36.2),
        memory=Memory(capacity=Q_(8, "GiB"), bandwidth=Q_(448, "GB/s")),
        source=cite("rtx_2070_super"),
        field_sources={"compute": cite("assumption"), "memory": cite("assumption")},
        estimated=frozenset({"compute", "memory"}),
    )
    """Turing, with the memory of the RTX 2080 and 2,560 of its 2,944 lanes."""

    RTX_3080_Ti = Accelerator(
        name="NVIDIA GeForce RTX 3080 Ti",
        release_year=2021,
        compute=rates(fp32=34.1, fp16=68.2, bf16=68.2),
        memory=Memory(capacity=Q_(12, "GiB"), bandwidth=Q_(912, "GB/s")),
        source=cite("assumption"),
        estimated=frozenset({"compute", "memory", "release_year"}),
    )
    """Ampere: 384 bits of memory at 19 Gbit/s, from secondary sources."""

    RTX_3090_Ti = Accelerator(
        name="NVIDIA GeForce RTX 3090 Ti",
        release_year=2022,
        compute=rates(fp32=40, fp16=80, bf16=80),
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
        compute=rates(fp32=35.5, fp16=71, bf16=71, fp8=142),
        memory=Memory(capacity=Q_(12, "GiB"), bandwidth=Q_(504, "GB/s")),
        source=cite("rtx_4070_super"),
        field_sources={"compute": cite("assumption"), "memory": cite("assumption")},
        estimated=frozenset({"compute", "memory"}),
    )
    """Ada with the memory of the RTX 4070 and more lanes."""

    RTX_5080 = Accelerator(
        name="NVIDIA GeForce RTX 5080",
        release_year=2025,
        compute=rates(fp32=56.3, fp16=112.6, bf16=112.6, fp8=225.1, fp4=900, mxfp4=900),
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
        compute=rates(fp32=69.3, fp16=277, bf16=277, fp8=554),
        memory=Memory(capacity=Q_(48, "GiB"), bandwidth=Q_(960, "GB/s")),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("assumption"),
        estimated=frozenset({"compute", "host_bandwidth", "memory", "release_year"}),
    )
    """Ada for workstations. The figures are from secondary sources."""

    RTX_A4000 = Accelerator(
        name="NVIDIA RTX A4000",
        release_year=2021,
        compute=rates(fp32=19.2, fp16=76.7, bf16=76.7, int8=153.4),
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
        compute=rates(fp32=27.8, fp16=111.1, bf16=111.1, int8=222.2),
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
        compute=rates(fp32=38.7, fp16=154.8, bf16=154.8, int8=309.7),
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
        compute=rates(fp32=26.7, fp16=106.9, bf16=106.9, fp8=213.8, int8=213.8),
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
        compute=rates(fp32=65.3, fp16=261, bf16=261, fp8=522, int8=522),
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
        compute=rates(fp32=91.1, fp16=364.2, bf16=364.2, fp8=728.5, int8=728.5),
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
        compute=rates(
            fp32=126,
            tf32=251.9,
            fp16=503.8,
            bf16=503.8,
            fp8=1007.6,
            int8=1007.6,
            fp4=2015.2,
            mxfp4=2015.2,
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
        compute=rates(
            fp32=109.7,
            tf32=219.5,
            fp16=438.9,
            bf16=438.9,
            fp8=877.9,
            int8=877.9,
            fp4=1755.7,
            mxfp4=1755.7,
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
        compute=rates(fp32=12.28, fp16=98.3, bf16=98.3, int8=197),
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
        compute=rates(fp32=2.6, fp16=2.6),
        memory=Memory(capacity=Q_(16, "GiB"), bandwidth=Q_(68.3, "GB/s")),
        source=cite("assumption"),
        estimated=frozenset({"compute", "memory", "release_year"}),
    )
    """8 GPU cores and 128 bits of LPDDR4X, from secondary sources."""

    Arc_140V = Accelerator(
        name="Intel Arc Graphics 140V",
        release_year=2024,
        compute=rates(fp32=4, fp16=32, bf16=32),
        memory=Memory(capacity=Q_(32, "GiB"), bandwidth=Q_(136.5, "GB/s")),
        source=cite("lunar_lake"),
        field_sources={"compute": cite("assumption")},
        estimated=frozenset({"compute", "memory"}),
    )
    """The graphics of Lunar Lake: 128 bits of LPDDR5X at 8,533 MT/s, shared with the processor."""

    M3_Pro = Accelerator(
        name="Apple M3 Pro 36GB",
        release_year=2023,
        compute=rates(fp32=6.44, fp16=6.44, bf16=6.44),
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
        compute=rates(fp32=8.6, fp16=8.6, bf16=8.6),
        memory=Memory(capacity=Q_(64, "GiB"), bandwidth=Q_(273, "GB/s")),
        source=cite("m4_pro"),
        field_sources={"compute": cite("assumption")},
        estimated=frozenset({"compute"}),
    )
    """20 GPU cores: half of the M4 Max."""

    M5_Pro = Accelerator(
        name="Apple M5 Pro 64GB",
        release_year=2026,
        compute=rates(fp32=11.4, fp16=34.4, bf16=34.4),
        memory=Memory(capacity=Q_(64, "GiB"), bandwidth=Q_(307, "GB/s")),
        source=cite("m5_pro"),
        field_sources={"compute": cite("assumption")},
        estimated=frozenset({"compute"}),
    )
    """20 GPU cores: half of the M5 Max."""

    Ryzen_7_7840HS = Accelerator(
        name="AMD Ryzen 7 7840HS",
        release_year=2023,
        compute=rates(fp32=0.5, fp16=0.5, bf16=0.5),
        memory=Memory(capacity=Q_(64, "GiB"), bandwidth=Q_(89.6, "GB/s")),
        source=cite("ryzen_7840"),
        field_sources={"compute": cite("assumption"), "memory.capacity": cite("assumption")},
        estimated=frozenset({"compute", "memory"}),
    )
    """A processor for laptops, without its graphics: eight Zen 4 cores and two channels of
    DDR5-5600. Rates are those of 16 operations per clock and core, at 4 GHz."""
