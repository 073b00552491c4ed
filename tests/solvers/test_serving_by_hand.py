"""Serving, written out: an account on paper beside the solver's, from operators and by the book."""

from dataclasses import replace

import pytest

from mlsysim import Models, ServingSolver, Systems
from mlsysim.core.units import Q_
from mlsysim.registry.calibration.serving import ServingCalibrations
from tests.samples import seconds

# No two the same, so that none can take the place of another.
CONSTANTS = replace(
    ServingCalibrations.Hopper_vLLM,
    gemm_efficiency=0.8,
    attention_efficiency=0.45,
    state_efficiency=0.02,
    memory_efficiency=0.75,
    kv_efficiency=0.6,
    link_efficiency=0.7,
    kv_share=0.9,
    reserved_output=0.5,
    pass_tokens=2500,
    hidden_bytes=Q_(20, "byte"),
    ffn_bytes=Q_(5, "byte"),
    layer_overhead=Q_(7, "us"),
    all_reduce_overhead=Q_(9, "us"),
    prompt_overhead=Q_(11, "us"),
    sequence_overhead=Q_(13, "us"),
    draft_overhead=Q_(0, "us"),
    compile_time=Q_(0, "s"),
    admission_steps=2.5,
    request_overhead=Q_(3, "ms"),
    mixing=0.5,
)
MODEL, WEIGHTS = Models.Llama3_8B, 2 * Models.Llama3_8B.parameters.to("param").magnitude
LOAD = {
    "model": MODEL,
    "hardware": Systems.Nodes.DGX_H100,
    "precision": "bf16",
    "tp_size": 2,
    "seq_len": 1000,
    "output_len": 101,
}
PEAK, BANDWIDTH, STREAM = 989.4e12, 3.35e12, 0.75 * 3.35e12
REPORTED = 81_559 * 2**20
# Of a pass of 2,500 tokens on one of two devices, in 16 bits: the stream and its normalized copy;
# gate, input and product of half of the feed-forward block.
WORKSPACE = 2500 * (2 * 4096 + 3 * 14_336 / 2) * 2
# Of one token on one of two devices, in all layers: keys and values of 8 heads of 128, 16 bits.
KV = 32 * 2 * 8 * 128 * 2 / 2
MATRICES = 32 * (2 * 4096 * 128 * (32 + 8) + 3 * 4096 * 14_336)
LOGITS = 128_256 * 4096


def product(rows, inner, columns):
    """A matrix product: its time, its arithmetic, its traffic."""
    work = 2 * rows * inner * columns / (0.8 * PEAK)
    traffic = 2 * (inner * columns + rows * (inner + columns)) / STREAM
    return max(work, traffic), work, traffic


def layer(rows):
    """A layer on one of two devices without attention: time, arithmetic, streaming, all-reduces."""
    shapes = ((4096, 48 * 128 / 2), (2048, 4096), (4096, 2 * 7168), (7168, 4096))
    products = (product(rows, *shape) for shape in shapes)
    time, work, traffic = (sum(part) for part in zip(*products, strict=True))
    elementwise = rows * (20 * 4096 + 5 * 2 * 7168) / STREAM
    # Two devices: each sends half of the message twice, and pays the start once.
    reduced = 2 * (9e-6 + rows * 4096 * 2 / (0.7 * 450e9))
    return time + elementwise + reduced, work, traffic, elementwise


def prefill(prompts):
    """Prompts of 1,000 tokens read together: time and traffic."""
    own, _, traffic, elementwise = layer(1000 * prompts)
    attention = 4 * 1000 * prompts * 1000 * 2048 / 2 / (0.45 * PEAK)
    logits, _, streamed = product(prompts, 4096, 128_256 / 2)
    time = 32 * (own + attention + 11e-6) + logits
    return time, STREAM * (32 * (traffic + elementwise) + streamed)


def decode(sequences):
    """A step at the mean context of 1,050.5 tokens: time and traffic."""
    context = 1000 + 101 / 2
    own, _, traffic, elementwise = layer(sequences)
    attention = 4 * sequences * context * 2048 / (0.45 * PEAK)
    cache = sequences * context * KV / 32 / (0.6 * BANDWIDTH)
    logits, _, streamed = product(sequences, 4096, 128_256 / 2)
    time = 32 * (own + max(attention, cache) + 7e-6) + logits + sequences * 13e-6
    moved = STREAM * (32 * (traffic + elementwise) + streamed)
    return time, moved + sequences * context * KV


def size(quantity):
    return quantity.to("byte").magnitude


@pytest.mark.parametrize(("arrivals", "batch"), [(1, 32), (4, 32), (1, 2000)])
def test_a_loaded_server_by_hand(arrivals, batch):
    r = ServingSolver.solve(
        **LOAD, batch_size=batch, waves=10, arrivals=arrivals, calibration=CONSTANTS
    )
    # Nine tenths of what weights and workspace leave is for sequences, that half of their output is
    # kept for.
    budget = 0.9 * (REPORTED - WEIGHTS / 2 - WORKSPACE)
    running = min(batch, budget // ((1000 + 0.5 * 101) * KV))
    assert r.running_batch_size == running
    assert (running < batch) == (batch == 2000)

    # 2,500 tokens are two prompts a pass, if two come at once: with 2,000 clients they do.
    ended = max(1, running / 100)
    together = min(running, max(arrivals, ended))
    at_once = min(2, ended)
    one, traffic = prefill(at_once)
    one /= at_once
    burst, later = (running + 2) / 2 * one, (together + at_once) / 2 * one
    read = burst / 10 + 0.9 * later
    step, moved = decode(running)
    # Half of the passes that read prompts take decodes along. What such a step saves is the wait
    # for weights and the fixed times; a pass has a prompt, or two.
    own, work, _, elementwise = layer(running)
    reduced = 2 * (9e-6 + running * 4096 * 2 / (0.7 * 450e9))
    shared = 32 * (own - elementwise - reduced - work + 7e-6)
    passes = running * max(1 / at_once, 1000 / 2500)
    saved = 0.5 * (1 - 1 / running) * min(passes, 100) * shared
    # A request waits for two and a half steps of the others, and for the prompts between these.
    steps = 2.5 * (1 - 1 / running)
    between = (running * one - read - saved) / (100 + steps)
    itl, admission = step + between, steps * step
    cycle = 100 * step + admission + running * one - saved + 3e-3
    # A tenth of the run is the first wave, for half of whose stay the rest has waited.
    wait = (1 - 1 / 20) * (batch - running) / running * cycle
    ttft = admission + steps * between + read + wait + 3e-3
    rate = running / cycle
    assert seconds(r.prefill_latency) == pytest.approx(prefill(1)[0])
    assert seconds(r.decode_latency) == pytest.approx(step)
    assert seconds(r.itl) == pytest.approx(itl)
    assert seconds(r.ttft) == pytest.approx(ttft)
    assert seconds(r.latency) == pytest.approx(ttft + 100 * itl)
    assert r.request_throughput.to("1/s").magnitude == pytest.approx(rate)
    assert r.output_throughput.to("token/s").magnitude == pytest.approx(101 * rate)
    assert r.decode_throughput.to("token/s").magnitude == pytest.approx(running / step)

    score, at_end = 4 * 32 * 4096 * 1000 / 2, 4 * 32 * 4096 * 1050.5
    prompts = 1000 * (2 * MATRICES + score) + 2 * LOGITS
    steps = 100 * (2 * MATRICES + at_end + 2 * LOGITS)
    assert r.hfu == pytest.approx(running * (prompts + steps) / (2 * PEAK * cycle))
    # The weights whose wait is saved do not move.
    shared_traffic = STREAM * (shared - 32 * 7e-6) * 0.5 * (1 - 1 / running) * min(passes, 100)
    bytes_moved = 100 * moved + running / at_once * traffic - shared_traffic
    assert r.mbu == pytest.approx(bytes_moved / (BANDWIDTH * cycle))


def test_requests_of_one_token_wait_until_all_are_read():
    r = ServingSolver.solve(
        **LOAD | {"output_len": 1}, batch_size=8, waves=10, calibration=CONSTANTS
    )
    # Each pass reads the two prompts that fit: the first wave comes in four, and later ones too.
    # Nothing is decoded, so nothing else holds a request up.
    one = prefill(2)[0] / 2
    first = (8 + 2) / 2 * one
    assert seconds(r.ttft) == pytest.approx(first / 10 + 0.9 * 8 * one + 3e-3)
    assert r.latency == r.ttft
    assert r.request_throughput.to("1/s").magnitude == pytest.approx(8 / (8 * one + 3e-3))


@pytest.mark.parametrize("batch", [1, 64])
def test_memory_of_the_textbooks_server_by_hand(batch):
    r = ServingSolver.solve(**LOAD, batch_size=batch, efficiency=0.4)
    assert size(r.model_weights_size) == WEIGHTS
    assert size(r.kv_cache_size) == batch * 1101 * 2 * KV
    held = WEIGHTS / 2 + batch * 1101 * KV
    assert size(r.total_memory_required) == held
    assert r.memory_utilization == pytest.approx(held / 80e9)
    left = 80e9 - WEIGHTS / 2
    assert r.max_batch_size == left // (1101 * KV)
    assert r.max_seq_len == left // (batch * KV)


@pytest.mark.parametrize("batch", [1, 64])
def test_memory_of_an_engine_by_hand(batch):
    r = ServingSolver.solve(**LOAD, batch_size=batch, calibration=CONSTANTS)
    held = WEIGHTS / 2 + WORKSPACE
    assert size(r.memory_capacity) == REPORTED
    assert size(r.kv_cache_size) == batch * 1101 * 2 * KV
    # The engine keeps a tenth of the rest free.
    assert size(r.total_memory_required) == pytest.approx(held + batch * 1101 * KV / 0.9)
    room = 0.9 * (REPORTED - held)
    assert r.max_batch_size == room // (1101 * KV)
    assert r.max_seq_len == room // (batch * KV)


def test_what_is_feasible_is_what_runs():
    """At the edge: the most sequences that fit all run, and one more neither fits nor runs."""
    constants = replace(CONSTANTS, reserved_output=1.0)
    load = LOAD | {"tp_size": 1, "calibration": constants}
    most = ServingSolver.solve(**load).max_batch_size
    edge, beyond = (ServingSolver.solve(**load, batch_size=most + k) for k in (0, 1))
    assert (edge.feasible, edge.running_batch_size) == (True, most)
    assert (beyond.feasible, beyond.running_batch_size) == (False, most)


# Bytes: matrices of the layers and norms, embeddings and output, of Llama 3 8B.
INNER, TABLES = 8_030_261_248 - 2 * 128_256 * 4096, 2 * 128_256 * 4096


@pytest.mark.parametrize(
    ("stored", "each"),
    [
        ("bf16", 2),
        ("fp8", 1),
        ("fp4", 0.5 + 1 / 16),  # a byte for 16 weights
        ("mxfp4", 0.5 + 1 / 32),  # a byte for 32 weights
        ("int4", 0.5 + 2.5 / 128),  # a scale of 2 bytes and a zero point of a half for 128 weights
    ],
)
@pytest.mark.parametrize("efficiency", [None, 0.4])
def test_embeddings_and_output_stay_in_16_bits(stored, each, efficiency):
    r = ServingSolver.solve(**LOAD, weight_precision=stored, efficiency=efficiency)
    assert size(r.model_weights_size) == pytest.approx(INNER * each + TABLES * 2)


@pytest.mark.parametrize(
    ("stored", "gigabytes"),
    [
        ("int4", 4.68 + 1.05),  # hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4, both files
        ("fp8", 5.00 + 4.08),  # nvidia/Llama-3.1-8B-Instruct-FP8, both files
    ],
)
def test_weights_have_the_size_of_published_checkpoints(stored, gigabytes):
    r = ServingSolver.solve(**LOAD, weight_precision=stored)
    assert size(r.model_weights_size) / 1e9 == pytest.approx(gigabytes, abs=0.01)


@pytest.mark.parametrize("batch", [1, 64])
def test_the_textbooks_batch_by_hand(batch):
    r = ServingSolver.solve(**LOAD, batch_size=batch, efficiency=0.4)
    score, at_end = 4 * 32 * 4096 * 1000 / 2, 4 * 32 * 4096 * 1050.5

    def reduced(tokens):
        """Two all-reduces a layer in a ring of two, which each have two steps."""
        message = batch * tokens * 4096 * 2
        return 64 * (message / 450e9 + 2 * 0.6e-6)

    read = batch * (1000 * (2 * MATRICES + score) + 2 * LOGITS)
    made = batch * (2 * MATRICES + at_end + 2 * LOGITS)
    traffic = [WEIGHTS / 2 + batch * tokens * KV for tokens in (1000, 1050.5)]
    prompts = max(read / (2 * 0.4 * PEAK), traffic[0] / BANDWIDTH)
    step = max(made / (2 * 0.4 * PEAK), traffic[1] / BANDWIDTH)
    ttft, itl = prompts + reduced(1000), step + reduced(1)
    cycle = ttft + 100 * itl
    assert seconds(r.ttft) == pytest.approx(ttft)
    assert seconds(r.itl) == pytest.approx(itl)
    assert seconds(r.latency) == pytest.approx(cycle)
    assert r.request_throughput.to("1/s").magnitude == pytest.approx(batch / cycle)
    assert r.decode_throughput.to("token/s").magnitude == pytest.approx(batch / itl)
    assert r.hfu == pytest.approx((read + 100 * made) / (2 * PEAK * cycle))
    assert r.mbu == pytest.approx((traffic[0] + 100 * traffic[1]) / (BANDWIDTH * cycle))
    assert (r.ttft_bottleneck, r.itl_bottleneck) == ("compute", "memory")
