"""Context parallelism, where keys and values go round, and what computation hides of it."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum, minimum

__all__ = [
    "context_exchange_time",
    "cover_left",
    "covering_time",
    "hidden_time",
    "key_value_size",
    "step_share",
    "uncovered_time",
    "waiting_time",
]


@formula
def key_value_size(
    tokens: Value, kv_heads: Value, head_dim: Value, tp_size: Value, bytes_per_element: Value
) -> Value:
    r"""Keys and values of one layer and one microbatch on a device.

    Heads are dealt out whole: a device has one at least.

    $$ M = 2\,n\,d\,\beta\,\max\left(1,\; \frac{a_k}{t}\right) $$

    Parameters
    ----------
    tokens : [token]
        $n$, tokens of the microbatch on the device.
    kv_heads : [1]
        $a_k$, heads of keys and values.
    head_dim : [1]
        $d$, width of a head.
    tp_size : [1]
        $t$, devices that share each layer.
    bytes_per_element : [byte]
        $\beta$, bytes of one activation.

    Returns
    -------
    size : [byte]
        $M$, bytes.

    References
    ----------
    Counting.
    """
    return 2 * tokens * head_dim * bytes_per_element * maximum(1, kv_heads / tp_size)


@formula
def context_exchange_time(size: Value, cp_size: Value, bandwidth: Value, latency: Value) -> Value:
    r"""Time in which the keys and values of every rank pass by every other rank once.

    $$ t = (c_p - 1)\left(\frac{M}{B} + \alpha\right) $$

    Parameters
    ----------
    size : [byte]
        $M$, keys and values of one rank.
    cp_size : [1]
        $c_p$, ranks that share each sequence.
    bandwidth : [byte/s]
        $B$, bandwidth from a rank to the next, one direction.
    latency : [s]
        $\alpha$, time of an empty message.

    Returns
    -------
    time : [s]
        $t$, time of one round.

    References
    ----------
    Liu, Zaharia and Abbeel (2023), Ring Attention with Blockwise Transformers for Near-Infinite
    Context, https://arxiv.org/abs/2310.01889
    """
    return (cp_size - 1) * (size / bandwidth + latency)


@formula
def covering_time(attention: Value, cp_size: Value) -> Value:
    r"""Attention of a forward pass under which keys and values travel: all but that on the last.

    $$ t_a = \frac{c_p - 1}{c_p}\,t_f $$

    Parameters
    ----------
    attention : [s]
        $t_f$, attention of the forward pass.
    cp_size : [1]
        $c_p$, ranks that share each sequence.

    Returns
    -------
    time : [s]
        $t_a$, time that covers the exchange.

    References
    ----------
    Liu, Zaharia and Abbeel (2023), Ring Attention with Blockwise Transformers for Near-Infinite
    Context, https://arxiv.org/abs/2310.01889; each of $c_p$ blocks is worked on while the next one
    arrives, and after the last none does.
    """
    return attention * (cp_size - 1) / cp_size


@formula
def uncovered_time(exchange: Value, attention: Value, recomputed: Value) -> Value:
    r"""Time per layer and microbatch in which attention waits for keys and values.

    They travel while attention works on those that came before. Forward they go round once;
    backward they do again, and so do their gradients; and once more where the layer is computed
    again.

    $$ t = (3 + \rho)\,\max(0,\; t_x - t_a) $$

    Parameters
    ----------
    exchange : [s]
        $t_x$, time of one round.
    attention : [s]
        $t_a$, attention that covers it, forward; zero where nothing overlaps.
    recomputed : [1]
        $\rho$, 1 if whole layers are computed again, else 0.

    Returns
    -------
    time : [s]
        $t$, time that is not covered.

    References
    ----------
    Liu, Zaharia and Abbeel (2023), Ring Attention with Blockwise Transformers for Near-Infinite
    Context, https://arxiv.org/abs/2310.01889; the backward pass has twice the exchange and about
    twice the work.
    """
    return (3 + recomputed) * maximum(0 * exchange, exchange - attention)


@formula
def step_share(layer: Value, layers: Value, microbatch_count: Value) -> Value:
    r"""Time of a step that is spent on one part of every layer and microbatch.

    $$ t = m\,L_1\,t_1 $$

    Parameters
    ----------
    layer : [s]
        $t_1$, time per layer and microbatch.
    layers : [1]
        $L_1$, layers of the stage.
    microbatch_count : [1]
        $m$, microbatches per step.

    Returns
    -------
    time : [s]
        $t$, time per step.

    References
    ----------
    Counting.
    """
    return microbatch_count * layers * layer


@formula
def waiting_time(layer: Value, gather: Value, overlap: Value) -> Value:
    r"""Time that gathers of sharded weights add to a layer: `gathered_layer_time` less the layer's.

    $$ t = \max(0,\; t_g - t_l) + (1 - \omega)\min(t_l, t_g) $$

    Parameters
    ----------
    layer : [s]
        $t_l$, computation of the layer.
    gather : [s]
        $t_g$, gathers and scatters for it.
    overlap : [1]
        $\omega$, share of the shorter that is hidden.

    Returns
    -------
    time : [s]
        $t$, time that is added.

    References
    ----------
    Definition of exposed communication.
    """
    return maximum(0 * gather, gather - layer) + (1 - overlap) * minimum(layer, gather)


@formula
def hidden_time(communication: Value, exposed: Value) -> Value:
    r"""Part of a communication that runs under computation.

    $$ t_h = t_m - t_x $$

    Parameters
    ----------
    communication : [s]
        $t_m$, time of the communication.
    exposed : [s]
        $t_x$, part of it that computation does not hide.

    Returns
    -------
    time : [s]
        $t_h$, hidden time.

    References
    ----------
    Definition of exposed communication.
    """
    return communication - exposed


@formula
def cover_left(cover: Value, communication: Value, exposed: Value) -> Value:
    r"""Computation that is left to hide a communication under, once another one runs under it.

    $$ t_c' = t_c - (t_m - t_x) $$

    Parameters
    ----------
    cover : [s]
        $t_c$, computation.
    communication : [s]
        $t_m$, time of the other communication.
    exposed : [s]
        $t_x$, part of it that the computation does not hide.

    Returns
    -------
    time : [s]
        $t_c'$, computation that hides nothing yet.

    References
    ----------
    Counting: one piece of computation hides one communication at a time.
    """
    return cover - (communication - exposed)
