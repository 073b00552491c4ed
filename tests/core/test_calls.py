"""Functions that take objects or arrays refuse anything else with an error of the package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mlsysim import (
    Q_,
    ConfigError,
    Hardware,
    Models,
    SingleNodeSolver,
    Traffic,
    capacity,
    plot_roofline,
    plot_timeline,
    required,
    sensitivity,
    simulate_pipeline,
    support,
    sweep,
)
from mlsysim.core.calls import checked_by_numpy, expects, methods_checked_by_numpy
from mlsysim.planner import front
from mlsysim.traffic import engine_for, simulate

JUNK = [5, 1.5, b"b", [], {}, object(), np.zeros((2, 3)), Q_(1, "s"), Hardware.H100]
PASS = SingleNodeSolver.solve(model=Models.ResNet50, hardware=Hardware.H100)
TABLE = sweep(SingleNodeSolver, model=Models.ResNet50, hardware=Hardware.H100, batch_size=[1, 2])
STEP = simulate_pipeline(pp_size=2, microbatch_count=2)
LOAD = Traffic(
    arrival_rate=Q_(1, "1/s"), seq_len=100, output_len=10, input_variation=0, output_variation=0
)
ENGINE = engine_for(model=Models.Llama3_8B, hardware=Hardware.H100)
SLO = {"ttft_p99": Q_(1, "s")}


@expects(folder=(str, Path), names=Sequence, count=int)
def listing(folder, names=(), *, count=None):
    """Return what was given."""
    return folder, names, count


@methods_checked_by_numpy
class Adder:
    def add(self, one, other):
        return one + other

    def each(self, function: object):
        return function()


def test_objects_of_the_stated_types_pass():
    assert listing("a") == ("a", (), None)
    assert listing(Path("a"), ["b"], count=3) == (Path("a"), ["b"], 3)
    assert listing.__doc__ == "Return what was given."


@pytest.mark.parametrize(
    ("given", "argument"),
    [((5,), "folder"), (("a", 5), "names"), ((None,), "folder")],
)
def test_other_objects_are_refused_with_their_argument(given, argument):
    with pytest.raises(ConfigError) as caught:
        listing(*given)
    assert caught.value.argument == argument
    assert caught.value.message.startswith(f"{argument} = ")
    with pytest.raises(TypeError):
        listing()


def test_shapes_that_do_not_fit_are_an_error_of_the_package():
    adder = Adder()
    assert adder.add(np.ones(2), 1).tolist() == [2, 2]
    with pytest.raises(ConfigError, match=r"shape \(2,\).*shape \(3,\)") as caught:
        adder.add(np.ones(2), np.ones(3))
    assert isinstance(caught.value.__cause__, ValueError)
    assert caught.value.argument == "one"
    with pytest.raises(ZeroDivisionError):  # of the caller's own function
        adder.each(lambda: 1 / 0)
    with pytest.raises(ConfigError):
        checked_by_numpy(lambda x: x[0])(5)


CALLS = {
    "simulate": lambda junk: simulate(ENGINE, [1, 2, 3], junk, junk),
    "engine": lambda junk: simulate(junk, [1], [1], [1]),
    "traffic": Traffic.of,
    "sample": lambda junk: LOAD.sample(0.5, junk),
    "front": lambda junk: front(TABLE, "latency", junk),
    "catalog": lambda junk: Hardware.table("tdp", units={"tdp": [junk]}),
    "units": lambda junk: Hardware.table("tdp", units=[junk]),
    "timeline": lambda junk: plot_timeline(STEP, ax=junk),
    "roofline": lambda junk: plot_roofline(Hardware.H100, ax=junk),
    "precision": lambda junk: plot_roofline(Hardware.H100, precision=junk),
    "html": lambda junk: TABLE.to_html(caption=junk),
    "row": lambda junk: TABLE.row(9 if isinstance(junk, int) else junk),
    "sensitivity": lambda junk: sensitivity(PASS, junk),
    "required": lambda junk: required(PASS, "latency", [junk], by="batch_size"),
    "capacity": lambda junk: capacity(Models.Llama3_8B, Hardware.H100, junk, SLO),
    "support": lambda junk: support(models=Q_(5, "s") if isinstance(junk, int) else [junk]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_junk_is_refused(call):
    for junk in JUNK:
        with pytest.raises(ConfigError):
            call(junk)


def test_a_target_beyond_floats_is_refused():
    with pytest.raises(ConfigError) as caught:
        required(PASS, "latency", 10**400, by="batch_size")
    assert caught.value.argument == "target"
