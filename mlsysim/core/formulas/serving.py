"""Serving a language model: prefill, decode, and the memory that both need."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum

__all__ = [
    "continuous_batching_rate",
    "decode_flops",
    "mean_context",
    "pass_time",
    "prefill_flops",
    "token_rate",
    "total_context",
]


@formula
def prefill_flops(
    tokens: Value, sequences: Value, matrix: Value, score: Value, logit: Value
) -> Value:
    r"""Operations of reading the prompts; only each prompt's last token needs logits.

    $$ F_p = D\,(f_w + f_a) + b\,f_v $$

    Parameters
    ----------
    tokens : [token]
        $D$, prompt tokens of all sequences.
    sequences : [1]
        $b$, sequences.
    matrix : [flop]
        $f_w$, operations per token in weight matrices.
    score : [flop]
        $f_a$, operations per token in attention scores and values.
    logit : [flop]
        $f_v$, operations per token in the output projection.

    Returns
    -------
    flops : [flop]
        $F_p$, operations of the prefill.

    References
    ----------
    Pope et al. (2022), Efficiently Scaling Transformer Inference, https://arxiv.org/abs/2211.05102
    """
    return tokens * (matrix + score) + sequences * logit


@formula
def decode_flops(sequences: Value, matrix: Value, score: Value, logit: Value) -> Value:
    r"""Operations of one decode step: one new token for each sequence.

    $$ F_d = b\,(f_w + f_a + f_v) $$

    Parameters
    ----------
    sequences : [1]
        $b$, sequences.
    matrix : [flop]
        $f_w$, operations per token in weight matrices.
    score : [flop]
        $f_a$, operations per token in attention scores and values, over the whole context.
    logit : [flop]
        $f_v$, operations per token in the output projection.

    Returns
    -------
    flops : [flop]
        $F_d$, operations of the step.

    References
    ----------
    Pope et al. (2022), Efficiently Scaling Transformer Inference, https://arxiv.org/abs/2211.05102
    """
    return sequences * (matrix + score + logit)


@formula
def total_context(seq_len: Value, output_len: Value) -> Value:
    r"""Tokens that a sequence has come to hold when its last token is made.

    $$ T = s + o $$

    Parameters
    ----------
    seq_len : [token]
        $s$, tokens of the prompt.
    output_len : [token]
        $o$, tokens generated.

    Returns
    -------
    tokens : [token]
        $T$, tokens of the sequence.

    References
    ----------
    Counting.
    """
    return seq_len + output_len


@formula
def mean_context(seq_len: Value, output_len: Value) -> Value:
    r"""Tokens that a sequence holds on average while it is generated.

    $$ \bar T = s + \frac{o}{2} $$

    Parameters
    ----------
    seq_len : [token]
        $s$, tokens of the prompt.
    output_len : [token]
        $o$, tokens generated.

    Returns
    -------
    tokens : [token]
        $\bar T$, mean tokens of the sequence.

    References
    ----------
    Counting: the context grows by one token a step.
    """
    return seq_len + output_len / 2


@formula
def pass_time(roofline: Value, communication: Value) -> Value:
    r"""Time of a pass through the model when communication does not overlap.

    $$ t = t_r + t_t $$

    Parameters
    ----------
    roofline : [s]
        $t_r$, time of arithmetic and memory traffic.
    communication : [s]
        $t_t$, tensor-parallel communication.

    Returns
    -------
    time : [s]
        $t$, time of the pass.

    References
    ----------
    Sum of parts that do not overlap.
    """
    return roofline + communication


@formula
def continuous_batching_rate(
    sequences: Value, output_len: Value, decode_step: Value, prefill: Value
) -> Value:
    r"""Requests per second when each finished sequence makes room for the next at once.

    Every prefill holds up all decodes. While one request is decoded, each of the $b$ places takes
    in one new prompt, and together they cost as much as the prefill of a batch. The prefill makes
    the first token, decode steps the others.

    $$ X = \frac{b}{\max(o - 1,\, 0)\,t_d + t_p} $$

    Parameters
    ----------
    sequences : [1]
        $b$, sequences in flight.
    output_len : [token]
        $o$, tokens generated per request.
    decode_step : [s]
        $t_d$, time of a decode step.
    prefill : [s]
        $t_p$, time of the prefill of $b$ prompts, with the fixed time of a request.

    Returns
    -------
    rate : [1/s]
        $X$, requests per second.

    References
    ----------
    Little's law, b = X times the stay, over places that are always taken; the schedule is that of
    Yu et al. (2022), Orca: A Distributed Serving System for Transformer-Based Generative Models,
    https://www.usenix.org/conference/osdi22/presentation/yu
    """
    return sequences / (maximum(output_len - 1, 0) * decode_step + prefill)


@formula
def token_rate(request_rate: Value, output_len: Value) -> Value:
    r"""Tokens per second that a rate of requests amounts to.

    $$ X_o = o\,X $$

    Parameters
    ----------
    request_rate : [1/s]
        $X$, requests per second.
    output_len : [token]
        $o$, tokens generated per request.

    Returns
    -------
    rate : [token/s]
        $X_o$, tokens per second.

    References
    ----------
    Counting.
    """
    return output_len * request_rate
