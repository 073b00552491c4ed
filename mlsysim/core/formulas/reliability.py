"""Reliability: how often a fleet fails, and the cost and benefit of checkpoints."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, exp, expm1, sqrt

__all__ = [
    "checkpoint_goodput",
    "failure_probability",
    "fleet_mtbf",
    "observed_mtbf",
    "optimal_checkpoint_interval",
]


@formula
def checkpoint_goodput(
    interval: Value, checkpoint_time: Value, restart_time: Value, mtbf: Value
) -> Value:
    r"""Share of the time during which a job with checkpoints makes progress.

    Failures come at a constant rate and may strike during work, checkpoint and restart. An interval
    that fails starts again. The formula is exact, not an expansion.

    $$ g = \frac{\tau}{M\,e^{R/M}\,\bigl(e^{(\tau+\delta)/M} - 1\bigr)} $$

    Parameters
    ----------
    interval : [s]
        $\tau$, time of work between checkpoints.
    checkpoint_time : [s]
        $\delta$, time to write a checkpoint.
    restart_time : [s]
        $R$, time from a failure until work resumes.
    mtbf : [s]
        $M$, mean time between failures of the fleet.

    Returns
    -------
    goodput : [1]
        $g$, share of the time that is useful work.

    References
    ----------
    @daly2006, equation 9
    """
    segment = interval + checkpoint_time
    return interval / mtbf * exp(-(restart_time + segment) / mtbf) / -expm1(-segment / mtbf)


@formula
def failure_probability(time: Value, mtbf: Value) -> Value:
    r"""Probability that at least one failure occurs, if failures come at a constant rate.

    $$ P = 1 - e^{-t/M} $$

    Parameters
    ----------
    time : [s]
        $t$, time.
    mtbf : [s]
        $M$, mean time between failures.

    Returns
    -------
    probability : [1]
        $P$, probability of at least one failure.

    References
    ----------
    @daly2006 (Poisson failures)
    """
    return -expm1(-time / mtbf)


@formula
def fleet_mtbf(device_mtbf: Value, devices: Value) -> Value:
    r"""Mean time between failures of a job that stops if any device fails.

    $$ M = \frac{\theta}{n} $$

    Parameters
    ----------
    device_mtbf : [s]
        $\theta$, mean time between failures of one device.
    devices : [1]
        $n$, devices.

    Returns
    -------
    mtbf : [s]
        $M$, mean time between failures of the fleet.

    References
    ----------
    @kokolis2025: nodes in series
    """
    return device_mtbf / devices


@formula
def observed_mtbf(devices: Value, time: Value, interruptions: Value) -> Value:
    r"""Mean time between failures of one device, from a record of a fleet.

    Every interruption is attributed to the devices, whatever its cause, including hosts, network
    and software.

    $$ \theta = \frac{n\,t}{k} $$

    Parameters
    ----------
    devices : [1]
        $n$, observed devices.
    time : [s]
        $t$, time of observation.
    interruptions : [1]
        $k$, interruptions in that time.

    Returns
    -------
    mtbf : [s]
        $\theta$, mean time between failures of one device.

    References
    ----------
    @grattafiori2024, section 3.3.4
    """
    return devices * time / interruptions


@formula
def optimal_checkpoint_interval(checkpoint_time: Value, mtbf: Value) -> Value:
    r"""Time between checkpoints that loses the least, to first order (Young, or Young and Daly).

    The approximation is good if a checkpoint takes far less time than the time between failures.

    $$ \tau = \sqrt{2\,\delta\,M} $$

    Parameters
    ----------
    checkpoint_time : [s]
        $\delta$, time to write a checkpoint.
    mtbf : [s]
        $M$, mean time between failures of the fleet.

    Returns
    -------
    interval : [s]
        $\tau$, time of work between checkpoints.

    References
    ----------
    @young1974; @daly2006
    """
    return sqrt(2 * checkpoint_time * mtbf)
