"""What every lab keeps: what shows when, what locks, and that its ledger comes back."""

import itertools
import json
import math
import random
import re

import pytest

from mlsysim import ConfigError, __version__
from mlsysim.core.errors import UnknownEntryError
from mlsysim_course.controls import Choice, Estimate, Selector, Slider, true_claim
from mlsysim_course.labs.catalog import LABS, explorer, find
from tests.conftest import ROOT
from tests.course.instruments import DESIGNS, alerts
from tools.pages.pages import read_page

ALL = [find(name) for name in LABS]
every_lab = pytest.mark.parametrize("lab", ALL, ids=LABS)


def answers(asked):
    """Every option of a question; for a number, the ends, the truth and its neighbors."""
    if isinstance(asked, Choice):
        return list(asked.options)
    return [asked.low, asked.truth() / 3, asked.truth(), 2 * asked.truth(), asked.high]


def predicted(lab):
    return {asked.id: asked.truth() for asked in lab.predictions}


def settings(lab):
    return [
        control for control in lab.controls.by_id.values() if isinstance(control, Slider | Selector)
    ]


def values(control):
    return list(control.values if isinstance(control, Slider) else control.options)


@every_lab
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
        assert f"{asked.factor:g}" in asked.declaration()["tolerance"]


@pytest.mark.parametrize("value", ["12", True, math.nan, math.inf, -1, 0, [3], 10**400])
def test_an_estimate_takes_numbers_in_its_range_only(value):
    lab = find("checkpointing")
    with pytest.raises(ConfigError, match="act1_prediction = "):
        lab.view({"act1_prediction": value})


@every_lab
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


@every_lab
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


@every_lab
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


HEAD = '{"lab": "parallelism_paradox", "format": 3'


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("", "text"),
        ("{", "text"),
        (None, "text"),
        ("[]", "text"),
        ('{"lab": "another"}', "text"),
        ('{"lab": "parallelism_paradox"}', "format"),
        (f'{HEAD[:-1]}1, "state": {{}}}}', "format"),
        (f"{HEAD}}}", "state"),
        (f'{HEAD}, "state": 3}}', "state"),
        (f'{HEAD}, "state": {{"gpus": 9}}}}', "gpus"),
        (f'{HEAD}, "state": {{"act2_prediction": "wide"}}}}', "act2_prediction"),
        # Enormous ones are refused in a few words.
        ("[" * 100_000, "text"),
        ('{"a":' * 5_000 + "1" + "}" * 5_000, "text"),
        (" " * 10**6, "text"),
        ('{"lab": "parallelism_paradox", "format": ' + "9" * 5_000 + "}", "text"),
        (json.dumps({"lab": "parallelism_paradox", "format": [[["x" * 50_000]]]}), "format"),
        (f'{HEAD}, "state": {{"gpus": "{"x" * 50_000}"}}}}', "gpus"),
        (f'{HEAD}, "state": ["{"x" * 50_000}"]}}', "state"),
    ],
)
def test_a_damaged_ledger_is_refused(text, argument):
    with pytest.raises(ConfigError) as caught:
        find("parallelism_paradox").restore(text)
    assert caught.value.argument == argument
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"gpux": 8}, "control 'gpux' does not exist; did you mean gpus"),
        ({"x" * 10**6: 1}, "control"),
        ({1: 2}, "control 1"),
        ({"gpus": 12}, r"gpus = 12 is out of range: give one of 8, 16"),
        ({"gpus": True}, "gpus = True"),
        ({"gpus": 8.0}, "gpus = 8.0"),
        ({"gpus": None}, "gpus = None"),
        ({"fabric": "token_ring"}, "fabric = 'token_ring' is out of range"),
        ({"fabric": ["nvlink4"]}, "fabric"),
        ({"act1_prediction": "e"}, "act1_prediction = 'e'.*or None for no answer"),
        ([], r"state = \[\] must be a mapping"),
        (None, "state = None"),
    ],
)
def test_states_that_no_student_can_have_are_refused(state, words):
    with pytest.raises(ConfigError, match=words) as caught:
        find("parallelism_paradox").view(state)
    assert len(str(caught.value)) < 600


@every_lab
def test_a_play_through_is_recorded_and_continues(lab):
    right = {asked.id: asked.truth() for asked in lab.questions} | DESIGNS[lab.name]
    kept = lab.ledger(right)
    assert kept["version"] == __version__
    verdicts = [*kept["predictions"].values(), *kept["reflections"].values()]
    assert {one["verdict"] for one in verdicts} == {"right"}
    assert DESIGNS[lab.name].items() <= kept["design"].items()
    shown = lab.explorers[-1].view(kept["design"])["readings"]
    assert kept["result"]["readings"] == {item["label"]: item["value"] for item in shown}
    assert lab.view(lab.restore(json.dumps(kept))) == lab.view(right)


@pytest.mark.parametrize(
    ("instrument", "changes", "names"),
    [
        ("checkpointing/interval", {"interval": 120}, {"interval"}),
        ("checkpointing/interval", {"interval": 2}, {"interval"}),
        ("checkpointing/interval", {"gpus": 65_536, "interval": 256}, {"stuck"}),
        ("checkpointing/interval", {"interval": 20}, set()),
        ("checkpointing/plan", {"plan_bandwidth": 800, "plan_interval": 8}, {"budget"}),
        ("checkpointing/plan", {}, {"accepted"}),
        ("checkpointing/plan", {"plan_bandwidth": 25, "plan_interval": 256}, {"stuck"}),
        ("roofline/ridge", {"device": "t4"}, {"memory"}),
        ("roofline/ridge", {"batch": 512}, {"beyond"}),
        ("roofline/plan", {"plan_device": "t4", "plan_precision": "fp16"}, {"memory"}),
        ("roofline/plan", {"plan_device": "a100", "plan_batch": 512}, {"beyond", "slow"}),
        ("roofline/plan", {"plan_device": "l4", "plan_batch": 8}, {"slow"}),
        ("roofline/plan", {}, {"accepted"}),
        ("serving_slo/traffic", {}, set()),
        ("serving_slo/traffic", {"rate": 95}, {"late"}),
        ("serving_slo/traffic", {"limit": 32}, {"overload"}),
        ("serving_slo/plan", {}, {"accepted"}),
        ("serving_slo/plan", {"plan_gpus": 10}, {"budget"}),
        ("serving_slo/plan", {"plan_gpus": 8}, {"late"}),
        ("serving_slo/plan", {"plan_precision": "bf16"}, {"overload"}),
        ("parallelism_paradox/scaling", {}, set()),
        ("parallelism_paradox/scaling", {"model": "65b"}, {"memory"}),
        ("parallelism_paradox/scaling", {"gpus": 1024}, {"batch"}),
        ("parallelism_paradox/scaling", {"gpus": 512}, {"wall"}),
        ("parallelism_paradox/scaling", {"gpus": 512, "batch": "each-64"}, set()),
        ("pipeline_builder/plan", {"plan_schedule": "gpipe"}, {"memory"}),
        ("pipeline_builder/plan", {"plan_stages": 4, "plan_schedule": "1f1b"}, {"microbatches"}),
        ("pipeline_builder/plan", {}, {"accepted"}),
    ],
)
def test_every_alert_can_be_met(instrument, changes, names):
    lab = find(instrument.partition("/")[0])
    design = DESIGNS[lab.name] if instrument == lab.explorers[-1].name else {}
    assert set(alerts(instrument, design | changes)) == names


@every_lab
def test_tiers_follow_the_rule(lab):
    """The tier counts both predictions and the design; no instrument starts with the answer."""
    first, second = lab.predictions
    right = predicted(lab)
    for count, tier in enumerate(("developing", "partial", "partial", "optimal")):
        for changed in itertools.combinations(("first", "second", "design"), 3 - count):
            state = right | ({} if "design" in changed else DESIGNS[lab.name])
            for name, asked in (("first", first), ("second", second)):
                if name in changed:
                    others = (one for one in answers(asked) if asked.verdict(one) == "wrong")
                    state[asked.id] = next(others)
            assert lab.ledger(state)["tier"] == tier


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


@every_lab
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
