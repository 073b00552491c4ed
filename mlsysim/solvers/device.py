"""Questions about computing devices: their number formats, rates and power."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mlsysim.core import formulas as f
from mlsysim.core.fields import derived
from mlsysim.core.forms import replaced
from mlsysim.core.inputs import Inputs, default
from mlsysim.core.numeric import Value, is_known, maximum, minimum, where
from mlsysim.core.types import Accelerator, Band, PowerCalibration, Precision, find_precision
from mlsysim.core.units import Quantity
from mlsysim.registry.calibration.power import power_calibration_for
from mlsysim.registry.conventions import CONVENTIONS, Conventions
from mlsysim.registry.operations import PowerDraw, power_draw_for


class DeviceInputs(Inputs):
    """Inputs of a question about devices that compute and draw power."""

    precision: Precision
    power_calibration: PowerCalibration = default(lambda i: power_calibration_for(i.device))
    conventions: Conventions = default(lambda i: CONVENTIONS)
    power_draw: PowerDraw = default(lambda i: power_draw_for(i.device))
    wide_precision: Precision = default(
        lambda i: find_precision(i.device.compute.wide_precision(i.precision.name))
    )
    """Format of attention and logits, which stay wide when products are narrow."""

    @property
    def device(self) -> Accelerator:
        """One device; all of them are alike."""
        raise NotImplementedError

    @derived
    def peak_rate(self) -> Value:
        """Dense peak rate of a device, in the format of the products."""
        return self.device.compute.rate(self.precision.name)

    @derived
    def wide_peak_rate(self) -> Value:
        """Dense peak rate of a device, in the format of attention and logits."""
        return self.device.compute.rate(self.wide_precision.name)


def memory_account(need: Quantity, capacity: Quantity, usable: float = 1) -> str:
    """Return needed memory and what there is as one phrase, the same in all texts.

    `capacity` is what a step may use, and `usable` its share of what the device reports: 65.2 of
    78.7 GB usable (85.5 GB reported, 8% reserved), or 65.2 of 85.5 GB reported.
    """
    needed, have = (size.to("GB").magnitude for size in (need, capacity))
    account = f"{needed:,.1f} of {have:,.1f} GB"
    if usable == 1:
        return f"{account} reported"
    return f"{account} usable ({have / usable:,.1f} GB reported, {1 - usable:.0%} reserved)"


def flops_share(
    i: DeviceInputs, flops: Value, wide_flops: Value, time: Value, devices: Value
) -> Value:
    """Return MFU or HFU, by the usual definition if all work is in one format."""
    return where(
        i.wide_peak_rate == i.peak_rate,
        f.flops_utilization(flops, time, i.peak_rate, devices),
        f.format_flops_utilization(flops, wide_flops, time, i.peak_rate, i.wide_peak_rate, devices),
    )


def within_peak(band: Band, used: Value) -> Band:
    """Return a band of times that starts no lower than the share of the peak that is in use.

    Below that share of the predicted time, arithmetic or memory would exceed its peak rate.
    """
    low = where(is_known(band.low), maximum(band.low, minimum(used, 1)), band.low)
    return replaced(band, low=low)


def rate_within_peak(band: Band, used: Value) -> Band:
    """Return a band of rates that ends no higher than the rest of the peak allows."""
    high = where(is_known(band.high), minimum(band.high, 1 / minimum(used, 1)), band.high)
    return replaced(band, high=high)


def edges(name: str, band: Band, prediction: Value) -> dict[str, Value]:
    """Return the fields of a result with the edges of a band around a prediction."""
    low, high = band.around(prediction)
    return {f"{name}_low": low, f"{name}_high": high}


def drawn_power(i: DeviceInputs, hfu: Value, mbu: Value) -> dict[str, Value]:
    """Return the mean power of a device, and its position between idle and design power."""
    shares = i.power_calibration
    power = f.workload_power(
        i.device.tdp, shares.constant_share, shares.compute_share, shares.memory_share, hfu, mbu
    )
    return {
        "device_power": power,
        "power_utilization": f.power_utilization(power, i.device.tdp, i.power_draw.idle_share),
    }


def beyond(i: DeviceInputs, ranges: Iterable[tuple[str, Value, Value]], runs: str) -> Iterator[str]:
    """Yield each number of a question that is outside the range of the runs."""
    for name, least, most in ranges:
        value = getattr(i, name)
        if value < least:
            yield f"{name} = {value:,} is below {least:,}, the least of any {runs}"
        elif value > most:
            yield f"{name} = {value:,} is above {most:,}, the most of any {runs}"
