"""A solver of one's own: in another module, or made from one of ours."""

from __future__ import annotations

import json
from typing import Annotated

import pytest

from mlsysim import Q_, DistributedSolver, Hardware, Models, Systems, sweep
from mlsysim.core.fields import number, quantity, record
from mlsysim.core.forms import replaced
from mlsysim.core.inputs import Inputs, Varying, default
from mlsysim.core.numeric import Value
from mlsysim.core.result import Result
from mlsysim.core.types import Accelerator
from mlsysim.core.units import Quantity
from mlsysim.solvers.arguments import Amount, Noun, Share
from mlsysim.solvers.base import Solver

TRAINING = {
    "model": Models.Llama3_8B,
    "fleet": Systems.Clusters.Research_256,
    "batch_size": 256,
    "tp_size": 8,
}


@record
class StreamResult(Result):
    time: Quantity = quantity("s")
    ratio: float = number()


class StreamInputs(Inputs):
    hardware: Accelerator
    size: Value
    share: Value
    most: Value = default(lambda i: i.share)


def streamed(i: StreamInputs) -> dict[str, Value]:
    stream = i.size / i.hardware.memory.bandwidth
    slack = 2 * stream
    time = slack + stream
    return {"time": time, "ratio": i.most * time / slack}


class StreamSolver(Solver[StreamInputs, StreamResult]):
    inputs = StreamInputs
    result = StreamResult

    @classmethod
    def solve(
        cls,
        *,
        hardware: Annotated[Accelerator, Noun(hint="Hardware.H100")],
        size: Annotated[Quantity, "a note for other tools", Amount(unit="GB")],
        share: Annotated[float, Share()] = 0.5,
        most: Annotated[float | None, Share()] = None,
    ) -> StreamResult:
        return cls._answer(locals())

    @classmethod
    def model(cls, inputs):
        return streamed


def test_a_solver_outside_the_package_names_its_steps():
    answer = StreamSolver.solve(hardware=Hardware.H100, size=Q_(1, "GB"))
    assert answer.ratio == pytest.approx(0.75)
    steps = {step.name: step.line for step in answer.explain().steps}
    assert steps == {
        "time": "slack + stream",
        "ratio": "share * time / slack",
        "slack": "2 * stream",
        "stream": "size / memory.bandwidth",
    }
    table = sweep(StreamSolver, hardware=Hardware.H100, size=Q_([1, 2], "GB"), share=[0.5, 1])
    assert table["ratio"] == pytest.approx([0.75, 1.5, 0.75, 1.5])


def test_a_solver_made_from_ours_leaves_ours_alone():
    before = DistributedSolver.solve(**TRAINING)
    text = str(before.explain("mfu"))

    class Passing(DistributedSolver):
        @classmethod
        def solve(cls, **arguments):
            return super().solve(**{"precision": "bf16"} | arguments)

    class Narrow(DistributedSolver):
        @classmethod
        def solve(cls, *, tp_size: Annotated[float, Share()]):
            return tp_size

    assert (
        Passing.solve(**TRAINING).mfu == DistributedSolver.solve(**TRAINING, precision="bf16").mfu
    )
    assert set(Narrow.parameters) == {"tp_size"}
    after = DistributedSolver.solve(**TRAINING)
    assert after.mfu == before.mfu
    assert str(after.explain("mfu")) == text


def test_inputs_that_change_are_followed_again():
    inputs = StreamSolver.admit({"hardware": Hardware.H100, "size": Q_(1, "GB"), "share": 0.5})
    assert inputs.most == 0.5
    other = inputs.but(share=0.8)
    assert other.most == 0.8
    assert other.but(most=0.1).but(share=1.0).most == 0.1
    assert inputs.most == 0.5
    for form in (inputs, inputs.plain(), inputs.recorded()):
        with pytest.raises(TypeError, match="no field shares"):
            form.but(shares=0.8)
        with pytest.raises(TypeError, match="no field band"):
            replaced(inputs.plain().hardware.memory, band=1)


def test_a_number_that_varies_chooses_nothing():
    varying = Varying("tp_size")
    for choose in (bool, float, hash, lambda v: {1: "one"}.get(v), lambda v: v > 1):
        with pytest.raises(TypeError, match="declare it a Stage"):
            choose(varying)
    with pytest.raises(TypeError):
        json.dumps(varying)
