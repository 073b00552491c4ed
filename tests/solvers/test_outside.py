"""A result says where its plan lies outside everything that was measured."""

import inspect
from dataclasses import replace

import pytest

from mlsysim import DistributedSolver, Hardware, MLSysError, Models, ServingSolver, Systems
from mlsysim.core.types import Covered, Fleet, Node
from mlsysim.registry.calibration.training import (
    MEASURED,
    MEASURED_CHOICES,
    MEASURED_FORMATS,
    Calibrations,
)
from mlsysim.solvers.serving.solver import MEASURED as MEASURED_SERVICES
from research import MEASUREMENTS
from research.readers import serving, serving_runs, training
from research.rows import Skip, read_rows, usable

DEFAULTS = {
    name: item.default
    for name, item in inspect.signature(DistributedSolver.solve).parameters.items()
}
RUNS = MEASUREMENTS / "training.csv"


def solve(device=Hardware.H100, **plan):
    usual = Systems.DGX_H100
    node = Node(
        name="node",
        source=usual.source,
        accelerator=device,
        accelerators_per_node=8,
        scale_up=usual.scale_up,
        nics_per_node=8,
    )
    fleet = Fleet(name="fleet", node=node, count=8, fabric=Systems.InfiniBand_NDR)
    plan = {"precision": "bf16", "batch_size": 64, "zero_stage": 3, "seq_len": 8192} | plan
    model = replace(Models.Llama3_8B, context=2**21)
    return DistributedSolver.solve(model=model, fleet=fleet, **plan)


def test_a_plan_like_the_measured_ones_lies_inside():
    assert solve().outside == ()


@pytest.mark.parametrize(
    ("plan", "word"),
    [
        ({"seq_len": 2_097_152, "batch_size": 8}, "seq_len"),
        ({"seq_len": 256}, "seq_len"),
        ({"cp_size": 64, "seq_len": 131_072}, "cp_size"),
        ({"precision": "tf32"}, "tf32"),
        ({"optimizer": "muon"}, "muon"),
        ({"cp_kind": "ulysses", "cp_size": 2}, "ulysses"),
        ({"device": Hardware.V100, "precision": "fp16"}, "V100"),
    ],
)
def test_a_plan_outside_names_what_nobody_measured(plan, word):
    (sentence,) = solve(**plan).outside
    assert word in sentence


def test_the_edges_are_those_of_the_measured_runs():
    seen = {name: set() for name in MEASURED}
    chosen = {name: set() for name in MEASURED_CHOICES}
    formats = set()
    for row in read_rows(RUNS):
        try:
            training.measured(row)
            inputs = DistributedSolver.admit(DEFAULTS | training.arguments(row))
        except (Skip, MLSysError):
            continue
        formats.add(inputs.precision.name)
        for name, values in chosen.items():
            values.add(getattr(inputs, name).name)
        for name, values in seen.items():
            values.add(getattr(inputs, name))
    assert {name: (min(values), max(values)) for name, values in seen.items()} == dict(MEASURED)
    assert formats == set(MEASURED_FORMATS)
    assert {name: tuple(values) for name, values in chosen.items()} == dict(MEASURED_CHOICES)


def serve(**load):
    load = {"tp_size": 8, "seq_len": 1024, "output_len": 128, "precision": "bf16"} | load
    return ServingSolver.solve(model=Models.Llama3_8B, hardware=Systems.DGX_H100, **load)


def test_a_load_like_the_measured_ones_lies_inside():
    assert serve().outside == serve(efficiency=0.5, output_len=10_000).outside == ()


@pytest.mark.parametrize(
    "load", [{"pp_size": 2, "tp_size": 4}, {"output_len": 10_000}, {"adapters": 8, "lora_rank": 8}]
)
def test_a_load_outside_names_the_argument(load):
    (sentence,) = serve(**load).outside
    assert next(iter(load)) in sentence


def test_the_edges_of_services_are_those_of_the_measured_runs():
    seen = {name: {ServingSolver.defaults[name]} for name in MEASURED_SERVICES}
    for table, reader in (("serving", serving), ("serving_2", serving_runs)):
        for _, given in usable(read_rows(MEASUREMENTS / f"{table}.csv"), reader.arguments):
            for name, values in seen.items():
                values |= {given[key] for key in (name, f"prefill_{name}") if key in given}
    edges = {name: (min(values), max(values)) for name, values in seen.items()}
    assert edges == dict(MEASURED_SERVICES)


def test_hand_made_constants_of_one_device_hold_where_their_runs_are_stated():
    base = Calibrations.H100_Megatron
    sizes = {"seq_len": (4096, 8192), "devices": (8, 64)}
    ranges = {
        f"{name}_{edge}": value
        for name in Covered.sizes()
        for edge, value in zip(("least", "most"), sizes.get(name, (1, 1)), strict=True)
    }
    covered = Covered(
        **ranges,
        precision=("bf16",),
        networks=("dense",),
        attention=("fused",),
        schedule=("1f1b",),
        optimizer=("adamw",),
        cp_kind=("ring",),
    )
    for device in ("", Hardware.H100.name):
        stated = replace(base, device=device, covered=covered)
        assert (solve(calibration=stated).band, solve(calibration=stated).outside) == ("family", ())
        longer = solve(calibration=stated, seq_len=16_384)
        assert longer.band == "unseen"
        (sentence,) = longer.outside
        assert "8,192" in sentence
    silent = solve(calibration=replace(base, device=Hardware.H100.name))
    assert silent.band == "unseen"
    assert len(silent.outside) == 1


def test_constants_of_another_device_are_named_and_have_the_wide_band():
    own, other = (
        solve(calibration=c) for c in (Calibrations.H100_Megatron, Calibrations.B200_Megatron)
    )
    assert (own.band, own.outside) == ("family", ())
    assert other.band == "unseen"
    (sentence,) = other.outside
    assert "B200" in sentence
    assert "H100" in sentence
