"""Formulas: the physics of the package, one closed form each.

Every formula takes and returns quantities, plain numbers in SI base units, or NumPy arrays of
these, and documents its equation, symbols, units and source.
"""

from mlsysim.core.formulas.activations import (
    activation_memory_per_layer,
    hidden_state_size,
    stage_activation_memory,
)
from mlsysim.core.formulas.all_reduce import (
    bus_bandwidth,
    hierarchical_all_reduce_time,
    ring_all_reduce_time,
    tree_all_reduce_time,
)
from mlsysim.core.formulas.collectives import (
    all_gather_time,
    all_to_all_time,
    point_to_point_time,
    reduce_scatter_time,
    tree_broadcast_time,
)
from mlsysim.core.formulas.energy import (
    device_energy,
    facility_energy,
    operational_carbon,
)
from mlsysim.core.formulas.flops import (
    attention_score_flops,
    device_flops,
    forward_flops,
    logit_flops,
    matrix_flops,
    operations_sum,
    recomputed_flops,
    training_flops,
)
from mlsysim.core.formulas.inference import (
    batch_flops,
    fixed_shape_traffic,
    transformer_pass_traffic,
)
from mlsysim.core.formulas.memory import (
    kv_cache_size,
    memory_sum,
    optimizer_state_size,
    parameters_per_device,
    tensor_size,
    tensor_slice,
)
from mlsysim.core.formulas.pipeline import (
    interleaving_factor,
    layers_per_stage,
    microbatches_in_flight,
    pipeline_bubble_fraction,
    pipeline_bubble_time,
    stage_imbalance,
)
from mlsysim.core.formulas.placement import (
    data_parallel_size,
    fleet_devices,
    group_ring_bandwidth,
    local_ranks,
    nic_share,
    node_slots,
)
from mlsysim.core.formulas.roofline import (
    arithmetic_intensity,
    attainable_rate,
    compute_time,
    flops_utilization,
    memory_time,
    reached_rate,
    ridge_point,
    roofline_time,
    sample_rate,
)
from mlsysim.core.formulas.training import (
    busy_time,
    communication_time,
    layer_all_reduce_time,
    microbatch_size,
    pipeline_transfer_time,
    scaling_efficiency,
    step_time,
)
from mlsysim.core.formulas.transformer import (
    attention_parameters,
    embedding_parameters,
    mlp_parameters,
    token_count,
    transformer_parameters,
)

__all__ = [
    "activation_memory_per_layer",
    "all_gather_time",
    "all_to_all_time",
    "arithmetic_intensity",
    "attainable_rate",
    "attention_parameters",
    "attention_score_flops",
    "batch_flops",
    "bus_bandwidth",
    "busy_time",
    "communication_time",
    "compute_time",
    "data_parallel_size",
    "device_energy",
    "device_flops",
    "embedding_parameters",
    "facility_energy",
    "fixed_shape_traffic",
    "fleet_devices",
    "flops_utilization",
    "forward_flops",
    "group_ring_bandwidth",
    "hidden_state_size",
    "hierarchical_all_reduce_time",
    "interleaving_factor",
    "kv_cache_size",
    "layer_all_reduce_time",
    "layers_per_stage",
    "local_ranks",
    "logit_flops",
    "matrix_flops",
    "memory_sum",
    "memory_time",
    "microbatch_size",
    "microbatches_in_flight",
    "mlp_parameters",
    "nic_share",
    "node_slots",
    "operational_carbon",
    "operations_sum",
    "optimizer_state_size",
    "parameters_per_device",
    "pipeline_bubble_fraction",
    "pipeline_bubble_time",
    "pipeline_transfer_time",
    "point_to_point_time",
    "reached_rate",
    "recomputed_flops",
    "reduce_scatter_time",
    "ridge_point",
    "ring_all_reduce_time",
    "roofline_time",
    "sample_rate",
    "scaling_efficiency",
    "stage_activation_memory",
    "stage_imbalance",
    "step_time",
    "tensor_size",
    "tensor_slice",
    "token_count",
    "training_flops",
    "transformer_parameters",
    "transformer_pass_traffic",
    "tree_all_reduce_time",
    "tree_broadcast_time",
]
