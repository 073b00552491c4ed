"""The ledger: what it records, that it comes back, and what it says of damaged files."""

from __future__ import annotations

import json

import pytest

from mlsysim import ConfigError, __version__
from mlsysim_course.labs.parallelism_paradox import ledger, restore, view

RIGHT = {
    "act1_prediction": "ratio",
    "gpus": 512,
    "act1_reflection": "overlap",
    "act2_prediction": "balanced",
    "act2_reflection": "every_layer",
    "tp": 8,
    "pp": 4,
    "microbatches": 48,
    "zero": "sharded",
}


def test_a_right_play_through_is_optimal():
    found = ledger(RIGHT)
    assert found["tier"] == "optimal"
    assert found["version"] == __version__
    assert {one["verdict"] for one in found["predictions"].values()} == {"right"}
    assert found["reflections"]["act2_reflection"] == {"answer": "every_layer", "verdict": "right"}
    assert found["design"] == {"tp": 8, "pp": 4, "dp": 32, "microbatches": 48, "zero": 1}
    assert found["result"]["accepted"]
    assert found["result"]["failures"] == []


@pytest.mark.parametrize(
    ("changes", "tier"),
    [
        ({}, "optimal"),
        ({"act1_reflection": "faster"}, "optimal"),
        ({"act1_prediction": "software"}, "partial"),
        ({"act2_prediction": "wide"}, "partial"),
        ({"microbatches": 24}, "partial"),
        ({"zero": "replicated"}, "partial"),
        ({"act1_prediction": "volume", "act2_prediction": "deep"}, "partial"),
        ({"act1_prediction": "volume", "act2_prediction": "deep", "tp": 16}, "developing"),
    ],
)
def test_tiers_follow_the_rule(changes, tier):
    assert ledger(RIGHT | changes)["tier"] == tier


def test_a_design_counts_only_once_its_instruments_were_shown():
    state = {key: RIGHT[key] for key in ("tp", "pp", "microbatches", "zero")}
    found = ledger(state)
    assert found["tier"] == "developing"
    assert found["design"] is None
    assert found["result"] is None


@pytest.mark.parametrize(
    ("changes", "failures"),
    [
        ({"zero": "replicated"}, ["memory"]),
        ({"tp": 16}, ["servers"]),
        ({"microbatches": 24}, ["bubble"]),
        ({"microbatches": 32}, ["microbatches"]),
        ({"pp": 3}, ["sizes"]),
    ],
)
def test_failures_of_the_design_are_recorded(changes, failures):
    found = ledger(RIGHT | changes)
    assert found["result"]["failures"] == failures
    assert not found["result"]["accepted"]


@pytest.mark.parametrize("state", [{}, {"act1_prediction": "memory"}, RIGHT, RIGHT | {"pp": 3}])
def test_a_saved_ledger_continues_where_it_was(state):
    text = json.dumps(view(state)["ledger"], allow_nan=False)
    assert restore(text) == state
    assert view(restore(text)) == view(state)


def test_what_a_ledger_claims_is_not_believed():
    forged = ledger({"act1_prediction": "memory"}) | {"tier": "optimal"}
    state = restore(json.dumps(forged))
    assert ledger(state)["tier"] == "developing"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "damaged: it is not JSON"),
        ("{", "damaged: it is not JSON"),
        (None, "damaged: it is not JSON"),
        ("[]", "not a ledger of the lab parallelism_paradox"),
        ('{"lab": "another"}', "not a ledger of the lab"),
        ('{"lab": "parallelism_paradox"}', "format = None of the ledger is not 1"),
        ('{"lab": "parallelism_paradox", "format": 2}', "format = 2"),
        ('{"lab": "parallelism_paradox", "format": 1}', "contains no state"),
        ('{"lab": "parallelism_paradox", "format": 1, "state": 3}', "state = 3 must be a mapping"),
        (
            '{"lab": "parallelism_paradox", "format": 1, "state": {"gpus": 9}}',
            "gpus = 9 is out of range",
        ),
        ('{"lab": "parallelism_paradox", "format": 1, "state": {"gpux": 8}}', "did you mean gpus"),
        (
            '{"lab": "parallelism_paradox", "format": 1, "state": {"act2_prediction": "wide"}}',
            "act2_prediction before act1_prediction",
        ),
    ],
)
def test_damaged_ledgers_are_refused_with_the_fault_and_the_way_out(text, words):
    with pytest.raises(ConfigError, match=words):
        restore(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" * 60_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        " " * 10**6,
        json.dumps({"lab": "parallelism_paradox", "format": [[["x" * 50_000]]]}),
        json.dumps({"lab": "parallelism_paradox", "format": 1, "state": {"x" * 50_000: 1}}),
        json.dumps({"lab": "parallelism_paradox", "format": 1, "state": {"gpus": "x" * 50_000}}),
        json.dumps({"lab": "parallelism_paradox", "format": 1, "state": ["x" * 50_000]}),
        '{"lab": "parallelism_paradox", "format": ' + "9" * 5_000 + "}",
    ],
)
def test_enormous_ledgers_are_refused_in_a_few_words(text):
    with pytest.raises(ConfigError) as caught:
        restore(text)
    assert len(str(caught.value)) < 600


def test_an_enormous_key_is_not_echoed_by_the_view():
    with pytest.raises(ConfigError) as caught:
        view({"x" * 10**6: 1})
    assert len(str(caught.value)) < 600
