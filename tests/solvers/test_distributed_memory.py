"""Memory of a training step, and steps that cannot run: said, not hidden."""

from dataclasses import replace

import pytest

from mlsysim import (
    DistributedSolver,
    Hardware,
    Models,
    ServingSolver,
    Systems,
)
from mlsysim.core.units import format_number
from tests.networks import fleet_of
from tests.solvers.test_distributed import LLAMA, one_node, solve


def test_a_model_that_does_not_fit_is_reported():
    r = solve(tp_size=1, pp_size=1, microbatch_count=1, recompute="selective")
    assert not r.feasible
    assert not r.fits_memory
    assert r.whole_microbatches
    assert r.step_latency_total.magnitude > 0
    lack = (r.memory - r.memory_capacity).to("TB").magnitude
    (reason,) = r.reasons
    assert reason.startswith("memory: ")
    assert f"{lack:.4g} TB short" in reason
    assert "tp_size x pp_size above" in reason


def test_the_advice_on_memory_is_enough():
    """States alone need 14.1 devices; sixteen hold them."""
    r = solve(tp_size=1, pp_size=1, microbatch_count=1)
    share = float(r.reasons[0].split("above ")[1].split()[0])
    states = r.weights_memory + r.gradient_memory + r.optimizer_memory
    assert (states / r.memory_capacity).to("").magnitude == pytest.approx(share, abs=0.05)
    held = solve(tp_size=8, pp_size=2, recompute="full", batch_size=256, microbatch_count=16)
    assert held.fits_memory, held.reasons


def test_activations_that_do_not_fit_get_other_advice():
    r = solve(attention="unfused", recompute="none", microbatch_count=8)
    assert not r.fits_memory
    assert 'recompute="full"' in r.reasons[0]
    assert "the states fit" in r.reasons[0]
    assert solve(recompute="full", microbatch_count=8).fits_memory


def test_parts_of_a_sequence_are_reported():
    # The first edition's sweep: two stages, sixteen microbatches, an eighth of a sequence each.
    r = solve(tp_size=1, pp_size=2, microbatch_count=16)
    assert r.microbatch_size == 0.125
    assert not r.whole_microbatches
    assert not r.feasible
    reason = next(reason for reason in r.reasons if reason.startswith("microbatches"))
    for part in ("batch_size = 256", "128 replicas", "16 microbatches", "0.125", "2048"):
        assert part in reason
    assert solve(tp_size=1, pp_size=2, microbatch_count=16, batch_size=2048).whole_microbatches


def test_parts_of_a_sequence_alone_are_reason_enough():
    r = solve(microbatch_count=24, recompute="full")
    assert r.fits_memory
    assert not r.feasible
    assert [reason.split(":")[0] for reason in r.reasons] == ["microbatches"]


def test_advice_names_the_sharding_that_suffices():
    plan = {"tp_size": 8, "pp_size": 1, "microbatch_count": 8}
    (reason,) = solve(**plan).reasons
    shared = solve(**plan, zero_stage=1)
    states = shared.weights_memory + shared.gradient_memory + shared.optimizer_memory
    assert states < shared.memory_capacity
    assert f"zero_stage = 1, which leaves {format_number(states)} of them" in reason


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        (Models.Llama3_70B, {"tp_size": 4, "cp_size": 8}),
        (Models.DeepSeek_V3, {"tp_size": 8, "pp_size": 2, "ep_size": 64}),
        (Models.Mixtral_8x22B, {"pp_size": 4, "ep_size": 8}),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_advice_counts_the_replicas_of_sequences_and_experts(model, sizes):
    plan = {"fleet": Systems.Clusters.Frontier_8K, "batch_size": 16_384, "seq_len": 8192}
    plan |= {"model": model, "microbatch_count": 8} | sizes
    (reason,) = DistributedSolver.solve(**plan).reasons
    shared = DistributedSolver.solve(**plan, zero_stage=1)
    states = shared.weights_memory + shared.gradient_memory + shared.optimizer_memory
    assert f"zero_stage = 1, which leaves {format_number(states)} of them" in reason


def test_advice_names_no_lever_that_is_pulled():
    pulled = {"zero_stage": 3, "sequence_parallel": True, "recompute": "full"}
    model = replace(Models.Llama3_70B, context=1_048_576)
    plan = {"tp_size": 8, "pp_size": 1, "microbatch_count": 8, "seq_len": 1_048_576}
    r = solve(**pulled, **plan, model=model)
    assert r.reasons[0].endswith("cp_size above 1 makes them smaller")
    assert "sequence_parallel" not in r.reasons[0]


def test_narrow_products_keep_narrow_inputs():
    """Llama 3 70B on 64 GB300, NVIDIA's recipe: 4.6 microbatches of 20 layers, 8,192 tokens each.

    In 8 bits, outputs of two norms and the block's product lose a byte per element, and the
    attention's output has a copy of one byte for the product after it. In FP4, a sixteenth of a
    byte of scale factors is added to half a byte.
    """
    fleet = fleet_of(1, Systems.Nodes.GB300_NVL72)
    plan = {"model": Models.Llama3_70B, "fleet": fleet, "batch_size": 288, "seq_len": 8192}
    plan |= {"pp_size": 4, "virtual_stages": 5, "microbatch_count": 16, "zero_stage": 1}
    wide, narrow, least = (
        DistributedSolver.solve(**plan, precision=name) for name in ("bf16", "fp8", "fp4")
    )
    kept = 20 * (4 + 3 / 5) * 8192

    def saved(each):
        return kept * ((2 - each) * (2 * 8192 + 28_672) - each * 8192)

    for r, each in ((narrow, 1), (least, 0.5 + 1 / 16)):
        difference = (wide.activation_memory - r.activation_memory).to("byte").magnitude
        assert difference == pytest.approx(saved(each))
    assert not wide.fits_memory
    assert narrow.fits_memory


def test_sharded_weights_are_no_more_than_a_stage_has():
    """One layer per stage: ZeRO-3 holds that layer whole, and never more than ZeRO-2."""
    plan = {"tp_size": 1, "pp_size": 80, "microbatch_count": 80, "batch_size": 640}
    fleet = fleet_of(80)
    two, three = (solve(**plan, fleet=fleet, zero_stage=stage) for stage in (2, 3))
    assert three.memory < two.memory
    # 856 million parameters, 2 bytes each, and not those of the embedding on the same stage
    layer = 2 * (2 * 8192 * 128 * 72 + 3 * 8192 * 28_672)
    gathered = (three.working_memory - two.working_memory).to("byte").magnitude
    assert gathered == pytest.approx(layer, rel=1e-3)


@pytest.mark.parametrize("model", [Models.Llama3_8B, Models.Mixtral_8x7B])
@pytest.mark.parametrize("reshard", [True, False])
@pytest.mark.parametrize("lora_rank", [None, 16])
def test_weights_with_one_replica_have_no_copy(model, reshard, lora_rank):
    """ZeRO-3 gathers only what it shards: on 8 devices of one replica it changes nothing."""
    plan = {"model": model, "fleet": fleet_of(1), "batch_size": 8, "seq_len": 512}
    plan |= {"precision": "bf16", "pp_size": 8, "microbatch_count": 8, "lora_rank": lora_rank}
    whole = DistributedSolver.solve(**plan, zero_stage=2)
    sharded = DistributedSolver.solve(**plan, zero_stage=3, reshard_after_forward=reshard)
    assert sharded.memory == whole.memory


def test_memory_is_stated_in_one_phrase():
    r = DistributedSolver.solve(
        model=Models.DeepSeek_V3,
        fleet=Systems.Clusters.DeepSeek_2048,
        batch_size=15_360,
        pp_size=32,
        ep_size=4,
        microbatch_count=240,
        zero_stage=1,
        precision="bf16",
    )
    whole = Systems.Clusters.DeepSeek_2048.node.accelerator.memory.reported.to("GB").magnitude
    need = r.memory.to("GB").magnitude
    account = f"{need:.1f} of {0.92 * whole:.1f} GB usable ({whole:.1f} GB reported, 8% reserved)"
    assert f"stage {r.fullest_stage} " in r.reasons[0]
    assert account in r.reasons[0]


def test_memory_without_a_reserve_is_what_the_device_reports():
    """One device has one usable memory: that of training, which leaves a share free."""
    whole = Hardware.H100.memory.reported.to("GB").magnitude
    job = {"model": Models.Llama3_70B, "fleet": Systems.Clusters.Research_256, "batch_size": 256}
    trained = DistributedSolver.solve(**job, usable_memory=1.0)
    served = ServingSolver.solve(model=Models.Llama3_70B, hardware=Hardware.H100, seq_len=2_048)
    for reason in (trained.reasons[0], served.reasons[0]):
        assert f"of {whole:.1f} GB reported" in reason
        assert "usable" not in reason


def test_frameworks_hold_logits_in_32_bits_and_their_gradient():
    """Llama 3 8B at 8,192 tokens: 8 bytes for each of 8192 x 128,256 logits, 8.4 GB."""
    plain, fused = (
        one_node(seq_len=8192, loss=kind, recompute="full") for kind in ("unfused", "fused")
    )
    more = (plain.working_memory - fused.working_memory).to("byte").magnitude
    assert more == pytest.approx(8 * 8192 * 128_256)
    assert plain.step_latency_total == fused.step_latency_total


def test_a_step_may_use_a_share_of_what_the_driver_reports():
    """An H100 reports 81,559 MiB, which are 85.52 GB; 92 % of that are 78.68 GB."""
    assert one_node().memory_capacity.to("GB").magnitude == pytest.approx(78.68, abs=0.005)
    whole = one_node(usable_memory=1).memory_capacity / Hardware.H100.memory.reported
    assert whole.to("").magnitude == pytest.approx(1)
    plain = replace(Hardware.H100.memory, reported=None)
    device = replace(Hardware.H100, memory=plain)
    node = replace(Systems.Nodes.DGX_H100, accelerator=device)
    r = one_node(fleet=replace(LLAMA["fleet"], node=node), usable_memory=0.5)
    assert r.memory_capacity.to("GB").magnitude == pytest.approx(40)


def test_context_parallelism_holds_what_visits():
    # 8,192 of 65,536 tokens per device: keys and values of a layer have 2 x 1024 x 2 x 8192 bytes.
    # In a ring one block and its gradient visit; a gather holds seven of each. Few words, so that
    # the peak is within a layer.
    model = replace(Models.Llama3_8B, vocab_size=1000, parameters=None)
    plan = {"model": model, "cp_size": 8, "seq_len": 65_536, "recompute": "full", "batch_size": 1}
    ring, gathered = (one_node(cp_kind=kind, **plan) for kind in ("ring", "all_gather"))
    own = 2 * 1024 * 2 * 8192
    more = (gathered.working_memory - ring.working_memory).to("byte").magnitude
    assert more == pytest.approx(2 * 6 * own)
    assert ring.activation_memory == gathered.activation_memory
