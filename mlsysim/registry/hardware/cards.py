"""NVIDIA's data center chips outside eight-GPU servers: cards, superchips, and Rubin."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Memory, cite
from mlsysim.core.units import Q_
from mlsysim.registry.hardware.rates import rates


class Cards(Catalog):
    """Cards, superchips, and announced devices."""

    L4 = Accelerator(
        name="NVIDIA L4",
        release_year=2023,
        generation="ada",
        compute=rates(fp32=30.3, fp16=121, bf16=121, fp8=242, int8=242),
        memory=Memory(capacity=Q_(24, "GB"), bandwidth=Q_(300, "GB/s"), reported=Q_(23_034, "MiB")),
        tdp=Q_(72, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("l4_aic"),
        field_sources={
            "release_year": cite("assumption"),
            "compute.fp32": cite("assumption"),
            "memory.reported": cite("reported_by_modal"),
        },
        estimated=frozenset({"compute.fp32", "release_year"}),
    )
    """Inference card (Ada) that needs only slot power."""

    L40S = Accelerator(
        name="NVIDIA L40S",
        release_year=2023,
        generation="ada",
        compute=rates(fp32=91.6, tf32=183, fp16=362.05, bf16=362.05, fp8=733, int8=733),
        memory=Memory(capacity=Q_(48, "GB"), bandwidth=Q_(864, "GB/s"), reported=Q_(46_068, "MiB")),
        tdp=Q_(350, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("l40s_aic"),
        field_sources={
            "release_year": cite("assumption"),
            "compute.fp32": cite("bekman_rates"),
            "compute.tf32": cite("bekman_rates"),
        },
        estimated=frozenset({"release_year"}),
    )
    """Card for inference and graphics (Ada), with GDDR6 and no NVLink."""

    A10G = Accelerator(
        name="NVIDIA A10G",
        release_year=2021,
        generation="ga10x",
        compute=rates(fp32=35, fp16=70, bf16=70, int8=140),
        memory=Memory(capacity=Q_(24, "GB"), bandwidth=Q_(600, "GB/s"), reported=Q_(23_028, "MiB")),
        tdp=Q_(300, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("a10g"),
        field_sources={
            "release_year": cite("assumption"),
            "compute": cite("waterline"),
            "memory.reported": cite("a10_printout"),
            "tdp": cite("waterline"),
            "host_bandwidth": cite("waterline"),
        },
        estimated=frozenset({"release_year"}),
    )
    """The card of AWS g5: the A10's chip with more power and half of its tensor rate. The size is
    the one that the A10 reports."""

    L40 = Accelerator(
        name="NVIDIA L40",
        release_year=2022,
        generation="ada",
        compute=rates(fp32=90.5, fp16=181, bf16=181, fp8=362, int8=362),
        memory=Memory(capacity=Q_(48, "GB"), bandwidth=Q_(864, "GB/s"), reported=Q_(46_068, "MiB")),
        tdp=Q_(300, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("waterline"),
        field_sources={
            "release_year": cite("assumption"),
            "memory.reported": cite("assumption"),
        },
        estimated=frozenset({"memory.reported", "release_year"}),
    )
    """The L40S with half of its tensor rate. It is assumed to report as much memory."""

    A10 = Accelerator(
        name="NVIDIA A10",
        release_year=2021,
        generation="ga10x",
        compute=rates(fp32=31.2, tf32=62.5, fp16=125, bf16=125, int8=250, int4=500),
        memory=Memory(capacity=Q_(24, "GB"), bandwidth=Q_(600, "GB/s"), reported=Q_(23_028, "MiB")),
        tdp=Q_(150, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("waterline"),
        field_sources={
            "release_year": cite("assumption"),
            "memory.reported": cite("a10_printout"),
        },
        estimated=frozenset({"release_year"}),
    )
    """Inference card (Ampere) with GDDR6."""

    A30 = Accelerator(
        name="NVIDIA A30",
        release_year=2021,
        generation="ampere",
        compute=rates(fp64=10.3, fp32=10.3, tf32=82, fp16=165, bf16=165, int8=330, int4=661),
        memory=Memory(capacity=Q_(24, "GiB"), bandwidth=Q_(933, "GB/s")),
        tdp=Q_(165, "W"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("a30"),
        field_sources={
            "release_year": cite("assumption"),
            "compute.fp64": cite("assumption"),
            "compute.fp32": cite("assumption"),
            "compute.tf32": cite("assumption"),
            "compute.int4": cite("assumption"),
        },
        estimated=frozenset(
            {"compute.fp32", "compute.fp64", "compute.int4", "compute.tf32", "release_year"}
        ),
    )
    """About half of an A100, with HBM2. Rates that the source lacks are from others."""

    A40 = Accelerator(
        name="NVIDIA A40",
        release_year=2020,
        generation="ga10x",
        compute=rates(fp32=37.4, fp16=149.7, bf16=149.7, int8=299.3),
        memory=Memory(capacity=Q_(48, "GB"), bandwidth=Q_(696, "GB/s"), reported=Q_(46_068, "MiB")),
        tdp=Q_(300, "W"),
        interconnect_bandwidth=Q_(56.25, "GB/s"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("waterline"),
        field_sources={
            "release_year": cite("assumption"),
            "memory.reported": cite("assumption"),
        },
        estimated=frozenset({"memory.reported", "release_year"}),
    )
    """Card for graphics and inference (Ampere); a bridge joins two. It is assumed to report as
    much memory as an L40S."""

    RTX_PRO_6000 = Accelerator(
        name="NVIDIA RTX PRO 6000 Blackwell Server Edition",
        release_year=2025,
        generation="blackwell_rtx",
        compute=rates(
            fp32=120, fp16=467.8, bf16=467.8, fp8=935.6, int8=935.6, fp4=1871.2, mxfp4=1871.2
        ),
        memory=Memory(
            capacity=Q_(96, "GB"), bandwidth=Q_(1597, "GB/s"), reported=Q_(97_887, "MiB")
        ),
        tdp=Q_(600, "W"),
        host_bandwidth=Q_(64, "GB/s"),
        source=cite("rtx_pro_6000_aic"),
        field_sources={
            "release_year": cite("rtx_pro_6000_launch"),
            "compute.fp32": cite("rtx_pro_6000_page"),
            "compute.mxfp4": cite("mxfp4_rate"),
            "memory.bandwidth": cite("rtx_pro_6000_page"),
        },
    )
    """Card with the graphics chip of the Blackwell generation, which differs from the B200's chip.
    Its memory is slower than that of the Workstation Edition, 1,792 GB/s."""

    H100_NVL = Accelerator(
        name="NVIDIA H100 NVL 94GB",
        release_year=2023,
        generation="hopper",
        compute=rates(
            fp64=60, fp32=60, tf32=417.5, fp16=835.5, bf16=835.5, fp8=1670.5, int8=1670.5
        ),
        memory=Memory(capacity=Q_(94, "GiB"), bandwidth=Q_(3900, "GB/s")),
        tdp=Q_(400, "W"),
        interconnect_bandwidth=Q_(300, "GB/s"),
        host_bandwidth=Q_(64, "GB/s"),
        source=cite("h100_nvl"),
        field_sources={
            "release_year": cite("assumption"),
            "memory.capacity": cite("h100_nvl_memory"),
        },
        estimated=frozenset({"release_year"}),
    )
    """The H100 as a card with HBM3, in pairs on a bridge, with the rates of the H200 NVL. The power
    can be set from 350 to 400 W."""

    GH200 = Accelerator(
        name="NVIDIA GH200 96GB",
        release_year=2023,
        generation="hopper",
        compute=rates(fp32=67, tf32=494.5, fp16=989, bf16=989, fp8=1979, int8=1979),
        memory=Memory(
            capacity=Q_(96, "GB"), bandwidth=Q_(4000, "GB/s"), reported=Q_(97_871, "MiB")
        ),
        tdp=Q_(900, "W"),
        interconnect_bandwidth=Q_(450, "GB/s"),
        host_bandwidth=Q_(450, "GB/s"),
        source=cite("bekman_rates"),
        field_sources={
            "release_year": cite("assumption"),
            "memory": cite("bekman_memory"),
            "memory.reported": cite("gh200_printout"),
            "tdp": cite("gh200_power"),
            "interconnect_bandwidth": cite("bekman_links"),
            "host_bandwidth": cite("bekman_links"),
        },
        estimated=frozenset({"release_year"}),
    )
    """A Hopper GPU with an Arm processor on one module: the host link is seven times as fast as
    PCIe. The power is that of the module."""

    GH200_HBM3e = Accelerator(
        name="NVIDIA GH200 141GB (HBM3e)",
        release_year=2024,
        generation="hopper",
        compute=GH200.compute,
        memory=Memory(capacity=Q_(141, "GiB"), bandwidth=Q_(4800, "GB/s")),
        tdp=Q_(900, "W"),
        interconnect_bandwidth=Q_(450, "GB/s"),
        host_bandwidth=Q_(450, "GB/s"),
        source=cite("bekman_rates"),
        field_sources={
            "release_year": cite("assumption"),
            "memory": cite("bekman_memory"),
            "tdp": cite("gh200_power"),
            "interconnect_bandwidth": cite("bekman_links"),
            "host_bandwidth": cite("bekman_links"),
        },
        estimated=frozenset({"release_year"}),
    )
    """The later GH200. NVIDIA announces 144 GB."""

    Rubin = Accelerator(
        name="NVIDIA Rubin",
        release_year=2026,
        generation="rubin",
        compute=rates(
            fp32=130, tf32=2000, fp16=4000, bf16=4000, fp8=17500, int8=250, fp4=35000, mxfp4=35000
        ),
        memory=Memory(capacity=Q_(288, "GiB"), bandwidth=Q_(22000, "GB/s")),
        tdp=Q_(1800, "W"),
        interconnect_bandwidth=Q_(1800, "GB/s"),
        source=cite("rubin"),
        field_sources={
            "release_year": cite("rubin_launch"),
            "compute.int8": cite("rubin_hgx"),
            "compute.mxfp4": cite("assumption"),
            "tdp": cite("assumption"),
            "interconnect_bandwidth": cite("bekman_links"),
        },
        estimated=frozenset({"compute", "memory", "tdp"}),
    )
    """One of the 72 GPUs of a Vera Rubin NVL72; the first racks ran in September 2026. NVIDIA calls
    its figures preliminary, and states 50 petaflops in fp4 for inference with sparse activations.
    MXFP4 is assumed to run as NVFP4 does. The power is not disclosed."""
