"""Experts on several devices: tokens on their way to them and back."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum

__all__ = [
    "copies_by_expert",
    "copies_by_node",
    "expert_dispatch_time",
    "expert_exchange_time",
    "expert_group_size",
    "expert_tp_size",
    "local_copies",
    "pairwise_latency",
    "spanned_nodes",
]


@formula
def spanned_nodes(ranks: Value, near: Value) -> Value:
    r"""Nodes over which a group of devices lies.

    $$ n = \frac{e_p}{l} $$

    Parameters
    ----------
    ranks : [1]
        $e_p$, devices of the group.
    near : [1]
        $l$, those of them in one node.

    Returns
    -------
    nodes : [1]
        $n$, nodes.

    References
    ----------
    Counting.
    """
    return ranks / near


@formula
def local_copies(experts_per_token: Value, ranks: Value, near: Value) -> Value:
    r"""Copies of a token that go to other devices of its own node, when experts are chosen evenly.

    $$ c_l = k_e\,\frac{l - 1}{e_p} $$

    Parameters
    ----------
    experts_per_token : [1]
        $k_e$, experts that each token visits.
    ranks : [1]
        $e_p$, devices that share the experts.
    near : [1]
        $l$, those of them in one node, the sender included.

    Returns
    -------
    copies : [1]
        $c_l$, copies.

    References
    ----------
    Lepikhin et al. (2020), GShard, section 3, https://arxiv.org/abs/2006.16668
    """
    return experts_per_token * (near - 1) / ranks


@formula
def copies_by_expert(experts_per_token: Value, nodes: Value) -> Value:
    r"""Copies of a token that leave its node, when each expert is sent one of its own.

    $$ c_r = k_e\,\frac{n - 1}{n} $$

    Parameters
    ----------
    experts_per_token : [1]
        $k_e$, experts that each token visits.
    nodes : [1]
        $n$, nodes over which the experts lie.

    Returns
    -------
    copies : [1]
        $c_r$, copies.

    References
    ----------
    Lepikhin et al. (2020), GShard, section 3, https://arxiv.org/abs/2006.16668
    """
    return experts_per_token * (nodes - 1) / nodes


@formula
def copies_by_node(experts_per_token: Value, nodes: Value) -> Value:
    r"""Copies of a token that leave its node, when each node is sent one and deals it out itself.

    A node is visited unless all of the token's experts lie elsewhere.

    $$ c_r = (n - 1)\left(1 - \left(1 - \frac{1}{n}\right)^{k_e}\right) $$

    Parameters
    ----------
    experts_per_token : [1]
        $k_e$, experts that each token visits.
    nodes : [1]
        $n$, nodes over which the experts lie.

    Returns
    -------
    copies : [1]
        $c_r$, copies.

    References
    ----------
    DeepSeek-AI (2024), DeepSeek-V3 Technical Report, section 3.2.2 (a token passes the network
    once per node and is forwarded within it), https://arxiv.org/abs/2412.19437; the share of nodes
    visited is counting, for experts chosen independently.
    """
    return (nodes - 1) * (1 - (1 - 1 / nodes) ** experts_per_token)


@formula
def pairwise_latency(ranks: Value, latency: Value) -> Value:
    r"""Latency of an exchange in which each device meets every other in turn.

    $$ t_0 = (n - 1)\,\alpha $$

    Parameters
    ----------
    ranks : [1]
        $n$, devices.
    latency : [s]
        $\alpha$, time of an empty message.

    Returns
    -------
    time : [s]
        $t_0$, time of the empty exchange.

    References
    ----------
    Thakur, Rabenseifner and Gropp (2005), Optimization of Collective Communication Operations in
    MPICH, https://doi.org/10.1177/1094342005051521
    """
    return (ranks - 1) * latency


@formula
def expert_dispatch_time(
    hidden_state: Value,
    local_copies: Value,
    remote_copies: Value,
    local_bandwidth: Value,
    nic_bandwidth: Value,
    latency: Value,
) -> Value:
    r"""Time to send a microbatch's tokens to their experts, or back.

    Copies for devices of the same node pass its links while the others pass the device's own share
    of the network. Unlike a ring, which enters a node once, most copies leave it.

    $$ t = \max\left(\frac{c_l\,M_h}{B_l},\; \frac{c_r\,M_h}{B_r}\right) + t_0 $$

    Parameters
    ----------
    hidden_state : [byte]
        $M_h$, residual stream of a microbatch on the device.
    local_copies : [1]
        $c_l$, copies of a token that stay in the node.
    remote_copies : [1]
        $c_r$, copies that leave it.
    local_bandwidth : [byte/s]
        $B_l$, bandwidth of a device within its node, one direction.
    nic_bandwidth : [byte/s]
        $B_r$, bandwidth of a device between nodes, one direction.
    latency : [s]
        $t_0$, time of an empty exchange.

    Returns
    -------
    time : [s]
        $t$, time of one exchange.

    References
    ----------
    Counting of copies by the link that they pass.
    """
    inside = local_copies * hidden_state / local_bandwidth
    outside = remote_copies * hidden_state / nic_bandwidth
    return maximum(inside, outside) + latency


@formula
def expert_exchange_time(all_to_all: Value, layers: Value, moe_layers: Value) -> Value:
    r"""Time of the exchanges with experts, per mean layer and microbatch.

    Tokens go out and come back, forward and backward: four exchanges for each layer with experts.

    $$ t_x = 4\,\frac{L_x}{L}\,t_1 $$

    Parameters
    ----------
    all_to_all : [s]
        $t_1$, time of one exchange.
    layers : [1]
        $L$, layers.
    moe_layers : [1]
        $L_x$, layers that have experts.

    Returns
    -------
    time : [s]
        $t_x$, time per mean layer.

    References
    ----------
    Lepikhin et al. (2020), GShard, section 3, https://arxiv.org/abs/2006.16668
    """
    return 4 * moe_layers / layers * all_to_all


@formula
def expert_group_size(tp_size: Value, ep_size: Value) -> Value:
    r"""Devices that hold one set of a layer's experts between them.

    Devices of a tensor-parallel group hold different experts, where experts are dealt out at all.

    $$ n_x = \max(t, e_p) $$

    Parameters
    ----------
    tp_size : [1]
        $t$, devices that share each layer.
    ep_size : [1]
        $e_p$, devices that share the experts.

    Returns
    -------
    devices : [1]
        $n_x$, devices.

    References
    ----------
    Liu et al. (2025), MoE Parallel Folding, https://arxiv.org/abs/2504.14960
    """
    return maximum(tp_size, ep_size)


@formula
def expert_tp_size(expert_group: Value, ep_size: Value) -> Value:
    r"""Devices of a tensor-parallel group that share one expert: all, if experts are not dealt out.

    $$ t_x = \frac{n_x}{e_p} $$

    Parameters
    ----------
    expert_group : [1]
        $n_x$, devices that hold one set of a layer's experts between them.
    ep_size : [1]
        $e_p$, devices that share the experts.

    Returns
    -------
    devices : [1]
        $t_x$, devices.

    References
    ----------
    Liu et al. (2025), MoE Parallel Folding, https://arxiv.org/abs/2504.14960
    """
    return expert_group / ep_size
