"""What fleets cost, bought or rented."""

from __future__ import annotations

import dataclasses
import math

import pytest

from mlsysim import (
    Q_,
    ConfigError,
    DistributedSolver,
    EconomicsSolver,
    Fleet,
    Hardware,
    Infra,
    Models,
    ServingSolver,
    SustainabilitySolver,
    Systems,
    sweep,
)

FLEET = Systems.Clusters.Research_256
ASKED = {"fleet": FLEET, "duration_days": 365}


def solve(**changes):
    return EconomicsSolver.solve(**ASKED | changes)


def unpriced():
    return dataclasses.replace(FLEET, node=dataclasses.replace(FLEET.node, unit_price=None))


def unoffered():
    """Return the fleet with a device that nobody rents out, and servers without a price."""
    device = dataclasses.replace(FLEET.node.accelerator, name="H100 of a kind")
    node = dataclasses.replace(FLEET.node, unit_price=None, accelerator=device)
    return dataclasses.replace(FLEET, node=node)


def test_by_hand():
    answer = solve(kwh_price=0.10, datacenter=Infra.Hyperscale_US)
    energy = 32 * (8 * 0.7 + 0.61 * 4.6) * 365 * 24 * 1.09
    assert answer.capex_usd == 32 * 270_000
    assert answer.opex_energy_usd == pytest.approx(energy * 0.10)
    assert answer.opex_maintenance_usd == pytest.approx(0.05 * 8_640_000 * 365 / 365.25)
    assert answer.total_opex_usd == pytest.approx(
        answer.opex_energy_usd + answer.opex_maintenance_usd
    )
    assert answer.tco_usd == pytest.approx(answer.capex_usd + answer.total_opex_usd)
    share = 8_640_000 * 365 / (3 * 365.25)
    assert answer.capex_share.magnitude == pytest.approx(share)
    assert answer.period_cost.magnitude == pytest.approx(share + answer.total_opex_usd)
    assert answer.cost_per_device_hour.to("USD/h").magnitude == pytest.approx(
        answer.period_cost.magnitude / (256 * 365 * 24)
    )


def test_over_a_service_life_both_costs_are_the_same():
    answer = solve(duration_days=Q_(3, "year"))
    assert answer.period_cost.magnitude == pytest.approx(answer.tco.magnitude)


def test_energy_is_that_of_the_sustainability_solver():
    green = SustainabilitySolver.solve(**ASKED, datacenter=Infra.Poland, utilization=0.6)
    assert solve(grid=Infra.Poland, utilization=0.6).total_energy == green.total_energy


def test_the_facility_goes_before_the_grid_and_the_grid_before_the_default():
    assert solve().pue == Infra.US_Avg.pue
    assert solve(grid=Infra.Norway).pue == Infra.Norway.pue
    assert solve(datacenter=Infra.Poland).pue == Infra.Poland.pue
    assert solve(datacenter=Infra.Hyperscale_US, grid=Infra.Norway).pue == 1.09


def test_rent_is_all_that_a_rented_fleet_costs():
    answer = solve(fleet=unpriced(), rental_price=2.5)
    assert answer.rental_cost.magnitude == pytest.approx(256 * 365 * 24 * 2.5)
    assert answer.capex is answer.tco is answer.period_cost is answer.cost_per_device_hour is None
    assert answer.capex_usd is None
    assert "capex" in str(answer)


def test_missing_prices_say_what_to_pass():
    with pytest.raises(ConfigError, match="unit_price is missing") as caught:
        solve(fleet=unoffered())
    text = str(caught.value)
    assert caught.value.argument == "unit_price"
    assert "DGX H100" in text
    assert "240,000 USD" in text, "its devices alone have a price"
    assert "unit_price=Q_" in text
    assert "rental_price=Q_" in text
    assert solve(fleet=unpriced(), unit_price=300_000).capex_usd == 32 * 300_000


def test_without_a_price_the_median_offer_on_demand_sets_the_rent():
    answer = solve(fleet=unpriced())
    on_demand = sorted(
        row.price.to("USD/h").magnitude
        for row in Systems.Offers
        if row.accelerator is Hardware.H100 and row.commitment == "on demand"
    )
    assert len(on_demand) >= 3
    median = on_demand[(len(on_demand) - 1) // 2]
    assert answer.rental_cost.magnitude == pytest.approx(256 * 365 * 24 * median)
    name, date = answer.offer_name.rsplit(", ", 1)
    assert any((row.name, row.date) == (name, date) for row in Systems.Offers)
    assert answer.capex is None


def test_an_offer_is_taken_when_given_and_a_rent_goes_before_it():
    offer = Systems.AWS_H100_Block
    answer = solve(rental_offer=offer)
    assert answer.rental_cost.magnitude == pytest.approx(256 * 365 * 24 * 4.916)
    assert answer.offer_name == f"{offer.name}, {offer.date}"
    assert answer.capex_usd == 32 * 270_000
    rent = solve(rental_offer=offer, rental_price=2)
    assert rent.rental_cost.magnitude == pytest.approx(256 * 365 * 24 * 2)
    assert rent.offer_name is None
    assert solve().offer_name is None
    assert solve().rental_cost is None


def test_an_offer_for_another_device_is_refused():
    with pytest.raises(ConfigError) as caught:
        solve(rental_offer=Systems.Spheron_B200)
    assert caught.value.argument == "rental_offer"


def test_electricity_costs_what_the_grid_asks():
    cheap, dear = (solve(grid=grid).opex_energy / solve(grid=grid).total_energy
                   for grid in (Infra.Norway, Infra.Ireland))  # fmt: skip
    assert cheap.to("USD/kWh").magnitude == pytest.approx(0.0541)
    assert dear.to("USD/kWh").magnitude == pytest.approx(0.228)


def test_a_grid_without_a_price_takes_that_of_the_united_states_and_says_so():
    for row in (row for row in Infra.Grids if row.kwh_price is None):
        answer = solve(grid=row)
        price = (answer.opex_energy / answer.total_energy).to("USD/kWh")
        assert price.magnitude == pytest.approx(Infra.US_Avg.kwh_price.to("USD/kWh").magnitude)
        for words in (Infra.US_Avg.name, row.name, "pass kwh_price"):
            assert words in answer.kwh_price_source
        inputs = answer.explain("opex_energy", depth=9).unpruned().inputs
        assert "us_grid.kwh_price" in {item.origin for item in inputs}


def test_the_price_of_electricity_has_a_region():
    assert solve().kwh_price_source == Infra.US_Avg.name
    assert solve(datacenter=Infra.Nordic_Free_Cooling).kwh_price_source == Infra.Norway.name
    assert Infra.Norway.name not in solve(grid=Infra.Norway, kwh_price=0.1).kwh_price_source


def test_tokens():
    run = DistributedSolver.solve(
        model=Models.Llama3_70B,
        fleet=FLEET,
        batch_size=1024,
        tp_size=8,
        pp_size=4,
        microbatch_count=32,
    )
    answer = solve(
        token_throughput=run.token_throughput, training_tokens=1e12, rental_price=Q_(2, "USD/h")
    )
    rate = run.token_throughput.to("1/s").magnitude
    seconds = 365 * 86_400
    per_token = answer.period_cost.magnitude / (rate * seconds)
    assert answer.cost_per_token.to("USD").magnitude == pytest.approx(per_token)
    assert answer.training_time.to("s").magnitude == pytest.approx(1e12 / rate)
    assert answer.training_cost.magnitude == pytest.approx(per_token * 1e12)
    rent = 256 * 2 / 3600 / rate * 1e12
    assert answer.rental_training_cost.magnitude == pytest.approx(rent)
    # A run costs its share of the time, whatever the time asked about.
    hours = answer.training_time.to("h").magnitude * 256
    assert answer.training_cost.magnitude == pytest.approx(
        hours * answer.cost_per_device_hour.to("USD/h").magnitude
    )


def test_tokens_of_a_run_need_a_rate():
    with pytest.raises(ConfigError, match="token_throughput=") as caught:
        solve(training_tokens=1e12)
    assert caught.value.argument == "training_tokens"
    answer = solve()
    assert answer.cost_per_token is answer.training_time is answer.training_cost is None


def test_free_electricity_and_no_maintenance_are_allowed():
    answer = solve(kwh_price=0, maintenance_rate=0)
    assert answer.total_opex_usd == 0
    assert answer.tco == answer.capex


def test_an_axis_of_the_wrong_dimension_is_refused():
    with pytest.raises(ConfigError, match="service_life"):
        sweep(EconomicsSolver, **ASKED, service_life=[Q_(3, "year"), Q_(60, "W")])
    with pytest.raises(ConfigError, match=r"service_life.*no unit"):
        sweep(EconomicsSolver, **ASKED, service_life=[3, 5])
    with pytest.raises(ConfigError, match="kwh_price must be a flat axis"):
        sweep(EconomicsSolver, **ASKED, kwh_price=[])


def missing(given):
    """Return the argument that an error asks for, if there is one."""
    try:
        EconomicsSolver.solve(**given)
    except ConfigError as fault:
        return fault.argument
    return None


def test_every_server_has_an_answer_or_names_what_it_takes():
    """A rent needs no power, as it includes electricity; a purchase needs both."""
    whole = {"unit_price": Q_(1e5, "USD"), "host_power": Q_(1, "kW")}
    for node in Systems.Nodes:
        fleet = Fleet(name="own", node=node, count=2, fabric=Systems.Fabrics.RoCE_400G)
        given = {"fleet": fleet, "duration_days": 30}
        rented = EconomicsSolver.solve(**given, rental_price=Q_(3, "USD/h"))
        hours = 2 * node.accelerators_per_node * 720
        assert rented.rental_cost.to("USD").magnitude == pytest.approx(3 * hours), node.name
        asked: list[str] = []
        while (argument := missing(given | {key: whole[key] for key in asked})) in whole:
            assert argument not in asked, node.name
            asked.append(argument)
        if node.accelerator.tdp is None:
            assert missing(given | whole) == "fleet", node.name
            continue
        answer = EconomicsSolver.solve(**given, **{key: whole[key] for key in asked})
        assert answer.rental_cost is not None or answer.period_cost is not None, node.name
        bought = EconomicsSolver.solve(**given, **whole)
        assert bought.capex.to("USD").magnitude == pytest.approx(2e5), node.name
        assert bought.opex_energy.magnitude > 0, node.name


TOKENS = {
    "model": Models.Llama3_8B,
    "hardware": Hardware.H100,
    "seq_len": 4000,
    "output_len": 300,
    "batch_size": 64,
}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"cached_share": 0.5},
        {"loaded_share": 0.5},
        {"hardware": Systems.Nodes.DGX_H100, "tp_size": 4},
        {"efficiency": 0.5},
        {"output_len": 0},
        {"output_len": 1},
    ],
)
def test_times_of_tokens_add_up_to_the_time_of_a_request(more):
    r = ServingSolver.solve(**TOKENS | more)
    out = (TOKENS | more)["output_len"]
    known = 4000 * (more.get("cached_share", 0) + more.get("loaded_share", 0))
    parts = [(4000 - known, r.input_token_time)]
    assert (r.cached_token_time is None) == (known == 0)
    assert (r.output_token_time is None) == (out == 0)
    if known:
        parts.append((known, r.cached_token_time))
        assert 0 < r.cached_token_time < r.input_token_time < r.output_token_time
    if out:
        parts.append((out, r.output_token_time))
    total = sum(count * time.to("s").magnitude for count, time in parts)
    each = r.replica_devices / r.request_throughput.to("1/s").magnitude
    assert total == pytest.approx(each)


def test_a_price_for_each_kind_of_token():
    r = ServingSolver.solve(**TOKENS, cached_share=0.5)
    names = ("input_token_time", "cached_token_time", "output_token_time")
    job = {"fleet": Systems.Clusters.Research_256, "duration_days": 30, "rental_price": 3.0}
    found = EconomicsSolver.solve(**job, **{name: getattr(r, name) for name in names})
    for name in names:
        hours, kind = getattr(r, name).to("h").magnitude, name.removesuffix("_time")
        owned = hours * found.cost_per_device_hour.to("USD/h").magnitude
        cost, rent = getattr(found, f"cost_per_{kind}"), getattr(found, f"rental_cost_per_{kind}")
        assert cost.to("USD/Mtoken").magnitude == pytest.approx(1e6 * owned)
        assert rent.to("USD/Mtoken").magnitude == pytest.approx(3e6 * hours)
    assert EconomicsSolver.solve(**job).cost_per_input_token is None
    # One device's requests, all at the rent
    request = 2000 * found.rental_cost_per_input_token + 300 * found.rental_cost_per_output_token
    request += 2000 * found.rental_cost_per_cached_token
    rate = r.request_throughput.to("1/h").magnitude
    assert request.to("USD/token").magnitude == pytest.approx(3 / rate)


@pytest.mark.parametrize("name", ["kwh_price", "maintenance_rate", "rental_price", "unit_price"])
@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_no_accepted_amount_makes_a_total_infinite(name, size):
    given = {"fleet": Systems.Clusters.Research_256, "token_throughput": 1e-30}
    unit = EconomicsSolver.parameters[name].unit
    r = EconomicsSolver.solve(
        **given,
        duration_days=Q_(1e30, "s"),
        training_tokens=1e30,
        **{name: Q_(size, Q_(1, unit).to_base_units().units)},
    )
    numbers = [getattr(value, "magnitude", value) for value in r.values()]
    assert all(math.isfinite(number) for number in numbers if isinstance(number, float))
