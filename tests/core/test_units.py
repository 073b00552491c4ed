"""The vocabulary of units: what parses, how it prints, what refuses to mix."""

import multiprocessing
import pickle
import subprocess
import sys

import pint
import pytest

from mlsysim.core.errors import ConfigError
from mlsysim.core.units import Q_, dress, format_number, read_amount, strip, ureg

FACTORS = {
    "TFLOPs/s": 1e12,
    "TFLOP/s": 1e12,
    "TOPS": 1e12,
    "Gparam": 1e9,
    "GB": 1e9,
    "GiB": 2**30,
    "GB/s": 1e9,
    "TB/s": 1e12,
    "Gbit/s": 1e9 / 8,
    "ms": 1e-3,
    "us": 1e-6,
    "kWh": 3.6e6,
    "MWh": 3.6e9,
    "g/kWh": 1e-3 / 3.6e6,
    "L/kWh": 1e-3 / 3.6e6,
    "USD": 1.0,
    "percent": 0.01,
    "day": 86_400.0,
    "year": 365.25 * 86_400,
}


def test_units_have_their_size_and_read_back_what_they_print():
    for name, size in FACTORS.items():
        assert Q_(1.0, name).to_base_units().magnitude == pytest.approx(size, rel=1e-15), name
        assert Q_(f"3 {name}") == Q_(3, name)
        assert Q_(f"{Q_(2.5, name):~}") == Q_(2.5, name)


def test_equal_quantities_hash_alike():
    assert hash(Q_(1000, "MB")) == hash(Q_(1, "GB"))
    assert hash(Q_(8, "bit")) == hash(Q_(1, "byte"))
    assert len({Q_(1, "kWh"), Q_(3.6e6, "J"), Q_(1, "MWh")}) == 2


def test_different_things_do_not_add_up():
    for one, other in [
        ("byte", "flop"),
        ("byte", ""),
        ("flop", ""),
        ("bit", "param"),
        ("USD", ""),
        ("J", "flop"),
        ("byte/s", "flop/s"),
        ("g/kWh", "L/kWh"),
    ]:
        assert Q_(1, one).dimensionality != Q_(1, other).dimensionality, one
        with pytest.raises(pint.DimensionalityError):
            Q_(1, one) + Q_(1, other)
        with pytest.raises(pint.DimensionalityError):
            Q_(1, one).to(other)


def test_counts_are_plain_numbers():
    for name in ["param", "token", "sample", "gpu", "layer", "count"]:
        assert Q_(3, name).dimensionless, name
        assert Q_(3, name) == 3, name


def test_bits_and_bytes():
    assert Q_(100, "Gbit/s").to("GB/s").magnitude == pytest.approx(12.5)
    assert Q_(1, "byte").to("bit").magnitude == 8
    assert Q_(1, "GiB").to("GB").magnitude == pytest.approx(1.073741824)


def test_capital_and_small_letters_differ():
    assert Q_(1, "B") == Q_(8, "bit")
    assert Q_(1, "MB") != Q_(1, "Mbit")
    with pytest.raises(pint.UndefinedUnitError):
        ureg.Unit("gb")


def test_pints_own_vocabulary_is_not_there():
    for name in ("inch", "kelvin", "bar", "erg", "newton", "candela"):
        with pytest.raises(pint.UndefinedUnitError):
            ureg.Unit(name)


def test_quantities_pickle_within_a_process():
    copy = pickle.loads(pickle.dumps(Q_(3.35, "TB/s")))
    assert copy == Q_(3.35, "TB/s")
    assert (copy + Q_(1, "TB/s")).units == ureg.Unit("TB/s")


def test_quantities_pickle_across_processes():
    # A fresh interpreter that knows nothing of the package until it unpickles.
    code = (
        "import pickle, sys; import mlsysim; q = pickle.load(sys.stdin.buffer); "
        "sys.stdout.buffer.write(pickle.dumps(2 * q + mlsysim.Q_(1, 'GB/s')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(Q_(100, "Gbit/s")),
        capture_output=True,
        check=True,
    )
    assert pickle.loads(done.stdout) == Q_(26, "GB/s")


def test_quantities_cross_to_a_pool():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(abs, (Q_(-3, "ms"),)) == Q_(3, "ms")


# The doors


def test_strip_gives_si_numbers():
    assert strip(Q_(1, "GB/s"), "byte/s", "bandwidth") == 1e9
    assert strip(Q_(2, "kparam"), "", "parameters") == 2000
    assert strip(7, "", "layers") == 7


@pytest.mark.parametrize("value", [5, 5.0, "5", None])
def test_strip_wants_a_unit(value):
    with pytest.raises(ConfigError, match=r"bandwidth needs a unit.*GB/s") as caught:
        strip(value, "GB/s", "bandwidth")
    assert caught.value.argument == "bandwidth"


def test_strip_wants_the_right_dimension():
    with pytest.raises(ConfigError, match=r"bandwidth = 5 GB has the wrong dimension.*GB/s"):
        strip(Q_(5, "GB"), "GB/s", "bandwidth")


def test_dress_is_the_inverse_of_strip():
    for name in FACTORS:
        assert strip(dress(1.5, name), name, "x") == pytest.approx(1.5)
        assert dress(1.5, name).units == ureg.Unit(name)


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (Q_(0.000_269_4, "s"), "269.4 us"),
        (Q_(1.412e11, "byte"), "141.2 GB"),
        (Q_(70.55e9, "param"), "70.55 Gparam"),
        (Q_(8192, "token"), "8,192 token"),
        (Q_(0, "s"), "0 s"),
        (Q_(2.592e6, "s"), "30 d"),
        (Q_(22_270, "s"), "6.186 h"),
        (Q_(50_676, "h"), "50,676 h"),
        (Q_(9.761e11, "J"), "271.1 MWh"),
        (Q_(0.5, "J"), "500 mJ"),
        (Q_(1000, "kWh"), "1 MWh"),
        (Q_(7_321, "kg"), "7.321 t"),
        (Q_(7.5e-9, "kg/J"), "27 g/kWh"),
        (Q_(69.72, "m**3"), "69,720 L"),
        (Q_(8.64e6, "USD"), "8,640,000 USD"),
        (Q_(0.384, "USD/Mtoken"), "0.384 USD/Mtoken"),
        (Q_(float("nan"), "s"), "not known"),
        (float("nan"), "not known"),
        (Q_(float("inf"), "s"), "infinite"),
        (None, "not known"),
        (0.15789, "0.1579"),
        (131_072, "131,072"),
        (2048, "2,048"),
        (1970.4, "1,970"),
        (-1970.4, "-1,970"),
        (999.96, "1,000"),
        (Q_(1970.4, "USD"), "1,970 USD"),
        (True, "True"),
        ("compute", "compute"),
    ],
)
def test_numbers_print_with_few_digits(value, printed):
    assert format_number(value) == printed


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (Q_(2.5e6, "1/s"), "2,500,000/s"),
        (Q_(2.5, "1/us"), "2,500,000/s"),
        (Q_(0.05, "1/s"), "0.05/s"),
        (Q_(2.4e-5, "1/s"), "0.0864/h"),
        (Q_(1e-9, "1/s"), "0.03156/yr"),
        (Q_(3200, "sample/s"), "3.2 ksample/s"),
        (Q_(0, "1/s"), "0/s"),
    ],
)
def test_plain_rates_have_no_prefix_below_the_line(rate, text):
    assert format_number(rate) == text


@pytest.mark.parametrize(
    ("text", "unit", "amount"),
    [
        ("200 ms", "s", Q_(200, "ms")),
        ("200ms", "s", Q_(200, "ms")),
        ("-1.5e3 GB / s", "TB/s", Q_(-1500.0, "GB/s")),
        ("20 %", "", Q_(20, "percent")),
        ("0.5", "", Q_(0.5, "")),
    ],
)
def test_text_is_a_number_and_a_unit(text, unit, amount):
    read = read_amount(text, unit, "x")
    assert read == amount
    assert type(read.magnitude) is type(amount.magnitude)


@pytest.mark.parametrize(
    "text", ["", "ms", "5", "5 GB", "5 parsec", "nan s", "1e99 s", "9**9 s", "5 s**9", "5 f('x')"]
)
def test_other_text_is_no_time(text):
    with pytest.raises(ConfigError) as caught:
        read_amount(text, "s", "x")
    assert caught.value.argument == "x"
