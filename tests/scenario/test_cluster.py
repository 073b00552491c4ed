"""Calibrations as files: the same constants come back, and a damaged file says what is wrong."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
import yaml

import mlsysim
from mlsysim import ClusterCalibration, ConfigError, DistributedSolver, Hardware, Models, Systems
from mlsysim.scenario.cluster import MAX_BYTES

TIME = "step_latency_total (s)"
RUNS = [
    {
        "id": "first, of two",
        "model": "Llama3_8B",
        "fleet": "DGX_H100",
        "batch_size": 16,
        "microbatch_count": 2,
        "seq_len": 8192,
        "precision": "bf16",
        "zero_stage": 3,
        TIME: 1.81,
    },
    {
        "id": "12",
        "model": "Llama3_8B",
        "fleet": "4xDGX_H100@InfiniBand_NDR",
        "batch_size": 64,
        "microbatch_count": 2,
        "seq_len": 2048,
        "precision": "bf16",
        "zero_stage": 3,
        TIME: 0.62,
    },
    {"id": "=no time", "model": "Llama3_8B", "fleet": "DGX_H100", "batch_size": 16},
]
PLAN = {
    "model": Models.Llama3_8B,
    "fleet": replace(Systems.Clusters.Research_256, name="four nodes", count=4),
    "batch_size": 64,
    "microbatch_count": 2,
    "seq_len": 4096,
    "precision": "bf16",
}


@pytest.fixture(scope="module")
def ours() -> ClusterCalibration:
    return mlsysim.calibrate(RUNS, name="ours")


@pytest.fixture
def file(ours, tmp_path):
    ours.save(tmp_path / "ours.yaml")
    return tmp_path / "ours.yaml"


def test_what_is_read_is_what_was_written(ours, file):
    read = mlsysim.load_calibration(file)
    assert isinstance(read, ClusterCalibration)
    assert read == ours
    assert read.to_yaml() == ours.to_yaml() == file.read_text(encoding="utf-8")
    mine, its = (DistributedSolver.solve(calibration=each, **PLAN) for each in (ours, read))
    assert mine.step_latency_total == its.step_latency_total
    assert mine.step_latency_low == its.step_latency_low


def test_the_file_is_plain_and_small(ours, file):
    data = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert data == ours.to_dict()
    assert data["mlsysim"] == mlsysim.__version__
    assert [row["id"] for row in data["rows"]] == ["first, of two", "12"]
    assert [row["id"] for row in data["refused"]] == ["=no time"]
    assert file.stat().st_size < 8000


def test_it_is_a_calibration_like_those_of_the_registry(ours):
    result = DistributedSolver.solve(calibration=ours, **PLAN)
    assert result.calibration == "ours"
    assert result.band == "family"
    low, high = (
        edge / result.step_latency_total
        for edge in (result.step_latency_low, result.step_latency_high)
    )
    assert low.to("").magnitude == pytest.approx(ours.band.low)
    assert high.to("").magnitude == pytest.approx(ours.band.high)
    swept = mlsysim.sweep(DistributedSolver, **PLAN | {"calibration": ours, "zero_stage": [1, 3]})
    assert swept["step_latency_total"][0] == DistributedSolver.solve(
        calibration=ours, zero_stage=1, **PLAN
    ).step_latency_total.to_base_units().to(swept["step_latency_total"].units)
    sources = {str(item.source) for item in result.explain("step_latency_total").inputs}
    assert any("ours" in source for source in sources)
    assert pickle.loads(pickle.dumps(ours)) == ours


COVERED = {
    "seq_len": (2048, 8192),
    "devices": (8, 32),
    "tp_size": (1, 1),
    "pp_size": (1, 1),
    "cp_size": (1, 1),
    "ep_size": (1, 1),
    "virtual_stages": (1, 1),
}


def test_the_file_says_what_its_runs_covered(ours, file):
    data = yaml.safe_load(file.read_text(encoding="utf-8"))["covers"]
    for name, (least, most) in COVERED.items():
        assert data[name] == {"least": least, "most": most}
    assert data["precision"] == ["bf16"]
    assert data["networks"] == ["dense"]
    assert {name: edges for name, *edges in ours.covered.ranges()} == {
        name: list(edges) for name, edges in COVERED.items()
    }
    assert ours.unseen_band.low <= ours.band.low
    assert ours.unseen_band.high >= ours.band.high


def fleet(count):
    return replace(PLAN["fleet"], name=f"{count} nodes", count=count)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, None),
        ({"seq_len": 2048}, None),
        ({"seq_len": 8192}, None),
        ({"precision": "fp16"}, None),
        ({"fleet": fleet(1), "batch_size": 16}, None),
        ({"seq_len": 131_072}, "seq_len"),
        ({"seq_len": 1024}, "seq_len"),
        ({"fleet": fleet(1024), "batch_size": 16_384}, "devices"),
        ({"tp_size": 2}, "tp_size"),
        ({"precision": "fp8"}, "fp8"),
        ({"model": Models.Mixtral_8x7B}, "experts"),
        ({"attention": "unfused"}, "unfused"),
        ({"optimizer": "muon"}, "muon"),
        ({"fleet": replace(fleet(4), node=Systems.Nodes.DGX_A100)}, "A100"),
    ],
)
def test_plans_unlike_the_runs_have_the_wide_band_and_say_so(ours, changes, word):
    result = DistributedSolver.solve(calibration=ours, **PLAN | changes)
    inside = word is None
    low, high = (
        (edge / result.step_latency_total).to("").magnitude
        for edge in (result.step_latency_low, result.step_latency_high)
    )
    assert result.band == ("family" if inside else "unseen")
    assert low == pytest.approx(ours.band.low if inside else ours.unseen_band.low)
    assert high == pytest.approx(ours.band.high if inside else ours.unseen_band.high)
    assert len(result.outside) == (0 if inside else 1)
    assert inside or word in result.outside[0]


def test_a_sweep_has_the_band_of_each_row(ours):
    lengths = [1024, 2048, 8192, 16_384]
    rest = {name: value for name, value in PLAN.items() if name not in ("seq_len", "precision")}
    table = mlsysim.sweep(
        DistributedSolver,
        calibration=ours,
        seq_len=lengths,
        precision=["bf16", "fp8"],
        **rest,
    )
    for place in range(len(table)):
        row, alone = table.row(place), table.result(place)
        assert row["step_latency_low"].to("s").magnitude == pytest.approx(
            alone.step_latency_low.to("s").magnitude
        )
        inside = 2048 <= row["seq_len"] <= 8192 and row["precision"] == "bf16"
        ratio = (row["step_latency_high"] / row["step_latency_total"]).to("").magnitude
        assert ratio == pytest.approx(ours.band.high if inside else ours.unseen_band.high)


def test_the_edge_of_a_band_is_derived(ours):
    result = DistributedSolver.solve(calibration=ours, **PLAN)
    origins = {item.origin for item in result.explain("step_latency_low").inputs}
    assert "calibration.band.low" in origins
    assert "calibration.unseen_band.low" not in origins


def test_a_file_that_does_not_say_what_it_covers_has_the_wide_band(ours, file):
    data = yaml.safe_load(file.read_text(encoding="utf-8"))
    del data["covers"]
    file.write_text(yaml.safe_dump(data), encoding="utf-8")
    old = mlsysim.load_calibration(file)
    assert old.covered is None
    assert old.machine == ours.machine
    result = DistributedSolver.solve(calibration=old, **PLAN)
    assert result.band == "unseen"
    assert len(result.outside) == 1
    assert "covers" not in old.to_dict()


def test_own_runs_count_even_where_no_published_run_was_measured():
    """A device without published runs, or a cluster larger than all of them."""
    old = replace(PLAN["fleet"], node=replace(PLAN["fleet"].node, accelerator=Hardware.V100))
    runs = [RUNS[0] | {"fleet": replace(old, count=1), "precision": "fp16", TIME: 60.0}]
    ours = mlsysim.calibrate(runs, name="ours")
    plan = PLAN | {"fleet": replace(old, count=1), "precision": "fp16", "seq_len": 8192}
    result = DistributedSolver.solve(calibration=ours, **plan)
    assert result.outside == ()
    assert result.band == "family"


def test_what_no_run_told_is_an_estimate(ours):
    assert "gemm_efficiency" not in ours.unidentified
    assert not ours.machine.is_estimated("gemm_efficiency")
    for name in ours.unidentified:
        part = ours.machine if hasattr(ours.machine, name) else ours.software
        assert part.is_estimated(name)
    assert ours.software.is_estimated("loss_bytes")


DAMAGED = {
    "another format": (("format",), 2, "format"),
    "no format": (("format",), None, "format"),
    "a key too many": (("more",), 1, "more"),
    "a key missing": (("rows",), KeyError, "rows"),
    "a word for a number": (("machine", "gemm_efficiency"), "high", "gemm_efficiency"),
    "a share above one": (("machine", "link_efficiency"), 1.5, "link_efficiency"),
    "a number without unit": (("software", "layer_launch"), 3, "layer_launch"),
    "a wrong dimension": (("software", "layer_launch"), "3 byte", "layer_launch"),
    "a constant missing": (("software", "step_overhead"), KeyError, "step_overhead"),
    "an unknown constant": (("software", "magic"), 1.0, "magic"),
    "a negative factor": (("factors", "gemm_efficiency", "factor"), -1.0, "factor"),
    "a factor that is a list": (("factors", "gemm_efficiency"), [1], "gemm_efficiency"),
    "an inverted band": (("band", "low"), 9.0, "band.low"),
    "no rows": (("rows",), [], "rows"),
    "a range the wrong way": (("covers", "seq_len", "least"), 99_999, "seq_len_least"),
    "a range that is missing": (("covers", "devices"), KeyError, "devices"),
    "a length that is no count": (("covers", "seq_len", "most"), 8192.5, "seq_len_most"),
    "a choice that is a word": (("covers", "precision"), "bf16", "precision"),
    "conflicts that are a word": (("conflicts",), "many", "conflicts"),
    "rows that are no list": (("rows",), "many", "rows"),
    "an unknown number format": (("formats",), ["fp7"], "formats"),
    "a name that is a number": (("name",), 5, "name"),
}


@pytest.mark.parametrize(("path", "value", "word"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_says_what_is_wrong(file, path, value, word):
    data = yaml.safe_load(file.read_text(encoding="utf-8"))
    part = data
    for key in path[:-1]:
        part = part[key]
    if value is KeyError:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    file.write_text(yaml.safe_dump(data), encoding="utf-8")
    with pytest.raises(ConfigError, match=word) as caught:
        mlsysim.load_calibration(file)
    assert "ours.yaml" in str(caught.value)


def test_all_faults_of_a_file_are_reported_with_their_lines(file):
    lines = file.read_text(encoding="utf-8").splitlines()
    wrong = {"device: ": "device: 5 # ", "base:": "bases:", "  release: ": "  relaese: "}
    places = {}
    for place, line in enumerate(lines):
        for start, replacement in wrong.items():
            if line.startswith(start):
                lines[place] = line.replace(start, replacement)
                places[replacement.partition(":")[0].strip()] = place + 1
    assert len(places) == len(wrong)
    file.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        mlsysim.load_calibration(file)
    faults = {fault.path: fault.line for fault in caught.value.faults}
    assert faults["device"] == places["device"]
    assert faults["bases"] == places["bases"]
    assert faults["software.relaese"] == places["relaese"]
    assert {"base", "software.release"} <= set(faults)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"- 1\n",
        b"format: 1\nname: !!python/object/apply:os.system [true]\n",
        b"format: 1\nformat: 1\n",
        b"format: &a 1\nname: *a\n",
        b"{" * 5000,
        b"\xff\xfe\x00",
        b"x: " + b"y" * MAX_BYTES,
        b"format: 1\x00\n",
    ],
    ids=["empty", "list", "tag", "twice", "alias", "deep", "binary", "huge", "null"],
)
def test_what_is_no_calibration_is_refused(tmp_path, content):
    place = tmp_path / "x.yaml"
    place.write_bytes(content)
    with pytest.raises(ConfigError):
        mlsysim.load_calibration(place)


@pytest.mark.parametrize("path", ["ours.json", 5, "missing.yaml"])
def test_a_path_that_is_none_is_refused(path):
    with pytest.raises(ConfigError):
        mlsysim.load_calibration(path)


def test_a_file_that_cannot_be_written_is_an_error(ours, tmp_path):
    for path in (tmp_path / "ours.txt", tmp_path / "nowhere" / "ours.yaml"):
        with pytest.raises(ConfigError) as caught:
            ours.save(path)
        assert caught.value.argument == "path"
