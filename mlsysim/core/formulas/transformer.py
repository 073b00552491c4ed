"""Transformers: parameters and tokens from the shape.

Norms, biases and positions are left out: below one percent of the parameters of every model in
the registry.
"""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value

__all__ = [
    "attention_parameters",
    "embedding_parameters",
    "mlp_parameters",
    "token_count",
    "transformer_parameters",
]


@formula
def attention_parameters(
    hidden_dim: Value, heads: Value, kv_heads: Value, head_dim: Value
) -> Value:
    r"""Parameters of one attention block: query, key, value and output matrices.

    $$ N_a = 2 h d\,(a + k) $$

    Parameters
    ----------
    hidden_dim : [1]
        $h$, width of the residual stream.
    heads : [1]
        $a$, attention heads.
    kv_heads : [1]
        $k$, key and value heads.
    head_dim : [1]
        $d$, width of one head.

    Returns
    -------
    parameters : [param]
        $N_a$, parameters of the block.

    References
    ----------
    Vaswani et al. (2017), Attention Is All You Need, section 3.2.2,
    https://arxiv.org/abs/1706.03762; grouped heads: Ainslie et al. (2023), GQA, section 2.2,
    https://arxiv.org/abs/2305.13245
    """
    return 2 * hidden_dim * head_dim * (heads + kv_heads)


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
    Vaswani et al. (2017), Attention Is All You Need, section 3.3, https://arxiv.org/abs/1706.03762;
    gated blocks: Shazeer (2020), GLU Variants Improve Transformer, section 2,
    https://arxiv.org/abs/2002.05202
    """
    return mlp_matrices * hidden_dim * ffn_dim


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
        $e$, tables: 1 where input and output share one, else 2.

    Returns
    -------
    parameters : [param]
        $N_e$, parameters of the tables.

    References
    ----------
    Vaswani et al. (2017), Attention Is All You Need, section 3.4, https://arxiv.org/abs/1706.03762
    """
    return embedding_tables * vocab_size * hidden_dim


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
    Narayanan et al. (2021), Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM, Eq. 2 (there for f = 4h without a gate, with biases, norms and positions),
    https://arxiv.org/abs/2104.04473
    """
    return layers * (attention + mlp) + embedding


@formula
def token_count(sequences: Value, seq_len: Value) -> Value:
    r"""Tokens in a batch of equally long sequences.

    $$ D = b\,s $$

    Parameters
    ----------
    sequences : [1]
        $b$, sequences.
    seq_len : [token]
        $s$, tokens of each.

    Returns
    -------
    tokens : [token]
        $D$, tokens.

    References
    ----------
    Definition: the batch is counted in sequences.
    """
    return sequences * seq_len
