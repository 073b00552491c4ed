"""Operations of a transformer. A multiply-accumulate is two of them."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value

__all__ = [
    "attention_score_flops",
    "device_flops",
    "forward_flops",
    "logit_flops",
    "matrix_flops",
    "operations_sum",
    "recomputed_flops",
    "training_flops",
]


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
    Kaplan et al. (2020), Scaling Laws for Neural Language Models, section 2.1 and Table 1,
    https://arxiv.org/abs/2001.08361
    """
    return flops_per_mac * layers * (attention + mlp)


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

    Both are one multiply-accumulate per head, head width and attended position. A causal kernel
    that skips the masked half attends to half of the positions on average.

    $$ f_a = 2\,c\,L\,a\,d\,s\,\kappa $$

    Parameters
    ----------
    layers : [1]
        $L$, layers.
    heads : [1]
        $a$, attention heads.
    head_dim : [1]
        $d$, width of one head.
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
    Kaplan et al. (2020), Scaling Laws for Neural Language Models, Table 1 (scores alone),
    https://arxiv.org/abs/2001.08361; Narayanan et al. (2021), Efficient Large-Scale Language Model
    Training on GPU Clusters Using Megatron-LM, appendix (scores and values, not halved),
    https://arxiv.org/abs/2104.04473; causal half: Dao (2023), FlashAttention-2, section 4.1,
    https://arxiv.org/abs/2307.08691; PaLM's model FLOPs do not halve: Chowdhery et al. (2022),
    appendix B, https://arxiv.org/abs/2204.02311
    """
    return 2 * flops_per_mac * layers * heads * head_dim * seq_len * attended_fraction


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
    Narayanan et al. (2021), Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM, appendix, https://arxiv.org/abs/2104.04473
    """
    return flops_per_mac * vocab_size * hidden_dim


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
    Narayanan et al. (2021), Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM, appendix, https://arxiv.org/abs/2104.04473
    """
    return tokens * (matrix + score + logit)


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
    Narayanan et al. (2021), Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM, appendix, https://arxiv.org/abs/2104.04473
    """
    return 3 * forward


@formula
def recomputed_flops(
    tokens: Value, matrix: Value, score: Value, matrix_share: Value, score_share: Value
) -> Value:
    r"""Operations that the backward pass does again because their results were not kept.

    Full recomputation repeats the layers, without the logits; selective recomputation repeats only
    the attention scores and their product with the values. A fused attention kernel repeats the
    scores alone, half of that (five products in its backward pass, for two in the forward pass).

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
        $r_a$, share of the score work that is repeated: 1 for full and selective, else 0.

    Returns
    -------
    flops : [flop]
        $F_r$, repeated operations.

    References
    ----------
    Korthikanti et al. (2022), Reducing Activation Recomputation in Large Transformer Models,
    section 5 and appendix A, https://arxiv.org/abs/2205.05198; full: Narayanan et al. (2021),
    appendix, https://arxiv.org/abs/2104.04473; fused: Dao (2023), FlashAttention-2, section 4.1,
    https://arxiv.org/abs/2307.08691
    """
    return tokens * (matrix_share * matrix + score_share * score)


@formula
def operations_sum(model: Value, recomputed: Value) -> Value:
    r"""Operations that the hardware does in a step.

    $$ F_h = F + F_r $$

    Parameters
    ----------
    model : [flop]
        $F$, operations of the model.
    recomputed : [flop]
        $F_r$, operations repeated in the backward pass.

    Returns
    -------
    flops : [flop]
        $F_h$, operations done.

    References
    ----------
    Korthikanti et al. (2022), Reducing Activation Recomputation in Large Transformer Models,
    section 6.3 and appendix A, https://arxiv.org/abs/2205.05198
    """
    return model + recomputed


@formula
def device_flops(flops: Value, devices: Value, imbalance: Value) -> Value:
    r"""Operations of the device that has the most to do.

    $$ F_d = \frac{\iota\,F_h}{n} $$

    Parameters
    ----------
    flops : [flop]
        $F_h$, operations of all devices.
    devices : [1]
        $n$, devices.
    imbalance : [1]
        $\iota$, work of the longest pipeline stage over the mean.

    Returns
    -------
    flops : [flop]
        $F_d$, operations of one device.

    References
    ----------
    Counting; data and tensor parallelism split the work evenly.
    """
    return imbalance * flops / devices
