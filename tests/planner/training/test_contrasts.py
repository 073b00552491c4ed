"""Contrasts add up to the difference that they explain."""

import pytest

from mlsysim import ConfigError, DistributedSolver, Models, Systems, contrast
from mlsysim.planner.training.contrasts import parts_of

JOB = {
    "model": Models.Llama3_70B,
    "fleet": Systems.Clusters.Research_256,
    "batch_size": 256,
    "seq_len": 2048,
    "tp_size": 8,
}
DEEP = DistributedSolver.solve(**JOB, pp_size=8, microbatch_count=16, recompute="full")
FLAT = DistributedSolver.solve(**JOB, pp_size=4, microbatch_count=16)


@pytest.mark.parametrize("result", [DEEP, FLAT])
def test_parts_add_up_to_the_step(result):
    total = sum(parts_of(result).values())
    assert total == pytest.approx(result.step_latency_total.to("s").magnitude)


def test_differences_add_up_and_are_named():
    found = contrast(DEEP, FLAT)
    total = sum(part.to("s").magnitude for part in found.parts.values())
    step = (DEEP.step_latency_total - FLAT.step_latency_total).to("s").magnitude
    assert total == pytest.approx(step)
    assert found.loss == pytest.approx(step / FLAT.step_latency_total.to("s").magnitude)
    assert found.extra_memory == DEEP.memory - FLAT.memory
    assert "recomputed arithmetic +" in found.words
    assert found.words.startswith(f"{found.loss:.1%} slower")


def test_batches_are_brought_to_one_size():
    twice = DistributedSolver.solve(**JOB | {"batch_size": 512}, pp_size=4, microbatch_count=32)
    found = contrast(twice, FLAT)
    rate = (FLAT.token_throughput / twice.token_throughput).to("").magnitude
    assert found.loss == pytest.approx(rate - 1)
    total = sum(part.to("s").magnitude for part in found.parts.values())
    assert total == pytest.approx(found.loss * FLAT.step_latency_total.to("s").magnitude)


def test_other_things_are_refused():
    with pytest.raises(ConfigError, match="not a DistributedResult"):
        contrast(FLAT, 3)
