"""Tables as people have them: marks, gaps, other columns. A row is predicted, or says why not."""

import csv
import json
import math
import random
import re
from pathlib import Path

import pytest

from mlsysim import Models
from research.validate import validate

KINDS = ("training", "serving", "memory", "kernels", "passes", "energy", "tiny")


def table(kind, most=2):
    """Return the first rows of each family of a kind."""
    with Path(f"research/measurements/{kind}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    seen, kept = {}, []
    for row in rows:
        family = row["group"], row.get("submitter")
        seen[family] = seen.get(family, 0) + 1
        if seen[family] <= most:
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


CELLS = ["", "abc", "0", "-1", "1.5", "inf", "1e18"]


@pytest.mark.parametrize("kind", KINDS)
def test_no_cell_breaks_the_run(kind):
    """Each column with each cell, in turn over the families; and each column left out."""
    rows = table(kind, most=1)
    for at, column in enumerate(rows[0]):
        changed = [
            row | {column: CELLS[(place + turn + at) % len(CELLS)]}
            for place, row in enumerate(rows)
            for turn in range(max(1, 2 * len(CELLS) // len(rows)))
        ]
        changed += [{k: v for k, v in row.items() if k != column} for row in rows[at % 3 :: 3]]
        found = validate(changed, kind=kind)
        assert rows_told(found) == len(changed), column
        assert all(reason for _, reason in found.skipped), column


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_rows_of_another_kind_say_why_they_are_skipped(kind, other):
    if kind != other:
        found = validate(table(kind), kind=other).to_dict()
        assert found["pooled"]["n"] + len(found["skipped"]) == len(table(kind))


RUN = {"global_batch": "64", "n_gpus": "8", "tp": "8", "seq_len": "8192", "step_time_s": "9.1"}
RUN |= {"model": "Llama3_8B", "hardware": "H100", "flash_attention": "1"}
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


def test_two_absurd_counts_take_no_time():
    row = RUN | {"n_gpus": "999999999999984", "gpus_per_node": "999999999999984"}
    assert "gpus_per_node" in validate([row]).skipped[0][1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_data_frame_is_a_table_too(kind, tmp_path):
    pandas = pytest.importorskip("pandas")
    path = write(tmp_path / "rows.csv", table(kind))
    assert validate(pandas.read_csv(path)).to_dict() == validate(path).to_dict()


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


@pytest.mark.parametrize("kind", KINDS)
def test_every_column_that_is_read_is_documented(kind):
    page = Path("research/README.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {kind}\n")[1].split("\n## ")[0]
    code = Path(f"research/readers/{kind}.py").read_text(encoding="utf-8")
    read = set(re.findall(r'row\.(?:number|whole|text|word|measured)\(\s*"(\w+)"', code))
    assert read
    if "shape_of(" in code:
        read |= {"layers", "hidden", "heads", "kv_heads", "ffn", "vocab"}
    assert not {name for name in read - {"group", "split"} if f"`{name}`" not in section}


@pytest.mark.parametrize("name", [*KINDS, "serving_2", "serving_decode", "energy_2"])
def test_every_row_has_a_name_a_source_and_a_split(name):
    text = Path(f"research/measurements/{name}.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert len({row["id"] for row in rows}) == len(rows)
    assert {row["split"] for row in rows} == {"calibrate", "check"}
    assert all(row["source"] for row in rows)
    if name not in ("serving_2", "energy_2", "tiny"):  # collections, which their source names
        assert all(row["url"].startswith("https://") for row in rows)


WORD = "x" * 5000
SKIPPED = [
    {"id": "a", "global_batch": 4, "hardware": WORD, "model": WORD, "step_time_s": 1},
    {"id": "a", "global_batch": 4, "precision": WORD, "step_time_s": 1},
    {"id": "b", "isl": 4, "quantity": WORD, "value": 1, "hardware": "H100", "model": WORD},
    {"id": "c", "zero_stage": 1, "quantity": WORD, "model": WORD, "value": 1},
    {"id": "d", "message_bytes": 1, "hardware": WORD, "dtype": WORD, "operation": WORD, "value": 1},
    {"id": "e", "sequences": 1, "hardware": WORD, "model": WORD, "value": 1},
    {"id": "f", "tokens_per_s": 1, "hardware": WORD, "work": WORD, "quantity": WORD, "value": 1},
]


@pytest.mark.parametrize("row", SKIPPED, ids=lambda row: row["id"])
def test_reasons_do_not_repeat_long_cells(row):
    for word in (WORD, "GEMM", "all_reduce", "training", "H100"):
        for column in row.keys() - {"id"}:
            found = validate([row | {column: word}])
            assert found.skipped
            assert all(WORD[:300] not in reason for _, reason in found.skipped)
