"""Shares: what one device holds, sends or waits for when work and states are split."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value

__all__ = [
    "common_parameters",
    "device_layer_time",
    "mean_all_reduces",
    "parameter_share",
    "sequences_per_rank",
    "sharded_parameters",
    "stage_share",
    "state_replicas",
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
    expert_group: Value,
    imbalance: Value,
) -> Value:
    r"""Parameters of one tensor-, pipeline- and expert-parallel part.

    $$ N_d = \frac{\iota}{p}\left(\frac{N - N_x}{t} + \frac{N_x}{n_x}\right) $$

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
    expert_group : [1]
        $n_x$, devices that hold one set of a layer's experts between them.
    imbalance : [1]
        $\iota$, layers of the longest stage over the mean.

    Returns
    -------
    parameters : [param]
        $N_d$, parameters on one device.

    References
    ----------
    Counting; the experts are dealt out over tensor-parallel ranks and replicas.
    """
    common = (parameters - expert_parameters) / tp_size
    return imbalance / pp_size * (common + expert_parameters / expert_group)


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


@formula
def mean_all_reduces(
    all_reduces: Value, layers: Value, moe_layers: Value, dealt_out: Value
) -> Value:
    r"""All-reduces of tensor parallelism in a mean layer.

    Half of them belong to attention, half to the feed-forward block. Where the ranks hold different
    experts, whole ones, no sum is left to the latter: tokens are exchanged instead.

    $$ c = c_r\left(1 - \frac{\delta\,L_x}{2\,L}\right) $$

    Parameters
    ----------
    all_reduces : [1]
        $c_r$, all-reduces of a dense layer.
    layers : [1]
        $L$, layers.
    moe_layers : [1]
        $L_x$, layers that have experts.
    dealt_out : [1]
        $\delta$, 1 if ranks hold different experts and share no other block, else 0.

    Returns
    -------
    all_reduces : [1]
        $c$, all-reduces.

    References
    ----------
    Shoeybi et al. (2019), Megatron-LM, section 3 (one all-reduce per block and pass),
    https://arxiv.org/abs/1909.08053; experts: Liu et al. (2025), MoE Parallel Folding,
    https://arxiv.org/abs/2504.14960
    """
    return all_reduces * (1 - dealt_out * moe_layers / (2 * layers))
