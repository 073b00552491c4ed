"""Collective communication: time from size, ranks, bandwidth and latency.

`bandwidth` is the rate at which one rank can send while it receives at the same rate; `latency` is
the time of an empty message between neighbors. Ranks are equal and nothing else uses the links.
"""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, ceil, log2, maximum, minimum, sqrt

__all__ = [
    "all_gather_time",
    "all_to_all_time",
    "bus_bandwidth",
    "context_exchange_time",
    "hierarchical_all_reduce_time",
    "node_all_to_all_time",
    "node_tree_all_reduce_time",
    "one_shot_all_reduce_time",
    "point_to_point_time",
    "reduce_scatter_time",
    "ring_all_reduce_time",
    "segmented_collective_time",
    "switch_all_reduce_time",
    "tree_all_reduce_time",
    "tree_broadcast_time",
]


@formula
def all_gather_time(message_size: Value, ranks: Value, bandwidth: Value, latency: Value) -> Value:
    r"""Time of a ring all-gather: each rank starts with one part and ends with the whole.

    $$ t = \frac{n-1}{n}\,\frac{S}{B} + (n-1)\,\alpha $$

    Parameters
    ----------
    message_size : [byte]
        $S$, data that each rank ends with.
    ranks : [1]
        $n$, ranks in the ring.
    bandwidth : [byte/s]
        $B$, bandwidth of a rank, one direction.
    latency : [s]
        $\alpha$, time of an empty message between neighbors.

    Returns
    -------
    time : [s]
        $t$, time of the collective.

    References
    ----------
    @thakur2005; cost of the ring in @mpich, src/mpi/coll/allgather/allgather_intra_ring.c
    """
    return (ranks - 1) / ranks * message_size / bandwidth + (ranks - 1) * latency


@formula
def all_to_all_time(message_size: Value, ranks: Value, bandwidth: Value, latency: Value) -> Value:
    r"""Time of a pairwise all-to-all: each rank sends a different part to every other.

    $$ t = \frac{n-1}{n}\,\frac{S}{B} + (n-1)\,\alpha $$

    Parameters
    ----------
    message_size : [byte]
        $S$, data that each rank holds, including its own part.
    ranks : [1]
        $n$, ranks.
    bandwidth : [byte/s]
        $B$, bandwidth of a rank, one direction.
    latency : [s]
        $\alpha$, time of an empty message.

    Returns
    -------
    time : [s]
        $t$, time of the collective.

    References
    ----------
    @thakur2005; cost of the pairwise exchange in @mpich,
    src/mpi/coll/alltoall/alltoall_intra_pairwise.c
    """
    return (ranks - 1) / ranks * message_size / bandwidth + (ranks - 1) * latency


@formula
def bus_bandwidth(message_size: Value, ranks: Value, time: Value) -> Value:
    r"""Bus bandwidth of an all-reduce, as nccl-tests report it.

    $$ B = 2\,\frac{n-1}{n}\,\frac{S}{t} $$

    Parameters
    ----------
    message_size : [byte]
        $S$, data that each rank holds.
    ranks : [1]
        $n$, ranks.
    time : [s]
        $t$, time of the all-reduce.

    Returns
    -------
    bandwidth : [byte/s]
        $B$, bus bandwidth.

    References
    ----------
    @nccl_tests_performance, "Bus bandwidth" and "AllReduce"
    """
    return 2 * (ranks - 1) / ranks * message_size / time


@formula
def context_exchange_time(size: Value, cp_size: Value, bandwidth: Value, latency: Value) -> Value:
    r"""Time in which every rank's keys and values visit every other rank once.

    $$ t = (c_p - 1)\left(\frac{M}{B} + \alpha\right) $$

    Parameters
    ----------
    size : [byte]
        $M$, keys and values of one rank.
    cp_size : [1]
        $c_p$, ranks that share each sequence.
    bandwidth : [byte/s]
        $B$, bandwidth from a rank to the next, one direction.
    latency : [s]
        $\alpha$, time of an empty message.

    Returns
    -------
    time : [s]
        $t$, time of one round.

    References
    ----------
    @liu2023
    """
    return (cp_size - 1) * (size / bandwidth + latency)


@formula
def hierarchical_all_reduce_time(
    message_size: Value,
    ranks: Value,
    local: Value,
    local_bandwidth: Value,
    local_latency: Value,
    remote_bandwidth: Value,
    remote_latency: Value,
) -> Value:
    r"""Time of an all-reduce over groups of ranks that are connected by slower links.

    It consists of a reduce-scatter inside each group, an all-reduce of the parts between groups
    (every rank with its peers, all at once), and an all-gather inside each group, one after the
    other. With one group, or one rank per group, it is the plain ring. A flat ring keeps both kinds
    of links busy at once (see `group_ring_bandwidth`): it moves large messages up to twice as fast,
    at a higher latency.

    $$ t = 2\left[\frac{g-1}{g}\frac{S}{B_1} + (g-1)\alpha_1\right]
         + 2\left[\frac{k-1}{k}\frac{S}{g B_2} + (k-1)\alpha_2\right],
       \qquad k = \frac{n}{g} $$

    Parameters
    ----------
    message_size : [byte]
        $S$, data that each rank holds.
    ranks : [1]
        $n$, total ranks, in $k$ groups.
    local : [1]
        $g$, ranks in one group; it divides $n$.
    local_bandwidth : [byte/s]
        $B_1$, bandwidth of a rank within its group, one direction.
    local_latency : [s]
        $\alpha_1$, time of an empty message within a group.
    remote_bandwidth : [byte/s]
        $B_2$, bandwidth of a rank between groups, one direction.
    remote_latency : [s]
        $\alpha_2$, time of an empty message between groups.

    Returns
    -------
    time : [s]
        $t$, time of the collective.

    References
    ----------
    @jeaugey2019, "Effect on DL training" (hierarchical ring)
    """
    scatter = reduce_scatter_time(message_size, local, local_bandwidth, local_latency)
    between = ring_all_reduce_time(
        message_size / local, ranks / local, remote_bandwidth, remote_latency
    )
    gather = all_gather_time(message_size, local, local_bandwidth, local_latency)
    return scatter + between + gather


@formula
def node_all_to_all_time(
    message_size: Value,
    ranks: Value,
    local: Value,
    local_bandwidth: Value,
    local_latency: Value,
    remote_bandwidth: Value,
    remote_latency: Value,
) -> Value:
    r"""Time of an all-to-all over nodes: local parts use the node's links, others the network.

    $$ t = \max\left(\frac{g-1}{n}\,\frac{S}{B_1},\; \frac{n-g}{n}\,\frac{S}{B_2}\right)
         + (g-1)\,\alpha_1 + (n-g)\,\alpha_2 $$

    Parameters
    ----------
    message_size : [byte]
        $S$, data that each rank holds, including its own part.
    ranks : [1]
        $n$, ranks in all.
    local : [1]
        $g$, ranks in one node; it divides $n$.
    local_bandwidth : [byte/s]
        $B_1$, bandwidth of a rank within its node, one direction.
    local_latency : [s]
        $\alpha_1$, time of an empty message within a node.
    remote_bandwidth : [byte/s]
        $B_2$, bandwidth of a rank between nodes, one direction.
    remote_latency : [s]
        $\alpha_2$, time of an empty message between nodes.

    Returns
    -------
    time : [s]
        $t$, time of the collective.

    References
    ----------
    Counting the parts on each kind of link; NCCL sends every pair's part directly.
    """
    inside = (local - 1) / ranks * message_size / local_bandwidth
    outside = (ranks - local) / ranks * message_size / remote_bandwidth
    latency = (local - 1) * local_latency + (ranks - local) * remote_latency
    return maximum(inside, outside) + latency


@formula
def node_tree_all_reduce_time(
    message_size: Value,
    ranks: Value,
    local: Value,
    bandwidth: Value,
    local_latency: Value,
    remote_latency: Value,
) -> Value:
    r"""Time of an all-reduce over a double binary tree of nodes, with a chain inside each node.

    The ranks of a node pass the data along a chain to the rank that is in the tree, and back. Each
    of the two trees carries half of the data up and down again, in small chunks.

    $$ t = \min(2,\, n-1)\,\frac{S}{B} + 2\left[(g-1)\,\alpha_1
         + \lceil\log_2 k\rceil\,\alpha_2\right], \qquad k = \frac{n}{g} $$

    Parameters
    ----------
    message_size : [byte]
        $S$, data that each rank holds.
    ranks : [1]
        $n$, ranks in all, on $k$ nodes.
    local : [1]
        $g$, ranks in one node; it divides $n$.
    bandwidth : [byte/s]
        $B$, bandwidth that the tree reaches, one direction.
    local_latency : [s]
        $\alpha_1$, time of an empty message within a node.
    remote_latency : [s]
        $\alpha_2$, time of an empty message between nodes.

    Returns
    -------
    time : [s]
        $t$, time of the collective.

    References
    ----------
    @nccl, src/graph/tuning.cc, ncclTopoTuneModel, NCCL_ALGO_TREE (two passes over the data at the
    bandwidth of its channels); @jeaugey2019
    """
    depth = ceil(log2(ranks / local))
    latency = (local - 1) * local_latency + depth * remote_latency
    return minimum(2, ranks - 1) * message_size / bandwidth + 2 * latency


@formula
def one_shot_all_reduce_time(
    message_size: Value, ranks: Value, bandwidth: Value, overhead: Value
) -> Value:
    r"""Time of an all-reduce among devices that can access each other's memory.

    Serving engines sum small messages in one step, in which each rank reads from all others. The
    fixed cost is then one barrier, whatever the number of ranks; a single device has none.

    $$ t = \min(1,\, n - 1)\,t_0 + \frac{2(n-1)}{n}\,\frac{S}{B} $$

    Parameters
    ----------
    message_size : [byte]
        $S$, data per rank.
    ranks : [1]
        $n$, devices.
    bandwidth : [byte/s]
        $B$, bandwidth that collectives reach, one direction.
    overhead : [s]
        $t_0$, launch and barrier.

    Returns
    -------
    time : [s]
        $t$, time.

    References
    ----------
    Volume: @patarasuk2009; one step: the custom all-reduce of TensorRT-LLM and vLLM, @tensorrt_llm
    """
    return minimum(1, ranks - 1) * overhead + 2 * (ranks - 1) / ranks * message_size / bandwidth


@formula
def point_to_point_time(message_size: Value, bandwidth: Value, latency: Value) -> Value:
    r"""Time to send one message to one receiver.

    $$ t = \alpha + \frac{S}{B} $$

    Parameters
    ----------
    message_size : [byte]
        $S$, size of the message.
    bandwidth : [byte/s]
        $B$, bandwidth of the link, one direction.
    latency : [s]
        $\alpha$, time of an empty message.

    Returns
    -------
    time : [s]
        $t$, time until the whole message has arrived.

    References
    ----------
    @thakur2005
    """
    return latency + message_size / bandwidth


@formula
def reduce_scatter_time(
    message_size: Value, ranks: Value, bandwidth: Value, latency: Value
) -> Value:
    r"""Time of a ring reduce-scatter: each rank ends with one reduced part of the whole.

    $$ t = \frac{n-1}{n}\,\frac{S}{B} + (n-1)\,\alpha $$

    Parameters
    ----------
    message_size : [byte]
        $S$, data that each rank starts with.
    ranks : [1]
        $n$, ranks in the ring.
    bandwidth : [byte/s]
        $B$, bandwidth of a rank, one direction.
    latency : [s]
        $\alpha$, time of an empty message between neighbors.

    Returns
    -------
    time : [s]
        $t$, time of the collective.

    References
    ----------
    @patarasuk2009; the volume also in @nccl_tests, doc/PERFORMANCE.md, "ReduceScatter"
    """
    return (ranks - 1) / ranks * message_size / bandwidth + (ranks - 1) * latency


@formula
def ring_all_reduce_time(
    message_size: Value, ranks: Value, bandwidth: Value, latency: Value
) -> Value:
    r"""Time of a ring all-reduce: a reduce-scatter, then an all-gather.

    $$ t = 2\,\frac{n-1}{n}\,\frac{S}{B} + 2\,(n-1)\,\alpha $$

    Parameters
    ----------
    message_size : [byte]
        $S$, data that each rank holds.
    ranks : [1]
        $n$, ranks in the ring.
    bandwidth : [byte/s]
        $B$, bandwidth of a rank, one direction.
    latency : [s]
        $\alpha$, time of an empty message between neighbors.

    Returns
    -------
    time : [s]
        $t$, time of the collective.

    References
    ----------
    @patarasuk2009; the volume also in @nccl_tests, doc/PERFORMANCE.md, "AllReduce"
    """
    return 2 * (ranks - 1) / ranks * message_size / bandwidth + 2 * (ranks - 1) * latency


@formula
def segmented_collective_time(
    collective: Value, transfer: Value, start: Value, segment_time: Value
) -> Value:
    r"""Time of a collective that starts as a kernel and moves its data in segments.

    Segments let the steps of a collective overlap. Each segment costs a fixed time $\tau$, and the
    last one adds its own transfer time, $t_v / k$ with $k$ segments. The sum $k \tau + t_v / k$ has
    its minimum $2\sqrt{\tau t_v}$ at $k = \sqrt{t_v / \tau}$. Messages of a few MiB therefore move
    well below the bandwidth of large ones.

    $$ t = t_0 + t_c + 2\sqrt{\tau\,t_v} $$

    Parameters
    ----------
    collective : [s]
        $t_c$, time of the collective, including latencies.
    transfer : [s]
        $t_v$, time to transfer its data at full bandwidth.
    start : [s]
        $t_0$, time to start and end the kernel.
    segment_time : [s]
        $\tau$, fixed time of one segment.

    Returns
    -------
    time : [s]
        $t$, time of the call.

    References
    ----------
    @sanders2009, section 2 (pipelining with the best number of pieces)
    """
    return start + collective + 2 * sqrt(segment_time * transfer)


@formula
def switch_all_reduce_time(message_size: Value, ranks: Value, bandwidth: Value) -> Value:
    r"""Time of an all-reduce that the switch computes, as NVLink SHARP does.

    The switch returns to each rank the sum of its part, which every rank sends once, and the rank
    sends the sum back for the switch to distribute. In total a rank sends the whole message and one
    part, which for many ranks is half of what a ring sends.

    $$ t = \frac{n+1}{n}\,\frac{S}{B} $$

    Parameters
    ----------
    message_size : [byte]
        $S$, data that each rank holds.
    ranks : [1]
        $n$, ranks on the switch.
    bandwidth : [byte/s]
        $B$, bandwidth of a rank, one direction.

    Returns
    -------
    time : [s]
        $t$, time of the transfers.

    References
    ----------
    Derived by counting what a rank sends; the algorithm is NCCL's NVLS: src/device/all_reduce.h,
    @nccl
    """
    return (ranks + 1) / ranks * message_size / bandwidth


@formula
def tree_all_reduce_time(
    message_size: Value, ranks: Value, bandwidth: Value, latency: Value
) -> Value:
    r"""Time of an all-reduce over a double binary tree, pipelined in small chunks.

    Each of the two trees carries half of the data up and down again. A rank sends at most half of
    the data twice on the way up and twice on the way down, so large messages move at full
    bandwidth, while the latency grows only with the depth of the tree. Two ranks exchange halves,
    and one rank sends nothing.

    $$ t = \min(2,\, n-1)\,\frac{S}{B} + 2\,\lceil\log_2 n\rceil\,\alpha $$

    Parameters
    ----------
    message_size : [byte]
        $S$, data that each rank holds.
    ranks : [1]
        $n$, ranks in the trees.
    bandwidth : [byte/s]
        $B$, bandwidth of a rank, one direction.
    latency : [s]
        $\alpha$, time of an empty message between neighbors.

    Returns
    -------
    time : [s]
        $t$, time of the collective.

    References
    ----------
    @sanders2009; as used by NCCL: @jeaugey2019
    """
    volume = minimum(2, ranks - 1) * message_size
    return volume / bandwidth + 2 * ceil(log2(ranks)) * latency


@formula
def tree_broadcast_time(
    message_size: Value, ranks: Value, bandwidth: Value, latency: Value
) -> Value:
    r"""Time of a binomial-tree broadcast: in each round, all ranks with the message forward it.

    $$ t = \lceil\log_2 n\rceil\left(\alpha + \frac{S}{B}\right) $$

    Parameters
    ----------
    message_size : [byte]
        $S$, data that the root holds.
    ranks : [1]
        $n$, ranks, including the root.
    bandwidth : [byte/s]
        $B$, bandwidth of a rank, one direction.
    latency : [s]
        $\alpha$, time of an empty message.

    Returns
    -------
    time : [s]
        $t$, time until the last rank has the message.

    References
    ----------
    @thakur2005; cost of the binomial tree in @mpich, src/mpi/coll/bcast/bcast_intra_binomial.c
    """
    return ceil(log2(ranks)) * (latency + message_size / bandwidth)
