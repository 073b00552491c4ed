"""Cloud: data center accelerators."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Memory, cite
from mlsysim.core.units import Q_
from mlsysim.registry.hardware import blackwell, cards, hopper, other_makers
from mlsysim.registry.hardware.rates import rates


class OtherMakers(Catalog):
    """AMD and Google."""

    MI300X = Accelerator(
        name="AMD Instinct MI300X",
        release_year=2023,
        generation="cdna3",
        compute=rates(
            fp64=163.4, fp32=163.4, tf32=653.7, fp16=1307.4, bf16=1307.4, fp8=2614.9, int8=2614.9
        ),
        memory=Memory(
            capacity=Q_(192, "GB"), bandwidth=Q_(5.3, "TB/s"), reported=Q_(205_822_885_888, "byte")
        ),
        tdp=Q_(750, "W"),
        interconnect_bandwidth=Q_(448, "GB/s"),
        host_bandwidth=Q_(64, "GB/s"),
        unit_price=Q_(15000, "USD"),
        source=cite("amd_mi300"),
        field_sources={
            "release_year": cite("mi300x"),
            "memory.reported": cite("mi300x_reported_memory"),
            "memory.capacity": cite("ml_engineering_memory"),
            "tdp": cite("ml_engineering_power"),
            "interconnect_bandwidth": cite("ml_engineering_links"),
            "unit_price": cite("listed_prices"),
        },
        estimated=frozenset({"unit_price"}),
    )
    """CDNA 3, eight compute dies on one package. Seven Infinity Fabric links of 64 GB/s each lead
    to seven peers, so the rate to a single peer is 64 GB/s. The power is the peak power."""

    MI250 = Accelerator(
        name="AMD Instinct MI250",
        release_year=2021,
        generation="cdna2",
        compute=rates(fp64=90.5, fp32=90.5, fp16=362.1, bf16=362.1, int8=362.1),
        memory=Memory(capacity=Q_(128, "GiB"), bandwidth=Q_(3276.8, "GB/s")),
        tdp=Q_(560, "W"),
        interconnect_bandwidth=Q_(300, "GB/s"),
        host_bandwidth=Q_(32, "GB/s"),
        source=cite("mi250"),
        field_sources={
            "release_year": cite("mi250_year"),
            "interconnect_bandwidth": cite("mi250_links"),
            "host_bandwidth": cite("assumption"),
        },
        estimated=frozenset({"host_bandwidth"}),
    )
    """CDNA 2. The row is the whole card: two dies, each with half of everything, which programs see
    as two devices. Six Infinity Fabric links of 50 GB/s each leave the card."""

    MI325X = Accelerator(
        name="AMD Instinct MI325X",
        release_year=2024,
        generation="cdna3",
        compute=MI300X.compute,
        memory=Memory(capacity=Q_(256, "GiB"), bandwidth=Q_(6, "TB/s")),
        tdp=Q_(1000, "W"),
        interconnect_bandwidth=Q_(448, "GB/s"),
        host_bandwidth=Q_(64, "GB/s"),
        source=cite("mi325x"),
        field_sources={
            "compute": cite("amd_mi300"),
            "memory.capacity": cite("rocm_specs"),
            "interconnect_bandwidth": cite("ml_engineering_links"),
            "host_bandwidth": cite("amd_mi300"),
        },
    )
    """The MI300X's dies at the same clock, with more and faster memory and more power."""

    MI350X = Accelerator(
        name="AMD Instinct MI350X",
        release_year=2025,
        generation="cdna4",
        compute=rates(
            fp32=144.2, fp16=2306.9, bf16=2306.9, fp8=4613.7, int8=4613.7, fp4=9227.5, mxfp4=9227.5
        ),
        memory=Memory(capacity=Q_(288, "GiB"), bandwidth=Q_(8, "TB/s")),
        tdp=Q_(1000, "W"),
        interconnect_bandwidth=Q_(535.5, "GB/s"),
        host_bandwidth=Q_(64, "GB/s"),
        source=cite("cdna4"),
        field_sources={
            "compute": cite("cdna4_units"),
            "compute.fp32": cite("cdna4_rates"),
            "compute.int8": cite("cdna4_rates"),
            "compute.mxfp4": cite("cdna4_rates"),
            "memory.capacity": cite("rocm_specs"),
            "interconnect_bandwidth": cite("cdna4_links"),
            "host_bandwidth": cite("mlperf_mi355x"),
        },
    )
    """CDNA 4, air-cooled. Seven Infinity Fabric links of 76.5 GB/s each. Its 4-bit format is MXFP4;
    `fp4` has the same rate, because published runs use that label."""

    MI355X = Accelerator(
        name="AMD Instinct MI355X",
        release_year=2025,
        generation="cdna4",
        compute=rates(
            fp32=157.3,
            fp16=2516.6,
            bf16=2516.6,
            fp8=5033.2,
            int8=5033.2,
            fp4=10_066.3,
            mxfp4=10_066.3,
        ),
        memory=Memory(capacity=Q_(288, "GiB"), bandwidth=Q_(8, "TB/s")),
        tdp=Q_(1400, "W"),
        interconnect_bandwidth=Q_(535.5, "GB/s"),
        host_bandwidth=Q_(64, "GB/s"),
        source=cite("cdna4"),
        field_sources={
            "compute": cite("cdna4_units"),
            "compute.fp32": cite("cdna4_rates"),
            "compute.int8": cite("cdna4_rates"),
            "compute.mxfp4": cite("cdna4_rates"),
            "memory.capacity": cite("rocm_specs"),
            "interconnect_bandwidth": cite("cdna4_links"),
            "host_bandwidth": cite("mlperf_mi355x"),
        },
    )
    """The liquid-cooled MI350X, with a clock about 10% higher."""

    MI455X = Accelerator(
        name="AMD Instinct MI455X",
        release_year=2026,
        generation="cdna5",
        compute=rates(
            fp64=5, fp32=315, fp16=5000, bf16=5000, fp8=20100, int8=5000, fp4=40300, mxfp4=40300
        ),
        memory=Memory(capacity=Q_(432, "GiB"), bandwidth=Q_(23300, "GB/s")),
        interconnect_bandwidth=Q_(1800, "GB/s"),
        host_bandwidth=Q_(128, "GB/s"),
        source=cite("mi455x"),
        field_sources={
            "compute.fp32": cite("cdna4_rates"),
            "compute.fp8": cite("mi455x_cycles"),
            "compute.fp4": cite("mi455x_cycles"),
        },
        estimated=frozenset({"compute.fp4", "compute.fp8", "compute.mxfp4"}),
    )
    """CDNA 5, one of the 72 GPUs of a Helios rack. fp8 and MXFP4 have four and eight times the rate
    of bf16, and int8 has the same; whether AMD's rates of 8 and 4 bits are dense is disputed. Its
    power is not published."""

    TPUv5p = Accelerator(
        name="Google TPU v5p",
        release_year=2024,
        generation="tpu_v5p",
        compute=rates(bf16=459, fp8=459, int8=918),
        memory=Memory(capacity=Q_(95, "GiB"), bandwidth=Q_(2765, "GB/s")),
        tdp=Q_(400, "W"),
        interconnect_bandwidth=Q_(600, "GB/s"),
        source=cite("cloud_tpu_v5p"),
        field_sources={
            "release_year": cite("tpu_v5p"),
            "compute.int8": cite("scaling_book_tpu"),
            "tdp": cite("assumption"),
        },
        estimated=frozenset({"tdp"}),
    )
    """One chip of a 3D torus: six inter-chip links of 100 GB/s per direction. fp8 runs at the bf16
    rate. Google publishes no power; the estimate is an A100's, which has similar throughput.
    """

    TPUv4 = Accelerator(
        name="Google TPU v4",
        release_year=2021,
        generation="tpu_v4",
        compute=rates(bf16=275, int8=275),
        memory=Memory(capacity=Q_(32, "GiB"), bandwidth=Q_(1200, "GB/s")),
        tdp=Q_(192, "W"),
        interconnect_bandwidth=Q_(300, "GB/s"),
        source=cite("cloud_tpu_v4"),
        field_sources={
            "release_year": cite("assumption"),
            "interconnect_bandwidth": cite("assumption"),
        },
        estimated=frozenset({"interconnect_bandwidth", "release_year"}),
    )
    """One chip of a 3D torus: six inter-chip links, assumed to be half as fast as the v5p's. The
    power is the highest measured by Google; the mean is 170 W."""

    TPUv6e = Accelerator(
        name="Google TPU v6e (Trillium)",
        release_year=2024,
        generation="tpu_v6e",
        compute=rates(bf16=918, fp8=918, int8=1836),
        memory=Memory(capacity=Q_(32, "GiB"), bandwidth=Q_(1638, "GB/s")),
        tdp=Q_(310, "W"),
        interconnect_bandwidth=Q_(400, "GB/s"),
        source=cite("cloud_tpu_v6e"),
        field_sources={
            "release_year": cite("tpu_v6e"),
            "compute.fp8": cite("cloud_tpu_v7x"),
            "memory.capacity": cite("cloud_tpu_v7x"),
            "tdp": cite("assumption"),
        },
        estimated=frozenset({"tdp"}),
    )
    """One chip of a 2D torus: four inter-chip links of 100 GB/s per direction. fp8 runs at the bf16
    rate. Google publishes no power; the estimate is from secondary sources."""

    TPUv7x = Accelerator(
        name="Google TPU7x (Ironwood)",
        release_year=2025,
        generation="tpu_v7x",
        compute=rates(bf16=2307, fp8=4614),
        memory=Memory(capacity=Q_(192, "GiB"), bandwidth=Q_(7380, "GB/s")),
        tdp=Q_(1000, "W"),
        interconnect_bandwidth=Q_(600, "GB/s"),
        source=cite("cloud_tpu_v7x"),
        field_sources={"release_year": cite("tpu_v7x"), "tdp": cite("assumption")},
        estimated=frozenset({"tdp"}),
    )
    """One chip of a 3D torus, which programs see as two devices: six inter-chip links of 100 GB/s
    per direction. Google publishes no power; the estimate is a B200's, which has similar
    throughput.
    """

    TPU8t = Accelerator(
        name="Google TPU 8t",
        release_year=2026,
        generation="tpu_8t",
        compute=rates(bf16=996.1, fp8=5976.9, int8=996.1, fp4=12600, int4=11953.8),
        memory=Memory(capacity=Q_(216, "GiB"), bandwidth=Q_(6528, "GB/s")),
        interconnect_bandwidth=Q_(1200, "GB/s"),
        host_bandwidth=Q_(64, "GB/s"),
        source=cite("tpu8_blog"),
        field_sources={
            "compute": cite("jax_tpu"),
            "compute.fp4": cite("tpu8_blog"),
            "memory.capacity": cite("jax_tpu"),
        },
    )
    """For training: one of the 9,600 chips of a 3D torus, with PCIe 5.0 x16 to the host. fp8 is six
    times as fast as bf16. Google publishes no power."""

    TPU8i = Accelerator(
        name="Google TPU 8i",
        release_year=2026,
        generation="tpu_8i",
        compute=rates(bf16=1101, fp8=8808, fp4=10100),
        memory=Memory(capacity=Q_(288, "GiB"), bandwidth=Q_(8601, "GB/s")),
        interconnect_bandwidth=Q_(1200, "GB/s"),
        source=cite("tpu8_blog"),
        field_sources={
            "compute": cite("jax_tpu"),
            "compute.fp4": cite("tpu8_blog"),
            "memory.capacity": cite("jax_tpu"),
        },
    )
    """For serving: one of the 1,152 chips of a pod. fp8 is eight times as fast as bf16. Google
    publishes no power."""


class Cloud(hopper.Hopper, blackwell.Blackwell, cards.Cards, OtherMakers, other_makers.AmazonIntel):
    """Data center accelerators."""
