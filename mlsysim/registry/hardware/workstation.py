"""Workstation: machines for one developer."""

from mlsysim.core.types import Accelerator, Memory, cite
from mlsysim.core.units import Q_
from mlsysim.registry.hardware.games import Games
from mlsysim.registry.hardware.personal import Personal
from mlsysim.registry.hardware.rates import rates


class Workstation(Games, Personal):
    """Machines for one developer."""

    MacBook_M3_Max = Accelerator(
        name="Apple MacBook Pro M3 Max 128GB",
        release_year=2023,
        compute=rates(fp32=14.2, fp16=14.2, bf16=14.2),
        memory=Memory(capacity=Q_(128, "GiB"), bandwidth=Q_(400, "GB/s")),
        tdp=Q_(90, "W"),
        unit_price=Q_(5000, "USD"),
        source=cite("m3_max_page"),
        field_sources={"memory.bandwidth": cite("m3_max_bandwidth")},
        estimated=frozenset({"compute", "tdp", "unit_price"}),
    )
    """The 40-core GPU of a laptop with memory shared by CPU and GPU. Apple publishes no rate; it is
    computed as 40 cores x 128 lanes x 2 at about 1.4 GHz, the same in 16 and 32 bits. The Neural
    Engine is not counted.
    """

    M1_Max = Accelerator(
        name="Apple M1 Max 64GB",
        release_year=2021,
        compute=rates(fp32=10.4, fp16=10.4),
        memory=Memory(capacity=Q_(64, "GiB"), bandwidth=Q_(400, "GB/s")),
        tdp=Q_(90, "W"),
        source=cite("m1_max"),
        field_sources={
            "release_year": cite("assumption"),
            "compute.fp16": cite("assumption"),
            "tdp": cite("assumption"),
        },
        estimated=frozenset({"compute.fp16", "release_year", "tdp"}),
    )
    """32-core GPU with the same rate in 16 and 32 bits. Power assumed to be that of the M3 Max."""

    M2_Max = Accelerator(
        name="Apple M2 Max 96GB",
        release_year=2023,
        compute=rates(fp32=13.6, fp16=13.6, bf16=13.6),
        memory=Memory(capacity=Q_(96, "GiB"), bandwidth=Q_(400, "GB/s")),
        tdp=Q_(90, "W"),
        source=cite("m2_max"),
        field_sources={
            "compute": cite("apple_clocks"),
            "tdp": cite("assumption"),
        },
        estimated=frozenset({"compute", "tdp"}),
    )
    """38 cores x 128 lanes x 2 at 1.398 GHz. Power assumed to be that of the M3 Max."""

    M2_Ultra = Accelerator(
        name="Apple M2 Ultra 192GB",
        release_year=2023,
        compute=rates(fp32=27.2, fp16=27.2, bf16=27.2),
        memory=Memory(capacity=Q_(192, "GiB"), bandwidth=Q_(800, "GB/s")),
        tdp=Q_(180, "W"),
        source=cite("m2_ultra_m4_max"),
        field_sources={
            "release_year": cite("m2_ultra_year"),
            "compute": cite("apple_clocks"),
            "tdp": cite("assumption"),
        },
        estimated=frozenset({"compute", "tdp"}),
    )
    """Two M2 Max in one package: 76 cores. Power assumed: twice that of one."""

    M4_Max = Accelerator(
        name="Apple M4 Max 128GB",
        release_year=2024,
        compute=rates(fp32=17.2, fp16=17.2, bf16=17.2),
        memory=Memory(capacity=Q_(128, "GiB"), bandwidth=Q_(546, "GB/s")),
        tdp=Q_(90, "W"),
        source=cite("m2_ultra_m4_max"),
        field_sources={
            "release_year": cite("m3_max_bandwidth"),
            "compute": cite("apple_clocks"),
            "tdp": cite("assumption"),
        },
        estimated=frozenset({"compute", "tdp"}),
    )
    """40 cores x 128 lanes x 2 at 1.678 GHz. Power assumed to be that of the M3 Max."""

    RTX_3090 = Accelerator(
        name="NVIDIA GeForce RTX 3090",
        release_year=2020,
        compute=rates(fp32=35.6, tf32=35.6, fp16=71.2, bf16=71.2, int8=284.7, int4=569.4),
        memory=Memory(capacity=Q_(24, "GB"), reported=Q_(24_576, "MiB"), bandwidth=Q_(936, "GB/s")),
        tdp=Q_(350, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("rtx_whitepaper"),
        field_sources={
            "compute.tf32": cite("assumption"),
            "compute.int4": cite("assumption"),
            "memory.reported": cite("rtx_3090_printout"),
        },
        estimated=frozenset({"compute.int4", "compute.tf32"}),
    )
    """Ampere for games: 16-bit products with 32-bit accumulation run at half the rate of those with
    16-bit accumulation. int4 is assumed to be twice as fast as int8, and tf32 as fast as fp32."""

    RTX_4090 = Accelerator(
        name="NVIDIA GeForce RTX 4090",
        release_year=2022,
        compute=rates(
            fp64=1.29,
            fp32=82.58,
            tf32=82.58,
            fp16=165.2,
            bf16=165.2,
            fp8=330.3,
            int8=660.6,
            int4=1321,
        ),
        memory=Memory(
            capacity=Q_(24, "GB"), reported=Q_(24_564, "MiB"), bandwidth=Q_(1008, "GB/s")
        ),
        tdp=Q_(450, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("rtx_4090"),
        field_sources={
            "release_year": cite("rtx_whitepaper"),
            "host_bandwidth": cite("rtx_whitepaper"),
            "memory.reported": cite("rtx_4090_printout"),
        },
    )
    """Ada for games. Rates are with 32-bit accumulation, as in training and most inference; with
    16-bit accumulation fp16 and fp8 are twice as fast."""

    RTX_5090 = Accelerator(
        name="NVIDIA GeForce RTX 5090",
        release_year=2025,
        compute=rates(fp32=104.8, fp16=209.5, bf16=209.5, fp8=419, int8=838, fp4=1676, mxfp4=1676),
        memory=Memory(
            capacity=Q_(32, "GB"), reported=Q_(32_607, "MiB"), bandwidth=Q_(1792, "GB/s")
        ),
        tdp=Q_(575, "W"),
        host_bandwidth=Q_(64, "GB/s"),
        source=cite("rtx_5090"),
        field_sources={
            "host_bandwidth": cite("rtx_whitepaper"),
            "compute.int8": cite("rtx_whitepaper"),
            "compute.mxfp4": cite("mxfp4_rate"),
            "memory.reported": cite("rtx_5090_printout"),
        },
    )
    """Blackwell for games. Rates in fp16, bf16 and fp8 are with 32-bit accumulation."""

    DGX_Spark = Accelerator(
        name="NVIDIA DGX Spark (GB10)",
        release_year=2025,
        compute=rates(fp32=31, fp16=125, bf16=125, fp8=250, fp4=500, mxfp4=500),
        memory=Memory(capacity=Q_(128, "GiB"), bandwidth=Q_(273, "GB/s")),
        tdp=Q_(140, "W"),
        source=cite("dgx_spark"),
        field_sources={
            "tdp": cite("assumption"),
            "compute": cite("assumption"),
            "compute.fp4": cite("dgx_spark"),
            "compute.mxfp4": cite("mxfp4_rate"),
        },
        estimated=frozenset({"compute.bf16", "compute.fp16", "compute.fp32", "compute.fp8", "tdp"}),
    )
    """A desktop box: a Blackwell GPU and an Arm processor share 128 GB. NVIDIA states fp4 with
    sparsity; wider formats are assumed to reach a half and a quarter of the dense rate."""

    Strix_Halo = Accelerator(
        name="AMD Ryzen AI Max+ 395 (Strix Halo) 128GB",
        release_year=2025,
        compute=rates(fp32=29.7, fp16=59.4, bf16=59.4),
        memory=Memory(capacity=Q_(128, "GiB"), bandwidth=Q_(256, "GB/s")),
        tdp=Q_(120, "W"),
        source=cite("strix_halo"),
        field_sources={
            "release_year": cite("assumption"),
            "tdp": cite("assumption"),
            "memory.capacity": cite("assumption"),
            "compute": cite("assumption"),
        },
        estimated=frozenset({"compute", "memory.capacity", "release_year", "tdp"}),
    )
    """A laptop processor with a GPU of 40 compute units: 512 operations per clock and unit in 16
    bits, at an assumed 2.9 GHz."""

    M3_Ultra = Accelerator(
        name="Apple M3 Ultra 512GB",
        release_year=2025,
        compute=rates(fp32=28.4, fp16=28.4, bf16=28.4),
        memory=Memory(capacity=Q_(512, "GiB"), bandwidth=Q_(819, "GB/s")),
        tdp=Q_(200, "W"),
        source=cite("m3_ultra"),
        field_sources={
            "release_year": cite("m3_ultra_year"),
            "compute": cite("assumption"),
            "tdp": cite("assumption"),
        },
        estimated=frozenset({"compute", "tdp"}),
    )
    """Two M3 Max in one package: 80 cores, twice the rate of one. Power assumed."""

    M5 = Accelerator(
        name="Apple M5 32GB",
        release_year=2025,
        compute=rates(fp32=4.2, fp16=16.6, bf16=16.6),
        memory=Memory(capacity=Q_(32, "GiB"), bandwidth=Q_(153, "GB/s")),
        tdp=Q_(25, "W"),
        source=cite("m5"),
        field_sources={"tdp": cite("assumption"), "compute": cite("assumption")},
        estimated=frozenset({"compute", "tdp"}),
    )
    """Ten GPU cores, each with a matrix unit. Apple publishes no rate; in 16 bits it is assumed to
    be four times that of the M4's ten cores."""

    M5_Max = Accelerator(
        name="Apple M5 Max 128GB",
        release_year=2026,
        compute=rates(fp32=22.8, fp16=68.8, bf16=68.8),
        memory=Memory(capacity=Q_(128, "GiB"), bandwidth=Q_(614, "GB/s")),
        tdp=Q_(110, "W"),
        source=cite("m5_max"),
        field_sources={
            "compute": cite("assumption"),
            "compute.fp32": cite("m5_max_rate"),
            "tdp": cite("m5_max_rate"),
        },
        estimated=frozenset({"compute.bf16", "compute.fp16"}),
    )
    """40 GPU cores, each with a matrix unit. In 16 bits the rate is assumed to be four times the M4
    Max's."""
