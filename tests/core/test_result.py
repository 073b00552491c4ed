"""Results: a mapping and an object at once, frozen, and helpful about unknown names."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Mapping
from typing import ClassVar

import pytest

from mlsysim import (
    DistributedSolver,
    Hardware,
    Models,
    ServingSolver,
    SingleNodeSolver,
    Systems,
)
from mlsysim.core.errors import UnknownEntryError
from mlsysim.core.fields import quantity, record
from mlsysim.core.result import Result
from mlsysim.core.units import Q_, Quantity


@record
class Answer(Result):
    aliases: ClassVar = {"delay": "latency"}

    latency: Quantity = quantity("s")
    feasible: bool
    reasons: tuple[str, ...] = ()


ANSWER = Answer(latency=Q_(2, "ms"), feasible=True)
STEP = DistributedSolver.solve(
    model=Models.Llama3_70B,
    fleet=Systems.Clusters.Research_256,
    batch_size=256,
    tp_size=8,
    pp_size=4,
    microbatch_count=16,
)
PASS = SingleNodeSolver.solve(model=Models.ResNet50, hardware=Hardware.A100)
every_result = pytest.mark.parametrize(
    "result", [pytest.param(r, id=type(r).__name__) for r in (ANSWER, STEP, PASS)]
)


@every_result
def test_items_and_attributes_are_the_same_objects(result):
    for name in result:
        assert result[name] is getattr(result, name)


@every_result
def test_a_result_is_a_mapping(result):
    assert isinstance(result, Mapping)
    assert {*result} <= {*dir(result)}  # for completion
    names = [item.name for item in dataclasses.fields(result)]
    assert list(result) == list(result.keys()) == list(dict(result)) == names
    assert len(result) == len(names)
    assert dict(result)[names[0]] is result[names[0]]
    assert {**result}.keys() == set(names)
    assert names[0] in result
    assert "no_such_field" not in result
    assert result.get("no_such_field", 7) == 7


@every_result
def test_a_result_is_frozen(result):
    name = next(iter(result))
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(result, name, 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.something_new = 1
    with pytest.raises(TypeError):
        result[name] = 1


@every_result
def test_unknown_keys_name_the_nearest(result):
    near = {"latency": "latncy", "step_latency_total": "step_latency"}[next(iter(result))]
    with pytest.raises(UnknownEntryError, match=f"{near!r} does not exist.*{next(iter(result))}"):
        result[near]
    with pytest.raises(KeyError):
        result[near]
    with pytest.raises(AttributeError, match=f"{near!r} does not exist.*{next(iter(result))}"):
        getattr(result, near)
    assert not hasattr(result, near)


@every_result
def test_a_result_pickles(result):
    twin = pickle.loads(pickle.dumps(result))
    assert type(twin) is type(result)
    assert dict(twin) == dict(result)


@every_result
def test_a_result_prints_every_field(result):
    lines = str(result).splitlines()
    assert lines[0] == type(result).__name__
    assert [line.split()[0] for line in lines[1:]] == list(result)
    page = result._repr_markdown_()
    assert page.count("\n") == len(result) + 1
    assert all(f"| {name} | " in page for name in result)


def test_aliases_are_the_same_object():
    assert ANSWER.delay is ANSWER["delay"] is ANSWER.latency
    assert STEP.node_profile is STEP["node_profile"] is STEP.node_performance
    assert "delay" not in list(ANSWER)  # a name of the first edition, not a second field


def test_a_part_of_a_result_sends_you_to_the_whole():
    with pytest.raises(UnknownEntryError, match="was not returned by a solver"):
        STEP.node_performance.explain()


def test_a_result_explains_itself_after_a_journey():
    twin = pickle.loads(pickle.dumps(STEP))
    assert str(twin.explain("mfu")) == str(STEP.explain("mfu"))


def test_an_alias_explains_too():
    with pytest.raises(UnknownEntryError, match="explain one of"):
        PASS.explain("reasons")
    assert PASS.explain("latency").roots.keys() == {"latency"}


def test_fields_that_nobody_read_are_pickled_and_copied():
    """Solvers put a field in its unit when it is first read."""
    given = {"model": Models.Llama3_8B, "hardware": Hardware.H100, "batch_size": 4}
    answer = ServingSolver.solve(**given)
    assert "itl" not in vars(answer)
    for other in (pickle.loads(pickle.dumps(answer)), copy.copy(answer), copy.deepcopy(answer)):
        assert dict(other) == dict(ServingSolver.solve(**given))
        assert str(other.explain("itl")) == str(answer.explain("itl"))
    assert answer.itl is answer["itl"] is vars(answer)["itl"]
