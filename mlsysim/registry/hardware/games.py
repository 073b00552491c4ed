"""Gaming cards, which people use to run models at home."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Memory, cite
from mlsysim.core.units import Q_
from mlsysim.registry.hardware.rates import rates


class Games(Catalog):
    """Gaming cards below the largest ones.

    The cited pages do not state NVIDIA's tensor rates. They are estimated from the lanes and the
    clock, with the ratios between formats of the RTX 3090, 4090 and 5090.
    """

    GTX_1050_Ti = Accelerator(
        name="NVIDIA GeForce GTX 1050 Ti",
        release_year=2016,
        compute=rates(fp32=2.138, fp16=2.138),
        memory=Memory(capacity=Q_(4, "GiB"), bandwidth=Q_(112.1, "GB/s")),
        tdp=Q_(75, "W"),
        source=cite("gtx_1050_ti"),
        field_sources={"compute.fp16": cite("assumption")},
        estimated=frozenset({"compute.fp16"}),
    )
    """Pascal, without tensor cores. Its native 16-bit arithmetic is far slower than its 32-bit
    arithmetic, so engines convert: fp16 is assumed to run at the rate of fp32."""

    RTX_2080 = Accelerator(
        name="NVIDIA GeForce RTX 2080",
        release_year=2018,
        compute=rates(fp32=10.07, fp16=40.3, int8=161.1),
        memory=Memory(capacity=Q_(8, "GiB"), bandwidth=Q_(448, "GB/s")),
        tdp=Q_(215, "W"),
        host_bandwidth=Q_(16, "GB/s"),
        source=cite("rtx_2080"),
        field_sources={"compute": cite("assumption")},
        estimated=frozenset({"compute"}),
    )
    """Turing for games: the first tensor cores, without bf16. fp16 is with 32-bit accumulation."""

    RTX_3060 = Accelerator(
        name="NVIDIA GeForce RTX 3060 12GB",
        release_year=2021,
        compute=rates(fp32=12.7, fp16=25.5, bf16=25.5, int8=101.9),
        memory=Memory(capacity=Q_(12, "GB"), reported=Q_(12_288, "MiB"), bandwidth=Q_(360, "GB/s")),
        tdp=Q_(170, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("rtx_3060"),
        field_sources={
            "compute": cite("assumption"),
            "host_bandwidth": cite("assumption"),
            "memory.reported": cite("rtx_3060_printout"),
        },
        estimated=frozenset({"compute", "host_bandwidth"}),
    )
    """Like the RTX 3090, at a third of its rate."""

    RTX_3080 = Accelerator(
        name="NVIDIA GeForce RTX 3080 10GB",
        release_year=2020,
        compute=rates(fp32=29.77, fp16=59.5, bf16=59.5, int8=238),
        memory=Memory(capacity=Q_(10, "GiB"), bandwidth=Q_(760, "GB/s")),
        tdp=Q_(320, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("rtx_3080"),
        field_sources={
            "release_year": cite("assumption"),
            "compute": cite("assumption"),
            "compute.fp32": cite("rtx_3080_rate"),
            "host_bandwidth": cite("assumption"),
        },
        estimated=frozenset(
            {"compute.bf16", "compute.fp16", "compute.int8", "host_bandwidth", "release_year"}
        ),
    )
    """The RTX 3090's chip with fewer lanes and less memory."""

    RTX_3070 = Accelerator(
        name="NVIDIA GeForce RTX 3070",
        release_year=2020,
        compute=rates(fp32=20.3, fp16=40.6, bf16=40.6, int8=162.6),
        memory=Memory(capacity=Q_(8, "GiB"), bandwidth=Q_(448, "GB/s")),
        tdp=Q_(220, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("assumption"),
        field_sources={
            "tdp": cite("rtx_3070_printout"),
        },
        estimated=frozenset({"compute", "host_bandwidth", "memory", "release_year"}),
    )
    """Ampere for games, with GDDR6. The figures are from secondary sources."""

    RTX_4080 = Accelerator(
        name="NVIDIA GeForce RTX 4080",
        release_year=2022,
        compute=rates(fp32=48.7, fp16=97.5, bf16=97.5, fp8=194.9, int8=389.9),
        memory=Memory(capacity=Q_(16, "GiB"), bandwidth=Q_(717, "GB/s")),
        tdp=Q_(320, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("assumption"),
        estimated=frozenset({"compute", "host_bandwidth", "memory", "release_year", "tdp"}),
    )
    """Ada for games: 60% of an RTX 4090. The figures are from secondary sources."""

    RTX_4070 = Accelerator(
        name="NVIDIA GeForce RTX 4070",
        release_year=2023,
        compute=rates(fp32=29.15, fp16=58.3, bf16=58.3, fp8=116.6, int8=233.2),
        memory=Memory(capacity=Q_(12, "GiB"), bandwidth=Q_(504, "GB/s")),
        tdp=Q_(200, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("rtx_4070"),
        field_sources={
            "release_year": cite("assumption"),
            "compute": cite("assumption"),
            "host_bandwidth": cite("assumption"),
            "tdp": cite("rtx_4070_power"),
        },
        estimated=frozenset({"compute", "host_bandwidth", "release_year"}),
    )
    """Ada for games, a third of the RTX 4090 with half its memory bandwidth."""

    RTX_5070 = Accelerator(
        name="NVIDIA GeForce RTX 5070",
        release_year=2025,
        compute=rates(fp32=30.87, fp16=61.75, bf16=61.75, fp8=123.5, int8=247, fp4=494, mxfp4=494),
        memory=Memory(capacity=Q_(12, "GB"), reported=Q_(12_227, "MiB"), bandwidth=Q_(672, "GB/s")),
        tdp=Q_(250, "W"),
        host_bandwidth=Q_(64, "GB/s"),
        source=cite("rtx_5070"),
        field_sources={
            "compute": cite("assumption"),
            "compute.fp4": cite("rtx_5070"),
            "compute.fp32": cite("rtx_5070_memory"),
            "compute.mxfp4": cite("mxfp4_rate"),
            "memory.bandwidth": cite("rtx_5070_memory"),
            "memory.reported": cite("rtx_5070_printout"),
            "tdp": cite("rtx_5070_memory"),
            "host_bandwidth": cite("assumption"),
        },
        estimated=frozenset(
            {"compute.bf16", "compute.fp16", "compute.fp8", "compute.int8", "host_bandwidth"}
        ),
    )
    """Blackwell for games. The source states fp4 with sparsity, which is halved here."""

    RX_7900_XT = Accelerator(
        name="AMD Radeon RX 7900 XT",
        release_year=2022,
        compute=rates(fp32=51.6, fp16=103, bf16=103),
        memory=Memory(capacity=Q_(20, "GiB"), bandwidth=Q_(800, "GB/s")),
        tdp=Q_(315, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("rx_7900_xt"),
        field_sources={
            "compute.fp32": cite("rx_7900_xt_memory"),
            "compute.bf16": cite("assumption"),
            "memory.bandwidth": cite("rx_7900_xt_memory"),
            "host_bandwidth": cite("assumption"),
        },
        estimated=frozenset({"compute.bf16", "host_bandwidth"}),
    )
    """RDNA 3 for games: 84 compute units. bf16 is assumed to run at the rate of fp16."""
