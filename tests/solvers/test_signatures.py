"""Arguments that functions share: in signatures, docstrings, inputs, and calls."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from enum import Enum
from typing import Annotated, Any, Generic, TypedDict, TypeVar, Unpack

import pytest

from mlsysim import (
    Q_,
    DisaggregatedSolver,
    Hardware,
    Models,
    OpenLoopSolver,
    ServingSolver,
    Traffic,
    capacity,
    plan_serving,
)
from mlsysim.core.errors import ConfigError
from mlsysim.core.fields import number, record
from mlsysim.core.inputs import Inputs
from mlsysim.core.numeric import Value
from mlsysim.core.result import Result
from mlsysim.solvers.arguments import Choice, PrecisionName, Whole
from mlsysim.solvers.base import Solver
from mlsysim.solvers.serving.inputs import EngineArguments, ServingInputs
from mlsysim.solvers.signatures import (
    arguments_of,
    composed,
    defaults_of,
    fields_of,
    marked,
    notes_of,
)

SERVING = (ServingSolver, OpenLoopSolver, DisaggregatedSolver)
SHARED = arguments_of(EngineArguments)
Size = TypeVar("Size")


class Side(Enum):
    LEFT = "left"


class Walls(TypedDict, Generic[Size], total=False):
    """Walls.

    Attributes
    ----------
    height
        Height of the
        wall.
    width
        Width.
    """

    height: Annotated[Size, Whole(default=3), Side.LEFT]
    width: Annotated[int | None, Whole(default=None)]


class House(Walls[int], total=False):
    """A house.

    Attributes
    ----------
    color
        Paint.
    """

    color: Annotated[str, Choice(options={"red": "red"}, default="red")]


@record
class HouseResult(Result):
    area: float = number()


class HouseInputs(Inputs, defaults=defaults_of(House)):
    height: Value
    width: Value
    storeys: Value


class HouseSolver(Solver[HouseInputs, HouseResult]):
    inputs = HouseInputs
    result = HouseResult

    @classmethod
    def solve(cls, *, storeys: Annotated[int, Whole()] = 1, **house: Unpack[House]) -> HouseResult:
        """Return the area.

        Parameters
        ----------
        storeys
            Storeys.
        width
            Width of this house.

        Returns
        -------
        HouseResult
            Its area.
        """
        return cls._answer(locals(), house)

    @classmethod
    def model(cls, inputs):
        return lambda i: {"area": i.storeys * i.height}


@composed({"height": None}, without=("color",))
def choose(price: float, **house: Unpack[House]) -> dict[str, Any]:
    """Choose a house."""
    return {"price": price, **house}


def test_a_type_stands_for_each_type_variable():
    kinds = arguments_of(House)
    assert list(kinds) == ["height", "width", "color"]
    assert (kinds["height"].optional, kinds["width"].optional) == (False, True)
    several = arguments_of(Walls[int | Sequence[int] | None])
    assert several["height"].optional
    assert fields_of(Walls[str])["height"].__origin__ is str
    assert fields_of(Walls)["height"].__origin__ is Size
    assert marked(House, Side.LEFT) == ("height",)


def test_defaults_are_those_that_models_read():
    values = defaults_of(House)
    assert values["height"] == 3.0
    assert math.isnan(values["width"])
    assert "color" not in values


def test_a_signature_has_all_arguments_with_types_and_defaults():
    known = inspect.signature(HouseSolver.solve).parameters
    assert {name: (item.annotation, item.default) for name, item in known.items()} == {
        "storeys": (int, 1),
        "height": (int, 3),
        "width": (int | None, None),
        "color": (str, "red"),
    }
    assert inspect.signature(choose).parameters.keys() == {"price", "height", "width"}
    assert inspect.signature(choose).parameters["height"].default is None


def test_a_docstring_describes_each_argument_once():
    assert notes_of(HouseSolver.solve) == {
        "storeys": "Storeys.",
        "width": "Width of this house.",
        "height": "Height of the wall.",
        "color": "Paint.",
    }
    assert notes_of(Whole) == {}
    assert "Returns\n-------\nHouseResult" in inspect.getdoc(HouseSolver.solve)


def test_arguments_that_are_left_out_have_their_defaults():
    assert HouseSolver.solve().area == 3
    assert HouseSolver.solve(storeys=2, height=5).area == 10
    with pytest.raises(TypeError, match="heigth"):
        HouseSolver.solve(heigth=5)
    with pytest.raises(ConfigError) as fault:
        HouseSolver.solve(height=0)
    assert fault.value.argument == "height"


@pytest.mark.parametrize("solver", SERVING, ids=lambda solver: solver.__name__)
def test_solvers_of_serving_share_one_declaration(solver):
    known = inspect.signature(solver.solve).parameters
    notes = notes_of(solver.solve)
    for name, kind in SHARED.items():
        assert type(solver.parameters[name]) is type(kind)
        assert known[name].default == kind.default
        if (solver, name) != (DisaggregatedSolver, "calibration"):  # that of its decode pool
            assert " ".join(notes[name].split()) in " ".join(EngineArguments.__doc__.split())


def test_an_input_that_a_solver_does_not_have_has_its_default():
    given = {"model": Models.Llama3_8B, "hardware": Hardware.H100, "arrival_rate": 1}
    inputs = OpenLoopSolver.admit(
        {
            name: item.default
            for name, item in inspect.signature(OpenLoopSolver.solve).parameters.items()
        }
        | given
    ).plain()
    assert (inputs.images, inputs.batch_size, inputs.arrivals, inputs.waves) == (0, 1, 1, math.inf)
    assert math.isnan(inputs.efficiency)


def test_models_have_a_field_for_each_shared_argument():
    assert SHARED.keys() <= ServingInputs._fields


@pytest.mark.parametrize("function", [plan_serving, capacity])
def test_plans_take_the_arguments_of_engines(function):
    known = inspect.signature(function).parameters
    assert SHARED.keys() <= known.keys()
    assert not any(item.kind is item.VAR_KEYWORD for item in known.values())
    assert "role" not in inspect.signature(plan_serving).parameters
    assert isinstance(arguments_of(function)["kv_precision"], PrecisionName)


def test_a_plan_chooses_among_the_values_of_a_lever():
    chat = Traffic(arrival_rate=Q_(1, "1/s"), seq_len=1000, output_len=100)
    limits = {"ttft_p99": Q_(2, "s")}
    plan = plan_serving(
        Models.Llama3_8B, chat, limits, Hardware.H100, weight_precision=["bf16", "fp8"]
    )
    assert set(plan.plans["weight_precision"]) == {"bf16", "fp8"}
    assert set(plan.plans["kv_precision"]) == {"bf16"}
