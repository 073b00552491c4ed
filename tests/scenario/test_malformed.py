"""What is wrong with a file: said at once, with its place, and never by another exception."""

from __future__ import annotations

import copy
import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsysim import ConfigError, InfeasibleError, SimulationConfig, evaluate
from tests.scenario.malformed import JSON, YAML
from tests.scenario.samples import CAMERA, TRAINING

SECONDS = 1.0


def refused(text: str, kind: str) -> ConfigError:
    """Return the error for a text, which must come soon."""
    start = time.process_time()
    with pytest.raises(ConfigError) as caught:
        SimulationConfig.from_text(text, kind=kind)
    assert time.process_time() - start < SECONDS
    str(caught.value).encode()  # the message itself can be printed
    assert caught.value.faults
    return caught.value


def test_the_list_is_long_enough():
    assert len(YAML) + len(JSON) >= 100


@pytest.mark.parametrize("name", YAML)
def test_malformed_yaml(name):
    text, word, line = YAML[name]
    check(refused(text, "yaml"), word, line)


@pytest.mark.parametrize("name", JSON)
def test_malformed_json(name):
    text, word, line = JSON[name]
    check(refused(text, "json"), word, line)


def check(error: ConfigError, word: str, line: int | None) -> None:
    found = [fault for fault in error.faults if word in fault.message]
    assert found, str(error)
    if line is not None:
        assert line in [fault.line for fault in found], str(error)


def test_all_faults_at_once_in_the_order_of_the_file():
    text = (
        "name: [x]\ntask: training\nmodel: Llama3_7B\nsystem: {cluster: Research_25}\n"
        "arguments: {batch_size: -1, tpsize: 3}\nlimits: {mfu: {at_least: 5 GB}}\n"
        "macro: {region: Mars, kwh_price: 5}\ncolour: red\n"
    )
    faults = refused(text, "yaml").faults
    assert [fault.line for fault in faults] == [1, 3, 4, 5, 5, 6, 7, 7, 8]
    assert {fault.path for fault in faults} == {
        "name",
        "model",
        "system.cluster",
        "arguments.batch_size",
        "arguments.tpsize",
        "limits.mfu.at_least",
        "macro.region",
        "macro.kwh_price",
        "colour",
    }


def test_every_condition_that_sizes_break_together_is_named():
    text = TRAINING.replace("tp_size: 8", "tp_size: 3").replace("pp_size: 4", "pp_size: 100")
    assert len(refused(text, "yaml").faults) == 3


def test_a_fault_of_the_reader_hides_no_other():
    text = TRAINING.replace("256", "&a 256").replace("tp_size", "tpsize") + "model: GPT3\n"
    messages = [fault.message for fault in refused(text, "yaml").faults]
    assert len(messages) == 3
    assert any("anchor" in message for message in messages)
    assert any("did you mean tp_size" in message for message in messages)
    assert any("twice" in message for message in messages)


def test_the_message_names_file_line_and_key(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text(TRAINING.replace("tp_size: 8", "tp_size: 3"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"run\.yaml:8: arguments\.tp_size: .*does not divide"):
        SimulationConfig.from_file(file)


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("x.yaml", b"\xff\xfe\x00\x01", "not UTF-8"),
        ("x.yaml", "name: Qu\xe9bec\n".encode("latin-1"), "not UTF-8"),
        ("x.yaml", CAMERA.encode("utf-16"), "not UTF-8"),
        ("x.yaml", b"\x89PNG\r\n\x1a\n", "not UTF-8"),
        ("x.yaml", b"name: \0\0\0", "binary"),
        ("x.yaml", b"", "empty"),
        ("x.json", b"", "empty"),
        ("x.yaml", b"#" * (2 << 20), "larger"),
        ("x.json", b" " * (2 << 20), "larger"),
        ("x.txt", CAMERA.encode(), "suffix"),
        ("x", CAMERA.encode(), "suffix"),
        ("x.py", b"import os", "suffix"),
    ],
)
def test_malformed_files(tmp_path, name, content, word):
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=word) as caught:
        SimulationConfig.from_file(file)
    assert caught.value.faults


def test_files_that_cannot_be_read(tmp_path):
    folder = tmp_path / "x.yaml"
    folder.mkdir()
    for path in (tmp_path / "none.yaml", folder, "\0.yaml", "a" * 5000 + ".yaml"):
        with pytest.raises(ConfigError, match=r"cannot be read|not a regular file"):
            SimulationConfig.from_file(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "x.yaml")
    with pytest.raises(ConfigError, match="not a regular file"):
        SimulationConfig.from_file(tmp_path / "x.yaml")


def test_nothing_is_executed_or_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call in (
        "!!python/object/apply:os.mkdir [made]",
        "!!python/object/new:os.mkdir [made]",
        "!!python/object/apply:builtins.open [made, w]",
        "!!python/object/apply:subprocess.check_call [[touch, made]]",
        "!!python/name:os.mkdir",
    ):
        for text in (f"name: {call}\n", call, f"? {call}\n: x\n", f"a: {{b: [{call}]}}\n"):
            refused(text, "yaml")
    for text, _, _ in YAML.values():
        refused(text, "yaml")
    assert list(tmp_path.iterdir()) == []


def test_bad_calls():
    for text in (None, 5, b"name: x"):
        with pytest.raises(ConfigError, match="must be a str"):
            SimulationConfig.from_text(text)
    with pytest.raises(ConfigError, match="kind"):
        SimulationConfig.from_text(CAMERA, kind="toml")
    for data in (None, 5, [], "name", {}, {1: 2}, {"name": object()}):
        with pytest.raises(ConfigError) as caught:
            SimulationConfig.from_dict(data)
        assert caught.value.faults


def test_a_circle_is_refused():
    data = SimulationConfig.from_text(CAMERA).to_dict()
    data["arguments"]["self"] = data
    with pytest.raises(ConfigError, match="deeper"):
        SimulationConfig.from_dict(data)


def settled(made) -> None:
    """Read, and if it can be read, write, read again and evaluate."""
    start = time.process_time()
    refusal = None
    try:
        config = made()
    except ConfigError as fault:
        refusal = fault
    if refusal is not None:
        assert refusal.faults
        str(refusal).encode()
        assert time.process_time() - start < SECONDS
        return
    assert SimulationConfig.from_text(config.to_yaml()) == config
    assert SimulationConfig.from_dict(config.to_dict()) == config
    # What was accepted can be evaluated: nothing that makes no sense is left to be found there.
    card = evaluate(config.scenario())
    json.dumps(card.to_dict(), allow_nan=False)
    try:
        card.require()
    except InfeasibleError as fault:
        str(fault).encode()


SIGNS = [*"{}[]:,-?|>&*!%@`'\"#\\\n\t\r\0 ~=<", "<<: ", "&a ", "*a", "!!int ", "---\n", "...\n"]
NUMBERS = ["nan", ".inf", "1e400", "1e-400", "0x1", "010", "1_000", "-1", "1e30", "1e29", "9" * 50]
OTHERS = ["yes", "null", "\ufeff", "\u2028", "é", "\U0001f600", "**9", " ms", "  ", "[]", "{}"]
BITS = st.sampled_from([*SIGNS, *NUMBERS, *OTHERS])


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """Put in, cut out and repeat parts of a text."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 30)))
        middle = draw(st.one_of(BITS, st.text(max_size=8), st.just(text[start:end] * 2)))
        text = text[:start] + middle + text[end:]
    return text


@settings(max_examples=300)
@given(damaged(TRAINING))
def test_damaged_yaml(text):
    settled(lambda: SimulationConfig.from_text(text))


@settings(max_examples=200)
@given(damaged(json.dumps(SimulationConfig.from_text(TRAINING).to_dict(), indent=1)))
def test_damaged_json(text):
    settled(lambda: SimulationConfig.from_text(text, kind="json"))


@settings(max_examples=150)
@given(st.text(max_size=60))
def test_any_text(text):
    settled(lambda: SimulationConfig.from_text(text))
    settled(lambda: SimulationConfig.from_text(text, kind="json"))


@settings(max_examples=100)
@given(content=st.binary(max_size=80), suffix=st.sampled_from([".yaml", ".json"]))
def test_any_bytes(tmp_path_factory, content, suffix):
    file: Path = tmp_path_factory.mktemp("bytes") / f"x{suffix}"
    file.write_bytes(content)
    settled(lambda: SimulationConfig.from_file(file))


AMOUNTS = ["5 ms", "1e29 s", "-5 s", "0 s", "5 %", "0 USD/kWh"]
NAMES = ["fp16", "int8", "full", "H100", "DGX_H100", "Research_256", "ESP32_S3", "DLRM", "Poland"]
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 300),
    st.integers(),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from([*AMOUNTS, *NAMES]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.sampled_from(["at_most", "at_least", "hardware", "x"]), st.integers()),
)


def paths(data: dict, start: tuple = ()):
    for key, value in data.items():
        yield (*start, key)
        if isinstance(value, dict):
            yield from paths(value, (*start, key))


@settings(max_examples=400)
@given(st.data(), st.sampled_from([TRAINING, CAMERA]))
def test_any_value_in_any_place(data, text):
    config = copy.deepcopy(SimulationConfig.from_text(text).to_dict())
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(paths(config))))
        group = config
        for key in path[:-1]:
            group = group[key]
        group[path[-1]] = data.draw(VALUES)
    settled(lambda: SimulationConfig.from_dict(config))
