"""Every argument of the serving solvers changes an answer, or is refused by name."""

from dataclasses import replace

import pytest

from mlsysim import (
    Q_,
    ConfigError,
    DisaggregatedSolver,
    Hardware,
    Models,
    OpenLoopSolver,
    ServingSolver,
    Systems,
)
from mlsysim.registry.calibration.power import PowerCalibrations
from mlsysim.registry.calibration.serving import ServingCalibrations

OTHER = {
    "hardware": Systems.Nodes.DGX_A100,
    "seq_len": 1500,
    "images": 1,
    "output_len": 300,
    "batch_size": 48,
    "precision": "fp8",
    "weight_precision": "fp8",
    "kv_precision": "fp8",
    "tp_size": 8,
    "pp_size": 2,
    "attention_dp": 4,
    "ep_size": 2,
    "dcp_size": 2,
    "redundant_experts": 4,
    "expert_imbalance": 1.3,
    "dispatch_precision": "fp32",
    "overlap_batches": 2,
    "cached_share": 0.3,
    "loaded_share": 0.3,
    "host_link": Systems.Links.PCIe5,
    "lora_rank": 16,
    "adapters": 5,
    "resident_adapters": 2,
    "turns": 3,
    "turn_tokens": 30,
    "think_time": Q_(20, "s"),
    "host_memory": Q_(100, "GB"),
    "token_budget": 512,
    "max_sequences": 9,
    "block_size": 32,
    "reserved_output": 0.3,
    "draft_tokens": 2,
    "acceptance_length": 1.5,
    "waves": 3,
    "arrivals": 4,
    "efficiency": 0.4,
    "calibration": ServingCalibrations.Hopper_vLLM,
    "power_calibration": PowerCalibrations.Ampere,
    "arrival_rate": 2.5,
    "burstiness": 2,
    "input_variation": 0.5,
    "output_variation": 0.5,
    "batch_limit": 77,
    "role": "decode",
    "prefill_workers": 2,
    "decode_workers": 2,
    "prefill_tp_size": 2,
    "prefill_pp_size": 2,
    "prefill_attention_dp": 4,
    "prefill_ep_size": 2,
    "prefill_hardware": Systems.Nodes.DGX_A100,
    "transfer_link": Systems.Fabrics.InfiniBand_NDR,
    "prefill_calibration": ServingCalibrations.Hopper_vLLM,
}
"""Another value of each argument."""
ECHOED = {"calibration", "power_calibration", "cached_tokens", "loaded_tokens"}
"""Fields that repeat an argument."""
DENSE = {
    "model": Models.Llama3_8B,
    "hardware": Systems.Nodes.DGX_H100,
    "seq_len": 2000,
    "output_len": 1000,
}
MIXED = DENSE | {"model": Models.Mixtral_8x7B, "tp_size": 2, "attention_dp": 2, "ep_size": 4}
WHOLE = DENSE | {"model": Models.Mixtral_8x7B, "tp_size": 4}
BUSY = {"batch_size": 2000}
CHAT = {"turns": 2, "turn_tokens": 50, "think_time": Q_(60, "s")}
LOAD = {"arrival_rate": 3.0}
CASES = {
    "one request": (ServingSolver, DENSE),
    "busy": (ServingSolver, DENSE | BUSY),
    "textbook": (ServingSolver, DENSE | {"efficiency": 0.5}),
    "experts": (ServingSolver, MIXED | BUSY),
    "experts on every device": (ServingSolver, WHOLE | BUSY),
    "adapters": (ServingSolver, DENSE | BUSY | {"lora_rank": 8}),
    "sessions": (ServingSolver, DENSE | {"batch_size": 64} | CHAT),
    "no design power": (ServingSolver, DENSE | {"hardware": replace(Hardware.H100, tdp=None)}),
    "open loop": (OpenLoopSolver, DENSE | LOAD),
    "open loop, experts": (OpenLoopSolver, MIXED | LOAD),
    "open loop, sessions": (OpenLoopSolver, DENSE | LOAD | CHAT),
    "prefill pool": (OpenLoopSolver, DENSE | LOAD | {"role": "prefill"}),
    "decode pool": (OpenLoopSolver, DENSE | LOAD | {"role": "decode"}),
    "pools": (DisaggregatedSolver, DENSE | {"batch_size": 64}),
    "pools, sessions": (DisaggregatedSolver, DENSE | {"batch_size": 64} | CHAT),
    "pools, experts": (
        DisaggregatedSolver,
        MIXED | {"batch_size": 64, "prefill_tp_size": 4, "expert_imbalance": 1.2},
    ),
}
# Numbers for which there is nothing to change: a single client has no others to wait for, memory is
# plentiful, and the traffic describes both pools.
NOTHING = {
    "one request": {"max_sequences", "reserved_output", "waves", "arrivals"},
    "no design power": {"max_sequences", "reserved_output", "waves", "arrivals"},
    "sessions": {"reserved_output"},
    "open loop, experts": {"reserved_output"},
    "prefill pool": {"output_len"},
}


def answer(solver, given):
    result = solver.solve(**given)
    fields = type(result).__dataclass_fields__.keys() - ECHOED
    return {name: str(getattr(result, name)) for name in fields}


@pytest.mark.parametrize("case", CASES)
def test_an_argument_changes_an_answer_or_is_refused(case):
    solver, given = CASES[case]
    plain = answer(solver, given)
    levers = [n for n in solver.parameters if n != "model" and n not in NOTHING.get(case, ())]
    silent = []
    for name in levers:
        other = "both" if given.get(name) == "decode" else OTHER[name]
        try:
            changed = answer(solver, given | {name: other}) != plain
        except ConfigError as fault:
            changed = fault.argument == name or name in fault.message
        if not changed:
            silent.append(name)
    assert not silent


@pytest.mark.parametrize(
    ("case", "more", "argument"),
    [
        ("one request", {"dispatch_precision": "fp8"}, "dispatch_precision"),
        ("experts on every device", {"dispatch_precision": "fp8"}, "dispatch_precision"),
        ("experts on every device", {"expert_imbalance": 1.5}, "expert_imbalance"),
        ("open loop", {"host_link": Systems.Links.PCIe5}, "host_link"),
        ("decode pool", {"cached_share": 0.5}, "cached_share"),
        ("textbook", {"waves": 2}, "waves"),
        ("textbook", {"token_budget": 512}, "token_budget"),
        ("textbook", {"reserved_output": 0.5}, "reserved_output"),
        ("no design power", {"power_calibration": PowerCalibrations.Ampere}, "power_calibration"),
    ],
)
def test_an_argument_without_effect_is_named(case, more, argument):
    solver, given = CASES[case]
    with pytest.raises(ConfigError) as fault:
        solver.solve(**given | more)
    assert fault.value.argument == argument
