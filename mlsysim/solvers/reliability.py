"""How often does a fleet fail, and what do failures and checkpoints cost a long job?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from mlsysim.core import formulas as f
from mlsysim.core.errors import ConfigError
from mlsysim.core.fields import number, quantity, record
from mlsysim.core.inputs import Inputs, default
from mlsysim.core.numeric import Value, first_known
from mlsysim.core.result import Result
from mlsysim.core.types import FixedShapeModel, Fleet, Precision, TransformerModel, Workload
from mlsysim.core.units import Quantity, format_number
from mlsysim.registry.conventions import CONVENTIONS, Conventions
from mlsysim.registry.operations import INTERRUPTIONS, RECOVERY, FailureRecord, Recovery
from mlsysim.solvers.arguments import Amount, Noun, PrecisionName
from mlsysim.solvers.base import Model, Solver


@record
class ReliabilityResult(Result):
    """Answer of `ReliabilitySolver`: a long job on a fleet that fails."""

    fleet_mtbf: Quantity = quantity("h")
    """Mean time between failures of the whole fleet."""
    device_mtbf: Quantity = quantity("h")
    """Mean time between failures of one device, including its share of host and network."""
    failure_probability: float = number()
    """Probability that the job meets at least one failure."""
    expected_failures: float = number()
    """Failures to expect during the job."""
    optimal_checkpoint_interval: Quantity = quantity("minute")
    """Working time between checkpoints that loses the least time, by Young's formula."""
    checkpoint_interval: Quantity = quantity("minute")
    """The interval used for the other fields: the optimal one, or the one given."""
    checkpoint_size: Quantity | None = quantity("GB")
    """Weights and optimizer state; `None` without a model."""
    checkpoint_time: Quantity = quantity("s")
    """Time to write a checkpoint, while training waits."""
    restart_time: Quantity = quantity("minute")
    """Time from a failure until training resumes."""
    goodput: float = number()
    """Share of the job's time spent making progress."""
    lost_time: Quantity = quantity("h")
    """Time of the job without progress: checkpoints, repeated work and restarts."""
    checkpoint_overhead: Quantity = quantity("h")
    """Part of the lost time due to checkpoints."""
    failure_loss: Quantity = quantity("h")
    """Part of the lost time due to failures."""
    feasible: bool
    """Whether the time between failures is longer than the interval, and than a checkpoint and a
    restart together."""
    reasons: tuple[str, ...]
    """Why the job makes hardly any progress; empty if it is feasible."""


class ReliabilityInputs(Inputs):
    """Inputs of failures and checkpoints of a job. NaN means that a value was not given."""

    fleet: Fleet
    job_duration_hours: Value
    """In seconds, as all times are."""
    checkpoint_time_s: Value
    device_mtbf: Value = default(lambda i: i.observed_mtbf)
    restart_time: Value = default(lambda i: i.recovery.restart_time)
    checkpoint_interval: Value
    model: Workload | None
    precision: Precision
    storage_bandwidth: Value
    interruptions: FailureRecord = default(lambda i: INTERRUPTIONS)
    recovery: Recovery = default(lambda i: RECOVERY)
    conventions: Conventions = default(lambda i: CONVENTIONS)

    @property
    def observed_mtbf(self) -> Value:
        """Mean time between failures of one device in a published run."""
        run = self.interruptions
        return f.observed_mtbf(run.devices, run.duration, run.interruptions)

    @property
    def parameters(self) -> Value:
        """Parameters of the model; NaN without one."""
        return math.nan if self.model is None else self.model.parameters


def checkpointed_job(i: ReliabilityInputs) -> dict[str, Any]:
    """Return failures, checkpoints and goodput of a job that stops if any device fails."""
    # How often it fails
    duration, devices = i.job_duration_hours, i.fleet.count * i.fleet.node.accelerators_per_node
    mtbf = f.fleet_mtbf(i.device_mtbf, devices)

    # Contents of a checkpoint: weights and optimizer state
    each, rules = i.precision.bytes_per_element, i.conventions
    checkpoint_size = i.parameters * each + f.optimizer_state_size(
        i.parameters, each, rules.moment_bytes, rules.master_bytes
    )
    checkpoint_time = first_known(i.checkpoint_time_s, checkpoint_size / i.storage_bandwidth)
    optimum = f.optimal_checkpoint_interval(checkpoint_time, mtbf)
    interval = first_known(i.checkpoint_interval, optimum)

    # Time left for progress
    goodput = f.checkpoint_goodput(interval, checkpoint_time, i.restart_time, mtbf)
    lost_time = (1 - goodput) * duration
    # One checkpoint for every interval of useful work
    overhead = duration * goodput * checkpoint_time / interval
    return {
        "fleet_mtbf": mtbf,
        "device_mtbf": i.device_mtbf,
        "failure_probability": f.failure_probability(duration, mtbf),
        "expected_failures": duration / mtbf,
        "optimal_checkpoint_interval": optimum,
        "checkpoint_interval": interval,
        "checkpoint_size": checkpoint_size,
        "checkpoint_time": checkpoint_time,
        "restart_time": i.restart_time,
        "goodput": goodput,
        "lost_time": lost_time,
        "checkpoint_overhead": overhead,
        "failure_loss": lost_time - overhead,
        "feasible": (interval <= mtbf) & (checkpoint_time + i.restart_time <= mtbf),
    }


class ReliabilitySolver(Solver[ReliabilityInputs, ReliabilityResult]):
    """How often does a fleet fail, and what do failures and checkpoints cost a long job?

    Failures come at a constant rate. The failure of any device stops the job, which restarts from
    its last checkpoint. Training waits while a checkpoint is written.
    """

    inputs = ReliabilityInputs
    result = ReliabilityResult

    @classmethod
    def solve(
        cls,
        *,
        fleet: Annotated[Fleet, Noun(hint="Systems.Clusters.Research_256")],
        job_duration_hours: Annotated[float | Quantity, Amount(unit="h", plain=True)],
        checkpoint_time_s: Annotated[float | Quantity | None, Amount(unit="s", plain=True)] = None,
        device_mtbf: Annotated[Quantity | None, Amount(unit="h")] = None,
        restart_time: Annotated[Quantity | None, Amount(unit="minute", zero=True)] = None,
        checkpoint_interval: Annotated[Quantity | None, Amount(unit="minute")] = None,
        model: Annotated[
            Workload | None,
            Noun(kinds=(TransformerModel, FixedShapeModel), hint="Models.Llama3_70B"),
        ] = None,
        precision: Annotated[str, PrecisionName()] = "fp16",
        storage_bandwidth: Annotated[Quantity | None, Amount(unit="GB/s")] = None,
    ) -> ReliabilityResult:
        """Predict failures, the best checkpoint interval, and goodput.

        Parameters
        ----------
        fleet
            The servers that the job occupies.
        job_duration_hours
            Duration of the job in hours, or a quantity of time, including lost time.
        checkpoint_time_s
            Time to write a checkpoint, in seconds, or a quantity of time. `None` computes it
            from `model` and `storage_bandwidth`.
        device_mtbf
            Mean time between failures of one device, including its share of host and network.
            `None` takes the record of Llama 3 405B.
        restart_time
            Time from a failure until training resumes; `None` takes ten minutes.
        checkpoint_interval
            Working time between checkpoints; `None` takes the optimal one.
        model
            The model being trained, for the size of its checkpoint.
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
            If an argument is out of range, or the time of a checkpoint does not follow from the
            arguments.

        Notes
        -----
        The time between failures falls as 1/n with the number of devices. This fits large jobs,
        which stop mostly because of hardware. Small jobs stop more often than that, for other
        reasons.

        Examples
        --------
        >>> from mlsysim import ReliabilitySolver, Systems
        >>> r = ReliabilitySolver.solve(
        ...     fleet=Systems.Clusters.Frontier_8K, job_duration_hours=720, checkpoint_time_s=60
        ... )
        >>> print(f"{r.fleet_mtbf:.2f}, {r.optimal_checkpoint_interval:.1f}, {r.goodput:.3f}")
        6.19 h, 27.2 min, 0.904
        """
        return cls._answer(locals())

    @classmethod
    def check(cls, inputs: ReliabilityInputs) -> None:
        """Raise if the time of a checkpoint does not follow from the arguments."""
        if inputs.checkpoint_time_s is not None:
            return
        for name, example in (("model", "Models.Llama3_70B"), ("storage_bandwidth", "")):
            if getattr(inputs, name) is None:
                way = example or 'Q_(100, "GB/s")'
                raise ConfigError(
                    f"checkpoint_time_s is missing, and it cannot be computed without {name}: pass "
                    f"checkpoint_time_s=60, or model= and storage_bandwidth=, here {name}={way}",
                    argument="checkpoint_time_s",
                )

    @classmethod
    def model(cls, inputs: ReliabilityInputs) -> Model[ReliabilityInputs]:
        """Return the model."""
        return checkpointed_job

    @classmethod
    def rest(
        cls, values: Mapping[str, Any], inputs: ReliabilityInputs
    ) -> dict[str, Callable[[], Any]]:
        """Add the reasons."""
        return {"reasons": lambda: _reasons(values)}


def _reasons(values: Mapping[str, Any]) -> tuple[str, ...]:
    if values["feasible"]:
        return ()
    mtbf = format_number(values["fleet_mtbf"])
    if values["checkpoint_time"] + values["restart_time"] > values["fleet_mtbf"]:
        why = (
            f"a checkpoint takes {format_number(values['checkpoint_time'])} and a restart "
            f"{format_number(values['restart_time'])}"
        )
    else:
        why = f"there are {format_number(values['checkpoint_interval'])} between checkpoints"
    return (
        f"progress: a failure comes every {mtbf}, and {why}, so that goodput is "
        f"{values['goodput']:.1%}; write checkpoints faster or more often, restart sooner, use "
        "fewer devices, or devices that fail less often",
    )
