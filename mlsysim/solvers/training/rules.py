"""Rules for arguments of a training step that contradict each other or have no effect."""

from __future__ import annotations

from mlsysim.core.errors import ParallelismError
from mlsysim.core.numeric import Value, first_known, is_unknown, maximum, where
from mlsysim.solvers.base import Rule, within_context
from mlsysim.solvers.tower import IMAGE_RULES
from mlsysim.solvers.training.inputs import TrainingInputs
from mlsysim.solvers.training.stages import stage_layout, stated_stages, unstated_layers


def _model_parallel(i: TrainingInputs) -> Value:
    return i.tp_size * i.pp_size * i.cp_size


def _replicas(i: TrainingInputs) -> Value:
    return i.devices // (i.tp_size * i.pp_size)


def _shard_size(i: TrainingInputs) -> Value:
    return first_known(i.shard_size, 1)


def _divides_either_way(a: Value, b: Value) -> Value:
    return (a % b == 0) | (b % a == 0)


def _repeats(i: TrainingInputs) -> Value:
    """Return whether anything is recomputed; fused attention never keeps its scores."""
    recompute = i.recompute
    layers = recompute.matrix_share + recompute.norm_share
    modules = layers + recompute.activation_share + recompute.latent_share
    return modules + (1 - i.attention.fused) * recompute.score_share > 0


def _fullest(i: TrainingInputs) -> Value:
    """Return the layers of the longest stage, including those for multi-token prediction."""
    layout = stage_layout(i)
    return maximum(layout.longest, layout.last + i.model.mtp_layers)


def _fits_a_stage(i: TrainingInputs) -> Value:
    """Return whether a stage has as many layers as are recomputed."""
    absent = is_unknown(i.recompute_layers)
    if absent is True:
        return True  # nearly always; then there is no need to lay out the stages
    return absent | (i.recompute_layers <= _fullest(i))


def _whole_chunks(end: str) -> Rule[TrainingInputs]:
    """Return the rule that all chunks of an end stage have the same number of layers."""
    name = f"{end}_stage_layers"

    def holds(i: TrainingInputs) -> Value:
        layers: Value = getattr(i, name)
        return is_unknown(layers) | (layers % i.virtual_stages == 0)

    return Rule(
        name,
        holds,
        lambda i: (
            f"{name} = {getattr(i, name)} is not a multiple of virtual_stages = "
            f"{i.virtual_stages}, the chunks that share them: choose a multiple, or leave "
            f"{name} out, so that a chunk at the end may have fewer layers"
        ),
        ParallelismError,
    )


def _sizes(i: TrainingInputs) -> str:
    names = ["tp_size", "pp_size"] + ["cp_size"] * (i.cp_size > 1)
    product = " x ".join(str(getattr(i, name)) for name in names)
    return f"{' x '.join(names)} = {product} = {_model_parallel(i)}"


RULES: tuple[Rule[TrainingInputs], ...] = (
    within_context(lambda i: i.seq_len, "seq_len"),
    Rule(
        "tp_size",
        lambda i: i.devices % _model_parallel(i) == 0,
        lambda i: (
            f"{_sizes(i)} does not divide the fleet's {i.devices} devices: choose sizes whose "
            "product divides it"
        ),
        ParallelismError,
    ),
    Rule(
        "cp_size",
        lambda i: i.seq_len % i.cp_size == 0,
        lambda i: (
            f"cp_size = {i.cp_size} does not divide the {i.seq_len} tokens of a sequence: "
            "choose a divisor"
        ),
        ParallelismError,
    ),
    Rule(
        "ulysses_size",
        lambda i: (
            (i.cp_size % i.ulysses_size == 0)
            & ((i.cp_kind.by_heads == 0) | (i.ulysses_size == 1) | (i.ulysses_size == i.cp_size))
        ),
        lambda i: (
            f"ulysses_size = {i.ulysses_size} does not fit cp_size = {i.cp_size} and cp_kind = "
            f"{i.cp_kind.name!r}: choose a divisor of cp_size, and leave it at 1 if all devices "
            "swap heads"
        ),
        ParallelismError,
    ),
    Rule(
        "cp_kind",
        lambda i: (i.model.split_heads % (i.tp_size * i.swap_size) == 0) | (i.swap_size == 1),
        lambda i: (
            f"tp_size x devices that swap heads = {i.tp_size} x {i.swap_size} does not divide the "
            f"model's {i.model.split_heads} attention heads: choose a smaller ulysses_size, or "
            "cp_kind = 'ring' or 'all_gather'"
        ),
        ParallelismError,
    ),
    Rule(
        "lora_rank",
        lambda i: i.adapter_rank <= i.model.hidden_dim,
        lambda i: (
            f"lora_rank = {i.lora_rank} is more than hidden_dim = {i.model.hidden_dim}, the rank "
            "that the matrices themselves have: choose a smaller one, such as 16"
        ),
    ),
    Rule(
        "weight_precision",
        lambda i: (i.weights_stated == 0) | (i.frozen > 0),
        lambda i: (
            f"weight_precision = {i.weight_precision.name!r} is the format of frozen weights, but "
            "all weights are trained: add lora_rank, such as 16, or leave weight_precision out"
        ),
    ),
    Rule(
        "weight_precision",
        lambda i: i.weight_bytes <= i.precision.training_bytes,
        lambda i: (
            f"weight_precision = {i.weight_precision.name!r} is wider than the weights of "
            f"precision = {i.precision.name!r}: choose a narrower format, or leave it out"
        ),
    ),
    Rule(
        "tp_size",
        lambda i: i.model.split_heads % i.tp_size == 0,
        lambda i: (
            f"tp_size = {i.tp_size} does not divide the model's {i.model.split_heads} attention "
            "heads: choose a divisor of the number of heads"
        ),
        ParallelismError,
    ),
    Rule(
        "pp_size",
        # In an interleaved pipeline, the embedding and the output may be chunks by themselves.
        lambda i: i.model.layers + 2 * (i.virtual_stages > 1) >= i.pp_size * i.virtual_stages,
        lambda i: (
            f"pp_size x virtual_stages = {i.pp_size} x {i.virtual_stages} is more than the "
            f"model's {i.model.layers} layers: choose at most one chunk per layer"
        ),
        ParallelismError,
    ),
    Rule(
        "first_stage_layers",
        # Every layer is on a stage, and each stage in the middle has at least one per chunk.
        lambda i: (
            (stated_stages(i) == 0)
            | where(
                i.pp_size > stated_stages(i),
                unstated_layers(i) >= (i.pp_size - stated_stages(i)) * i.virtual_stages,
                (unstated_layers(i) == 0) & (i.pp_size > 1),
            )
        ),
        lambda i: (
            f"first_stage_layers = {i.first_stage_layers} and last_stage_layers = "
            f"{i.last_stage_layers} do not lay out the model's {i.model.layers} layers on "
            f"pp_size = {i.pp_size} stages: leave each other stage at least virtual_stages = "
            f"{i.virtual_stages} layers, or leave both out"
        ),
        ParallelismError,
    ),
    _whole_chunks("first"),
    _whole_chunks("last"),
    Rule(
        "virtual_stages",
        lambda i: (i.virtual_stages == 1) | (i.pp_size > 1),
        lambda i: (
            f"virtual_stages = {i.virtual_stages} needs a pipeline, but pp_size = 1: raise "
            "pp_size or leave virtual_stages at 1"
        ),
        ParallelismError,
    ),
    Rule(
        "schedule",
        lambda i: (
            (i.virtual_stages == 1)
            | (i.schedule.all_forward_first + i.schedule.split_backward == 0)
        ),
        lambda i: (
            f"schedule = {i.schedule.name!r} has no interleaved form, but virtual_stages = "
            f"{i.virtual_stages}: choose schedule = '1f1b', or virtual_stages = 1"
        ),
        ParallelismError,
    ),
    Rule(
        "schedule",
        lambda i: (
            (i.schedule.bidirectional == 0)
            | (
                (i.pp_size % 2 == 0)
                & (i.microbatch_count % 2 == 0)
                & (i.microbatch_count >= 2 * i.pp_size)
            )
        ),
        lambda i: (
            f"schedule = 'dualpipe' needs an even pp_size (now {i.pp_size}) and an even "
            f"microbatch_count of at least twice that (now {i.microbatch_count}): change them, or "
            "choose schedule = '1f1b'"
        ),
        ParallelismError,
    ),
    Rule(
        "microbatch_count",
        lambda i: (i.virtual_stages == 1) | (i.microbatch_count % i.pp_size == 0),
        lambda i: (
            f"microbatch_count = {i.microbatch_count} is not a multiple of pp_size = "
            f"{i.pp_size}, which the interleaved schedule needs: choose a multiple, or "
            "virtual_stages = 1"
        ),
        ParallelismError,
    ),
    Rule(
        "shard_size",
        lambda i: (
            is_unknown(i.shard_size)
            | (
                (i.zero_stage >= 1)
                & (_replicas(i) % _shard_size(i) == 0)
                & _divides_either_way(_shard_size(i) * i.tp_size, i.ep_size)
            )
        ),
        lambda i: (
            f"shard_size = {i.shard_size} needs a zero_stage of 1 or more, and must divide the "
            f"{_replicas(i)} devices with the same parameters; times tp_size it must divide "
            f"ep_size = {i.ep_size} or be a multiple of it"
        ),
        ParallelismError,
    ),
    Rule(
        "recompute",
        lambda i: (
            (i.recompute.latent_share == 0)
            | any(a.expansions(i.model.hidden_dim) for _, a in i.model.attentions)
        ),
        lambda i: (
            f"recompute = {i.recompute.name!r} repeats products of latent attention, which "
            f"{i.model.name} does not have: leave out mla_up"
        ),
    ),
    Rule(
        "recompute_layers",
        lambda i: is_unknown(i.recompute_layers) | _repeats(i),
        lambda i: (
            f"recompute_layers = {i.recompute_layers} has nothing to apply to, because recompute = "
            f"{i.recompute.name!r} repeats nothing with {i.attention.name} attention: choose "
            "recompute = 'full' or a module such as 'norms', or leave recompute_layers out"
        ),
    ),
    Rule(
        "recompute_layers",
        _fits_a_stage,
        lambda i: (
            f"recompute_layers = {i.recompute_layers} is more than the {_fullest(i.plain()):g} "
            "layers of the longest pipeline stage: choose at most as many, or leave it out to "
            "recompute all"
        ),
    ),
    Rule(
        "capacity_factor",
        lambda i: (i.capacity_factor == 1) | (i.model.routed_layers > 0),
        lambda i: (
            f"capacity_factor = {i.capacity_factor:g} has nothing to act on, because "
            f"{i.model.name} has no experts: leave it out, or choose a mixture of experts"
        ),
    ),
    Rule(
        "ep_size",
        lambda i: i.model.experts % i.ep_size == 0,
        lambda i: (
            f"ep_size = {i.ep_size} does not divide the model's {i.model.experts} expert(s) a "
            "layer: choose a divisor of the number of experts (1 for a dense model)"
        ),
        ParallelismError,
    ),
    Rule(
        "ep_size",
        lambda i: (i.ep_size == 1) | (i.devices % (i.pp_size * i.ep_size) == 0),
        lambda i: (
            f"ep_size = {i.ep_size} does not divide the {i.devices // i.pp_size} devices "
            "of a pipeline stage: choose a divisor"
        ),
        ParallelismError,
    ),
    Rule(
        "expert_nodes",
        lambda i: (
            i.model.experts_per_token * i.expert_span
            <= first_known(i.expert_nodes, i.expert_span) * i.model.experts
        ),
        lambda i: (
            f"expert_nodes = {i.expert_nodes} nodes have fewer than the "
            f"{i.model.experts_per_token} experts that a token visits, of {i.model.experts} on "
            f"{i.expert_span:g} nodes: raise expert_nodes"
        ),
        ParallelismError,
    ),
    *IMAGE_RULES,
)
