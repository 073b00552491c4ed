"""How often does a fleet fail, and what do failures and checkpoints cost a long job?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from mlsysim.core.errors import ConfigError
from mlsysim.core.types import Fleet, TransformerModel
from mlsysim.core.types.workload import FixedShapeModel, Workload
from mlsysim.core.units import Quantity, format_number
from mlsysim.registry.conventions import CONVENTIONS
from mlsysim.registry.operations import INTERRUPTIONS, RECOVERY
from mlsysim.solvers.amounts import Amount
from mlsysim.solvers.arguments import Argument, Noun, PrecisionName
from mlsysim.solvers.base import Plan, Solver
from mlsysim.solvers.kernels.checkpointing import checkpointed_job
from mlsysim.solvers.results.reliability import ReliabilityResult

__all__ = ["ReliabilitySolver"]

_PLAN = Plan(
    checkpointed_job,
    {
        "nodes": "fleet.count",
        "devices_per_node": "fleet.node.accelerators_per_node",
        "job_duration": "job_duration_hours",
        "given_device_mtbf": ("device_mtbf", "unknown"),
        "observed_devices": "interruptions.devices",
        "observed_duration": "interruptions.duration",
        "observed_interruptions": "interruptions.interruptions",
        "restart_time": ("restart_time", "recovery.restart_time"),
        "given_checkpoint_time": ("checkpoint_time_s", "unknown"),
        "given_checkpoint_interval": ("checkpoint_interval", "unknown"),
        "parameters": ("model.parameters", "unknown"),
        "bytes_per_element": "precision.bytes_per_element",
        "moment_bytes": "conventions.moment_bytes",
        "master_bytes": "conventions.master_bytes",
        "storage_bandwidth": ("storage_bandwidth", "unknown"),
    },
)


class ReliabilitySolver(Solver[ReliabilityResult]):
    """How often does a fleet fail, and what do failures and checkpoints cost a long job?

    Failures come at a constant rate, and any device stops the job, which begins again at its
    last checkpoint. Training waits while a checkpoint is written.
    """

    parameters: ClassVar[Mapping[str, Argument]] = {
        "fleet": Noun(kinds=(Fleet,), hint="Systems.Clusters.Research_256"),
        "job_duration_hours": Amount(unit="h", plain=True),
        "checkpoint_time_s": Amount(unit="s", plain=True, optional=True),
        "device_mtbf": Amount(unit="h", optional=True),
        "restart_time": Amount(unit="minute", zero=True, optional=True),
        "checkpoint_interval": Amount(unit="minute", optional=True),
        "model": Noun(
            kinds=(TransformerModel, FixedShapeModel), hint="Models.Llama3_70B", optional=True
        ),
        "precision": PrecisionName(),
        "storage_bandwidth": Amount(unit="GB/s", optional=True),
    }
    constants: ClassVar[Mapping[str, Any]] = {
        "interruptions": INTERRUPTIONS,
        "recovery": RECOVERY,
        "conventions": CONVENTIONS,
        "unknown": math.nan,
    }
    result = ReliabilityResult

    @classmethod
    def solve(
        cls,
        *,
        fleet: Fleet,
        job_duration_hours: float | Quantity,
        checkpoint_time_s: float | Quantity | None = None,
        device_mtbf: Quantity | None = None,
        restart_time: Quantity | None = None,
        checkpoint_interval: Quantity | None = None,
        model: Workload | None = None,
        precision: str = "fp16",
        storage_bandwidth: Quantity | None = None,
    ) -> ReliabilityResult:
        """Count failures, space checkpoints, and tell what is left of the time.

        Parameters
        ----------
        fleet
            The servers that the job occupies.
        job_duration_hours
            Time for which it does, in hours, or a quantity of time; what is lost is part of it.
        checkpoint_time_s
            Time to write a checkpoint, in seconds, or a quantity of time. `None` works it out
            from `model` and `storage_bandwidth`.
        device_mtbf
            Mean time between failures of one device, its share of host and network included.
            `None` takes the record of Llama 3 405B.
        restart_time
            Time from a failure until training goes on; `None` takes ten minutes.
        checkpoint_interval
            Time of work between checkpoints; `None` takes the optimal one.
        model
            The model that is trained, for the size of its checkpoint.
        precision
            Number format of its weights.
        storage_bandwidth
            Rate at which the whole fleet writes to storage.

        Returns
        -------
        ReliabilityResult
            Failures, checkpoints and goodput.

        Raises
        ------
        ConfigError
            If an argument is out of range, or nothing tells how long a checkpoint takes.

        Notes
        -----
        The time between failures falls as 1/n with the number of devices. That holds for large
        jobs, which hardware stops; small ones stop more often than that, for other reasons.

        Examples
        --------
        >>> from mlsysim import ReliabilitySolver, Systems
        >>> r = ReliabilitySolver.solve(
        ...     fleet=Systems.Clusters.Frontier_8K, job_duration_hours=720, checkpoint_time_s=60
        ... )
        >>> print(f"{r.fleet_mtbf:.2f}, {r.optimal_checkpoint_interval:.1f}, {r.goodput:.3f}")
        6.19 h, 27.2 min, 0.904
        """
        return cls._run(
            fleet=fleet,
            job_duration_hours=job_duration_hours,
            checkpoint_time_s=checkpoint_time_s,
            device_mtbf=device_mtbf,
            restart_time=restart_time,
            checkpoint_interval=checkpoint_interval,
            model=model,
            precision=precision,
            storage_bandwidth=storage_bandwidth,
        )

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check every argument, and that the time of a checkpoint is known."""
        arguments = super().admit(given)
        if arguments["checkpoint_time_s"] is not None:
            return arguments
        for name, example in (("model", "Models.Llama3_70B"), ("storage_bandwidth", "")):
            if arguments[name] is None:
                way = example or 'Q_(100, "GB/s")'
                raise ConfigError(
                    f"checkpoint_time_s is missing, and without {name} it does not follow: pass "
                    f"checkpoint_time_s=60, or model= and storage_bandwidth=, here {name}={way}",
                    argument="checkpoint_time_s",
                )
        return arguments

    @classmethod
    def plan(cls, arguments: Mapping[str, Any]) -> Plan:
        """There is one kernel for all."""
        return _PLAN

    @classmethod
    def rest(
        cls, values: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> dict[str, Callable[[], Any]]:
        """Add the reasons."""
        return {"reasons": lambda: _reasons(values)}


def _reasons(values: Mapping[str, Any]) -> tuple[str, ...]:
    if values["feasible"]:
        return ()
    return (
        f"progress: a failure comes every {format_number(values['fleet_mtbf'])}, a "
        f"checkpoint takes {format_number(values['checkpoint_time'])} after "
        f"{format_number(values['checkpoint_interval'])} of work; write checkpoints "
        "faster, use fewer devices, or devices that fail less often",
    )
