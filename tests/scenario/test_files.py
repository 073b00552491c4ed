"""Files: strict scalars, YAML that is read as it was written, and values read by a schema."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim import Q_, ConfigError
from mlsysim.scenario.files import (
    amount_of,
    document_of,
    public,
    read_text,
    scalar_of,
    section,
    write_yaml,
)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("null", None),
        ("", None),
        ("true", True),
        ("false", False),
        ("0", 0),
        ("-1", -1),
        ("1e3", 1000.0),
        ("2.5E-3", 0.0025),
        *(
            (word, word)
            for word in ("yes", "No", "on", "True", "NULL", "~", "010", "0x1F", "1_000")
        ),
        *((word, word) for word in ("12:30", "+1", ".5", "1.", "2026-01-01", "1,000", "=", "0o7")),
    ],
)
def test_plain_scalars(written, value):
    read = scalar_of(written)
    assert (type(read), read) == (type(value), value)


PLAIN = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**29), 10**29),
        st.floats(-1e29, 1e29).filter(lambda x: x == 0 or abs(x) > 1e-290),
        st.text(st.characters(exclude_categories=["C"]), max_size=20),
        st.sampled_from(["yes", "1e5", "null", "010", "- a", "a: b", "# x", "nan", "<<", "*a", ""]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.from_regex(r"\A[a-z_]{1,8}\Z"), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.from_regex(r"\A[a-z_]{1,8}\Z"), PLAIN, max_size=4))
def test_what_is_written_is_read(data):
    document = read_text(write_yaml(data), "yaml")
    assert document.faults == []
    assert document.data == data


def delay(value):
    return amount_of("delay", "s", value)


def ordered(values):
    if values["low"] > values["high"]:
        raise ConfigError("low is above high", argument="high")
    return values["low"], values["high"]


RANGE = section(
    {"low": {"type": "number"}, "high": {"type": "number"}},
    required=["low", "high"],
    reads=ordered,
)
SCHEMA = section(
    {
        "delay": {"type": "string", "reads": delay},
        "mode": {"enum": ["slow", "fast"]},
        "ranges": {"type": "array", "items": RANGE, "minItems": 1, "reads": tuple},
        "named": {"type": "object", "additionalProperties": RANGE},
    },
    required=["delay"],
    dependentRequired={"ranges": ["mode"]},
    faults={"dependentRequired": "is missing: ranges need a mode"},
)
GOOD = {
    "delay": "5 ms",
    "mode": "fast",
    "ranges": [{"low": 1, "high": 2}],
    "named": {"any": {"low": 3, "high": 3}},
}


def test_a_schema_makes_values_of_data():
    document = document_of(GOOD)
    values = document.read(SCHEMA)
    assert document.faults == []
    assert values["delay"] == Q_(5, "ms")
    assert values["ranges"] == ((1, 2),)
    assert values["named"] == {"any": (3, 3)}


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("mode: fast", {"delay": 1}),
        ("delay: 5 GB", {"delay": 1}),
        ("delay: 5", {"delay": 1}),
        ("delay: 1 s\nmode: fats", {"mode": 2}),
        ("delay: 1 s\nmood: fast", {"mood": 2}),
        ("delay: 1 s\nranges: [{low: 1, high: 2}]", {"mode": 1}),
        ("delay: 1 s\nmode: slow\nranges: []", {"ranges": 3}),
        ("delay: 1 s\nmode: slow\nranges: {}", {"ranges": 3}),
        ("delay: 1 s\nmode: slow\nranges:\n- {low: 1, high: 2}\n- 5", {"ranges[1]": 5}),
        (
            "delay: 1 s\nmode: slow\nranges:\n- {low: 2, high: 1}\n- low: x\n",
            {"ranges[0].high": 4, "ranges[1].low": 5, "ranges[1].high": 5},
        ),
        ("delay: 1 s\nnamed: {x: {low: 2, high: 1}}", {"named.x.high": 2}),
        ("- 5", {"": 1}),
    ],
)
def test_every_fault_has_its_key_and_line(text, faults):
    document = read_text(text, "yaml")
    document.read(SCHEMA)
    assert {fault.path: fault.line for fault in document.faults} == faults


def test_a_schema_for_others_has_only_keywords_of_json_schema():
    assert public(RANGE) == {
        "type": "object",
        "properties": {"low": {"type": "number"}, "high": {"type": "number"}},
        "additionalProperties": False,
        "required": ["low", "high"],
    }
    assert public(SCHEMA)["properties"]["delay"] == {"type": "string"}


@pytest.mark.parametrize("kind", ["json", "yaml"])
def test_json_is_read_with_the_line_of_each_value(kind):
    document = read_text('{\n "a": [1,\n  {"b": "x"}]\n}', kind)
    assert document.data == {"a": [1, {"b": "x"}]}
    assert document.line_of(("a", 1, "b")) == 3
    assert document.line_of(("a", 1, "c")) == 3
