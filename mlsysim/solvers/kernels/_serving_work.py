"""Operations of serving, before it is known how fast."""

from __future__ import annotations

from types import SimpleNamespace

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value

__all__: list[str] = []  # parts of a kernel, no kernel of their own


def batch_flops(i: SimpleNamespace, sequences: Value, context: Value) -> Value:
    """Return the operations of a batch from its prompts to its last tokens, on all devices."""
    matrix = f.matrix_flops(
        i.layers,
        f.attention_parameters(i.hidden_dim, i.heads, i.kv_heads, i.head_dim),
        f.mean_mlp_parameters(
            f.mlp_parameters(i.hidden_dim, i.ffn_dim, i.mlp_matrices),
            f.mlp_parameters(i.hidden_dim, i.expert_ffn_dim, i.mlp_matrices),
            f.mlp_parameters(i.hidden_dim, i.shared_ffn_dim, i.mlp_matrices),
            i.experts_per_token,
            i.layers,
            i.moe_layers,
        ),
        i.flops_per_mac,
    )
    logit = f.logit_flops(i.vocab_size, i.hidden_dim, i.flops_per_mac)
    prompt = f.attention_score_flops(
        i.layers, i.heads, i.head_dim, i.seq_len, i.attended_fraction, i.flops_per_mac
    )
    score = f.attention_score_flops(i.layers, i.heads, i.head_dim, context, 1, i.flops_per_mac)
    return f.batch_cycle_flops(
        i.output_len,
        f.decode_flops(sequences, matrix, score, logit),
        f.prefill_flops(f.token_count(sequences, i.seq_len), sequences, matrix, prompt, logit),
    )
