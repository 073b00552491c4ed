"""The space that is searched: all that the solver admits, and nothing that it refuses."""

import inspect
import itertools
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim import (
    ConfigError,
    DistributedSolver,
    Models,
    ParallelismError,
    Systems,
    advise,
    sweep,
)
from mlsysim.core.types import RECOMPUTE
from mlsysim.core.types.options import ATTENTION
from mlsysim.planner.training.space import (
    LEVERS,
    by_exchange,
    by_words,
    divisors,
    layouts,
    partial_recomputes,
)
from mlsysim.registry.calibration.training import Frameworks, Options, options_of
from mlsysim.solvers.signatures import fields_of
from mlsysim.solvers.training.inputs import TrainingArguments

COMMON = Options().schedules
SIXTEEN = replace(Systems.Clusters.Research_256, name="sixteen", count=2)
LAYOUT = ("tp_size", "pp_size", "cp_size", "ep_size", "microbatch_count", "virtual_stages")


def rows_of(model, fleet, batch_size, seq_len):
    found = layouts(model, fleet, batch_size, seq_len, {})
    return set(zip(*(found[name].tolist() for name in LAYOUT), strict=True))


@pytest.mark.parametrize(
    ("model", "batch_size", "seq_len"),
    [
        (Models.Llama3_8B, 24, 2048),
        (Models.Llama3_8B, 16, 100),
        (Models.Mixtral_8x7B, 16, 2048),
    ],
)
def test_every_layout_that_the_solver_admits_is_there(model, batch_size, seq_len):
    experts = [1, 2, 4, 8] if model is Models.Mixtral_8x7B else [1, 2]
    axes = {
        "tp_size": [1, 2, 3, 4, 8, 16],
        "pp_size": [1, 2, 4, 8, 16],
        "cp_size": [1, 2, 4, 5, 8, 16],
        "ep_size": experts,
        "microbatch_count": [1, 2, 3, 4, 6, 8, 12, 16, 24],
        "virtual_stages": [1, 2, 3, 4, 8, 16, 17],
    }
    table = sweep(
        DistributedSolver,
        model=model,
        fleet=SIXTEEN,
        batch_size=batch_size,
        seq_len=seq_len,
        invalid="drop",
        **axes,
    )
    table = table.where(np.asarray(table["whole_microbatches"]))
    admitted = set(zip(*(np.asarray(table[name]).tolist() for name in LAYOUT), strict=True))
    # Of the plans that deal layers out unevenly, those without chunks are kept.
    layers = model.layers
    even = {
        row
        for row in admitted
        if row[5] == 1 or layers % (row[1] * row[5]) == 0 or (layers + 2) % (row[1] * row[5]) == 0
    }
    found = rows_of(model, SIXTEEN, batch_size, seq_len)
    tried = set(itertools.product(*axes.values()))
    assert even == found & tried
    assert len(even) > 50


def test_blocks_hold_each_configuration_once_and_none_that_changes_nothing():
    rows = layouts(Models.Llama3_8B, SIXTEEN, 16, 2048, {})
    seen = set()
    for shared, block in by_words(rows, {}, "fused", COMMON):
        names = (*LAYOUT, "zero_stage")
        for row in zip(*(block[name].tolist() for name in names), strict=True):
            key = (*row, *shared.values())
            assert key not in seen
            seen.add(key)
            assert not (shared["sequence_parallel"] and row[0] == 1)
            replicas = 16 // (row[0] * row[1])
            assert row[6] == 0 or replicas > 1
    assert {key[-1] for key in seen} == {"selective", "full"}
    assert {key[6] for key in seen} == {0, 1, 2, 3}


def test_without_fused_attention_keeping_everything_is_another_plan():
    model = Models.Llama3_8B
    rows = layouts(model, SIXTEEN, 16, 2048, {})
    words = {shared["recompute"] for shared, _ in by_words(rows, {}, "unfused", COMMON)}
    assert words == {"none", "selective", "full"}


@pytest.mark.parametrize("recompute", ["selective", "full"])
def test_exchanges_are_split_by_what_each_row_can_use(recompute):
    model, node = Models.Mixtral_8x7B, SIXTEEN.node
    rows = layouts(model, SIXTEEN, 64, 4096, {"cp_size": [1]})
    options = replace(options_of(Frameworks.Megatron_Core), dispatch_precision="fp8")
    shared = {"schedule": "1f1b", "recompute": recompute}
    blocks = list(by_exchange(shared, rows, model, node, options, narrow=True))
    seen = [
        row for _, b in blocks for row in zip(*(b[name].tolist() for name in LAYOUT), strict=True)
    ]
    every = set(zip(*(rows[name].tolist() for name in LAYOUT), strict=True))
    assert sorted(seen) == sorted(every)  # each row once
    used = set()
    for each, block in blocks:
        spread = block["ep_size"] > 1
        overlaps = each["exchange_overlap"] is not None
        able = (block["virtual_stages"] > 1) | (block["pp_size"] == 1)
        able &= spread & (block["microbatch_count"] > 1) & (recompute != "full")
        assert (able == overlaps).all()
        assert (spread == (each["dispatch_precision"] == "fp8")).all()
        used.add(overlaps)
        if "expert_nodes" in block:
            assert (block["expert_nodes"] == block["ep_size"] // 8).all()
        else:
            assert (block["ep_size"] <= 8).all()
    assert used == ({False, True} if recompute == "selective" else {False})


def test_a_framework_without_options_changes_nothing():
    rows = layouts(Models.Mixtral_8x7B, SIXTEEN, 64, 4096, {"cp_size": [1]})
    shared = {"schedule": "1f1b", "recompute": "selective"}
    for each, block in by_exchange(
        shared, rows, Models.Mixtral_8x7B, SIXTEEN.node, options_of(Frameworks.MaxText), narrow=True
    ):
        assert {each[name] for name in ("exchange_overlap", "dispatch_precision")} == {None}
        assert "expert_nodes" not in block


def test_bidirectional_schedules_have_only_rows_that_the_solver_admits():
    rows = layouts(Models.Mixtral_8x7B, SIXTEEN, 64, 4096, {"cp_size": [1]})
    blocks = by_words(rows, {}, "fused", options_of(Frameworks.HAI_LLM).schedules)
    dual = [block for shared, block in blocks if shared["schedule"] == "dualpipe"]
    assert sum(len(block["pp_size"]) for block in dual) > 0
    for block in dual:
        assert (block["virtual_stages"] == 1).all()
        assert (block["pp_size"] % 2 == 0).all()
        assert (block["microbatch_count"] >= 2 * block["pp_size"]).all()


def test_parts_of_layers_to_recompute():
    modules = ("norms", "swiglu", "mla_up")
    latent = partial_recomputes("selective", modules, Models.DeepSeek_V3)
    assert len(latent) == 7
    assert latent[0] == "selective+norms+swiglu+mla_up"
    assert partial_recomputes("none", modules, Models.Mixtral_8x7B) == [
        "norms+swiglu",
        "norms",
        "swiglu",
    ]
    assert set(latent) <= set(RECOMPUTE)


@given(number=st.integers(1, 5000))
def test_divisors(number):
    assert divisors(number) == [n for n in range(1, number + 1) if number % n == 0]


def test_divisors_of_large_numbers():
    assert len(divisors(10**12)) == 13 * 13
    assert divisors(10**9 + 7) == [1, 10**9 + 7]


def test_searches_that_would_not_end_are_refused():
    job = {"model": Models.GPT4, "fleet": Systems.Clusters.Frontier_8K}
    with pytest.raises(ConfigError, match=r"more than 4,000,000 .* microbatch_count=\[1") as caught:
        advise(**job, batch_size=10**12)
    assert caught.value.argument == "microbatch_count"
    # The product with the groups' sizes must not wrap around.
    large = replace(Systems.Clusters.Frontier_8K, name="large", count=2**14)
    assert 2**17 * 10**14 > 2**63
    with pytest.raises(ConfigError, match="too large to split over 131072 devices") as caught:
        layouts(Models.GPT_1T, large, 10**14, 2048, {"microbatch_count": [1]})
    assert caught.value.argument == "batch_size"


def test_a_batch_of_many_divisors_is_advised_on():
    """Nothing in it counts up to the number of microbatches."""
    found = advise(
        model=Models.Llama3_8B,
        fleet=SIXTEEN,
        batch_size=10**12,
        tp_size=1,
        pp_size=1,
        cp_size=1,
        zero_stage=1,
        recompute="full",
    )
    assert found.configuration["microbatch_count"] > 10**6


@pytest.mark.parametrize("values", [range(10**9), range(10**30), np.arange(1, 20_000)])
@pytest.mark.parametrize("name", ["tp_size", "microbatch_count", "batch_size"])
def test_too_many_choices_are_refused_before_they_are_read(name, values):
    job = {"model": Models.Llama3_8B, "fleet": SIXTEEN, "batch_size": 16}
    with pytest.raises(ConfigError, match="more than 10,000 choices") as caught:
        advise(**job | {name: values})
    assert caught.value.argument == name
    assert len(str(caught.value)) < 300


def test_too_many_searches_are_refused():
    job = {"model": Models.Llama3_8B, "fleet": SIXTEEN}
    with pytest.raises(ConfigError, match="1 x 1001 choices") as caught:
        advise(**job, batch_size=range(1, 1002))
    assert caught.value.argument == "batch_size"


@pytest.mark.parametrize(
    ("sizes", "words"), [([3], r"tp_size = \[3\]"), (list(range(3, 9000, 2)), r"tp_size = \[3, ")]
)
def test_limits_that_leave_nothing_are_refused_by_name_without_every_choice(sizes, words):
    with pytest.raises(ParallelismError, match=words) as caught:
        layouts(Models.Llama3_8B, SIXTEEN, 16, 2048, {"tp_size": sizes})
    assert len(str(caught.value)) < 400


def test_an_attention_is_the_same_by_name_and_as_an_option():
    job = {"model": Models.Llama3_8B, "fleet": SIXTEEN, "batch_size": 16, "tp_size": 1}
    job |= {"pp_size": 1, "cp_size": 1, "microbatch_count": 1, "zero_stage": 1}
    for name, option in ATTENTION.items():
        by_name, as_option = advise(**job, attention=name), advise(**job, attention=option)
        assert as_option.searched == by_name.searched
        assert as_option.configuration == by_name.configuration


def test_levers_are_the_arguments_that_take_several_values():
    fields = fields_of(TrainingArguments)
    assert {n for n, hint in fields.items() if isinstance(hint.__origin__, TypeVar)} == set(LEVERS)
    known = inspect.signature(advise).parameters
    assert all(known[name].default is None for name in LEVERS)
    assert fields.keys() <= known.keys()
    with pytest.raises(TypeError, match="tpsize"):
        advise(model=None, fleet=None, batch_size=1, tpsize=2)
