"""The training step: a reference point, what must always hold, and who shares a node."""

import dataclasses

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mlsysim import (
    Q_,
    DistributedSolver,
    Models,
    Systems,
)
from tests.networks import fleet_of
from tests.samples import seconds

FABRICS = Systems.Fabrics
REFERENCE = {
    "model": Models.Llama3_70B,
    "batch_size": 256,
    "seq_len": 2048,
    "precision": "fp16",
    "tp_size": 8,
    "pp_size": 4,
    "microbatch_count": 16,
    "efficiency": 0.5,
    "recompute": "none",
}
sizes = st.sampled_from([1, 2, 4, 8, 16, 32])
few = settings(max_examples=40)


def solve(**changes):
    return DistributedSolver.solve(**{"fleet": fleet_of(32), **REFERENCE, **changes})


# The reference point: 256 H100, a 70B model, 256 sequences of 2,048 tokens. It was worked out by
# hand with fewer terms. Ours differ for known reasons, so the margin is 4 %:
# - attention scores and logits count, and the embedding does not: compute +0.3 %;
# - each ring of the tensor-parallel all-reduce has its latency, 14 x 0.6 us: TP +3.2 %;
# - stages hand activations on (0.005 to 0.023 s), and the bubble grows with all of that: +2 %.

HAND = {
    "Ethernet_100G": {"dp": 0.618, "step": 3.10, "rate": 82.7, "mfu": 0.283},
    "InfiniBand_HDR": {"dp": 0.309, "step": 2.79, "rate": 91.8, "mfu": 0.314},
    "InfiniBand_NDR": {"dp": 0.154, "step": 2.63, "rate": 97.2, "mfu": 0.333},
}


@pytest.mark.parametrize("fabric", HAND)
def test_reference_point(fabric):
    r = solve(fleet=fleet_of(32, fabric=FABRICS[fabric]))
    hand = HAND[fabric]
    assert seconds(r.compute_latency) == pytest.approx(1.754, rel=0.01)
    assert seconds(r.tp_communication_latency) == pytest.approx(0.334, rel=0.04)
    assert seconds(r.pipeline_bubble_latency) == pytest.approx(0.391, rel=0.04)
    assert seconds(r.dp_communication_latency) == pytest.approx(hand["dp"], rel=0.01)
    assert seconds(r.step_latency_total) == pytest.approx(hand["step"], rel=0.04)
    assert r.effective_throughput.magnitude == pytest.approx(hand["rate"], rel=0.04)
    assert r.mfu == pytest.approx(hand["mfu"], rel=0.04)
    assert r.parallelism == {"dp": 8, "tp": 8, "pp": 4, "cp": 1, "ep": 1}
    assert r.bubble_fraction == pytest.approx(3 / 19)


def test_compute_by_hand():
    # 6 operations for each of the layers' and logits' weights, 12 L h s / 2 for causal scores.
    weights = 80 * (2 * 8192 * 128 * 72 + 3 * 8192 * 28_672) + 128_256 * 8192
    tokens = 256 * 2048
    flops = tokens * (6 * weights + 12 * 80 * 8192 * 2048 / 2)
    r = solve()
    assert r.model_flops.to("flop").magnitude == pytest.approx(flops, rel=1e-12)
    assert seconds(r.compute_latency) == pytest.approx(flops / (256 * 989.4e12 * 0.5), rel=1e-12)


# What must always hold


@few
@given(slow=st.floats(1, 1000), fast=st.floats(1, 1000), tp=sizes, pp=sizes)
def test_a_faster_network_never_slows_the_step(slow, fast, tp, pp):
    slow, fast = sorted((slow, fast))
    assume(256 % (tp * pp) == 0)
    steps = [
        solve(
            fleet=fleet_of(
                32,
                fabric=dataclasses.replace(FABRICS.InfiniBand_NDR, bandwidth=Q_(rate, "GB/s")),
            ),
            tp_size=tp,
            pp_size=pp,
        )
        for rate in (slow, fast)
    ]
    assert steps[0].step_latency_total >= steps[1].step_latency_total
    assert steps[0].mfu <= steps[1].mfu
    assert steps[0].compute_latency == steps[1].compute_latency


def test_virtual_stages_divide_the_bubble_and_cost_transfers():
    plain, chunked = solve(), solve(virtual_stages=4)
    assert plain.bubble_fraction == pytest.approx(3 / 19)
    assert chunked.bubble_fraction == pytest.approx(3 / 67)
    ratio = chunked.pp_communication_latency / plain.pp_communication_latency
    assert ratio.to("").magnitude == pytest.approx(4)
    assert chunked.activation_memory > plain.activation_memory


def test_one_device_communicates_nothing():
    single = dataclasses.replace(Systems.Nodes.DGX_H100, accelerators_per_node=1, nics_per_node=1)
    r = solve(fleet=fleet_of(1, single), tp_size=1, pp_size=1, microbatch_count=1)
    assert seconds(r.communication_latency) == 0
    assert seconds(r.pipeline_bubble_latency) == 0
    assert r.scaling_efficiency == 1
    assert r.mfu == pytest.approx(0.5)


# Who shares a node decides


def test_replicas_in_one_node_reduce_over_its_links():
    one = fleet_of(1, fabric=FABRICS.Ethernet_10G)
    r = solve(fleet=one, model=Models.Llama3_8B, tp_size=1, pp_size=1, microbatch_count=1)
    size = 2 * Models.Llama3_8B.parameters.to("param").magnitude
    by_hand = 2 * 7 / 8 * size / 450e9 + 14 * 0.6e-6
    assert seconds(r.dp_communication_latency) == pytest.approx(by_hand)


def test_stages_on_two_nodes_speak_over_the_network():
    transfer = 2048 * 2 * 8192 * 2 / 8  # each of eight ranks sends its part of a microbatch
    for nodes, bandwidth, latency in ((1, 450e9, 0.6e-6), (2, 50e9, 2.7e-6)):
        r = solve(fleet=fleet_of(nodes), tp_size=nodes * 4, pp_size=2, batch_size=32)
        by_hand = 2 * 16 * (transfer * 8 / (nodes * 4) / bandwidth + latency)
        assert seconds(r.pp_communication_latency) == pytest.approx(by_hand)


def test_fewer_ports_are_shared():
    node = dataclasses.replace(Systems.Nodes.DGX_H100, nics_per_node=1)
    one, eight = solve(fleet=fleet_of(32, node)), solve()
    ratio = seconds(one.dp_communication_latency) / seconds(eight.dp_communication_latency)
    assert ratio == pytest.approx(8, rel=0.01)


LLAMA = {"model": Models.Llama3_8B, "fleet": fleet_of(1), "batch_size": 8, "precision": "bf16"}


def one_node(**plan):
    return DistributedSolver.solve(**LLAMA | plan)


def test_small_layers_wait_for_the_host():
    """Mixtral in tensor groups of four on experts of eight: most of the step is launches."""
    plan = {"model": Models.Mixtral_8x7B, "tp_size": 4, "ep_size": 8, "seq_len": 512}
    r = one_node(**plan)
    assert r.launch_latency > r.compute_latency
    assert seconds(one_node(**plan, efficiency=0.5).launch_latency) == 0


@pytest.mark.parametrize("efficiency", [None, 0.5])
def test_fused_attention_is_one_kernel(efficiency):
    none, selective = (
        one_node(recompute=kind, efficiency=efficiency, seq_len=131_072)
        for kind in ("none", "selective")
    )
    assert dict(none) == dict(selective)
    assert none.hfu == none.mfu
    # Llama 3 8B at 131,072 tokens: its matrices, 6.98e9, and the output, 0.525e9, take 2 x 7.50e9
    # operations per token, and the scores 4 x 32 x 4096 x 131,072 / 2 = 34.4e9. Plain attention
    # repeats the scores: 3 x 49.4 + 34.4 over 3 x 49.4.
    unfused = one_node(recompute="selective", attention="unfused", seq_len=131_072)
    assert unfused.hfu / unfused.mfu == pytest.approx(1.232, rel=1e-3)
