"""NVIDIA's Blackwell generation, with usable capacities."""

from dataclasses import replace

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Compute, Memory, cite
from mlsysim.core.units import Q_


class Blackwell(Catalog):
    """Blackwell and Blackwell Ultra."""

    B200 = Accelerator(
        name="NVIDIA B200 SXM 180GB",
        release_year=2025,
        generation="blackwell",
        compute=Compute(
            fp64=Q_(37, "TFLOP/s"),
            fp32=Q_(75, "TFLOP/s"),
            tf32=Q_(1125, "TFLOP/s"),
            fp16=Q_(2250, "TFLOP/s"),
            bf16=Q_(2250, "TFLOP/s"),
            fp8=Q_(4500, "TFLOP/s"),
            int8=Q_(4500, "TOPS"),
            fp4=Q_(9000, "TFLOP/s"),
            mxfp4=Q_(9000, "TFLOP/s"),
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
        compute=Compute(
            fp64=Q_(1.25, "TFLOP/s"),
            fp32=Q_(75, "TFLOP/s"),
            tf32=Q_(1125, "TFLOP/s"),
            fp16=Q_(2250, "TFLOP/s"),
            bf16=Q_(2250, "TFLOP/s"),
            fp8=Q_(4500, "TFLOP/s"),
            int8=Q_(153.5, "TOPS"),
            fp4=Q_(13_500, "TFLOP/s"),
            mxfp4=Q_(13_500, "TFLOP/s"),
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
        compute=Compute(
            fp64=Q_(40, "TFLOP/s"),
            fp32=Q_(80, "TFLOP/s"),
            tf32=Q_(1250, "TFLOP/s"),
            fp16=Q_(2500, "TFLOP/s"),
            bf16=Q_(2500, "TFLOP/s"),
            fp8=Q_(5000, "TFLOP/s"),
            int8=Q_(5000, "TOPS"),
            fp4=Q_(10_000, "TFLOP/s"),
            mxfp4=Q_(10_000, "TFLOP/s"),
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
        compute=Compute(
            fp64=Q_(1.39, "TFLOP/s"),
            fp32=Q_(80, "TFLOP/s"),
            tf32=Q_(1250, "TFLOP/s"),
            fp16=Q_(2500, "TFLOP/s"),
            bf16=Q_(2500, "TFLOP/s"),
            fp8=Q_(5000, "TFLOP/s"),
            int8=Q_(165, "TOPS"),
            fp4=Q_(15_000, "TFLOP/s"),
            mxfp4=Q_(15_000, "TFLOP/s"),
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
