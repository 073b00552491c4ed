"""Collective communication: time from size, ranks, bandwidth and latency.

`bandwidth` is what one rank can send in one direction while it receives as much in the other;
`latency` is the time of an empty message between neighbours. Ranks are equal and nothing else
uses the links.
"""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, ceil, log2, sqrt

__all__ = [
    "all_gather_time",
    "all_to_all_time",
    "node_all_to_all_time",
    "point_to_point_time",
    "reduce_scatter_time",
    "segmented_collective_time",
    "tree_broadcast_time",
]


@formula
def point_to_point_time(message_size: Value, bandwidth: Value, latency: Value) -> Value:
    r"""Time to send one message to one receiver.

    $$ t = \alpha + \frac{m}{B} $$

    Parameters
    ----------
    message_size : [byte]
        $m$, size of the message.
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
    Thakur, Rabenseifner and Gropp (2005), Optimization of Collective Communication Operations in
    MPICH, https://doi.org/10.1177/1094342005051521
    """
    return latency + message_size / bandwidth


@formula
def reduce_scatter_time(
    message_size: Value, ranks: Value, bandwidth: Value, latency: Value
) -> Value:
    r"""Time of a ring reduce-scatter: each rank ends with one reduced part of the whole.

    $$ t = \frac{n-1}{n}\,\frac{m}{B} + (n-1)\,\alpha $$

    Parameters
    ----------
    message_size : [byte]
        $m$, data that each rank starts with.
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
    doc/PERFORMANCE.md, "ReduceScatter", https://github.com/NVIDIA/nccl-tests
    """
    return (ranks - 1) / ranks * message_size / bandwidth + (ranks - 1) * latency


@formula
def all_gather_time(message_size: Value, ranks: Value, bandwidth: Value, latency: Value) -> Value:
    r"""Time of a ring all-gather: each rank starts with one part and ends with the whole.

    $$ t = \frac{n-1}{n}\,\frac{m}{B} + (n-1)\,\alpha $$

    Parameters
    ----------
    message_size : [byte]
        $m$, data that each rank ends with.
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
    Thakur, Rabenseifner and Gropp (2005), Optimization of Collective Communication Operations in
    MPICH, https://doi.org/10.1177/1094342005051521; cost of the ring in MPICH,
    src/mpi/coll/allgather/allgather_intra_ring.c, https://github.com/pmodels/mpich
    """
    return (ranks - 1) / ranks * message_size / bandwidth + (ranks - 1) * latency


@formula
def segmented_collective_time(
    collective: Value, transfer: Value, start: Value, segment_time: Value
) -> Value:
    r"""Time of a collective that starts as a kernel and moves its data in segments.

    Segments let the steps of a collective overlap. Each costs a fixed time $\tau$, and the last
    one waits for its own length, $t_v / k$ with $k$ segments: together $k \tau + t_v / k$, which
    is least, $2\sqrt{\tau t_v}$, for $k = \sqrt{t_v / \tau}$. So messages of some MiB move well
    below the bandwidth that large ones reach.

    $$ t = t_0 + t_c + 2\sqrt{\tau\,t_v} $$

    Parameters
    ----------
    collective : [s]
        $t_c$, time of the collective, its latencies included.
    transfer : [s]
        $t_v$, time that its data alone takes at full bandwidth.
    start : [s]
        $t_0$, time to start the kernel and to end it.
    segment_time : [s]
        $\tau$, fixed time of one segment.

    Returns
    -------
    time : [s]
        $t$, time of the call.

    References
    ----------
    Sanders, Speck and Träff (2009), Two-tree algorithms for full bandwidth broadcast, reduction and
    scan, Parallel Computing 35(12), section 2 (pipelining with the best number of pieces),
    https://doi.org/10.1016/j.parco.2009.09.001
    """
    return start + collective + 2 * sqrt(segment_time * transfer)


@formula
def tree_broadcast_time(
    message_size: Value, ranks: Value, bandwidth: Value, latency: Value
) -> Value:
    r"""Time of a binomial-tree broadcast: in each round, all who have the message pass it on.

    $$ t = \lceil\log_2 n\rceil\left(\alpha + \frac{m}{B}\right) $$

    Parameters
    ----------
    message_size : [byte]
        $m$, data that the root holds.
    ranks : [1]
        $n$, ranks, the root included.
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
    Thakur, Rabenseifner and Gropp (2005), Optimization of Collective Communication Operations in
    MPICH, https://doi.org/10.1177/1094342005051521; cost of the binomial tree in MPICH,
    src/mpi/coll/bcast/bcast_intra_binomial.c, https://github.com/pmodels/mpich
    """
    return ceil(log2(ranks)) * (latency + message_size / bandwidth)


@formula
def all_to_all_time(message_size: Value, ranks: Value, bandwidth: Value, latency: Value) -> Value:
    r"""Time of a pairwise all-to-all: each rank sends a different part to every other.

    $$ t = \frac{n-1}{n}\,\frac{m}{B} + (n-1)\,\alpha $$

    Parameters
    ----------
    message_size : [byte]
        $m$, data that each rank holds, its own part included.
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
    Thakur, Rabenseifner and Gropp (2005), Optimization of Collective Communication Operations in
    MPICH, https://doi.org/10.1177/1094342005051521; cost of the pairwise exchange in MPICH,
    src/mpi/coll/alltoall/alltoall_intra_pairwise.c, https://github.com/pmodels/mpich
    """
    return (ranks - 1) / ranks * message_size / bandwidth + (ranks - 1) * latency


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
    r"""Time of an all-to-all whose ranks sit in several nodes: parts for the own node, then others.

    $$ t = \frac{g-1}{n}\,\frac{m}{B_1} + (g-1)\,\alpha_1
      + \frac{n-g}{n}\,\frac{m}{B_2} + (n-g)\,\alpha_2 $$

    Parameters
    ----------
    message_size : [byte]
        $m$, data that each rank holds, its own part included.
    ranks : [1]
        $n$, ranks.
    local : [1]
        $g$, ranks in one node.
    local_bandwidth : [byte/s]
        $B_1$, bandwidth of a rank within its node, one direction.
    local_latency : [s]
        $\alpha_1$, time of an empty message within a node.
    remote_bandwidth : [byte/s]
        $B_2$, bandwidth of a rank to other nodes, one direction.
    remote_latency : [s]
        $\alpha_2$, time of an empty message between nodes.

    Returns
    -------
    time : [s]
        $t$, time of the collective.

    References
    ----------
    Counting: `all_to_all_time`, each part over the link that it takes.
    """
    inside = (local - 1) / ranks * message_size / local_bandwidth + (local - 1) * local_latency
    part = (ranks - local) / ranks * message_size
    return inside + part / remote_bandwidth + (ranks - local) * remote_latency
