"""Placement: which ranks share a node, and what each gets of the links.

Tensor-parallel ranks are innermost, then data-parallel replicas, then pipeline stages: the group
that talks most sits closest.
"""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, floor, gcd, maximum, minimum

__all__ = [
    "data_parallel_size",
    "fleet_devices",
    "group_ring_bandwidth",
    "local_ranks",
    "nic_share",
    "node_slots",
]


@formula
def fleet_devices(nodes: Value, devices_per_node: Value) -> Value:
    r"""Devices of a fleet.

    $$ n = q_d\,N_n $$

    Parameters
    ----------
    nodes : [1]
        $N_n$, nodes.
    devices_per_node : [1]
        $q_d$, devices of a node.

    Returns
    -------
    devices : [1]
        $n$, devices.

    References
    ----------
    Counting.
    """
    return nodes * devices_per_node


@formula
def data_parallel_size(devices: Value, tp_size: Value, pp_size: Value, cp_size: Value) -> Value:
    r"""Replicas of the model that the fleet holds.

    $$ d = \frac{n}{t\,p\,c_p} $$

    Parameters
    ----------
    devices : [1]
        $n$, devices of the fleet.
    tp_size : [1]
        $t$, devices that share each layer.
    pp_size : [1]
        $p$, pipeline stages.
    cp_size : [1]
        $c_p$, devices that share each sequence.

    Returns
    -------
    replicas : [1]
        $d$, data-parallel replicas.

    References
    ----------
    Narayanan et al. (2021), Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM, section 3.1 (p t d = n), https://arxiv.org/abs/2104.04473
    """
    return devices / (tp_size * pp_size * cp_size)


@formula
def node_slots(devices_per_node: Value, tp_size: Value) -> Value:
    r"""Tensor-parallel groups that a node has room for, and so neighbours in a data-parallel group.

    $$ q = \max\left(1, \left\lfloor \frac{q_d}{t} \right\rfloor\right) $$

    Parameters
    ----------
    devices_per_node : [1]
        $q_d$, devices of a node.
    tp_size : [1]
        $t$, devices that share each layer.

    Returns
    -------
    slots : [1]
        $q$, groups side by side; 1 where one group fills a node or more.

    References
    ----------
    Placement in order (tensor innermost, then data, then pipeline): NVIDIA, Megatron-LM,
    megatron/core/parallel_state.py, initialize_model_parallel, default order,
    https://github.com/NVIDIA/Megatron-LM
    """
    return maximum(1, floor(devices_per_node / tp_size))


@formula
def local_ranks(group_size: Value, slots: Value) -> Value:
    r"""Ranks of one group that share a node, when the group is laid over nodes in order.

    Where the sizes do not divide, groups straddle nodes unevenly; the largest common part is
    what every node then holds of every group.

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
    Placement in order (tensor innermost, then data, then pipeline): NVIDIA, Megatron-LM,
    megatron/core/parallel_state.py, initialize_model_parallel, default order,
    https://github.com/NVIDIA/Megatron-LM
    """
    return gcd(group_size, slots)


@formula
def nic_share(nic_bandwidth: Value, nics_per_node: Value, devices_per_node: Value) -> Value:
    r"""Network bandwidth that each device of a node gets when all send at once.

    $$ B_2 = \frac{q_n}{q}\,B_p $$

    Parameters
    ----------
    nic_bandwidth : [byte/s]
        $B_p$, bandwidth of one port, one direction.
    nics_per_node : [1]
        $q_n$, ports of a node.
    devices_per_node : [1]
        $q$, devices of a node.

    Returns
    -------
    bandwidth : [byte/s]
        $B_2$, bandwidth per device, one direction.

    References
    ----------
    Conservation: the node's ports, shared evenly by its devices.
    """
    return nics_per_node * nic_bandwidth / devices_per_node


@formula
def group_ring_bandwidth(local_bandwidth: Value, nic_bandwidth: Value, local: Value) -> Value:
    r"""Bandwidth of one flat ring through several nodes.

    A ring that passes through a node uses the ports of all its ranks there, one channel through
    each, until the links inside the node become the narrowest place. A ring within one node uses
    no port and has $B_1$.

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
    channels times that of one: src/graph/tuning.cc, ncclTopoTuneModel,
    https://github.com/NVIDIA/nccl
    """
    return minimum(local_bandwidth, local * nic_bandwidth)
