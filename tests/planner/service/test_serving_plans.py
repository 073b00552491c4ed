"""Plans of services: every row is what the solver answers, limits hold, and bad input says why."""

import itertools
import math
from dataclasses import replace
from statistics import NormalDist

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mlsysim import (
    Q_,
    ConfigError,
    Fleet,
    Hardware,
    InfeasibleError,
    Models,
    OpenLoopSolver,
    PowerCalibrations,
    ServingCalibrations,
    ServingSolver,
    Systems,
    Traffic,
    capacity,
    plan_serving,
    plot_frontier,
)
from mlsysim.planner import SERVING_GOALS
from mlsysim.planner.sensitivities.questions import question_of
from mlsysim.planner.service.engines import LEVERS, log_errors_of
from mlsysim.planner.service.limits import physical_times
from mlsysim.planner.service.serving_plans import SLO, percent
from mlsysim.registry.operations import usual_offer
from mlsysim.solvers.traffic.bands import LAW, LOADS
from mlsysim.traffic import Trace
from research import MEASUREMENTS
from research.readers.serving_runs import tidy_runs

NODES = Systems.Nodes
CHAT = Traffic(
    arrival_rate=Q_(20, "1/s"),
    seq_len=1000,
    output_len=200,
    output_variation=0.5,
    input_variation=0,
)
LIMITS = {"ttft_p99": Q_(1, "s"), "tpot_p99": Q_(50, "ms")}


def equal(rate, seq_len, output_len):
    """Return traffic of requests of equal lengths."""
    return Traffic(
        arrival_rate=Q_(rate, "1/s"),
        seq_len=seq_len,
        output_len=output_len,
        input_variation=0,
        output_variation=0,
    )


JOB = (Models.Llama3_70B, CHAT, LIMITS)


@pytest.fixture(scope="module")
def plan():
    return plan_serving(*JOB, [NODES.DGX_H100, NODES.HGX_H200], weight_precision=["bf16", "fp8"])


def test_every_plan_keeps_every_limit(plan):
    for name, limit in LIMITS.items():
        assert (plan.plans[name] <= limit).all()
    assert (plan.plans["utilization"] < 1).all()
    assert (plan.plans["devices"] == plan.plans["replicas"] * plan.plans["tp_size"]).all()
    assert plan.plans["devices"].max() <= 256


def test_no_plan_that_keeps_the_limits_is_left_out():
    """Each combination is solved on its own."""
    found = plan_serving(
        *JOB, [NODES.DGX_H100], batch_limit=[16, 128], most_devices=24, confidence=None
    )
    kept = set()
    for tp in (1, 2, 4, 8):
        for limit in (16, 128):
            for replicas in range(1, 24 // tp + 1):
                answer = OpenLoopSolver.solve(
                    model=Models.Llama3_70B,
                    hardware=NODES.DGX_H100,
                    tp_size=tp,
                    batch_limit=limit,
                    precision="bf16",
                    **CHAT.arguments() | {"arrival_rate": CHAT.arrival_rate / replicas},
                )
                if answer.feasible and all(answer[n] <= most for n, most in LIMITS.items()):
                    kept.add((tp, limit, replicas))
    levers = ("tp_size", "batch_limit", "replicas")
    assert set(zip(*(found.plans[name].tolist() for name in levers), strict=True)) == kept
    assert found.searched == 2 * (24 + 12 + 6 + 3) - 2 * 24  # on one device nothing fits


@pytest.mark.parametrize("goal", SERVING_GOALS)
def test_the_best_is_the_best(goal):
    found = plan_serving(*JOB, [NODES.DGX_H100, NODES.HGX_H200], goal=goal, most_devices=64)
    column = found.plans[SERVING_GOALS[goal]]
    values = np.asarray(getattr(column, "magnitude", column), float)
    assert values[0] == pytest.approx(np.nanmin(values))
    assert (np.diff(values[~np.isnan(values)]) >= -1e-6 * values[0]).all()


def test_the_front_is_beaten_by_none(plan):
    def rates(table):
        return [table[f"tokens_per_s_per_{per}"].magnitude for per in ("user", "device")]

    user, device = rates(plan.plans)
    for mine, ours in zip(*rates(plan.front), strict=True):
        assert not ((user > mine) & (device > ours)).any()


def test_the_front_has_a_band(plan):
    band = ServingCalibrations.Hopper_TensorRT.serving("Llama 3 70B")
    for row in list(plan.front):
        user = row["tokens_per_s_per_user"]
        assert float(user / row["tokens_per_s_per_user_low"]) == pytest.approx(band.itl_band.high)
        assert float(user / row["tokens_per_s_per_user_high"]) == pytest.approx(band.itl_band.low)


def test_what_other_choices_lose(plan):
    rows = [plan.alternatives.row(index) for index in range(len(plan.alternatives))]
    assert {row["lever"] for row in rows} >= {"hardware", "tp_size", "weight_precision"}
    for row in rows:
        other = plan.plans.row(row["row"])
        assert str(other[row["lever"]]) == row["value"] != str(plan.best[row["lever"]])
        assert row["loss"] == pytest.approx(other["devices"] / plan.best["devices"] - 1)


def test_headroom_and_doubt(plan):
    for name, limit in LIMITS.items():
        assert plan.headroom[name] == pytest.approx(float(limit / plan.best[name]) - 1)
    levers = ("tp_size", "weight_precision", "kv_precision", "batch_limit")
    same = {name: plan.best[name] for name in levers} | {"most_devices": plan.best["devices"]}
    device = NODES.DGX_H100 if plan.best["hardware"] == "DGX H100" else NODES.HGX_H200
    tight = {"tpot_p99": plan.best["tpot_p99"] * 1.0001}
    close = plan_serving(Models.Llama3_70B, CHAT, tight, [device], **same)
    assert close.searched == 1 + (plan.best["devices"] // plan.best["tp_size"] - 1)
    assert close.keeps_limits == pytest.approx(expected_to_keep(close.best, tight), abs=1e-4)


def below(share, *bands):
    """Probability that a time stays below its prediction times a share: bands add as squares."""
    ninth = NormalDist().inv_cdf(0.9)
    mean = sum(math.log(low * high) / 2 for low, high in bands)
    spread = math.hypot(*(math.log(high / low) / 2 / ninth for low, high in bands))
    return NormalDist(mean, spread).cdf(math.log(share))


def expected_to_keep(row, limits):
    band, load = ServingCalibrations.Hopper_TensorRT.serving("Llama 3 70B"), row["utilization"]
    errors = {
        "ttft": band.ttft_band.around(1),
        "tpot": band.itl_band.around(1),
    }
    throughput = band.throughput_band.around(1)
    kept = {"tpot": [1 - below(load, throughput)], "ttft": [1]}
    for name, limit in limits.items():
        law = tuple(np.interp(load, LOADS, edge) for edge in LAW[name])
        kept[name[:4]].append(below(float(limit / row[name]), errors[name[:4]], law))
    return min(kept["ttft"]) * min(kept["tpot"])


def test_a_plan_keeps_its_limits_if_both_errors_allow_it(plan):
    for spot in (0, len(plan.plans) // 3, len(plan.plans) - 1):
        row = plan.plans.row(spot)
        assert row["keeps_limits"] == pytest.approx(expected_to_keep(row, LIMITS), abs=1e-4)


@pytest.mark.parametrize("goal", SERVING_GOALS)
def test_what_certainty_costs(goal):
    job = (*JOB, [NODES.DGX_H100, NODES.HGX_H200])
    free = plan_serving(*job, goal=goal, most_devices=64, confidence=None)
    usual = plan_serving(*job, goal=goal, most_devices=64)
    sure = plan_serving(*job, goal=goal, most_devices=64, confidence=0.9)
    kept = np.asarray(free.plans["keeps_limits"])
    assert sure.keeps_limits >= 0.9
    assert np.asarray(sure.plans["keeps_limits"]).min() >= 0.9
    assert len(sure.plans) == (kept >= 0.9).sum() < len(free.plans)
    assert sure.best == free.plans.row(int(np.argmax(kept >= 0.9)))
    column, rows = SERVING_GOALS[goal], list(free.certainty)
    assert [row["confidence"] for row in rows][:4] == [0, 0.5, 0.8, 0.9]
    row = rows[3]
    assert row["keeps_limits"] == sure.keeps_limits
    assert row["more_devices"] == sure.best["devices"] - free.best["devices"]
    assert row["loss"] == pytest.approx(float(sure.best[column] / free.best[column]) - 1)
    assert list(sure.certainty) == rows == list(usual.certainty)
    assert usual.confidence == 0.8 <= usual.keeps_limits
    assert usual.best == free.plans.row(int(np.argmax(kept >= 0.8)))
    for before, after in itertools.pairwise(rows):
        assert after["keeps_limits"] >= before["keeps_limits"]
        assert after[column] >= before[column]
    for answer in (free, sure):  # stated with the devices, before any of the times
        stated = str(answer).split("ttft_mean")[0]
        assert f"{answer.best['devices']} x " in stated
        assert percent(answer.keeps_limits) in stated


def test_no_plan_is_certain_enough():
    """Then the best of the most certain plans is the answer, to the percent."""
    few = {"most_devices": 16}
    plans = plan_serving(*JOB, [NODES.DGX_H100], confidence=None, **few).plans
    kept = np.asarray(plans["keeps_limits"])
    row = plans.row(int(np.argmax(kept)))
    exact = plan_serving(*JOB, [NODES.DGX_H100], confidence=float(kept.max()), **few)
    assert exact.best == row
    wanted = (1 + float(kept.max())) / 2
    found = plan_serving(*JOB, [NODES.DGX_H100], confidence=wanted, **few)
    level = math.floor(100 * kept.max()) / 100
    assert level <= found.keeps_limits < found.confidence == wanted
    assert found.best == plans.row(int(np.argmax(kept >= level)))
    assert len(found.plans) == (kept >= level).sum()
    assert found.least_confidence == level
    assert np.asarray(found.plans["keeps_limits"]).min() >= level
    *_, count = (line for line in str(found).splitlines() if f"of {found.searched:,} plans" in line)
    assert f"{len(found.plans):,} of " in count
    assert f"{100 * level:.0f}%" in count


def test_of_equal_plans_the_most_certain_is_the_best():
    found = plan_serving(*JOB, [NODES.DGX_H100], confidence=None)
    rows = [r for r in list(found.plans) if r["devices"] == found.best["devices"]]
    certain = [math.floor(100 * row["keeps_limits"]) for row in rows]
    assert certain == sorted(certain, reverse=True)
    assert certain[0] > certain[-1]


def test_costs_add_up(plan):
    row = plan.best
    read = row["cost_per_input_token"] * 1000
    made = row["cost_per_output_token"] * 200
    assert float((read + made) / (row["cost_per_token"] * 200)) == pytest.approx(1)


def test_cached_tokens_cost_what_attending_to_them_takes(plan):
    assert plan.best["cost_per_cached_token"] is None
    long = replace(CHAT, seq_len=20_000)
    slow = {"ttft_p99": Q_(20, "s")}
    rates = replace(ServingCalibrations.Hopper_vLLM, gemm_efficiency=0.8, attention_efficiency=0.4)
    fixed = {"calibration": rates, "tp_size": 1}
    half, none = (
        plan_serving(Models.Llama3_8B, long, slow, [NODES.DGX_H100], cached_share=share, **fixed)
        for share in (0.5, 0)
    )
    row, new = half.best, half.best["cost_per_input_token"]
    parts = (new + row["cost_per_cached_token"]) * 10_000 + row["cost_per_output_token"] * 200
    assert float(parts / (row["cost_per_token"] * 200)) == pytest.approx(1)
    # A new token attends to 10,000 cached ones and to 5,000 new ones on average, and passes 8
    # billion parameters: 5.2, 2.6 and 16 billion operations, attention at half of the rate.
    assert float(row["cost_per_cached_token"] / new) == pytest.approx(10.4 / (5.2 + 16), rel=0.25)
    assert row["cost_per_token"] < none.best["cost_per_token"]


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("ttft_p50", "peak rate of arithmetic"),
        ("tpot_p99", "memory bandwidth"),
        ("e2e_mean", "peak rate of arithmetic in prefill and memory bandwidth in decode"),
    ],
)
def test_a_limit_below_what_physics_allows(name, by):
    words = rf"{name} = .* is below the physical limit of .* \({by}\): .* calibrated constants"
    with pytest.raises(ConfigError, match=words) as caught:
        plan_serving(Models.Llama3_70B, CHAT, {name: Q_(1, "ms")}, [NODES.DGX_H100])
    assert caught.value.argument == "slo"
    with pytest.raises(ConfigError, match=words):
        capacity(Models.Llama3_70B, NODES.DGX_H100, CHAT, {name: Q_(1, "ms")}, tp_size=8)


def test_a_limit_that_only_the_calibrated_software_misses():
    """A token takes 5.2 ms at the full bandwidth, and twice as long as calibrated."""
    slo = {"tpot_p99": Q_(8, "ms")}
    words = r"tpot_p99 = 8 ms is above the physical limit of 5\.2\d* ms \(memory bandwidth\), but"
    with pytest.raises(ConfigError, match=words) as caught:
        capacity(Models.Llama3_70B, NODES.DGX_H100, CHAT, slo, tp_size=8)
    assert caught.value.argument == "slo"


def engine_inputs(**plan):
    given = {"arrival_rate": 1e-6, "seq_len": 1000, "output_len": 200} | plan
    return question_of(OpenLoopSolver, given).inputs.plain(), OpenLoopSolver.solve(**given)


def test_physical_times_by_hand():
    """Llama 3 8B: 15 GB of weights that decode reads, and 2 operations per parameter and token."""
    inputs, _ = engine_inputs(model=Models.Llama3_8B, hardware=Hardware.H100)
    found = physical_times(inputs)
    read = 2 * (8.03e9 - 128_256 * 4096) + 131_072 * 1100  # without the table of embeddings
    assert found["tpot"] == (pytest.approx(read / 3.35e12, rel=0.01), "memory bandwidth")
    operations = 2 * 1000 * (8.03e9 - 2 * 128_256 * 4096)
    assert found["ttft"][0] == pytest.approx(operations / 989e12, rel=0.03)
    assert found["ttft"][1] == "peak rate of arithmetic"
    assert found["e2e"][0] == pytest.approx(found["ttft"][0] + 199 * found["tpot"][0])


@pytest.mark.parametrize(
    "plan",
    [
        {"model": Models.Llama3_8B, "hardware": Hardware.H100, "precision": "fp8"},
        {"model": Models.Llama3_8B, "hardware": Hardware.H100, "cached_share": 0.9},
        {
            "model": Models.Llama3_8B,
            "hardware": Hardware.H100,
            "draft_tokens": 3,
            "acceptance_length": 2.5,
        },
        {
            "model": Models.Llama3_70B,
            "hardware": NODES.DGX_H100,
            "pp_size": 4,
            "tp_size": 2,
        },
        {
            "model": Models.DeepSeek_V3,
            "hardware": NODES.HGX_H200,
            "precision": "fp8",
            "attention_dp": 8,
            "ep_size": 8,
        },
        {"model": Models.Mixtral_8x7B, "hardware": NODES.DGX_H100, "tp_size": 2},
    ],
)
def test_no_prediction_is_faster_than_physics(plan):
    inputs, answer = engine_inputs(**plan)
    for name, (least, _) in physical_times(inputs).items():
        assert 0 < least < answer[f"{name}_mean"].to("s").magnitude


def test_a_trace_and_an_argument_that_both_tell_what_is_cached():
    load = replace(CHAT, cached_share=0.5)
    for given in (0, 0.5, 0.7):
        with pytest.raises(ConfigError, match="cached_share: ") as caught:
            plan_serving(Models.Llama3_8B, load, LIMITS, NODES.DGX_H100, cached_share=given)
        assert caught.value.argument == "cached_share"
        with pytest.raises(ConfigError, match="cached_share: ") as caught:
            capacity(Models.Llama3_8B, Hardware.H100, load, LIMITS, cached_share=given)
        assert caught.value.argument == "cached_share"
    plan = {"tp_size": 1, "batch_limit": 64}
    stated = plan_serving(Models.Llama3_8B, load, LIMITS, NODES.DGX_H100, **plan)
    given = plan_serving(Models.Llama3_8B, CHAT, LIMITS, NODES.DGX_H100, cached_share=0.5, **plan)
    assert stated.best == given.best
    assert stated.plans.result(0).cached_tokens == Q_(500, "token")
    one, other = (
        capacity(Models.Llama3_8B, Hardware.H100, *args).rate_per_replica.magnitude
        for args in ((load, LIMITS), (CHAT, LIMITS))
    )
    assert one > 1.05 * other


def test_answers_that_take_decades():
    """An engine of 7e-10 requests per second, whose state does not grow: still no crash."""
    endless = equal(1, 1000, 1e13)
    model = Models.Mistral.Codestral_Mamba_7B
    found = capacity(model, Hardware.H100, endless, {"tpot_p99": Q_(1, "s")})
    assert 0 < found.rate_per_replica.magnitude < 1e-9
    with pytest.raises(InfeasibleError, match=r"arrivals exceed capacity by [\d,.e+]+%"):
        plan_serving(model, endless, {"tpot_p99": Q_(1, "s")}, Hardware.H100, most_devices=2)


def test_too_few_devices():
    with pytest.raises(InfeasibleError, match=r"arrivals exceed capacity by \d+%"):
        plan_serving(*JOB, [NODES.DGX_H100], most_devices=2)
    with pytest.raises(InfeasibleError, match="no engine can run"):
        plan_serving(*JOB, [Hardware.T4])


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        (Models.DeepSeek_V3, {"pp_size": [1, 2], "overlap_batches": [0, 2]}),
        (Models.GPT_OSS_120B, {"weight_precision": ["fp8", "mxfp4"]}),
        (Models.Llama3_70B, {"kv_precision": ["bf16", "fp8"]}),
    ],
)
def test_engines_that_are_computed_together_are_those_of_the_solver(model, sizes):
    """Each engine of a search is part of an array, with NumPy's exponentials."""
    kinds = [NODES.HGX_H200, NODES.DGX_B200, NODES.MI300X_Platform]
    found = plan_serving(
        model, CHAT, {"tpot_p99": Q_(90, "ms")}, kinds, **sizes, precision="fp8", batch_limit=256,
        most_devices=16, confidence=None,
    )  # fmt: skip
    engines = {tuple(row[name] for name in LEVERS): at for at, row in enumerate(list(found.plans))}
    assert len(engines) > 20
    for index in list(engines.values())[::5]:
        row, answer = found.plans.row(index), found.plans.result(index)
        for name in (*SLO, "utilization"):
            assert float(row[name] / answer[name]) == pytest.approx(1, rel=1e-12), name


RUN = {
    "id": "one", "source": "A lab https://example.org", "model": "Llama3_70B",
    "hardware": "DGX_H100", "calibration": "Hopper_vLLM", "precision": "bf16", "seq_len": 1000,
    "output_len": 200, "batch_size": 32, "tp_size": 4, "arrivals": 1, "waves": 10,
    "ttft (ms)": 400.0, "itl (ms)": 30.0, "split": "check",
}  # fmt: skip


def test_measured_runs_are_next_to_their_predictions(plan):
    other = [
        RUN | {"model": "Qwen3_32B"},
        RUN | {"hardware": "DGX_A100"},
        RUN | {"weight_precision": "fp4"},
        RUN | {"output_len": 401},
        RUN | {"seq_len": 499},
        RUN | {"itl (ms)": ""},
        RUN | {"model": "no such model"},
    ]
    narrow = RUN | {"id": "two", "precision": "fp8", "seq_len": 900, "output_len": 180}
    found = plan.measured([*other, RUN, narrow])
    assert list(found["run"]) == ["one", "two"]
    row = found.row(0)
    assert (row["device"], row["devices"], row["clients"]) == (Hardware.H100.name, 4, 32)
    assert (row["source"], row["split"]) == ("A lab https://example.org", "check")
    assert row["tokens_per_s_per_user"].magnitude == pytest.approx(1000 / 30)
    rate = 32 * 200 / (0.4 + 199 * 0.03) / 4
    assert row["tokens_per_s_per_device"].magnitude == pytest.approx(rate)
    same = ServingSolver.solve(
        model=Models.Llama3_70B, hardware=NODES.DGX_H100, seq_len=1000, output_len=200,
        batch_size=32, precision="bf16", tp_size=4, arrivals=1, waves=10,
        calibration=ServingCalibrations.Hopper_vLLM,
    )  # fmt: skip
    predicted = row["predicted_tokens_per_s_per_user"].magnitude
    assert row["calibration"] == same.calibration
    assert predicted * same.itl.to("s").magnitude == pytest.approx(1)
    assert row["tokens_per_s_per_user_low"].magnitude < predicted
    assert row["tokens_per_s_per_user_high"].magnitude > predicted
    whole = same.ttft + 199 * same.itl
    each = 32 * 200 / whole.to("s").magnitude / 4
    assert row["predicted_tokens_per_s_per_device"].magnitude == pytest.approx(each)
    assert (found["seq_len"][1], found["output_len"][1]) == (900, 180)
    assert len(plan.measured([*other, RUN], within=None)) == 3
    assert len(plan.measured(other)) == 0


def test_published_runs_are_near_the_predictions():
    kinds = [NODES.DGX_B200, NODES.HGX_H200]
    load = equal(20, 1024, 1024)
    found = plan_serving(
        Models.MiniMax_M2_5, load, {"tpot_p99": Q_(100, "ms")}, kinds, precision="fp8",
        attention_dp=1, engine="vLLM", batch_limit=256,
    )  # fmt: skip
    runs = found.measured(tidy_runs(MEASUREMENTS / "serving_2.csv", Models.MiniMax_M2_5))
    assert len(runs) > 30
    assert set(runs["device"]) == {Hardware.B200.name, Hardware.H200.name}
    for name in ("tokens_per_s_per_user", "tokens_per_s_per_device"):
        ratio = (runs[f"predicted_{name}"] / runs[name]).magnitude
        assert np.median(abs(np.log(ratio))) < 0.15
    figure, axes = found.plot(runs)
    labels = {line.get_label(): line for line in axes.get_lines()}
    front = found.plans.take(np.flatnonzero(found.plans["hardware"] == "DGX B200")).front()
    assert (labels["DGX B200"].get_xdata() == front["tokens_per_s_per_user"].magnitude).all()
    points = [line for line in axes.get_lines() if line.get_marker() == "o"]
    assert sum(len(line.get_xdata()) for line in points) == len(runs)
    plt.close(figure)
    for arguments, name in (((runs,), "plan"), ((found, "runs"), "measured")):
        with pytest.raises(ConfigError) as caught:
            plot_frontier(*arguments)
        assert caught.value.argument == name


@pytest.mark.parametrize(
    ("source", "within", "argument"),
    [
        ([RUN], 0.5, "within"),
        ([RUN], True, "within"),
        ([{"seq_len": 3}], 2, "kind"),
        ([{name: cell for name, cell in RUN.items() if name != "itl (ms)"}], 2, "source"),
        ([], 2, "source"),
    ],
)
def test_bad_runs(plan, source, within, argument):
    with pytest.raises(ConfigError) as caught:
        plan.measured(source, within=within)
    assert caught.value.argument == argument


def day(**more):
    return capacity(
        Models.Llama3_70B, NODES.DGX_H100, CHAT, {"ttft_p99": Q_(1, "s")}, tp_size=8, **more
    )


def test_replicas_of_a_day():
    found = day(day=[2, 40, 8], slot=Q_(8, "h"), confidence=None)
    one = found.rate_per_replica.magnitude
    assert found.slots["replicas"].tolist() == [int(np.ceil(rate / one)) for rate in (2, 40, 8)]
    assert found.peak == max(found.slots["replicas"])
    running = found.slots["running"].tolist()
    loads = [rate / (count * one) for rate, count in zip((2, 40, 8), running, strict=True)]
    assert np.asarray(found.slots["load"]) == pytest.approx(loads)
    answer = OpenLoopSolver.solve(
        model=Models.Llama3_70B,
        hardware=NODES.DGX_H100,
        tp_size=8,
        **CHAT.arguments() | {"arrival_rate": found.rate_per_replica},
    )
    assert answer.ttft_p99 <= Q_(1, "s")
    assert answer.ttft_p99.to("s").magnitude == pytest.approx(1, rel=1e-6)


def test_sure_replicas_take_fewer_requests():
    slo, node = {"tpot_p99": Q_(30, "ms")}, NODES.DGX_H100
    job = (Models.Llama3_70B, node, CHAT, slo)
    free, sure = (capacity(*job, tp_size=8, confidence=level) for level in (None, 0.9))
    assert sure.rate_per_replica < free.rate_per_replica
    assert sure.keeps_limits == pytest.approx(0.9, abs=1e-6)
    answer = OpenLoopSolver.solve(
        model=Models.Llama3_70B,
        hardware=node,
        tp_size=8,
        **CHAT.arguments() | {"arrival_rate": sure.rate_per_replica},
    )
    assert expected_to_keep(answer, slo) == pytest.approx(0.9, abs=1e-4)
    assert 0 < free.keeps_limits < 0.9


def test_a_day_by_hand():
    """One and three replicas of eight devices at a dollar, and two that start for an hour."""
    rate = day().rate_per_replica.magnitude
    price = {"rental_price": Q_(1, "USD/h"), "reserved_price": Q_(0.6, "USD/h")}
    found = day(day=[0.9 * rate, 2.9 * rate], slot=Q_(12, "h"), start_up=Q_(1, "h"), **price)
    assert found.costs["on_demand"].magnitude == pytest.approx(8 * (12 + 36 + 2))
    assert found.costs["reserved"].magnitude == pytest.approx(8 * 0.6 * 24 * 3)
    assert found.reserved_replicas == 1
    assert found.costs["mixed"].magnitude == pytest.approx(8 * (0.6 * 24 + 24 + 2))


def test_replicas_start_in_time():
    rate = day().rate_per_replica.magnitude
    rates = [0.5 * rate] * 4 + [2.5 * rate] + [0.5 * rate] * 3
    found = day(day=18 * rates, slot=Q_(10, "minute"), start_up=Q_(15, "minute"))
    assert found.slots["running"].tolist() == 18 * [1, 1, 3, 3, 3, 1, 1, 1]


def test_an_api_and_the_load_from_which_it_costs_more():
    prices = {"api_input_price": Q_(0.5, "USD/Mtoken"), "api_output_price": Q_(2, "USD/Mtoken")}
    found = day(rental_price=Q_(3, "USD/h"), **prices)
    request = 1000 * 0.5e-6 + 200 * 2e-6
    assert found.break_even.magnitude == pytest.approx(8 * 3 / 3600 / request)
    assert f"{found.break_even.magnitude:.3g}"[:3] in found.words
    assert "{" not in found.words
    assert found.api_cost.magnitude == pytest.approx(20 * 86_400 * request)
    cheap = {name: price / 100 for name, price in prices.items()}
    assert day(rental_price=Q_(3, "USD/h"), **cheap).break_even is None


FREE = Q_(0, "USD/Mtoken")
# Twenty requests per second for ten minutes
STEADY = Trace(np.arange(12_000) / 20, np.full(12_000, 1000.0), np.full(12_000, 200.0))


def test_the_last_part_of_a_trace_is_as_busy_as_the_others():
    """Parts of 3.9, 3.9 and 2.2 minutes have the same rate; of 7 and 3, the second is left out."""
    three = day(day=STEADY, slot=Q_(3.9, "minute")).slots["arrival_rate"].magnitude
    assert three == pytest.approx([20, 20, 20], rel=1e-3)
    whole = day(day=STEADY)  # shorter than an hour
    assert whole.slots["arrival_rate"].magnitude == pytest.approx([20], rel=1e-3)
    one = day(day=STEADY, slot=Q_(7, "minute"))
    assert one.slots["arrival_rate"].magnitude == pytest.approx([20], rel=1e-3)
    assert "The trace covers 0.1667 h" in one.words
    assert "The trace covers" not in day(day=[20] * 24).words


@pytest.mark.parametrize(
    "minutes",
    [Q_(np.array([120.0, 2400, 480]), "1/minute"), [Q_(n, "1/minute") for n in (120, 2400, 480)]],
    ids=["array", "list"],
)
def test_rates_of_a_day_have_units(minutes):
    found = day(day=minutes, slot=Q_(8, "h")).slots
    assert found["arrival_rate"].magnitude == pytest.approx([2, 40, 8])
    assert list(found["replicas"]) == list(day(day=[2, 40, 8], slot=Q_(8, "h")).slots["replicas"])


@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        ({"day": [1, -1]}, "day"),
        ({"day": [Q_(1, "s")] * 24}, "day"),
        ({"day": [0, 0]}, "day"),
        ({"day": []}, "day"),
        ({"day": [2, 20, 8]}, "day"),
        ({"day": [2] * 25}, "day"),
        ({"day": [2] * 3, "slot": Q_(7, "h")}, "day"),
        ({"day": [2], "slot": Q_(0, "h")}, "slot"),
        ({"day": [2], "start_up": Q_(-1, "h")}, "start_up"),
        ({"slot": Q_(2, "h")}, "slot"),
        ({"start_up": Q_(1, "h")}, "start_up"),
        ({"power_calibration": PowerCalibrations.Hopper}, "power_calibration"),
        ({"api_input_price": Q_(1, "USD/Mtoken")}, "api_output_price"),
        ({"tp": 8}, "tp"),
        ({"day": "busy"}, "day"),
        ({"rental_price": Q_(-3, "USD/h")}, "rental_price"),
        ({"api_input_price": FREE, "api_output_price": FREE}, "api_input_price"),
        ({"day": STEADY, "slot": Q_(1, "h")}, "slot"),
        ({"seq_len": 3}, "seq_len"),
        ({"confidence": 1.2}, "confidence"),
    ],
)
def test_bad_days(changed, argument):
    with pytest.raises(ConfigError) as caught:
        day(**changed)
    assert caught.value.argument == argument


LINK = Systems.Fabrics.InfiniBand_NDR
SMALL = {
    "tp_size": [2, 4],
    "batch_limit": [64, 256],
    "weight_precision": "fp8",
    "most_devices": 12,
    "transfer_link": LINK,
}


@pytest.fixture(scope="module")
def pools():
    return plan_serving(*JOB, [NODES.DGX_H100], **SMALL, goal="cost", confidence=None)


def first_pair(table):
    """Return the number of the first plan with separate pools."""
    return np.asarray(table["pools"]).tolist().index("separate")


def test_pools_are_two_open_loops_and_a_transfer(pools):
    index = first_pair(pools.plans)
    row = pools.plans.row(index)
    first, later = (pools.plans.result(index, role) for role in ("prefill", "decode"))
    assert first.feasible
    assert later.feasible
    used = row["prefill_replicas"] * row["prefill_tp_size"] + row["replicas"] * row["tp_size"]
    assert row["devices"] == used
    moved = row["ttft_p99"] - first.ttft_p99
    # 80 layers of 8 heads of 128, keys and values of 1000 tokens in 16 bits, over the ports of the
    # smaller group of devices
    size = Q_(2 * 80 * 8 * 128 * 1000 * 2 / min(row["tp_size"], row["prefill_tp_size"]), "byte")
    assert float((size / LINK.bandwidth + LINK.latency) / moved) == pytest.approx(1)
    assert float((row["e2e_mean"] - row["ttft_mean"]) / later.e2e_mean) == pytest.approx(1)
    assert float(199 * row["tpot_mean"] / later.e2e_mean) == pytest.approx(1, rel=1e-6)
    assert row["utilization"] == pytest.approx(max(first.utilization, later.utilization))
    with pytest.raises(ConfigError) as caught:
        pools.plans.result(index, "both")
    assert caught.value.argument == "role"


def test_a_device_of_unknown_power_has_as_many_pairs_of_pools(pools):
    known = NODES.DGX_H100
    device = replace(known.accelerator, name="H100 of unknown power", tdp=None)
    node = replace(known, name="a node of them", accelerator=device)
    unknown = plan_serving(*JOB, [node], **SMALL, rental_price=Q_(2, "USD/h"), confidence=None)
    assert math.isnan(unknown.plans["energy_per_token"].magnitude[first_pair(unknown.plans)])
    assert len(unknown.plans) == len(pools.plans)


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_pools_of_a_plan_grow_and_shrink_over_a_day(pools, role):
    index = first_pair(pools.plans)
    row, engine = pools.plans.row(index), pools.plans.engine(index, role)
    name = {"prefill": "ttft_p99", "decode": "tpot_p99"}[role]
    limit = LIMITS[name]
    if role == "prefill":
        limit = limit - (row[name] - pools.plans.result(index, role)[name])  # the transfer
    day = {"day": [2, 20, 60, 8], "slot": Q_(6, "h"), "confidence": None}
    found = capacity(traffic=CHAT, slo={name: limit}, **day, **engine)
    one = found.rate_per_replica
    # At the plan's rate, no more engines than in the plan
    most = row["replicas" if role == "decode" else "prefill_replicas"]
    assert found.slots["replicas"][1] == math.ceil(20 / one.magnitude) <= most
    assert found.slots["replicas"].tolist() == [math.ceil(r / one.magnitude) for r in day["day"]]
    whole = pools.plans.configuration(index, role)
    assert {**engine, **CHAT.arguments()} == whole | {"arrival_rate": CHAT.arrival_rate}
    answer = OpenLoopSolver.solve(**whole | {"arrival_rate": one})
    reached = answer.ttft_p99
    if role == "decode":  # of 199 tokens after the first, the first one waits for a place
        reached = (answer.ttft_mean + 198 * answer.tpot_p99) / 199
    # By the limit, or at the most that the engine serves
    full = answer.utilization > 0.999
    assert full or float(reached / limit) == pytest.approx(1, rel=1e-6)
    assert 0 < found.keeps_limits <= 1


def test_cached_prefixes_of_the_traffic_matter_to_prefill_pools_only():
    rates = {}
    for role, limit in (("prefill", "ttft_p99"), ("decode", "tpot_p99")):
        for share in (0.0, 0.5):
            load = replace(CHAT, cached_share=share)
            slo = {limit: LIMITS[limit]}
            found = capacity(Models.Llama3_70B, NODES.DGX_H100, load, slo, role=role, tp_size=8)
            rates[role, share] = found.rate_per_replica.magnitude
    assert rates["prefill", 0.5] > 1.5 * rates["prefill", 0.0]
    assert rates["decode", 0.5] == rates["decode", 0.0]


@pytest.mark.parametrize(
    ("role", "more", "argument"),
    [
        ("prefill", {"slo": LIMITS}, "slo"),
        ("decode", {"slo": {"ttft_p99": Q_(1, "s")}}, "slo"),
        ("decode", {"slo": {"e2e_p99": Q_(9, "s")}}, "slo"),
        ("decode", {"api_input_price": Q_(1, "USD/Mtoken")}, "api_input_price"),
        ("decode", {"cached_share": 0.5}, "cached_share"),
    ],
)
def test_what_a_pool_does_not_determine(role, more, argument):
    limits = {"slo": {"ttft_p99" if role == "prefill" else "tpot_p99": Q_(1, "s")}}
    with pytest.raises(ConfigError) as caught:
        capacity(Models.Llama3_70B, NODES.DGX_H100, CHAT, role=role, tp_size=8, **limits | more)
    assert caught.value.argument == argument


PREFIXES = {"turns": 4, "turn_tokens": 30, "think_time": Q_(60, "s")}
SHARED = {
    "loaded": {"loaded_share": 0.6, "host_link": Systems.Links.PCIe5},
    "adapters": {"lora_rank": 16, "adapters": 50, "resident_adapters": 30, "reserved_output": 0.5},
    "sessions": PREFIXES | {"host_memory": Q_(50, "GB")},
}


@pytest.mark.parametrize("case", SHARED)
def test_engines_share_arguments_of_the_solver(case):
    few = {"tp_size": [4, 8], "batch_limit": [32, 128], "goal": "cost"}
    load = (Models.Llama3_70B, replace(CHAT, arrival_rate=Q_(100, "1/s")), LIMITS)
    found = plan_serving(*load, [NODES.DGX_H100], **few, **SHARED[case])
    plain = plan_serving(*load, [NODES.DGX_H100], **few)
    assert len(found.plans) > 1
    for index in (0, len(found.plans) // 2, len(found.plans) - 1):
        row, answer = found.plans.row(index), found.plans.result(index)
        assert answer.feasible
        for name in (*SLO, "utilization"):
            assert float(row[name] / answer[name]) == pytest.approx(1, rel=1e-6), name
        if case == "sessions":
            assert answer.cached_tokens > 0
    cheaper = found.best["cost_per_token"] < plain.best["cost_per_token"]
    assert cheaper == (case != "adapters")


DRAFTS = {"draft_tokens": 3, "acceptance_length": 2.5}


def test_pools_share_arguments_where_they_matter():
    """Prefixes shorten prefills; drafts and the length of answers concern decode alone."""
    prompts = SHARED["loaded"] | {"cached_share": 0.3}
    answers = DRAFTS | {"reserved_output": 0.5}
    found = plan_serving(*JOB, [NODES.DGX_H100], **SMALL, **prompts, **answers, confidence=None)
    index = first_pair(found.plans)
    first, later = (found.plans.configuration(index, role) for role in ("prefill", "decode"))
    assert first.items() >= prompts.items()
    assert later.items() >= answers.items()
    assert not first.keys() & answers.keys()
    assert not later.keys() & prompts.keys()
    moved = found.plans.row(index)["ttft_p99"] - found.plans.result(index, "prefill").ttft_p99
    assert 0 < moved.to("ms").magnitude < 100
    assert found.plans.result(index, "decode").feasible


def test_exchanges_matter_to_engines_of_several_ranks():
    load = (Models.Mixtral_8x7B, CHAT, LIMITS, [NODES.DGX_H100])
    sizes = {"tp_size": 4, "attention_dp": [1, 2], "ep_size": 1, "batch_limit": 64}
    found = plan_serving(*load, **sizes, dispatch_precision="fp8")
    assert not found.refused
    alone = [row["attention_dp"] == 1 for row in list(found.plans)]
    for index, one in ((alone.index(True), True), (alone.index(False), False)):
        assert ("dispatch_precision" in found.plans.configuration(index)) != one
        assert found.plans.result(index).feasible


def test_drafts_and_redundant_experts_are_choices():
    load = (Models.DeepSeek_V3, CHAT, {"tpot_p99": Q_(90, "ms")}, [NODES.HGX_H200])
    few = {"tp_size": 1, "attention_dp": 8, "precision": "fp8", "most_devices": 32}
    few |= {"goal": "cost", "batch_limit": 512, "expert_imbalance": 1.3}
    both = plan_serving(
        *load, **few, ep_size=[1, 8], redundant_experts=[0, 32], draft_tokens=[0, 3],
        acceptance_length=2.5,
    )  # fmt: skip
    rows = list(both.plans)
    names = ("ep_size", "redundant_experts", "draft_tokens")
    found = {tuple(row[name] for name in names) for row in rows}
    assert found == {(1, 0, 0), (1, 0, 3), (8, 0, 0), (8, 0, 3), (8, 32, 0), (8, 32, 3)}
    for copies, drafts in ((0, {}), (32, DRAFTS)):
        alone = plan_serving(*load, **few, ep_size=8, redundant_experts=copies, **drafts)
        own = (8, copies, drafts.get("draft_tokens", 0))
        best = next(row for row in rows if tuple(row[name] for name in names) == own)
        assert best["cost_per_token"] == alone.best["cost_per_token"]
        assert best["keeps_limits"] == alone.keeps_limits
    for index in [rows.index(row) for row in rows[::5]]:
        answer = both.plans.result(index)
        assert float(rows[index]["tpot_p99"] / answer.tpot_p99) == pytest.approx(1, rel=1e-9)
    levers = set(both.alternatives["lever"])
    assert {"ep_size", "redundant_experts", "draft_tokens"} <= levers
    assert "draft_tokens = 3" in str(both)


@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        ({"slo": {}}, "slo"),
        ({"slo": {"ttft": Q_(1, "s")}}, "slo"),
        ({"slo": {"ttft_p99": Q_(-1, "s")}}, "slo"),
        ({"slo": {"ttft_p99": Q_(1, "GB")}}, None),
        ({"goal": "speed"}, "goal"),
        ({"devices": []}, "devices"),
        ({"devices": ["H100"]}, "devices"),
        ({"most_devices": 0}, "most_devices"),
        ({"batch_limit": "many"}, "batch_limit"),
        ({"batch_limit": [0, 64]}, "batch_limit"),
        ({"batch_limit": [-5, 64]}, "batch_limit"),
        ({"most_devices": True}, "most_devices"),
        ({"tp_size": 1.5}, "tp_size"),
        ({"weight_precision": []}, "weight_precision"),
        ({"rental_price": Q_(-3, "USD/h")}, "rental_price"),
        ({"rental_price": Q_(0, "USD/h"), "goal": "cost"}, "rental_price"),
        ({"rental_price": {"H1OO": Q_(3, "USD/h")}}, "rental_price"),
        ({"traffic": replace(CHAT, output_len=1)}, "slo"),
        ({"traffic": None}, "traffic"),
        ({"model": None}, "model"),
        ({"transfer_link": "InfiniBand"}, "transfer_link"),
        ({"confidence": 90}, "confidence"),
        ({"confidence": -0.1}, "confidence"),
        ({"confidence": True}, "confidence"),
        ({"engine": "Triton"}, "engine"),
        ({"engine": "vLLM", "calibration": ServingCalibrations.Hopper_vLLM}, "engine"),
        ({"ep_size": "all"}, "ep_size"),
        ({"draft_tokens": [0, 2, 3], "acceptance_length": 2}, "draft_tokens"),
        ({"draft_tokens": [0, 2]}, "acceptance_length"),
        ({"acceptance_length": 2}, "acceptance_length"),
        ({"draft_tokens": 0, "acceptance_length": 2}, "acceptance_length"),
        ({"draft_tokens": 0.5}, "draft_tokens"),
        ({"arrival_rate": 3}, "arrival_rate"),
        ({"role": "decode"}, "role"),
        ({"tokens": 3}, "tokens"),
        ({"loaded_share": [0.5, 0.6]}, "loaded_share"),
        ({"lora_rank": 0}, "lora_rank"),
        (PREFIXES | {"transfer_link": LINK}, "transfer_link"),
    ],
)
def test_bad_input(changed, argument):
    given = {"model": Models.Llama3_8B, "traffic": CHAT, "slo": LIMITS, "devices": NODES.DGX_H100}
    with pytest.raises(ConfigError) as caught:
        plan_serving(**given | changed)
    assert argument is None or caught.value.argument == argument


@pytest.mark.parametrize("case", SHARED)
def test_a_replica_serves_as_much_as_the_limit_allows(case):
    load = {"tp_size": 8, **SHARED[case]}
    found = capacity(Models.Llama3_70B, NODES.DGX_H100, CHAT, LIMITS, confidence=None, **load)
    given = CHAT.arguments() | load | {"model": Models.Llama3_70B, "hardware": NODES.DGX_H100}
    times = []
    for factor in (0.999, 1.001):
        rate = {"arrival_rate": factor * found.rate_per_replica}
        times.append(OpenLoopSolver.solve(**given | rate))
    assert all(getattr(times[0], name) <= limit for name, limit in LIMITS.items())
    over = times[1]
    assert not over.feasible or any(getattr(over, n) > limit for n, limit in LIMITS.items())


@pytest.mark.parametrize("goal", SERVING_GOALS)
def test_the_best_pair_of_pools_is_among_the_plans(goal):
    """Each pair of pools is solved on its own."""
    found = plan_serving(*JOB, [NODES.DGX_H100], **SMALL, goal=goal, confidence=None)
    column = SERVING_GOALS[goal]
    apart = [row for row in list(found.plans) if row["pools"] == "separate"]
    least = min(float(getattr(row[column], "magnitude", row[column])) for row in apart)
    tokens = 20 * 200
    price = float(plan_price(found) / Q_(1, "USD/s"))
    best = float("inf")
    fixed = {
        "model": Models.Llama3_70B,
        "hardware": NODES.DGX_H100,
        "precision": "bf16",
        "weight_precision": "fp8",
    }
    answers = {}
    for role in ("prefill", "decode"):
        for tp in (2, 4):
            for limit in (64, 256):
                for count in range(1, 12 // tp):
                    load = CHAT.arguments() | {"arrival_rate": CHAT.arrival_rate / count}
                    r = OpenLoopSolver.solve(
                        **fixed, **load, tp_size=tp, batch_limit=limit, role=role
                    )
                    if r.feasible:
                        answers[role, tp, limit, count] = r
    for (role, tp, _, count), one in answers.items():
        for (other, size, _, more), two in answers.items():
            devices = tp * count + size * more
            if role != "prefill" or other != "decode" or devices > 12:
                continue
            moved = Q_(2 * 80 * 8 * 128 * 1000 * 2 / min(tp, size), "byte") / LINK.bandwidth
            moved += LINK.latency
            tpot = (two.ttft_mean + 198 * two.tpot_p99) / 199
            if one.ttft_p99 + moved > LIMITS["ttft_p99"] or tpot > LIMITS["tpot_p99"]:
                continue
            power = one.device_power * tp * count + two.device_power * size * more
            value = {
                "devices": devices,
                "cost_per_token": 1e6 * price * devices / tokens,
                "energy_per_token": power.to("W").magnitude / tokens,
                "e2e_mean": (one.ttft_mean + moved + two.e2e_mean).to("ms").magnitude,
            }[column]
            best = min(best, value)
    assert least == pytest.approx(best, rel=1e-6)


def plan_price(plan):
    row = plan.best
    return row["cost_per_token"].to("USD/token") * Q_(20 * 200, "token/s") / row["devices"]


def test_engines_are_chosen_by_name():
    found = plan_serving(
        *JOB, [NODES.DGX_H100], engine=["vLLM", "SGLang", "llama.cpp"], tp_size=4, batch_limit=256
    )
    names = set(found.plans["calibration"].tolist())
    assert names == {"Hopper, vLLM", "Hopper, SGLang", "Hopper, llama.cpp"} & names
    assert len(names) > 1
    refused = plan_serving(*JOB, [NODES.DGX_A100, NODES.DGX_H100], engine="SGLang", tp_size=4)
    assert any("no constants of SGLang" in reason for reason in refused.refused)


def test_experts_are_shared_by_ranks_of_attention():
    found = plan_serving(
        Models.DeepSeek_V3,
        equal(20, 2000, 300),
        {"tpot_p99": Q_(150, "ms")},
        [NODES.HGX_H200],
        precision="fp8",
        batch_limit=1024,
        most_devices=32,
        confidence=None,
    )
    plans = {(row["tp_size"], row["attention_dp"], row["ep_size"]) for row in list(found.plans)}
    assert (8, 1, 1) in plans
    assert (1, 8, 8) in plans
    for row in list(found.plans):
        assert row["devices"] == row["replicas"] * row["tp_size"] * row["attention_dp"]


def test_capacity_counts_the_devices_of_all_ranks():
    shape = {"model": Models.DeepSeek_V3, "hardware": NODES.HGX_H200, "precision": "fp8"}
    load = equal(5, 2000, 300)
    found = capacity(
        **shape, traffic=load, slo={"tpot_p99": Q_(100, "ms")}, attention_dp=8, ep_size=8
    )
    assert (found.slots["devices"] == 8 * found.slots["running"]).all()


def test_plans_for_bursts_unlike_all_simulated_ones_say_so():
    bursts = replace(CHAT, burstiness=30)
    limits = {"ttft_p99": Q_(60, "s")}
    plan = plan_serving(Models.Llama3_70B, bursts, limits, [NODES.DGX_H100], tp_size=8)
    assert len(plan.outside) == 1
    assert plan.outside[0] in str(plan)
    day = capacity(Models.Llama3_70B, NODES.DGX_H100, bursts, limits, tp_size=8)
    assert day.outside == plan.outside
    assert day.outside[0] in str(day)
    usual = capacity(Models.Llama3_70B, NODES.DGX_H100, CHAT, limits, tp_size=8)
    assert usual.outside == ()


def test_the_usual_limits_on_sequences_count_per_rank():
    load = equal(400, 1024, 1024)
    slo = {"ttft_p99": Q_(5, "s"), "tpot_p99": Q_(150, "ms")}
    job = (Models.DeepSeek_V3, load, slo, [NODES.GB200_NVL72])
    few = {"precision": "fp4", "kv_precision": "fp8", "most_devices": 400, "confidence": None}
    found = plan_serving(*job, **few)
    limits = {row["batch_limit"] / row["attention_dp"] for row in list(found.plans)}
    assert limits <= {2**power for power in range(3, 11)}
    assert max(limits) == 1024
    wide = plan_serving(*job, **few, batch_limit=[2**power for power in range(6, 16)])
    assert found.best["devices"] <= wide.best["devices"]
    whole = plan_serving(*job, **few, batch_limit=[2**power for power in range(3, 10)])
    assert found.best["devices"] <= 0.6 * whole.best["devices"]
    # The best plan has the largest limit of all, and its engine has memory for more.
    assert whole.best["batch_limit"] == 512 < whole.plans.result(0).max_batch_size
    assert any("512" in remark for remark in whole.remarks)


@pytest.mark.parametrize(
    ("node", "tp", "devices", "servers"),
    [(NODES.HGX_H200, 2, 18, 3), (NODES.HGX_H200, 4, 28, 4), (NODES.HGX_H200, 8, 56, 7)],
)
def test_engines_and_servers_are_counted(node, tp, devices, servers):
    load = replace(CHAT, arrival_rate=Q_(1, "1/s"))
    same = {"tp_size": tp, "batch_limit": 64, "most_devices": devices, "precision": "fp8"}
    found = plan_serving(Models.Llama3_70B, load, LIMITS, [node], confidence=None, **same)
    rows = list(found.plans["devices"])
    assert found.plans.servers(rows.index(devices)) == {node.name: servers}


def test_an_engine_may_span_servers_and_pools_may_share_a_kind(pools):
    pair = Fleet(name="Pair", node=NODES.HGX_H200, count=2, fabric=LINK)
    load = replace(CHAT, arrival_rate=Q_(1, "1/s"))
    sizes = {"tp_size": 8, "pp_size": 2, "batch_limit": 64, "precision": "fp8"}
    found = plan_serving(Models.DeepSeek_V3, load, {"ttft_p99": Q_(9, "s")}, [pair], **sizes)
    assert found.plans.servers(0) == {"HGX H200": 2 * found.best["replicas"]}
    index = first_pair(pools.plans)
    row = pools.plans.row(index)
    count = math.ceil(row["replicas"] * row["tp_size"] / 8)
    count += math.ceil(row["prefill_replicas"] * row["prefill_tp_size"] / 8)
    assert pools.plans.servers(index) == {"DGX H100": count}
    alone = plan_serving(Models.Llama3_8B, CHAT, LIMITS, [Hardware.H100])
    assert alone.plans.servers(0) == {}


def test_the_capacity_has_the_error_of_measured_throughput():
    """The limit is so loose that only the capacity matters."""
    loose = {"ttft_p99": Q_(100, "s"), "tpot_p99": Q_(10, "s")}
    same = {"tp_size": 8, "batch_limit": 64, "most_devices": 64, "confidence": None}
    found = plan_serving(Models.Llama3_70B, CHAT, loose, [NODES.DGX_H100], **same)
    row = found.best
    band = ServingCalibrations.Hopper_TensorRT.serving("Llama 3 70B")
    measured = band.throughput_band.around(1)
    assert row["keeps_limits"] == pytest.approx(1 - below(row["utilization"], measured), abs=1e-4)
    assert row["keeps_limits"] < 0.99


def test_constants_without_a_band_are_not_more_certain_than_others():
    """An A100 has constants of its own, but too few runs; a V100 has none."""
    load = CHAT.arguments() | {"model": Models.Llama3_8B, "precision": "fp16"}
    ampere, volta, hopper = (
        log_errors_of(question_of(OpenLoopSolver, load | {"hardware": device}).inputs)
        for device in (Hardware.A100, Hardware.V100, Hardware.H100)
    )
    for spot in (0, 1):
        assert ampere[spot].deviation == volta[spot].deviation > hopper[spot].deviation
        assert ampere[spot].mean == 0 < volta[spot].mean
    assert math.isnan(volta[2].deviation)


def test_devices_without_runs_are_marked_and_not_compared():
    kinds = [NODES.HGX_H200, NODES.MI300X_Platform, NODES.DGX_B200]
    job = (Models.Llama3_70B, CHAT, LIMITS, kinds)
    same = {"goal": "cost", "batch_limit": [64, 256], "most_devices": 64}
    name = NODES.MI300X_Platform.accelerator.name
    found = plan_serving(*job, **same)
    assert any(name in remark for remark in found.remarks)
    plans = list(found.plans)
    hardware = [row["hardware"] for row in plans]
    assert "MI300X Platform" in hardware
    assert name in found.untested
    assert name not in found.rivals
    cheap = plan_serving(*job, **same, rental_price={name: Q_(0.01, "USD/h")} | {
        node.accelerator.name: Q_(5, "USD/h") for node in (NODES.HGX_H200, NODES.DGX_B200)
    })  # fmt: skip
    assert cheap.best["calibration"] == "Uncalibrated"
    assert cheap.stays_best is None
    assert cheap.rivals == ()
    assert cheap.prices[name] == "0.01 USD/h, as given"
    measured = plan_serving(*job[:3], [kinds[0], NODES.DGX_H100], **same)
    assert 0 < measured.stays_best < 1
    assert {measured.rivals, (measured.plans.devices[measured.best["hardware"]],)} == {
        (Hardware.H100.name,),
        (Hardware.H200.name,),
    }
    assert measured.untested == ()
    assert not any("run" in remark for remark in measured.remarks)
    # In 16 bits, the constants of Blackwell have too few runs for a band.
    few = plan_serving(*job[:3], [kinds[2]], **same)
    assert any("Blackwell, TensorRT-LLM" in remark for remark in few.remarks)
    assert few.untested == ()
    # Two servers with the same device are not other devices.
    twins = plan_serving(*job[:3], [NODES.DGX_H100, NODES.P5], **same)
    assert twins.stays_best is None


@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_odds_are_stated_only_among_constants_with_a_band(precision):
    """The constants of Blackwell have a band in 8 bits and none in 16."""
    kinds = [NODES.HGX_H200, NODES.GB200_NVL72]
    same = {"precision": precision, "batch_limit": 128, "tp_size": [4, 8], "most_devices": 64}
    found = plan_serving(Models.Llama3_70B, CHAT, LIMITS, kinds, **same)
    assert {row["hardware"] for row in list(found.plans)} == {kind.name for kind in kinds}
    banded = ServingCalibrations.Blackwell_TensorRT.in_format(precision).itl_band.known
    assert banded == (precision == "fp8")
    rack = Hardware.GB200.name
    assert (found.stays_best is not None) == banded
    assert found.untested == (() if banded else (rack,))
    assert len(found.rivals) == banded
    # The printed answer names the devices that it compares, and those that it cannot.
    sentences = str(found).splitlines()
    for device, shown in ((found.rivals, banded), (found.untested, not banded)):
        assert any(line for line in sentences if device and device[0] in line) == shown


def test_pools_without_a_band_are_compared_with_nothing():
    """Hopper's constants for separate pools have no band, but Blackwell's do."""
    load = {"precision": "fp8", "batch_limit": 128, "tp_size": [2, 4], "confidence": None}
    load |= {"transfer_link": Systems.Fabrics.InfiniBand_NDR, "most_devices": 64}
    strict = {"ttft_p99": Q_(3, "s"), "tpot_p99": Q_(20, "ms")}
    documents = equal(4, 8000, 200)
    for kinds, banded in (
        ([NODES.HGX_H200, NODES.DGX_H100], False),
        ([NODES.GB200_NVL72, NODES.DGX_B200], True),
    ):
        found = plan_serving(Models.Llama3_70B, documents, strict, kinds, **load)
        assert found.best["pools"] == "separate"
        assert (found.stays_best is not None) == banded
        assert len(found.rivals) == banded
        devices = {kind.accelerator.name for kind in kinds}
        assert set(found.untested) == (set() if banded else devices)


def test_prices_name_the_offer_and_its_date():
    found = plan_serving(*JOB, [NODES.DGX_H100], tp_size=4, batch_limit=64)
    offer = usual_offer(Hardware.H100)
    text = found.prices[Hardware.H100.name]
    assert offer.name in text
    assert offer.date in text
    assert text in str(found)
    day = capacity(Models.Llama3_70B, NODES.DGX_H100, CHAT, LIMITS, tp_size=8)
    assert text in str(day)


def test_a_device_by_itself_points_at_its_servers():
    found = plan_serving(Models.Llama3_8B, CHAT, LIMITS, [Hardware.H200])
    assert set(found.plans["tp_size"]) == {1}
    assert any("HGX_H200" in remark for remark in found.remarks)
    alone = plan_serving(Models.Llama3_8B, CHAT, LIMITS, [Hardware.H200], tp_size=1)
    assert not any("HGX_H200" in remark for remark in alone.remarks)
    three = [Hardware.H200, Hardware.MI300X, Hardware.B200]
    with pytest.raises(InfeasibleError, match="HGX_H200") as caught:
        plan_serving(Models.DeepSeek_V3, CHAT, LIMITS, three, precision="fp8")
    assert "MI300X_Platform" in caught.value.message
    with pytest.raises(ConfigError, match="HGX_H200"):
        plan_serving(
            Models.Llama3_70B, CHAT, {"ttft_p99": Q_(70, "ms")}, [Hardware.H200], precision="fp8"
        )


def test_replicas_are_counted_without_a_price():
    own = replace(Hardware.H100, name="My GPU", unit_price=None)
    job = (CHAT, {"ttft_p99": Q_(1, "s")})
    found = capacity(Models.Llama3_8B, own, *job)
    known = capacity(Models.Llama3_8B, Hardware.H100, *job)
    assert found.costs == {}
    assert found.break_even is None
    assert found.slots["replicas"].tolist() == known.slots["replicas"].tolist()
    priced = capacity(Models.Llama3_8B, own, *job, rental_price=Q_(2, "USD/h"))
    assert priced.costs["on_demand"].magnitude == pytest.approx(2 * 24 * found.peak)


def test_a_replica_that_no_rate_makes_certain_enough():
    job = (Models.Llama3_70B, NODES.DGX_H100, CHAT, {"tpot_p99": Q_(13, "ms")})
    found = capacity(*job, tp_size=8, confidence=0.99)
    few = capacity(*job, tp_size=8, confidence=found.keeps_limits)
    assert few.keeps_limits == found.keeps_limits < 0.99
    usual = capacity(*job, tp_size=8)
    assert usual.keeps_limits <= found.keeps_limits
    exact = capacity(*job, tp_size=8, confidence=None)
    assert exact.rate_per_replica > usual.rate_per_replica
    assert exact.keeps_limits < usual.keeps_limits


SERVICES = [
    (Models.Llama3_8B, NODES.DGX_H100, {"precision": "bf16"}, 1024, 1024),
    (Models.Llama3_70B, NODES.DGX_H100, {"precision": "fp8"}, 1000, 200),
    (Models.GPT_OSS_120B, NODES.DGX_H100, {"precision": "fp8"}, 4000, 500),
    (Models.DeepSeek_V3, NODES.DGX_B200, {"precision": "fp4", "kv_precision": "fp8"}, 4000, 500),
]


def closed_rate(shape, engine):
    """Return the requests per second of the engine with more clients than slots."""
    sizes = ("tp_size", "pp_size", "attention_dp", "ep_size", "dcp_size")
    limit = engine["batch_limit"]
    return ServingSolver.solve(
        **shape,
        **{name: engine[name] for name in sizes},
        seq_len=engine["seq_len"],
        output_len=engine["output_len"],
        max_sequences=limit,
        batch_size=4 * limit,
    ).request_throughput.magnitude


@pytest.mark.parametrize(
    ("model", "node", "formats", "seq_len", "output_len"),
    SERVICES,
    ids=str,
)
def test_no_plan_serves_more_than_a_closed_loop(model, node, formats, seq_len, output_len):
    load = equal(200, seq_len, output_len)
    slo = {"ttft_p99": Q_(2, "s"), "tpot_p99": Q_(100, "ms")}
    shape = {"model": model, "hardware": node, **formats}
    found = plan_serving(model, load, slo, [node], **formats, most_devices=1000, confidence=None)
    certain = np.asarray(found.plans["keeps_limits"]) >= 0.8
    fullest = int(np.argmax(np.asarray(found.plans["utilization"])))
    for index in (0, int(np.argmax(certain)), fullest):
        row = found.plans.row(index)
        lengths = {"seq_len": seq_len, "output_len": output_len}
        closed = closed_rate(shape, row | lengths)
        assert 200 / row["replicas"] <= closed * (1 + 1e-9)
        assert row["utilization"] == pytest.approx(200 / row["replicas"] / closed, rel=0.1)
    one = capacity(model, node, load, slo, confidence=None, **{
        name: value for name, value in found.plans.engine(0).items() if name in formats
        or name in ("tp_size", "attention_dp", "ep_size", "batch_limit")
    })  # fmt: skip
    closed = closed_rate(shape, found.best | {"seq_len": seq_len, "output_len": output_len})
    assert one.rate_per_replica.magnitude <= closed * (1 + 1e-9)
