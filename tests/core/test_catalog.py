"""Catalogs: rows under two names, looked up with help, and read-only."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from mlsysim.core.catalog import Catalog, Deferred
from mlsysim.core.errors import UnknownEntryError
from mlsysim.core.fields import Record, record


@record
class Thing(Record):
    name: str


class Big(Catalog):
    """Large things."""

    Whale = Thing(name="Whale")
    Mountain = Thing(name="Mountain")


class Small(Catalog):
    """Small things."""

    Ant = Thing(name="Ant")
    limit = 3


class Things(Big, Small):
    """All things."""

    Big = Big
    Small = Small


def test_short_and_long_names_are_the_same_row():
    assert Things.Whale is Things.Big.Whale is Things["Whale"]


def test_walks_every_row_once_tier_by_tier():
    assert Things.names() == ("Whale", "Mountain", "Ant")
    assert [row.name for row in Things] == ["Whale", "Mountain", "Ant"]
    assert dict(Things.items())["Ant"] is Things.Ant
    assert len(Things) == 3
    assert len(Things.Small) == 1


def test_tiers():
    assert Things.tiers() == {"Big": Big, "Small": Small}
    assert Big.tiers() == {}


def test_membership_by_name_and_by_row():
    assert "Ant" in Things
    assert Things.Ant in Things
    assert "Whale" not in Things.Small
    assert Things.Whale not in Things.Small
    assert "limit" not in Things


def test_a_name_that_does_not_exist():
    with pytest.raises(UnknownEntryError, match=r"Things entry 'whale' .*did you mean Whale\?"):
        Things["whale"]
    with pytest.raises(AttributeError, match="did you mean Whale"):
        Things.whale  # noqa: B018 - the look-up is the test
    with pytest.raises(UnknownEntryError, match="Ant, Mountain, Whale"):
        Things["xyzzy"]
    assert getattr(Things, "xyzzy", None) is None


def test_only_rows_are_entries():
    with pytest.raises(UnknownEntryError):
        Things["limit"]
    with pytest.raises(UnknownEntryError):
        Things["Big"]


def test_read_only():
    with pytest.raises(AttributeError, match=r"read-only.*replace"):
        Things.Whale = Thing(name="Fish")
    with pytest.raises(AttributeError):
        Things.Fish = Thing(name="Fish")
    assert Things.Whale.name == "Whale"


def test_pythons_own_questions_get_plain_answers():
    # Documentation tools, copies and notebooks ask for names with underscores.
    assert not hasattr(Things, "_repr_html_")
    assert inspect.getdoc(Things) == "All things."
    assert copy.copy(Things) is Things
    assert pickle.loads(pickle.dumps(Things)) is Things


def test_shows_its_names():
    assert repr(Things) == "<Things: Whale, Mountain, Ant>"


def test_a_deferred_row_is_made_once_and_only_when_it_is_read():
    made = []

    def make():
        made.append("Owl")
        return Thing(name="Owl")

    class Late(Catalog):
        Owl = Deferred(make)
        Ant = Thing(name="Ant")

    assert Late.names() == ("Owl", "Ant")
    assert len(Late) == 2
    assert "Owl" in Late
    assert Late["Ant"].name == "Ant"
    with pytest.raises(UnknownEntryError, match="Owl"):
        Late["Owk"]
    assert made == []
    assert Late.Owl is Late["Owl"] is next(iter(Late)) is dict(Late.items())["Owl"]
    assert made == ["Owl"]


def test_a_deferred_row_that_cannot_be_made_raises_each_time():
    def make():
        raise ValueError("no file")

    class Late(Catalog):
        Owl = Deferred(make)

    for _ in range(2):
        with pytest.raises(ValueError, match="no file"):
            Late.Owl  # noqa: B018


def test_tables_say_how_code_names_a_row():
    """The shortest name: that of the outer catalog where it has the rows too."""
    for catalog in (Things, Things.Big):
        assert 'data-code="Things.Whale"' in catalog.table("name").take([0]).to_html()

    class Shelf(Catalog):
        Big = Big
        Own = type("Own", (Catalog,), {"Cup": Thing(name="Cup")})

    assert 'data-code="Shelf.Own.Cup"' in Shelf.Own.table("name").to_html()
    assert 'data-code="Things.Whale"' in Shelf.Big.table("name").to_html()


def test_the_rows_of_a_file_are_read_when_one_is_needed():
    read = []

    def rows():
        read.append("file")
        return {"Owl": Deferred(lambda: Thing(name="Owl"), "A bird.")}

    class Birds(Catalog, rows=rows):
        """Birds."""

    class Animals(Birds):
        Ant = Thing(name="Ant")
        """An insect."""

    assert read == []
    assert Birds.Owl is Animals.Owl is Animals["Owl"]
    assert Animals.names() == ("Ant", "Owl")
    assert Animals.notes() == {"Ant": "An insect.", "Owl": "A bird."}
    with pytest.raises(AttributeError):
        Birds.Owk  # noqa: B018
    assert read == ["file"]


def test_editors_complete_the_rows_of_a_file():
    class Fish(Catalog, rows=lambda: {"Carp": Deferred(lambda: Thing(name="Carp"))}):
        pass

    assert "Carp" in dir(Fish)
