"""Tables as people have them: marks, gaps, other columns. A row is predicted, or says why not."""

import csv
import errno
import io
import json
import math
import os
import random
import re
import unicodedata
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mlsysim import ConfigError, Models
from mlsysim.cli.app import app
from mlsysim.validation import validate

KINDS = ("training", "serving", "memory", "kernels", "passes", "energy", "tiny")


def table(kind):
    """Return two rows of each family of a kind."""
    with Path(f"research/measurements/{kind}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    seen, kept = {}, []
    for row in rows:
        family = row["group"], row.get("submitter")
        seen[family] = seen.get(family, 0) + 1
        if seen[family] <= 2:
            kept.append(row)
    return kept


def rows_told(report):
    """Return how many rows were predicted or skipped; of two figures, the first one counts."""
    first = [item for item in report.comparisons if item.quantity != "energy (uJ)"]
    return len(first) + len(report.skipped)


def write(path, rows, *, columns=None, encoding="utf-8", newline="\n"):
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.DictWriter(
            file, columns or list(rows[0]), extrasaction="ignore", lineterminator=newline
        )
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_the_form_of_a_file_changes_nothing(kind, tmp_path):
    rows = table(kind)
    plain = validate(write(tmp_path / "a.csv", rows)).to_dict()
    assert plain["pooled"]["n"] > 0
    columns = list(rows[0])
    random.Random(0).shuffle(columns)
    for name, options in {
        "byte-order mark": {"encoding": "utf-8-sig"},
        "Windows": {"newline": "\r\n"},
        "shuffled": {"columns": columns},
    }.items():
        assert validate(write(tmp_path / "b.csv", rows, **options)).to_dict() == plain, name
    more = [row | {"remark": "1"} for row in rows]
    assert validate(write(tmp_path / "c.csv", more)).to_dict() == plain
    spaced = [{f" {name} ": cell for name, cell in row.items()} for row in rows]
    assert validate(write(tmp_path / "d.csv", spaced)).to_dict() == plain


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell", ["", "abc", "0", "-1", "1.5", "inf", "1e18", None])
def test_no_cell_breaks_the_run(kind, cell):
    rows = table(kind)
    for column in rows[0]:
        changed = [{k: cell if k == column else v for k, v in row.items()} for row in rows]
        if cell is None:
            changed = [{k: v for k, v in row.items() if k != column} for row in rows]
        found = validate(changed, kind=kind)
        assert rows_told(found) == len(rows)
        assert all(reason for _, reason in found.skipped)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_rows_of_another_kind_say_why_they_are_skipped(kind, other):
    if kind != other:
        found = validate(table(kind), kind=other).to_dict()
        assert found["pooled"]["n"] + len(found["skipped"]) == len(table(kind))


def table_of(text):
    return list(csv.DictReader(io.StringIO(text)))


RUN = {"global_batch": "64", "n_gpus": "8", "tp": "8", "seq_len": "8192", "step_time_s": "9.1"}
RUN |= {"model": "Llama3_8B", "hardware": "H100", "flash_attention": "1"}
HEAD, CELLS = ",".join(RUN), ",".join(RUN.values())


@pytest.mark.parametrize("cells", [CELLS.replace("9.1", "9,1"), CELLS + ",", CELLS[: -len(",1")]])
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


@pytest.mark.parametrize("head", ["step_time_s", " step_time_s "])
def test_a_column_named_twice_is_refused_by_name(head, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(f"{HEAD},{head}\n{CELLS},4.5\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="step_time_s"):
        validate(path)
    path.write_text(f"{HEAD},,\n{CELLS},,\n", encoding="utf-8")
    assert len(validate(path).comparisons) == 1  # what a spreadsheet adds on the right


def test_a_quote_that_never_ends_is_refused(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(f'{HEAD}\n{CELLS}\n"{CELLS}\n{CELLS}\n', encoding="utf-8")
    with pytest.raises(ConfigError):
        validate(path)


ABSURD = ("1e300", "1e-308", "1e30", "9" * 5000)
LONG = {"note": "EP " + "9" * 5000, "id": "x_cp" + "9" * 5000, "op": f"gemm {'9' * 400}x1x1"}
LONG |= {"model": "1.2.3B"}


@pytest.mark.parametrize("kind", KINDS)
def test_an_absurd_cell_costs_its_own_row_and_no_other(kind):
    rows = table(kind)
    absurd = [
        row | {column: cell}
        for row in (rows[0], rows[-1])
        for column in row
        for cell in [*ABSURD, LONG.get(column, "")]
    ]
    found = validate([*rows, *absurd], kind=kind)
    assert rows_told(found) == len(rows) + len(absurd)
    assert len(found.skipped) > len(absurd) / 20
    expected = validate(rows, kind=kind).comparisons
    assert found.comparisons[: len(expected)] == expected
    assert all(math.isfinite(row.error) for row in found.comparisons)
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_slip_for_a_decimal_point_is_not_read_as_a_digit_separator():
    assert "9_1" in validate([RUN | {"step_time_s": "9_1"}]).skipped[0][1]


def test_two_absurd_counts_take_no_time():
    row = RUN | {"n_gpus": "999999999999984", "gpus_per_node": "999999999999984"}
    assert "gpus_per_node" in validate([row]).skipped[0][1]


def test_numbers_need_not_be_text():
    numbers = RUN | {"global_batch": 64, "n_gpus": 8.0, "step_time_s": 9.1, "kv_heads": None}
    assert validate([numbers]).comparisons == validate([RUN]).comparisons


DRIVING = "\x1b[31mred\x1b]0;title\x07\x9b2J\u202egnp.exe\r\b\n"


@pytest.mark.parametrize("flag", [[], ["--json"]])
@pytest.mark.parametrize("column", ["id", "group", "model", "hardware", "step_time_s", "recompute"])
def test_no_cell_drives_the_terminal(column, flag, tmp_path):
    path = write(tmp_path / "runs.csv", [RUN | {column: DRIVING}])
    done = CliRunner().invoke(app, ["validate", str(path), *flag])
    assert done.exit_code == 0
    printed = done.output.replace("\n", "")
    assert not [char for char in printed if unicodedata.category(char) in ("Cc", "Cf")]


@pytest.mark.parametrize("mark", ["=", "+", "-", "@", "\t=", "\r=", " =", "\uff1d"])
def test_no_cell_becomes_a_formula_of_a_spreadsheet(mark, tmp_path):
    text = f"{mark}cmd|' /C calc'!A0"
    rows = [RUN | {"id": text, "group": text, "split": text, "step_time_s": "90"}]
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
    file = "research/measurements/memory.csv"
    done = CliRunner().invoke(app, ["validate", file, "--output", place])
    assert done.exit_code == 1
    assert "cannot be written" in done.stderr
    with pytest.raises(ConfigError) as caught:
        validate(table("memory")).to_csv(5)
    assert caught.value.argument == "path"


def test_a_report_does_not_replace_the_measurements(tmp_path):
    path = write(tmp_path / "runs.csv", table("memory"))
    before = path.read_bytes()
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    for other in (path, link):
        done = CliRunner().invoke(app, ["validate", str(path), "--output", str(other)])
        assert done.exit_code == 2
        assert "--output" in done.stderr
        assert path.read_bytes() == before


def test_a_report_is_replaced_as_a_whole(tmp_path, monkeypatch):
    report, path = validate(table("memory")), tmp_path / "out.csv"
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


@pytest.mark.parametrize("kind", KINDS)
def test_a_data_frame_is_a_table_too(kind, tmp_path):
    pandas = pytest.importorskip("pandas")
    path = write(tmp_path / "rows.csv", table(kind))
    assert validate(pandas.read_csv(path)).to_dict() == validate(path).to_dict()


@pytest.mark.parametrize(
    "source",
    [Decimal(3), None, 3, [1], ["a"], b"abc", {"id": 1}, np.arange(3), [[1, 2]], ["x" * 5000]],
)
def test_what_holds_no_rows_is_refused(source):
    with pytest.raises(ConfigError, match=r"path of a CSV file") as caught:
        validate(source)
    assert caught.value.argument == "source"
    assert len(str(caught.value)) < 400


def test_an_open_file_is_refused():
    path = Path("research/measurements/memory.csv")
    with path.open(encoding="utf-8") as file, pytest.raises(ConfigError, match=r"csv\.DictReader"):
        validate(file)


def test_a_long_path_is_not_echoed_whole():
    with pytest.raises(ConfigError) as caught:
        validate("x" * 5000)
    assert len(str(caught.value)) < 400


ODD = [["a"], np.array([1, 2]), 5, "x" * 5000, {"a": 1}]


@pytest.mark.parametrize("argument", ["kind", "split"])
@pytest.mark.parametrize("value", ODD, ids=lambda value: type(value).__name__)
def test_a_kind_or_split_of_another_type_is_refused(argument, value):
    with pytest.raises(ConfigError) as caught:
        validate("research/measurements/training.csv", **{argument: value})
    assert caught.value.argument == argument
    assert len(str(caught.value)) < 400


def test_an_unknown_split_is_refused_with_those_there_are():
    with pytest.raises(ConfigError, match="'calibrate', 'check'") as caught:
        validate("research/measurements/training.csv", split="chek")
    assert caught.value.argument == "split"


def test_a_number_too_long_to_print_is_one_skipped_row():
    (skipped,) = validate([RUN | {"step_time_s": 10**5000}]).skipped
    assert "step_time_s" in skipped[1]


@pytest.mark.parametrize("empty", ["\n", "\r\n\n", ",,,\n", " \n\t\n"])
def test_empty_lines_above_the_head_change_nothing(empty, tmp_path):
    path = write(tmp_path / "rows.csv", table("memory"))
    plain = validate(path).to_dict()
    path.write_text(empty + path.read_text(encoding="utf-8"), encoding="utf-8", newline="")
    assert validate(path).to_dict() == plain
    lines = path.read_text(encoding="utf-8").rstrip("\n")
    path.write_text(f"{lines}\nshort\n", encoding="utf-8", newline="")
    place = len(lines.splitlines()) + 1
    assert f"line {place} has fewer cells" in validate(path).skipped[-1][1]


def test_what_nothing_was_predicted_for_has_every_figure():
    found = validate([{"id": "x", "global_batch": "4"}]).to_dict()
    assert found["pooled"] == dict.fromkeys(found["pooled"], None) | {"n": 0}
    assert found["skipped"] == [
        {"id": "x", "reason": "step_time_s is missing: nothing was measured"}
    ]


def test_a_model_without_a_shape_is_looked_up():
    row = {"global_batch": "128", "n_gpus": "64", "tp": "8", "seq_len": "4096", "step_time_s": "9"}
    row |= {"hardware": "H100", "flash_attention": "1", "precision": "bf16"}
    shape = Models.Llama3_70B
    named = validate([row | {"model": "Llama3 70B"}]).comparisons
    given = validate(
        [
            row
            | {
                "layers": str(shape.layers),
                "hidden": str(shape.hidden_dim),
                "heads": str(shape.heads),
                "kv_heads": str(shape.kv_heads),
                "ffn": str(shape.ffn_dim),
                "gated": "1",
                "vocab": str(shape.vocab_size),
            }
        ]
    ).comparisons
    assert named[0].predicted == pytest.approx(given[0].predicted, rel=1e-3)
    assert "none in the registry" in validate([row | {"model": "no such"}]).skipped[0][1]


@pytest.mark.parametrize("hardware", ["TPU v4", "A10G"])
def test_other_devices_need_their_links(hardware):
    row = {"model": "Llama3_8B", "global_batch": "64", "n_gpus": "16", "step_time_s": "9"}
    row |= {"hardware": hardware, "seq_len": "4096", "flash_attention": "1"}
    row |= {"precision": "bf16"}
    assert "give gpus_per_node" in validate([row]).skipped[0][1]
    links = {"gpus_per_node": "8", "intra_GBps_per_gpu_dir": "100", "inter_GBps_per_gpu_dir": "25"}
    found = validate([row | links])
    assert not found.skipped
    # The band of a device without a measured run: wide, and there.
    (run,) = found.comparisons
    assert run.low < 0.75 * run.predicted < 1.4 * run.predicted < run.high


def test_a_number_format_that_nothing_is_predicted_in_is_named():
    row = table("training")[0] | {"precision": "posit16"}
    assert "'posit16'" in validate([row]).skipped[0][1]


@pytest.mark.parametrize("kind", KINDS)
def test_every_column_that_is_read_is_documented(kind):
    page = Path("docs/how-to/validate.qmd").read_text(encoding="utf-8")
    section = page.split("{#" + kind + "}")[1].split("\n### ")[0].split("\n## ")[0]
    code = Path(f"mlsysim/validation/{kind}.py").read_text(encoding="utf-8")
    read = set(re.findall(r'row\.(?:number|whole|text|word|measured)\(\s*"(\w+)"', code))
    assert read
    assert not {name for name in read - {"group", "split"} if f"`{name}`" not in section}
