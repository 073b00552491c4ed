"""A lever moves what it is about, and what runs beside that; nothing else."""

import inspect
from dataclasses import replace

import pytest

from mlsysim import ConfigError, DistributedSolver, Models, Systems
from tests.solvers.strategies import PARTS

FLEET = Systems.Clusters.Research_256
DENSE = {
    "model": Models.Llama3_70B,
    "fleet": FLEET,
    "batch_size": 256,
    "seq_len": 8192,
    "tp_size": 8,
    "pp_size": 4,
    "cp_size": 2,
    "microbatch_count": 16,
    "precision": "bf16",
    "sequence_parallel": True,
    "zero_stage": 1,
}
EXPERTS = {
    "model": Models.Mixtral_8x7B,
    "fleet": FLEET,
    "batch_size": 256,
    "seq_len": 4096,
    "tp_size": 2,
    "ep_size": 8,
    "microbatch_count": 2,
    "precision": "bf16",
    "sequence_parallel": True,
}
SEEING = DENSE | {"model": Models.Gemma3_27B, "cp_size": 1, "pp_size": 2}
MEMORY = ("weights", "gradient", "optimizer", "activation", "working")
TIME = {name.removesuffix("_latency").removesuffix("_communication"): name for name in PARTS}
# What replicas exchange hides under a pass: as a pass grows or shrinks, so does what is hidden.
PASS = {"dp", "pipeline_bubble"}
# So do launches: they stick out where computation is short.
COMPUTE = PASS | {"compute", "launch"}
# A forward pass that is run again computes, talks and is launched again.
AGAIN = PASS | {"compute", "tp", "cp", "launch", "activation", "working"}
STATES = {"weights", "gradient", "working"}

MOVES = [
    # Products keep their inputs in eight bits.
    (DENSE, {"precision": "fp8"}, PASS | {"compute", "activation"}),
    (DENSE, {"seq_len": 4096}, PASS | {"compute", "tp", "cp", "pp", "activation", "working"}),
    (DENSE, {"zero_stage": 0}, {"dp", "optimizer"}),
    (DENSE, {"zero_stage": 2}, PASS | {"gradient"}),
    (DENSE, {"zero_stage": 3}, PASS | STATES),
    (DENSE | {"zero_stage": 3}, {"reshard_after_forward": False}, PASS | {"working"}),
    (DENSE, {"shard_size": 2}, {"dp", "optimizer"}),
    (DENSE, {"sequence_parallel": False}, PASS | {"compute", "activation"}),
    (DENSE, {"recompute": "full"}, AGAIN),
    (DENSE, {"recompute": "full", "recompute_layers": 5}, AGAIN),
    (DENSE, {"recompute": "norms+swiglu"}, PASS | {"compute", "activation", "working"}),
    (DENSE, {"attention": "unfused"}, COMPUTE | {"cp", "activation", "working"}),
    (DENSE, {"gradient_precision": "fp32"}, {"dp", "gradient"}),
    (DENSE, {"gradient_compression": 4}, {"dp"}),
    (DENSE, {"gradient_overlap": 0.1}, {"dp"}),
    (DENSE, {"tensor_overlap": 0.1}, PASS | {"tp"}),
    (DENSE, {"pipeline_overlap": 0.5}, {"pp"}),
    (DENSE, {"cp_kind": "all_gather"}, PASS | {"cp", "working"}),
    # Devices that swap heads attend to longer parts of sequences, at a higher rate.
    (DENSE, {"cp_kind": "ulysses"}, COMPUTE | {"cp", "activation", "working"}),
    (DENSE, {"ulysses_size": 2}, COMPUTE | {"cp", "activation", "working"}),
    (DENSE, {"optimizer": "muon"}, {"optimizer"}),
    (DENSE, {"lora_rank": 16}, PASS | STATES | {"compute", "optimizer"}),
    # Frozen weights are expanded before each product.
    (
        DENSE | {"lora_rank": 16},
        {"weight_precision": "int4"},
        PASS | {"compute", "weights", "working"},
    ),
    (DENSE, {"loss": "fused"}, {"working"}),
    (DENSE, {"usable_memory": 0.8}, set()),
    (DENSE, {"schedule": "gpipe"}, {"pp", "pipeline_bubble", "activation", "working"}),
    (DENSE, {"schedule": "zb-h1"}, {"pp", "pipeline_bubble", "activation", "working"}),
    # A device holds a stage and its mirror image: the output projection has company.
    (DENSE, {"schedule": "dualpipe"}, PASS | STATES | {"compute", "pp", "optimizer", "activation"}),
    (DENSE, {"virtual_stages": 2}, {"pp", "pipeline_bubble", "activation"}),
    (DENSE, {"first_stage_layers": 19}, set(TIME) | set(MEMORY) - {"working"}),
    (DENSE, {"last_stage_layers": 19}, set(TIME) | set(MEMORY) - {"working"}),
    (SEEING, {"images": 8}, PASS | {"compute", "activation"}),
    (EXPERTS, {"exchange_overlap": 0.9}, {"dp", "ep"}),
    (EXPERTS, {"dispatch_precision": "fp8"}, {"dp", "ep"}),
    (EXPERTS, {"expert_nodes": 1}, {"dp", "ep"}),
    (
        EXPERTS,
        {"capacity_factor": 2},
        {"dp", "ep", "compute", "launch", "activation", "working"},
    ),
]
# They choose the job, the machine or the split, on which everything depends.
EVERYTHING = {
    *("model", "fleet", "batch_size", "efficiency", "calibration", "tp_size", "pp_size"),
    *("cp_size", "ep_size", "microbatch_count"),
}


def parts(plan):
    r = DistributedSolver.solve(**plan)
    return {name: r[field] for name, field in TIME.items()} | {
        f"{name} memory": r[f"{name}_memory"] for name in MEMORY
    }


@pytest.mark.parametrize(("base", "change", "allowed"), MOVES, ids=[str(c) for _, c, _ in MOVES])
def test_a_lever_moves_no_unrelated_part(base, change, allowed):
    before, after = parts(base), parts(base | change)
    moved = {name.removesuffix(" memory") for name in before if before[name] != after[name]}
    assert moved <= allowed


def test_every_lever_is_swept():
    levers = set(inspect.signature(DistributedSolver.solve).parameters) - EVERYTHING
    assert levers - {"power_calibration"} == {name for _, change, _ in MOVES for name in change}


# How a group works, which may be one device: an axis over its size begins there.
OF_GROUPS = {
    *("cp_kind", "sequence_parallel", "zero_stage", "schedule", "tensor_overlap"),
    "pipeline_overlap",
    *("gradient_overlap", "gradient_compression"),
    *("exchange_overlap", "dispatch_precision", "expert_nodes"),
}


@pytest.mark.parametrize("model", [Models.Llama3_8B, Models.Mixtral_8x7B])
def test_on_one_device_only_levers_of_groups_are_accepted_without_effect(model):
    one = replace(Systems.Nodes.DGX_H100, accelerators_per_node=1, nics_per_node=1)
    base = {
        "model": model,
        "fleet": replace(FLEET, node=one, count=1),
        "batch_size": 4,
        "microbatch_count": 2,
        "precision": "bf16",
    }
    usual = dict(DistributedSolver.solve(**base))
    idle = set()
    for _, change, _ in MOVES:
        try:
            found = dict(DistributedSolver.solve(**base | change))
        except ConfigError:
            continue
        # Sharded plans take constants of another name, and an unusual choice is said to be one.
        if {n for n in usual if str(found[n]) != str(usual[n])} <= {"calibration", "outside"}:
            idle |= change.keys()
    assert idle <= OF_GROUPS
    assert idle >= {"cp_kind", "sequence_parallel", "zero_stage"}
