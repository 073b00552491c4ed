"""What one token costs a transformer and which weights a pass reads: experts as visited."""

from __future__ import annotations

from types import SimpleNamespace

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value

__all__: list[str] = []  # part of kernels, no kernel of its own


def token_work(i: SimpleNamespace) -> tuple[Value, Value, Value]:
    """Return forward operations per token: weight matrices, attention scores, logits."""
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
    score = f.attention_score_flops(
        i.layers, i.heads, i.head_dim, i.seq_len, i.attended_fraction, i.flops_per_mac
    )
    return matrix, score, f.logit_flops(i.vocab_size, i.hidden_dim, i.flops_per_mac)


def parameters_met(i: SimpleNamespace, tokens: Value) -> Value:
    """Return the parameters that a pass over so many tokens reads."""
    return f.parameters_read(
        i.parameters,
        f.mlp_parameters(i.hidden_dim, i.expert_ffn_dim, i.mlp_matrices),
        i.experts,
        f.experts_visited(i.experts, i.experts_per_token, tokens),
        i.moe_layers,
    )
