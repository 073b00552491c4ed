"""Power and energy of a serving group."""

from __future__ import annotations

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, maximum
from mlsysim.solvers.power import drawn_power
from mlsysim.solvers.serving.inputs import ServingInputs

__all__ = ["served_power"]


def served_power(
    i: ServingInputs, sequences: Value, cycle: Value, hfu: Value, traffic: Value
) -> dict[str, Value]:
    """Return power and energy of a serving group from the work and the time of one batch."""
    mbu = f.bandwidth_utilization(traffic, cycle, i.device.memory.bandwidth)
    drawn = drawn_power(i, hfu, mbu)
    energy = i.replica_devices * drawn["device_power"] * cycle
    return {
        # A prefill yields a token even if no decode follows.
        "energy_per_token": energy / (sequences * maximum(i.output_len, 1)),
        **drawn,
        "hfu": hfu,
        "mbu": mbu,
    }
