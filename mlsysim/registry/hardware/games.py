"""Gaming cards, which people use to run models at home."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Compute, Memory, cite
from mlsysim.core.units import Q_


class Games(Catalog):
    """Gaming cards below the largest ones.

    The cited pages do not state NVIDIA's tensor rates. They are estimated from the lanes and the
    clock, with the ratios between formats of the RTX 3090, 4090 and 5090.
    """

    GTX_1050_Ti = Accelerator(
        name="NVIDIA GeForce GTX 1050 Ti",
        release_year=2016,
        compute=Compute(fp32=Q_(2.138, "TFLOP/s"), fp16=Q_(2.138, "TFLOP/s")),
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
        compute=Compute(
            fp32=Q_(10.07, "TFLOP/s"), fp16=Q_(40.3, "TFLOP/s"), int8=Q_(161.1, "TOPS")
        ),
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
        compute=Compute(
            fp32=Q_(12.7, "TFLOP/s"),
            fp16=Q_(25.5, "TFLOP/s"),
            bf16=Q_(25.5, "TFLOP/s"),
            int8=Q_(101.9, "TOPS"),
        ),
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
        compute=Compute(
            fp32=Q_(29.77, "TFLOP/s"),
            fp16=Q_(59.5, "TFLOP/s"),
            bf16=Q_(59.5, "TFLOP/s"),
            int8=Q_(238, "TOPS"),
        ),
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
        compute=Compute(
            fp32=Q_(20.3, "TFLOP/s"),
            fp16=Q_(40.6, "TFLOP/s"),
            bf16=Q_(40.6, "TFLOP/s"),
            int8=Q_(162.6, "TOPS"),
        ),
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
        compute=Compute(
            fp32=Q_(48.7, "TFLOP/s"),
            fp16=Q_(97.5, "TFLOP/s"),
            bf16=Q_(97.5, "TFLOP/s"),
            fp8=Q_(194.9, "TFLOP/s"),
            int8=Q_(389.9, "TOPS"),
        ),
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
        compute=Compute(
            fp32=Q_(29.15, "TFLOP/s"),
            fp16=Q_(58.3, "TFLOP/s"),
            bf16=Q_(58.3, "TFLOP/s"),
            fp8=Q_(116.6, "TFLOP/s"),
            int8=Q_(233.2, "TOPS"),
        ),
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
        compute=Compute(
            fp32=Q_(30.87, "TFLOP/s"),
            fp16=Q_(61.75, "TFLOP/s"),
            bf16=Q_(61.75, "TFLOP/s"),
            fp8=Q_(123.5, "TFLOP/s"),
            int8=Q_(247, "TOPS"),
            fp4=Q_(494, "TFLOP/s"),
            mxfp4=Q_(494, "TFLOP/s"),
        ),
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
        compute=Compute(fp32=Q_(51.6, "TFLOP/s"), fp16=Q_(103, "TFLOP/s"), bf16=Q_(103, "TFLOP/s")),
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
