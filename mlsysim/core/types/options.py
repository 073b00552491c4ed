"""Named ways to run a training step: its schedule, attention, loss, optimizer, recomputation."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from mlsysim.core.fields import ReadOnlyMapping, Record, number, quantity, record
from mlsysim.core.units import Q_, Quantity


@record
class Schedule(Record):
    """The order of passes in a pipeline."""

    name: str
    all_forward_first: float = number(zero=True, most=1)
    """1 if all forward passes come first (GPipe), 0 if they alternate with backward passes."""
    split_backward: float = number(zero=True, most=1)
    """1 if gradients of weights are a separate pass, which fills bubbles."""
    bidirectional: float = number(zero=True, most=1)
    """1 if microbatches enter at both ends, and each device holds a stage and its mirror image."""


@record
class Recompute(Record):
    """A way to trade operations for memory."""

    name: str
    matrix_share: float = number(zero=True, most=1)
    """Share of the layers' matrix products that the backward pass recomputes."""
    score_share: float = number(zero=True, most=1)
    """Share of the attention scores that it recomputes."""
    kept_scores: float = number(zero=True, most=1)
    """Share of the attention scores that are kept in memory."""
    all_reduces_per_layer: int = number(whole=True)
    """All-reduces of tensor parallelism per layer: two forward, two backward, and two more if the
    layer's forward pass is recomputed."""
    norm_share: float = number(zero=True, most=1)
    """Share of the norms whose results it recomputes instead of keeping them."""
    activation_share: float = number(zero=True, most=1)
    """The same of the feed-forward blocks' nonlinearities."""
    latent_share: float = number(zero=True, most=1)
    """The same of latent attention's up-projections."""


@record
class AttentionKernel(Record):
    """How attention is computed."""

    name: str
    fused: float = number(zero=True, most=1)
    """1 if one kernel does everything, 0 if scores pass through memory."""
    written_scores: float = number(zero=True, most=1)
    """Share of the scores that pass through memory."""
    backward: float = number()
    """Operations of the backward pass divided by those of the forward pass. A fused kernel computes
    the scores again: five products instead of two."""


@record
class ContextExchange(Record):
    """How devices that share sequences exchange data for attention."""

    name: str
    gathers: float = number(zero=True, most=1)
    """1 if each device gathers all keys and values before attention, 0 if they travel from device
    to device during attention."""
    by_heads: float = number(zero=True, most=1)
    """1 if the devices swap positions for heads, so that each attends to whole sequences."""


@record
class Loss(Record):
    """How the loss is computed from the logits."""

    name: str
    copy_bytes: Quantity = quantity("byte", zero=True)
    """Bytes per logit besides the logits: 32-bit copies and their gradients."""


@record
class Optimizer(Record):
    """Memory and work of an optimizer per parameter."""

    name: str
    state_bytes: Quantity = quantity("byte", zero=True)
    """Bytes of state per parameter of a layer, excluding master weights."""
    table_bytes: Quantity = quantity("byte", zero=True)
    """The same per parameter of an embedding table."""
    iterations: float = number(zero=True)
    """Newton-Schulz iterations by which the update of a matrix is made orthogonal."""


def _optimizer(name: str, state: float, table: float, iterations: int = 0) -> Optimizer:
    return Optimizer(
        name=name,
        state_bytes=Q_(state, "byte"),
        table_bytes=Q_(table, "byte"),
        iterations=iterations,
    )


def _schedule(name: str, first: int, split: int, both: int) -> Schedule:
    return Schedule(name=name, all_forward_first=first, split_backward=split, bidirectional=both)


SCHEDULES: Mapping[str, Schedule] = ReadOnlyMapping(
    {
        "1f1b": _schedule("1f1b", 0, 0, 0),
        "gpipe": _schedule("gpipe", 1, 0, 0),
        "zb-h1": _schedule("zb-h1", 0, 1, 0),
        "dualpipe": _schedule("dualpipe", 0, 1, 1),
    }
)
"""Narayanan et al. (2021), section 2.2.1; Huang et al. (2019); Qi et al. (2023), Zero Bubble
Pipeline Parallelism; DeepSeek-AI (2024), DeepSeek-V3, section 3.2.1."""

ATTENTION: Mapping[str, AttentionKernel] = ReadOnlyMapping(
    {
        "fused": AttentionKernel(name="fused", fused=1, written_scores=0, backward=2.5),
        "unfused": AttentionKernel(name="unfused", fused=0, written_scores=1, backward=2),
    }
)
"""Dao (2023), FlashAttention-2, section 4.1, and plain attention."""

CP_KINDS: Mapping[str, ContextExchange] = ReadOnlyMapping(
    {
        "ring": ContextExchange(name="ring", gathers=0, by_heads=0),
        "all_gather": ContextExchange(name="all_gather", gathers=1, by_heads=0),
        "ulysses": ContextExchange(name="ulysses", gathers=0, by_heads=1),
    }
)
"""Liu, Zaharia and Abbeel (2023), Ring Attention; Llama Team (2024), The Llama 3 Herd of Models,
section 3.3.2; Jacobs et al. (2023), DeepSpeed Ulysses."""

LOSSES: Mapping[str, Loss] = ReadOnlyMapping(
    {
        "fused": Loss(name="fused", copy_bytes=Q_(0, "byte")),
        "unfused": Loss(name="unfused", copy_bytes=Q_(8, "byte")),
    }
)
"""Hsu et al. (2024), Liger Kernel, section 3.2: the gradient takes the logits' place. PyTorch's
loss holds log-probabilities and their gradient in 32 bits; cutting it into eight chunks frees 7.3
GiB of Llama 3 8B at 8,192 tokens (github.com/pytorch/torchtitan/pull/996): 7.5 bytes per logit."""

OPTIMIZERS: Mapping[str, Optimizer] = ReadOnlyMapping(
    {
        "adamw": _optimizer("adamw", 8, 8),
        "adamw_8bit": _optimizer("adamw_8bit", 2 + 8 / 256, 8),
        "muon": _optimizer("muon", 4, 8, 5),
        "adafactor": _optimizer("adafactor", 0, 0),
        "sgd": _optimizer("sgd", 4, 4),
    }
)
"""State in 32 bits unless it is said. adamw: Loshchilov and Hutter (2017), two moments. adamw_8bit:
Dettmers et al. (2021), two moments in 8 bits, with a scale of 32 bits each per block of 256 as in
bitsandbytes; embeddings stay in 32 bits (section 2.3). muon: Liu et al. (2025), Muon is Scalable
for LLM Training, section 2.2 (one momentum, half of AdamW's state; tables with AdamW), and Jordan
et al. (2024), five iterations. adafactor: Shazeer and Stern (2018), without momentum; rows and
columns of a matrix, less than a hundredth of a byte per parameter, are left out. sgd: with
momentum."""

_MODULES = ("selective", "norms", "swiglu", "mla_up")


def _recompute(modules: tuple[str, ...], whole: bool = False) -> Recompute:
    scores, norms, activation, latent = (float(name in modules) for name in _MODULES)
    return Recompute(
        name="full" if whole else "+".join(modules) or "none",
        matrix_share=float(whole),
        score_share=float(whole) or scores,
        kept_scores=0 if whole else 1 - scores,
        all_reduces_per_layer=6 if whole else 4,
        norm_share=norms,
        activation_share=activation,
        latent_share=latent,
    )


def _named() -> dict[str, Recompute]:
    chosen = [parts for n in range(len(_MODULES) + 1) for parts in combinations(_MODULES, n)]
    return {row.name: row for row in [*map(_recompute, chosen), _recompute((), whole=True)]}


RECOMPUTE: Mapping[str, Recompute] = ReadOnlyMapping(_named())
"""Nothing, the attention scores (selective) or whole layers: Korthikanti et al. (2022), section 5.
Fused attention (FlashAttention) never stores the scores, which is the selective kind. Norms, SwiGLU
and up-projections of latent attention: DeepSeek-AI (2024), DeepSeek-V3, section 3.2.3, and
Megatron-Core's recompute_modules (layernorm, moe_act, mla_up_proj)."""
