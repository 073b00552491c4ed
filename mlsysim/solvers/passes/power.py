"""Power and energy of one pass."""

from __future__ import annotations

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value
from mlsysim.solvers.passes.inputs import PassInputs
from mlsysim.solvers.power import drawn_power

__all__ = ["pass_power"]


def pass_power(i: PassInputs, time: Value, mfu: Value, bytes_moved: Value) -> dict[str, Value]:
    """Return power and energy of the device from the work and the time of one pass."""
    mbu = f.bandwidth_utilization(bytes_moved, time, i.hardware.memory.bandwidth)
    drawn = drawn_power(i, mfu, mbu)  # a forward pass recomputes nothing, so HFU equals MFU
    return {"mbu": mbu, **drawn, "energy": drawn["device_power"] * time}
