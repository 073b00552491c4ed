"""Energy, carbon and water of fleets."""

import dataclasses

import pytest

from mlsysim import (
    Q_,
    ConfigError,
    Hardware,
    Infra,
    SustainabilitySolver,
    Systems,
    standalone_fleet,
    sweep,
)
from mlsysim.core.errors import UnknownEntryError
from mlsysim.core.result import InUnit

FLEET = Systems.Clusters.Research_256
ASKED = {"fleet": FLEET, "duration_days": 30, "datacenter": Infra.Quebec}


def solve(**changes):
    return SustainabilitySolver.solve(**ASKED | changes)


def test_by_hand():
    answer = solve()
    host = 0.61 * (10_200 - 8 * 700)
    kilowatts = 32 * (8 * 700 + host) / 1000
    assert answer.it_power.to("kW").magnitude == pytest.approx(kilowatts)
    assert answer.it_energy_kwh == pytest.approx(kilowatts * 30 * 24)
    assert answer.total_energy_kwh == pytest.approx(answer.it_energy_kwh * 1.4)
    assert answer.carbon_footprint_kg == pytest.approx(answer.total_energy_kwh * 0.027)
    assert answer.water_usage_liters == pytest.approx(answer.it_energy_kwh * 0.36)
    embodied = 32 * (8 * 164 + 5700) * 30 / (3 * 365.25)
    assert answer.embodied_carbon.to("kg").magnitude == pytest.approx(embodied)
    assert answer.total_carbon == answer.carbon_footprint + answer.embodied_carbon
    assert answer.pue == 1.4
    assert answer.region_name == "Québec"


def test_an_h100_server_draws_what_was_measured():
    """Latif et al. (2025): 8.4 kW at most."""
    one = dataclasses.replace(FLEET, count=1)
    assert solve(fleet=one).it_power.to("kW").magnitude == pytest.approx(8.4, abs=0.05)


@pytest.mark.parametrize(("utilization", "watts"), [(0, 70), (0.5, 385), (1, 700)])
def test_power_lies_between_idle_and_design(utilization, watts):
    assert solve(utilization=utilization).device_power.to("W").magnitude == pytest.approx(watts)


def test_the_default_is_full_power():
    assert dict(solve()) == dict(solve(utilization=1))


def test_a_facility_takes_the_place_of_its_grids_typical_one():
    typical = solve(datacenter=Infra.US_Avg)
    own = solve(datacenter=Infra.Hyperscale_US)
    assert (typical.pue, own.pue) == (1.4, 1.09)
    assert typical.it_energy == own.it_energy
    assert typical.region_name == own.region_name == "United States, average"
    assert own.carbon_footprint < typical.carbon_footprint
    assert own.embodied_carbon == typical.embodied_carbon


def test_a_grid_keeps_its_sources_and_estimates():
    derivation = solve(datacenter=Infra.Norway).explain("total_energy", "water_usage")
    found = {item.name: item for item in derivation.inputs}
    assert found["pue"].source == Infra.Norway.source_of("pue")
    assert found["wue"].source == Infra.Norway.source_of("wue")
    assert found["pue"].estimated
    assert not {
        item.name: item for item in solve(datacenter=Infra.US_Avg).explain("total_energy").inputs
    }["pue"].estimated


@pytest.mark.parametrize("field", ["it_energy", "carbon_footprint", "embodied_carbon"])
def test_in_proportion_to_time_and_size(field):
    assert solve(duration_days=60)[field].magnitude == pytest.approx(2 * solve()[field].magnitude)
    twice = dataclasses.replace(FLEET, count=64)
    assert solve(fleet=twice)[field].magnitude == pytest.approx(2 * solve()[field].magnitude)


def test_given_figures_take_the_place_of_estimates():
    answer = solve(
        host_power=Q_(1, "kW"), device_carbon=100, host_carbon=0, service_life=Q_(30, "day")
    )
    assert answer.host_power == Q_(1000, "W")
    assert answer.embodied_carbon.to("kg").magnitude == pytest.approx(256 * 100)
    assert not any(item.estimated for item in answer.explain("embodied_carbon").inputs)


def test_a_host_never_draws_less_than_nothing():
    node = dataclasses.replace(FLEET.node, power=Q_(8 * 700, "W"))
    answer = solve(fleet=dataclasses.replace(FLEET, node=node))
    assert answer.host_power == Q_(0, "W")
    with pytest.raises(ConfigError, match=r"less than its devices' .* 8 x 700 W") as e:
        dataclasses.replace(FLEET.node, power=Q_(5, "kW"))
    assert e.value.argument == "power"


def test_unknown_power_says_what_to_pass():
    dark = dataclasses.replace(FLEET.node, power=None)
    fleet = dataclasses.replace(FLEET, node=dark)
    with pytest.raises(ConfigError, match=r"host_power is missing.*DGX H100.*Q_\(0") as e:
        solve(fleet=fleet)
    assert e.value.argument == "host_power"
    assert solve(fleet=fleet, host_power=Q_(0, "W")).it_power == Q_(256 * 700, "W")
    silent = dataclasses.replace(FLEET.node.accelerator, tdp=None)
    nameless = dataclasses.replace(dark, accelerator=silent)
    with pytest.raises(ConfigError, match="design power of NVIDIA H100") as e:
        solve(fleet=dataclasses.replace(FLEET, node=nameless), host_power=Q_(0, "W"))
    assert e.value.argument == "fleet"


def test_plain_numbers_read_like_fields():
    answer = solve()
    assert answer["carbon_footprint_kg"] == answer.carbon_footprint_kg
    assert isinstance(answer.carbon_footprint_kg, float)
    assert "carbon_footprint_kg" in answer
    assert "carbon_footprint_kg" not in dict(answer), "it is no field of its own"
    assert isinstance(type(answer).carbon_footprint_kg, InUnit)
    assert list(answer.explain("carbon_footprint_kg").roots) == ["carbon_footprint"]
    with pytest.raises(UnknownEntryError, match="carbon_footprint"):
        answer["carbon_footprint_g"]


def test_what_stands_alone_embodies_no_server():
    """A microcontroller is not charged with an H100 and the server around it."""
    alone = standalone_fleet(Hardware.ESP32_S3)
    answer = solve(fleet=alone)
    assert answer.embodied_carbon is None
    assert answer.total_carbon is None
    assert answer.carbon_footprint_kg > 0
    known = solve(fleet=alone, device_carbon=2, service_life=Q_(30, "day"))
    assert known.embodied_carbon.to("kg").magnitude == pytest.approx(2)
    assert [item.name for item in answer.explain("carbon_footprint").inputs]
    both = sweep(SustainabilitySolver, **ASKED | {"fleet": [FLEET, alone]})
    assert both["embodied_carbon"][0] == solve().embodied_carbon
    assert both.result(1).embodied_carbon is None


def test_a_rack_embodies_its_trays_and_servers_embody_theirs():
    """72 GPUs as an NVL72, and as nine DGX B200: nearly the same carbon, not a third of it."""
    year = {"duration_days": Q_(1, "year"), "datacenter": Infra.US_Avg}
    made = {}
    for node, count in ((Systems.GB200_NVL72, 1), (Systems.DGX_B200, 9)):
        fleet = dataclasses.replace(FLEET, node=node, count=count)
        answer = SustainabilitySolver.solve(fleet=fleet, **year)
        made[node.name] = answer.embodied_carbon.to("kg").magnitude
    assert made["GB200 NVL72"] == pytest.approx((72 * 284 + 18 * 2850) / 3)
    assert made["DGX B200"] == pytest.approx(9 * (8 * 284 + 5700) / 3)


def test_a_figure_for_the_host_counts_once_per_tray():
    rack = dataclasses.replace(FLEET, node=Systems.GB300_NVL72, count=2)
    answer = solve(fleet=rack, device_carbon=0, host_carbon=100, service_life=Q_(30, "day"))
    assert answer.embodied_carbon.to("kg").magnitude == pytest.approx(2 * 18 * 100)


def test_an_idle_blackwell_draws_more_than_an_idle_hopper():
    draws = {
        node: solve(fleet=dataclasses.replace(FLEET, node=node), utilization=0).device_power
        for node in (Systems.DGX_B200, Systems.HGX_H200)
    }
    assert draws[Systems.DGX_B200].to("W").magnitude == pytest.approx(165)
    assert draws[Systems.HGX_H200].to("W").magnitude == pytest.approx(70)
