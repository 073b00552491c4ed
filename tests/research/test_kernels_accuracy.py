"""Predicted against measured kernels: errors on rows that no constant was fitted to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mlsysim.registry.catalogs import LinkCalibrations, ProductCalibrations
from mlsysim.validation import Statistics
from research.readers.kernels import collective_of, collective_time, constants_of
from research.rows import Row, Skip, read_rows

DATA = Path(__file__).parents[2] / "research/measurements/kernels.csv"
ROWS = {row.name: row for row in read_rows(DATA)}
MIB = 2**20


@pytest.fixture(scope="module")
def check(report_on):
    return report_on("kernels", "check")


def family(row: Row) -> str:
    """Kernel and, of collectives, whether the message is a large one."""
    if row.group == "gemm_sweep":
        return f"product in {row.text('dtype')}"
    if row.group != "nccl_latency_sweep":
        return row.group
    size = "large" if 2 * (row.number("m") or 0) > MIB else "small"
    return f"{size} {row.text('op')}"


@pytest.mark.parametrize(
    ("name", "least", "bound"),
    [
        ("product in bfloat16", 58, 8),
        ("product in fp8", 52, 8),
        ("large all_reduce", 16, 9),
        ("large all_gather", 12, 10),
        ("large reduce_scatter", 19, 14),
        ("large alltoall", 12, 13),
        ("small all_reduce", 6, 16),
        ("small all_gather", 9, 11),
        ("small reduce_scatter", 11, 15),
        ("small alltoall", 11, 18),
        ("nccl_busbw", 6, 6),
        # The best of thousands of shapes, which a mean over shapes cannot reach
        ("max_achievable_matmul", 3, 17),
    ],
)
def test_error_of_a_family(check, name, least, bound):
    rows = [row for row in check.comparisons if family(ROWS[row.id]) == name]
    assert len(rows) >= least
    assert Statistics.of(rows).mape <= bound


def test_products_are_not_biased(check):
    found = check.groups["gemm_sweep"]
    assert abs(found.bias) < 2
    assert found.median_ape < 6


def test_what_has_no_constants_is_passed_over_with_a_reason(check):
    assert {name.split("_")[1] for name, _ in check.skipped} <= {"mi300x", "A100-PCIe", "MI300X"}
    reasons = ("no constants for", "is not in the registry; known: V100,")
    assert all(any(words in reason for words in reasons) for _, reason in check.skipped)


@pytest.mark.parametrize("name", ProductCalibrations.names())
def test_shares_of_products_are_physical(name):
    row = ProductCalibrations[name]
    assert 0.5 <= row.efficiency < 0.9
    assert 0.75 <= row.memory_efficiency < 0.95
    assert 3 <= row.overhead.to("us").magnitude < 20
    assert row.source.url.startswith("https://")


@pytest.mark.parametrize("name", LinkCalibrations.names())
def test_shares_of_links_are_physical(name):
    row = LinkCalibrations[name]
    assert 0.7 <= row.link_efficiency < 0.85
    assert 0.3 <= row.hop_latency.to("us").magnitude < 1
    assert row.switch_efficiency is None or 0.55 <= row.switch_efficiency < 0.75


def test_the_switch_wins_where_many_ranks_share_a_large_message():
    message = collective_of(ROWS["mleng_8xH200_8_NCCL"])
    constants = constants_of(LinkCalibrations.NVLink4)

    def time(algorithm: str, ranks: int) -> float:
        return float(collective_time(replace(message, algorithm=algorithm, ranks=ranks), constants))

    assert time("", 8) == time("switch", 8) < time("ring", 8)
    assert time("", 2) == time("ring", 2) < time("switch", 2)


def test_an_unknown_collective_is_passed_over():
    message = replace(collective_of(ROWS["mleng_8xH200_8_NCCL"]), operation="scan")
    with pytest.raises(Skip, match="scan"):
        collective_time(message, constants_of(LinkCalibrations.NVLink4))


def test_the_registry_is_what_the_fit_finds():
    pytest.importorskip("scipy")
    from research.fits.kernels import link_fits, product_fits

    micro = {"overhead", "start", "hop_latency", "segment_time", "switch_start"}
    fits = product_fits() + link_fits()
    assert len(fits) == len(ProductCalibrations.names()) + len(LinkCalibrations.names())
    for fit in fits:
        row = (LinkCalibrations if fit.key.startswith("NVLink") else ProductCalibrations)[fit.key]
        for name, value in fit.constants.items():
            held = row.si(name)
            if value != value:
                assert held != held
                continue
            assert held == pytest.approx(value, rel=6e-3), (fit.key, name, name in micro)
        assert f"fitted to {fit.rows} rows" in row.source.note
