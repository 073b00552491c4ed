"""The interruptions of Llama 3 405B, and what the registry makes of them."""

import csv
from pathlib import Path

import pytest

from mlsysim import Q_, Fleet, ReliabilitySolver, Systems
from mlsysim.registry.operations import INTERRUPTIONS

with (Path(__file__).parent / "llama3_interruptions.csv").open(encoding="utf-8") as file:
    FACTS = {row["quantity"]: float(row["value"]) for row in csv.DictReader(file)}
LLAMA_3 = Fleet(
    name="Llama 3 405B",
    node=Systems.Nodes.DGX_H100,
    count=2048,
    fabric=Systems.Fabrics.InfiniBand_NDR,
)


def test_the_registry_holds_the_published_record():
    assert INTERRUPTIONS.devices == FACTS["gpus"]
    assert INTERRUPTIONS.duration == Q_(FACTS["snapshot_days"], "day")
    assert INTERRUPTIONS.interruptions == FACTS["interruptions_unexpected"]
    assert not INTERRUPTIONS.estimated
    assert FACTS["interruptions_total"] == (
        FACTS["interruptions_unexpected"] + FACTS["interruptions_planned"]
    )


def test_the_run_meets_its_own_interruptions():
    run = ReliabilitySolver.solve(fleet=LLAMA_3, job_duration_hours=54 * 24, checkpoint_time_s=10)
    assert run.expected_failures == pytest.approx(419)
    assert run.fleet_mtbf.to("h").magnitude == pytest.approx(54 * 24 / 419)
    assert run.device_mtbf.to("h").magnitude == pytest.approx(50_677, abs=1)


def test_its_effective_time_is_within_reach():
    """Over 90 % were effective. Restarts at the quick end of what clusters report allow that."""
    run = ReliabilitySolver.solve(
        fleet=LLAMA_3,
        job_duration_hours=54 * 24,
        checkpoint_time_s=10,
        restart_time=Q_(5, "minute"),
    )
    assert run.goodput > FACTS["effective_training_time_min"] / 100
