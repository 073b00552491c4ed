"""Placement: how many replicas there are, which ranks share a node, and their link bandwidth.

Tensor-parallel ranks are innermost, then data-parallel replicas, then pipeline stages: the group
with the most communication is closest together.
"""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, floor, gcd, maximum, minimum

__all__ = [
    "data_parallel_size",
    "group_hop_latency",
    "group_ring_bandwidth",
    "local_ranks",
    "mesh_bandwidth",
    "microbatch_size",
    "node_slots",
]


@formula
def data_parallel_size(devices: Value, tp_size: Value, pp_size: Value, cp_size: Value) -> Value:
    r"""Replicas of the model that the fleet holds.

    $$ \mathrm{DP} = \frac{n}{\mathrm{TP}\,p\,c_p} $$

    Parameters
    ----------
    devices : [1]
        $n$, devices of the fleet.
    tp_size : [1]
        $\mathrm{TP}$, devices that share each layer.
    pp_size : [1]
        $p$, pipeline stages.
    cp_size : [1]
        $c_p$, devices that share each sequence.

    Returns
    -------
    replicas : [1]
        $\mathrm{DP}$, data-parallel replicas.

    References
    ----------
    @narayanan2021, section 3.1 (p t d = n)
    """
    return devices / (tp_size * pp_size * cp_size)


@formula
def group_hop_latency(
    ranks: Value, local: Value, local_latency: Value, remote_latency: Value
) -> Value:
    r"""Mean latency of a hop in one flat ring through several nodes.

    A message that travels around a ring of $n$ ranks makes $n - 1$ hops. With $g$ ranks per node it
    enters each of the other $n/g - 1$ nodes once; all other hops stay within a node.

    $$ \alpha = \frac{(n - n/g)\,\alpha_1 + (n/g - 1)\,\alpha_2}{n - 1} $$

    Parameters
    ----------
    ranks : [1]
        $n$, ranks in the ring. One rank makes no hop, so its latency is 0.
    local : [1]
        $g$, ranks of the group in one node.
    local_latency : [s]
        $\alpha_1$, time of an empty message within a node.
    remote_latency : [s]
        $\alpha_2$, time of an empty message between nodes.

    Returns
    -------
    latency : [s]
        $\alpha$, mean time of an empty message between neighbors in the ring.

    References
    ----------
    @nccl, src/graph/tuning.cc, ncclTopoTuneModel (nInterSteps of a ring's steps pay the network's
    latency)
    """
    nodes = ranks / local
    hops = (ranks - nodes) * local_latency + (nodes - 1) * remote_latency
    return hops / maximum(1, ranks - 1)


@formula
def group_ring_bandwidth(local_bandwidth: Value, nic_bandwidth: Value, local: Value) -> Value:
    r"""Bandwidth of one flat ring through several nodes.

    A ring that passes through a node uses the ports of all its ranks there, one channel through
    each, until the links inside the node become the bottleneck. A ring within one node uses no port
    and has $B_1$.

    $$ B = \min(B_1,\; g\,B_2) $$

    Parameters
    ----------
    local_bandwidth : [byte/s]
        $B_1$, bandwidth of a rank within its node, one direction.
    nic_bandwidth : [byte/s]
        $B_2$, bandwidth of the network port of one rank, one direction.
    local : [1]
        $g$, ranks of the group in one node.

    Returns
    -------
    bandwidth : [byte/s]
        $B$, bandwidth of the ring.

    References
    ----------
    Counting the links that the channels pass. NCCL takes the ring's bandwidth as the number of its
    channels times that of one: src/graph/tuning.cc, ncclTopoTuneModel, @nccl
    """
    return minimum(local_bandwidth, local * nic_bandwidth)


@formula
def local_ranks(group_size: Value, slots: Value) -> Value:
    r"""Ranks of one group that share a node, if groups are placed on nodes in order.

    If the sizes do not divide, groups straddle nodes unevenly; every node then holds the greatest
    common divisor of every group.

    $$ g = \gcd(n, q) $$

    Parameters
    ----------
    group_size : [1]
        $n$, ranks in the group.
    slots : [1]
        $q$, places for ranks of one group in a node.

    Returns
    -------
    ranks : [1]
        $g$, ranks in one node.

    References
    ----------
    Placement in order (tensor innermost, then data, then pipeline): @megatron_lm,
    megatron/core/parallel_state.py, initialize_model_parallel, default order
    """
    return gcd(group_size, slots)


@formula
def mesh_bandwidth(bandwidth: Value, ranks: Value, peers: Value) -> Value:
    r"""Bandwidth of a device to the others of a group, if links connect single devices.

    Each link of a device leads to one other device, so a group uses only the links between its
    members. With a switch, every group could use all links.

    $$ B = B_1\,\frac{\max(n, 2) - 1}{n_p} $$

    Parameters
    ----------
    bandwidth : [byte/s]
        $B_1$, bandwidth of all links of a device, one direction.
    ranks : [1]
        $n$, devices of the group.
    peers : [1]
        $n_p$, devices to which a device has links.

    Returns
    -------
    bandwidth : [byte/s]
        $B$, bandwidth of the links within the group.

    References
    ----------
    Counting links. RCCL on MI300X, seven links of 64 GB/s: a bus bandwidth of 47.7 GB/s on two GPUs
    and 313 GB/s on eight (S. Bekman, Machine Learning Engineering Open Book, network).
    """
    return bandwidth * (maximum(ranks, 2) - 1) / peers


@formula
def microbatch_size(batch_size: Value, dp_size: Value, microbatch_count: Value) -> Value:
    r"""Sequences in one microbatch of one replica.

    $$ b = \frac{B}{\mathrm{DP}\,m} $$

    Parameters
    ----------
    batch_size : [1]
        $B$, sequences in the global batch.
    dp_size : [1]
        $\mathrm{DP}$, data-parallel replicas.
    microbatch_count : [1]
        $m$, microbatches per replica and step.

    Returns
    -------
    sequences : [1]
        $b$, sequences; a schedule needs a whole number.

    References
    ----------
    @narayanan2021, section 3.1 (m = B / (b d))
    """
    return batch_size / (dp_size * microbatch_count)


@formula
def node_slots(devices_per_node: Value, tp_size: Value) -> Value:
    r"""Tensor-parallel groups that fit in a node, which are neighbors in a data-parallel group.

    $$ q = \max\left(1, \left\lfloor \frac{q_d}{\mathrm{TP}} \right\rfloor\right) $$

    Parameters
    ----------
    devices_per_node : [1]
        $q_d$, devices of a node.
    tp_size : [1]
        $\mathrm{TP}$, devices that share each layer.

    Returns
    -------
    slots : [1]
        $q$, groups side by side; 1 if one group fills a node or more.

    References
    ----------
    Placement in order (tensor innermost, then data, then pipeline): @megatron_lm,
    megatron/core/parallel_state.py, initialize_model_parallel, default order
    """
    return maximum(1, floor(devices_per_node / tp_size))
