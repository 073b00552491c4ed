"""Reliability: how often a fleet fails."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, expm1

__all__ = [
    "expected_failures",
    "failure_probability",
    "fleet_mtbf",
    "observed_mtbf",
]


@formula
def observed_mtbf(devices: Value, time: Value, interruptions: Value) -> Value:
    r"""Mean time between failures of one device, from a record of a fleet.

    Every interruption is laid to the devices, whatever its cause: hosts, network and software too.

    $$ \theta = \frac{n\,t}{k} $$

    Parameters
    ----------
    devices : [1]
        $n$, devices watched.
    time : [s]
        $t$, time for which they were watched.
    interruptions : [1]
        $k$, interruptions in that time.

    Returns
    -------
    mtbf : [s]
        $\theta$, mean time between failures of one device.

    References
    ----------
    Llama Team (2024), The Llama 3 Herd of Models, section 3.3.4, https://arxiv.org/abs/2407.21783
    """
    return devices * time / interruptions


@formula
def fleet_mtbf(device_mtbf: Value, devices: Value) -> Value:
    r"""Mean time between failures of a job that any device can stop.

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
    Kokolis et al. (2025), Revisiting Reliability in Large-Scale Machine Learning Research Clusters:
    nodes in series, https://arxiv.org/abs/2410.21680
    """
    return device_mtbf / devices


@formula
def expected_failures(time: Value, mtbf: Value) -> Value:
    r"""Number of failures to expect in a time.

    $$ k = \frac{t}{M} $$

    Parameters
    ----------
    time : [s]
        $t$, time.
    mtbf : [s]
        $M$, mean time between failures.

    Returns
    -------
    failures : [1]
        $k$, expected failures.

    References
    ----------
    Definition of the mean time between failures.
    """
    return time / mtbf


@formula
def failure_probability(time: Value, mtbf: Value) -> Value:
    r"""Probability that at least one failure occurs, when failures come at a constant rate.

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
    Daly (2006), A higher order estimate of the optimum checkpoint interval for restart dumps
    (Poisson failures), https://doi.org/10.1016/j.future.2004.11.016
    """
    return -expm1(-time / mtbf)
