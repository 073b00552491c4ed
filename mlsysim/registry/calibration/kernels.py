"""Calibrations of single kernels, fitted to published times of matrix products and collectives.

``python -m research.fits.kernels`` fits the constants to the rows marked ``calibrate`` in
``research/measurements/kernels.csv`` and prints them. NVIDIA measured the times with cuBLAS and
NCCL, one kernel after the other, on idle devices; training steps are slower and have their own
constants.
"""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import LinkCalibration, ProductCalibration, Source
from mlsysim.core.units import Q_

__all__ = ["LinkCalibrations", "ProductCalibrations"]


def _fitted(rows: int, on: str) -> Source:
    return Source(
        title="NVIDIA, aiconfigurator, measured kernel times",
        url="https://github.com/ai-dynamo/aiconfigurator",
        locator=on,
        checked="2026-11-20",
        note=f"fitted to {rows} rows marked calibrate in research/measurements/kernels.csv",
    )


def _product(
    name: str,
    precision: str,
    rows: int,
    *,
    efficiency: float,
    memory_efficiency: float,
    overhead: float,
) -> ProductCalibration:
    return ProductCalibration(
        name=name,
        source=_fitted(rows, "matrix products of 1 to 8,192 rows"),
        precision=precision,
        efficiency=efficiency,
        memory_efficiency=memory_efficiency,
        overhead=Q_(overhead, "us"),
    )


class ProductCalibrations(Catalog):
    """Matrix products: one row per device and number format."""

    A100_bf16 = _product(
        "A100, BF16",
        "bf16",
        38,
        efficiency=0.834,
        memory_efficiency=0.815,
        overhead=10.7,
    )
    """cuBLAS on A100 in 16 bits."""

    B200_bf16 = _product(
        "B200, BF16",
        "bf16",
        30,
        efficiency=0.687,
        memory_efficiency=0.824,
        overhead=5.22,
    )
    """cuBLAS on B200 in 16 bits."""

    B200_fp8 = _product(
        "B200, FP8",
        "fp8",
        29,
        efficiency=0.538,
        memory_efficiency=0.866,
        overhead=17.1,
    )
    """cuBLAS on B200 in 8 bits; the overhead includes the conversion of the input."""

    H100_bf16 = _product(
        "H100, BF16",
        "bf16",
        30,
        efficiency=0.786,
        memory_efficiency=0.851,
        overhead=4.3,
    )
    """cuBLAS on H100 in 16 bits."""

    H100_fp8 = _product(
        "H100, FP8",
        "fp8",
        34,
        efficiency=0.607,
        memory_efficiency=0.862,
        overhead=15.7,
    )
    """cuBLAS on H100 in 8 bits; the overhead includes the conversion of the input."""

    H200_bf16 = _product(
        "H200, BF16",
        "bf16",
        28,
        efficiency=0.803,
        memory_efficiency=0.914,
        overhead=6.03,
    )
    """cuBLAS on H200 in 16 bits."""

    H200_fp8 = _product(
        "H200, FP8",
        "fp8",
        32,
        efficiency=0.623,
        memory_efficiency=0.845,
        overhead=14.1,
    )
    """cuBLAS on H200 in 8 bits; the overhead includes the conversion of the input."""


def _link(
    name: str,
    rows: int,
    *,
    link_efficiency: float,
    start: float,
    hop_latency: float,
    segment_time: float,
    switch_efficiency: float | None = None,
    switch_start: float | None = None,
) -> LinkCalibration:
    return LinkCalibration(
        name=name,
        source=_fitted(
            rows,
            "all-reduce, reduce-scatter, all-gather and all-to-all of 2 KiB to 512 MiB; with bus "
            "bandwidths of S. Bekman, Machine Learning Engineering Open Book, network",
        ),
        link_efficiency=link_efficiency,
        start=Q_(start, "us"),
        hop_latency=Q_(hop_latency, "us"),
        segment_time=Q_(segment_time, "us"),
        switch_efficiency=switch_efficiency,
        switch_start=None if switch_start is None else Q_(switch_start, "us"),
    )


class LinkCalibrations(Catalog):
    """Collectives of NCCL within a server: one row per generation of NVLink."""

    NVLink3 = _link(
        "NVLink 3, NCCL",
        49,
        link_efficiency=0.736,
        start=9.98,
        hop_latency=0.653,
        segment_time=7.37,
    )
    """A100 servers. The switch cannot compute."""

    NVLink4 = _link(
        "NVLink 4, NCCL",
        102,
        link_efficiency=0.757,
        start=5.42,
        hop_latency=0.559,
        segment_time=2.6,
        switch_efficiency=0.71,
        switch_start=42.8,
    )
    """H100 and H200 servers, which have the same links and switches."""

    NVLink5 = _link(
        "NVLink 5, NCCL",
        54,
        link_efficiency=0.765,
        start=9.42,
        hop_latency=0.749,
        segment_time=7.13,
        switch_efficiency=0.603,
        switch_start=32.2,
    )
    """Servers of B200."""
