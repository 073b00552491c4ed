"""Measured training runs as calls of `DistributedSolver`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from mlsysim.core.errors import shown
from mlsysim.core.types import (
    RECOMPUTE,
    Accelerator,
    Calibration,
    Fleet,
    NetworkFabric,
    Node,
    Software,
    Source,
    TransformerModel,
)
from mlsysim.core.units import Q_
from mlsysim.registry import Systems
from mlsysim.registry.calibration.training import (
    Frameworks,
    calibration_for,
    calibration_of,
    machine_for,
)
from mlsysim.solvers import DistributedSolver
from mlsysim.validation.columns import LABELS
from mlsysim.validation.report import Comparison, comparison
from research.families import family_of
from research.readers.aliases import accelerator_named, model_named, shape_of, usual_server
from research.rows import Row, Skip, count_of

_RUN = Source(title="A measured run")
_MEASURED = "step_latency_total"
_MOST_PER_NODE = 100_000


def _node(row: Row) -> Node:
    """Return the usual server of a run's device, or the one that the columns describe."""
    columns = ("gpus_per_node", "intra_GBps_per_gpu_dir", "inter_GBps_per_gpu_dir")
    device = accelerator_named(row.text("hardware"))
    usual = usual_server(device)
    if usual is not None:
        return usual
    if not all(map(row.text, columns)):
        raise Skip(
            f"no server of {device.name} is in the registry: give gpus_per_node, "
            "intra_GBps_per_gpu_dir and inter_GBps_per_gpu_dir"
        )
    return Node(
        name="of a measured run",
        source=_RUN,
        accelerator=device,
        accelerators_per_node=row.whole("gpus_per_node", maximum=_MOST_PER_NODE),
        scale_up=Systems.NVLink3,
        nics_per_node=row.whole("gpus_per_node", maximum=_MOST_PER_NODE),
    )


def _model(row: Row) -> TransformerModel:
    if row.number("layers") is None:
        model = model_named(row)
        return replace(model, mtp_layers=row.whole("mtp_layers", model.mtp_layers, minimum=0))
    gated = bool(row.number("gated") or 0)
    return shape_of(
        row,
        row.whole("seq_len"),
        ffn=4 * row.whole("hidden"),
        vocab=51_200,
        gated_mlp=gated,
        tied_embeddings=not gated,
    )


def _link(name: str, speed: float | None, usual: NetworkFabric) -> NetworkFabric:
    return usual if speed is None else replace(usual, name=name, bandwidth=Q_(speed, "GB/s"))


def _fleet(row: Row, accelerator: Accelerator | None) -> Fleet:
    usual = _node(row)
    devices = row.whole("n_gpus")
    per_node = row.whole(
        "gpus_per_node", default=usual.accelerators_per_node, maximum=_MOST_PER_NODE
    )
    # A rack of 72 runs jobs in powers of two: the largest number of its devices that divides the
    # job.
    per_node = max(n for n in range(1, min(per_node, devices) + 1) if devices % n == 0)
    inter = row.number("inter_GBps_per_gpu_dir")
    nics = usual.nics_per_node * per_node // usual.accelerators_per_node or 1
    node = replace(
        usual,
        accelerator=accelerator or usual.accelerator,
        accelerators_per_node=per_node,
        nics_per_node=nics if inter is None else per_node,
        scale_up=_link("within a node", row.number("intra_GBps_per_gpu_dir"), usual.scale_up),
    )
    fabric = _link("between nodes", inter, _FABRICS.get(usual.name, Systems.InfiniBand_NDR))
    return Fleet(name="measured", node=node, count=devices // per_node, fabric=fabric)


_FABRICS = {
    Systems.DGX_B300.name: Systems.InfiniBand_XDR,
    Systems.GB300_NVL72.name: Systems.InfiniBand_XDR,
    "DGX A100": Systems.InfiniBand_HDR,
    "Grand Teton": Systems.RoCE_400G,
    # The data center network between slices: one 100 Gbit/s port per chip, or for every second one.
    "TPU v5p pod": Systems.Ethernet_100G,
    "TPU v6e pod": Systems.Ethernet_100G,
    "TPU7x pod": Systems.Ethernet_100G,
}


def precision_of(text: str) -> str:
    """Return the number format of a measurement's label; bf16 without one.

    Raises
    ------
    Skip
        If the label does not name a format for training.
    """
    label = text.lower()
    for name in ("fp4", "fp8", "bf16", "fp16", "tf32", "fp32"):
        if name in label:
            return name
    if label:
        raise Skip(f"precision = {shown(text)} is not a number format that a step is predicted in")
    return "bf16"


_LAYOUT = ("tp", "pp", "cp", "zero_stage", "micro_batch")
# In these tables, a blank means that the source does not state the format of the products.
_SILENT_ON_PRECISION = ("mlperf", "gcp_gpu")


def _refuse_what_no_lever_describes(row: Row) -> None:
    model = row.text("model")
    if model.startswith("Flux"):
        raise Skip("an image model: the solver models only text transformers")
    if "tokendrop" in model:
        raise Skip(
            "drops tokens beyond an expert's capacity, but the solver's experts process all tokens"
        )
    silent = all(name in row.cells and not row.text(name) for name in _LAYOUT)
    if silent and row.whole("n_gpus") > 1:
        raise Skip(
            f"the layout is not stated: {', '.join(_LAYOUT)} are all empty; write 1, and 0 for "
            "zero_stage, if nothing was split"
        )
    if not row.text("precision") and row.group.startswith(_SILENT_ON_PRECISION):
        raise Skip("precision is not stated, and such runs use 4, 8 or 16 bits")


def shards_of(row: Row) -> int | None:
    """Return the devices that share one copy of the states (HSDP); None if all replicas do.

    Raises
    ------
    Skip
        If that number does not divide the replicas.
    """
    shards = row.number("shards")
    split = row.whole("tp", default=1) * row.whole("pp", default=1)
    replicas = row.whole("n_gpus") // (split * row.whole("cp", default=1))
    if shards is None or shards >= replicas:
        return None
    if replicas % shards:
        raise Skip(f"shards = {shards:g} do not divide the {replicas} replicas")
    return row.whole("shards")


# The first prefix of a run's group that fits decides.
_GROUPS: tuple[tuple[str, Software | None], ...] = (
    ("megatron21_table2_zero3", None),  # DeepSpeed of 2021, of which there are no other runs
    ("megatron21", Frameworks.Megatron_2021),
    ("korthikanti", Frameworks.Megatron_2021),
    ("vtrain", Frameworks.Megatron_2021),
    ("mosaic", Frameworks.FSDP_2023),
    ("mcore", Frameworks.Megatron_Core),
    ("nemo", Frameworks.Megatron_Core),  # Nemotron-4 as well
    ("mlperf", Frameworks.Megatron_Core),
    ("gcp_gpu", Frameworks.Megatron_Core),
    ("megatron_bridge", Frameworks.Megatron_Core),
    ("torchtitan", Frameworks.FSDP2),
    ("fms_fsdp", Frameworks.FSDP2),
    ("automodel", Frameworks.AutoModel),
    ("tpu", Frameworks.MaxText),
)
_RECIPES: Mapping[str, Software | None] = {"MaxText": Frameworks.MaxText, "PyTorch/XLA": None}


def software_of(row: Row) -> Software | None:
    """Return the framework of a measured step, or `None` if no similar release has constants.

    The recipe determines it if it names one, otherwise the device, otherwise the family of runs.
    """
    recipe = row.text("recipe")
    if recipe in _RECIPES:
        return _RECIPES[recipe]
    if row.text("hardware").startswith("TPU"):
        return Frameworks.MaxText
    found = next((own for prefix, own in _GROUPS if row.group.startswith(prefix)), None)
    if found is not Frameworks.FSDP2 or "torch.compile" not in recipe:
        return found
    rowwise = "rowwise" in row.text("note") and "fp8" in row.text("precision")
    return Frameworks.FSDP2_Rowwise if rowwise else Frameworks.FSDP2_Compiled


def arguments(row: Row, calibration: Calibration | None = None) -> dict[str, Any]:
    """Return the solver's arguments for a measured run.

    Parameters
    ----------
    row
        The run.
    calibration
        Constants to use instead of those chosen by its group and its device. Effects that the run's
        recipe switches off are off with them too.

    Raises
    ------
    Skip
        If the row lacks required data.
    """
    _refuse_what_no_lever_describes(row)
    tp, pp = row.whole("tp", default=1), row.whole("pp", default=1)
    cp, devices = row.whole("cp", default=1), row.whole("n_gpus")
    if devices % (tp * pp * cp):
        raise Skip(f"tp x pp x cp = {tp * pp * cp} does not divide {devices} devices")
    dp = devices // (tp * pp * cp)
    batch, micro = row.whole("global_batch"), row.number("micro_batch")
    # If no microbatch is given, one sequence, which gives the smallest possible bubble.
    count = max(1, round(batch / (dp * (micro or 1))))
    # An interleaved schedule has at least two chunks.
    least = 2 if "Interleaved" in row.text("note") else 1
    virtual = row.whole("virtual_stages", default=least) if pp > 1 else 1
    if count % pp:
        virtual = 1
    expert = re.search(r"EP ([0-9]+)", row.text("note"))
    model, fleet = _model(row), _fleet(row, None)
    spread = count_of(expert[1]) if expert else _spread(row, model, devices // (tp * pp))
    fused = bool(row.number("flash_attention") or 0)
    return {
        "calibration": _calibration(_recipe(row, model), calibration),
        "model": model,
        "fleet": fleet,
        "batch_size": batch,
        "seq_len": row.whole("seq_len"),
        "precision": precision_of(row.text("precision")),
        "tp_size": tp,
        "pp_size": pp,
        "cp_size": cp,
        "ep_size": spread,
        "expert_nodes": _nodes(row, model, fleet, spread),
        "zero_stage": row.whole("zero_stage", default=0, minimum=0),
        "shard_size": shards_of(row) if (row.number("zero_stage") or 0) >= 1 else None,
        "microbatch_count": count,
        "virtual_stages": virtual,
        "sequence_parallel": bool(row.number("sequence_parallel") or 0),
        "recompute": _recompute(row),
        "attention": "fused" if fused else "unfused",
        "lora_rank": _RANK if "LoRA" in row.text("model") or "lora" in row.group else None,
    }


def _recompute(row: Row) -> str:
    """Return what a run recomputes.

    In torchtitan, selective means per operator: a layer keeps attention's output and about half of
    the products' outputs, and recomputes everything between them.
    """
    stated = row.word("recompute", RECOMPUTE, "none")
    by_operator = stated == "selective" and row.group.startswith("torchtitan")
    return "selective+norms+swiglu" if by_operator else stated


_RANK = 16
"""Rank of the adapters of MLPerf's fine-tuning. Other tables do not state it; it hardly counts."""
_WIDEST = 64
"""The most devices over which any row states that its experts are spread."""


def _nodes(row: Row, model: TransformerModel, fleet: Fleet, spread: int) -> int | None:
    """Return the nodes that a token may visit; `None` takes the groups of the model's router.

    A balanced gate distributes tokens without a router, and so without its groups.
    """
    blocks = [group.experts for group in model.groups if group.experts is not None]
    grouped = any(block.groups > 1 for block in blocks)
    if not grouped or "balanced gate" not in row.text("note"):
        return None
    return spread // math.gcd(spread, fleet.node.accelerators_per_node)


def _spread(row: Row, model: TransformerModel, devices: int) -> int:
    """Return the devices over which experts are distributed if a row does not state it.

    One, except where it names a library that exchanges tokens (DeepEP): then as many as there are.
    """
    if "DeepEP" not in row.text("note"):
        return 1
    experts = model.experts or 1
    return max(n for n in range(1, min(_WIDEST, devices) + 1) if devices % n == experts % n == 0)


_Switches: TypeAlias = tuple[str, str, str]
_USUAL: Mapping[str, tuple[_Switches, _Switches]] = {
    "hopper": (("", "", "1"), ("", "node", "")),
    "blackwell": (("", "node", ""), ("step", "node", "1")),
}
"""What most of Megatron-Bridge's recipes for experts switch on (graphs, dispatch, overlap of
exchanges), by generation of the device: up to release 0.4, and in 0.5. Each is the most frequent
value among the recipes that our table names; a test counts them."""
_WITH_STATES: _Switches = ("attention", "node", "")
"""What its recipes for models with states switch on, in releases 0.4 and 0.5: scripts/performance/
configs/nemotronh/nemotron_3_workload_base_configs.py."""


def _recipe(row: Row, model: TransformerModel) -> Row:
    """Return a run with the switches of its framework's usual recipe if it names none.

    Only the table of release 0.5 does not state whether Megatron's FSDP was used.
    """
    if model.moe_layers == 0 or row.text("recipe") or not row.group.startswith("megatron_bridge"):
        return row
    generation = accelerator_named(row.text("hardware")).generation
    if generation is None or generation not in _USUAL:
        return row
    latest = re.search(r"FSDP\s*;", row.text("note")) is not None
    states = any(a.has_state for _, a in model.attentions)
    usual = _WITH_STATES if states else _USUAL[generation][latest]
    switches = zip(("graphs", "dispatch", "exchange_overlap"), usual, strict=True)
    return replace(row, cells={**row.cells, **dict(switches)})


def _calibration(row: Row, given: Calibration | None) -> Calibration:
    """Return the constants given, or those of a run's device and the software of its labels.

    The latter have the family band only for runs of a group to which they were fitted.
    """
    known = given
    if known is None:
        device, software = accelerator_named(row.text("hardware")), software_of(row)
        known = calibration_for(device)
        if software is not None:
            known = calibration_of(machine_for(device.generation, device.name), software)
        if known.basis == "family" and family_of(row.group) is None:
            known = replace(known, basis="unseen")
    changes = _switched(row, known.software)
    return replace(known, software=replace(known.software, **changes)) if changes else known


def _switched(row: Row, software: Software) -> dict[str, Any]:
    """Return the constants that a run's recipe switches on or off."""
    changes: dict[str, Any] = {}
    if "vanilla TP" in row.text("recipe"):
        changes["tensor_overlap"] = 0.0
    if software.release != Frameworks.Megatron_Core.release:
        return changes
    # A recipe may launch a layer's dense part, or the whole step, as one graph.
    dense, whole = row.text("graphs") != "", row.text("graphs") == "step"
    overlaps, by_node = bool(row.number("exchange_overlap")), row.text("dispatch") == "node"
    none = Q_(0, "ms")
    if dense:
        changes["layer_launch"] = none
    if whole:
        changes["expert_launch"] = none
    if overlaps != bool(software.exchange_overlap):
        on = Frameworks.Megatron_Core_Graphs.exchange_overlap
        changes["exchange_overlap"] = on if overlaps else 0.0
    if by_node != bool(software.copies_per_node):
        changes["copies_per_node"] = float(by_node)
    return changes


def measured(row: Row) -> float:
    """Return the measured step time in seconds.

    Raises
    ------
    Skip
        If the row has none.
    """
    return row.measured("step_time_s")


def compare(row: Row, calibration: Calibration | None = None) -> Comparison:
    """Predict a measured step, optionally with other constants than the run's labels choose.

    Raises
    ------
    Skip
        If the row lacks required data.
    """
    value = measured(row)
    result = DistributedSolver.solve(**arguments(row, calibration))
    return comparison(row, result, _MEASURED, "s", value, quantity="step time (s)")


def tidy(row: Row) -> dict[str, Any]:
    """Return a run as `mlsysim.validate` and `mlsysim.calibrate` take it.

    Raises
    ------
    Skip
        If the row lacks required data.
    """
    labels = {name: row.text(name) for name in LABELS}
    return labels | arguments(row) | {_MEASURED: Q_(measured(row), "s")}
