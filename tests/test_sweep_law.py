"""Every row of a sweep equals what `solve` returns for its arguments, errors included."""

from __future__ import annotations

import inspect
import math
import random
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlsysim import (
    Q_,
    ConfigError,
    DisaggregatedSolver,
    DistributedSolver,
    Hardware,
    Models,
    SingleNodeSolver,
    Systems,
    sweep,
)
from mlsysim.core.fields import Record
from mlsysim.core.forms import contents
from mlsysim.core.inputs import Varying
from mlsysim.core.numeric import ceil, exp, expm1, floor, gcd, sqrt
from mlsysim.solvers.arguments import Choice
from mlsysim.solvers.base import Solver
from mlsysim.sweeps import grid
from tools import sweep_law
from tools.bench import law
from tools.sweep_questions import ONE, SOLVERS, Question, candidates, question

NODES = Systems.Nodes
STEP = {
    "model": Models.Llama3_70B,
    "fleet": Systems.Clusters.Research_256,
    "batch_size": 256,
    "seq_len": 8192,
    "precision": "bf16",
    "tp_size": 8,
}


@given(data=st.data())
@settings(max_examples=400, suppress_health_check=list(HealthCheck))
def test_rows_are_what_solve_answers(data):
    """A longer run of the same test is `python -m tools.bench --law 10_000_000`."""

    def choose(options):
        return options[data.draw(st.integers(0, len(options) - 1))]

    sweep_law.check(question(choose), sweep_law.Tally())


def test_every_argument_is_an_axis_at_times():
    """Otherwise the law would hold for them in any case."""
    asked = [question(random.Random(seed).choice) for seed in range(2000)]
    for solver in SOLVERS:
        axes = {name for item in asked if item.solver is solver for name in item.axes}
        assert axes == set(solver.parameters)
    assert {(item.how, item.invalid) for item in asked} == {
        (how, invalid) for how in ("product", "zip") for invalid in ("raise", "mark", "drop")
    }


EXPERTS = {"model": Models.DeepSeek_V3, "precision": "fp8", "tp_size": 1, "attention_dp": 8}
RANKS = EXPERTS | {"prefill_attention_dp": 8, "ep_size": 8}
TRAINED = {"model": Models.Mixtral_8x7B, "tp_size": 1}
NEEDED = {
    "recompute_layers": {"recompute": "full"},
    "virtual_stages": {"pp_size": 4},
    "first_stage_layers": {"pp_size": 4},
    "last_stage_layers": {"pp_size": 4},
    "ulysses_size": {"cp_size": 4},
    "capacity_factor": TRAINED,
    "expert_nodes": TRAINED | {"ep_size": 8},
    "exchange_overlap": TRAINED | {"ep_size": 8},
    "shard_size": {"zero_stage": 3},
    "reshard_after_forward": {"zero_stage": 3},
    "network_calibration": {
        "model": Models.ResNet50,
        "hardware": Hardware.Tiny.ESP32_S3,
        "precision": "int8",
    },
    "acceptance_length": {"draft_tokens": 3},
    "draft_tokens": {"acceptance_length": 1},
    "adapters": {"lora_rank": 8},
    "resident_adapters": {"lora_rank": 8, "adapters": 10**9},
    "turns": {"turn_tokens": 50, "think_time": Q_(30, "s")},
    "turn_tokens": {"turns": 3, "think_time": Q_(30, "s")},
    "think_time": {"turns": 3, "turn_tokens": 50},
    "host_memory": {"turns": 3, "turn_tokens": 50, "think_time": Q_(30, "s")},
    "host_link": {"loaded_share": 0.5},
    "images": {"model": Models.Gemma3_27B},
    "training_tokens": {"token_throughput": 1000},
    "expert_imbalance": RANKS,
    "dispatch_precision": RANKS,
    "overlap_batches": RANKS,
    "redundant_experts": RANKS | {"ep_size": 1},
    "ep_size": EXPERTS,
    "prefill_ep_size": RANKS,
    "dcp_size": {"tp_size": 8, "model": Models.DeepSeek_V3, "precision": "fp8"},
}
"""Other arguments without which two values of an argument would not both be accepted."""


def arguments_for(solver, name):
    needed = NEEDED.get(name, {})
    if name == "ep_size" and solver is DistributedSolver:
        needed = TRAINED
    if name == "weight_precision" and solver is DistributedSolver:
        needed = {"lora_rank": 8}
    return ONE[solver] | {key: value for key, value in needed.items() if key in solver.parameters}


@pytest.mark.parametrize(
    ("solver", "name"),
    [(solver, name) for solver in SOLVERS for name in solver.parameters],
    ids=lambda item: getattr(item, "__name__", item),
)
def test_two_values_of_every_argument_are_what_solve_answers(solver, name):
    kind, given = solver.parameters[name], arguments_for(solver, name)
    accepted = []
    for value in candidates(name, kind):
        try:
            solver.solve(**given | {name: value})
        except ConfigError:
            continue
        accepted.append(value)
        if len(accepted) == 2 and not isinstance(kind, Choice):
            break
    assert len(accepted) >= 2
    values = [*accepted, None] if kind.optional else accepted
    for how in ("product", "zip"):
        asked = Question(solver, given | {name: values}, how, "mark", 2**14)
        sweep_law.check(asked, sweep_law.Tally())


@pytest.mark.parametrize("invalid", ["raise", "mark", "drop"])
def test_a_value_that_is_always_wrong_is_one_of_its_axis(invalid):
    given = {"model": Models.Llama3_8B, "hardware": NODES.DGX_H100, "invalid": invalid}
    with pytest.raises(ConfigError, match="one of 3 values of this axis") as caught:
        sweep(DisaggregatedSolver, output_len=[1, 2, 16], **given)
    assert caught.value.argument == "output_len"


def test_a_broken_law_ends_the_long_run(monkeypatch, capsys):
    assert law(500, seed=1) == 0

    def marking(solver, **arguments):
        return sweep(solver, **arguments | {"invalid": "mark"})

    monkeypatch.setattr(sweep_law, "sweep", marking)
    assert law(5000, seed=1) == 1
    assert "sweep(" in capsys.readouterr().out


def test_pairs_are_admitted_one_by_one(monkeypatch):
    admitted = []
    admit = SingleNodeSolver.admit.__func__
    monkeypatch.setattr(
        SingleNodeSolver,
        "admit",
        classmethod(lambda cls, given: (admitted.append(1), admit(cls, given))[1]),
    )
    devices = [*Hardware.Cloud] * 100
    models = [*Models.Megatron] * 100
    count = min(len(devices), len(models), 400)
    table = sweep(
        SingleNodeSolver,
        how="zip",
        model=models[:count],
        hardware=devices[:count],
        invalid="mark",
    )
    assert len(table) == count == 400
    assert len(admitted) <= 400


def test_none_is_a_value_of_an_axis():
    table = sweep(
        DistributedSolver,
        efficiency=[None, 0.5],
        gradient_overlap=[None, 1],
        **STEP,
        invalid="mark",
    )
    assert table["valid"].tolist() == [True, True, True, False]
    textbook = DistributedSolver.solve(efficiency=0.5, **STEP)
    row = table.row(1)
    assert row["step_latency_total"] == textbook.step_latency_total
    assert row["mbu"] is None is textbook.mbu
    assert table.row(0)["efficiency"] is None


def test_rows_have_the_types_of_results():
    row = sweep(
        DistributedSolver,
        batch_size=[256, 512],
        **{name: value for name, value in STEP.items() if name != "batch_size"},
    ).row(0)
    assert type(row["dp_size"]) is int
    assert type(row["batch_size"]) is int
    assert type(row["feasible"]) is bool
    assert type(row["mfu"]) is float
    marked = sweep(
        SingleNodeSolver,
        model=Models.ResNet50,
        hardware=[Hardware.H100, Hardware.TPUv5p],
        invalid="mark",
    )
    assert marked["bottleneck"].tolist() == ["overhead", None]
    assert marked.row(1)["latency"] is None


def numbers_of(form):
    for _, value in contents(form):
        yield from numbers_of(value) if isinstance(value, Record) else [value]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.__name__)
def test_models_take_floats(solver: type[Solver]):
    """Integers of Python are exact and those of NumPy wrap around, so models take neither."""
    seen = 0
    for seed in range(100):
        asked = question(random.Random(seed).choice)
        if asked.solver is not solver:
            continue
        known = inspect.signature(solver.solve).parameters
        defaults = {name: item.default for name, item in known.items()}
        try:
            inputs = solver.admit(defaults | next(asked.rows()))
        except ConfigError:
            continue
        seen += 1
        kinds = {type(value) for value in numbers_of(inputs.plain())}
        assert float in kinds
        assert int not in kinds
    assert seen


def test_nothing_is_chosen_by_the_values_of_an_axis():
    varying = Varying("batch_size")
    for use in (bool, int, float, lambda v: v > 1, lambda v: v == 1, lambda v: v in (1, 2)):
        with pytest.raises(TypeError, match=r"batch_size.*Stage"):
            use(varying)


def test_functions_mean_the_same_on_arrays_to_the_last_bit():
    values = np.random.default_rng(0).uniform(0, 3, 2000)
    for function in (exp, expm1, sqrt, ceil, floor):
        assert function(values).tolist() == [function(value) for value in values.tolist()]
    assert math.isinf(ceil(math.inf))
    large = np.array([3 * 2.0**70, 8, 9])
    assert gcd(large, np.array([2.0**68, 12, 6])).tolist() == [2.0**68, 4, 3]


CUBE = dict.fromkeys(("batch_size", "microbatch_count", "seq_len"), range(1, 701))


def test_what_is_too_large_for_the_memory_is_refused_first(monkeypatch):
    monkeypatch.setattr(grid, "free_memory", lambda: 16e9)
    with pytest.raises(ConfigError) as caught:
        sweep(DistributedSolver, **{n: v for n, v in STEP.items() if n not in CUBE}, **CUBE)
    assert caught.value.argument in CUBE
    rows, free, parts = (
        int(re.search(pattern, str(caught.value))[1].replace(",", ""))
        for pattern in (r"has ([0-9,]+) rows", r"enough for ([0-9,]+)", r"into ([0-9,]+)")
    )
    assert rows == 700**3
    # Eight bytes for each of three axes and of at least thirty fields.
    assert free < 16e9 / 8 / 33
    assert math.ceil(700 / parts) * 700**2 <= free


def test_a_limit_that_lets_a_sweep_through(monkeypatch):
    lengths = {"batch_size": 1000, "tp_size": 4}
    monkeypatch.setattr(grid, "free_memory", lambda: 4e8)
    grid.check_room(lengths, 4000, 1e5)
    with pytest.raises(ConfigError) as caught:
        grid.check_room(lengths, 4001, 1e5)
    assert caught.value.argument == "batch_size"


def test_a_container_has_less_memory_than_its_machine(monkeypatch, tmp_path):
    machine = grid.free_memory()
    assert machine > 0
    limit = tmp_path / "memory.max"
    for text, expected in (("1000000\n", 1e6), ("max\n", machine)):
        limit.write_text(text)
        monkeypatch.setattr(grid, "_CONTAINER", (str(limit), str(tmp_path / "none")))
        assert grid.free_memory() == pytest.approx(expected, rel=0.5)


def test_memory_that_runs_out_on_the_way_is_one_sentence(monkeypatch):
    def exhausted(*_):
        raise MemoryError

    monkeypatch.setattr("mlsysim.sweeps.tables.columns_of", exhausted)
    with pytest.raises(ConfigError, match="2 rows"):
        sweep(DistributedSolver, zero_stage=[0, 1], **STEP)
