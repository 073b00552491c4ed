"""Rows of data files: their schema, their layout, and the names that editors complete."""

import subprocess
import sys
import tomllib

import pytest

from mlsysim import (
    Q_,
    Accelerator,
    Band,
    Calibration,
    ConfigError,
    Frameworks,
    Hardware,
    Infra,
    Machines,
    Models,
    NetworkFabric,
    ServingCalibration,
    ServingCalibrations,
    Systems,
    UnknownEntryError,
)
from mlsysim.core.fields import priors
from mlsysim.core.types import Entry, FixedShapeModel, PowerCalibration, TransformerModel, cite
from mlsysim.core.types.calibration import UNSEEN_BAND
from mlsysim.registry import tables
from mlsysim.registry.tables import Sections, constants, record_of, table
from research.fits.files import DATA, toml_text, with_bands
from tools import stubs

# People write two of the files, and programs write the others.
FITS = sorted({file.name for file in DATA.glob("*.toml")} - {"architectures.toml", "models.toml"})


def test_an_outdated_stub_fails_the_check_until_it_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(stubs, "path", lambda module: tmp_path / module.__name__)
    for module in stubs.MODULES:
        (tmp_path / module.__name__).write_text("")
    assert [stubs.main(words) for words in (["--check"], [], ["--check"])] == [1, 0, 0]


@pytest.mark.parametrize("file", FITS)
def test_files_have_the_layout_in_which_fits_write_them(file):
    text = (DATA / file).read_text(encoding="utf-8")
    assert toml_text(tomllib.loads(text)) == text


def test_a_fit_writes_bands_as_pairs():
    bands = {"itl_band": Band(low=0.87654, high=1.2), "ttft_band": Band()}
    assert with_bands({"kv_efficiency": 0.5}, bands) == {
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


def test_fitted_constants_of_engines_are_within_their_limits():
    for row in ServingCalibrations:
        for name, prior in priors(ServingCalibration).items():
            value = getattr(row, name)
            if row.source_of(name).title.startswith("Fitted"):
                assert prior.low <= getattr(value, "magnitude", value) <= prior.high, row


@pytest.mark.parametrize("catalog", [Hardware, Models, Systems, Infra])
def test_rows_have_names_of_their_own_and_are_the_rows_of_their_tiers(catalog):
    assert len({row.name for row in catalog}) == len(catalog)
    assert sum(len(tier) for tier in catalog.tiers().values()) == len(catalog)
    for tier, rows in catalog.tiers().items():
        for name, row in rows.items():
            assert getattr(catalog, name) is getattr(getattr(catalog, tier), name) is row


@pytest.mark.parametrize("catalog", [Models, Systems, Infra])
def test_every_row_is_sourced_or_an_estimate(catalog):
    for row in catalog:
        if not isinstance(row, Entry) or row.estimated == set(row._si):
            continue
        assert row.source.url.startswith("https://")
        assert row.source.checked
        for field, source in row.field_sources.items():
            counted = source.title.startswith("Counted")
            assert source.url.startswith("https://") or counted or row.is_estimated(field)


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
    assert old.itl_band == Band(low=0.9, high=1.2)
    assert old.layer_overhead.to("us").magnitude == 30
    assert str(old.source_of("kv_efficiency")) == "Fit, runs of A100"
    assert old.memory_efficiency == priors(ServingCalibration)["memory_efficiency"].usual
    assert old.is_estimated("memory_efficiency")
    assert not old.is_estimated("kv_efficiency")
    assert not old.is_estimated("ffn_bytes")
    assert old.source_of("ffn_bytes").title == "Counted"
    # The band of the old engine does not hold for the new one.
    assert not new.itl_band.known
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
    text = (
        "row,machine,software,basis,band,unseen_band,source\n"
        "New,A100,MaxText,unseen,0.9 1.2,,fit_training\n"
    )
    catalogs = {"machine": Machines, "software": Frameworks}
    row = rows_of(monkeypatch, tmp_path, text, Calibration, **catalogs)["New"].__get__(None)
    assert row.machine is Machines.A100
    assert row.software is Frameworks.MaxText
    assert row.name == f"{Machines.A100.name}, {Frameworks.MaxText.name}"
    assert (row.band, row.unseen_band) == (Band(low=0.9, high=1.2), UNSEEN_BAND)


@pytest.mark.parametrize("edges", ["0.9", "0.9 1.2 1.3", [1.1, 1.2], ["low", "high"]])
def test_what_a_file_cannot_state_as_a_band_is_an_error(edges):
    with pytest.raises(ConfigError, match="Row: power_band"):
        record_of("Row", {"power_band": edges}, PowerCalibration)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("row,name,bandwith [GB/s],source\nA,A,1,selene\n", UnknownEntryError),
        ("row,name,bandwidth [GB/s],latency [us],source\nA,A,1,1,selena\n", UnknownEntryError),
        ("row,name,bandwidth [GB],latency [us],source\nA,A,1,1,selene\n", ConfigError),
        ("row,name,bandwidth [GB/s],latency [us],source\nA,A,-1,1,selene\n", ConfigError),
        ("row,name,bandwidth [GB/s],latency [us],source\nA,A,fast,1,selene\n", ConfigError),
        ("row,name,bandwidth [GB/s],source\nA,A,1,selene\n", ConfigError),
        ("row,name,bandwidth [GB/s],latency [us],source\nA,A,1,selene\n", ConfigError),
        (
            "row,name,bandwidth [GB/s],latency [us],source\nA,A,1,1,selene\nA,A,1,1,selene\n",
            ConfigError,
        ),
    ],
)
def test_what_a_table_cannot_have_is_an_error(monkeypatch, tmp_path, text, error):
    with pytest.raises(error, match=r"rows\.csv, A: "):
        rows_of(monkeypatch, tmp_path, text, NetworkFabric)["A"].__get__(None)


DEVICES = {
    "Cloud": {
        "Big": {
            "name": "Big",
            "note": "For tests.",
            "release_year": 2024,
            "compute": {"fp16": "100 TFLOP/s", "int8": "200 TOPS"},
            "memory": {"capacity": "80 GB", "bandwidth": "2 TB/s"},
            "source": "selene",
            "sources": {"compute": "nvlink", "memory.bandwidth": "efa"},
            "estimated": ["compute.int8"],
        },
        "Bigger": {
            "name": "Bigger",
            "release_year": 2025,
            "compute": {"like": "Big", "int8": "300 TOPS"},
            "memory": {"like": "Big"},
            "tdp": "500 W",
            "source": "selene",
        },
        "Limited": {
            "like": "Big",
            "name": "Limited",
            "memory": {"like": "Big", "capacity": "40 GB"},
        },
    }
}


def devices_of(monkeypatch, content, *files):
    monkeypatch.setattr(tables, "read_toml", lambda name: content)
    return Sections(files or ("maker.toml",), lambda *row: record_of(*row, Accelerator))("Cloud")()


def test_a_section_is_a_record(monkeypatch):
    rows = devices_of(monkeypatch, DEVICES)
    assert list(rows) == ["Big", "Bigger", "Limited"]
    assert rows["Big"].note == "For tests."
    big, bigger, limited = (row.__get__(None) for row in rows.values())
    assert big.memory.bandwidth == Q_(2, "TB/s")
    assert big.source_of("memory.bandwidth") is cite("efa")
    assert big.source_of("compute.fp16") is cite("nvlink")
    assert big.estimated == {"compute.int8"}
    # A record like another row's has its numbers, and a row has its sources too.
    assert bigger.compute.fp16 == big.compute.fp16
    assert bigger.compute.int8 == Q_(300, "TOPS")
    assert bigger.memory == big.memory
    assert bigger.source_of("compute.fp16") is cite("selene")
    assert limited.compute == big.compute
    assert (limited.memory.capacity, limited.memory.bandwidth) == (Q_(40, "GB"), Q_(2, "TB/s"))
    assert limited.source_of("compute.fp16") is cite("nvlink")


@pytest.mark.parametrize(
    ("change", "error", "field"),
    [
        ({"tpd": "500 W"}, UnknownEntryError, "tpd"),
        ({"tdp": "500 GB"}, ConfigError, "tdp"),
        ({"tdp": 500}, ConfigError, "tdp"),
        ({"tdp": "-5 W"}, ConfigError, "tdp"),
        ({"memory": {"capacity": "80 GB"}}, ConfigError, "bandwidth"),
        ({"memory": {"like": "Biggest"}}, UnknownEntryError, "like"),
        ({"source": "selena"}, UnknownEntryError, "source"),
        ({"sources": {"tpd": "selene"}}, UnknownEntryError, "tpd"),
        ({"sources": {"tdp": "selena"}}, UnknownEntryError, "sources"),
        ({"estimated": ["tpd"]}, UnknownEntryError, "tpd"),
        ({"generation": "hoper"}, UnknownEntryError, "generation"),
    ],
)
def test_what_a_section_cannot_have_is_an_error(monkeypatch, change, error, field):
    content = {"Cloud": {"Big": DEVICES["Cloud"]["Big"] | change}}
    with pytest.raises(error, match=rf"maker\.toml, Big: .*{field}"):
        devices_of(monkeypatch, content)["Big"].__get__(None)


def test_a_row_of_no_catalog_and_a_second_row_of_a_name_are_errors(monkeypatch):
    with pytest.raises(UnknownEntryError, match=r"maker\.toml"):
        devices_of(monkeypatch, DEVICES | {"Clod": {}})
    with pytest.raises(ConfigError, match=r"other\.toml, Big"):
        devices_of(monkeypatch, DEVICES, "maker.toml", "other.toml")


def test_a_row_with_several_kinds_names_its_own(monkeypatch):
    shape = {"kind": "Square", "hidden_dim": 64}
    with pytest.raises(UnknownEntryError, match="Square"):
        record_of("models.toml, A", shape, TransformerModel, FixedShapeModel)


def test_a_file_that_is_not_toml_is_an_error(monkeypatch, tmp_path):
    (tmp_path / "bad.toml").write_text("[Cloud.A\n", encoding="utf-8")
    monkeypatch.setattr(tables, "DATA", tmp_path)
    with pytest.raises(ConfigError, match=r"bad\.toml"):
        tables.read_toml("bad.toml")
