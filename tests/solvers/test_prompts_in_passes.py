"""Short prompts share passes: what the first adds, what many add, and what no engine can exceed."""

from dataclasses import replace

import pytest

from mlsysim import Q_, Hardware, Models, OpenLoopSolver, ServingSolver, Systems
from mlsysim.registry.calibration.serving import serving_calibration_for
from mlsysim.solvers.traffic.queue import queue_at
from mlsysim.traffic import Traffic, engine_for, simulate

DENSE = {"model": Models.Llama3_8B, "hardware": Hardware.H100, "precision": "bf16"}
MIXTURE = {"model": Models.Mixtral_8x7B, "hardware": Systems.Nodes.DGX_H100, "tp_size": 8}
MANY_EXPERTS = {"model": Models.Qwen3_30B_A3B, "hardware": Hardware.H200}
RANKS = {
    "model": Models.DeepSeek_V3,
    "hardware": Systems.Nodes.HGX_H200,
    "precision": "fp8",
    "attention_dp": 8,
    "ep_size": 8,
}


def capacity(**arguments):
    """Return the requests per second that an engine can serve."""
    result = OpenLoopSolver.solve(**arguments, arrival_rate=Q_(1e-6, "1/s"))
    return result.request_capacity.to("1/s").magnitude


def with_memory(device, factor):
    memory = replace(device.memory, bandwidth=factor * device.memory.bandwidth)
    return replace(device, memory=memory)


@pytest.mark.parametrize("output_len", [1, 5, 20])
@pytest.mark.parametrize("seq_len", [16, 100, 500, 4_000])
def test_no_engine_exceeds_the_peak_of_its_device(seq_len, output_len):
    layers = 2 * (Models.Llama3_8B.parameters.magnitude - 2 * 128_256 * 4_096)
    most = 989.4e12 / (layers * (seq_len + output_len - 1))
    most *= serving_calibration_for(Hardware.H100).gemm_efficiency
    assert capacity(**DENSE, seq_len=seq_len, output_len=output_len) < most


@pytest.mark.parametrize("seq_len", [100, 500, 4_000])
def test_faster_memory_never_lowers_capacity_without_decode(seq_len):
    rates = [
        capacity(
            **DENSE | {"hardware": with_memory(Hardware.H100, factor)},
            seq_len=seq_len,
            output_len=1,
        )
        for factor in (0.5, 1, 2)
    ]
    assert rates == sorted(rates)
    assert rates[-1] > rates[0]


@pytest.mark.parametrize(
    "system",
    [DENSE, MIXTURE, MANY_EXPERTS, RANKS],
    ids=["dense", "mixture", "many experts", "ranks"],
)
@pytest.mark.parametrize("seq_len", [50, 500, 4_000])
def test_one_answer_token_is_read_as_fast_as_in_a_closed_loop(system, seq_len):
    closed = ServingSolver.solve(**system, seq_len=seq_len, output_len=1, batch_size=256)
    rate = closed.request_throughput.to("1/s").magnitude
    found = capacity(**system, seq_len=seq_len, output_len=1)
    assert found == pytest.approx(rate, rel=0.3 if system is RANKS else 0.1)


def test_short_prompts_hide_behind_the_weights_and_many_do_not():
    engine = engine_for(**DENSE, seq_len=100, output_len=20)
    saving = engine.savings[0]
    alone = engine.added_time(1, saving)
    full = engine.pass_tokens / engine.seq_len
    many = engine.added_time(full, saving) / full
    assert 0 < alone < 0.6 * engine.alone  # a pass that decodes reads the weights anyway
    assert many == pytest.approx(engine.prefill_time(full) / full, rel=0.1)
    # A pass that is half full also reads the weights.
    assert 0.6 * many < engine.added_time(full / 2, saving) / (full / 2) < 1.1 * many


def test_a_long_prompt_takes_the_same_in_every_pass():
    engine = engine_for(**DENSE, seq_len=20_000, output_len=20)
    chunk = 1 / engine.chunks
    assert engine.added_time(chunk, 0) == pytest.approx(engine.alone / engine.chunks)
    assert engine.prefill_time(5) == pytest.approx(5 * engine.alone)


def predicted_and_simulated(system, seq_len, output_len, utilization, count, seed):
    """Return the predicted times of an engine at a utilization, and those of a simulated run."""
    engine = engine_for(**system, seq_len=seq_len, output_len=output_len)
    traffic = (float(output_len), 1.0, 0.0, 0.0)
    rate = utilization * queue_at(engine, 1e-9, *traffic)["request_capacity"]
    trace = Traffic(
        arrival_rate=Q_(rate, "1/s"),
        seq_len=seq_len,
        output_len=output_len,
        input_variation=0,
        output_variation=0,
    ).sample(count, seed)
    run = simulate(engine, trace.arrivals, trace.prompts, trace.answers)
    return queue_at(engine, rate, *traffic), run


@pytest.mark.parametrize(
    ("system", "seq_len", "output_len"),
    [(DENSE, 50, 20), (DENSE, 200, 100), (DENSE, 500, 1), (MIXTURE, 200, 20)],
)
@pytest.mark.parametrize("utilization", [0.3, 0.6])
def test_the_closed_form_agrees_with_the_simulator(system, seq_len, output_len, utilization):
    predicted, run = predicted_and_simulated(system, seq_len, output_len, utilization, 5_000, 3)
    assert predicted["ttft_mean"] == pytest.approx(run.mean("ttft", 1_000), rel=0.12)
    assert predicted["e2e_mean"] == pytest.approx(run.mean("e2e", 1_000), rel=0.12)


@pytest.mark.parametrize(("seq_len", "output_len"), [(50, 20), (100, 20), (500, 50)])
@pytest.mark.parametrize("utilization", [0.8, 0.9])
def test_tails_of_packed_prompts(seq_len, output_len, utilization):
    """Without the length of the pass that a request meets, the tails are up to 46% too low."""
    predicted, run = predicted_and_simulated(DENSE, seq_len, output_len, utilization, 10_000, 1)
    for time in ("ttft", "tpot"):
        late = run.percentile(time, 99, 2_000)
        assert predicted[f"{time}_p99"] == pytest.approx(late, rel=0.3), time
