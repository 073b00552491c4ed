"""Grids, racks and datacenters."""

import dataclasses

import pytest

from mlsysim.core.errors import ConfigError
from mlsysim.core.types import Datacenter, GridProfile
from mlsysim.registry import Infra

ROWS = dict(Infra.items())


def test_power_and_water_are_plausible():
    for name, row in ROWS.items():
        assert 1.0 < row.pue < 2.0, name
        if isinstance(row, (GridProfile, Datacenter)):
            assert 0 <= row.wue.to("L/kWh").magnitude < 2, name


def test_united_states_agree_with_the_epa_within_the_upstream_share():
    smokestacks = 823.1 * 453.59237 / 1000  # eGRID2022: lb/MWh to g/kWh
    assert Infra.US_Avg.carbon_intensity.to("g/kWh").magnitude == pytest.approx(
        smokestacks, rel=0.05
    )


COUNTRIES = [row for row in Infra.Grids if row.source is Infra.Norway.source]
HOURLY = [row for row in Infra.Grids if row.hourly]


def test_countries_come_from_one_edition_and_most_have_a_price():
    assert len(COUNTRIES) >= 25
    assert Infra.US_Avg in COUNTRIES
    priced = [row for row in COUNTRIES if row.kwh_price is not None]
    assert len(priced) >= 25
    assert Infra.United_Kingdom.kwh_price is None, "its last report is of 2020"
    assert all(0.02 < row.kwh_price.to("USD/kWh").magnitude < 0.3 for row in priced)


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("Quebec", 27), ("Norway", 30.75), ("US_Avg", 383.55), ("Poland", 614.98),
        ("France", 44.18), ("Germany", 342.06), ("Sweden", 35.89), ("China", 557.5),
        ("India", 708.96), ("Ireland", 279.79), ("Singapore", 498.74), ("Malaysia", 604),
        ("Indonesia", 682), ("Thailand", 555), ("Mexico", 483), ("Chile", 266), ("Israel", 567),
        ("Qatar", 603), ("Iceland", 28), ("New_Zealand", 120), ("Czechia", 414), ("Greece", 320),
        ("Kazakhstan", 802),
    ],
)  # fmt: skip
def test_intensities_as_printed(name, printed):
    half_a_digit = 0.5 if isinstance(printed, int) else 0.05
    intensity = ROWS[name].carbon_intensity.to("g/kWh").magnitude
    assert intensity == pytest.approx(printed, abs=half_a_digit)


@pytest.mark.parametrize("grid", HOURLY, ids=lambda grid: grid.name)
def test_a_profile_averages_to_the_grid_and_all_hours_give_it_back(grid):
    mean = sum(grid.hourly) / 24
    assert mean == pytest.approx(grid.carbon_intensity.to("g/kWh").magnitude, rel=0.06)
    assert grid.during(0, 24).si("carbon_intensity") == pytest.approx(grid.si("carbon_intensity"))
    assert grid.during(7, 7).si("carbon_intensity") == pytest.approx(grid.si("carbon_intensity"))
    assert not grid.during(0, 24).hourly


def test_when_matters_where_the_sun_makes_power():
    grid = Infra.California
    assert grid.during(9, 15).carbon_intensity < 0.62 * grid.during(18, 24).carbon_intensity
    night = [grid.during(hour, hour + 1).si("carbon_intensity") for hour in (22, 23, 0, 1)]
    assert grid.during(22, 2).si("carbon_intensity") == pytest.approx(sum(night) / 4)
    quebec = dataclasses.replace(Infra.Quebec, hourly=tuple(range(1, 25)))
    assert quebec.during(0, 1).carbon_intensity == quebec.carbon_intensity * (1 / 12.5)


@pytest.mark.parametrize(
    ("grid", "start", "stop", "argument"),
    [
        (Infra.Poland, 8, 16, "hourly"),
        (Infra.California, -1, 5, "start"),
        (Infra.California, 1, 25, "stop"),
        (Infra.California, 1.5, 5, "start"),
        (Infra.California, True, 5, "start"),
    ],
)
def test_hours_that_are_none_are_refused(grid, start, stop, argument):
    with pytest.raises(ConfigError) as caught:
        grid.during(start, stop)
    assert caught.value.argument == argument


@pytest.mark.parametrize("profile", [(1.0,) * 23, (0.0,) * 24, ("a",) * 24, (1.0,) * 25])
def test_a_profile_has_24_positive_hours(profile):
    with pytest.raises(ConfigError):
        dataclasses.replace(Infra.Quebec, hourly=profile)
