"""Memory that a serving engine gives out, and the sequences that it lets run."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum, minimum

__all__ = [
    "kv_budget",
    "reserved_context",
    "running_sequences",
]


@formula
def kv_budget(capacity: Value, weights: Value, share: Value) -> Value:
    r"""Memory that an engine lets weights, keys and values take.

    $$ M_1 = \phi\,M_0 + (1 - \phi)\,M_w $$

    Parameters
    ----------
    capacity : [byte]
        $M_0$, memory of a device.
    weights : [byte]
        $M_w$, weights on it.
    share : [1]
        $\phi$, share of the rest, $M_0 - M_w$, that keys and values may take.

    Returns
    -------
    size : [byte]
        $M_1$, bytes.

    References
    ----------
    Kwon et al. (2023), Efficient Memory Management for Large Language Model Serving with
    PagedAttention, section 4.2, https://arxiv.org/abs/2309.06180
    """
    return share * capacity + (1 - share) * weights


@formula
def reserved_context(seq_len: Value, output_len: Value, reserved: Value) -> Value:
    r"""Tokens for which an engine sets memory aside when it admits a request.

    $$ T = s + \rho\,o $$

    Parameters
    ----------
    seq_len : [token]
        $s$, tokens of the prompt.
    output_len : [token]
        $o$, tokens generated.
    reserved : [1]
        $\rho$, 1 where all of the output is reserved, so that no request is ever put out again;
        one half where admitted requests share what they hold on average.

    Returns
    -------
    tokens : [token]
        $T$, tokens per request.

    References
    ----------
    Kwon et al. (2023), Efficient Memory Management for Large Language Model Serving with
    PagedAttention, section 4.5, https://arxiv.org/abs/2309.06180
    """
    return seq_len + reserved * output_len


@formula
def running_sequences(sequences: Value, places: Value) -> Value:
    r"""Sequences that are decoded at once: those in flight, unless memory is short.

    $$ b = \max(1,\; \min(c,\; b_{max})) $$

    Parameters
    ----------
    sequences : [1]
        $c$, requests in flight.
    places : [1]
        $b_{max}$, sequences whose keys and values fit.

    Returns
    -------
    running : [1]
        $b$, sequences of a decode step.

    References
    ----------
    Kwon et al. (2023), Efficient Memory Management for Large Language Model Serving with
    PagedAttention, https://arxiv.org/abs/2309.06180
    """
    return maximum(1, minimum(sequences, places))
