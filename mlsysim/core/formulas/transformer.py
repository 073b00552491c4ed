"""Transformers: parameters and operations from the shape. A multiply-accumulate is two operations.

Norms, biases and positions are left out: below one percent of the parameters of every model in
the registry.
"""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value

__all__ = [
    "adapter_parameters",
    "attention_parameters",
    "attention_score_flops",
    "embedding_parameters",
    "forward_flops",
    "frozen_flops",
    "latent_attention_parameters",
    "linear_attention_flops",
    "logit_flops",
    "matrix_flops",
    "mlp_parameters",
    "recomputed_flops",
    "training_flops",
    "transformer_parameters",
]


@formula
def adapter_parameters(rank: Value, sides: Value) -> Value:
    r"""Parameters of low-rank adapters: two thin matrices for each frozen matrix.

    $$ N_r = r \sum_j (m_j + n_j) $$

    Parameters
    ----------
    rank : [1]
        $r$, rank of the adapters.
    sides : [1]
        $\sum_j (m_j + n_j)$, both sides of all matrices that have one.

    Returns
    -------
    parameters : [param]
        $N_r$, parameters of the adapters.

    References
    ----------
    @hu2021, section 4.1
    """
    return rank * sides


@formula
def attention_parameters(
    hidden_dim: Value, heads: Value, kv_heads: Value, head_dim: Value
) -> Value:
    r"""Parameters of one attention block: query, key, value and output matrices.

    $$ N_a = 2 h d_h\,(a + k) $$

    Parameters
    ----------
    hidden_dim : [1]
        $h$, width of the residual stream.
    heads : [1]
        $a$, attention heads.
    kv_heads : [1]
        $k$, key and value heads.
    head_dim : [1]
        $d_h$, width of one head.

    Returns
    -------
    parameters : [param]
        $N_a$, parameters of the block.

    References
    ----------
    @vaswani2017, section 3.2.2; grouped heads: @ainslie2023, section 2.2
    """
    return 2 * hidden_dim * head_dim * (heads + kv_heads)


@formula
def attention_score_flops(
    layers: Value,
    heads: Value,
    head_dim: Value,
    seq_len: Value,
    attended_fraction: Value,
    flops_per_mac: Value,
) -> Value:
    r"""Forward operations per token in the attention scores and their product with the values.

    Each of them takes one multiply-accumulate per head, head width and attended position. A causal
    kernel that skips the masked half attends to half of the positions on average.

    $$ f_a = 2\,c\,L\,a\,d_h\,s\,\kappa $$

    Parameters
    ----------
    layers : [1]
        $L$, layers.
    heads : [1]
        $a$, attention heads.
    head_dim : [1]
        $d_h$, width of one head: the mean of its keys and values if they differ.
    seq_len : [token]
        $s$, tokens in the sequence.
    attended_fraction : [1]
        $\kappa$, share of the positions that a token attends to: 1/2 if causal, else 1.
    flops_per_mac : [flop]
        $c$, operations of one multiply-accumulate: 2.

    Returns
    -------
    flops : [flop]
        $f_a$, operations per token.

    References
    ----------
    @kaplan2020, Table 1 (scores alone); @narayanan2021, appendix (scores and values, not halved);
    causal half: @dao2023, section 4.1; PaLM's model FLOPs do not halve: @chowdhery2022, appendix B
    """
    return 2 * flops_per_mac * layers * heads * head_dim * seq_len * attended_fraction


@formula
def embedding_parameters(vocab_size: Value, hidden_dim: Value, embedding_tables: Value) -> Value:
    r"""Parameters of the input embedding and the output projection.

    $$ N_e = e\,V\,h $$

    Parameters
    ----------
    vocab_size : [1]
        $V$, size of the vocabulary.
    hidden_dim : [1]
        $h$, width of the residual stream.
    embedding_tables : [1]
        $e$, tables: 1 if input and output share one, else 2.

    Returns
    -------
    parameters : [param]
        $N_e$, parameters of the tables.

    References
    ----------
    @vaswani2017, section 3.4
    """
    return embedding_tables * vocab_size * hidden_dim


@formula
def forward_flops(tokens: Value, matrix: Value, score: Value, logit: Value) -> Value:
    r"""Operations of one forward pass.

    $$ F_1 = D\,(f_w + f_a + f_v) $$

    Parameters
    ----------
    tokens : [token]
        $D$, tokens in the batch.
    matrix : [flop]
        $f_w$, operations per token in weight matrices.
    score : [flop]
        $f_a$, operations per token in attention scores and values.
    logit : [flop]
        $f_v$, operations per token in the output projection.

    Returns
    -------
    flops : [flop]
        $F_1$, operations of the forward pass.

    References
    ----------
    @narayanan2021, appendix
    """
    return tokens * (matrix + score + logit)


@formula
def latent_attention_parameters(
    hidden_dim: Value,
    heads: Value,
    query_rank: Value,
    kv_rank: Value,
    nope_dim: Value,
    rope_dim: Value,
    value_dim: Value,
) -> Value:
    r"""Parameters of one block of multi-head latent attention.

    Queries are computed in two steps through a latent vector, and keys and values through another.
    The part of the keys that encodes the position is computed directly from the token.

    $$ N_a = r_q\left(h + a\,(d_n + d_r)\right) + h\,(r_k + d_r) + r_k\,a\,(d_n + d_v)
       + a\,d_v\,h $$

    Parameters
    ----------
    hidden_dim : [1]
        $h$, width of the residual stream.
    heads : [1]
        $a$, attention heads.
    query_rank : [1]
        $r_q$, width of the latent vector of queries.
    kv_rank : [1]
        $r_k$, width of the latent vector of keys and values.
    nope_dim : [1]
        $d_n$, width of the part of a key without position encoding.
    rope_dim : [1]
        $d_r$, width of the part with rotary position encoding.
    value_dim : [1]
        $d_v$, width of a value.

    Returns
    -------
    parameters : [param]
        $N_a$, parameters of the block.

    References
    ----------
    @deepseek2024, section 2.1 and appendix C
    """
    queries = query_rank * (hidden_dim + heads * (nope_dim + rope_dim))
    latent = hidden_dim * (kv_rank + rope_dim)
    keys_and_values = kv_rank * heads * (nope_dim + value_dim)
    return queries + latent + keys_and_values + heads * value_dim * hidden_dim


@formula
def linear_attention_flops(
    heads: Value,
    key_dim: Value,
    value_dim: Value,
    state_reads: Value,
    chunk: Value,
    flops_per_mac: Value,
) -> Value:
    r"""Forward operations per token in the states of one layer of linear attention.

    Each head adds the outer product of a key and a value to its state, and reads the state with the
    query. The delta rule also reads it with the key, to replace the stored value. Training and
    prefill process chunks of tokens at once: within a chunk, tokens attend to each other, in whole
    tiles. The delta rule also needs the products of all keys of a chunk.

    $$ f_l = c\,a\left((1 + \rho)\,d_k d_v + C\,\left(\rho\,(d_k + d_v)
       + (\rho - 1)\,d_k\right)\right) $$

    Parameters
    ----------
    heads : [1]
        $a$, heads with a state.
    key_dim : [1]
        $d_k$, width of a key.
    value_dim : [1]
        $d_v$, width of a value.
    state_reads : [1]
        $\rho$, times that a token reads the state: 1, or 2 with the delta rule.
    chunk : [token]
        $C$, tokens of a chunk; 0 for single tokens.
    flops_per_mac : [flop]
        $c$, operations of one multiply-accumulate: 2.

    Returns
    -------
    flops : [flop]
        $f_l$, operations per token.

    References
    ----------
    @dao2024, section 6; delta rule: @yang2024, section 3.2
    """
    state = (1 + state_reads) * key_dim * value_dim
    within = state_reads * (key_dim + value_dim) + (state_reads - 1) * key_dim
    return flops_per_mac * heads * (state + chunk * within)


@formula
def logit_flops(vocab_size: Value, hidden_dim: Value, flops_per_mac: Value) -> Value:
    r"""Forward operations per token in the output projection onto the vocabulary.

    $$ f_v = c\,V\,h $$

    Parameters
    ----------
    vocab_size : [1]
        $V$, size of the vocabulary.
    hidden_dim : [1]
        $h$, width of the residual stream.
    flops_per_mac : [flop]
        $c$, operations of one multiply-accumulate: 2.

    Returns
    -------
    flops : [flop]
        $f_v$, operations per token.

    References
    ----------
    @narayanan2021, appendix
    """
    return flops_per_mac * vocab_size * hidden_dim


@formula
def matrix_flops(layers: Value, attention: Value, mlp: Value, flops_per_mac: Value) -> Value:
    r"""Forward operations per token in the layers' weight matrices.

    Each weight takes part in one multiply-accumulate per token.

    $$ f_w = c\,L\,(N_a + N_f) $$

    Parameters
    ----------
    layers : [1]
        $L$, layers.
    attention : [param]
        $N_a$, parameters of one attention block.
    mlp : [param]
        $N_f$, parameters of one feed-forward block.
    flops_per_mac : [flop]
        $c$, operations of one multiply-accumulate: 2.

    Returns
    -------
    flops : [flop]
        $f_w$, operations per token.

    References
    ----------
    @kaplan2020, section 2.1 and Table 1
    """
    return flops_per_mac * layers * (attention + mlp)


@formula
def mlp_parameters(hidden_dim: Value, ffn_dim: Value, mlp_matrices: Value) -> Value:
    r"""Parameters of one feed-forward block.

    $$ N_f = w\,h\,f $$

    Parameters
    ----------
    hidden_dim : [1]
        $h$, width of the residual stream.
    ffn_dim : [1]
        $f$, inner width of the block.
    mlp_matrices : [1]
        $w$, matrices in the block: 2, or 3 with a gate.

    Returns
    -------
    parameters : [param]
        $N_f$, parameters of the block.

    References
    ----------
    @vaswani2017, section 3.3; gated blocks: @shazeer2020, section 2
    """
    return mlp_matrices * hidden_dim * ffn_dim


@formula
def recomputed_flops(
    tokens: Value, matrix: Value, score: Value, matrix_share: Value, score_share: Value
) -> Value:
    r"""Operations that the backward pass repeats because their results were not kept.

    Full recomputation repeats the layers, without the logits; selective recomputation repeats only
    the attention scores and their product with the values. A fused attention kernel recomputes the
    scores within its backward pass (five products, compared with two in the forward pass).
    Published utilizations do not count that as recomputation, and neither does this formula.

    $$ F_r = D\,(r_w f_w + r_a f_a) $$

    Parameters
    ----------
    tokens : [token]
        $D$, tokens in the batch.
    matrix : [flop]
        $f_w$, operations per token in weight matrices.
    score : [flop]
        $f_a$, operations per token in attention scores and values.
    matrix_share : [1]
        $r_w$, share of the matrix work that is repeated: 1 for full, else 0.
    score_share : [1]
        $r_a$, share of the score work that is repeated: 1 for full, and for selective if attention
        is not fused; else 0.

    Returns
    -------
    flops : [flop]
        $F_r$, repeated operations.

    References
    ----------
    @korthikanti2022, section 5 and appendix A; full: @narayanan2021, appendix; fused: @dao2023,
    section 4.1
    """
    return tokens * (matrix_share * matrix + score_share * score)


@formula
def frozen_flops(tokens: Value, matrix: Value, logit: Value, adapters: Value) -> Value:
    r"""Operations saved in a step with frozen weights, net of those of the adapters.

    A product with frozen weights has only the gradient of its input: four operations per parameter
    and token instead of six.

    $$ F_s = D\,(f_w + f_v - 3 f_r) $$

    Parameters
    ----------
    tokens : [token]
        $D$, tokens in the batch.
    matrix : [flop]
        $f_w$, forward operations per token in weight matrices.
    logit : [flop]
        $f_v$, forward operations per token in the output projection.
    adapters : [flop]
        $f_r$, forward operations per token in adapters.

    Returns
    -------
    flops : [flop]
        $F_s$, operations.

    References
    ----------
    Counting; adapters as in @hu2021, section 4
    """
    return tokens * (matrix + logit - 3 * adapters)


@formula
def training_flops(forward: Value) -> Value:
    r"""Model operations of a training step: the backward pass costs twice the forward pass.

    Every product of the forward pass has two gradients, one for each factor.

    $$ F = 3\,F_1 $$

    Parameters
    ----------
    forward : [flop]
        $F_1$, operations of the forward pass.

    Returns
    -------
    flops : [flop]
        $F$, operations of forward and backward pass, without recomputation.

    References
    ----------
    @narayanan2021, appendix
    """
    return 3 * forward


@formula
def transformer_parameters(layers: Value, attention: Value, mlp: Value, embedding: Value) -> Value:
    r"""Parameters of a whole transformer.

    $$ N = L\,(N_a + N_f) + N_e $$

    Parameters
    ----------
    layers : [1]
        $L$, layers.
    attention : [param]
        $N_a$, parameters of one attention block.
    mlp : [param]
        $N_f$, parameters of one feed-forward block.
    embedding : [param]
        $N_e$, parameters of the embedding tables.

    Returns
    -------
    parameters : [param]
        $N$, parameters of the model.

    References
    ----------
    @narayanan2021, Eq. 2 (there for f = 4h without a gate, with biases, norms and positions)
    """
    return layers * (attention + mlp) + embedding
