"""What the fullest device holds in a training step, on paper: dense, and with experts."""

import pytest

from mlsysim import DistributedSolver
from tests.solvers.paper import (
    ATTENTION,
    DENSE,
    EXPERT,
    MATRICES,
    MIXED_PLAN,
    PARAMETERS,
    PLAN,
    ROUTER,
    SHARED,
    TABLE,
)

TOKENS = 2 * 2048


def agrees(result, expected):
    """Whether the parts and their sum are those of the account."""
    for field, size in expected.items():
        assert result[field].to("byte").magnitude == pytest.approx(size), field
    assert result.memory.to("byte").magnitude == pytest.approx(sum(expected.values()))


def fuller(*stages):
    return max(stages, key=lambda parts: sum(parts.values()))


@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
@pytest.mark.parametrize("loss", ["fused", "unfused"])
@pytest.mark.parametrize(
    ("recompute", "attention"), [("none", "fused"), ("none", "unfused"), ("full", "fused")]
)
@pytest.mark.parametrize("split", [True, False])
def test_memory_of_llama_by_hand(split, recompute, attention, loss, zero_stage):
    """Four stages of 20 layers and 8 devices; the first holds four microbatches of two sequences.

    The last holds one, and the logits. Eight replicas share what is sharded.
    """
    options = {"recompute": recompute, "attention": attention, "loss": loss}
    plan = PLAN | {"sequence_parallel": split}
    r = DistributedSolver.solve(**plan, **options, zero_stage=zero_stage)

    # Inputs and outputs of two norms, which devices split or do not
    norms = 4 * 2 * 8192 / (8 if split else 1)
    # Queries, outputs, keys and values; gate, what it multiplies, and their product
    inner = 2 * (2 * 64 * 128 + 2 * 8 * 128 + 3 * 28_672) / 8
    # Per head, one number of 32 bits for each query, or the softmax of its scores, of which nothing
    # is dropped
    scores = 64 / 8 * (4 if attention == "fused" else 2048 * 2)
    whole = TOKENS * (norms + inner + scores)
    layer_input = 2 * TOKENS * 8192 / (8 if split else 1)
    kept = layer_input if recompute == "full" else whole

    def stage(in_flight, last):
        # Norms are counted with the two tables.
        own = (MATRICES / 4 + (PARAMETERS - MATRICES) / 2) / 8
        shape = 2 * 8192 * 128 * 72 + 3 * 8192 * 28_672
        buffers = 2 * (shape + last * (PARAMETERS - MATRICES) / 2) / 8
        # The layer at work and the next are there whole, or the output table.
        sharded = 2 / 8 if zero_stage == 3 else 0
        gathered, table = 2 * sharded * MATRICES / 80, sharded * (PARAMETERS - MATRICES) / 2
        # What enters the nonlinearity and the block, the residual stream, and what is repeated
        peak = 2 * TOKENS * ((2 * 28_672 + 8192) / 8 + 8192) + whole - kept
        logits = 2 + (8 if loss == "unfused" else 0)  # two more in 32 bits
        ends = 2 * 2 * 8192 + 2 * 2 * 8192 / (8 if split else 1)
        top = last * TOKENS * (logits * 128_256 / 8 + ends)
        sharers = [8 if zero_stage >= first else 1 for first in (1, 2, 3)]
        return {
            "weights_memory": 2 * own / sharers[2],
            "gradient_memory": 2 * own / sharers[1],
            "optimizer_memory": 12 * own / sharers[0],
            "activation_memory": in_flight * 20 * kept,
            "working_memory": buffers + max(top + last * table, peak + gathered),
        }

    agrees(r, fuller(stage(4, 0), stage(1, 1)))


@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_memory_with_experts_by_hand(recompute, zero_stage):
    """The last stage has 16 layers with experts, the first 8 of them; it holds two microbatches."""
    r = DistributedSolver.solve(**MIXED_PLAN, recompute=recompute, zero_stage=zero_stage)

    def kept(width):
        """Inputs and outputs of two norms; queries, keys, values and output; statistics."""
        return TOKENS * (8 * 4096 / 2 + 2 * (2 * 128 * 40 + width) / 2 + 4 * 32 / 2)

    # Gate, what it multiplies and the product; experts have a copy of the token each.
    dense, mixed = kept(3 * 24_576), kept(4 * (4096 + 3 * 3584) + 3 * 4096)
    full, layer_input = recompute == "full", 2 * TOKENS * 4096 / 2

    def stage(plain, others, in_flight, last):
        layers = 16 * ATTENTION + plain * DENSE + others * (SHARED + ROUTER)
        common, experts = (layers + TABLE) / 2, others * 32 * EXPERT / 16

        def share(first):
            return common / 16 + experts / 2 if zero_stage >= first else common + experts

        each = [layer_input] * 2 if full else [dense, mixed]
        # One buffer for each shape of gradients, in all layers
        shapes = ATTENTION + (plain > 0) * DENSE + EXPERT + SHARED + last * TABLE
        # The layer at work and the next are there whole, or the output table.
        sharded = 2 if zero_stage == 3 else 0
        dense_layer = (ATTENTION + DENSE) / 2 if plain else 0
        mixed_layer = (ATTENTION + SHARED + ROUTER) / 2 + 32 * EXPERT / 16
        whole = 2 * sharded * max(dense_layer, mixed_layer)
        # Backward through a block: what enters nonlinearities and the block, the residual stream,
        # and what is computed again
        peak = 2 * TOKENS * (4 * (2 * 3584 + 4096) / 2 + 4096) + mixed - each[1]
        if plain:
            peak = max(peak, 2 * TOKENS * ((2 * 24_576 + 4096) / 2 + 4096) + dense - each[0])
        # Logits, a copy of them in 32 bits and its gradient; the norm before them, its gathered
        # output and the gradient of that
        logits = TOKENS * ((2 + 4 + 4) * 32_000 / 2 + 2 * 2 * 4096 / 2 + 2 * 2 * 4096)
        return {
            "weights_memory": 2 * share(3),
            "gradient_memory": 2 * share(2),
            "optimizer_memory": 12 * share(1),
            "activation_memory": in_flight * (plain * each[0] + others * each[1]),
            "working_memory": 2 * shapes / 2
            + max(last * (logits + sharded * TABLE / 2), peak + whole),
        }

    agrees(r, fuller(stage(8, 8, 2, 0), stage(0, 16, 1, 1)))
