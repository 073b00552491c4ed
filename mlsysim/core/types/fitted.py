"""Constants that were fitted to measurements, and error bands for similar runs."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cached_property
from typing import Any, Self

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import Record, number, quantity, record, require
from mlsysim.core.numeric import Value
from mlsysim.core.types.precision import PRECISIONS
from mlsysim.core.types.source import Entry
from mlsysim.core.units import Q_, Quantity

STATE_EFFICIENCY = 0.0157
"""Share of the 16-bit peak rate that scans of states reach, on any machine."""


@record
class Band(Record):
    """Band of measured over predicted values that is meant to hold four of five runs.

    ``Band(low=0.9, high=1.2)`` contains measurements from 0.9 to 1.2 times the prediction, and
    ``Band()`` is the band of a prediction that no run supports. In a calibration, a band whose name
    starts with ``unseen_`` is for systems or models that were not among the runs.
    """

    low: float | None = number(default=None, most=1)
    """The 10th percentile of held-out runs, but at most 1, which is the prediction itself."""
    high: float | None = number(default=None, least=1)
    """The 90th percentile, but at least 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.low is None) != (self.high is None):
            argument = "low" if self.low is None else "high"
            raise ConfigError(
                f"Band.{argument} is missing: give both edges of a band, or neither",
                argument=argument,
            )

    @property
    def known(self) -> bool:
        """Whether there were enough runs for a band."""
        return self.low is not None

    def around(self, prediction: Value) -> tuple[Value, Value]:
        """Return the edges around a prediction; `None` without a band."""
        if self.low is None or self.high is None:
            return None, None
        return self.low * prediction, self.high * prediction

    def union(self, other: Band) -> Band:
        """Return the narrowest band that contains both; unknown if either is."""
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return Band()
        return Band(low=min(self.low, other.low), high=max(self.high, other.high))

    def __repr__(self) -> str:
        return f"<Band {self}>"

    def __str__(self) -> str:
        return f"{self.low:.3g} to {self.high:.3g}" if self.known else "no band"


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
        require(self, formats=tuple, **dict.fromkeys(self._bands(), Band))
        unknown = [
            name for name in self.formats if not isinstance(name, str) or name not in PRECISIONS
        ]
        if unknown:
            raise ConfigError(
                f"{type(self).__name__}.formats has {shown(unknown[0])}, which is not a number "
                f"format: choose from {', '.join(PRECISIONS)}",
                argument="formats",
            )

    @classmethod
    def _bands(cls) -> list[str]:
        """Return the names of the fields that hold bands."""
        return [item.name for item in fields(cls) if item.type == "Band"]

    def in_format(self, precision: str) -> Self:
        """Return the constants, without bands if none of the runs used the format."""
        return self if precision in self.formats else self.without_bands()

    def without_bands(self) -> Self:
        """Return the constants without bands, for a prediction that no run supports."""
        return self._bandless

    @cached_property
    def _bandless(self) -> Self:
        unknown: dict[str, Any] = dict.fromkeys(self._bands(), Band())
        return replace(self, **unknown)


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
    power_band : Band
        Band of the power of a device whose rate of tokens is known, for held-out models.
    energy_band : Band
        Band of the energy per served token, for held-out models; on a microcontroller, of the
        energy per pass.
    """

    measured_on: str = ""
    constant_share: float = number(most=1)
    compute_share: float = number(zero=True)
    memory_share: float = number(zero=True)
    power_band: Band = Band()
    energy_band: Band = Band()

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, power_band=Band, energy_band=Band)


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
    pass_band : Band
        Band of the time of a pass.
    """

    engine: str
    core: str
    precision: str
    efficiency: float = number(most=1)
    output_flops: Quantity = quantity("flop", default=Q_(0, "flop"), zero=True)
    weight_flops: Quantity = quantity("flop", default=Q_(0, "flop"), zero=True)
    layer_time: Quantity = quantity("us", default=Q_(0, "us"), zero=True)
    pass_band: Band = Band()

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, pass_band=Band)
        if self.precision not in ("", *PRECISIONS):
            raise ConfigError(
                f"NetworkCalibration.precision = {shown(self.precision)} is not a number format: "
                f"choose from {', '.join(PRECISIONS)}",
                argument="precision",
            )


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
