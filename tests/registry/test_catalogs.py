"""Rows of data files: their schema, their layout, and the names that editors complete."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

from mlsysim import ConfigError, ServingCalibration, ServingCalibrations, UnknownEntryError
from mlsysim.core.fields import priors
from mlsysim.registry import tables
from mlsysim.registry.tables import constants
from research.fits.files import DATA, toml_text, with_bands
from tools.stubs import PATH, stub

FITS = sorted(path.name for path in DATA.glob("*.toml"))


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
