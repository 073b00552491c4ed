"""Random calls of the solvers: rows of the registry, and devices and models that do not exist."""

from dataclasses import replace

from hypothesis import strategies as st

from mlsysim import (
    Calibrations,
    Fleet,
    Hardware,
    Models,
    Node,
    ServingCalibrations,
    Source,
    Systems,
)
from mlsysim.core.errors import MLSysError
from mlsysim.core.types import (
    PRECISIONS,
    Accelerator,
    Attention,
    Chunks,
    Compute,
    Experts,
    FeedForward,
    Formats,
    LatentAttention,
    Layers,
    LinearAttention,
    Memory,
    MoETransformerModel,
    NetworkFabric,
    SlidingWindow,
    TopKeys,
    TransformerModel,
)
from mlsysim.core.units import Q_
from tests.networks import NETWORKS

GUESS = Source(title="drawn at random")
TRANSFORMERS = [row for row in Models if isinstance(row, TransformerModel)]
PARTS = (
    "compute_latency",
    "tp_communication_latency",
    "cp_communication_latency",
    "ep_communication_latency",
    "pp_communication_latency",
    "dp_communication_latency",
    "pipeline_bubble_latency",
    "optimizer_latency",
    "launch_latency",
)
"""Of a training step."""
TRAINING = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4")


def solved(solver, given):
    """The solver's answer, or `None` where the arguments do not fit together."""
    try:
        return solver.solve(**given)
    except MLSysError:
        return None


def si(value):
    return value.to_base_units().magnitude if hasattr(value, "to_base_units") else value


def among(rows):
    """One of some records, by place: Hypothesis hashes what it samples from, which is slow."""
    rows = tuple(rows)
    return st.sampled_from(range(len(rows))).map(rows.__getitem__)


def powers(low, high, unit):
    return st.floats(low, high).map(lambda exponent: Q_(10**exponent, unit))


@st.composite
def devices(draw):
    """Any ratio between formats: some devices are slower in eight bits than in sixteen."""
    if draw(st.booleans()):
        return draw(among(Hardware))
    return Accelerator(
        name=draw(st.sampled_from(["random", "A100", "H100", "B200"])),
        source=GUESS,
        release_year=2026,
        compute=Compute(**{name: draw(powers(-1, 4, "TFLOP/s")) for name in PRECISIONS}),
        memory=Memory(capacity=draw(powers(0, 3.5, "GB")), bandwidth=draw(powers(0, 4.5, "GB/s"))),
        tdp=draw(powers(0, 3, "W")),
    )


@st.composite
def nodes(draw):
    count = draw(st.sampled_from([1, 2, 8, 72]))
    links = NetworkFabric(
        name="links", source=GUESS, bandwidth=draw(powers(0, 4, "GB/s")), latency=Q_(1, "us")
    )
    return Node(
        name="node",
        source=GUESS,
        accelerator=draw(devices()),
        accelerators_per_node=count,
        nics_per_node=draw(st.sampled_from([1, count])),
        scale_up=links,
    )


@st.composite
def attentions(draw):
    kind = draw(st.sampled_from(["heads", "latent", "linear"]))
    heads = draw(st.sampled_from([8, 64]))
    if kind == "linear":
        return LinearAttention(
            heads=heads,
            key_heads=draw(st.sampled_from([1, heads])),
            key_dim=draw(st.sampled_from([0, 16, 128])),
            value_dim=64,
            gate_rank=draw(st.sampled_from([None, 64])),
            delta_rule=draw(st.booleans()),
            **draw(
                st.sampled_from(
                    [{"output_gate": False}, {"output_gate": True}, {"output_gate_rank": 64}]
                )
            ),
        )
    tokens = draw(st.sampled_from([128, 4096]))
    reach = draw(
        among(
            [
                None,
                SlidingWindow(tokens=tokens),
                Chunks(tokens=tokens),
                TopKeys(tokens=tokens, heads=16, head_dim=64),
                TopKeys(tokens=tokens, heads=0, head_dim=0),
            ]
        )
    )
    if kind == "latent":
        return LatentAttention(
            query_rank=draw(st.sampled_from([None, 512])),
            kv_rank=256,
            nope_dim=64,
            rope_dim=32,
            heads=heads,
            value_dim=64,
            reach=reach,
        )
    return Attention(
        heads=heads,
        kv_heads=draw(st.sampled_from([1, 8])),
        head_dim=128,
        reach=reach,
        output_gate=draw(st.booleans()),
    )


def blocks():
    dense = st.builds(FeedForward, width=st.sampled_from([64, 8192]), gated=st.booleans())
    experts = st.builds(
        Experts,
        count=st.sampled_from([2, 128]),
        per_token=st.sampled_from([1, 2]),
        width=st.sampled_from([64, 2048]),
        shared_width=st.sampled_from([0, 512]),
        gated=st.booleans(),
        latent_dim=st.sampled_from([None, 256]),
        adds_biases=st.booleans(),
    )
    return dense | experts


@st.composite
def stacks(draw):
    """Up to three groups of layers, one after the other or mixed."""
    groups = draw(st.integers(1, 3))
    parts = [Layers(count=draw(st.integers(1, 12)), attention=draw(attentions()))]
    if draw(st.booleans()):
        parts = [replace(parts[0], feed_forward=draw(blocks()))]
    for _ in range(groups - 1):
        attention = draw(st.none() | attentions())
        block = draw(blocks() if attention is None else st.none() | blocks())
        part = Layers(count=draw(st.integers(1, 12)), attention=attention, feed_forward=block)
        parts.append(part)
    parts = [
        replace(part, parallel_attention=draw(st.none() | attentions())) if part.attention else part
        for part in parts
    ]
    total = sum(part.count for part in parts)
    if draw(st.booleans()):
        spots = draw(st.permutations(range(total)))
        parts[-1] = replace(parts[-1], at=tuple(spots[: parts[-1].count]))
    return TransformerModel(
        name="random",
        source=GUESS,
        hidden_dim=draw(st.sampled_from([512, 4096])),
        vocab_size=draw(st.sampled_from([100, 256_000])),
        seq_len=2048,
        tied_embeddings=draw(st.booleans()),
        causal=draw(st.booleans()),
        stack=tuple(parts),
        formats=draw(among([None, Formats(experts="mxfp4", state="fp32")])),
        mtp_layers=draw(st.sampled_from([0, 0, 1])),
    )


@st.composite
def models(draw):
    if draw(st.booleans()):
        return draw(among(TRANSFORMERS) | among(NETWORKS.values()))
    if draw(st.booleans()):
        return draw(stacks())
    kv_heads, layers = draw(st.sampled_from([1, 2, 8])), draw(st.sampled_from([1, 3, 40]))
    shape = {
        "name": "random",
        "source": GUESS,
        "layers": layers,
        "hidden_dim": draw(st.sampled_from([64, 512, 8192])),
        "kv_heads": kv_heads,
        "heads": kv_heads * draw(st.sampled_from([1, 8, 64])),
        "head_dim": draw(st.sampled_from([16, 128])),
        "ffn_dim": draw(st.sampled_from([64, 16_384])),
        "vocab_size": draw(st.sampled_from([100, 256_000])),
        "seq_len": 2048,
        "gated_mlp": draw(st.booleans()),
        "tied_embeddings": draw(st.booleans()),
    }
    experts = draw(st.sampled_from([0, 2, 128]))
    if not experts:
        return TransformerModel(**shape)
    return MoETransformerModel(
        **shape,
        experts=experts,
        experts_per_token=draw(st.sampled_from([1, 2])),
        expert_ffn_dim=draw(st.sampled_from([64, 2048])),
        shared_ffn_dim=draw(st.sampled_from([0, 512])),
        moe_layers=draw(st.integers(1, layers)),
    )


def formats(device, known=tuple(PRECISIONS)):
    return st.sampled_from(
        [name for name in device.compute.precisions if name in known] or ["none"]
    )


def device_of(system):
    node = system.node if isinstance(system, Fleet) else system
    return node.accelerator if isinstance(node, Node) else node


def with_device(system, **changes):
    """The same system of changed devices."""
    device = replace(device_of(system), **changes)
    if isinstance(system, Fleet):
        return replace(system, node=replace(system.node, accelerator=device, power=None))
    return replace(system, accelerator=device, power=None) if isinstance(system, Node) else device


def faster(system, factor):
    compute = device_of(system).compute
    rates = {name: getattr(compute, name) * factor for name in compute.precisions}
    return with_device(system, compute=replace(compute, **rates))


def larger(system, factor):
    memory = device_of(system).memory
    reported = None if memory.reported is None else memory.reported * factor
    more = replace(memory, capacity=memory.capacity * factor, reported=reported)
    return with_device(system, memory=more)


shares = st.sampled_from([None, None, None, 0.3, 1.0])
reserves = st.sampled_from([None, 0.0, 0.3, 1.0])


def images(model):
    return st.sampled_from([0, 1, 3] if model.vision else [0])


@st.composite
def passes(draw):
    device, model = draw(devices()), draw(models())
    return {
        "model": model,
        "hardware": device,
        "images": draw(images(model)),
        "precision": draw(formats(device)),
        "batch_size": draw(st.integers(1, 2048)),
        "seq_len": 2 ** draw(st.integers(0, 20)),
        "efficiency": draw(shares),
        "calibration": draw(among([None, *ServingCalibrations])),
    }


@st.composite
def loads(draw):
    hardware, model, efficiency = draw(devices() | nodes()), draw(models()), draw(shares)
    return {
        "model": model,
        "hardware": hardware,
        "images": draw(images(model)),
        "precision": draw(formats(device_of(hardware))),
        "weight_precision": draw(st.sampled_from([None, *PRECISIONS])),
        "kv_precision": draw(st.sampled_from([None, *PRECISIONS])),
        "batch_size": draw(st.integers(1, 2048)),
        "seq_len": 2 ** draw(st.integers(0, 17)),
        "output_len": draw(st.sampled_from([0, 1, 2, 3]) | st.integers(0, 4096)),
        "tp_size": draw(st.sampled_from([1, 2, 8])) if isinstance(hardware, Node) else 1,
        "arrivals": draw(st.sampled_from([1, 1, 5, 100])),
        "block_size": draw(st.sampled_from([1, 16])),
        "reserved_output": None if efficiency else draw(reserves),
        "efficiency": efficiency,
        "calibration": draw(among([None, *ServingCalibrations])),
    }


@st.composite
def steps(draw):
    node = draw(nodes() | among([Systems.DGX_A100, Systems.GB200_NVL72]))
    model = draw(models())
    fleet = Fleet(
        name="fleet",
        node=node,
        count=draw(st.sampled_from([1, 2, 32])),
        fabric=draw(among(Systems.Fabrics)),
    )
    efficiency = draw(shares)
    return {
        "model": model,
        "fleet": fleet,
        "images": draw(images(model)),
        "precision": draw(formats(node.accelerator, TRAINING)),
        "batch_size": draw(st.integers(1, 4096)),
        "seq_len": 2 ** draw(st.integers(0, 20)),
        "tp_size": draw(st.sampled_from([1, 1, 2, 8])),
        "pp_size": draw(st.sampled_from([1, 1, 1, 4])),
        "cp_size": draw(st.sampled_from([1, 1, 2, 8])),
        "ep_size": draw(st.sampled_from([1, 2])) if model.moe_layers else 1,
        "microbatch_count": draw(st.sampled_from([1, 2, 32])),
        "zero_stage": draw(st.integers(0, 3)),
        "sequence_parallel": draw(st.booleans()),
        "recompute": draw(st.sampled_from(["none", "selective", "full"])),
        "attention": draw(st.sampled_from(["fused", "unfused"])),
        "efficiency": efficiency,
        "calibration": None if efficiency else draw(among([None, *Calibrations])),
        "gradient_overlap": None if efficiency else draw(st.sampled_from([None, 0.7])),
    }
