"""Rules that an expert follows: simple plans, spare memory, no needless devices, and failures."""

from dataclasses import replace

import numpy as np
import pytest

from mlsysim import (
    Q_,
    ConfigError,
    Infra,
    Models,
    ReliabilitySolver,
    Systems,
    TransformerModel,
    advise,
)
from mlsysim.core.table import Column
from mlsysim.core.types import Source
from mlsysim.planner.training.goals import Goal
from mlsysim.planner.training.search import crossing_nodes
from mlsysim.registry.operations import RECOVERY

CLUSTER = Systems.Clusters.Research_256
SMALL = replace(CLUSTER, name="two nodes", count=2)
JOB = {"model": Models.Llama3_8B, "fleet": SMALL, "batch_size": 32, "seq_len": 2048}
JOBS = [
    JOB,
    JOB | {"fleet": replace(CLUSTER, count=16), "batch_size": 128, "seq_len": 8192},
    {"model": Models.Llama3_70B, "fleet": CLUSTER, "batch_size": 256, "seq_len": 8192},
]


def rates(plans):
    return plans["token_throughput"].to("token/s").magnitude


@pytest.mark.parametrize("job", JOBS)
def test_context_and_wide_tensor_groups_are_chosen_for_a_gain_only(job):
    plans = advise(**job, schedule="1f1b").plans
    rate, cp = rates(plans), plans["cp_size"]
    across = crossing_nodes(plans["tp_size"], job["fleet"])
    best = rate[0]
    if cp[0] > 1:
        assert best > 1.01 * rate[cp == 1].max()
    if across[0]:
        assert best > 1.03 * rate[~across].max()
    # The others were there to choose from.
    assert across.any()
    assert (cp > 1).any()


def test_the_margins_are_exact():
    """Of two plans, the simpler one is first up to the margin, and second beyond it."""
    goal = Goal("time", 1e9, {}, None, kwh_price=None, failures=False, within=0.05)
    for gain, first in ((1.009, 0), (1.011, 1)):
        days = Column(np.array([gain, 1.0]), "day")
        (key,) = goal.order({"training_time": days}, np.array([1.0, 1.01]))
        assert int(np.argmin(key)) == first


def test_plans_without_the_reserve_are_not_advised():
    for reserve in (0.08, 0.3):
        advice = advise(**JOB, memory_reserve=reserve)
        capacity = advice.best.memory_capacity.to("GB").magnitude
        assert advice.plans["memory"].to("GB").magnitude.max() <= (1 - reserve) * capacity
        free = advise(**JOB, memory_reserve=None)
        assert len(free.plans) == len(advice.plans) + advice.tight
        tight = free.plans["memory"].to("GB").magnitude > (1 - reserve) * capacity
        gain = rates(free.plans)[tight].max() / rates(advice.plans).max() - 1
        assert advice.tight_gain == pytest.approx(gain)
    assert len(advise(**JOB).plans) == len(advise(**JOB, memory_reserve=0.08).plans)


@pytest.mark.parametrize(
    "reserve", [1, -0.1, "much", "10 GB", Q_(3, "s"), Q_(-1, "GB"), Q_([1, 2], "GB"), 5]
)
def test_a_reserve_is_a_share_or_a_size(reserve):
    with pytest.raises(ConfigError) as caught:
        advise(**JOB, memory_reserve=reserve)
    assert caught.value.argument == "memory_reserve"
    # The limit, and the way out, each once
    assert str(caught.value).count("from 0 to below 1") == 1
    assert str(caught.value).count("Q_(") == 1


@pytest.fixture(scope="module")
def crowd():
    """A model of 125 million parameters on 512 GPUs, which it cannot use."""
    small = TransformerModel(
        name="125M",
        source=Source(title="test"),
        layers=12,
        hidden_dim=768,
        heads=12,
        kv_heads=12,
        head_dim=64,
        ffn_dim=3072,
        vocab_size=50_368,
        seq_len=2048,
    )
    return {"model": small, "fleet": replace(CLUSTER, count=64), "batch_size": 512}


def test_a_quarter_of_the_devices_is_mentioned(crowd):
    advice = advise(**crowd, within=0.4)
    assert advice.quarter is not None
    assert advice.quarter.value == 128
    assert f"{advice.quarter.value:,}" in advice.why
    again = advise(**crowd | {"fleet": replace(crowd["fleet"], count=16)})
    ratio = rates(again.plans)[0] / rates(advice.plans)[0]
    assert 1 / (1 + advice.quarter.loss) == pytest.approx(ratio)
    assert ratio >= 0.6
    assert advise(**crowd, within=0).quarter is None
    assert advise(**JOBS[2]).quarter is None


def test_the_fewest_devices_that_are_fast_enough(crowd):
    advice = advise(**crowd, goal="fewest_devices", within=0.3, schedule="1f1b", cp_size=1)
    plans = advice.plans
    rate, devices = rates(plans), plans["devices"]
    enough = rate >= 0.7 * rate.max()
    assert devices[0] == devices[enough].min() < 512
    assert rate[0] == pytest.approx(rate[enough & (devices == devices[0])].max(), rel=1e-8)
    assert enough[: enough.sum()].all()
    assert advice.configuration["fleet"].total_accelerators == devices[0]
    assert set(devices.tolist()) > {8, 64, 512}
    strict = advise(**crowd, goal="fewest_devices", within=0, schedule="1f1b", cp_size=1)
    assert rates(strict.plans)[0] == pytest.approx(rate.max(), rel=1e-8)


def test_schedules_are_searched():
    plans = advise(**JOB).plans
    names = plans["schedule"]
    assert set(names.tolist()) == {"1f1b", "gpipe"}
    others = plans.where(names == "gpipe")
    assert (others["pp_size"] > 1).all()
    assert (others["virtual_stages"] == 1).all()
    only = advise(**JOB, schedule="gpipe").plans
    assert set(only["schedule"].tolist()) == {"gpipe"}
    assert (only["pp_size"] == 1).any()


def test_failures_and_checkpoints_take_time_money_and_carbon():
    tokens = 1e12
    place = {"datacenter": Infra.Quebec, "training_tokens": tokens, "rental_price": 2.5}
    for goal, column in (("time", "training_time"), ("cost", "cost"), ("carbon", "carbon")):
        real = advise(**JOB, goal=goal, **place)
        ideal = advise(**JOB, goal=goal, failures=False, **place)
        kept = real.reliability
        assert ideal.reliability is None
        assert 0.9 < kept.goodput < 1
        values = [advice.plans[column].magnitude[0] for advice in (real, ideal)]
        assert values[0] == pytest.approx(values[1] / kept.goodput)
        assert set(real.plans["goodput"].tolist()) == {kept.goodput}
    by_hand = ReliabilitySolver.solve(
        fleet=SMALL,
        job_duration_hours=tokens / real.best.token_throughput.to("1/h").magnitude,
        model=JOB["model"],
        storage_bandwidth=16 * RECOVERY.storage_bandwidth,
    )
    assert kept.goodput == pytest.approx(by_hand.goodput)
    assert kept.expected_failures == pytest.approx(by_hand.expected_failures)
    assert advise(**JOB).reliability is None
