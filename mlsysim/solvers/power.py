"""Power and energy of devices, from the predicted time and the work done in it."""

from __future__ import annotations

from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, is_known, maximum, minimum, where
from mlsysim.solvers.device import DeviceInputs


def flops_share(
    i: DeviceInputs, flops: Value, wide_flops: Value, time: Value, devices: Value
) -> Value:
    """Return MFU or HFU, by the usual definition if all work is in one format."""
    return where(
        i.wide_peak_rate == i.peak_rate,
        f.flops_utilization(flops, time, i.peak_rate, devices),
        f.format_flops_utilization(flops, wide_flops, time, i.peak_rate, i.wide_peak_rate, devices),
    )


def within_peak(edge: Any, used: Value) -> Value:
    """Return the lower edge of a band of times, at least the share of the peak that is in use.

    Below that share of the predicted time, arithmetic or memory would exceed its peak rate.
    """
    return where(is_known(edge), maximum(edge, minimum(used, 1)), edge)


def rate_within_peak(edge: Any, used: Value) -> Value:
    """Return the upper edge of a band of rates, at most what the rest of the peak allows."""
    return where(is_known(edge), minimum(edge, 1 / minimum(used, 1)), edge)


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
