"""All-reduce: every rank ends with the sum of what all ranks hold."""

from mlsysim.core.formula import formula
from mlsysim.core.formulas.collectives import all_gather_time, reduce_scatter_time
from mlsysim.core.numeric import Value, ceil, log2, minimum

__all__ = [
    "bus_bandwidth",
    "hierarchical_all_reduce_time",
    "ring_all_reduce_time",
    "switch_all_reduce_time",
    "tree_all_reduce_time",
]


@formula
def ring_all_reduce_time(
    message_size: Value, ranks: Value, bandwidth: Value, latency: Value
) -> Value:
    r"""Time of a ring all-reduce: a reduce-scatter, then an all-gather.

    $$ t = 2\,\frac{n-1}{n}\,\frac{m}{B} + 2\,(n-1)\,\alpha $$

    Parameters
    ----------
    message_size : [byte]
        $m$, data that each rank holds.
    ranks : [1]
        $n$, ranks in the ring.
    bandwidth : [byte/s]
        $B$, bandwidth of a rank, one direction.
    latency : [s]
        $\alpha$, time of an empty message between neighbours.

    Returns
    -------
    time : [s]
        $t$, time of the collective.

    References
    ----------
    Patarasuk and Yuan (2009), Bandwidth optimal all-reduce algorithms for clusters of workstations,
    https://doi.org/10.1016/j.jpdc.2008.09.002; the volume also in NVIDIA, nccl-tests,
    doc/PERFORMANCE.md, "AllReduce", https://github.com/NVIDIA/nccl-tests
    """
    return 2 * (ranks - 1) / ranks * message_size / bandwidth + 2 * (ranks - 1) * latency


@formula
def switch_all_reduce_time(message_size: Value, ranks: Value, bandwidth: Value) -> Value:
    r"""Time of an all-reduce that the switch computes, as NVLink SHARP does.

    Each rank asks the switch for the sum of its own part, which every rank sends once, and sends
    the sum back to be spread to all. It sends the whole message and one part: for many ranks half
    of what a ring sends.

    $$ t = \frac{n+1}{n}\,\frac{m}{B} $$

    Parameters
    ----------
    message_size : [byte]
        $m$, data that each rank holds.
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
    Counting what a rank sends; the algorithm is NCCL's NVLS: src/device/all_reduce.h,
    https://github.com/NVIDIA/nccl
    """
    return (ranks + 1) / ranks * message_size / bandwidth


@formula
def tree_all_reduce_time(
    message_size: Value, ranks: Value, bandwidth: Value, latency: Value
) -> Value:
    r"""Time of an all-reduce over a double binary tree, pipelined in small chunks.

    Each of the two trees carries half of the data up and down again. A rank sends at most half of
    the data twice on the way up and twice on the way down, so large messages move at full
    bandwidth, while the latency grows with the depth of the tree only. Two ranks exchange halves,
    and one rank sends nothing.

    $$ t = \min(2,\, n-1)\,\frac{m}{B} + 2\,\lceil\log_2 n\rceil\,\alpha $$

    Parameters
    ----------
    message_size : [byte]
        $m$, data that each rank holds.
    ranks : [1]
        $n$, ranks in the trees.
    bandwidth : [byte/s]
        $B$, bandwidth of a rank, one direction.
    latency : [s]
        $\alpha$, time of an empty message between neighbours.

    Returns
    -------
    time : [s]
        $t$, time of the collective.

    References
    ----------
    Sanders, Speck and Träff (2009), Two-tree algorithms for full bandwidth broadcast, reduction and
    scan, Parallel Computing 35(12), https://doi.org/10.1016/j.parco.2009.09.001; as used by NCCL:
    Jeaugey (2019), Massively Scale Your Deep Learning Training with NCCL 2.4,
    https://developer.nvidia.com/blog/massively-scale-deep-learning-training-nccl-2-4/
    """
    volume = minimum(2, ranks - 1) * message_size
    return volume / bandwidth + 2 * ceil(log2(ranks)) * latency


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
    r"""Time of an all-reduce over groups of near ranks that are joined by slower links.

    A reduce-scatter inside each group, an all-reduce of the parts between the groups (every rank
    with its peers, all at once), and an all-gather inside, one after the other. With one group, or
    one rank a group, it is the plain ring. A flat ring keeps both kinds of links busy at once (see
    `group_ring_bandwidth`): it moves large messages up to twice as fast, at a higher latency.

    $$ t = 2\left[\frac{g-1}{g}\frac{m}{B_1} + (g-1)\alpha_1\right]
         + 2\left[\frac{k-1}{k}\frac{m}{g B_2} + (k-1)\alpha_2\right],
       \qquad k = \frac{n}{g} $$

    Parameters
    ----------
    message_size : [byte]
        $m$, data that each rank holds.
    ranks : [1]
        $n$, ranks in all; $k$ groups of them.
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
    Jeaugey (2019), Massively Scale Your Deep Learning Training with NCCL 2.4, "Effect on DL
    training" (hierarchical ring),
    https://developer.nvidia.com/blog/massively-scale-deep-learning-training-nccl-2-4/
    """
    scatter = reduce_scatter_time(message_size, local, local_bandwidth, local_latency)
    between = ring_all_reduce_time(
        message_size / local, ranks / local, remote_bandwidth, remote_latency
    )
    gather = all_gather_time(message_size, local, local_bandwidth, local_latency)
    return scatter + between + gather


@formula
def bus_bandwidth(message_size: Value, ranks: Value, time: Value) -> Value:
    r"""Link bandwidth that an all-reduce of a given time amounts to, as nccl-tests print it.

    $$ B = 2\,\frac{n-1}{n}\,\frac{m}{t} $$

    Parameters
    ----------
    message_size : [byte]
        $m$, data that each rank holds.
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
    NVIDIA, nccl-tests, doc/PERFORMANCE.md, "Bus bandwidth" and "AllReduce",
    https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
    """
    return 2 * (ranks - 1) / ranks * message_size / time
