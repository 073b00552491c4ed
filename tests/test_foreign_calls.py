"""Calls with values of another type, or of enormous length: refused by name, in a short message."""

import numpy as np
import pytest

import mlsysim
from mlsysim import (
    Q_,
    ConfigError,
    DistributedSolver,
    EconomicsSolver,
    Hardware,
    MLSysError,
    Models,
    Scenarios,
    SimulationConfig,
    SingleNodeSolver,
    Systems,
    UnknownEntryError,
    diagnose,
    simulate_pipeline,
    sweep,
)
from mlsysim.scenario import Limit
from mlsysim.solvers.base import Solver
from mlsysim.validation import validate
from mlsysim.viz import plot_roofline, plot_timeline

LONG = "x" * 5000
RAGGED = [[1], [1, 2]]
JOB = {"model": Models.ResNet50, "hardware": Hardware.H100}
TABLE = sweep(SingleNodeSolver, **JOB | {"batch_size": list(range(1, 6))})
ROWS = Hardware.table("memory.capacity")
RESULT = SingleNodeSolver.solve(**JOB)
TIMELINE = simulate_pipeline(pp_size=2, microbatch_count=2)
COSTS = EconomicsSolver.solve(fleet=Systems.Clusters.Research_256, duration_days=1)
MEASURED = {"id": "a", "batch_size": 4}

CALLS = {
    "how": lambda: sweep(SingleNodeSolver, **JOB, how=np.array(["a", "b"])),
    "how, long": lambda: sweep(SingleNodeSolver, **JOB, how=LONG),
    "invalid": lambda: sweep(SingleNodeSolver, **JOB, invalid=np.array(["a", "b"])),
    "invalid, long": lambda: sweep(SingleNodeSolver, **JOB, invalid=LONG),
    "progress": lambda: sweep(SingleNodeSolver, **JOB, progress=LONG),
    "executor": lambda: sweep(SingleNodeSolver, **JOB, executor=LONG),
    "solver": lambda: sweep(Solver, model=1),
    "solver, long": lambda: sweep(LONG, model=1),
    "unknown argument": lambda: sweep(SingleNodeSolver, **JOB, **{LONG: 1}),
    "row": lambda: TABLE.row("a"),
    "row, half": lambda: TABLE.row(0.5),
    "row, none": lambda: TABLE.row(None),
    "row, huge": lambda: TABLE.row(10**5000),
    "row of a plain table": lambda: ROWS.row("a"),
    "result of a row": lambda: TABLE.result(0.5),
    "column": lambda: TABLE[["a"]],
    "columns": lambda: TABLE[:2],
    "entry": lambda: Hardware[["a"]],
    "field": lambda: RESULT[["a"]],
    "mask, ragged": lambda: TABLE.where(RAGGED),
    "mask, long": lambda: TABLE.where([[True] * 9] * 5000),
    "indices, ragged": lambda: TABLE.take(RAGGED),
    "indices, long": lambda: TABLE.take(["x"] * 5000),
    "indices of a plain table": lambda: ROWS.take(["x"]),
    "indices of a plain table, one": lambda: ROWS.take(5),
    "indices of a plain table, far": lambda: ROWS.take([10**5000]),
    "limit": lambda: Limit(metric="hfu", at_most=10**5000),
    "limits": lambda: Limit(metric="hfu", at_least=10**300, at_most=1),
    "no plan": lambda: diagnose({}),
    "another plan": lambda: diagnose(COSTS),
    "unknown plan": lambda: diagnose({LONG: 1}),
    "nameless plan": lambda: diagnose({1: 2}),
    "units": lambda: Hardware.table("memory.capacity", units={"memory.capacity": "s"}),
    "unknown units": lambda: Hardware.table("memory.capacity", units={"memory.capacity": "xyz"}),
    "units of a field that does not exist": lambda: Hardware.table(units={"nope": "s"}),
    "units of text": lambda: Hardware.table("name", units={"name": "s"}),
    "si": lambda: Hardware.H100.si("nope"),
    "si of a list": lambda: Hardware.H100.si(["nope"]),
    "tick": lambda: TIMELINE.gantt(tick="a"),
    "tick with a unit": lambda: TIMELINE.gantt(tick=Q_(1, "s")),
    "tick, huge": lambda: TIMELINE.gantt(tick=10**400),
    "roofline": lambda: plot_roofline(Hardware.H100, workloads=5),
    "roofline, long": lambda: plot_roofline(Hardware.H100, workloads=[LONG]),
    "roofline of text": lambda: plot_roofline(LONG, workloads=[]),
    "timeline": lambda: plot_timeline(LONG),
    "kind of a configuration": lambda: SimulationConfig.from_text("a: 1", kind=["yaml"]),
    "kind, long": lambda: SimulationConfig.from_text("a: 1", kind=LONG),
    "file name": lambda: SimulationConfig.from_file(LONG),
    "file name, yaml": lambda: SimulationConfig.from_file(f"{LONG}.yaml"),
    "task": lambda: SimulationConfig.from_text(f"task: {LONG}"),
    "count": lambda: SimulationConfig.from_text(
        f"system: {{node: DGX_H100, count: {LONG}, fabric: InfiniBand_NDR}}"
    ),
    "kind of measurements": lambda: validate([MEASURED], kind=LONG),
    "precision": lambda: DistributedSolver.solve(
        model=Models.Llama3_8B, fleet=Systems.Clusters.Research_256, batch_size=8, precision=LONG
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_odd_calls_are_refused_in_few_words(call):
    with pytest.raises(MLSysError) as caught:
        call()
    assert isinstance(caught.value, ConfigError)
    # Several faults of one configuration are lines of one message.
    assert max(map(len, str(caught.value).splitlines())) < 600
    assert "x" * 300 not in str(caught.value)


TIMED = {"model": "Llama3_8B", "fleet": "DGX_H100", "batch_size": 4, "step_latency_total (s)": 1}


@pytest.mark.parametrize("column", ["model", "fleet", "precision", "batch_size", "recompute"])
def test_reasons_do_not_repeat_long_cells(column):
    (_, reason), *_ = validate([TIMED | {column: LONG}], kind="training").skipped
    assert LONG[:300] not in reason


def test_what_is_refused_for_another_type_is_still_taken_as_its_own():
    assert TABLE.row(np.int64(-1)) == TABLE.row(4)
    assert ROWS.take(np.array([1, -1])).row(0) == ROWS.row(1)
    assert len(ROWS.take([])) == 0
    assert TIMELINE.gantt(tick=np.float64(1)) == TIMELINE.gantt(tick=1)
    with pytest.raises(UnknownEntryError):
        Hardware.H100.si("nope")
    assert mlsysim.evaluate(next(iter(Scenarios)))
