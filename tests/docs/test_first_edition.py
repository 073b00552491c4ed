"""What the first edition printed, and what we say instead.

The page runs here as readers see it; its tables are held against the figures that were printed,
typed in once more below, and against arithmetic of its own in plain numbers.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mlsysim import DistributedSolver, Fleet, Models, Systems
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
# What that edition's sizes and latencies give when the links are counted right (ms)
RIGHT = {"100GbE": "3287.97 ms", "IB HDR": "1917.43 ms", "IB NDR": "1233.37 ms"}
# TP 8, PP 4, 16 microbatches by hand: arithmetic, tensor, bubble, gradients, step, samples/s
BY_HAND = {
    "100GbE": ["1.754", "0.334", "0.391", "0.618", "3.10", "82.7"],
    "IB HDR": ["1.754", "0.334", "0.391", "0.309", "2.79", "91.8"],
    "IB NDR": ["1.754", "0.334", "0.391", "0.154", "2.63", "97.2"],
}

# Bytes per second and seconds: theirs, and ours
LINKS = {"100GbE": (12.5e9, 50e-6), "IB HDR": (25e9, 7e-6), "IB NDR": (50e9, 5e-6)}
OUR_LINKS = {"100GbE": (12.5e9, 50e-6), "IB HDR": (25e9, 2.7e-6), "IB NDR": (50e9, 2.7e-6)}
FABRIC_ROWS = {
    "100GbE": Systems.Fabrics.Ethernet_100G,
    "IB HDR": Systems.Fabrics.InfiniBand_HDR,
    "IB NDR": Systems.Fabrics.InfiniBand_NDR,
}


@pytest.fixture(scope="module")
def page() -> tuple[Tables, dict[str, Any]]:
    """Run the page; return its printed tables by label, and its names."""
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
    return tables, namespace


def body(markdown: str) -> Iterator[list[str]]:
    """Cells of a Markdown table, row by row, without its head."""
    for line in markdown.splitlines()[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


@pytest.fixture(scope="module")
def tables(page: tuple[Tables, dict[str, Any]]) -> Tables:
    return page[0]


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


def ours(fabric: str, **arguments: Any) -> Any:
    fleet = Fleet(name=fabric, node=Systems.DGX_H100, count=32, fabric=FABRIC_ROWS[fabric])
    return DistributedSolver.solve(
        model=Models.Llama3_70B,
        fleet=fleet,
        batch_size=256,
        seq_len=2048,
        efficiency=0.5,
        **arguments,
    )


def our_all_reduce(fabric: str, stages: int = 1) -> float:
    """Gradients of 1/stages of the model over all replicas, in plain SI numbers."""
    size, ranks, nodes = 70_553_706_496 * 2 / stages, 256 / stages, 32 / stages
    port, latency = OUR_LINKS[fabric]
    # One ring per port: a hop in eight is one between nodes.
    hop = ((ranks - nodes) * 0.6e-6 + (nodes - 1) * latency) / (ranks - 1)
    return ring(size, ranks, min(450e9, 8 * port), hop)


def our_arithmetic() -> float:
    """Forward, and twice that backward; at half of 989.4 TFLOP/s."""
    attention = 2 * 8192 * 64 * 128 + 2 * 8192 * 8 * 128
    matrix = 2 * 80 * (attention + 3 * 8192 * 28672)
    score = 2 * 2 * 80 * 64 * 128 * 2048 / 2
    logit = 2 * 128256 * 8192
    return 256 * 2048 * 3 * (matrix + score + logit) / 256 / (0.5 * 989.4e12)


def seconds(text: str) -> float:
    value, unit = text.split()
    return float(value) * {"ms": 1e-3, "s": 1.0}[unit]


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


def test_our_baseline(tables: Tables) -> None:
    arithmetic, all_reduce, bubble, step, efficiency, throughput = (
        row[-1] for row in tables["tbl-baseline"]
    )
    expected = our_arithmetic() + our_all_reduce("100GbE")
    assert seconds(arithmetic) == pytest.approx(our_arithmetic(), abs=1e-4)
    assert seconds(all_reduce) == pytest.approx(our_all_reduce("100GbE"), abs=1e-5)
    assert seconds(bubble) == 0
    assert seconds(step) == pytest.approx(expected, abs=1e-4)
    assert efficiency == f"{our_arithmetic() / expected:.1%}"
    assert throughput == f"{256 / expected:.0f}"


@pytest.mark.parametrize("fabric", FABRICS)
def test_fabric(fabric: str, tables: Tables) -> None:
    rows = {row[0]: row for row in tables["tbl-fabrics"]}
    names = [f"{fabric}, {what}" for what in ("BW (GB/s)", "comm overhead", "efficiency")]
    for name, printed in zip(names, FABRICS[fabric], strict=True):
        assert_rederived(rows[name], printed)
    _, all_reduce, _, efficiency = theirs(fabric)
    plain = [f"{all_reduce * 1e3:.2f} ms", f"{efficiency:.1%}"]
    assert plain == FABRICS[fabric][1:]
    assert seconds(rows[names[1]][-1]) == pytest.approx(our_all_reduce(fabric), abs=1e-5)


@pytest.mark.parametrize("fabric", RIGHT)
def test_right_all_reduce(fabric: str, tables: Tables) -> None:
    printed, right, mine = {row[0]: row[1:] for row in tables["tbl-all-reduce"]}[fabric]
    assert printed == FABRICS[fabric][1]
    assert right == RIGHT[fabric]
    within = 2 * (7 / 8 * 141.2e9 / 450e9 + 7 * 0.5e-6)
    plain = within + ring(141.2e9 / 8, 32, *LINKS[fabric])
    assert f"{plain * 1e3:.2f} ms" == right
    assert seconds(mine) == pytest.approx(our_all_reduce(fabric), abs=1e-5)


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


@pytest.mark.parametrize(("stages", "microbatches"), PIPELINES)
def test_our_pipeline(stages: int, microbatches: int, tables: Tables) -> None:
    def cell(label: str) -> str:
        [row] = [row for row in tables[label] if row[:2] == [str(stages), str(microbatches)]]
        return row[-1]

    # Stages pass on 2 x s x b x h bytes, forth and back; a microbatch is part of 2 sequences.
    sequences = stages / microbatches
    hop = 50e-6 + 2 * 2048 * sequences * 8192 / 12.5e9
    busy = our_arithmetic() + (2 * microbatches * hop if stages > 1 else 0)
    bubble = (stages - 1) / microbatches * busy
    assert seconds(cell("tbl-comm")) == pytest.approx(bubble, abs=1e-4)
    share = bubble / (busy + bubble)
    assert cell("tbl-bubble") == f"{share:.1%}"

    step = busy + bubble + our_all_reduce("100GbE", stages)
    r = ours("100GbE", pp_size=stages, microbatch_count=microbatches)
    assert r.step_latency_total.to("s").magnitude == pytest.approx(step, rel=1e-6)
    assert cell("tbl-efficiency") == f"{r.scaling_efficiency:.1%}"
    assert not r.feasible


@pytest.mark.parametrize("fabric", BY_HAND)
def test_reference_point(fabric: str, tables: Tables) -> None:
    rows = {row[0]: [float(cell) for cell in row[1:]] for row in tables["tbl-right"]}
    digits = [3, 3, 3, 3, 2, 1]
    values = zip(rows[f"{fabric}, by hand"], digits, strict=True)
    assert [f"{value:.{n}f}" for value, n in values] == BY_HAND[fabric]
    # Attention, latencies and transfers, which the count by hand leaves out, are small.
    by_hand, solver = rows[f"{fabric}, by hand"], rows[f"{fabric}, solver"]
    assert by_hand[4] < solver[4] < 1.025 * by_hand[4]


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": lambda q: q * 1.001},
        {"traffic_per_sequence": lambda x: x * 1.01},
        {"nvlink_bandwidth": lambda q: q * 0.999},
        {"host_bandwidth": lambda q: q * 1.001},
    ],
    ids=lambda change: next(iter(change)),
)
def test_assumptions_leave_no_room(
    change: dict[str, Callable[[Any], Any]],
    page: tuple[Tables, dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The printed digits tell the assumptions apart: a slightly different one misses them."""
    namespace = page[1]
    first, step = namespace["FIRST"], namespace["first_edition"]
    [(name, alter)] = change.items()
    monkeypatch.setitem(first, name, alter(first[name]))
    figures = step()
    found = [
        f"{figures['node']:.1f~P}",
        f"{figures['all_reduce']:.2f~P}",
        f"{figures['step']:.1f~P}",
    ]
    assert found != ["2429.3 ms", "3047.74 ms", "5477.0 ms"]
