"""Power from work, at its limits and at published values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim.core.formulas import (
    bandwidth_utilization,
    device_power,
    power_utilization,
    step_traffic,
    workload_power,
)

H100 = {"design_power": 700, "constant_share": 0.2, "compute_share": 1.5, "memory_share": 0.6}
shares = st.floats(0, 1)


def test_without_work_the_constant_power_is_left():
    assert workload_power(**H100, hfu=0, mbu=0) == pytest.approx(140)


def test_operations_and_bytes_add_up():
    assert workload_power(**H100, hfu=0.2, mbu=0.5) == pytest.approx(700 * (0.2 + 0.3 + 0.3))


def test_the_board_holds_its_design_power():
    assert workload_power(**H100, hfu=0.6, mbu=0.5) == 700


@given(hfu=shares, mbu=shares, more=shares)
def test_power_rises_with_work_up_to_the_limit(hfu, mbu, more):
    power = workload_power(**H100, hfu=hfu, mbu=mbu)
    assert 140 <= power <= 700
    assert workload_power(**H100, hfu=hfu + more, mbu=mbu) >= power
    assert workload_power(**H100, hfu=hfu, mbu=mbu + more) >= power


@given(utilization=shares, idle=st.floats(0, 0.9))
def test_utilization_of_power_inverts_power_of_utilization(utilization, idle):
    power = device_power(700, idle, utilization)
    assert power_utilization(power, 700, idle) == pytest.approx(utilization, abs=1e-12)


def test_a_stream_at_the_bandwidth_uses_all_of_it():
    assert bandwidth_utilization(3.35e12, 1, 3.35e12) == 1


def test_a_step_moves_every_layer_of_every_microbatch_and_the_update():
    assert step_traffic(10, 4, 2.0, 5.0, 7.0, 6.0, 0, 0, 3.0) == 4 * 5 * (10 * (2 + 21) + 6) + 3
    assert step_traffic(10, 4, 2.0, 5.0, 7.0, 6.0, 1, 1, 3.0) == 4 * 5 * (10 * (2 + 21) + 6) + 3
