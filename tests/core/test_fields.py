"""Records check their numeric fields when they are made."""

from __future__ import annotations

import dataclasses
import math
import pickle

import pytest

from mlsysim.core.errors import ConfigError
from mlsysim.core.fields import Record, field_unit, number, quantity, record, units_of
from mlsysim.core.units import Q_, Quantity


@record
class Widget(Record):
    name: str = "w"
    bandwidth: Quantity = quantity("GB/s", default=Q_(1, "GB/s"))
    latency: Quantity = quantity("us", default=Q_(0, "us"), zero=True)
    power: Quantity | None = quantity("W", default=None)
    layers: int = number(default=1, whole=True)
    share: float = number(default=0.5)
    offset: float = number(default=0.0, zero=True)
    overhead: float = number(default=1.0, least=1)


def test_any_unit_of_the_dimension_will_do():
    widget = Widget(bandwidth=Q_(100, "Gbit/s"))
    assert widget.bandwidth == Q_(12.5, "GB/s")
    assert f"{widget.bandwidth}" == "100 Gbit/s"
    assert widget.si("bandwidth") == 12.5e9


def test_unknown_values_are_nan_in_si():
    assert math.isnan(Widget().si("power"))
    assert Widget(power=Q_(1, "kW")).si("power") == 1000


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bandwidth", Q_(1, "GB")),
        ("bandwidth", Q_(1, "GFLOP/s")),
        ("bandwidth", 5),
        ("bandwidth", "5 GB/s"),
        ("bandwidth", None),
        ("power", Q_(1, "J")),
        ("power", 700),
        ("layers", Q_(1, "GB")),
        ("layers", "two"),
        ("layers", True),
        ("layers", None),
        ("layers", 1.5),
        ("share", "half"),
    ],
)
def test_wrong_kinds_are_refused(field, value):
    with pytest.raises(ConfigError, match=rf"Widget\.{field}\b"):
        Widget(**{field: value})


@pytest.mark.parametrize("field", ["bandwidth", "power", "layers", "share", "latency", "offset"])
@pytest.mark.parametrize("value", [-1, math.nan, math.inf, -math.inf])
def test_values_out_of_range_are_refused(field, value):
    unit = field_unit(Widget, field)
    with pytest.raises(ConfigError, match=rf"Widget\.{field}\b.*(finite|whole)") as caught:
        Widget(**{field: Q_(value, unit) if unit else value})
    assert field in str(caught.value)


@pytest.mark.parametrize("field", ["bandwidth", "power", "layers", "share"])
def test_zero_is_refused_where_it_means_nothing(field):
    unit = field_unit(Widget, field)
    with pytest.raises(ConfigError, match=rf"Widget\.{field} .*above zero") as caught:
        Widget(**{field: Q_(0, unit) if unit else 0})
    assert caught.value.argument == field


@pytest.mark.parametrize("field", ["latency", "offset"])
def test_zero_is_allowed_where_it_is_said(field):
    unit = field_unit(Widget, field)
    assert Widget(**{field: Q_(0, unit) if unit else 0}).si(field) == 0


def test_a_least_value_holds():
    assert Widget(overhead=1).si("overhead") == 1
    with pytest.raises(ConfigError, match=r"Widget\.overhead = 0\.99 .*give 1 or more") as caught:
        Widget(overhead=0.99)
    assert caught.value.argument == "overhead"


def test_records_are_frozen_and_keyword_only():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Widget().layers = 2
    with pytest.raises(TypeError):
        Widget("w")


def test_replace_makes_a_checked_variant():
    widget = dataclasses.replace(Widget(), layers=4)
    assert widget.layers == 4
    assert widget.si("layers") == 4
    assert widget != Widget()
    with pytest.raises(ConfigError, match="layers"):
        dataclasses.replace(widget, layers=0)


def test_equal_records_are_equal_and_hash_alike():
    one, other = Widget(bandwidth=Q_(1, "GB/s")), Widget(bandwidth=Q_(1000, "MB/s"))
    assert one == other
    assert hash(one) == hash(other)


def test_records_pickle():
    widget = pickle.loads(pickle.dumps(Widget(power=Q_(700, "W"))))
    assert widget == Widget(power=Q_(700, "W"))
    assert widget.si("power") == 700


def test_units_of_a_class():
    assert list(units_of(Widget))[:3] == [
        ("bandwidth", "GB/s", False),
        ("latency", "us", False),
        ("power", "W", False),
    ]
    assert ("layers", "", True) in units_of(Widget)
    assert "name" not in {name for name, _, _ in units_of(Widget)}


def test_a_record_shows_its_name():
    assert repr(Widget(name="fast")) == "<Widget fast>"
