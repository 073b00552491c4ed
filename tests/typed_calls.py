"""Calls that the type checker accepts, and calls that it rejects.

mypy reads this file with the package. It reports each `type: ignore` that hides no error, so a
misspelled or wrongly typed argument that is no longer noticed fails the check of types.
"""

from __future__ import annotations

from mlsysim import (
    Q_,
    DisaggregatedSolver,
    DistributedSolver,
    Hardware,
    Models,
    OpenLoopSolver,
    ServingSolver,
    Systems,
    Traffic,
    advise,
    capacity,
    plan_serving,
)

FLEET = Systems.Clusters.Research_256
NODE = Systems.Nodes.DGX_H100
CHAT = Traffic(arrival_rate=Q_(20, "1/s"), seq_len=1000, output_len=200)
LIMITS = {"ttft_p99": Q_(1, "s")}


def accepted() -> None:
    ServingSolver.solve(model=Models.Llama3_8B, hardware=NODE, seq_len=1000, tp_size=2, waves=None)
    OpenLoopSolver.solve(
        model=Models.Llama3_8B, hardware=NODE, arrival_rate=1, batch_limit=8, turn_tokens=0.5
    )
    DisaggregatedSolver.solve(model=Models.Llama3_8B, hardware=NODE, images=1, prefill_tp_size=2)
    plan_serving(Models.Llama3_8B, CHAT, LIMITS, NODE, tp_size=[1, 2], kv_precision=["fp8"])
    capacity(Models.Llama3_8B, NODE, CHAT, LIMITS, tp_size=2, role="both")
    DistributedSolver.solve(model=Models.Llama3_8B, fleet=FLEET, batch_size=512, tp_size=2)
    advise(model=Models.Llama3_8B, fleet=[FLEET], batch_size=512, tp_size=[1, 2], schedule="1f1b")


def misspelled() -> None:
    DistributedSolver.solve(  # type: ignore[call-arg]
        model=Models.Llama3_8B, fleet=FLEET, batch_size=512, tpsize=2
    )
    advise(model=Models.Llama3_8B, fleet=FLEET, batch_size=512, tpsize=2)  # type: ignore[call-arg]
    ServingSolver.solve(model=Models.Llama3_8B, hardware=NODE, tpsize=2)  # type: ignore[call-arg]
    OpenLoopSolver.solve(  # type: ignore[call-arg]
        model=Models.Llama3_8B, hardware=NODE, arrival_rate=1, images=1
    )
    DisaggregatedSolver.solve(  # type: ignore[call-arg]
        model=Models.Llama3_8B, hardware=NODE, reserved_output=1
    )
    plan_serving(Models.Llama3_8B, CHAT, LIMITS, NODE, tpsize=2)  # type: ignore[call-arg]
    capacity(Models.Llama3_8B, NODE, CHAT, LIMITS, tpsize=2)  # type: ignore[call-arg]


def missing() -> None:
    ServingSolver.solve(hardware=Hardware.H100, tp_size=2)  # type: ignore[call-arg]
    OpenLoopSolver.solve(model=Models.Llama3_8B, hardware=NODE)  # type: ignore[call-arg]


def wrongly_typed() -> None:
    DistributedSolver.solve(
        model=Models.Llama3_8B,
        fleet=FLEET,
        batch_size=512,
        tp_size=[1, 2],  # type: ignore[arg-type]
    )
    advise(
        model=Models.Llama3_8B,
        fleet=FLEET,
        batch_size=512,
        sequence_parallel="no",  # type: ignore[arg-type]
    )
    ServingSolver.solve(
        model=Models.Llama3_8B,
        hardware=NODE,
        tp_size="2",  # type: ignore[arg-type]
    )
    ServingSolver.solve(
        model=Models.Llama3_8B,
        hardware=NODE,
        tp_size=[1, 2],  # type: ignore[arg-type]
    )
    OpenLoopSolver.solve(
        model=Models.Llama3_8B,
        hardware=NODE,
        arrival_rate=1,
        host_link=NODE,  # type: ignore[arg-type]
    )
    plan_serving(
        Models.Llama3_8B,
        CHAT,
        LIMITS,
        NODE,
        tp_size="2",  # type: ignore[arg-type]
    )
    capacity(
        Models.Llama3_8B,
        NODE,
        CHAT,
        LIMITS,
        tp_size=[1, 2],  # type: ignore[arg-type]
    )
