"""Mixtures of experts: which experts tokens visit, and the exchange with them."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum, minimum

__all__ = [
    "busiest_visited",
    "copies_by_expert",
    "copies_by_node",
    "copies_by_rank",
    "expert_dispatch_time",
    "expert_group_size",
    "experts_visited",
    "local_copies",
    "routing_traffic",
    "rows_per_device",
]


@formula
def copies_by_rank(experts_per_token: Value, ranks: Value, groups: Value) -> Value:
    r"""Copies of a token that go to other ranks, with one copy per rank for all its experts.

    An expert is on one group of ranks, whole or in shards. A token goes to every rank of each group
    that holds one of its experts. With one group, all ranks gather all tokens.

    $$ c = (n - 1)\left(1 - \left(1 - \frac{1}{e}\right)^{k_e}\right) $$

    Parameters
    ----------
    experts_per_token : [1]
        $k_e$, experts that each token visits.
    ranks : [1]
        $n$, devices that hold the experts.
    groups : [1]
        $e$, groups of them that hold different experts.

    Returns
    -------
    copies : [1]
        $c$, copies that leave the device.

    References
    ----------
    Counting, for experts chosen independently; one copy per rank as in @deepep
    """
    return (ranks - 1) * (1 - (1 - 1 / groups) ** experts_per_token)


@formula
def copies_by_expert(experts_per_token: Value, nodes: Value) -> Value:
    r"""Copies of a token that leave its node, with one copy per expert.

    $$ c_r = k_e\,\frac{n - 1}{n} $$

    Parameters
    ----------
    experts_per_token : [1]
        $k_e$, experts that each token visits.
    nodes : [1]
        $n$, nodes over which the experts are distributed.

    Returns
    -------
    copies : [1]
        $c_r$, copies.

    References
    ----------
    @lepikhin2020, section 3
    """
    return experts_per_token * (nodes - 1) / nodes


@formula
def copies_by_node(experts_per_token: Value, nodes: Value, most: Value) -> Value:
    r"""Copies of a token that leave its node, with one copy per node, forwarded inside the node.

    A router may restrict a token's experts to a few nodes. A node among these is visited unless all
    of the token's experts are elsewhere; one visit in $n$ is to the token's own node.

    $$ c_r = \frac{n - 1}{n}\,M\left(1 - \left(1 - \frac{1}{M}\right)^{k_e}\right) $$

    Parameters
    ----------
    experts_per_token : [1]
        $k_e$, experts that each token visits.
    nodes : [1]
        $n$, nodes over which the experts are distributed.
    most : [1]
        $M$, nodes among which a token's experts are chosen: $n$ without a limit.

    Returns
    -------
    copies : [1]
        $c_r$, copies.

    References
    ----------
    @liu2024, sections 2.1.2 (node-limited routing) and 3.2.2 (a token passes the network once per
    node and is forwarded within it); the share of nodes visited is counting, for experts chosen
    independently.
    """
    return (nodes - 1) / nodes * most * (1 - (1 - 1 / most) ** experts_per_token)


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

    Copies for devices of the same node use its links, while the others use the device's share of
    the network. Unlike a ring, which enters a node once, most copies leave the node.

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
    Counting the copies on each kind of link.
    """
    inside = local_copies * hidden_state / local_bandwidth
    outside = remote_copies * hidden_state / nic_bandwidth
    return maximum(inside, outside) + latency


@formula
def expert_group_size(tp_size: Value, ep_size: Value) -> Value:
    r"""Devices that together hold one set of a layer's experts.

    Devices of a tensor-parallel group hold different experts, if experts are distributed at all.

    $$ n_x = \max(\mathrm{TP}, e_p) $$

    Parameters
    ----------
    tp_size : [1]
        $\mathrm{TP}$, devices that share each layer.
    ep_size : [1]
        $e_p$, devices that share the experts.

    Returns
    -------
    devices : [1]
        $n_x$, devices.

    References
    ----------
    @liu2025
    """
    return maximum(tp_size, ep_size)


@formula
def busiest_visited(experts: Value, visited: Value, groups: Value) -> Value:
    r"""Experts that the busiest of several groups of devices reads in a pass.

    Each group holds a share of the experts. Chance gives one group more of those visited than the
    mean, and the others wait for it. The number in a group has nearly a binomial distribution; the
    largest of $e$ such numbers is $z_e$ standard deviations above the mean.

    $$ g_m = \min\left(\frac{E}{e},\;
    \frac{g}{e} + z_e \sqrt{\frac{g}{e}\left(1 - \frac{g}{E}\right)}\right), \qquad
    z_e = \frac{q^{0.135} - (1 - q)^{0.135}}{0.1975}, \quad q = \frac{e - 3/8}{e + 1/4} $$

    Parameters
    ----------
    experts : [1]
        $E$, experts of a layer.
    visited : [1]
        $g$, experts that at least one token of the pass visits.
    groups : [1]
        $e$, groups of devices that hold different experts.

    Returns
    -------
    matrices : [1]
        $g_m$, experts that the busiest group reads.

    References
    ----------
    Blom (1958), Statistical Estimates and Transformed Beta-Variables, for $q$; Tukey's lambda
    distribution for the quantile, @nist_lambda
    """
    rank = (groups - 0.375) / (groups + 0.25)
    deviations = (rank**0.135 - (1 - rank) ** 0.135) / 0.1975
    mean = visited / groups
    # Rounding may leave a little more than all experts.
    spread = maximum(0, mean * (1 - visited / experts))
    return minimum(experts / groups, mean + deviations * spread**0.5)


@formula
def experts_visited(experts: Value, experts_per_token: Value, tokens: Value) -> Value:
    r"""Experts of a layer that at least one token of a pass visits, if all are equally likely.

    $$ g = E\left(1 - \max\left(0,\, 1 - \frac{k_e}{E}\right)^{T}\right) $$

    Parameters
    ----------
    experts : [1]
        $E$, experts of a layer: 1 for a dense layer.
    experts_per_token : [1]
        $k_e$, experts that each token visits.
    tokens : [token]
        $T$, tokens of the pass.

    Returns
    -------
    matrices : [1]
        $g$, experts that are read.

    References
    ----------
    Counting: a token misses an expert with the chance in brackets, independently of the others.
    """
    return experts * (1 - maximum(0, 1 - experts_per_token / experts) ** tokens)


@formula
def local_copies(experts_per_token: Value, ranks: Value, near: Value) -> Value:
    r"""Copies of a token that go to other devices of its own node, if experts are chosen evenly.

    $$ c_l = k_e\,\frac{l - 1}{e_p} $$

    Parameters
    ----------
    experts_per_token : [1]
        $k_e$, experts that each token visits.
    ranks : [1]
        $e_p$, devices that share the experts.
    near : [1]
        $l$, those of them in one node, including the sender.

    Returns
    -------
    copies : [1]
        $c_l$, copies.

    References
    ----------
    @lepikhin2020, section 3
    """
    return experts_per_token * (near - 1) / ranks


@formula
def routing_traffic(
    rows: Value, hidden_dim: Value, routing_bytes: Value, cast_bytes: Value, bias_bytes: Value
) -> Value:
    r"""Memory traffic of sorting tokens by expert and combining their results, forward.

    Each copy of a token is converted to a narrow format separately, once before and once after its
    expert.

    $$ Q_x = n_r\,h\,(q_x + 2q_c + q_b) $$

    Parameters
    ----------
    rows : [1]
        $n_r$, rows of the device's experts: a copy of each token for each expert that it visits.
    hidden_dim : [1]
        $h$, width of the residual stream.
    routing_bytes : [byte]
        $q_x$, bytes moved per routed element.
    cast_bytes : [byte]
        $q_c$, bytes moved per element that is converted to a narrow format; 0 without one.
    bias_bytes : [byte]
        $q_b$, bytes moved per routed element to add the experts' biases; 0 without biases.

    Returns
    -------
    traffic : [byte]
        $Q_x$, bytes read and written.

    References
    ----------
    @gale2022, section 5.2 (permutation of tokens)
    """
    return rows * hidden_dim * (routing_bytes + 2 * cast_bytes + bias_bytes)


@formula
def rows_per_device(
    tokens: Value, experts_per_token: Value, tp_size: Value, expert_tp_size: Value
) -> Value:
    r"""Rows in the products of a device's experts, if experts are loaded evenly.

    Ranks of a tensor-parallel group that hold different experts split the group's tokens.

    $$ n_r = k_e\,T\,\frac{n_e}{\mathrm{TP}} $$

    Parameters
    ----------
    tokens : [token]
        $T$, tokens of a microbatch on the device.
    experts_per_token : [1]
        $k_e$, experts that each token visits: 1 for a dense layer.
    tp_size : [1]
        $\mathrm{TP}$, devices that share each layer.
    expert_tp_size : [1]
        $n_e$, those of them that share each expert.

    Returns
    -------
    rows : [1]
        $n_r$, rows.

    References
    ----------
    @fedus2021, section 2.2
    """
    return experts_per_token * tokens * expert_tp_size / tp_size
