"""The lab as a student plays it: what shows when, what locks, which failures can be met."""

from __future__ import annotations

import json
import re

import pytest

from mlsysim import ConfigError
from mlsysim_course.labs.parallelism_paradox import LAB, view
from mlsysim_course.labs.parallelism_paradox.state import (
    DESIGN,
    EXPLORER,
    PREDICTION_1,
    PREDICTION_2,
    REFLECTION_1,
    REFLECTION_2,
)

QUESTIONS = (PREDICTION_1, REFLECTION_1, PREDICTION_2, REFLECTION_2)
ANSWERED = {"act1_prediction": "ratio", "act2_prediction": "balanced"}
RIGHT = ANSWERED | {"tp": 8, "pp": 4, "microbatches": 48, "zero": "sharded"}
WRONG = RIGHT | {"act1_prediction": "software", "act2_prediction": "flat", "tp": 16}


def blocks(state, kind=None):
    return [block for block in view(state)["blocks"] if kind in (None, block["type"])]


def block(state, name):
    (found,) = (one for one in blocks(state) if one["id"] == name)
    return found


def alerts(state):
    return {one["id"]: one for one in blocks(state, "alert")}


def figures(text):
    return re.findall(r"\d+(?:[.,]\d+)*", text)


def readings(state, name):
    return {one["label"]: one for one in block(state, name)["items"]}


# What shows when


def test_the_start_hides_every_instrument():
    kinds = [one["type"] for one in blocks({})]
    assert kinds == ["heading", "message", "text", "question", "locked"]
    assert {one["value"] for one in view({})["status"]} >= {"–", "open", "developing"}


def test_each_prediction_opens_its_act():
    first = {"act1_prediction": "memory"}
    ids = {one["id"] for one in blocks(first)}
    assert {"a1_controls", "a1_chart", "a2_mail", "act2_prediction", "a2_locked"} <= ids
    assert "a1_locked" not in ids
    assert "a2_controls" not in ids
    both = {one["id"] for one in blocks(first | {"act2_prediction": "wide"})}
    assert {"a2_controls", "a2_chart", "a2_readouts", "end_heading"} <= both
    assert not any(one["type"] == "locked" for one in blocks(first | {"act2_prediction": "wide"}))


def test_settings_alone_open_nothing():
    assert [one["id"] for one in blocks({"gpus": 512, "tp": 4})] == [
        one["id"] for one in blocks({})
    ]


@pytest.mark.parametrize("state", [{}, {"act1_prediction": "ratio"}, RIGHT, WRONG])
def test_identifiers_are_unique_and_the_answer_is_plain_data(state):
    answer = view(state)
    ids = [one["id"] for one in answer["blocks"]]
    assert len(ids) == len(set(ids))
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer


@pytest.mark.parametrize(("question", "answer"), [(q, a) for q in QUESTIONS for a in q.options])
def test_every_answer_is_revealed_with_numbers(question, answer):
    shown = block(ANSWERED | {question.id: answer}, question.id)
    assert shown["selected"] == answer
    assert shown["verdict"] == ("right" if answer == question.right else "wrong")
    assert any(figure.isdigit() for figure in shown["explanation"])
    others = [a for a in question.options if a != answer]
    for other in others:
        assert (
            block(ANSWERED | {question.id: other}, question.id)["explanation"]
            != (shown["explanation"])
        )


def test_predictions_lock_and_reflections_do_not():
    for question in QUESTIONS:
        answered = ANSWERED | {question.id: next(iter(question.options))}
        assert block(answered, question.id)["locked"] is question.locks
    assert [question.locks for question in QUESTIONS] == [True, False, True, False]


@pytest.mark.parametrize(("question", "answer"), [(q, a) for q in QUESTIONS for a in q.options])
def test_only_a_locked_wrong_answer_is_followed_by_the_right_one(question, answer):
    shown = block(ANSWERED | {question.id: answer}, question.id)
    right = block(ANSWERED | {question.id: question.right}, question.id)
    assert shown["right"] == (question.right if question.locks else None)
    wrong = question.locks and answer != question.right
    assert shown["correction"] == (right["explanation"] if wrong else None)


def test_an_open_question_does_not_contain_its_answer():
    shown = block({}, PREDICTION_1.id)
    assert shown["explanation"] is shown["right"] is shown["correction"] is None


@pytest.mark.parametrize(
    ("state", "act"),
    [({}, "a1_heading"), ({"act1_prediction": "memory"}, "a1_heading"), (RIGHT, "a2_heading")],
)
def test_the_act_to_continue_with_is_a_heading(state, act):
    assert view(state)["act"] == act
    assert block(state, act)["type"] == "heading"


# What is refused


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"gpu": 8}, "control 'gpu' does not exist; did you mean 'gpus|control 'gpu' does not"),
        ({"gpus": 12}, r"gpus = 12 is out of range: give one of 8, 16"),
        ({"gpus": True}, "gpus = True"),
        ({"gpus": 8.0}, "gpus = 8.0"),
        ({"gpus": None}, "gpus = None"),
        ({"gpus": [8]}, "gpus"),
        ({"tp": 0}, "tp = 0 is out of range"),
        ({"fabric": "token_ring"}, "fabric = 'token_ring' is out of range"),
        ({"fabric": ["nvlink4"]}, "fabric"),
        ({"act1_prediction": "e"}, "act1_prediction = 'e'.*or None for no answer"),
        ({"show_derivation_1": 1}, "show_derivation_1 = 1 .*True or False"),
        ({1: 2}, "control 1"),
        ([], r"state = \[\] must be a mapping"),
        (None, "state = None"),
    ],
)
def test_states_that_no_student_can_have_are_refused(state, words):
    with pytest.raises(ConfigError, match=words):
        view(state)


def test_every_value_of_every_control_is_shown():
    for control in (*EXPLORER, *DESIGN):
        values = getattr(control, "values", None) or list(control.options)
        for value in values:
            shown = view(ANSWERED | {control.id: value})["blocks"]
            found = [
                item["value"]
                for one in shown
                if one["type"] == "controls"
                for item in one["items"]
                if item["id"] == control.id
            ]
            assert found == [value]


# Failure states


def test_act_one_runs_out_of_memory_and_of_sequences():
    state = ANSWERED | {"model": "33b"}
    memory = readings(state, "a1_readouts")["Memory"]
    assert memory["tone"] == "bad"
    assert memory["value"] in alerts(state)["a1_memory"]["text"]
    assert "a1_memory" not in alerts(ANSWERED)
    few = ANSWERED | {"gpus": 1024}
    assert figures(alerts(few)["a1_batch"]["text"]) == ["512", "1,024"]
    assert "a1_batch" not in alerts(ANSWERED | {"gpus": 512})


def test_the_wall_shows_where_more_than_half_is_lost():
    assert "a1_wall" in alerts(ANSWERED | {"gpus": 512})
    assert "a1_wall" not in alerts(ANSWERED | {"gpus": 64})
    assert "a1_wall" not in alerts(ANSWERED | {"gpus": 512, "held": "each", "gpu_batch": 64})


@pytest.mark.parametrize(
    ("changes", "name", "numbers"),
    [
        ({"zero": "replicated"}, "a2_memory", {"78.7", "99.1"}),
        ({"tp": 16}, "a2_servers", {"16", "2", "8"}),
        ({"tp": 32}, "a2_servers", {"32", "4", "8"}),
        ({"microbatches": 24}, "a2_bubble", {"4", "24", "11.1"}),
        ({"microbatches": 32}, "a2_microbatches", {"1,536", "32", "1.5", "48"}),
        ({"pp": 3}, "a2_sizes", {"8", "3", "24", "1024"}),
        ({"tp": 128, "pp": 1}, "a2_sizes", {"128", "96"}),
        ({"tp": 8, "pp": 128}, "a2_sizes", {"128", "96"}),
        ({"pp": 64}, "a2_layers", {"96", "64", "2"}),
    ],
)
def test_every_failure_of_a_design_can_be_met(changes, name, numbers):
    state = RIGHT | changes
    found = alerts(state)
    assert name in found
    assert numbers <= set(figures(found[name]["text"]))
    assert "a2_accepted" not in found or name == "a2_layers"


def test_advice_about_memory_depends_on_what_does_not_fit():
    def advice(changes):
        return re.sub(r"[\d.,]+", "", alerts(RIGHT | changes)["a2_memory"]["text"])

    too_many_parameters = [advice({"zero": "replicated"}), advice({"pp": 1})]
    assert too_many_parameters[0] == too_many_parameters[1]
    assert advice({"microbatches": 8}) != too_many_parameters[0]


def test_a_design_without_failures_is_accepted():
    assert set(alerts(RIGHT)) == {"a2_accepted"}


def test_parts_of_the_memory_add_up():
    *parts, total = (float(row[1].split()[0]) for row in block(RIGHT, "a2_memory_parts")["rows"])
    assert sum(parts) == pytest.approx(total, abs=0.3)


def test_sizes_that_do_not_multiply_up_show_no_numbers():
    state = RIGHT | {"pp": 3, "show_derivation_2": True}
    assert {item["value"] for item in block(state, "a2_readouts")["items"]} == {"–"}
    assert block(state, "show_derivation_2")["steps"] == []
    assert "invalid" in str(view(state)["status"])


# Instruments


@pytest.mark.parametrize("switch", ["show_derivation_1", "show_derivation_2"])
def test_a_derivation_opens_when_asked_and_holds_the_shown_numbers(switch):
    closed, opened = block(RIGHT, switch), block(RIGHT | {switch: True}, switch)
    assert closed["steps"] == []
    assert not closed["open"]
    assert opened["open"]
    lines = opened["steps"]
    assert all(
        set(line) == {"equation_text", "numbers_text", "value_text", "source"} for line in lines
    )
    assert any(line["source"] for line in lines)
    (mfu,) = (line["value_text"] for line in lines if line["equation_text"].startswith("mfu = "))
    name = "a1_readouts" if switch == "show_derivation_1" else "a2_readouts"
    shown = float(readings(RIGHT | {switch: True}, name)["MFU"]["value"])
    assert 100 * float(mfu) == pytest.approx(shown, abs=0.06)


def test_derived_names_follow_from_line_to_line():
    lines = block(RIGHT | {"show_derivation_1": True, "gpus": 512}, "show_derivation_1")["steps"]
    asked = {"mfu"}
    for line in lines:
        name, _, equation = line["equation_text"].partition(" = ")
        assert name in asked
        asked |= set(re.findall(r"[\w.]+", equation))
    assert not any(line["value_text"] in ("0 s", "0") for line in lines)


def test_the_chart_leaves_out_what_cannot_run():
    chart = block(ANSWERED | {"global_batch": 256}, "a1_chart")
    assert [x for x, _ in chart["series"][0]["points"]] == [8, 16, 32, 64, 128, 256]
    assert len(block(ANSWERED | {"held": "each"}, "a1_chart")["series"][0]["points"]) == 8


@pytest.mark.parametrize("name", ["a1_chart", "a2_chart"])
def test_a_chart_says_all_it_shows_in_words_too(name):
    chart = block(RIGHT, name)
    assert chart["caption"].endswith(".")
    assert chart["alt"].endswith(".")
    points = {x for line in chart["series"] for x, _ in line["points"]}
    assert len(chart["table"]["rows"]) == len(points)
    assert chart["y"]["label"].endswith(f"({chart['y']['unit']})")
    low, high = chart["y"]["min"], chart["y"]["max"]
    assert all(low <= y <= high for line in chart["series"] for _, y in line["points"])


def test_the_marker_is_the_reading():
    for state, name, readout, label in (
        (ANSWERED | {"gpus": 128}, "a1_chart", "a1_readouts", "MFU"),
        (RIGHT, "a2_chart", "a2_readouts", "Bubble"),
    ):
        marker = block(state, name)["marker"]
        assert f"{marker['y']:.1f}" == readings(state, readout)[label]["value"]


def test_only_the_batch_that_counts_can_be_set():
    def disabled(state):
        items = block(ANSWERED | state, "a1_controls")["items"]
        return {item["id"] for item in items if item["disabled"]}

    assert disabled({}) == {"gpu_batch"}
    assert disabled({"held": "each"}) == {"global_batch"}


def test_no_control_is_forgotten():
    shown = {
        item["id"]
        for one in blocks(RIGHT)
        for item in (one["items"] if one["type"] == "controls" else [one])
    }
    assert set(LAB.controls.by_id) <= shown
