"""Checkpoints: what they hold, what they save and what they cost."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, exp, expm1, sqrt

__all__ = [
    "checkpoint_goodput",
    "checkpoint_overhead",
    "checkpoint_size",
    "checkpoint_write_time",
    "failure_loss",
    "lost_time",
    "optimal_checkpoint_interval",
]


@formula
def checkpoint_size(weights: Value, optimizer: Value) -> Value:
    r"""Bytes of a checkpoint: what training needs to go on.

    $$ M_c = M_w + M_o $$

    Parameters
    ----------
    weights : [byte]
        $M_w$, weights.
    optimizer : [byte]
        $M_o$, state of the optimizer.

    Returns
    -------
    size : [byte]
        $M_c$, bytes of a checkpoint.

    References
    ----------
    Narayanan et al. (2021), Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM, section 5.10 (13.8 TB for a trillion parameters), https://arxiv.org/abs/2104.04473
    """
    return weights + optimizer


@formula
def checkpoint_write_time(size: Value, storage_bandwidth: Value) -> Value:
    r"""Time to write a checkpoint while training waits.

    $$ \delta = \frac{M_c}{B_s} $$

    Parameters
    ----------
    size : [byte]
        $M_c$, bytes of a checkpoint.
    storage_bandwidth : [byte/s]
        $B_s$, rate at which the fleet writes to storage.

    Returns
    -------
    time : [s]
        $\delta$, time to write a checkpoint.

    References
    ----------
    Narayanan et al. (2021), Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM, section 5.10 (13.8 TB for a trillion parameters), https://arxiv.org/abs/2104.04473
    """
    return size / storage_bandwidth


@formula
def optimal_checkpoint_interval(checkpoint_time: Value, mtbf: Value) -> Value:
    r"""Time between checkpoints that loses least, to first order: Young's, or Young and Daly's.

    Good while a checkpoint takes far less time than passes between failures.

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
    Young (1974), A first order approximation to the optimum checkpoint interval,
    https://doi.org/10.1145/361147.361115; Daly (2006), A higher order estimate of the optimum
    checkpoint interval for restart dumps, https://doi.org/10.1016/j.future.2004.11.016
    """
    return sqrt(2 * checkpoint_time * mtbf)


@formula
def checkpoint_goodput(
    interval: Value, checkpoint_time: Value, restart_time: Value, mtbf: Value
) -> Value:
    r"""Share of the time in which a job with checkpoints makes progress.

    Failures come at a constant rate and may strike during work, checkpoint and restart. An interval
    that fails is begun anew. The formula is exact, not an expansion.

    $$ g = \frac{\tau}{M\,e^{R/M}\,\bigl(e^{(\tau+\delta)/M} - 1\bigr)} $$

    Parameters
    ----------
    interval : [s]
        $\tau$, time of work between checkpoints.
    checkpoint_time : [s]
        $\delta$, time to write a checkpoint.
    restart_time : [s]
        $R$, time from a failure until work goes on.
    mtbf : [s]
        $M$, mean time between failures of the fleet.

    Returns
    -------
    goodput : [1]
        $g$, share of the time that is useful work.

    References
    ----------
    Daly (2006), A higher order estimate of the optimum checkpoint interval for restart dumps,
    equation 9, https://doi.org/10.1016/j.future.2004.11.016
    """
    segment = interval + checkpoint_time
    return interval / mtbf * exp(-(restart_time + segment) / mtbf) / -expm1(-segment / mtbf)


@formula
def lost_time(time: Value, goodput: Value) -> Value:
    r"""Time of a job that is no progress.

    $$ t_l = (1 - g)\,t $$

    Parameters
    ----------
    time : [s]
        $t$, time of the job.
    goodput : [1]
        $g$, share of it that is useful work.

    Returns
    -------
    time : [s]
        $t_l$, time lost.

    References
    ----------
    Definition of goodput.
    """
    return time * (1 - goodput)


@formula
def checkpoint_overhead(
    time: Value, goodput: Value, interval: Value, checkpoint_time: Value
) -> Value:
    r"""Time that the checkpoints of a job take, apart from those that a failure undoes.

    $$ t_c = g\,t\,\frac{\delta}{\tau} $$

    Parameters
    ----------
    time : [s]
        $t$, time of the job.
    goodput : [1]
        $g$, share of it that is useful work.
    interval : [s]
        $\tau$, time of work between checkpoints.
    checkpoint_time : [s]
        $\delta$, time to write a checkpoint.

    Returns
    -------
    time : [s]
        $t_c$, time spent on checkpoints.

    References
    ----------
    Counting: one checkpoint for every interval of useful work.
    """
    return time * goodput * checkpoint_time / interval


@formula
def failure_loss(lost_time: Value, checkpoint_overhead: Value) -> Value:
    r"""Time of a job that failures cost: work done again, and restarts.

    $$ t_r = t_l - t_c $$

    Parameters
    ----------
    lost_time : [s]
        $t_l$, time lost in all.
    checkpoint_overhead : [s]
        $t_c$, time spent on checkpoints.

    Returns
    -------
    time : [s]
        $t_r$, time lost to failures.

    References
    ----------
    Sum of the parts.
    """
    return lost_time - checkpoint_overhead
