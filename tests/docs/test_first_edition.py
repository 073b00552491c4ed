"""What the first edition printed: the page's tables, and arithmetic in plain numbers."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tools.pages.pages import INLINE, Cell, Text, read_page

PAGE = Path("docs/concepts/first-edition.qmd")
Tables = dict[str, list[list[str]]]

# As printed
BASELINE = ["2429.3 ms", "3047.74 ms", "0.00 ms", "5477.0 ms", "44.4%", "47"]
FABRICS = {
    "100GbE": ["12 GB / s", "3047.74 ms", "44.4%"],
    "IB HDR": ["25 GB / s", "1677.20 ms", "59.2%"],
    "IB NDR": ["50 GB / s", "993.14 ms", "71.0%"],
}
PIPELINES = {
    (1, 1): ["0.0%", "0.0 ms", "44.4%"],
    (2, 1): ["50.0%", "1325.0 ms", "38.2%"],
    (2, 4): ["20.0%", "530.0 ms", "43.2%"],
    (2, 16): ["5.9%", "155.9 ms", "46.0%"],
    (4, 1): ["75.0%", "2318.4 ms", "37.7%"],
    (4, 4): ["42.9%", "1324.8 ms", "43.0%"],
    (4, 16): ["15.8%", "488.1 ms", "48.6%"],
    (8, 1): ["87.5%", "3477.0 ms", "40.2%"],
    (8, 4): ["63.6%", "2528.7 ms", "44.5%"],
    (8, 16): ["30.4%", "1209.4 ms", "52.2%"],
}
# Bytes per second and seconds
LINKS = {"100GbE": (12.5e9, 50e-6), "IB HDR": (25e9, 7e-6), "IB NDR": (50e9, 5e-6)}


@pytest.fixture(scope="module")
def tables() -> Tables:
    """Run the page; return its printed tables by label."""
    namespace: dict[str, Any] = {"__name__": "page"}
    tables: Tables = {}
    for part in read_page(PAGE, ROOT).parts:
        if isinstance(part, Text):
            for match in re.finditer(INLINE, part.text):
                eval(match[1], namespace)
            continue
        assert isinstance(part, Cell)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(part.code, f"{PAGE}:{part.line}", "exec"), namespace)
        if label := part.options.get("label"):
            tables[label] = list(body(out.getvalue()))
    return tables


def body(markdown: str) -> Iterator[list[str]]:
    """Cells of a Markdown table, row by row, without its head."""
    for line in markdown.splitlines()[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def ring(size: float, ranks: float, bandwidth: float, latency: float) -> float:
    return 2 * (ranks - 1) / ranks * size / bandwidth + 2 * (ranks - 1) * latency


def theirs(
    fabric: str = "100GbE", stages: int = 1, microbatches: int = 1
) -> tuple[float, float, float, float]:
    """Their node time, all-reduce, bubble and efficiency, in plain SI numbers."""
    weights, replicas = 70.6e9 * 2, 256 / stages
    node = weights * (1 + 0.1 * 256 / replicas) / 64e9 + 1e-5 + 80 * 3e-5
    near = 900e9, 0.5e-6
    all_reduce = (
        ring(weights, 8, *near)
        + ring(weights / 8, replicas / 8, *LINKS[fabric])
        + ring(weights / 8, 8, *near)
    )
    bubble = node * (stages - 1) / (stages - 1 + microbatches)
    return node, all_reduce, bubble, node / (node + all_reduce + bubble)


def assert_rederived(row: list[str], printed: str) -> None:
    """A row ends with what was printed, what the formulas give, and ours."""
    assert row[-3:-1] == [printed, f"{printed} ✓"]


def test_baseline(tables: Tables) -> None:
    rows = tables["tbl-baseline"]
    for row, printed in zip(rows, BASELINE, strict=True):
        assert_rederived(row, printed)
    node, all_reduce, bubble, efficiency = theirs()
    step = node + all_reduce + bubble
    plain = [
        f"{node * 1e3:.1f} ms",
        f"{all_reduce * 1e3:.2f} ms",
        f"{bubble * 1e3:.2f} ms",
        f"{step * 1e3:.1f} ms",
        f"{efficiency:.1%}",
        f"{256 / step:.0f}",
    ]
    assert plain == BASELINE


@pytest.mark.parametrize("fabric", FABRICS)
def test_fabric(fabric: str, tables: Tables) -> None:
    rows = {row[0]: row for row in tables["tbl-fabrics"]}
    names = [f"{fabric}, {what}" for what in ("BW (GB/s)", "comm overhead", "efficiency")]
    for name, printed in zip(names, FABRICS[fabric], strict=True):
        assert_rederived(rows[name], printed)
    _, all_reduce, _, efficiency = theirs(fabric)
    plain = [f"{all_reduce * 1e3:.2f} ms", f"{efficiency:.1%}"]
    assert plain == FABRICS[fabric][1:]


@pytest.mark.parametrize(
    ("label", "column"), [("tbl-bubble", 0), ("tbl-comm", 1), ("tbl-efficiency", 2)]
)
def test_pipeline_column(label: str, column: int, tables: Tables) -> None:
    rows = {(int(row[0]), int(row[1])): row for row in tables[label]}
    assert list(rows) == list(PIPELINES)
    for (stages, microbatches), row in rows.items():
        printed = PIPELINES[stages, microbatches][column]
        assert_rederived(row, printed)
        _, _, bubble, efficiency = theirs("100GbE", stages, microbatches)
        share = (stages - 1) / (stages - 1 + microbatches)
        plain = [f"{share * 100:.1f}%", f"{bubble * 1e3:.1f} ms", f"{efficiency:.1%}"]
        assert plain[column] == printed
