"""Power and energy of devices, from the time that a kernel found and the work done in it."""

from __future__ import annotations

from types import SimpleNamespace

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, where

__all__: list[str] = []  # parts of a kernel, no kernel of their own


def flops_share(
    i: SimpleNamespace, flops: Value, wide_flops: Value, time: Value, devices: Value
) -> Value:
    """Return MFU or HFU; where one format computes everything, by the usual definition."""
    return where(
        i.wide_peak_rate == i.peak_rate,
        f.flops_utilization(flops, time, i.peak_rate, devices),
        f.format_flops_utilization(flops, wide_flops, time, i.peak_rate, i.wide_peak_rate, devices),
    )


def drawn_power(i: SimpleNamespace, hfu: Value, mbu: Value) -> dict[str, Value]:
    """Return the mean power of a device, and its place between idle and design power."""
    power = f.workload_power(
        i.design_power, i.constant_share, i.compute_share, i.memory_share, hfu, mbu
    )
    return {
        "device_power": power,
        "power_utilization": f.power_utilization(power, i.design_power, i.idle_share),
    }


def pass_power(i: SimpleNamespace, time: Value, mfu: Value, bytes_moved: Value) -> dict[str, Value]:
    """Return power and energy of one device from the work and the time of one pass."""
    mbu = f.bandwidth_utilization(bytes_moved, time, i.bandwidth)
    drawn = drawn_power(i, mfu, mbu)  # a forward pass computes nothing twice: HFU is MFU
    return {
        "mbu": mbu,
        **drawn,
        "energy": f.device_energy(drawn["device_power"], time),
    }


def served_power(
    i: SimpleNamespace, sequences: Value, time: Value, hfu: Value, traffic: Value
) -> dict[str, Value]:
    """Return power and energy of a serving group from the work and the time of one batch."""
    mbu = f.bandwidth_utilization(traffic, time, i.bandwidth)
    drawn = drawn_power(i, hfu, mbu)
    energy = f.devices_energy(i.tp_size, drawn["device_power"], time)
    return {
        "energy_per_token": f.served_batch_energy_per_token(energy, sequences, i.output_len),
        **drawn,
        "hfu": hfu,
        "mbu": mbu,
    }
