"""The exception tree: what inherits from what, what messages say, and that all of it pickles."""

import copy
import pickle

import pytest

from mlsysim.core import errors
from mlsysim.core.errors import (
    ConfigError,
    ExecutorError,
    InfeasibleError,
    MLSysError,
    OOMError,
    ParallelismError,
    SLAViolation,
    UnknownEntryError,
)
from mlsysim.core.units import Q_

RAISED = {
    "MLSysError": MLSysError("something", detail=1),
    "ConfigError": ConfigError("batch_size = 0 is out of range", argument="batch_size"),
    "ParallelismError": ParallelismError("tp_size = 3 does not divide", argument="tp_size"),
    "UnknownEntryError": UnknownEntryError.build("H10", "Hardware entry", ["H100", "A100"]),
    "InfeasibleError": InfeasibleError("faster than light"),
    "OOMError": OOMError(
        "needs 90 GB and has 80 GB",
        required=Q_(90, "GB"),
        available=Q_(80, "GB"),
        by_component={"weights": Q_(90, "GB")},
    ),
    "SLAViolation": SLAViolation(
        "latency is 12 ms, the limit 10 ms",
        metric="latency",
        value=Q_(12, "ms"),
        limit=Q_(10, "ms"),
    ),
    "ExecutorError": ExecutorError("lost rows 0 to 9", rows=(0, 10), attempts=3),
}


def test_all_errors_are_here():
    assert set(RAISED) == set(errors.__all__)


def test_one_base_catches_all_errors_which_are_copied_whole():
    for name, error in RAISED.items():
        assert type(error) is getattr(errors, name)
        assert isinstance(error, MLSysError)
        assert vars(copy.copy(error)) == vars(error)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            twin = pickle.loads(pickle.dumps(error, protocol))
            assert type(twin) is type(error)
            assert str(twin) == str(error)
            assert twin.args == error.args
            assert vars(twin) == vars(error)


def test_bad_input_is_a_value_error():
    for name in ("ConfigError", "ParallelismError", "UnknownEntryError"):
        assert isinstance(RAISED[name], ValueError)
    for name in ("InfeasibleError", "OOMError", "SLAViolation"):
        assert not isinstance(RAISED[name], ValueError)


def test_an_unknown_name_is_a_key_error():
    error = RAISED["UnknownEntryError"]
    assert isinstance(error, KeyError)
    assert isinstance(error, ConfigError)
    # A KeyError prints its message in quotes, which this one must not.
    assert str(error) == "Hardware entry 'H10' does not exist; did you mean H100 or A100?"


def test_without_a_near_name_all_are_listed():
    error = UnknownEntryError.build("xyzzy", "Grid", ["Quebec", "Norway"])
    assert str(error) == "Grid 'xyzzy' does not exist; known: Norway, Quebec"
    assert error.argument == "xyzzy"


def test_of_many_names_a_message_lists_some():
    words = str(UnknownEntryError.build("xyzzy", "Device", [f"d{n:03}" for n in range(100)]))
    assert words.endswith(", d028, d029 and 70 more")


def test_details_are_attributes():
    assert RAISED["ConfigError"].argument == "batch_size"
    assert ConfigError("x").argument is None
    oom = RAISED["OOMError"]
    assert oom.required - oom.available == Q_(10, "GB")
    assert oom.by_component == {"weights": Q_(90, "GB")}
    assert RAISED["SLAViolation"].metric == "latency"
    assert RAISED["SLAViolation"].value > RAISED["SLAViolation"].limit


@pytest.mark.parametrize("name", ["x" * 10**6, ["x" * 10**6] * 100, {"a": {"b": {"c": 1}}}, None])
def test_an_enormous_name_is_not_echoed_whole(name):
    assert len(str(UnknownEntryError.build(name, "row", ["H100", "A100"]))) < 600


def test_no_value_is_shown_in_more_than_200_characters():
    nested = {f"key {i}": {"x" * 60 + str(j): ["y" * 60] for j in range(9)} for i in range(9)}
    assert len(errors.shown(nested)) <= 200
    assert errors.shown(nested).startswith("{'key 0'")
    assert errors.shown([1, 2]) == "[1, 2]"


def test_articles_fit_the_noun():
    assert [errors.article(noun) for noun in ("Accelerator", "Node", "text")] == ["an", "a", "a"]


def test_a_message_can_be_printed_whatever_it_quotes():
    fault = ConfigError("a\x1b[31mb\udc80\n" + "x" * 100_000, argument="path")
    assert str(fault).isprintable() or "\n" in str(fault)
    assert "\x1b" not in fault.message
    assert "\udc80" not in fault.args[0]
    assert fault.message.count("\n") == 1
    assert len(fault.message) < 5000
    assert pickle.loads(pickle.dumps(fault)).message == fault.message
