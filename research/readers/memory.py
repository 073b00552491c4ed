"""Measured and published memory, predicted with `DistributedSolver` and formulas."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.errors import shown
from mlsysim.core.types import RECOMPUTE, Fleet, MoETransformerModel, Source, TransformerModel
from mlsysim.core.units import Q_
from mlsysim.registry import Models, Systems
from mlsysim.registry.calibration.training import Calibrations
from mlsysim.solvers import DistributedResult, DistributedSolver
from mlsysim.validation.report import Comparison
from research.readers.aliases import accelerator_named, server_of
from research.rows import Row, Skip, count_of

_RUN = Source(title="A published run")
GIB = 2.0**30


def predict(row: Row) -> float:
    """Return the predicted value of a row, in the row's unit.

    Raises
    ------
    Skip
        If the row lacks what a prediction needs, or measures something else.
    """
    quantity = row.text("quantity")
    if quantity == "model states per device":
        return _model_states(row)
    if quantity.startswith("activation memory relative"):
        return _relative_activations(row)
    if row.group == "simumax_b200_steptime":
        return float(_measured_run(row).step_latency_total.to("ms").magnitude)
    if row.group == "simumax_b200":
        return float(_measured_run(row).memory.to("byte").magnitude) / GIB
    if quantity == "activation memory":
        return float(_paper_run(row).activation_memory.to("byte").magnitude) / GIB
    if quantity.startswith("parameters+gradients+optimizer"):
        result = _paper_run(row)
        states = result.weights_memory + result.gradient_memory + result.optimizer_memory
        return float(states.to("byte").magnitude) / GIB
    raise Skip(f"{shown(quantity)} is not a quantity of the solver")


def compare(row: Row) -> Comparison:
    """Predict a row.

    Raises
    ------
    Skip
        If the row lacks required data.
    """
    value = row.measured()
    edges: list[float | None] = []
    if row.group == "simumax_b200_steptime":
        result = _measured_run(row)
        edges = [
            None if edge is None else float(edge.to("ms").magnitude)
            for edge in (result.step_latency_low, result.step_latency_high)
        ]
    return row.compared(f"{row.text('quantity')} ({row.text('unit')})", value, predict(row), *edges)


def _model_states(row: Row) -> float:
    """ZeRO's figure 1: mixed precision, Adam, states sharded according to the stage."""
    size = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)B", row.text("model"))
    if size is None:
        raise Skip(f"model {shown(row.text('model'))} is not a size")
    parameters, stage = float(size[1]) * 1e9, row.whole("zero_stage", minimum=0)
    shares = [parameters / row.whole("dp"), parameters]
    weights, gradients = 2 * shares[stage < 3], 2 * shares[stage < 2]
    optimizer = f.optimizer_state_size(shares[stage < 1], 2, 8, 4)
    return float(weights + gradients + optimizer) / 1e9


def measured(row: Row) -> float:
    """Return the measured step time of such a run in seconds.

    Raises
    ------
    Skip
        If the row has none.
    """
    value = row.number("value")
    if value is None:
        raise Skip("no value")
    return value / 1e3


def _gpt(row: Row) -> TransformerModel:
    """Return the GPT of Korthikanti's papers, which count only layers: a one-word vocabulary."""
    hidden, heads, layers = row.whole("hidden"), row.whole("heads"), row.whole("layers")
    return TransformerModel(
        name=row.text("model"),
        source=_RUN,
        parameters=Q_(12 * layers * hidden**2, "param"),
        layers=layers,
        hidden_dim=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        ffn_dim=row.whole("ffn"),
        vocab_size=1,
        seq_len=row.whole("seq_len"),
    )


def _paper_run(row: Row, **changes: object) -> DistributedResult:
    """Korthikanti's figure 1: gradients in 32 bits, attention that is not fused."""
    tp, pp = row.whole("tp"), row.whole("pp", default=1)
    arguments: dict[str, object] = {
        "recompute": row.word("recompute", (*RECOMPUTE, *_FIGURE_7), "none"),
        "sequence_parallel": bool(row.number("sequence_parallel") or 0),
    }
    # As many microbatches as the interleaved schedule needs, one sequence each or as given.
    return DistributedSolver.solve(
        model=_gpt(row),
        fleet=Fleet(
            name="measured",
            node=replace(Systems.DGX_A100, accelerators_per_node=tp),
            count=pp,
            fabric=Systems.InfiniBand_HDR,
        ),
        batch_size=row.whole("micro_batch", default=1) * 2 * pp,
        microbatch_count=2 * pp,
        tp_size=tp,
        pp_size=pp,
        virtual_stages=row.whole("virtual_stages", default=1),
        gradient_precision="fp32",
        attention="unfused",
        **(arguments | changes),  # type: ignore[arg-type]
    )


_FIGURE_7 = {
    "none": ("none", False),
    "seq": ("none", True),
    "sel": ("selective", False),
    "seqsel": ("selective", True),
    "full": ("full", False),
}


def _relative_activations(row: Row) -> float:
    """Korthikanti's figure 7: activations of one device over those of tensor parallelism alone."""
    kind, sequence_parallel = _FIGURE_7[row.word("recompute", _FIGURE_7, "none")]
    changed = _paper_run(row, recompute=kind, sequence_parallel=sequence_parallel)
    base = _paper_run(row, recompute="none", sequence_parallel=False)
    return 100 * float((changed.activation_memory / base.activation_memory).to("").magnitude)


def _deepseek(name: str, layers: int, **shape: int) -> MoETransformerModel:
    """Return a cut of DeepSeek: one dense layer, then layers of experts."""
    return MoETransformerModel(
        name=name,
        source=_RUN,
        layers=layers,
        heads=128,
        kv_heads=128,
        head_dim=128,
        latent=Models.DeepSeek_V3.latent,
        seq_len=4096,
        gated_mlp=True,
        moe_layers=layers - 1,
        **shape,  # type: ignore[arg-type]
    )


def _model(row: Row) -> TransformerModel:
    """Return the cut model of a row: its layers, whole embedding tables."""
    name, layers = row.text("model"), row.whole("layers")
    if name.startswith("deepseekv2"):
        return _deepseek(
            "DeepSeek-V2",
            layers,
            hidden_dim=5120,
            ffn_dim=12_288,
            vocab_size=102_400,
            experts=160,
            experts_per_token=6,
            expert_ffn_dim=1536,
            shared_ffn_dim=3072,
        )
    if name.startswith("deepseekv3"):
        return _deepseek(
            "DeepSeek-V3",
            layers,
            hidden_dim=7168,
            ffn_dim=18_432,
            vocab_size=129_280,
            experts=256,
            experts_per_token=8,
            expert_ffn_dim=2048,
            shared_ffn_dim=2048,
        )
    if name not in ("llama3_70b", "llama3_405b"):
        raise Skip(f"model {shown(name)} is not known")
    if name == "llama3_70b":
        return _cut(Models.Llama3_70B, layers)
    # The launcher gives the largest one sixteen key heads, not its eight.
    return _cut(replace(Models.Llama3_405B, kv_heads=16, parameters=None), layers)


def _cut(whole: TransformerModel, layers: int) -> TransformerModel:
    return replace(whole, layers=layers, parameters=None, field_sources={}, source=_RUN)


def _named(row: Row, letters: str) -> int:
    """Return a number that a row's identifier carries, such as cp4 or mbc32; 1 without one."""
    found = re.search(rf"_{letters}([0-9]+)", row.name)
    return count_of(found[1]) if found else 1


def _measured_run(row: Row) -> DistributedResult:
    return DistributedSolver.solve(**arguments(row))


def arguments(row: Row) -> dict[str, Any]:
    """Return the solver's arguments for a measured run on one server of B200.

    Microbatches have one sequence, and the optimizer is distributed.

    The launchers set sequence parallelism, context parallelism by heads, 32-bit gradients, a fused
    loss and no recomputation; sequences have 4,096 tokens unless the row says otherwise. See
    MooreThreads, SimuMax, simu_tools/megatron_scripts/scripts.
    """
    device = accelerator_named(row.text("hardware"))
    node = server_of(device)
    devices = Systems.DGX_B200.accelerators_per_node
    dp, count = row.whole("dp"), _named(row, "mbc")
    return {
        "calibration": Calibrations.B200_Untuned,
        "model": _model(row),
        "fleet": Fleet(
            name="measured",
            node=node,
            count=1,
            fabric=Systems.InfiniBand_NDR,
        ),
        "batch_size": dp * count,
        "seq_len": row.whole("seq_len", default=4096),
        "precision": "bf16",
        "gradient_precision": "fp32",
        "tp_size": row.whole("tp"),
        "pp_size": row.whole("pp"),
        "cp_size": devices // (row.whole("tp") * row.whole("pp") * dp),
        "cp_kind": "ulysses",
        "ep_size": _named(row, "ep"),
        "zero_stage": 1,
        "microbatch_count": count,
        "sequence_parallel": row.whole("tp") > 1,
        "recompute": "none",
        "attention": "fused",
        "loss": "fused",
    }
