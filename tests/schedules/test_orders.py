"""Orders: the published diagrams, and what no schedule can do."""

import numpy as np
import pytest

from mlsysim import ConfigError, ParallelismError, UnknownEntryError
from mlsysim.schedules import Pass, pipeline_orders

# A lesson's diagrams of four stages and eight microbatches
ONE_FORWARD_ONE_BACKWARD = """
F1 F2 F3 F4 B1 F5 B2 F6 B3 F7 B4 F8 B5 B6 B7 B8
F1 F2 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 F8 B6 B7 B8
F1 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 F8 B7 B8
F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7 F8 B8
"""
GPIPE = 4 * "\nF1 F2 F3 F4 F5 F6 F7 F8 B8 B7 B6 B5 B4 B3 B2 B1"


@pytest.mark.parametrize(
    ("schedule", "diagram"), [("1f1b", ONE_FORWARD_ONE_BACKWARD), ("gpipe", GPIPE)]
)
def test_the_diagrams(schedule, diagram):
    orders = pipeline_orders(schedule, pp_size=4, microbatch_count=8)
    drawn = [" ".join(str(step) for step in order) for order in orders]
    assert drawn == diagram.strip().splitlines()


def test_late_stages_put_weights_off():
    """Qi et al. (2023), section 2.1: by the stages before them."""
    for stage, order in enumerate(pipeline_orders("zb-h1", pp_size=4, microbatch_count=8)):
        split = [step for step in order if step.kind != "F"]
        first = split.index(Pass("W", 0))
        assert [step.kind for step in split[:first]] == ["B"] * (stage + 1)


def test_interleaving_goes_round_by_round():
    first = pipeline_orders("1f1b", pp_size=2, microbatch_count=4, virtual_stages=2)[0]
    forwards = [(step.microbatch, step.chunk) for step in first if step.kind == "F"]
    assert forwards == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (3, 0), (2, 1), (3, 1)]
    backwards = [(step.microbatch, step.chunk) for step in first if step.kind == "B"]
    assert backwards[:4] == [(0, 1), (1, 1), (0, 0), (1, 0)]
    assert str(first[2]) == "F1 of chunk 2"


@pytest.mark.parametrize(
    ("changed", "kind", "words"),
    [
        ({"pp_size": 0}, ConfigError, "pp_size = 0: give a whole number"),
        ({"microbatch_count": 2.5}, ConfigError, "microbatch_count = 2.5"),
        ({"virtual_stages": True}, ConfigError, "virtual_stages = True"),
        ({"schedule": "zbh1"}, UnknownEntryError, "did you mean zb-h1"),
        ({"schedule": "gpipe", "virtual_stages": 2}, ConfigError, "choose schedule = '1f1b'"),
        ({"microbatch_count": 6, "virtual_stages": 2}, ParallelismError, "a multiple of pp_size"),
    ],
)
def test_refused_in_words(changed, kind, words):
    sizes = {"schedule": "1f1b", "pp_size": 4, "microbatch_count": 8, **changed}
    with pytest.raises(kind, match=words):
        pipeline_orders(**sizes)


def test_sizes_of_numpy_are_sizes():
    sizes = np.array([2, 4])
    orders = pipeline_orders("gpipe", pp_size=sizes[0], microbatch_count=sizes[1])
    assert [len(order) for order in orders] == [8, 8]


@pytest.mark.parametrize(
    ("sizes", "argument"),
    [
        ({"pp_size": 10**9}, "pp_size"),
        ({"microbatch_count": 10**400}, "microbatch_count"),
        ({"microbatch_count": 4 * 10**6, "virtual_stages": 2}, "microbatch_count"),
        ({"schedule": "zb-h1", "pp_size": 1000, "microbatch_count": 334}, "pp_size"),
    ],
)
def test_schedules_of_more_than_a_million_passes_are_not_played(sizes, argument):
    with pytest.raises(ConfigError, match=r"1,000,000 passes .* DistributedSolver") as caught:
        pipeline_orders(**{"schedule": "1f1b", "pp_size": 4, "microbatch_count": 8, **sizes})
    assert caught.value.argument == argument


def test_a_million_passes_are_in_order():
    # 1,000 stages, 500 microbatches, forward and backward
    orders = pipeline_orders("gpipe", pp_size=1000, microbatch_count=500)
    assert sum(map(len, orders)) == 1_000_000
