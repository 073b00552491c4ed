"""Operations of serving, before it is known how fast."""

from __future__ import annotations

from types import SimpleNamespace

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value
from mlsysim.solvers.kernels._token_work import token_work

__all__: list[str] = []  # parts of a kernel, no kernel of their own


def batch_flops(i: SimpleNamespace, sequences: Value, context: Value) -> tuple[Value, Value]:
    """Return the operations of a batch, prompts included, and those of them in the wide format."""
    matrix, prompt, logit = token_work(i)
    score = f.attention_score_flops(i.layers, i.heads, i.head_dim, context, 1, i.flops_per_mac)
    tokens = f.token_count(sequences, i.seq_len)

    def of(products: Value) -> Value:
        return f.batch_cycle_flops(
            i.output_len,
            f.decode_flops(sequences, products, score, logit),
            f.prefill_flops(tokens, sequences, products, prompt, logit),
        )

    return of(matrix), of(0)
