"""The first edition's tutorial still runs, word for word, and what it prints is now true.

Its blocks follow each other in one namespace, as in its notebook. Two renderings exist: one reads
results as dictionaries, a later one as attributes.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

import mlsysim

FOLDER = Path(__file__).parent / "seed_code"
MODEL, CLUSTER = mlsysim.Models.Llama3_70B, mlsysim.Systems.Clusters.Research_256


def run(pattern: str, **names: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Run the blocks in order; return the namespace, and what each block printed."""
    printed = {}
    for path in sorted(FOLDER.glob(pattern)):
        page = io.StringIO()
        with contextlib.redirect_stdout(page):
            exec(compile(path.read_text(encoding="utf-8"), path.name, "exec"), names)
        printed[path.stem] = page.getvalue()
    return names, printed


@pytest.fixture(scope="module")
def dictionary():
    return run("dict_*.py")


@pytest.fixture(scope="module")
def attribute():
    # The rendering shows neither the import of the package nor the line that makes the solver.
    return run("attribute_*.py", mlsysim=mlsysim, solver=mlsysim.DistributedModel())


def table(text: str) -> list[list[str]]:
    """Cells of a printed table, below its rule."""
    lines = text.splitlines()
    assert set(lines[1]) == {"-"}
    return [line.split() for line in lines[2:]]


def percent(cell: str) -> float:
    assert cell.endswith("%")
    return float(cell[:-1]) / 100


def test_every_block_is_there():
    assert len(list(FOLDER.glob("dict_*.py"))) == 5
    assert len(list(FOLDER.glob("attribute_*.py"))) == 2


def test_what_the_cluster_is(dictionary, attribute):
    for printed in (dictionary[1]["dict_1_setup"], attribute[1]["attribute_1_setup"]):
        assert re.search(r"^Model: .*70B.* \(71 Gparam params\)$", printed, re.M)
        assert re.search(r"^ Nodes: 32 × 8 GPUs/node$", printed, re.M)
        assert re.search(r"^ Total: 256 accelerators$", printed, re.M)
        assert re.search(r"^ Fabric: Ethernet 100G @ 12 GB", printed, re.M)


def test_baseline(dictionary):
    names, printed = dictionary
    found = dict(
        re.findall(r"^([\w /-]+): +([\d.]+)", printed["dict_2_baseline"].replace("%", ""), re.M)
    )
    value = {key: float(number) for key, number in found.items()}
    compute = value["Single-GPU compute time"] / 1e3
    step = value["Total step latency"] / 1e3
    # One sequence a device, of the model's own length, at half of 989.4 TFLOP/s: at least the
    # time of six operations for each parameter.
    least = 6 * 69.5e9 * MODEL.seq_len / (0.5 * 989.4e12)
    assert least < compute < 1.25 * least
    # 141.1 GB of gradients: 7/8 twice inside the node at 450 GB/s, 1/8 between nodes at 12.5.
    size = MODEL.parameters.to("param").magnitude * 2
    wires = 2 * 7 / 8 * size / 450e9 + 2 * 31 / 32 * size / 8 / 12.5e9
    assert value["DP all-reduce overhead"] / 1e3 == pytest.approx(wires, rel=0.01)
    assert value["Pipeline bubble"] == 0
    assert step == pytest.approx(compute + wires, rel=0.01)
    assert value["Effective throughput"] == pytest.approx(256 / step, abs=0.5)
    assert value["Scaling efficiency"] / 100 < compute / step
    assert "Parallelism: DP=256 TP=1 PP=1" in printed["dict_2_baseline"]
    assert not names["result_dp"]["feasible"], "a 70B model does not train on one device"


def test_fabrics(dictionary):
    rows = table(dictionary[1]["dict_3_fabrics"])
    assert [row[:2] for row in rows] == [["100GbE", "12"], ["IB", "HDR"], ["IB", "NDR"]]
    overhead = [float(row[row.index("ms") - 1]) for row in rows]
    # Between nodes the time halves with each fabric; inside them it stays.
    inside = 2 * 7 / 8 * MODEL.parameters.to("param").magnitude * 2 / 450e9 * 1e3
    between = [time - inside for time in overhead]
    assert between[0] / between[1] == pytest.approx(2, rel=0.01)
    assert between[1] / between[2] == pytest.approx(2, rel=0.01)
    efficiency = [percent(row[-1]) for row in rows]
    assert efficiency == sorted(efficiency)
    assert all(0 < share < 1 for share in efficiency)


def pipeline_rows(text: str) -> dict[tuple[int, int], tuple[float, float, float]]:
    """(stages, microbatches) -> (bubble share, bubble in ms, efficiency)."""
    return {
        (int(row[0]), int(row[1])): (percent(row[2]), float(row[3]), percent(row[-1]))
        for row in table(text)
    }


@pytest.mark.parametrize("style", ["dictionary", "attribute"])
def test_pipeline_sweep(style, request):
    _, printed = request.getfixturevalue(style)
    rows = pipeline_rows(next(text for name, text in printed.items() if "pipeline" in name))
    assert len(rows) == 10
    for (stages, microbatches), (share, time, efficiency) in rows.items():
        assert share == pytest.approx((stages - 1) / (stages - 1 + microbatches), abs=5e-4)
        assert (time == 0) == (stages == 1)
        assert 0 < efficiency < 1
    for stages in (2, 4, 8):
        sweep = [rows[stages, m] for m in (1, 4, 16)]
        assert [row[1] for row in sweep] == sorted((row[1] for row in sweep), reverse=True)
        assert [row[2] for row in sweep] == sorted(row[2] for row in sweep)
    # With one microbatch a deeper pipeline wastes more, which the first edition had the other way.
    assert rows[8, 1][2] < rows[4, 1][2] < rows[2, 1][2]


def test_both_renderings_print_the_same_numbers(dictionary, attribute):
    one = pipeline_rows(dictionary[1]["dict_4_pipeline"])
    assert one == pipeline_rows(attribute[1]["attribute_2_pipeline"])


def test_configurations(dictionary):
    rows = table(dictionary[1]["dict_5_configurations"])
    assert len(rows) == 5
    for row in rows:
        dp, tp, pp, efficiency, rate = row[-5:]
        assert int(dp) * int(tp) * int(pp) == 256
        step = 256 / float(rate)
        assert 0 < percent(efficiency) < 1
        r = mlsysim.DistributedSolver.solve(
            model=MODEL,
            fleet=CLUSTER,
            batch_size=256,
            tp_size=int(tp),
            pp_size=int(pp),
            microbatch_count=16 if int(pp) > 1 else 1,
        )
        assert r.step_latency_total.to("s").magnitude == pytest.approx(step, rel=0.01)
        assert f"{r.scaling_efficiency:.1%}" == efficiency


def test_sizes_that_do_not_tile_are_a_value_error():
    """The tutorial's last block catches it and prints INFEASIBLE."""
    source = (FOLDER / "dict_5_configurations.py").read_text(encoding="utf-8")
    names, _ = run("dict_[12]*.py")
    page = io.StringIO()
    with contextlib.redirect_stdout(page):
        exec(source.replace('("DP only", 1, 1, 1)', '("DP only", 3, 1, 1)'), names)
    first = page.getvalue().splitlines()[2]
    assert "INFEASIBLE" in first
    assert "does not divide" in first
