"""Rows of data files: their schema, their layout, and the names that editors complete."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

from mlsysim import (
    Q_,
    Calibration,
    ConfigError,
    Frameworks,
    Machines,
    NetworkFabric,
    ServingCalibration,
    ServingCalibrations,
    UnknownEntryError,
)
from mlsysim.core.fields import priors
from mlsysim.core.types import cite
from mlsysim.registry import tables
from mlsysim.registry.tables import constants, table
from research.fits.files import DATA, toml_text, with_bands
from tools.stubs import PATH, stub

# People write the table of architectures; programs write the other files.
FITS = sorted(path.name for path in DATA.glob("*.toml") if path.name != "architectures.toml")


def test_the_stub_names_every_row():
    assert stub() == PATH.read_text(encoding="utf-8"), "run python -m tools.stubs"


@pytest.mark.parametrize("file", FITS)
def test_files_have_the_layout_in_which_fits_write_them(file):
    text = (DATA / file).read_text(encoding="utf-8")
    assert toml_text(tomllib.loads(text)) == text


def test_a_fit_writes_bands_as_pairs():
    edges = {"itl_band_low": 0.87654, "itl_band_high": 1.2}
    assert with_bands({"kv_efficiency": 0.5}, edges) == {
        "kv_efficiency": 0.5,
        "itl_band": [0.877, 1.2],
    }


def test_import_reads_no_file():
    code = (
        "import mlsysim; from mlsysim.registry.tables import read_toml; "
        "print(read_toml.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"


@pytest.mark.parametrize("row", ServingCalibrations, ids=lambda row: row.name)
def test_fitted_constants_of_engines_are_within_their_limits(row):
    for name, prior in priors(ServingCalibration).items():
        value = getattr(row, name)
        if row.source_of(name).title.startswith("Fitted"):
            assert prior.low <= getattr(value, "magnitude", value) <= prior.high


FILE = {
    "sources": {
        "common": {"title": "Common", "estimated": True},
        "fitted": {"title": "Fit", "locator": "runs of {runs}"},
        "counted": {"title": "Counted"},
    },
    "usual": {"source": "common", "ffn_bytes": "counted"},
    "rows": {
        "Old": {
            "name": "Old engine",
            "engine": "engine",
            "note": "Of 2024.",
            "runs": "A100",
            "formats": ["fp16"],
            "fitted": {"kv_efficiency": 0.5, "layer_overhead": 30.0, "itl_band": [0.9, 1.2]},
        },
        "New": {
            "name": "New engine",
            "engine": "engine",
            "parent": "Old",
            "runs": "H100",
            "fitted": {"layer_overhead": 20.0, "memory_efficiency": "Old"},
        },
    },
}


@pytest.fixture
def file(monkeypatch):
    monkeypatch.setattr(tables, "read_toml", lambda name: FILE)
    return constants("engines.toml", ServingCalibration)


def test_a_row_has_fitted_inherited_and_usual_constants(file):
    rows = file()
    assert rows["Old"].note == "Of 2024."
    old, new = (rows[name].__get__(None) for name in ("Old", "New"))
    assert old.formats == ("fp16",)
    assert (old.itl_band_low, old.itl_band_high) == (0.9, 1.2)
    assert old.layer_overhead.to("us").magnitude == 30
    assert str(old.source_of("kv_efficiency")) == "Fit, runs of A100"
    assert old.memory_efficiency == priors(ServingCalibration)["memory_efficiency"].usual
    assert old.is_estimated("memory_efficiency")
    assert not old.is_estimated("kv_efficiency")
    assert not old.is_estimated("ffn_bytes")
    assert old.source_of("ffn_bytes").title == "Counted"
    # The band of the old engine does not hold for the new one.
    assert new.itl_band_low is None
    assert new.kv_efficiency == 0.5
    assert str(new.source_of("kv_efficiency")) == "Fit, runs of A100"
    assert str(new.source_of("layer_overhead")) == "Fit, runs of H100"
    assert new.memory_efficiency == old.memory_efficiency
    assert not new.is_estimated("memory_efficiency")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"colour": "red"}, UnknownEntryError),
        ({"fitted": {"kv_eficiency": 0.5}}, UnknownEntryError),
        ({"counted": {"kv_efficiency": 0.5}}, ConfigError),
        ({"fitted": {"kv_efficiency": 1.5}}, ConfigError),
    ],
)
def test_what_a_row_cannot_have_is_an_error(monkeypatch, change, error):
    row = FILE["rows"]["Old"] | change
    monkeypatch.setattr(tables, "read_toml", lambda name: FILE | {"rows": {"Old": row}})
    with pytest.raises(error):
        constants("engines.toml", ServingCalibration)()["Old"].__get__(None)


def rows_of(monkeypatch, tmp_path, text, kind, **catalogs):
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8")
    monkeypatch.setattr(tables, "DATA", tmp_path)
    return table("rows.csv", kind, **catalogs)()


def test_a_line_of_a_table_is_a_record(monkeypatch, tmp_path):
    text = (
        "row,name,bandwidth [GB/s],latency [us],peers,source,source of latency,estimated,note\n"
        "Slow,A slow link,0.5,2,,selene,nccl_tuning,latency,For tests.\n"
        "Mesh,A mesh,300,0.6,7,selene,,,\n"
    )
    rows = rows_of(monkeypatch, tmp_path, text, NetworkFabric)
    assert list(rows) == ["Slow", "Mesh"]
    assert rows["Slow"].note == "For tests."
    slow, mesh = (row.__get__(None) for row in rows.values())
    assert slow.bandwidth == Q_(0.5, "GB/s")
    assert slow.is_estimated("latency")
    assert slow.source_of("latency") is cite("nccl_tuning")
    assert slow.source_of("bandwidth") is cite("selene")
    assert (slow.peers, mesh.peers) == (NetworkFabric.__dataclass_fields__["peers"].default, 7)
    assert mesh.source_of("latency") is cite("selene")


def test_a_table_may_refer_to_rows_of_another(monkeypatch, tmp_path):
    text = "row,machine,software,basis,source\nNew,A100,MaxText,unseen,fit_training\n"
    catalogs = {"machine": Machines, "software": Frameworks}
    row = rows_of(monkeypatch, tmp_path, text, Calibration, **catalogs)["New"].__get__(None)
    assert row.machine is Machines.A100
    assert row.software is Frameworks.MaxText
    assert row.name == f"{Machines.A100.name}, {Frameworks.MaxText.name}"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("row,name,bandwith [GB/s],source\nA,A,1,selene\n", UnknownEntryError),
        ("row,name,bandwidth [GB/s],latency [us],source\nA,A,1,1,selena\n", UnknownEntryError),
        ("row,name,bandwidth [GB],latency [us],source\nA,A,1,1,selene\n", ConfigError),
        ("row,name,bandwidth [GB/s],latency [us],source\nA,A,-1,1,selene\n", ConfigError),
    ],
)
def test_what_a_table_cannot_have_is_an_error(monkeypatch, tmp_path, text, error):
    with pytest.raises(error):
        rows_of(monkeypatch, tmp_path, text, NetworkFabric)["A"].__get__(None)
