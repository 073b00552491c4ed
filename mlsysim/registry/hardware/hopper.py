"""NVIDIA's accelerators up to the Hopper generation."""

import dataclasses

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Memory, cite
from mlsysim.core.units import Q_
from mlsysim.registry.hardware.rates import rates


class Hopper(Catalog):
    """Volta, Turing, Ampere and Hopper."""

    V100 = Accelerator(
        name="NVIDIA V100 SXM2 32GB",
        release_year=2018,
        generation="volta",
        compute=rates(fp64=7.8, fp32=15.7, fp16=125, int8=62.8),
        memory=Memory(capacity=Q_(32, "GB"), bandwidth=Q_(900, "GB/s"), reported=Q_(32_510, "MiB")),
        tdp=Q_(300, "W"),
        interconnect_bandwidth=Q_(150, "GB/s"),
        host_bandwidth=Q_(16, "GB/s"),
        source=cite("nvidia_ampere"),
        field_sources={
            "release_year": cite("v100"),
            "memory.reported": cite("v100_reported_memory"),
            "compute.int8": cite("assumption"),
            "interconnect_bandwidth": cite("ml_engineering_links"),
            "host_bandwidth": cite("assumption"),
        },
        estimated=frozenset({"compute.int8", "host_bandwidth"}),
    )
    """First GPU with tensor cores (Volta), six NVLink 2 links. They support only fp16; int8 runs on
    the fp32 lanes, four products each (DP4A), hence 4 x 15.7. The host link is assumed to be PCIe
    3.0 x16. The V100 with 16 GB was released in 2017, this one a year later."""

    T4 = Accelerator(
        name="NVIDIA T4",
        release_year=2018,
        generation="turing",
        compute=rates(fp64=0.2544, fp32=8.1, fp16=65, int8=130, int4=260),
        memory=Memory(capacity=Q_(16, "GB"), bandwidth=Q_(320, "GB/s"), reported=Q_(15_360, "MiB")),
        tdp=Q_(70, "W"),
        host_bandwidth=Q_(16, "GB/s"),
        unit_price=Q_(2000, "USD"),
        source=cite("t4_specs"),
        field_sources={
            "release_year": cite("t4"),
            "memory.reported": cite("reported_by_modal"),
            "compute": cite("t4_launch"),
            "compute.fp64": cite("t4_fp64"),
            "unit_price": cite("listed_prices"),
        },
        estimated=frozenset({"unit_price"}),
    )
    """Inference card (Turing) that needs only slot power; PCIe 3.0 x16, no NVLink."""

    A100_40GB = Accelerator(
        name="NVIDIA A100 SXM4 40GB",
        release_year=2020,
        generation="ampere",
        compute=rates(fp64=19.5, fp32=19.5, tf32=156, fp16=312, bf16=312, int8=624, int4=1248),
        memory=Memory(
            capacity=Q_(40, "GB"), bandwidth=Q_(1555, "GB/s"), reported=Q_(40_960, "MiB")
        ),
        tdp=Q_(400, "W"),
        interconnect_bandwidth=Q_(300, "GB/s"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("nvidia_ampere"),
        field_sources={
            "release_year": cite("a100"),
            "interconnect_bandwidth": cite("a100_lockwood"),
            "host_bandwidth": cite("a100_lockwood"),
            "memory.reported": cite("reported_memory"),
        },
    )
    """The A100 at launch (Ampere), with HBM2; twelve NVLink 3 links, PCIe 4.0 x16."""

    A100 = Accelerator(
        name="NVIDIA A100 SXM4 80GB",
        release_year=2020,
        generation="ampere",
        compute=A100_40GB.compute,
        memory=Memory(
            capacity=Q_(80, "GB"), bandwidth=Q_(2039, "GB/s"), reported=Q_(81_920, "MiB")
        ),
        tdp=Q_(400, "W"),
        interconnect_bandwidth=Q_(300, "GB/s"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("a100_lockwood"),
        field_sources={
            "release_year": cite("a100"),
            "compute": cite("nvidia_ampere"),
            "memory.reported": cite("reported_memory"),
        },
    )
    """The later A100, with HBM2e: twice the memory, the same arithmetic."""

    A100_PCIe = Accelerator(
        name="NVIDIA A100 PCIe 80GB",
        release_year=2021,
        generation="ampere",
        compute=A100_40GB.compute,
        memory=Memory(capacity=Q_(80, "GiB"), bandwidth=Q_(1935, "GB/s")),
        tdp=Q_(300, "W"),
        interconnect_bandwidth=Q_(300, "GB/s"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("a100_pcie"),
        field_sources={
            "release_year": cite("assumption"),
            "compute": cite("nvidia_ampere"),
            "interconnect_bandwidth": cite("waterline"),
        },
        estimated=frozenset({"release_year"}),
    )
    """The A100 as a card. Its links connect to one other card over a bridge."""

    A100_PCIe_40GB = Accelerator(
        name="NVIDIA A100 PCIe 40GB",
        release_year=2020,
        generation="ampere",
        compute=A100_40GB.compute,
        memory=A100_40GB.memory,
        tdp=Q_(250, "W"),
        interconnect_bandwidth=Q_(300, "GB/s"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("nvidia_ampere"),
        field_sources={
            "release_year": cite("assumption"),
            "memory": cite("assumption"),
            "tdp": cite("assumption"),
            "interconnect_bandwidth": cite("waterline"),
            "host_bandwidth": cite("a100_pcie"),
        },
        estimated=frozenset({"memory", "release_year", "tdp"}),
    )
    """The first A100 as a card, with the memory of the SXM4 module; the power is from secondary
    sources."""

    H100 = Accelerator(
        name="NVIDIA H100 SXM5 80GB",
        release_year=2022,
        generation="hopper",
        compute=rates(
            fp64=66.9, fp32=66.9, tf32=494.7, fp16=989.4, bf16=989.4, fp8=1978.9, int8=1978.9
        ),
        memory=Memory(
            capacity=Q_(80, "GB"), bandwidth=Q_(3.35, "TB/s"), reported=Q_(81_559, "MiB")
        ),
        tdp=Q_(700, "W"),
        interconnect_bandwidth=Q_(450, "GB/s"),
        host_bandwidth=Q_(64, "GB/s"),
        unit_price=Q_(30000, "USD"),
        source=cite("h100_page"),
        field_sources={
            "release_year": cite("h100"),
            "memory.reported": cite("reported_memory"),
            "compute": cite("h100_lockwood"),
            "compute.bf16": cite("h100_whitepaper"),
            "interconnect_bandwidth": cite("ml_engineering_links"),
            "unit_price": cite("listed_prices"),
        },
        estimated=frozenset({"unit_price"}),
    )
    """Hopper, with HBM3 and eighteen NVLink 4 links. The product page's 1,979 TFLOP/s in fp16 are
    with sparsity, and its 900 GB/s of NVLink count both directions."""

    H100_HBM2e = Accelerator(
        name="NVIDIA H100 SXM5 96GB HBM2e",
        release_year=2022,
        generation="hopper",
        compute=H100.compute,
        memory=Memory(capacity=Q_(96, "GiB"), bandwidth=Q_(2.4, "TB/s")),
        tdp=Q_(500, "W"),
        interconnect_bandwidth=Q_(450, "GB/s"),
        host_bandwidth=Q_(64, "GB/s"),
        source=cite("h100_hbm2e"),
        field_sources={
            "release_year": cite("assumption"),
            "compute": cite("h100_lockwood"),
            "host_bandwidth": cite("h100_page"),
        },
        estimated=frozenset({"release_year", "compute"}),
    )
    """The H100 of Meta's Grand Teton servers, limited to 500 W, with slower memory. The rates are
    assumed to be the H100's; no peak of this part is published, and its clock falls under load."""

    H100_PCIe = Accelerator(
        name="NVIDIA H100 PCIe 80GB",
        release_year=2022,
        generation="hopper",
        compute=rates(fp64=51, fp32=51, tf32=378, fp16=756, bf16=756, fp8=1513, int8=1513),
        memory=Memory(capacity=Q_(80, "GB"), bandwidth=Q_(2, "TB/s"), reported=Q_(81_559, "MiB")),
        tdp=Q_(350, "W"),
        interconnect_bandwidth=Q_(300, "GB/s"),
        host_bandwidth=Q_(64, "GB/s"),
        source=cite("h100_pcie"),
        field_sources={"release_year": cite("h100"), "memory.reported": cite("h100_pcie_printout")},
    )
    """The H100 as a card: fewer units at a lower clock, and HBM2e. Its links connect to one other
    card over a bridge; all others are connected over PCIe."""

    H200 = Accelerator(
        name="NVIDIA H200 SXM 141GB",
        release_year=2024,
        generation="hopper",
        compute=H100.compute,
        memory=Memory(
            capacity=Q_(141, "GB"), bandwidth=Q_(4.8, "TB/s"), reported=Q_(143_771, "MiB")
        ),
        tdp=Q_(700, "W"),
        interconnect_bandwidth=Q_(450, "GB/s"),
        host_bandwidth=Q_(64, "GB/s"),
        unit_price=Q_(32000, "USD"),
        source=cite("h200_mlperf"),
        field_sources={
            "release_year": cite("h200"),
            "compute": cite("h100_lockwood"),
            "memory.bandwidth": cite("ml_engineering_memory"),
            "memory.reported": cite("reported_by_modal"),
            "interconnect_bandwidth": cite("ml_engineering_links"),
            "unit_price": cite("listed_prices"),
        },
        estimated=frozenset({"unit_price"}),
    )
    """The H100's chip with HBM3e: more and faster memory, the same arithmetic and links."""

    H200_NVL = Accelerator(
        name="NVIDIA H200 NVL 141GB",
        release_year=2024,
        generation="hopper",
        compute=rates(
            fp64=60, fp32=60, tf32=417.5, fp16=835.5, bf16=835.5, fp8=1670.5, int8=1670.5
        ),
        memory=Memory(
            capacity=Q_(141, "GB"), bandwidth=Q_(4.8, "TB/s"), reported=Q_(143_771, "MiB")
        ),
        tdp=Q_(600, "W"),
        interconnect_bandwidth=Q_(450, "GB/s"),
        host_bandwidth=Q_(64, "GB/s"),
        source=cite("h200_nvl"),
        field_sources={
            "release_year": cite("assumption"),
            "memory.reported": cite("reported_by_modal"),
        },
        estimated=frozenset({"release_year"}),
    )
    """The H200 as a card, with five sixths of its rates; two or four cards share a bridge whose
    links are as fast as the H200's. The memory and what it reports are the H200's."""

    H20 = Accelerator(
        name="NVIDIA H20 96GB",
        release_year=2024,
        generation="hopper",
        compute=rates(fp64=1, fp32=44, tf32=74, fp16=148, bf16=148, fp8=296, int8=296),
        memory=Memory(capacity=Q_(96, "GB"), bandwidth=Q_(4, "TB/s"), reported=Q_(97_871, "MiB")),
        tdp=Q_(500, "W"),
        interconnect_bandwidth=Q_(450, "GB/s"),
        host_bandwidth=Q_(64, "GB/s"),
        source=cite("h20_rates"),
        field_sources={
            "release_year": cite("h20_page"),
            "memory": cite("h20_tweaktown"),
            "memory.reported": cite("h20_printout"),
            "tdp": cite("h20_printout"),
            "interconnect_bandwidth": cite("h20_tweaktown"),
            "host_bandwidth": cite("h100_page"),
        },
    )
    """A Hopper GPU for China under the export rules of October 2023: a seventh of the H100's
    arithmetic, with all of its links and more memory. Drivers limit it to 500 W; reports before the
    launch said 400."""

    H800 = Accelerator(
        name="NVIDIA H800 SXM5 80GB",
        release_year=2023,
        generation="hopper",
        compute=dataclasses.replace(H100.compute, fp64=Q_(1, "TFLOP/s")),
        memory=H100.memory,
        tdp=Q_(700, "W"),
        interconnect_bandwidth=Q_(200, "GB/s"),
        host_bandwidth=Q_(64, "GB/s"),
        source=cite("h800_comparison"),
        field_sources={
            "release_year": cite("h800_page"),
            "compute": cite("h100_lockwood"),
            "compute.fp64": cite("h800_comparison"),
            "tdp": cite("h800_page"),
            "host_bandwidth": cite("h100_page"),
        },
    )
    """The H100 for export to China: fewer NVLink lanes, hardly any double precision."""
