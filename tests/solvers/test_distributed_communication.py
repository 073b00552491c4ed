"""What is sent besides gradients and tensor-parallel sums: by hand, and at the limits."""

from dataclasses import replace

import pytest

from mlsysim import DistributedSolver, Models, Systems
from mlsysim.registry.calibration.training import Calibrations

FLEET = Systems.Clusters.Research_256
LONG = {
    "model": Models.Llama3_70B,
    "fleet": FLEET,
    "batch_size": 4,
    "seq_len": 131_072,
    "tp_size": 8,
    "zero_stage": 1,
    "precision": "bf16",
}


def seconds(quantity):
    return quantity.to("s").magnitude


def test_long_attention_covers_keys_and_values_and_short_does_not():
    far = DistributedSolver.solve(**LONG, cp_size=8)
    assert seconds(far.cp_communication_latency) == 0
    near = DistributedSolver.solve(**LONG | {"seq_len": 4096}, cp_size=8)
    assert seconds(near.cp_communication_latency) > 0
    for efficiency in (None, 0.5):
        one = DistributedSolver.solve(**LONG | {"batch_size": 32}, efficiency=efficiency)
        assert seconds(one.cp_communication_latency) == 0


def test_experts_are_paid_for_with_an_efficiency_too():
    plan = {
        "model": Models.DeepSeek_V3,
        "fleet": FLEET,
        "batch_size": 256,
        "pp_size": 8,
        "microbatch_count": 8,
        "precision": "bf16",
        "efficiency": 0.5,
    }
    times = {n: DistributedSolver.solve(**plan, ep_size=n) for n in (1, 8, 32)}
    assert seconds(times[1].ep_communication_latency) == 0
    # Within a server over its links, and then mostly over the network, which is slower.
    inside, across = (seconds(times[n].ep_communication_latency) for n in (8, 32))
    assert across > 10 * inside > 0
    assert times[8].communication_latency >= times[8].ep_communication_latency
    dense = DistributedSolver.solve(model=Models.Llama3_8B, fleet=FLEET, batch_size=256)
    assert seconds(dense.ep_communication_latency) == 0


def test_ranks_of_a_tensor_group_hold_different_experts():
    """Liu et al. (2025): 32 experts' devices are 32 of a stage, whatever splits the rest."""
    plan = {"model": Models.DeepSeek_V3, "fleet": FLEET, "batch_size": 256, "precision": "bf16"}
    plan |= {"pp_size": 8, "microbatch_count": 8, "ep_size": 32}
    one, four = (DistributedSolver.solve(**plan, tp_size=n, zero_stage=0) for n in (1, 4))
    # Of its 8 layers, 3 are dense. Attention 8 x 187.1e6, dense blocks 3 x 396.4e6,
    # shared experts 5 x 44.0e6, routers 5 x 1.8e6 and the table 926.7e6 make 3.842e9 parameters,
    # which are split; 5 x 8 experts of 44.0e6, 1.762e9, are not: 2.722e9 over 5.604e9.
    ratio = (four.weights_memory / one.weights_memory).to("").magnitude
    assert ratio == pytest.approx(0.4858, rel=1e-3)
    split = DistributedSolver.solve(**plan | {"ep_size": 1}, tp_size=4)
    assert four.weights_memory < split.weights_memory / 4


def test_experts_without_replicas_gather_nothing():
    """All 64 devices of a stage share the experts, so only the rest has parts elsewhere."""
    plan = {"model": Models.DeepSeek_V3, "fleet": FLEET, "batch_size": 256, "precision": "bf16"}
    shared, whole = (
        DistributedSolver.solve(**plan, zero_stage=3, ep_size=n, pp_size=4) for n in (64, 1)
    )
    assert shared.dp_communication_latency < whole.dp_communication_latency / 10


def test_no_more_is_hidden_than_there_is_to_hide_under():
    """Over slow links a collective outlasts the work: hiding 65% of it would be a wonder."""
    slow = replace(FLEET, node=replace(FLEET.node, scale_up=Systems.Fabrics.Ethernet_10G))
    plan = {"model": Models.Llama3_70B, "fleet": slow, "batch_size": 64, "precision": "bf16"}
    usual = Calibrations.H100_Megatron
    hidden, shown = (
        DistributedSolver.solve(**plan, tp_size=8, calibration=usual.but(tensor_overlap=overlap))
        for overlap in (0.65, 0.0)
    )
    gained = seconds(shown.tp_communication_latency - hidden.tp_communication_latency)
    assert 0 < gained <= seconds(hidden.compute_latency)
    assert hidden.tp_communication_latency > 0.5 * shown.tp_communication_latency


@pytest.mark.parametrize(("ranks", "less"), [(8, True), (16, False)])
def test_collectives_that_leave_the_server_are_not_hidden(ranks, less):
    plan = {"model": Models.Llama3_70B, "fleet": FLEET, "batch_size": 64, "precision": "bf16"}
    hidden, shown = (
        DistributedSolver.solve(
            **plan,
            tp_size=ranks,
            calibration=Calibrations.H100_Megatron.but(tensor_overlap=overlap),
        )
        for overlap in (0.65, 0.0)
    )
    assert (hidden.tp_communication_latency < shown.tp_communication_latency) == less
