"""Accelerators of Amazon, Huawei and Intel, and Google's small TPU."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Memory, cite
from mlsysim.core.units import Q_
from mlsysim.registry.hardware.rates import rates


class AmazonIntel(Catalog):
    """Amazon, Huawei, Intel, and TPU v5e."""

    TPUv5e = Accelerator(
        name="Google TPU v5e",
        release_year=2023,
        generation="tpu_v5e",
        compute=rates(bf16=197, int8=393),
        memory=Memory(capacity=Q_(16, "GiB"), bandwidth=Q_(819, "GB/s")),
        tdp=Q_(200, "W"),
        interconnect_bandwidth=Q_(200, "GB/s"),
        source=cite("cloud_tpu_v5e"),
        field_sources={"release_year": cite("assumption"), "tdp": cite("assumption")},
        estimated=frozenset({"release_year", "tdp"}),
    )
    """One chip of a 2D torus: four inter-chip links of 50 GB/s per direction. Google publishes no
    power; the estimate is that of a TPU v4."""

    Ascend_950DT = Accelerator(
        name="Huawei Ascend 950DT",
        release_year=2026,
        generation="ascend_950",
        compute=rates(fp16=486, bf16=486, fp8=919, mxfp4=1783),
        memory=Memory(capacity=Q_(96, "GiB"), bandwidth=Q_(4000, "GB/s")),
        interconnect_bandwidth=Q_(840, "GB/s"),
        source=cite("bekman_rates"),
        field_sources={
            "release_year": cite("assumption"),
            "memory": cite("bekman_memory"),
            "interconnect_bandwidth": cite("bekman_links"),
        },
        estimated=frozenset({"release_year"}),
    )
    """A 64th of Huawei's rates for an Atlas 950 of 64 chips. Whether it ships is not confirmed, and
    its power is not published."""

    Trainium1 = Accelerator(
        name="AWS Trainium",
        release_year=2022,
        generation="trainium1",
        compute=rates(bf16=191),
        memory=Memory(capacity=Q_(32, "GiB"), bandwidth=Q_(800, "GB/s")),
        interconnect_bandwidth=Q_(192, "GB/s"),
        source=cite("trainium2"),
        field_sources={
            "release_year": cite("assumption"),
            "interconnect_bandwidth": cite("assumption"),
        },
        estimated=frozenset({"interconnect_bandwidth", "release_year"}),
    )
    """Two cores per chip, and 16 chips in a server. AWS states 384 GB/s of NeuronLink per chip,
    assumed to count both directions, and no power."""

    Trainium2 = Accelerator(
        name="AWS Trainium2",
        release_year=2024,
        generation="trainium2",
        compute=rates(fp32=181, tf32=667, fp16=667, bf16=667, fp8=1299),
        memory=Memory(capacity=Q_(96, "GiB"), bandwidth=Q_(2900, "GB/s")),
        tdp=Q_(500, "W"),
        interconnect_bandwidth=Q_(640, "GB/s"),
        source=cite("trainium2"),
        field_sources={
            "release_year": cite("assumption"),
            "tdp": cite("assumption"),
            "interconnect_bandwidth": cite("bekman_links"),
        },
        estimated=frozenset({"release_year", "tdp"}),
    )
    """Eight cores per chip, and 16 chips in the 2D torus of a server. AWS publishes no power."""

    Trainium3 = Accelerator(
        name="AWS Trainium3",
        release_year=2025,
        generation="trainium3",
        compute=rates(fp32=183, tf32=671, fp16=671, bf16=671, fp8=2517, fp4=2517, mxfp4=2517),
        memory=Memory(capacity=Q_(144, "GiB"), bandwidth=Q_(4900, "GB/s")),
        tdp=Q_(1000, "W"),
        interconnect_bandwidth=Q_(1280, "GB/s"),
        source=cite("trainium3"),
        field_sources={"tdp": cite("assumption")},
        estimated=frozenset({"interconnect_bandwidth", "tdp"}),
    )
    """Eight cores per chip. Its fp8 and fp4 are the block formats MXFP8 and MXFP4, at the same
    rate. AWS publishes no power."""

    Max_1550 = Accelerator(
        name="Intel Data Center GPU Max 1550",
        release_year=2023,
        generation="xe_hpc",
        compute=rates(fp64=52.4, fp32=52.4, tf32=419.4, fp16=838.9, bf16=838.9, int8=1677.7),
        memory=Memory(capacity=Q_(128, "GiB"), bandwidth=Q_(3276.8, "GB/s")),
        tdp=Q_(600, "W"),
        host_bandwidth=Q_(64, "GB/s"),
        source=cite("max_1550"),
        field_sources={
            "release_year": cite("assumption"),
            "compute": cite("assumption"),
            "host_bandwidth": cite("assumption"),
        },
        estimated=frozenset({"compute", "host_bandwidth", "release_year"}),
    )
    """Ponte Vecchio. The row is the card with two stacks of 64 cores each. Rates are those of 128
    cores at the highest clock, 1.6 GHz (in 16 bits, 4,096 operations per clock and core); measured
    GEMMs reach a third of them."""

    Gaudi2 = Accelerator(
        name="Intel Gaudi 2",
        release_year=2022,
        generation="gaudi2",
        compute=rates(bf16=432, fp8=865),
        memory=Memory(capacity=Q_(96, "GiB"), bandwidth=Q_(2460, "GB/s")),
        tdp=Q_(600, "W"),
        interconnect_bandwidth=Q_(300, "GB/s"),
        source=cite("bekman_rates"),
        field_sources={
            "release_year": cite("bekman_memory"),
            "memory": cite("bekman_memory"),
            "tdp": cite("bekman_power"),
            "interconnect_bandwidth": cite("bekman_links"),
        },
    )
    """Two matrix engines and 24 Ethernet ports of 100 Gbit/s, 21 of them to the seven peers of a
    server. Other formats have no published rate."""

    Gaudi3 = Accelerator(
        name="Intel Gaudi 3",
        release_year=2024,
        generation="gaudi3",
        compute=rates(fp32=229, tf32=459, bf16=1677, fp8=1677),
        memory=Memory(capacity=Q_(128, "GiB"), bandwidth=Q_(3700, "GB/s")),
        tdp=Q_(900, "W"),
        interconnect_bandwidth=Q_(600, "GB/s"),
        source=cite("bekman_rates"),
        field_sources={
            "release_year": cite("bekman_memory"),
            "memory": cite("bekman_memory"),
            "tdp": cite("bekman_power"),
            "interconnect_bandwidth": cite("bekman_links"),
        },
    )
    """Eight matrix engines at the shipped clock of 1,600 MHz (the white paper states 1,750), with
    the same rate in bf16 and fp8, and 24 Ethernet ports of 200 Gbit/s."""
