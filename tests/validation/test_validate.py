"""Tables of measurements with a solver's arguments as columns: predictions, and reasons."""

import csv
import errno
import io
import os
import unicodedata
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mlsysim import (
    Q_,
    Calibrations,
    ConfigError,
    DistributedSolver,
    Models,
    ServingCalibrations,
    ServingSolver,
    SingleNodeSolver,
    Systems,
    validate,
)
from mlsysim.cli.app import app
from mlsysim.scenario.systems import standalone_fleet
from mlsysim.validation.columns import KINDS, Columns, fields_of
from mlsysim.validation.rows import Row

TIME = "step_latency_total (s)"
RUN = {
    "id": "one",
    "group": "ours",
    "split": "check",
    "model": "Llama3_8B",
    "fleet": "DGX_H100",
    "batch_size": "64",
    "tp_size": "8",
    "microbatch_count": "64",
    "seq_len": "8192",
    "precision": "bf16",
    "recompute": "none",
    TIME: "9.1",
}
HEAD, CELLS = ",".join(RUN), ",".join(RUN.values())
PLAN = {
    "model": Models.Llama3_8B,
    "fleet": Systems.Clusters.Research_256,
    "batch_size": 512,
    "precision": "bf16",
}


DRIVING = "\x1b[31mred\x1b]0;title\x07\x9b2J\u202egnp.exe\r\b\n"
ODD = [["a"], np.array([1, 2]), 5, "x" * 5000, {"a": 1}]


def write(path, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def table_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def refusal(source, **more):
    with pytest.raises(ConfigError) as caught:
        validate(source, **more)
    return caught.value


@pytest.mark.parametrize("cells", [CELLS.replace("9.1", "9,1"), CELLS + ",", CELLS[: -len(",9.1")]])
def test_a_row_with_too_many_or_too_few_cells_is_skipped_and_told(cells, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(f"{HEAD}\n{CELLS}\n\n{cells}\n", encoding="utf-8")
    found = validate(path)
    assert [row.measured for row in found.comparisons] == [9.1]
    assert len(found.skipped) == 1
    assert "line 4 " in found.skipped[0][1]
    if cells.count(",") > HEAD.count(","):
        rows = validate(table_of(f"{HEAD}\n{CELLS}\n{cells}\n"))
        assert len(rows.comparisons) == len(rows.skipped) == 1


@pytest.mark.parametrize("head", [TIME, f" {TIME} "])
def test_a_column_named_twice_is_refused_by_name(head, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(f"{HEAD},{head}\n{CELLS},4.5\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="step_latency_total"):
        validate(path)
    path.write_text(f"{HEAD},,\n{CELLS},,\n", encoding="utf-8")
    assert len(validate(path).comparisons) == 1  # what a spreadsheet adds on the right


def test_a_quote_that_never_ends_is_refused(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(f'{HEAD}\n{CELLS}\n"{CELLS}\n{CELLS}\n', encoding="utf-8")
    with pytest.raises(ConfigError):
        validate(path)


def test_a_slip_for_a_decimal_point_is_not_read_as_a_digit_separator():
    assert "9_1" in validate([RUN | {TIME: "9_1"}]).skipped[0][1]


def test_numbers_need_not_be_text():
    numbers = RUN | {"batch_size": 64, "tp_size": 8.0, TIME: 9.1, "cp_size": None}
    assert validate([numbers]).comparisons == validate([RUN]).comparisons


@pytest.mark.parametrize("flag", [[], ["--json"]])
@pytest.mark.parametrize("column", ["id", "group", "model", "fleet", TIME, "recompute"])
def test_no_cell_drives_the_terminal(column, flag, tmp_path):
    path = write(tmp_path / "runs.csv", [RUN | {column: DRIVING}])
    done = CliRunner().invoke(app, ["validate", str(path), *flag])
    assert done.exit_code == 0
    printed = done.output.replace("\n", "")
    assert not [char for char in printed if unicodedata.category(char) in ("Cc", "Cf")]


@pytest.mark.parametrize("mark", ["=", "+", "-", "@", "\t=", "\r=", " =", "\uff1d"])
def test_no_cell_becomes_a_formula_of_a_spreadsheet(mark, tmp_path):
    text = f"{mark}cmd|' /C calc'!A0"
    rows = [RUN | {"id": text, "group": text, "split": text, TIME: "90"}]
    validate(rows).to_csv(tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert {row[name].lstrip()[0] for name in ("id", "group", "split")} <= {"'", "\\"}
    assert float(row["error_percent"]) < 0  # a number stays one


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "pipe", "/", "a\0b"])
def test_what_is_no_file_is_refused_at_once(path, tmp_path):
    if path == "pipe":
        path = str(tmp_path / "pipe")
        os.mkfifo(path)
    with pytest.raises(ConfigError, match=r"not a regular file|cannot be read"):
        validate(path)


@pytest.mark.parametrize("text", ["", "\n\n", "id,global_batch\n", "x\n1\n", "\0"])
def test_files_without_measurements_are_refused_in_words(text, tmp_path):
    path = tmp_path / "none.csv"
    path.write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["validate", str(path)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: ")
    with pytest.raises(ConfigError):
        validate([])


def test_an_output_that_cannot_be_written_is_refused(tmp_path):
    place = str(tmp_path / "nowhere" / "out.csv")
    path = write(tmp_path / "runs.csv", [RUN])
    done = CliRunner().invoke(app, ["validate", str(path), "--output", place])
    assert done.exit_code == 1
    assert "cannot be written" in done.stderr
    with pytest.raises(ConfigError) as caught:
        validate([RUN]).to_csv(5)
    assert caught.value.argument == "path"


def test_a_report_does_not_replace_the_measurements(tmp_path):
    path = write(tmp_path / "runs.csv", [RUN])
    before = path.read_bytes()
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    for other in (path, link):
        done = CliRunner().invoke(app, ["validate", str(path), "--output", str(other)])
        assert done.exit_code == 2
        assert "--output" in done.stderr
        assert path.read_bytes() == before


def test_a_report_is_replaced_as_a_whole(tmp_path, monkeypatch):
    report, path = validate([RUN]), tmp_path / "out.csv"
    report.to_csv(path)
    whole = path.read_bytes()
    path.write_text("before", encoding="utf-8")

    def full(self, text, **options):
        with self.open("w", encoding="utf-8") as file:
            file.write(text[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(ConfigError, match="No space left"):
            report.to_csv(path)
    assert path.read_text(encoding="utf-8") == "before"
    report.to_csv(path)
    assert path.read_bytes() == whole
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "source",
    [Decimal(3), None, 3, [1], ["a"], b"abc", {"id": 1}, np.arange(3), [[1, 2]], ["x" * 5000]],
)
def test_what_holds_no_rows_is_refused(source):
    with pytest.raises(ConfigError, match=r"path of a CSV file") as caught:
        validate(source)
    assert caught.value.argument == "source"
    assert len(str(caught.value)) < 400


def test_an_open_file_is_refused(tmp_path):
    path = write(tmp_path / "runs.csv", [RUN])
    with path.open(encoding="utf-8") as file, pytest.raises(ConfigError, match=r"csv\.DictReader"):
        validate(file)


def test_a_long_path_is_not_echoed_whole():
    with pytest.raises(ConfigError) as caught:
        validate("x" * 5000)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("argument", ["kind", "split"])
@pytest.mark.parametrize("value", ODD, ids=lambda value: type(value).__name__)
def test_a_kind_or_split_of_another_type_is_refused(argument, value):
    with pytest.raises(ConfigError) as caught:
        validate([RUN], **{argument: value})
    assert caught.value.argument == argument
    assert len(str(caught.value)) < 400


def test_an_unknown_split_is_refused_with_those_there_are():
    with pytest.raises(ConfigError, match="'check'") as caught:
        validate([RUN], split="chek")
    assert caught.value.argument == "split"


def test_a_number_too_long_to_print_is_one_skipped_row():
    (skipped,) = validate([RUN | {TIME: 10**5000}]).skipped
    assert "step_latency_total" in skipped[1]


@pytest.mark.parametrize("empty", ["\n", "\r\n\n", ",,,\n", " \n\t\n"])
def test_empty_lines_above_the_head_change_nothing(empty, tmp_path):
    path = write(tmp_path / "rows.csv", [RUN])
    plain = validate(path).to_dict()
    path.write_text(empty + path.read_text(encoding="utf-8"), encoding="utf-8", newline="")
    assert validate(path).to_dict() == plain
    lines = path.read_text(encoding="utf-8").rstrip("\n")
    path.write_text(f"{lines}\nshort\n", encoding="utf-8", newline="")
    place = len(lines.splitlines()) + 1
    assert f"line {place} has fewer cells" in validate(path).skipped[-1][1]


def test_what_nothing_was_predicted_for_has_every_figure():
    found = validate([RUN | {"id": "x", TIME: ""}]).to_dict()
    assert found["pooled"] == dict.fromkeys(found["pooled"], None) | {"n": 0}
    assert found["skipped"] == [{"id": "x", "reason": f"{TIME} is empty: nothing was measured"}]


def test_a_row_is_a_call_of_the_solver():
    (run,) = validate([RUN]).comparisons
    step = DistributedSolver.solve(
        model=Models.Llama3_8B,
        fleet=standalone_fleet(Systems.Nodes.DGX_H100),
        batch_size=64,
        tp_size=8,
        microbatch_count=64,
        seq_len=8192,
        precision="bf16",
        recompute="none",
    )
    assert run.predicted == step.step_latency_total.to("s").magnitude
    assert (run.low, run.high) == (
        step.step_latency_low.to("s").magnitude,
        step.step_latency_high.to("s").magnitude,
    )
    assert (run.id, run.group, run.split, run.measured) == ("one", "ours", "check", 9.1)
    assert run.field == "step_latency_total"


def test_values_in_memory_need_no_text():
    times = {"step_latency_total": Q_(9100, "ms"), "mfu": 0.4}
    (time, share) = validate([PLAN | {"id": "a", "group": "b"} | times]).comparisons
    step = DistributedSolver.solve(**PLAN)
    assert (time.measured, time.predicted) == (9.1, step.step_latency_total.to("s").magnitude)
    assert (share.measured, share.predicted, share.group) == (0.4, step.mfu, "b: mfu")
    constants = Calibrations.H100_FSDP2
    (named, given) = (
        validate([PLAN | times | {"calibration": cell}]).comparisons[0].predicted
        for cell in ("H100_FSDP2", constants)
    )
    (whole, _) = validate([PLAN | times], calibration=constants).comparisons
    assert named == given == whole.predicted
    assert named != time.predicted


SERVED = {
    "model": "Llama3_70B",
    "hardware": "DGX_H100",
    "tp_size": "4",
    "batch_size": "32",
    "seq_len": "1000",
    "output_len": "200",
    "precision": "bf16",
    "calibration": "Hopper_vLLM",
}


OPEN = {name: cell for name, cell in SERVED.items() if name != "batch_size"}
OPEN |= {"arrival_rate (1/s)": "2"}


def test_each_measured_column_has_a_comparison_in_its_unit():
    cells = {"ttft (ms)": "400", "itl (s)": "0.03", "latency (s)": "6", "request_throughput": ""}
    (first, between, whole) = validate([SERVED | cells]).comparisons
    answer = ServingSolver.solve(
        model=Models.Llama3_70B,
        hardware=Systems.Nodes.DGX_H100,
        tp_size=4,
        batch_size=32,
        seq_len=1000,
        output_len=200,
        precision="bf16",
        calibration=ServingCalibrations.Hopper_vLLM,
    )
    assert first.predicted == pytest.approx(answer.ttft.to("ms").magnitude, rel=1e-12)
    assert between.predicted == pytest.approx(answer.itl.to("s").magnitude, rel=1e-12)
    assert [each.group for each in (first, between, whole)] == [
        f"all: {name}" for name in ("ttft", "itl", "latency")
    ]
    # A request is its first token and the steps after it, with their bands.
    later = (answer.latency - answer.ttft).to("s").magnitude
    for edge in ("low", "high"):
        start, step = answer[f"ttft_{edge}"].to("s"), answer[f"itl_{edge}"] / answer.itl
        expected = start.magnitude + later * step.to("").magnitude
        assert getattr(whole, edge) == pytest.approx(expected, rel=1e-9)


def test_rates_have_the_band_of_the_total_rate():
    cells = {"request_throughput (1/s)": "5", "output_throughput (token/s)": "1000"}
    requests, tokens = validate([SERVED | cells]).comparisons
    assert requests.low / requests.predicted == pytest.approx(tokens.low / tokens.predicted)
    assert requests.high > requests.predicted > requests.low


def test_a_plan_that_does_not_fit_is_predicted_with_a_note():
    (run,) = validate([RUN | {"tp_size": "1", "microbatch_count": "8"}]).comparisons
    assert run.note.startswith("not feasible: memory")


def test_a_field_without_a_value_names_itself():
    cells = {"model": "ResNet50", "hardware": "A100", "batch_size": "8", "latency (ms)": "3"}
    assert not validate([cells], kind="inference").skipped
    ((_, reason),) = validate([OPEN | {"arrival_rate (1/s)": "1e6", "ttft_mean": "1 s"}]).skipped
    assert "ttft_mean" in reason


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (RUN, "training"),
        (SERVED | {"ttft (ms)": "4"}, "serving"),
        (SERVED | {"decode_workers": "1", "itl (ms)": "4"}, "disaggregated"),
        (OPEN | {"ttft_p99 (ms)": "4"}, "open-loop"),
        ({"model": "ResNet50", "hardware": "A100", "mfu": "0.1", "latency (ms)": "3"}, "inference"),
    ],
)
def test_the_columns_tell_the_kind(cells, kind):
    assert Columns.of([Row.of(cells)]).kind == kind


@pytest.mark.parametrize(
    "cells",
    [
        {"model": "Llama3_8B", "hardware": "H100", "batch_size": "1", "latency (ms)": "9"},
        {"model": "Llama3_8B", "ttft (ms)": "9"},
        {"id": "a", "remark": "b"},
    ],
)
def test_columns_of_several_kinds_or_of_none_need_a_name(cells):
    assert refusal([cells]).argument == "kind"


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("tp", "8"),
        ("step_time_s", "9.1"),
        ("batchsize", "8"),
        ("output_len", "8"),
        ("ttft (ms)", "8"),
        ("step_latency_total (ms)", "9100"),
        ("batch_size (1)", "8"),
        ("mfu (s)", "8"),
        ("memory (furlong)", "8"),
    ],
)
def test_wrong_columns_are_refused(column, cell):
    fault = refusal([RUN | {column: cell}], kind="training")
    assert fault.argument in ("source", column)
    assert column.partition(" ")[0] in str(fault)


def test_earlier_columns_are_refused_with_the_new_ones():
    earlier = {"global_batch": "8", "tp": "2", "flash_attention": "1", "step_time_s": "3"}
    lines = str(refusal([earlier])).splitlines()
    assert {"  global_batch: batch_size", "  tp: tp_size"} <= set(lines)
    assert "  step_time_s: step_latency_total (s)" in lines
    assert "research.validate" in lines[-1]  # this is a checkout


def test_a_missing_column_is_named():
    without = {name: cell for name, cell in RUN.items() if name != "fleet"}
    assert "fleet" in str(refusal([without], kind="training"))
    untimed = {name: cell for name, cell in RUN.items() if name != TIME}
    assert "DistributedResult" in str(refusal([untimed], kind="training"))


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("model", "Llama9_8B"),
        ("fleet", "8xDGX_H100"),
        ("batch_size", "1.5"),
        ("batch_size", ""),
        ("model", None),
        ("precision", "posit16"),
        ("tp_size", "abc"),
        ("recompute", "sometimes"),
        (TIME, "-1"),
        (TIME, "inf"),
        (TIME, "1e300"),
    ],
)
def test_a_wrong_cell_costs_its_own_row_and_no_other(column, cell):
    report = validate([RUN, RUN | {"id": "two", column: cell}])
    assert [run.id for run in report.comparisons] == ["one"]
    ((name, reason),) = report.skipped
    assert name == "two"
    assert column.partition(" ")[0] in reason


@pytest.mark.parametrize("cell", ["TRUE", "true", True])
def test_spreadsheets_may_write_booleans_in_capitals(cell):
    rows = [RUN | {"sequence_parallel": cell}, RUN | {"sequence_parallel": ""}]
    one, other = validate(rows).comparisons
    assert one.predicted != other.predicted


def test_a_data_frame_is_a_table_too(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = write(tmp_path / "rows.csv", [RUN, RUN | {"id": "two", "tp_size": ""}])
    assert validate(pandas.read_csv(path)).to_dict() == validate(path).to_dict()


def test_every_solver_has_a_kind():
    assert SingleNodeSolver in KINDS.values()
    for kind, solver in KINDS.items():
        assert fields_of(kind).keys() - solver.parameters.keys(), kind
    cells = {"fleet": "Research_256", "job_duration_hours": "720"}
    cells |= {"checkpoint_time_s": "60", "expected_failures": "9"}
    report = validate([cells], kind="reliability")
    assert not report.skipped
    (run,) = report.comparisons
    assert (run.quantity, run.measured, run.low) == ("expected_failures", 9, None)


def test_a_calibration_is_for_training():
    cells = SERVED | {"ttft (ms)": "4"}
    assert refusal([cells], calibration="H100_FSDP2").argument == "calibration"
    assert validate([cells]).comparisons[0].measured == 4


@pytest.mark.parametrize("cells", [RUN, SERVED | {"ttft (ms)": "400", "itl (ms)": "30"}])
@pytest.mark.parametrize("odd", ["", "abc", "-1", "1e300", "./x.json", True, [1], 10**400])
def test_an_odd_cell_is_predicted_or_refused_with_a_reason(cells, odd):
    for column in cells:
        report = validate([cells | {"id": "a"}, cells | {"id": "b", column: odd}])
        told = {run.id for run in report.comparisons} | {name for name, _ in report.skipped}
        assert len(told) == 2
        assert all(reason for _, reason in report.skipped)
