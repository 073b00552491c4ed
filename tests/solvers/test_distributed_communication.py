"""What is sent besides gradients and tensor-parallel sums: by hand, and at the limits."""

import pytest

from mlsysim import DistributedSolver, Models, ParallelismError, Systems

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


def test_keys_and_values_go_round_three_times():
    r = DistributedSolver.solve(**LONG, cp_size=8, efficiency=0.5, recompute="none")
    model, node = LONG["model"], FLEET.node
    tokens = 131_072 / 8
    own = 2 * tokens * model.kv_heads * model.head_dim * 2 / 8
    port = FLEET.fabric.si("bandwidth") * node.nics_per_node / node.accelerators_per_node
    layer = 3 * 7 * (own / port + FLEET.fabric.si("latency"))
    assert seconds(r.cp_communication_latency) == pytest.approx(layer * model.layers)
    again = DistributedSolver.solve(**LONG, cp_size=8, efficiency=0.5, recompute="full")
    ratio = again.cp_communication_latency / r.cp_communication_latency
    assert ratio == pytest.approx(4 / 3)


def test_long_attention_covers_keys_and_values_and_short_does_not():
    far = DistributedSolver.solve(**LONG, cp_size=8)
    assert seconds(far.cp_communication_latency) == 0
    near = DistributedSolver.solve(**LONG | {"seq_len": 4096}, cp_size=8)
    assert seconds(near.cp_communication_latency) > 0
    for efficiency in (None, 0.5):
        one = DistributedSolver.solve(**LONG | {"batch_size": 32}, efficiency=efficiency)
        assert seconds(one.cp_communication_latency) == 0


@pytest.mark.parametrize("stage", [2, 3])
def test_gathers_that_layers_wait_for_are_counted(stage):
    r = DistributedSolver.solve(
        model=Models.Llama3_8B, fleet=FLEET, batch_size=256, precision="bf16", zero_stage=stage
    )
    # What is neither arithmetic nor in sight of it is the update, and what the step costs anyhow.
    rest = r.step_latency_total - r.compute_latency - r.communication_latency
    assert 0 < seconds(rest) < 0.05 * seconds(r.step_latency_total)
    assert seconds(r.dp_communication_latency) > 0


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


def test_the_answer_says_how_the_fleet_is_divided():
    found = DistributedSolver.solve(**LONG, cp_size=8, pp_size=2).parallelism
    assert (found.dp, found.cp, found.tp, found.pp, found.ep) == (2, 8, 8, 2, 1)
    assert found.dp * found.cp * found.tp * found.pp == FLEET.total_accelerators


def test_gpipe_is_not_interleaved():
    with pytest.raises(ParallelismError, match="choose schedule = '1f1b'"):
        DistributedSolver.solve(
            model=Models.Llama3_70B,
            fleet=FLEET,
            batch_size=256,
            tp_size=8,
            pp_size=4,
            microbatch_count=16,
            virtual_stages=2,
            schedule="gpipe",
        )


def test_sequences_are_shared_in_whole_tokens():
    with pytest.raises(ParallelismError, match="does not divide the 1000 tokens"):
        DistributedSolver.solve(**LONG | {"seq_len": 1000}, cp_size=16)
