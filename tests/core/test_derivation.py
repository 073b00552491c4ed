"""Derivations: what is shown of how an answer was made.

The numbers in a derivation come from a second run of the model, on recorded numbers. They must be
the result's own. That nothing between input and answer is lost is a law of models.
"""

import ast
import dataclasses
import math
import os
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from mlsysim import (
    Q_,
    DistributedSolver,
    EconomicsSolver,
    Fleet,
    Hardware,
    Infra,
    Models,
    ReliabilitySolver,
    ServingSolver,
    SingleNodeSolver,
    SustainabilitySolver,
    Systems,
)
from mlsysim.core.bibliography import address
from mlsysim.core.derivation import Derivation, Step, expression
from mlsysim.core.errors import ConfigError, MLSysError, UnknownEntryError
from mlsysim.core.fields import units_of
from mlsysim.core.forms import recorded
from mlsysim.core.formula import FORMULAS
from mlsysim.core.formulas import hierarchical_all_reduce_time, roofline_time
from mlsysim.core.recording import watching
from tests.conftest import ROOT

TRAINING = {
    "model": Models.Llama3_70B,
    "fleet": Systems.Clusters.Research_256,
    "batch_size": 256,
    "microbatch_count": 16,
}
CALLS = {
    "three ways": (DistributedSolver, TRAINING | {"tp_size": 8, "pp_size": 4}),
    "interleaved": (
        DistributedSolver,
        TRAINING
        | {
            "tp_size": 4,
            "pp_size": 8,
            "virtual_stages": 2,
            "sequence_parallel": True,
            "recompute": "none",
            "efficiency": 0.4,
            "seq_len": 2048,
        },
    ),
    "one node": (
        DistributedSolver,
        TRAINING
        | {
            "fleet": Fleet(
                name="One",
                node=Systems.Nodes.DGX_A100,
                count=1,
                fabric=Systems.Fabrics.InfiniBand_HDR,
            ),
            "model": Models.BERT_Base,
            "pp_size": 2,
            "precision": "fp16",
        },
    ),
    "transformer": (SingleNodeSolver, {"model": Models.Llama3_8B, "hardware": Hardware.A100}),
    "network of fixed shape": (
        SingleNodeSolver,
        {"model": Models.ResNet50, "hardware": Hardware.A100, "batch_size": 8, "efficiency": 0.3},
    ),
    "embedding tables": (
        SingleNodeSolver,
        {"model": Models.DLRM, "hardware": Hardware.T4, "batch_size": 64},
    ),
    "footprint of a facility": (
        SustainabilitySolver,
        {
            "fleet": Systems.Clusters.Research_256,
            "duration_days": Q_(1, "year"),
            "datacenter": Infra.Hyperscale_US,
            "utilization": 0.6,
            "host_power": Q_(1, "kW"),
            "device_carbon": 150,
        },
    ),
    "cost": (
        EconomicsSolver,
        {
            "fleet": Systems.Clusters.Research_256,
            "duration_days": 365,
            "kwh_price": 0.08,
            "rental_price": 2.5,
            "token_throughput": 2e5,
            "training_tokens": 1e12,
        },
    ),
    "checkpoints of a model": (
        ReliabilitySolver,
        {
            "fleet": Systems.Clusters.Frontier_8K,
            "job_duration_hours": 720,
            "model": Models.Llama3_70B,
            "storage_bandwidth": Q_(100, "GB/s"),
        },
    ),
    "checkpoints as given": (
        ReliabilitySolver,
        {
            "fleet": Systems.Clusters.Frontier_8K,
            "job_duration_hours": 720,
            "checkpoint_time_s": 60,
            "checkpoint_interval": Q_(1, "h"),
            "device_mtbf": Q_(50_000, "h"),
            "model": Models.Llama3_70B,
        },
    ),
}
every_call = pytest.mark.parametrize("name", CALLS)
ROWS = {
    "conventions",
    "embodied",
    "interruptions",
    "ownership",
    "power_draw",
    "recovery",
    "textbook",
    "us_grid",
}
"""Rows of the registry that models read besides the arguments."""


@pytest.fixture(scope="module")
def answers():
    found = {}
    for name, (solver, arguments) in CALLS.items():
        result = solver.solve(**arguments)
        # With a depth, all fields are printed whole.
        found[name] = solver, arguments, result, result.explain(*result.explain().roots, depth=99)
    return found


def plain(value):
    return value.to_base_units().magnitude if hasattr(value, "magnitude") else value


@every_call
def test_every_numeric_field_is_derived(answers, name):
    _, _, result, derivation = answers[name]
    numeric = {field for field, _, _ in units_of(type(result)) if result[field] is not None}
    assert numeric == {field for field in derivation.roots if result[field] is not None}


@every_call
def test_the_derivations_numbers_are_the_results(answers, name):
    _, _, result, derivation = answers[name]
    for field, root in derivation.roots.items():
        if result[field] is None:
            assert math.isnan(plain(root.value))
            continue
        assert plain(root.value) == pytest.approx(plain(result[field]), rel=1e-12, abs=0), field


@every_call
def test_every_input_names_its_origin_and_source(answers, name):
    solver, arguments, _, derivation = answers[name]
    assert derivation.inputs
    given = {key for key, value in arguments.items() if value is not None}
    for item in derivation.inputs:
        root = item.origin.split(".")[0]
        assert root in {*solver.parameters, *ROWS}, item.name
        if "." in item.origin and root in {"model", "hardware", "conventions", "textbook"}:
            assert item.source, f"{item.origin} has no source"
        if root == "fleet" and item.origin != "fleet.count":
            assert item.source, f"{item.origin} has no source"
        if root in {"batch_size", "tp_size", "seq_len", "efficiency"}:
            assert not item.source, "what the caller gave needs no publication"
            assert root in given or item.value == 1


@every_call
def test_text_shows_every_step_and_input_once_numbered(answers, name):
    derivation = answers[name][3]
    text = str(derivation)
    for index, step in enumerate(derivation.steps, 1):
        lines = [line for line in text.splitlines() if line.strip().startswith(f"[{index}] ")]
        assert lines, step.name
        assert sum("(derived above)" not in line for line in lines) == 1
        assert step.summary in text
    for item in derivation.inputs:
        assert f"<- {item.origin}" in text
        assert str(item.source or "") in text
    assert "nan" not in text.lower().split()


@every_call
def test_markdown_shows_every_equation_and_source(answers, name):
    derivation = answers[name][3]
    page = derivation._repr_markdown_()
    for index, step in enumerate(derivation.steps, 1):
        assert f"**\\[{index}\\] `{step.name}` = " in page
        if step.formula is None:
            assert f"`{step.name} = {step.line}`" in page
            continue
        assert f"$$ {step.formula.documentation.equation} $$" in page
        assert f"*{step.formula.references}*" in page
        assert all(f"]({address(key)})" in page for key in step.formula.works)
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert len(rows) == len(derivation.inputs) + 1  # and the head
    for item in derivation.inputs:
        if item.source is not None and item.source.url:
            assert f"]({item.source.url})" in page, item.name
    assert all(line.count("|") == 5 for line in rows)
    assert page.count("$$") == 2 * sum(step.formula is not None for step in derivation.steps)


@every_call
def test_one_field_alone(answers, name):
    derivation = answers[name][3]
    for field, root in derivation.roots.items():
        part = derivation.only(field)
        assert list(part.roots) == [field]
        assert len(part.steps) <= len(derivation.steps)
        assert str(part).splitlines()[0].split(" = ")[0].endswith(field)
        if isinstance(root, Step):
            assert part.steps[0] is root


def test_an_estimate_is_marked_in_both_forms(answers):
    _, _, _, derivation = answers["embedding tables"]
    (efficiency,) = [item for item in derivation.inputs if item.name == "efficiency"]
    assert efficiency.estimated
    assert f"efficiency = ≈ 0.5   <- {efficiency.origin}" in str(derivation)
    assert f"| {efficiency.origin} | ≈ 0.5 |" in derivation._repr_markdown_()


def test_a_given_value_takes_the_place_of_the_estimate(answers):
    _, _, _, derivation = answers["interleaved"]
    (efficiency,) = [item for item in derivation.inputs if item.name == "efficiency"]
    assert (efficiency.origin, efficiency.estimated, efficiency.source) == (
        "efficiency",
        False,
        None,
    )
    assert efficiency.value == 0.4


def test_the_sources_are_those_of_the_rows(answers):
    _, _, _, derivation = answers["three ways"]
    found = {item.origin: item for item in derivation.inputs}
    node = Systems.Nodes.DGX_H100
    peak = found["fleet.node.accelerator.compute.fp16"]
    assert peak.source == node.accelerator.source_of("compute.fp16")
    assert found["fleet.node.scale_up.bandwidth"].source == node.scale_up.source_of("bandwidth")
    latency = found["fleet.fabric.latency"]
    assert latency.source == Systems.Fabrics.Ethernet_100G.source_of("latency"), (
        "a field's own source goes before the row's"
    )
    assert "model.parameters" in found


def test_an_unknown_field_lists_the_derived_ones(answers):
    with pytest.raises(UnknownEntryError, match=r"derived field 'latncy'.*latency"):
        answers["transformer"][3].only("latncy")


def test_what_is_not_known_stays_unknown():
    device = dataclasses.replace(Hardware.A100, tdp=None)
    result = SingleNodeSolver.solve(model=Models.ResNet50, hardware=device)
    assert result.energy is None
    assert str(result.explain("energy")).startswith("[1] energy = not known")


def test_arithmetic_is_written_out():
    assert expression(roofline_time) == "maximum(compute, memory)"
    assert expression(roofline_time, {"compute": "1 s", "memory": "2 s"}) == "maximum(1 s, 2 s)"
    # Local names are replaced by what they stand for.
    assert "reduce_scatter_time(message_size, local" in expression(hierarchical_all_reduce_time)
    assert "scatter +" not in expression(hierarchical_all_reduce_time)


def test_every_formula_can_be_written_out():
    for name, entry in FORMULAS.items():
        tree = ast.parse(expression(entry.function), mode="eval")
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert set(entry.signature.parameters) <= used, name


def test_depth_limits_what_is_shown():
    answer = DistributedSolver.solve(**TRAINING)
    whole = answer.explain("step_latency_total")
    one = answer.explain("step_latency_total", depth=1)
    assert [step.name for step in one.steps] == ["step_latency_total"]
    assert not one.inputs
    assert str(one).count("(not shown at this depth)") >= 3
    two = answer.explain("step_latency_total", depth=2)
    assert 1 < len(two.steps) < len(whole.steps)
    assert str(answer.explain("step_latency_total", depth=99)) == str(whole.to_depth(99))
    with pytest.raises(ConfigError, match="depth = 0"):
        answer.explain(depth=0)


def test_a_long_derivation_is_printed_down_to_a_depth_and_says_how_to_see_the_rest():
    r = ServingSolver.solve(model=Models.Llama3_8B, hardware=Hardware.H100)
    brief = r.explain("itl")
    lines = str(brief).splitlines()
    levels = int(re.search(r"depth=([0-9]+)", lines[-1])[1])
    whole = r.explain("itl", depth=levels)
    assert 10 < len(lines) < 45
    assert lines[-1] in brief._repr_markdown_()
    assert len(whole.steps) == len(brief.steps) == len(r.explain("itl", depth=99).steps)
    assert "not shown" not in str(whole)
    assert "not shown" in str(r.explain("itl", depth=levels - 1))
    last = str(r.explain("itl", "ttft")).splitlines()[-1]
    call = re.search(r"explain\(.*\)", last)[0]
    both = eval(call, {"explain": r.explain})  # the printed call, as a reader would run it
    assert list(both.roots) == ["itl", "ttft"]
    assert "not shown" not in str(both)
    assert str(Derivation({}).totals_first()) == ""
    short = ReliabilitySolver.solve(
        fleet=Systems.Clusters.Research_256, job_duration_hours=24, checkpoint_time_s=60
    ).explain("fleet_mtbf")
    assert str(short) == str(short.to_depth(99))


def test_unknown_numbers_are_printed():
    """The model is not stated, so the size of its checkpoint is not known."""
    job = ReliabilitySolver.solve(
        fleet=Systems.Clusters.Research_256, job_duration_hours=24, checkpoint_time_s=60
    )
    assert "checkpoint_size = not known" in str(job.explain(depth=9))


@every_call
def test_no_step_only_renames_another(answers, name):
    derivation = answers[name][3]
    for step in derivation.steps:
        alone = step.parents.get(step.line)
        assert alone is None or step in derivation.roots.values(), step.name
    # What was left out on the way is stated where the term is used.
    whole = answers[name][2].explain().unpruned()
    assert len(whole.steps) >= len(derivation.steps)


def test_a_renamed_step_can_be_found_by_both_names():
    derivation = ServingSolver.solve(model=Models.Llama3_8B, hardware=Hardware.H100).explain("itl")
    assert derivation["step.time"] is derivation["decode_latency"]
    assert "draft_tokens" in derivation["decode_latency"].omission


def test_all_fields_are_printed_as_totals_and_operators_on_request():
    r = DistributedSolver.solve(**TRAINING)
    whole = r.explain()
    lines = str(whole).splitlines()
    named = str(r.explain(*whole.roots, depth=99)).splitlines()
    assert len(lines) < len(named) / 4
    for name in whole.roots:
        assert any(f"] {name} = " in line or line.startswith(f"{name} = ") for line in lines), name
    assert lines[-1].startswith(f"{len(whole.steps)} steps in all")
    assert lines[-1] in whole._repr_markdown_()
    assert len(str(r.explain(depth=3)).splitlines()) > len(lines)


# Python without docstrings, and installations without sources


def test_without_docstrings_explain_says_how_to_run_python():
    code = """
from mlsysim import Hardware, MLSysError, Models, SingleNodeSolver
result = SingleNodeSolver.solve(model=Models.ResNet50, hardware=Hardware.A100)
print(f"{result.latency.to('us'):.2f}")
try:
    print(result.explain())
except MLSysError as fault:
    print(fault)
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-OO", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    number, words = done.stdout.splitlines()
    assert number == "432.59 us"
    assert "run Python without -OO" in words


def test_without_sources_the_arithmetic_says_what_to_install():
    made = {}
    exec("def doubled(x):\n    return 2 * x", made)
    with pytest.raises(MLSysError, match=r"doubled is not installed.*\.py files"):
        expression(made["doubled"])


def test_a_derivation_survives_a_journey(answers):
    derivation = answers["three ways"][2].explain()
    again = pickle.loads(pickle.dumps(derivation))
    assert str(again.to_depth(9)) == str(derivation.to_depth(9))
    assert str(again.only("mfu").unpruned()) == str(derivation.only("mfu").unpruned())


@pytest.mark.parametrize("depth", [True, 0, -1, 1.5, float("nan"), float("inf"), "2", [2]])
def test_other_depths_are_refused(answers, depth):
    with pytest.raises(ConfigError, match="depth"):
        answers["three ways"][2].explain("mfu", depth=depth)


@pytest.mark.parametrize(
    "written",
    ["3 * (a // b)", "3 * (a % b)", "a // b * 3", "a - (b - 3)", "a / (b / 3)", "a**(b * 2) + a"],
)
def test_a_line_of_arithmetic_has_its_parentheses(written):
    numbers = {name: recorded(value, name, "", name) for name, value in (("a", 7), ("b", 2))}
    line = Derivation({"answer": eval(written, {}, numbers)})["answer"].line
    assert line == written
    assert eval(line, {}, {"a": 7, "b": 2}) == eval(written, {}, {"a": 7, "b": 2})


def _named_in_comprehensions():
    base = recorded(2.0, "base", "", "base")
    values = [base * factor for factor in range(4)]
    answers = [[2 * part for part in values[:1]], {2 * item for item in values[1:2]}]
    answers.append({str(each): 2 * each for each in values[2:3]})
    answers.append(sum(2 * hidden for hidden in values[3:]))
    return [value.name for value in values]


def test_names_do_not_depend_on_how_a_version_runs_comprehensions():
    """In Python 3.11, all but generators have frames of their own, too."""
    with watching(__name__):
        names = _named_in_comprehensions()
    assert names[:3] == ["part", "item", "each"]
    assert not names[3]


def test_explaining_leaves_profilers_alone(answers):
    text = str(answers["three ways"][2].explain("mfu"))
    solver, arguments = CALLS["three ways"]
    seen = []

    def profile(frame, event, argument):
        seen.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        again = str(solver.solve(**arguments).explain("mfu"))
        after = sys.getprofile()
    finally:
        sys.setprofile(before)
    assert again == text
    assert after is profile
    # Derivations are put into words after the model has run.
    assert {"derive", "numbers_text"} <= set(seen)


def test_threads_explain_at_once(answers):
    solver, arguments = CALLS["three ways"]
    lengths = [1024, 2048, 4096, 8192]

    def explained(length):
        return str(solver.solve(**arguments | {"seq_len": length}).explain("mfu"))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(explained, lengths))
    assert found == [explained(length) for length in lengths]


def test_a_model_that_fails_leaves_no_profiler_behind(answers, monkeypatch):
    def fail(*_):
        raise RuntimeError("half way")

    solver, arguments = CALLS["three ways"]
    answer = solver.solve(**arguments)
    before = sys.getprofile()
    with monkeypatch.context() as patch:
        patch.setattr("mlsysim.solvers.training.operators.training_memory", fail)
        with pytest.raises(RuntimeError, match="half way"):
            answer.explain()
    assert sys.getprofile() is before
    assert str(answer.explain("mfu")) == str(answers["three ways"][2].explain("mfu"))
