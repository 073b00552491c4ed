"""Explorers: their numbers are those of the package, each with a derivation that ends in it."""

import json
import math
import random
import re
import subprocess
import sys

import pytest

from mlsysim import (
    Q_,
    ConfigError,
    DistributedSolver,
    Fleet,
    Hardware,
    Models,
    ReliabilitySolver,
    ServingSolver,
    SingleNodeSolver,
    Systems,
    UnknownEntryError,
    simulate_pipeline,
)
from mlsysim.registry.importer.published import configurations
from mlsysim_course.controls import Paste, Slider
from mlsysim_course.explorers import EXPLORERS, declarations
from mlsysim_course.explorers.declare import amount, figure
from mlsysim_course.explorers.training import RING
from mlsysim_course.labs.catalog import LABS, explorer, find
from tests.conftest import ROOT
from tools.labs.browser import HIDDEN

OF_LABS = [one.name for lab in LABS for one in find(lab).explorers]
every_explorer = pytest.mark.parametrize("name", [*EXPLORERS, *OF_LABS])


def random_states(name, number, seed=0):
    """Return settings of an explorer, in which every control is moved."""
    chance = random.Random(f"{name} {seed}")
    for _ in range(number):
        state = {}
        for item in explorer(name).controls:
            if isinstance(item, Paste):
                continue
            choices = item.values if isinstance(item, Slider) else list(item.options)
            state[item.id] = chance.choice(choices)
        yield state


def numbers(name, state):
    """Return the readings of an explorer by their labels."""
    return {item["label"]: item["value"] for item in explorer(name).view(state)["readings"]}


@every_explorer
def test_random_settings_are_answered_or_refused_in_words(name):
    answered = 0
    for state in random_states(name, 25):
        try:
            shown = explorer(name).view(state)
        except ConfigError:
            continue
        answered += 1
        json.dumps(shown, allow_nan=False)
        assert shown["charts"]
        assert all(math.isfinite(item["value"]) for item in shown["readings"])
        for chart in shown["charts"]:
            points = [point for line in chart.get("series", ()) for point in line["points"]]
            logarithmic = [axis["log"] for axis in (chart["x"], chart.get("y", chart["x"]))]
            for point in points:
                assert all(value > 0 for value, log in zip(point, logarithmic, strict=True) if log)
    assert answered > 10


@every_explorer
def test_derivations_end_in_the_number_that_is_shown(name):
    for state in ({}, *random_states(name, 1, seed=1)):
        try:
            answer = explorer(name).solve(state)
        except ConfigError:
            continue
        assert answer.readings
        for item in answer.readings:
            (root,) = item.derive().roots.values()
            number = amount(root.value, item.measured) * item.scale
            assert math.isclose(item.value, number, rel_tol=1e-9, abs_tol=1e-12), item.label


@every_explorer
def test_derivations_are_plain_data_with_sources(name):
    """The first and the last one, since each solves the explorer's question again."""
    shown = explorer(name).view({})["readings"]
    for index in {0, len(shown) - 1}:
        derivation = explorer(name).derivation({}, index)
        assert json.loads(json.dumps(derivation, allow_nan=False)) == derivation
        assert derivation["label"] == shown[index]["label"]
        assert derivation["steps"] or derivation["inputs"]
        addresses = [item["address"] for item in derivation["inputs"] if item["address"]]
        addresses += [one for step in derivation["steps"] for one in step["addresses"]]
        assert all(one.startswith("http") for one in addresses)
    for index in (len(shown), -1):
        with pytest.raises(ConfigError, match="index"):
            explorer(name).derivation({}, index)


def test_the_roofline_is_the_larger_of_two_times():
    state = {"device": "H100", "model": "ResNet50", "batch": 16, "precision": "bf16"}
    own = numbers("roofline", state)
    result = SingleNodeSolver.solve(
        model=Models.ResNet50,
        hardware=Hardware.H100,
        batch_size=16,
        precision="bf16",
        efficiency=0.5,
    )
    compute = result.flops / (0.5 * Hardware.H100.compute.bf16)
    memory = result.bytes_moved / Hardware.H100.memory.bandwidth
    assert math.isclose(
        own["Time of a pass"], max(compute.m_as("ms"), memory.m_as("ms")), rel_tol=1e-9
    )


@pytest.mark.parametrize("context", [2048, 32_768])
def test_as_many_users_fit_as_there_is_room_for_their_caches(context):
    own = numbers("kv-wall", {"context": context})
    result = ServingSolver.solve(
        model=Models.Llama3_8B,
        hardware=Hardware.H100,
        seq_len=context,
        precision="bf16",
        efficiency=0.5,
    )
    room = result.memory_capacity - result.model_weights_size
    assert own["Most users"] == room.m_as("B") // result.kv_cache_size.m_as("B")


def test_a_key_and_a_value_for_every_head_multiply_the_cache():
    grouped, each, shared = (
        numbers("kv-wall", {"heads": heads})["KV cache per user"] for heads in ("own", "mha", "mqa")
    )
    assert each / grouped == Models.Llama3_8B.heads / Models.Llama3_8B.kv_heads
    assert grouped / shared == Models.Llama3_8B.kv_heads


@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_a_ring_is_complete_after_its_last_step_and_no_earlier(ranks):
    def complete(step):
        return numbers("ring", {"step": step, "ranks": ranks})["Complete parts"]

    last = 2 * (ranks - 1)
    # The reduce-scatter leaves each rank with one complete part.
    assert complete(ranks - 1) == ranks
    assert complete(last - 1) < complete(last) == ranks**2
    # A short ring has fewer steps than the slider: nothing comes after the last, in so many words.
    if last < RING.controls[0].values[-1]:
        assert complete(last + 1) == ranks**2
        later, done = (
            explorer("ring").view({"step": last + more, "ranks": ranks}) for more in (1, 0)
        )
        assert later["sentence"] != done["sentence"]
        assert later["charts"] == done["charts"]


@pytest.mark.parametrize("ranks", [2, 4, 7])
def test_complete_parts_are_those_of_the_chart(ranks):
    for step in range(2 * ranks - 1):
        shown = explorer("ring").view({"step": step, "ranks": ranks})
        full = sum(cell["text"] == str(ranks) for cell in shown["charts"][0]["cells"])
        assert shown["readings"][2]["value"] == full


def test_a_slow_stage_makes_the_simulated_step_longer():
    own = numbers("pipeline", {"stages": 4, "microbatches": 8, "slow": 150})
    played = simulate_pipeline(
        "1f1b",
        pp_size=4,
        microbatch_count=8,
        forward_time=[1, 1, 1, 1.5],
        backward_time=[2, 2, 2, 3],
    )
    assert own["Time of the step"] == played.makespan > 33
    assert math.isclose(own["Formula for equal stages"], 100 * 3 / 11)


def test_the_longest_chain_and_the_formulas_are_what_the_simulation_plays():
    for state in random_states("pipeline", 60):
        own = list(numbers("pipeline", state).values())
        last = state["slow"] / 100
        forward = [1.0] * (state["stages"] - 1) + [last]
        played = simulate_pipeline(
            state["schedule"],
            pp_size=state["stages"],
            microbatch_count=state["microbatches"],
            forward_time=forward,
            backward_time=[2 * time for time in forward],
        )
        assert math.isclose(own[0], 100 * played.bubble_fraction, abs_tol=1e-9), state
        assert math.isclose(own[2], played.makespan, rel_tol=1e-9), state
        assert own[3] == max(played.peak_activations), state
        if last == 1:
            assert math.isclose(own[1], own[0], rel_tol=1e-9), state


def test_the_parts_of_the_memory_add_up():
    shown = numbers("memory", {"zero": "1", "recompute": "full"})
    whole = shown.pop("Memory per GPU")
    assert math.isclose(sum(shown.values()), whole, rel_tol=1e-9)


def test_a_split_is_what_the_solver_returns_for_it():
    own = numbers("split", {"tp": 4, "pp": 8, "microbatches": 16})
    result = DistributedSolver.solve(
        model=Models.Llama3_70B,
        fleet=Fleet(
            name="256 H100",
            node=Systems.Nodes.DGX_H100,
            count=32,
            fabric=Systems.Fabrics.Ethernet_100G,
        ),
        batch_size=256,
        seq_len=2048,
        precision="fp16",
        tp_size=4,
        pp_size=8,
        microbatch_count=16,
        efficiency=0.5,
    )
    assert own["Step time"] == result.step_latency_total.m_as("s")
    assert own["Memory per GPU"] == result.memory.m_as("GB")


def test_no_interval_of_the_chart_beats_the_best_one_by_much():
    shown = explorer("checkpoint").view({})
    best = shown["readings"][1]["value"]
    (losses,) = (line for line in shown["charts"][0]["series"] if line["name"] == "all")
    lowest = min(loss for _, loss in losses["points"])
    result = ReliabilitySolver.solve(
        fleet=Fleet(
            name="16384 H100",
            node=Systems.Nodes.DGX_H100,
            count=2048,
            fabric=Systems.Fabrics.InfiniBand_NDR,
        ),
        job_duration_hours=Q_(54, "day"),
        checkpoint_time_s=60,
        restart_time=Q_(10, "minute"),
    )
    assert math.isclose(best, result.optimal_checkpoint_interval.m_as("minute"), rel_tol=1e-9)
    assert lowest > 100 * (1 - result.goodput) - 0.1


def test_the_cleanest_hour_emits_less_than_the_whole_day():
    shown = explorer("carbon").view({"grid": "California", "hours": 24})
    (line,) = shown["charts"][0]["series"]
    cleanest = min(line["points"], key=lambda point: point[1])[0]
    timed = numbers("carbon", {"grid": "California", "start": cleanest, "hours": 1})
    assert timed["Carbon of the electricity"] < shown["readings"][0]["value"]
    assert math.isclose(timed["Carbon intensity"], line["points"][cleanest][1], rel_tol=1e-9)


def test_a_larger_budget_never_takes_longer():
    days = [
        numbers("advice", {"budget": budget, "model": "Llama3_70B"})["Training time"]
        for budget in (200, 1000, 5000)
    ]
    assert days == sorted(days, reverse=True)
    assert "none of these" in explorer("advice").view({"budget": 10, "tokens": 2000})["sentence"]


@pytest.mark.parametrize(
    ("text", "words"), [("{", "not valid JSON"), ("[]", "keys and values"), ("{}", "model_type")]
)
def test_a_config_that_cannot_be_read_is_refused(text, words):
    with pytest.raises(ConfigError, match=words):
        explorer("import").view({"config": text})


def test_an_imported_model_has_its_published_size():
    assert explorer("import").view({})["readings"][0]["text"] == "7.62 billion"


def test_a_model_that_needs_several_gpus():
    """480 billion parameters, in 8 bits and in 16."""
    config = configurations()["Qwen/Qwen3-Coder-480B-A35B-Instruct"]["config"]
    asked = {"config": json.dumps(config), "weights": "fp8", "context": 2048}
    assert "4 x NVIDIA B200" in explorer("import").view(asked)["sentence"]
    asked["weights"] = "bf16"
    assert "8 x NVIDIA B200" in explorer("import").view(asked)["sentence"]


@pytest.mark.parametrize(
    ("name", "more", "formats", "unused"),
    [
        ("Qwen/Qwen3-8B", {}, "", []),
        ("Qwen/Qwen3-8B", {"quantization_config": {"quant_method": "fp8"}}, "(fp8)", ["weights"]),
        ("openai/gpt-oss-120b", {}, "(mxfp4)", []),
        ("deepseek-ai/DeepSeek-V3.2", {}, "(fp8)", ["weights"]),
    ],
)
def test_a_quantized_file_keeps_its_formats_and_says_so(name, more, formats, unused):
    config = configurations()[name]["config"] | more
    shown = [
        explorer("import").view({"config": json.dumps(config), "weights": width})
        for width in ("bf16", "int4")
    ]
    assert [one["unused"] for one in shown] == [unused, unused]
    wide, narrow = (one["readings"][1]["text"] for one in shown)
    assert (wide == narrow) == bool(unused)
    assert formats in shown[0]["sentence"]
    assert ("its own formats" in shown[0]["sentence"]) == bool(formats)


def test_defaults_of_a_pasted_file_are_named():
    config = {"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16}
    assert "vocab_size" in explorer("import").view({"config": json.dumps(config)})["sentence"]


@pytest.mark.parametrize(
    "text",
    ['{"a":' * 5_000, '{"model_type": "mamba", "hidden_size": 768}', '{"model_type": "lama"}'],
)
def test_a_pasted_file_that_is_refused(text):
    with pytest.raises(ConfigError) as caught:
        explorer("import").view({"config": text})
    assert len(str(caught.value)) < 900


def test_what_does_not_exist_is_refused_by_name():
    with pytest.raises(UnknownEntryError, match="roofline"):
        explorer("rooflin").view({})
    with pytest.raises(ConfigError, match="batch = 3"):
        explorer("roofline").view({"batch": 3})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.05243, "0.0524"),
        (19_075.2, "19,075"),
        (1.0, "1"),
        (99.96, "100"),
        (2e-6, "2.00e-06"),
    ],
)
def test_numbers_have_three_digits(value, text):
    assert figure(value) == text


def test_every_explorer_is_on_a_page_and_on_none_twice():
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.qmd")]
    placed = [re.findall(r'\.mls-explorer.*data-name="([\w-]+)"', page) for page in pages]
    assert {name for names in placed for name in names} == set(EXPLORERS)
    assert all(len(names) == len(set(names)) for names in placed)


def test_declarations_are_plain_data_and_start_where_the_package_starts():
    for name, form in json.loads(json.dumps(declarations())).items():
        assert form["job"].endswith(".")
        assert 2 <= len(form["controls"]) <= 4
        assert explorer(name).view(
            {item["id"]: item["value"] for item in form["controls"]}
        ) == explorer(name).view({})


def test_no_explorer_and_no_lab_needs_numpy():
    """A page runs them in a browser, where there is none."""
    code = f"""
import sys
sys.modules.update(dict.fromkeys({HIDDEN}))
from mlsysim_course.labs.catalog import LABS, explorer, find
for lab in map(find, LABS):
    state = {{asked.id: asked.truth() for asked in lab.predictions}}
    assert len(lab.view(state)["status"]) > 5
for name in {[*EXPLORERS, *OF_LABS]}:
    explorer(name).derivation({{}}, 0)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
