"""A training step is the sum of its parts, whatever is asked."""

from __future__ import annotations

import dataclasses

import pytest

from mlsysim import DistributedSolver, Hardware, Models, Systems
from tests.networks import fleet_of
from tests.solvers.strategies import si

PARTS = (
    "compute_latency",
    "tp_communication_latency",
    "cp_communication_latency",
    "ep_communication_latency",
    "pp_communication_latency",
    "dp_communication_latency",
    "pipeline_bubble_latency",
    "optimizer_latency",
    "launch_latency",
)
JOB = {
    "model": Models.Llama3_8B,
    "fleet": fleet_of(1),
    "batch_size": 8,
    "precision": "bf16",
}


def solve(**plan):
    return DistributedSolver.solve(**JOB | plan)


def test_small_layers_wait_for_the_host():
    """Mixtral in tensor groups of four on experts of eight: most of the step is launches."""
    plan = {"model": Models.Mixtral_8x7B, "tp_size": 4, "ep_size": 8, "seq_len": 512}
    r = solve(**plan)
    assert r.launch_latency > r.compute_latency
    assert si(solve(**plan, efficiency=0.5).launch_latency) == 0


@pytest.mark.parametrize("efficiency", [None, 0.5])
def test_fused_attention_is_one_kernel(efficiency):
    none, selective = (
        solve(recompute=kind, efficiency=efficiency, seq_len=131_072)
        for kind in ("none", "selective")
    )
    assert dict(none) == dict(selective)
    assert none.hfu == none.mfu
    # Llama 3 8B at 131,072 tokens: its matrices, 6.98e9, and the output, 0.525e9, take 2 x 7.50e9
    # operations per token, and the scores 4 x 32 x 4096 x 131,072 / 2 = 34.4e9. Plain attention
    # repeats the scores: 3 x 49.4 + 34.4 over 3 x 49.4.
    unfused = solve(recompute="selective", attention="unfused", seq_len=131_072)
    assert unfused.hfu / unfused.mfu == pytest.approx(1.232, rel=1e-3)


def test_frameworks_hold_logits_in_32_bits_and_their_gradient():
    """Llama 3 8B at 8,192 tokens: 8 bytes for each of 8192 x 128,256 logits, 8.4 GB."""
    plain, fused = (
        solve(seq_len=8192, loss=kind, recompute="full") for kind in ("unfused", "fused")
    )
    more = (plain.working_memory - fused.working_memory).to("byte").magnitude
    assert more == pytest.approx(8 * 8192 * 128_256)
    assert plain.step_latency_total == fused.step_latency_total


def test_a_step_may_use_a_share_of_what_the_driver_reports():
    """An H100 reports 81,559 MiB: 85.52 GB, of which 92 % are 78.68 GB."""
    assert solve().memory_capacity.to("GB").magnitude == pytest.approx(78.68, abs=0.005)
    whole = solve(usable_memory=1).memory_capacity / Hardware.H100.memory.reported
    assert whole.to("").magnitude == pytest.approx(1)
    plain = dataclasses.replace(Hardware.H100.memory, reported=None)
    device = dataclasses.replace(Hardware.H100, memory=plain)
    node = dataclasses.replace(Systems.Nodes.DGX_H100, accelerator=device)
    r = solve(fleet=dataclasses.replace(JOB["fleet"], node=node), usable_memory=0.5)
    assert r.memory_capacity.to("GB").magnitude == pytest.approx(40)


def test_context_parallelism_holds_what_visits():
    # 8,192 of 65,536 tokens per device: keys and values of a layer have 2 x 1024 x 2 x 8192 bytes.
    # In a ring one block and its gradient visit; a gather holds seven of each. Few words, so that
    # the peak is within a layer.
    model = dataclasses.replace(Models.Llama3_8B, vocab_size=1000, parameters=None)
    plan = {"model": model, "cp_size": 8, "seq_len": 65_536, "recompute": "full", "batch_size": 1}
    ring, gathered = (solve(cp_kind=kind, **plan) for kind in ("ring", "all_gather"))
    own = 2 * 1024 * 2 * 8192
    more = (gathered.working_memory - ring.working_memory).to("byte").magnitude
    assert more == pytest.approx(2 * 6 * own)
    assert ring.activation_memory == gathered.activation_memory
