"""Inputs shared by all questions about computing devices: number formats and rates."""

from __future__ import annotations

from mlsysim.core.fields import derived
from mlsysim.core.inputs import Inputs, default
from mlsysim.core.numeric import Value
from mlsysim.core.types import Accelerator, PowerCalibration, Precision, find_precision
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
    78.7 GB usable (85.5 GB reported, 8% reserved).
    """
    needed, have = (size.to("GB").magnitude for size in (need, capacity))
    account = f"{needed:,.1f} of {have:,.1f} GB usable"
    if usable == 1:
        return account
    return f"{account} ({have / usable:,.1f} GB reported, {1 - usable:.0%} reserved)"
