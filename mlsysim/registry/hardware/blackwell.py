"""NVIDIA's Blackwell generation, with usable capacities."""

from dataclasses import replace

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Memory, cite
from mlsysim.core.units import Q_
from mlsysim.registry.hardware.rates import rates


class Blackwell(Catalog):
    """Blackwell and Blackwell Ultra."""

    B200 = Accelerator(
        name="NVIDIA B200 SXM 180GB",
        release_year=2025,
        generation="blackwell",
        compute=rates(
            fp64=37,
            fp32=75,
            tf32=1125,
            fp16=2250,
            bf16=2250,
            fp8=4500,
            int8=4500,
            fp4=9000,
            mxfp4=9000,
        ),
        memory=Memory(
            capacity=Q_(180, "GB"), bandwidth=Q_(7.7, "TB/s"), reported=Q_(183_359, "MiB")
        ),
        tdp=Q_(1000, "W"),
        interconnect_bandwidth=Q_(900, "GB/s"),
        host_bandwidth=Q_(64, "GB/s"),
        source=cite("ml_engineering_memory"),
        field_sources={
            "release_year": cite("b200"),
            "memory.bandwidth": cite("b200_aic"),
            "memory.reported": cite("b200_reported_memory"),
            "compute": cite("b200_aic"),
            "compute.mxfp4": cite("mxfp4_rate"),
            "compute.fp64": cite("blackwell_table"),
            "compute.fp32": cite("blackwell_table"),
            "compute.tf32": cite("ml_engineering_rates"),
            "tdp": cite("ml_engineering_power"),
            "interconnect_bandwidth": cite("ml_engineering_links"),
            "host_bandwidth": cite("ml_engineering_pcie"),
        },
    )
    """Blackwell in an HGX or DGX server: two dies, 180 GB usable of the 192 GB announced, eighteen
    NVLink 5 links, a PCIe 5.0 x16 host. NVIDIA's own pages state 7.7 and 8 TB/s."""

    B300 = Accelerator(
        name="NVIDIA B300 SXM 270GB",
        release_year=2025,
        generation="blackwell",
        compute=rates(
            fp64=1.25,
            fp32=75,
            tf32=1125,
            fp16=2250,
            bf16=2250,
            fp8=4500,
            int8=153.5,
            fp4=13_500,
            mxfp4=13_500,
        ),
        memory=Memory(
            capacity=Q_(270, "GB"), bandwidth=Q_(7.7, "TB/s"), reported=Q_(275_040, "MiB")
        ),
        tdp=Q_(1100, "W"),
        interconnect_bandwidth=Q_(900, "GB/s"),
        host_bandwidth=Q_(128, "GB/s"),
        source=cite("b300_aic"),
        field_sources={
            "release_year": cite("b300_launch"),
            "compute.fp64": cite("hgx_table"),
            "compute.fp32": cite("hgx_table"),
            "compute.tf32": cite("ml_engineering_rates"),
            "compute.fp4": cite("b300_fp4"),
            "compute.mxfp4": cite("assumption"),
            "memory.capacity": cite("b300_mlperf"),
            "memory.bandwidth": cite("b300_bandwidth"),
            "tdp": cite("ultra_verda"),
            "interconnect_bandwidth": cite("ml_engineering_links"),
        },
        estimated=frozenset({"compute.fp4", "compute.mxfp4", "host_bandwidth"}),
    )
    """Blackwell Ultra in an HGX or DGX server: more memory and fp4, at the cost of int8 and fp64.
    270 GB usable of the 288 GB announced. MXFP4 is assumed to run as NVFP4 does. PCIe 6.0 x16
    to the network card; the link from there to the processor may be half as fast."""

    B200_Limited = replace(
        B200,
        name="NVIDIA B200 SXM 180GB (power limited)",
        estimated=B200.estimated | {"compute", "tdp"},
    )
    """A B200 with an unpublished power limit (torchao's runs): its rates and its power are at most
    the B200's."""

    GB200 = Accelerator(
        name="NVIDIA GB200 186GB (one GPU)",
        release_year=2025,
        generation="blackwell",
        compute=rates(
            fp64=40,
            fp32=80,
            tf32=1250,
            fp16=2500,
            bf16=2500,
            fp8=5000,
            int8=5000,
            fp4=10_000,
            mxfp4=10_000,
        ),
        memory=Memory(capacity=Q_(186, "GB"), bandwidth=Q_(8, "TB/s"), reported=Q_(189_471, "MiB")),
        tdp=Q_(1200, "W"),
        interconnect_bandwidth=Q_(900, "GB/s"),
        source=cite("ml_engineering_memory"),
        field_sources={
            "release_year": cite("b200"),
            "memory.reported": cite("gb200_aic"),
            "compute": cite("gb200_aic"),
            "compute.mxfp4": cite("mxfp4_rate"),
            "compute.fp64": cite("blackwell_table"),
            "compute.fp32": cite("blackwell_table"),
            "compute.tf32": cite("ml_engineering_rates"),
            "tdp": cite("ml_engineering_power"),
            "interconnect_bandwidth": cite("ml_engineering_links"),
        },
    )
    """One of the two Blackwell GPUs of a GB200 superchip, a tenth faster than a B200. The processor
    is connected over NVLink-C2C, with an unpublished rate per GPU and direction."""

    GB300 = Accelerator(
        name="NVIDIA GB300 279GB (one GPU)",
        release_year=2025,
        generation="blackwell",
        compute=rates(
            fp64=1.39,
            fp32=80,
            tf32=1250,
            fp16=2500,
            bf16=2500,
            fp8=5000,
            int8=165,
            fp4=15_000,
            mxfp4=15_000,
        ),
        memory=Memory(capacity=Q_(279, "GB"), bandwidth=Q_(8, "TB/s"), reported=Q_(284_208, "MiB")),
        tdp=Q_(1400, "W"),
        interconnect_bandwidth=Q_(900, "GB/s"),
        source=cite("ultra_verda"),
        field_sources={
            "release_year": cite("gb300_launch"),
            "memory.reported": cite("gb300_aic"),
            "compute.fp64": cite("ultra_toms"),
            "compute.mxfp4": cite("assumption"),
        },
        estimated=frozenset({"compute.mxfp4"}),
    )
    """One of the two Blackwell Ultra GPUs of a GB300 superchip. 279 GB usable of the 288 GB
    announced. MXFP4 is assumed to run as NVFP4 does."""
