"""A layer and the output projection on paper, in plain arithmetic and without the formulas."""

from dataclasses import replace

from mlsysim import Calibrations, Fleet, Models, Systems
from mlsysim.core.units import Q_

# No two the same, so that none can take the place of another.
CONSTANTS = Calibrations.H100_Megatron.but(
    gemm_efficiency=0.8,
    gemm_efficiency_fp8=0.7,
    attention_efficiency=0.45,
    state_efficiency=0.02,
    attention_half=700,
    attention_backward=0.78,
    memory_efficiency=0.75,
    link_efficiency=0.71,
    nic_efficiency=0.9,
    gemm_speed=0.95,
    attention_speed=1.1,
    gemm_overhead=Q_(3, "us"),
    collective_overhead=Q_(50, "us"),
    layer_launch=Q_(0.92, "ms"),
    step_overhead=Q_(6, "ms"),
    launch_exposed=0.2,
    hidden_bytes=Q_(20, "byte"),
    ffn_bytes=Q_(5, "byte"),
    score_bytes=Q_(14, "byte"),
    cast_bytes=Q_(3.5, "byte"),
    loss_bytes=Q_(31, "byte"),
    optimizer_bytes=Q_(28, "byte"),
    elementwise_backward=1.5,
    plain_overlap=0.3,
    gradient_overlap=0.85,
    gather_overlap=0.35,
    gradient_scatters=1.9,
    tensor_overlap=0.25,
    expert_efficiency=0.65,
    expert_launch=Q_(2.1, "ms"),
    routing_bytes=Q_(8, "byte"),
    bias_bytes=Q_(33, "byte"),
    exchange_overlap=0.15,
    copies_per_node=0,
)
# Llama 3 70B on 256 devices: 8 replicas of 4 stages of 8 devices, 16 microbatches of 2 sequences
PLAN = {
    "model": Models.Llama3_70B,
    "fleet": Fleet(
        name="256 H100",
        node=Systems.Nodes.DGX_H100,
        count=32,
        fabric=Systems.Fabrics.InfiniBand_NDR,
    ),
    "batch_size": 256,
    "seq_len": 2048,
    "tp_size": 8,
    "pp_size": 4,
    "microbatch_count": 16,
    "precision": "bf16",
    "sequence_parallel": True,
    "calibration": CONSTANTS,
}
PARAMETERS = 70_553_706_496
"""Those of the model, norms included."""
MATRICES = 80 * (2 * 8192 * 128 * 72 + 3 * 8192 * 28_672)
"""Those of the matrices in its layers."""

# Parameters of a layer's attention, blocks, expert and router, and of a table
ATTENTION, DENSE = 2 * 4096 * 128 * (32 + 8), 3 * 4096 * 24_576
EXPERT, SHARED, ROUTER = 3 * 4096 * 3584, 3 * 4096 * 4096, 4096 * 32
TABLE = 32_000 * 4096
EXPERTS = 24 * 32 * EXPERT
COMMON = 32 * ATTENTION + 8 * DENSE + 24 * (SHARED + ROUTER) + 2 * TABLE

# Eight dense layers and 24 with experts, on 64 devices: 16 replicas of two stages of two devices.
# Each holds two of 32 experts, so that the experts of a layer fill two servers.
MIXED = replace(
    Models.Mixtral_8x7B,
    name="mixed",
    ffn_dim=24_576,
    moe_layers=24,
    experts=32,
    experts_per_token=4,
    expert_ffn_dim=3584,
    shared_ffn_dim=4096,
    expert_biases=True,
    parameters=Q_(COMMON + EXPERTS, "param"),
)
MIXED_PLAN = PLAN | {
    "model": MIXED,
    "fleet": replace(PLAN["fleet"], count=8),
    "batch_size": 128,
    "tp_size": 2,
    "pp_size": 2,
    "ep_size": 16,
    "microbatch_count": 4,
}
PEAK, PEAK_FP8, HBM = 989.4e12, 1978.9e12, 3.35e12
PRODUCT, STREAM = 0.95 * 0.8 * PEAK, 0.75 * HBM
LINK, LINK_LATENCY = 0.71 * 450e9, 0.6e-6
PORT, PORT_LATENCY = 0.9 * 50e9, 2.7e-6


def product(rows, inner, columns, rate=PRODUCT, matrices=1):
    """A matrix product in 16 bits: its time and that of its traffic."""
    traffic = 2 * (matrices * inner * columns + rows * (inner + columns)) / STREAM
    return 3e-6 + max(2 * rows * inner * columns / rate, traffic), traffic


def attention(tokens, seq_len, width, length=None):
    """Causal attention: two products, in which a token meets half of the sequence.

    The kernel reaches half of its best rate where sequences on a device have 700 tokens.
    """
    length = seq_len if length is None else length
    rate = 1.1 * 0.45 * length / (length + 700) * PEAK
    return 2 * 2 * tokens * seq_len * width / 2 / rate


# A fused kernel runs five products backward for two forward, each at .78 of the rate.
ATTENTION_BACKWARD = 5 / 2 / 0.78


def layer(tokens, tp=8, again=0, rate=PRODUCT, cast=0.0, length=None):
    """A layer of Llama 3 70B, forward, backward, and `again` times forward: its time and streaming.

    A product has two gradients of its own size. 64 heads of 128 have 8 heads of keys and values.
    """
    width, inner = 64 * 128 / tp, 28_672 / tp
    products = (
        product(tokens, 8192, (64 + 2 * 8) * 128 / tp, rate),
        product(tokens, width, 8192, rate),
        product(tokens, 8192, 2 * inner, rate),
        product(tokens, inner, 8192, rate),
    )
    time, traffic = (sum(part) for part in zip(*products, strict=True))
    # Both norms and residuals are split by sequence. Casts read and write what enters products.
    moved = tokens * ((20 + 2 * cast) * 8192 / tp + (5 + 2 * cast) * 2 * inner)
    streamed = (1 + 1.5 + again) * moved / STREAM
    attended = (1 + ATTENTION_BACKWARD + again) * attention(tokens, 2048, width, length)
    return (3 + again) * time + attended + streamed, streamed + (3 + again) * traffic


def head(tokens, tp=8):
    """Logits forward and backward, and the loss: time and streaming."""
    time, traffic = product(tokens, 8192, 128_256 / tp)
    loss = tokens * 128_256 * 31 / tp / STREAM
    return 3 * time + loss, 3 * traffic + loss


def exposed(communication, share, cover):
    """Communication in sight where a share of it can hide, and no more than there is to hide under.

    >>> exposed(10.0, 0.25, 1.0), exposed(10.0, 0.25, 5.0)
    (9.0, 7.5)
    """
    return communication - min(share * communication, cover)


def together(one, other, hidden):
    """Two things at once: the longer, and of the shorter what is not hidden."""
    return max(one, other) + (1 - hidden) * min(one, other)


def seconds(result, field):
    return result[field].to("s").magnitude
