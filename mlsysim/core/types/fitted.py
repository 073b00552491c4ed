"""Constants that were fitted to measurements, and error bands for similar runs."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Self

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import Record, number, quantity, record, require
from mlsysim.core.numeric import Value
from mlsysim.core.types.precision import PRECISIONS
from mlsysim.core.types.source import Entry
from mlsysim.core.units import Q_, Quantity

STATE_EFFICIENCY = 0.0157
"""Share of the 16-bit peak rate that scans of states reach, on any machine."""


def _check_bands(row: Record) -> None:
    """Reject a band with only one edge, or one that does not contain the prediction itself."""
    for item in fields(row):
        if not item.name.endswith("band_low"):
            continue
        other = item.name.removesuffix("low") + "high"
        low, high = getattr(row, item.name), getattr(row, other)
        if (low is None) != (high is None) or (low is not None and low > high):
            raise ConfigError(
                f"{type(row).__name__}.{item.name} = {low} and {other} = {high} are not a band: "
                "give both with the lower edge first, or neither",
                argument=item.name,
            )
        if low is not None and not low <= 1 <= high:
            wrong = item.name if low > 1 else other
            raise ConfigError(
                f"{type(row).__name__}.{wrong} = {getattr(row, wrong):g} leaves 1, the prediction "
                f"itself, outside the band of {low:g} to {high:g} times it: give a low edge of at "
                "most 1 and a high edge of at least 1, or change the constants",
                argument=wrong,
            )


def traffic_in(precision: str, bytes_of_16_bits: Value) -> Value:
    """Memory traffic of activations in a number format, from the constants for 16 bits."""
    factor = max(PRECISIONS[precision].bits, 16) / 16
    return bytes_of_16_bits if factor == 1 else factor * bytes_of_16_bits


@record
class Rates(Entry):
    """The share of the datasheet's dense peak rates that matrix products reach.

    Machines and serving engines declare what is known of these constants before any run.
    """

    gemm_efficiency: float = number(most=1)
    """Share of the peak rate that large matrix products reach in 16 bits."""
    gemm_efficiency_fp8: float = number(most=1)
    """The same in 8 bits."""
    gemm_efficiency_fp4: float = number(most=1)
    """The same in 4 bits."""
    state_efficiency: float = number(most=1)
    """Share of the 16-bit peak rate that the scans of linear attention and state-space layers reach
    over a whole sequence."""

    def gemm(self, precision: str) -> Value:
        """Share of the peak rate that large matrix products reach in a number format."""
        bits = PRECISIONS[precision].bits
        narrow = {8: self.gemm_efficiency_fp8, 4: self.gemm_efficiency_fp4}
        return narrow.get(bits, self.gemm_efficiency)


@record
class Banded(Entry):
    """Constants with bands of measured over predicted values, if runs are known."""

    formats: tuple[str, ...] = ("fp16", "bf16", "fp8", "fp4")
    """Number formats of the runs. There is no band for other formats."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, formats=tuple)
        unknown = [
            name for name in self.formats if not isinstance(name, str) or name not in PRECISIONS
        ]
        if unknown:
            raise ConfigError(
                f"{type(self).__name__}.formats has {shown(unknown[0])}, which is not a number "
                f"format: choose from {', '.join(PRECISIONS)}",
                argument="formats",
            )
        _check_bands(self)

    def in_format(self, precision: str) -> Self:
        """Return the constants, without bands if none of the runs used the format."""
        return self if precision in self.formats else self.without_bands()

    def without_bands(self) -> Self:
        """Return the constants without bands, for a prediction that no run supports."""
        edges: dict[str, Any] = {
            f.name: None for f in fields(self) if f.name.endswith(("band_low", "band_high"))
        }
        return replace(self, **edges)


@record
class PowerCalibration(Entry):
    """One set of constants per device generation, as shares of the design power.

    Attributes
    ----------
    measured_on : str
        Name of the measured device, as in its row; empty if no power was measured.
    constant_share : float
        Power of an idle device that a program occupies, with high clocks.
    compute_share : float
        Power that arithmetic at the dense peak rate would add: the energy of an operation times
        that rate. If the sum exceeds the design power, the board limits the clock before the peak
        is reached.
    memory_share : float
        Power that memory traffic at the full bandwidth would add: the energy of a byte times that
        bandwidth, including on-chip transport.
    power_band_low, power_band_high : float or None
        Measured over predicted power of a device whose rate of tokens is known, at the 10th and
        90th percentile of runs with held-out models. `None` if no run is known.
    energy_band_low, energy_band_high : float or None
        Measured over predicted energy per served token, at the 10th and 90th percentile of runs
        with held-out models; on a microcontroller, energy per pass. `None` if no run is known.
    """

    measured_on: str = ""
    constant_share: float = number(most=1)
    compute_share: float = number(zero=True)
    memory_share: float = number(zero=True)
    power_band_low: float | None = number(default=None)
    power_band_high: float | None = number(default=None)
    energy_band_low: float | None = number(default=None)
    energy_band_high: float | None = number(default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_bands(self)


@record
class NetworkCalibration(Entry):
    """Constants of one engine on one kind of device, in one number format or in all.

    An in-order core does one thing at a time, so the work around the products adds to their time.
    It is counted in operations, at the rate that products reach. A GPU starts and drains a kernel
    for each layer, which takes a fixed time.

    Attributes
    ----------
    engine : str
        The program that was measured.
    core : str
        The core or the kind of device on which it ran.
    precision : str
        Number format of the products; empty if the constants are used for every format.
    efficiency : float
        Share of the dense peak rate that products reach.
    output_flops : Quantity
        Work for each element that a layer writes: sums are scaled to the narrow format, and
        addresses are computed. Depthwise layers write many elements for few products.
    weight_flops : Quantity
        Work for each weight, which a dense layer loads for a single product.
    layer_time : Quantity
        Fixed time of each layer.
    pass_band_low, pass_band_high : float or None
        Measured over predicted time, at the 10th and 90th percentile of held-out runs. `None` if no
        run is known.
    """

    engine: str
    core: str
    precision: str
    efficiency: float = number(most=1)
    output_flops: Quantity = quantity("flop", default=Q_(0, "flop"), zero=True)
    weight_flops: Quantity = quantity("flop", default=Q_(0, "flop"), zero=True)
    layer_time: Quantity = quantity("us", default=Q_(0, "us"), zero=True)
    pass_band_low: float | None = number(default=None)
    pass_band_high: float | None = number(default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.precision not in ("", *PRECISIONS):
            raise ConfigError(
                f"NetworkCalibration.precision = {shown(self.precision)} is not a number format: "
                f"choose from {', '.join(PRECISIONS)}",
                argument="precision",
            )
        _check_bands(self)


@record
class ProductCalibration(Entry):
    """Matrix products of one device in one number format."""

    precision: str
    """The format, as in ``"bf16"``."""
    efficiency: float = number(most=1)
    """Share of the datasheet's dense peak that large products reach."""
    memory_efficiency: float = number(most=1)
    """Share of the memory bandwidth that products with few rows reach."""
    overhead: Quantity = quantity("us")
    """Fixed time of a product, including the conversion of its input in narrow formats."""


@record
class LinkCalibration(Entry):
    """Collectives of one library within one server, over one generation of links."""

    link_efficiency: float = number(most=1)
    """Share of the link's bandwidth that rings and exchanges reach."""
    start: Quantity = quantity("us")
    """Fixed time of a call."""
    hop_latency: Quantity = quantity("us")
    """Time of one step of a ring without data."""
    segment_time: Quantity = quantity("us")
    """Fixed time of one segment of a message."""
    switch_efficiency: float | None = number(default=None, most=1)
    """Share of the link's bandwidth that reductions in the switch reach; `None` if the switch
    cannot compute."""
    switch_start: Quantity | None = quantity("us", default=None)
    """Fixed time of a call that is reduced in the switch."""
