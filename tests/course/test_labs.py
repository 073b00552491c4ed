"""What every lab keeps: what shows when, what locks, and that its ledger comes back."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import subprocess
import sys

import pytest

from mlsysim import ConfigError
from mlsysim.core.errors import UnknownEntryError
from mlsysim_course.controls import Choice, Estimate, Question, Selector, Slider, Toggle, true_claim
from mlsysim_course.labs.catalog import LABS, PAGES, explorer, find, page_lab
from tests.conftest import ROOT
from tools.pages.pages import read_page

ALL = [find(name) for name in LABS]
IN_ACTS = [lab for lab in ALL if lab.name not in PAGES]
IN_PAGES = [page_lab(name) for name in PAGES]
every_page = pytest.mark.parametrize("lab", IN_PAGES, ids=PAGES)


def name(lab):
    return lab.name


def right(asked):
    return asked.right if isinstance(asked, Question) else asked.truth()


def answers(asked):
    """Every option of a question; for a number, the ends, the truth and its neighbors."""
    if isinstance(asked, Question | Choice):
        return list(asked.options)
    return [asked.low, asked.truth() / 3, asked.truth(), 2 * asked.truth(), asked.high]


def predicted(lab):
    return {asked.id: right(asked) for asked in lab.predictions}


def block(lab, state, wanted):
    (found,) = (one for one in lab.view(state)["blocks"] if one["id"] == wanted)
    return found


def ids(lab, state):
    return [one["id"] for one in lab.view(state)["blocks"]]


def settings(lab):
    return [
        control
        for control in lab.controls.by_id.values()
        if isinstance(control, Slider | Selector | Toggle)
    ]


def values(control):
    if isinstance(control, Slider):
        return list(control.values)
    return list(control.options) if isinstance(control, Selector) else [False, True]


@pytest.mark.parametrize("lab", IN_ACTS, ids=name)
def test_each_prediction_opens_its_act(lab):
    first, second = lab.acts
    start = ids(lab, {})
    assert start[-1] == f"{first.id}_locked"
    assert first.prediction.id == start[-2]
    assert not any("controls" in one for one in start)
    one = ids(lab, {first.prediction.id: right(first.prediction)})
    assert f"{first.id}_controls" in one
    assert one[-1] == f"{second.id}_locked"
    both = ids(lab, predicted(lab))
    assert f"{second.id}_controls" in both
    assert both[-1] == "end_tier"


@pytest.mark.parametrize("lab", IN_ACTS, ids=name)
def test_settings_alone_open_nothing_and_earn_nothing(lab):
    state = {control.id: values(control)[-1] for control in settings(lab)}
    assert ids(lab, state) == ids(lab, {})
    kept = lab.ledger(state)
    assert kept["design"] is None
    assert kept["result"] is None
    assert kept["tier"] == "developing"


@pytest.mark.parametrize("lab", IN_ACTS, ids=name)
def test_predictions_lock_and_reflections_do_not(lab):
    for act in lab.acts:
        assert block(lab, predicted(lab), act.prediction.id)["locked"]
        state = predicted(lab) | {act.reflection.id: next(iter(act.reflection.options))}
        assert not block(lab, state, act.reflection.id)["locked"]


@pytest.mark.parametrize("lab", IN_ACTS, ids=name)
def test_every_answer_is_explained_with_numbers(lab):
    for act in lab.acts:
        for asked in (act.prediction, act.reflection):
            said = []
            for answer in answers(asked):
                shown = block(lab, predicted(lab) | {asked.id: answer}, asked.id)
                assert shown["selected"] == answer
                assert shown["verdict"] == asked.verdict(answer)
                assert any(letter.isdigit() for letter in shown["explanation"])
                said.append(shown["explanation"])
            assert len(set(said)) == len(said), asked.id


@pytest.mark.parametrize("lab", ALL, ids=name)
def test_an_estimate_is_right_within_its_factor_and_no_further(lab):
    for asked in lab.predictions:
        if not isinstance(asked, Estimate):
            continue
        truth = asked.truth()
        assert asked.low < truth / asked.factor < truth * asked.factor < asked.high
        for factor, verdict in ((0.999, "right"), (1.001, "wrong")):
            reach = asked.factor**factor if factor < 1 else asked.factor * factor
            assert asked.verdict(truth * reach) == verdict
            assert asked.verdict(truth / reach) == verdict
        assert f"{asked.factor:g}" in asked.tolerance


@pytest.mark.parametrize("value", ["12", True, math.nan, math.inf, -1, 0, [3], 10**400])
def test_an_estimate_takes_numbers_in_its_range_only(value):
    lab = find("checkpointing")
    with pytest.raises(ConfigError, match="act1_prediction = "):
        lab.view({"act1_prediction": value})


@pytest.mark.parametrize("lab", IN_ACTS, ids=name)
def test_every_control_is_drawn(lab):
    shown = set()
    for one in lab.view(predicted(lab))["blocks"]:
        shown |= {one["id"], *(item.get("id") for item in one.get("items", ()))}
    assert set(lab.controls.by_id) <= shown


@pytest.mark.parametrize("lab", IN_ACTS, ids=name)
def test_any_settings_give_plain_data_that_comes_back(lab):
    draw = random.Random(lab.name)
    asked = [one for act in lab.acts for one in (act.prediction, act.reflection)]
    for _ in range(15):
        state = {control.id: draw.choice(values(control)) for control in settings(lab)}
        state |= {one.id: draw.choice(answers(one)) for one in asked}
        answer = lab.view(state)
        assert len(ids(lab, state)) == len(set(ids(lab, state)))
        text = json.dumps(answer, allow_nan=False)
        assert json.loads(text) == answer
        assert lab.restore(json.dumps(answer["ledger"])) == state
        for one in answer["blocks"]:
            if one["type"] == "chart":
                inside = [y for line in one["series"] for _, y in line["points"]]
                assert one["y"]["min"] <= min(inside)
                assert max(inside) <= one["y"]["max"]


@every_page
def test_the_page_asks_the_questions_of_the_course_with_an_explanation_of_each_option(lab):
    page = read_page(ROOT / "docs/labs" / f"{lab.name.replace('_', '-')}.qmd")
    text = "\n".join(part.text for part in page.texts)
    divs = re.findall(r"^::: \{#(\w+) ([^}]*)\}\n(.*?)^:::$", text, re.MULTILINE | re.DOTALL)
    found = {name: (classes, content) for name, classes, content in divs}
    assert [*found] == [asked.id for asked in lab.questions]
    for asked in lab.questions:
        classes, content = found[asked.id]
        assert (".mls-locks" in classes) == asked.locks
        if isinstance(asked, Choice):
            assert tuple(re.findall(r'\]\{data-answer="([\w-]+)"\}', content)) == asked.options
        _, *options = re.split(r"^-   ", content, flags=re.MULTILINE)
        assert all("\n\n" in option.strip() for option in options or [content])
    instruments = re.findall(r'\.mls-explorer data-name="([\w/-]+)"', text)
    assert instruments == [one.name for one in lab.explorers]
    assert f'data-lab="{lab.name}"' in text


@every_page
def test_answers_are_judged_and_a_locked_one_brings_the_right_one(lab):
    for asked in lab.questions:
        for answer in answers(asked):
            shown = lab.view(predicted(lab) | {asked.id: answer})["questions"][asked.id]
            assert shown["answer"] == answer
            assert shown["verdict"] == asked.verdict(answer)
            locked = isinstance(asked, Choice) and asked.locks
            assert shown["right"] == (asked.truth() if locked else None)
            if isinstance(asked, Estimate):
                assert f"{answer:g}" in shown["reply"]
        assert asked.verdict(asked.truth()) == "right"


@every_page
def test_settings_of_a_page_come_back(lab):
    draw = random.Random(lab.name)
    for _ in range(10):
        state = {control.id: draw.choice(values(control)) for control in settings(lab)}
        state |= {asked.id: draw.choice(answers(asked)) for asked in lab.questions}
        shown = lab.view(state)
        assert json.loads(json.dumps(shown, allow_nan=False)) == shown
        assert lab.restore(json.dumps(shown["ledger"])) == state
    alone = {control.id: values(control)[-1] for control in settings(lab)}
    kept = lab.view(alone)["ledger"]
    assert kept["design"] is None
    assert kept["result"] is None
    assert kept["tier"] == "developing"


@every_page
def test_a_ledger_of_another_format_is_refused(lab):
    with pytest.raises(ConfigError) as caught:
        lab.restore(json.dumps(lab.ledger({}) | {"format": 1}))
    assert caught.value.argument == "format"


def test_an_instrument_is_found_by_its_lab_and_an_unknown_one_is_refused():
    assert explorer("checkpointing/plan") in find("checkpointing").explorers
    for unknown in ("checkpointing/nothing", "roofline/nothing", "nothing"):
        with pytest.raises(UnknownEntryError):
            explorer(unknown)


def test_exactly_one_claim_is_true():
    assert true_claim({"one": False, "two": True}) == "two"
    for claims in ({"one": True, "two": True}, {"one": False}):
        with pytest.raises(ConfigError, match="claims"):
            true_claim(claims)


@pytest.mark.parametrize("lab", ALL, ids=name)
def test_what_a_ledger_claims_is_not_believed(lab):
    forged = lab.ledger({}) | {"tier": "optimal"}
    assert lab.ledger(lab.restore(json.dumps(forged)))["tier"] == "developing"


@pytest.mark.parametrize(("lab", "other"), [*itertools.permutations(ALL, 2)])
def test_a_ledger_of_another_lab_is_refused(lab, other):
    with pytest.raises(ConfigError, match=f"not a ledger of the lab {lab.name}"):
        lab.restore(json.dumps(other.ledger({})))


def test_an_unknown_lab_is_refused_with_the_known_ones():
    with pytest.raises(UnknownEntryError, match="checkpointing"):
        find("checkpoint")


@pytest.mark.parametrize("lab", ALL, ids=name)
def test_a_lab_needs_no_numpy(lab):
    """A page runs it in a browser, where there is none."""
    switches = {control.id: True for control in settings(lab) if isinstance(control, Toggle)}
    code = (
        "import sys\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        heavy = {'numpy', 'matplotlib', 'pandas', 'yaml'}\n"
        "        if name.split('.')[0] in heavy:\n"
        "            raise ModuleNotFoundError(f'{name} is blocked')\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "sys.modules['dask'] = None\n"  # Pint loads it where there is one
        f"from mlsysim_course.labs.{lab.name} import LAB\n"
        f"print(len(LAB.view({predicted(lab) | switches!r})['status']))\n"
        "for one in getattr(LAB, 'explorers', ()):\n"
        "    readings = one.view({})['readings']\n"
        "    [one.derivation({}, index) for index in range(len(readings))]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5
