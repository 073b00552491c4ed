"""Shares: what one device holds, works on or waits for when work and states are split."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value

__all__ = [
    "common_parameters",
    "device_layer_time",
    "parameter_share",
    "sequences_per_rank",
    "sharded_parameters",
    "stage_share",
    "state_replicas",
    "step_microbatches",
]


@formula
def state_replicas(dp_size: Value, cp_size: Value) -> Value:
    r"""Devices that hold the same part of the model, over which its states may be sharded.

    $$ n_r = d\,c_p $$

    Parameters
    ----------
    dp_size : [1]
        $d$, data-parallel replicas.
    cp_size : [1]
        $c_p$, devices that share each sequence: they hold the same weights.

    Returns
    -------
    devices : [1]
        $n_r$, devices.

    References
    ----------
    Counting.
    """
    return dp_size * cp_size


@formula
def sequences_per_rank(sequences: Value, cp_size: Value) -> Value:
    r"""Sequences of a microbatch, counted in whole ones, that one device works on.

    $$ b_1 = \frac{b}{c_p} $$

    Parameters
    ----------
    sequences : [1]
        $b$, sequences of a microbatch.
    cp_size : [1]
        $c_p$, devices that share each sequence (context parallelism).

    Returns
    -------
    sequences : [1]
        $b_1$, sequences.

    References
    ----------
    Counting.
    """
    return sequences / cp_size


@formula
def device_layer_time(computed: Value, tensor: Value, expert: Value) -> Value:
    r"""Time of a layer and microbatch on the device, its communication included.

    $$ t = t_l + t_t + t_x $$

    Parameters
    ----------
    computed : [s]
        $t_l$, passes of the layer.
    tensor : [s]
        $t_t$, all-reduces of tensor parallelism.
    expert : [s]
        $t_x$, exchanges with experts.

    Returns
    -------
    time : [s]
        $t$, time.

    References
    ----------
    Sum of parts that do not overlap.
    """
    return computed + tensor + expert


@formula
def sharded_parameters(
    parameters: Value,
    expert_parameters: Value,
    tp_size: Value,
    pp_size: Value,
    ep_size: Value,
    imbalance: Value,
) -> Value:
    r"""Parameters of one tensor-, pipeline- and expert-parallel part.

    $$ N_d = \frac{\iota}{t\,p}\left(N - N_x + \frac{N_x}{e_p}\right) $$

    Parameters
    ----------
    parameters : [param]
        $N$, parameters of the model.
    expert_parameters : [param]
        $N_x$, those of its experts.
    tp_size : [1]
        $t$, devices that share each layer.
    pp_size : [1]
        $p$, pipeline stages.
    ep_size : [1]
        $e_p$, devices that share the experts.
    imbalance : [1]
        $\iota$, layers of the longest stage over the mean.

    Returns
    -------
    parameters : [param]
        $N_d$, parameters on one device.

    References
    ----------
    Counting; the experts are dealt out over the data-parallel replicas.
    """
    return (
        imbalance
        / (tp_size * pp_size)
        * (parameters - expert_parameters + expert_parameters / ep_size)
    )


@formula
def parameter_share(parameters: Value, shards: Value) -> Value:
    r"""Parameters that one of several devices or layers answers for.

    $$ N_1 = \frac{N}{n} $$

    Parameters
    ----------
    parameters : [param]
        $N$, parameters of all.
    shards : [1]
        $n$, equal shares.

    Returns
    -------
    parameters : [param]
        $N_1$, parameters of one.

    References
    ----------
    Counting.
    """
    return parameters / shards


@formula
def stage_share(head: Value, pp_size: Value) -> Value:
    r"""Share of the last stage's extra work in that of the mean stage.

    $$ t = \frac{t_v}{p} $$

    Parameters
    ----------
    head : [s]
        $t_v$, output projection and loss.
    pp_size : [1]
        $p$, pipeline stages.

    Returns
    -------
    time : [s]
        $t$, time per microbatch.

    References
    ----------
    Counting.
    """
    return head / pp_size


@formula
def step_microbatches(microbatch_count: Value, dp_size: Value) -> Value:
    r"""Microbatches of all replicas together.

    $$ m_d = m\,d $$

    Parameters
    ----------
    microbatch_count : [1]
        $m$, microbatches per replica.
    dp_size : [1]
        $d$, data-parallel replicas.

    Returns
    -------
    microbatches : [1]
        $m_d$, microbatches per step.

    References
    ----------
    Counting.
    """
    return microbatch_count * dp_size


@formula
def common_parameters(parameters: Value, expert_parameters: Value) -> Value:
    r"""Parameters that are not experts'.

    $$ N_c = N - N_x $$

    Parameters
    ----------
    parameters : [param]
        $N$, all parameters.
    expert_parameters : [param]
        $N_x$, those of experts.

    Returns
    -------
    parameters : [param]
        $N_c$, the others.

    References
    ----------
    Counting.
    """
    return parameters - expert_parameters
