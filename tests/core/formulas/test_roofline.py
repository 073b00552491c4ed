"""The roofline, a forward pass and its energy, against data sheets and published counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim.core.formulas import (
    arithmetic_intensity,
    attainable_rate,
    compute_time,
    facility_energy,
    fixed_shape_traffic,
    flops_utilization,
    memory_time,
    operational_carbon,
    ridge_point,
    roofline_time,
)
from mlsysim.core.units import Q_

positive = st.floats(1e-3, 1e18)


@pytest.mark.parametrize(
    ("device", "teraflops", "terabytes", "ridge"),
    [("H100 SXM", 989.4, 3.35, 295.3), ("A100 SXM 80GB", 312, 2.039, 153.0), ("T4", 65, 0.32, 203)],
)
def test_ridge_points(device, teraflops, terabytes, ridge):
    found = ridge_point(Q_(teraflops, "TFLOP/s"), Q_(terabytes, "TB/s"))
    assert found.to("flop/byte").magnitude == pytest.approx(ridge, abs=0.2), device


def test_attainable_rate_of_an_h100():
    peak, bandwidth = Q_(989.4, "TFLOP/s"), Q_(3.35, "TB/s")
    for intensity, teraflops in ((1, 3.35), (100, 335), (295, 988.25), (296, 989.4), (1e6, 989.4)):
        rate = attainable_rate(Q_(intensity, "flop/byte"), peak, bandwidth)
        assert rate.to("TFLOP/s").magnitude == pytest.approx(teraflops)


@given(positive, positive, positive, positive)
def test_time_and_rate_are_two_views_of_one_roof(flops, traffic, peak, bandwidth):
    time = roofline_time(compute_time(flops, peak, 1.0), memory_time(traffic, bandwidth))
    rate = attainable_rate(arithmetic_intensity(flops, traffic), peak, bandwidth)
    assert flops / time == pytest.approx(rate, rel=1e-9)


@given(positive, positive, st.floats(0.01, 1.0))
def test_efficiency_is_the_share_that_comes_out(flops, peak, efficiency):
    time = compute_time(flops, peak, efficiency)
    assert flops_utilization(flops, time, peak, 1) == pytest.approx(efficiency, rel=1e-9)
    assert flops / time == pytest.approx(efficiency * peak, rel=1e-9)


def test_a_token_of_an_8b_model_is_bound_by_memory():
    # 16 GB of weights at 3.35 TB/s: 4.8 ms, whatever the arithmetic.
    memory = memory_time(16e9, 3.35e12)
    assert memory == pytest.approx(4.776e-3, rel=1e-3)
    assert roofline_time(compute_time(16e9, 989.4e12, 0.5), memory) == memory


def test_traffic_of_a_network_of_fixed_shape():
    # Weights once, each sample's activations written and read, its table rows gathered.
    assert fixed_shape_traffic(100, 0, 30, 1, 2) == 2 * (100 + 60)
    assert fixed_shape_traffic(100, 0, 30, 8, 2) == 2 * (100 + 8 * 60)
    assert fixed_shape_traffic(100, 7, 0, 8, 4) == 4 * (100 + 56)


# Energy


def test_carbon_of_bloom():
    # Luccioni, Viguier and Ligozat (2022), Table 3: 433,196 kWh at 57 g/kWh, 24.69 t.
    carbon = operational_carbon(Q_(433_196, "kWh"), Q_(57, "g/kWh"))
    assert carbon.to("tonne").magnitude == pytest.approx(24.69, abs=0.005)


def test_carbon_of_gpt3():
    # Patterson et al. (2021), Table 4: 1,287 MWh, facility included, at 0.429 kg/kWh: 552.1 t.
    carbon = operational_carbon(Q_(1287, "MWh"), Q_(429, "g/kWh"))
    assert carbon.to("tonne").magnitude == pytest.approx(552.1, abs=0.1)
    it_energy = Q_(1287 / 1.10, "MWh")
    assert facility_energy(it_energy, 1.10).to("MWh").magnitude == pytest.approx(1287)
