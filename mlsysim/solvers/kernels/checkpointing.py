"""Kernel of a long job on a fleet that fails: formulas composed, and nothing else."""

from __future__ import annotations

from typing import Any

from mlsysim.core.formulas import (
    checkpoint_goodput,
    checkpoint_overhead,
    checkpoint_size,
    checkpoint_write_time,
    expected_failures,
    failure_loss,
    failure_probability,
    fleet_devices,
    fleet_mtbf,
    lost_time,
    observed_mtbf,
    optimal_checkpoint_interval,
    optimizer_state_size,
    tensor_size,
)
from mlsysim.core.numeric import Value, first_known

__all__ = ["checkpointed_job"]


def checkpointed_job(
    nodes: Value,
    devices_per_node: Value,
    job_duration: Value,
    given_device_mtbf: Value,
    observed_devices: Value,
    observed_duration: Value,
    observed_interruptions: Value,
    restart_time: Value,
    given_checkpoint_time: Value,
    given_checkpoint_interval: Value,
    parameters: Value,
    bytes_per_element: Value,
    moment_bytes: Value,
    master_bytes: Value,
    storage_bandwidth: Value,
) -> dict[str, Any]:
    """Failures, checkpoints and goodput of a job that any device can stop.

    Parameters
    ----------
    nodes : [1]
        Servers of the fleet.
    devices_per_node : [1]
        Devices of a server.
    job_duration : [s]
        Time that the job occupies the fleet.
    given_device_mtbf : [s]
        Mean time between failures of a device, if known.
    observed_devices : [1]
        Devices of a published run.
    observed_duration : [s]
        Time for which that run was watched.
    observed_interruptions : [1]
        Its unexpected interruptions.
    restart_time : [s]
        Time from a failure until work goes on.
    given_checkpoint_time : [s]
        Time to write a checkpoint, if known.
    given_checkpoint_interval : [s]
        Time of work between checkpoints, if not the optimal one.
    parameters : [param]
        Parameters of the model.
    bytes_per_element : [byte]
        Bytes of one weight.
    moment_bytes : [byte]
        Bytes of Adam's moments per parameter.
    master_bytes : [byte]
        Bytes of a master weight.
    storage_bandwidth : [byte/s]
        Rate at which the fleet writes to storage.
    """
    # How often it fails
    device_mtbf = first_known(
        given_device_mtbf,
        observed_mtbf(observed_devices, observed_duration, observed_interruptions),
    )
    mtbf = fleet_mtbf(device_mtbf, fleet_devices(nodes, devices_per_node))

    # What a checkpoint takes
    size = checkpoint_size(
        tensor_size(parameters, bytes_per_element),
        optimizer_state_size(parameters, bytes_per_element, moment_bytes, master_bytes),
    )
    write_time = first_known(given_checkpoint_time, checkpoint_write_time(size, storage_bandwidth))
    optimum = optimal_checkpoint_interval(write_time, mtbf)
    interval = first_known(given_checkpoint_interval, optimum)

    # What is left of the time
    goodput = checkpoint_goodput(interval, write_time, restart_time, mtbf)
    lost = lost_time(job_duration, goodput)
    overhead = checkpoint_overhead(job_duration, goodput, interval, write_time)
    return {
        "fleet_mtbf": mtbf,
        "device_mtbf": device_mtbf,
        "failure_probability": failure_probability(job_duration, mtbf),
        "expected_failures": expected_failures(job_duration, mtbf),
        "optimal_checkpoint_interval": optimum,
        "checkpoint_interval": interval,
        "checkpoint_size": size,
        "checkpoint_time": write_time,
        "restart_time": restart_time,
        "goodput": goodput,
        "lost_time": lost,
        "checkpoint_overhead": overhead,
        "failure_loss": failure_loss(lost, overhead),
        "feasible": (interval <= mtbf) & (write_time <= mtbf),
    }
