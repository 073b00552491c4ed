"""Grids, racks and datacenters."""

import pytest

from mlsysim.core.types import Datacenter, GridProfile
from mlsysim.registry.infrastructure import Infra

ROWS = dict(Infra.items())
WITH_WATER = [name for name, row in ROWS.items() if isinstance(row, (GridProfile, Datacenter))]


@pytest.mark.parametrize("name", ROWS)
def test_every_row_is_sourced(name):
    row = ROWS[name]
    for source in (row.source, *row.field_sources.values()):
        assert source.title
        assert source.url.startswith("https://")
        assert source.checked


def test_names_are_unique():
    assert len({row.name for row in Infra}) == len(ROWS)
    assert Infra.Grids.Quebec is Infra.Quebec
    assert {"Quebec", "Norway", "US_Avg", "Poland"} <= set(Infra.Grids.names())


@pytest.mark.parametrize("name", ROWS)
def test_pue_is_plausible(name):
    assert 1.0 < ROWS[name].pue < 2.0


@pytest.mark.parametrize("name", WITH_WATER)
def test_water_is_plausible(name):
    assert 0 <= ROWS[name].wue.to("L/kWh").magnitude < 2


@pytest.mark.parametrize(
    ("name", "printed"), [("Quebec", 27), ("Norway", 30), ("US_Avg", 369), ("Poland", 662)]
)
def test_carbon_intensity_as_printed(name, printed):
    assert ROWS[name].carbon_intensity.to("g/kWh").magnitude == pytest.approx(printed, rel=5e-3)


def test_united_states_agree_with_the_epa_within_the_upstream_share():
    smokestacks = 823.1 * 453.59237 / 1000  # eGRID2022: lb/MWh to g/kWh
    assert Infra.US_Avg.carbon_intensity.to("g/kWh").magnitude == pytest.approx(
        smokestacks, rel=0.05
    )


def test_coal_is_dirtier_than_gas_and_gas_than_water():
    order = [Infra.Quebec, Infra.Norway, Infra.US_Avg, Infra.Poland]
    values = [grid.si("carbon_intensity") for grid in order]
    assert values == sorted(values)


def test_racks():
    assert Infra.Air_Cooled.cooling == "air"
    assert Infra.Liquid_Cooled.cooling == "liquid"
    assert Infra.Liquid_Cooled.power > Infra.Air_Cooled.power
    assert Infra.Liquid_Cooled.pue < Infra.Air_Cooled.pue


def test_a_guess_is_marked():
    assert Infra.Poland.is_estimated("pue")
    assert not Infra.Poland.is_estimated("carbon_intensity")
