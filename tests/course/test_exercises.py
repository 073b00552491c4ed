"""Checkers of exercises: they know right from wrong, say where to look, and never the answer."""

import math
import re
import subprocess
import sys
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from mlsysim import Q_, ConfigError, Hardware, Models, UnknownEntryError
from mlsysim.core.units import dress, has_dimension
from mlsysim_course import check
from mlsysim_course.answers import AmountAsked, ChoiceAsked, CountAsked
from mlsysim_course.exercises import EXERCISES
from tests.conftest import ROOT

PARTS = [(exercise, name) for exercise in EXERCISES.values() for name in exercise.parts]
every_part = pytest.mark.parametrize(
    ("exercise", "name"), PARTS, ids=[f"{exercise.name}:{name}" for exercise, name in PARTS]
)
MISTAKES = [
    (exercise, name, wrong, hint)
    for exercise, name in PARTS
    for wrong, hint in getattr(exercise.parts[name], "mistakes", {}).items()
]
TUTORIALS = [p for p in sorted((ROOT / "docs/tutorials").glob("*.qmd")) if p.stem != "index"]
# Their answers are arrays: simulated ranks, and all plans of a job.
WITH_NUMPY = ("tensor-parallel-", "strategy-")


def spoken(part, value):
    """Return a value in the words of a student."""
    if isinstance(part, CountAsked) and value == math.inf:
        return "never"
    if isinstance(part, AmountAsked) and has_dimension(part.unit):
        return dress(value, part.unit)
    return value


@cache
def right_answers(name):
    """Return all answers of an exercise; some of them take a while to compute."""
    return {other: spoken(part, part.truth) for other, part in EXERCISES[name].parts.items()}


def verdict_on(exercise, name, value):
    """Judge one part, all others being right."""
    return check(exercise.name, **right_answers(exercise.name) | {name: value})


def figures(part):
    """Return the ways in which a text may spell the truth."""
    truth = part.truth
    if isinstance(part, ChoiceAsked):
        return {str(truth)}
    if not math.isfinite(truth) or truth == 0:
        return set()
    shown = dress(truth, part.unit).magnitude if has_dimension(part.unit) else truth
    if isinstance(part, CountAsked):
        return {str(int(truth)), f"{truth:,.0f}"}
    digits = {f"{shown:.{places}f}" for places in (1, 2, 3)} | {f"{shown:.{n}g}" for n in (2, 3, 4)}
    return digits | {f"{shown:,.0f}", f"{100 * shown:.0f}"}


@every_part
def test_the_truth_is_right(exercise, name):
    part = exercise.parts[name]
    verdict = verdict_on(exercise, name, spoken(part, part.truth))
    assert verdict
    assert verdict.right
    assert repr(verdict) == "Right."


# By hand, from figures of datasheets and model cards: an H100 SXM has 989.4 TFLOP/s in 16 bits,
# 3.35 TB/s and 450 GB/s of NVLink in one direction; an A100 has 312 TFLOP/s, and a V100 has 125.
BY_HAND = {
    # 25.557 million weights, 4.09 billion multiply-accumulates and 11.1 million activations
    ("hello-world-1", "batch"): math.ceil(
        2 * 25.557e6 * (ridge := 0.5 * 989.4e12 / 3.35e12) / (2 * 4.09e9 - 4 * 11.1e6 * ridge)
    ),
    ("hello-world-2", "batch"): math.inf
    if 2 * 4.09e9 / (4 * 11.1e6) < 989.4e12 / 3.35e12
    else None,
    ("hello-world-5", "efficiency"): 256 * 2 * 4.09e9 / 84.14e-3 / 125e12,
    ("serving-fleet-1", "price"): 8 * 3 / (3600 * 1500 / 2) * 1e6,
    ("serving-fleet-2", "narrow"): math.ceil(671e9 / 141e9),
    ("serving-fleet-2", "wide"): math.ceil(2 * 671e9 / 141e9),
    ("distributed-3", "microbatches"): next(m for m in (8, 16, 32, 64) if 7 / (7 + m) < 0.1),
    # four microbatches of three ticks, and two other stages that fill and drain
    ("pipelines-1", "length"): 3 * 4 + 3 * 2,
    ("pipelines-1", "idle"): 3 * 2,
    ("tensor-parallel-1", "excess"): 4 - 1,
    ("tensor-parallel-self-check", "sent"): 4 * 2 * 7 / 8 * 2 * 8192 * 8192,
    # grams over grams per kilowatt-hour, the building's share, and hours
    ("sustainability-2", "power"): 1000
    * ((539 - 31.22 - 62.44 - 291.42) * 1e6 / 385)
    / 1.1
    / (3_311_616 - 184_320 - 368_640 - 1_720_320),
    ("training-memory-1", "states"): 16 * 3_212_749_824,
    # the logits and their gradients, in 4 bytes
    ("training-memory-2", "saved"): 2 * 4 * 8192 * 128_256,
    ("mixtures-2", "experts"): 8 * (1 - (3 / 4) ** 4),
    ("quantization-1", "size"): 4 / 8 + 1 / 32,
    ("long-context-1", "tokens"): 70_553_706_496 / (80 * 8192),
    ("long-context-2", "cache"): 2 * 80 * 8 * 128 * 2 * 131_072,
    ("kernels-1", "time"): 2 * (8192 * 8192 + 2 * 8192) / 3.35e12,
    ("kernels-2", "share"): 2 * 4096 * 8192 * 8192 / 672.768e-6 / 989.4e12,
    ("kernels-3", "rows"): math.ceil(4096 * 2 * ridge / (4096 - 2 * 2 * ridge)),
    ("museum-1", "mfu"): 1.04 * 312 / 989.4,
    ("museum-2", "mfu"): 480 / 989.4,
    ("museum-3", "parameters"): 32 * (4 * 4096 * 4096 + 3 * 4096 * 11_008),
    ("museum-4", "cache"): 2 * 80 * 8 * 128 * 2 * 8192,
    ("museum-5", "cache"): 2 * 36 * 8 * 128 * 2,
    ("museum-6", "images"): 156e12 / (2 * 4.09e9),
    ("museum-7", "bandwidth"): 512 / 8 * 6.4e9,
    ("museum-8", "bubble"): 7 / 16,
    ("museum-9", "time"): 2 * 7 / 8 * 2 * 70_553_706_496 / 450e9,
}


@pytest.mark.parametrize(("name", "part"), BY_HAND)
def test_the_truth_is_what_a_calculation_by_hand_gives(name, part):
    truth = EXERCISES[name].parts[part].truth
    assert float(truth) == pytest.approx(BY_HAND[name, part], rel=1e-3)


def test_published_mistakes_of_the_museum_are_what_our_catalog_gives_for_them():
    layers = 32 * (4 * 4096 * 4096 + 2 * 4096 * 11_008)
    assert layers == 5_033_164_800
    assert 5_033_164_800 in EXERCISES["museum-3"].parts["parameters"].mistakes
    sparse, *_ = EXERCISES["museum-2"].parts["mfu"].mistakes
    assert sparse == pytest.approx(0.243, abs=0.002)
    assert Models.ResNet50.flops_per_sample.to("GFLOP").magnitude == pytest.approx(8.18, rel=1e-2)
    assert Hardware.M1_Max.memory.bandwidth.to("GB/s").magnitude == pytest.approx(409.6, rel=0.03)


@pytest.mark.parametrize(
    ("exercise", "name", "wrong", "hint"),
    MISTAKES,
    ids=[f"{exercise.name}:{name}:{index}" for index, (exercise, name, *_) in enumerate(MISTAKES)],
)
def test_every_common_mistake_is_known(exercise, name, wrong, hint):
    verdict = verdict_on(exercise, name, spoken(exercise.parts[name], wrong))
    assert not verdict
    assert hint in verdict.hint


@every_part
def test_other_wrong_answers_get_a_hint(exercise, name):
    part = exercise.parts[name]
    if isinstance(part, ChoiceAsked):
        wrong = [option for option in part.options if option != part.truth]
    else:
        truth = part.truth
        wrong = [37 * truth or 7, truth / 3] if math.isfinite(truth) else [10**7]
        wrong = [
            round(value) if isinstance(part, CountAsked) else value for value in wrong if value
        ]
    assert wrong
    for value in wrong:
        hint = verdict_on(exercise, name, spoken(part, value)).hint
        assert len(hint.removeprefix(f"{name}: ")) > 10
        if not isinstance(part, ChoiceAsked) and math.isfinite(part.truth):
            assert ("Too large" in hint) == (value > part.truth)


@every_part
def test_no_hint_tells_the_answer(exercise, name):
    part = exercise.parts[name]
    hints = [part.hint, *getattr(part, "mistakes", {}).values()]
    hints += (getattr(part, "hints", None) or {}).values()
    for hint in hints:
        for figure in figures(part):
            assert not re.search(rf"(?<![\w.,]){re.escape(figure)}(?![\w%])", hint), hint
    if not isinstance(part, ChoiceAsked):
        assert not any(
            re.search(rf"(?<![\w.,]){re.escape(figure)}(?![\w%])", part.asks)
            for figure in figures(part)
        )


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_every_exercise_of_a_tutorial_has_a_checker_and_an_answer_on_its_page(page):
    stem = page.stem.replace("_", "-")
    text = page.read_text(encoding="utf-8").split("\n## Exercises")[1]
    numbers = re.findall(r"^\*\*(\d+)\.\*\* ", text, flags=re.MULTILINE)
    names = {f"{stem}-{number}" for number in numbers}
    names |= {f"{stem}-self-check"} if "\n**Self-check.**" in text else set()
    assert names
    assert names == {name for name in EXERCISES if name.startswith(f"{stem}-")}
    assert set(re.findall(r'^check\("([\w-]+)"', text, flags=re.MULTILINE)) == names
    answers = re.findall(r"^\{\{< include /build/answers/(.+)\.qmd >\}\}$", text, re.MULTILINE)
    assert sorted(answers) == sorted(names)


def test_parts_are_answered_one_by_one():
    verdict = check("hello-world-3", throughput=2)
    assert not verdict
    assert verdict.hint.startswith("Give `bottleneck=`: whether")
    assert repr(check("hello-world-1")).startswith("Not yet. Give `batch=`: the first batch")
    nothing = check("hello-world-3")
    assert nothing.hint.count("Give `") == 2
    assert nothing._repr_markdown_().count("\n\n") == 1


def test_texts_and_rows_are_answers():
    watts = EXERCISES["sustainability-2"].parts["power"].truth
    for answer in (f"{watts} W", f"{watts / 1000} kW", Q_(watts, "W")):
        assert check("sustainability-2", answer)
    assert check("serving-one-gpu-4", gpu=Hardware.B200).hint.startswith("Give `users=`")
    assert "bits or bytes" in check("serving-one-gpu-2", Q_(94_000, "1/s")).hint
    assert "a thousand" in check("sustainability-2", f"{watts} kW").hint


@pytest.mark.parametrize("answer", [350, 350.0, np.int64(350), Fraction(350), "350", "3.5e2"])
def test_a_number_without_its_unit_gets_a_hint_that_names_the_unit(answer):
    verdict = check("sustainability-2", answer)
    assert not verdict
    assert f'"{answer} W"' in verdict.hint if isinstance(answer, str) else '"W"' in verdict.hint


def test_a_number_between_two_whole_ones_is_to_be_rounded():
    truth = EXERCISES["hello-world-1"].parts["batch"].truth
    up, down, far = (check("hello-world-1", truth + way) for way in (-0.4, 0.4, 2.5))
    assert not up
    assert not down
    assert "Round up" in up.hint
    assert "Round down" in down.hint
    assert "whole" in far.hint
    assert "Round" not in far.hint


def test_never_is_judged_in_both_directions():
    some, none = EXERCISES["distributed-3"], EXERCISES["hello-world-2"]
    assert check(none.name, "never")
    assert check(none.name, 50).hint.startswith("That number is not right")
    assert check(some.name, "never").hint.startswith("There is such a number")
    assert '"never"' in check(none.name).hint


def test_rows_may_be_named_as_in_the_catalog():
    for name in (Hardware.B200, "B200", Hardware.B200.name):
        assert check("serving-one-gpu-4", gpu=name).hint.startswith("Give `users=`")
    with pytest.raises(ConfigError, match="must be one of"):
        check("serving-one-gpu-4", gpu="T4")


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("hello-world-1", Q_(3, "ms"), "dimension"),
        ("hello-world-1", True, "one number"),
        ("hello-world-1", [1, 2], "one number"),
        ("hello-world-5", "a half", "not an amount"),
        ("hello-world-5", float("nan"), "finite"),
        ("sustainability-2", Q_(350, "J"), r'wrong dimension.*"W"'),
        ("sustainability-self-check", "WUE", "must be one of 'PUE', 'gamma', 't'"),
        ("distributed-1", True, "several parts.*efficiency=.*feasible="),
    ],
    ids=str,
)
def test_answers_of_another_kind_are_refused(name, answer, words):
    with pytest.raises(ConfigError, match=words):
        check(name, answer)


ODD = [
    "9**9**9**9 ms",
    "(1 + 1) ms",
    10**400,
    10**5000,
    -(10**400),
    float("inf"),
    np.complex64(3),
    np.array("3"),
    np.bytes_(b"3"),
    np.True_,
    np.arange(3),
    "x" * 5000,
    {"a": ["x" * 5000] * 9},
]


@pytest.mark.parametrize("answer", ODD, ids=lambda answer: type(answer).__name__)
@pytest.mark.parametrize("name", ["hello-world-1", "hello-world-5", "sustainability-self-check"])
def test_odd_answers_are_refused_and_not_evaluated(name, answer):
    with pytest.raises(ConfigError) as caught:
        check(name, answer)
    assert caught.value.argument in EXERCISES[name].parts
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", [["hello-world-1"], None, np.arange(2), "x" * 5000])
def test_a_name_of_another_type_is_an_unknown_one(name):
    with pytest.raises(UnknownEntryError):
        check(name, 3)


def test_unknown_names_get_the_nearest():
    with pytest.raises(UnknownEntryError, match="did you mean hello-world-1"):
        check("hello-word-1", 3)
    with pytest.raises(ConfigError, match=r"has no part 'user'.*users="):
        check("hello-world-4", user=3)


WITHOUT_NUMPY = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"numpy", "matplotlib", "pandas"}:
            raise ModuleNotFoundError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
from mlsysim_course.exercises import EXERCISES
for exercise in EXERCISES.values():
    if not exercise.name.startswith(WITH_NUMPY):
        for part in exercise.parts.values():
            part.truth
"""


def test_only_answers_made_of_arrays_need_numpy():
    code = f"WITH_NUMPY = {WITH_NUMPY}\n{WITHOUT_NUMPY}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", [float, Fraction])  # schedules of pipelines count in fractions
def test_a_share_in_percent_gets_a_hint(kind):
    share = EXERCISES["hello-world-5"].parts["efficiency"].truth
    assert "percent" in check("hello-world-5", kind(100 * share)).hint
