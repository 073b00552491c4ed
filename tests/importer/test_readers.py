"""The table of architectures: rows that start from others, and mistakes in rows."""

import pytest

from mlsysim.core.errors import UnknownEntryError
from mlsysim.registry.importer.keys import defaults_of
from mlsysim.registry.importer.readers import READERS, REFUSED, reader_of
from mlsysim.registry.importer.rules import windows

ROWS = {
    "parent": {
        "kinds": "windows",
        "positions": 2,
        "norms": 4,
        "names": {"window": ["reach"], "heads": ["num_heads"]},
    },
    "child": {
        "like": "parent",
        "kinds": {"rule": "every", "period": 3, "other": "linear"},
        "positions": False,
        "names": {"window": ["span"]},
    },
}


class _Keys:
    """A file without any keys."""

    def value(self, field):
        return None

    number = count = value


def test_rows_start_from_the_row_they_are_like():
    parent, child = reader_of(ROWS, "parent"), reader_of(ROWS, "child")
    assert parent.kinds is windows
    assert (parent.positions, child.positions) == (2, None)
    assert parent.norms == child.norms == 4
    assert child.names == {"window": ("span",), "heads": ("num_heads",)}
    assert child.kinds(_Keys(), 6) == ["linear", "linear", "full"] * 2


@pytest.mark.parametrize(
    "row",
    [{"like": "none"}, {"biases": True}, {"kinds": "nowhere"}, {"mixture": {"rule": "windows"}}],
)
def test_unknown_rows_fields_and_rules_are_errors(row):
    with pytest.raises(UnknownEntryError):
        reader_of({"wrong": row}, "wrong")


def test_every_class_of_the_library_has_defaults():
    for kind, reader in READERS.items():
        assert bool(defaults_of(reader.library)) == bool(reader.library), kind


def test_no_kind_is_both_read_and_refused():
    assert not set(READERS) & set(REFUSED)
