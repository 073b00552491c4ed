"""Working memory: what a backward pass holds beside states and kept activations."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum, minimum

__all__ = [
    "buffered_parameters",
    "gathered_weights_size",
    "head_working_memory",
    "layer_working_memory",
    "recomputed_size",
    "working_memory",
]


@formula
def layer_working_memory(
    tokens: Value,
    hidden_dim: Value,
    backward_width: Value,
    tp_size: Value,
    bytes_per_element: Value,
) -> Value:
    r"""Gradients of activations that the backward pass of one layer holds at its peak.

    $$ M_b = e\,T\left(\frac{w_g}{t} + h\right) $$

    Parameters
    ----------
    tokens : [token]
        $T$, tokens of a microbatch on the device.
    hidden_dim : [1]
        $h$, width of the residual stream, whose gradient waits.
    backward_width : [1]
        $w_g$, elements per token of the widest gradient.
    tp_size : [1]
        $t$, devices that share each layer.
    bytes_per_element : [byte]
        $e$, bytes of one activation.

    Returns
    -------
    size : [byte]
        $M_b$, bytes.

    References
    ----------
    Counting.
    """
    return bytes_per_element * tokens * (backward_width / tp_size + hidden_dim)


@formula
def head_working_memory(
    tokens: Value,
    hidden_dim: Value,
    vocab_size: Value,
    tp_size: Value,
    sequence_shards: Value,
    bytes_per_element: Value,
) -> Value:
    r"""Logits and what surrounds them when the backward pass begins on the last stage.

    A fused loss writes the gradient over the logits. Beside them stand input and output of the
    last norm, the gathered input of the output projection, and its gradient.

    $$ M_v = e\,T\left(\frac{V}{t} + 2h + \frac{2h}{t_s}\right) $$

    Parameters
    ----------
    tokens : [token]
        $T$, tokens of a microbatch on the device.
    hidden_dim : [1]
        $h$, width of the residual stream.
    vocab_size : [1]
        $V$, rows of the output table.
    tp_size : [1]
        $t$, devices that share the table.
    sequence_shards : [1]
        $t_s$, devices that share the norm.
    bytes_per_element : [byte]
        $e$, bytes of one logit.

    Returns
    -------
    size : [byte]
        $M_v$, bytes.

    References
    ----------
    Korthikanti et al. (2022), Reducing Activation Recomputation in Large Transformer Models,
    section 4.3 (norm, projection and logits), https://arxiv.org/abs/2205.05198; a fused loss:
    Hsu et al. (2024), Liger Kernel, section 3.2, https://arxiv.org/abs/2410.10989
    """
    rows = vocab_size / tp_size + 2 * hidden_dim + 2 * hidden_dim / sequence_shards
    return bytes_per_element * tokens * rows


@formula
def buffered_parameters(
    attention: Value,
    mlp: Value,
    expert: Value,
    table: Value,
    dense_layers: Value,
    moe_layers: Value,
    output_tables: Value,
    tp_size: Value,
) -> Value:
    r"""Parameters whose gradients stand in the precision of arithmetic before they are added up.

    Gradients are accumulated in place, but each product writes its own first. Buffers are made
    once per shape: those of one layer, and of the output table where the stage has it.

    $$ N_b = \frac{N_a + \min(1, L_d)\,N_f + \min(1, L_x)\,N_x + n_v\,N_t}{t} $$

    Parameters
    ----------
    attention : [param]
        $N_a$, matrices of attention.
    mlp : [param]
        $N_f$, matrices of a dense feed-forward block.
    expert : [param]
        $N_x$, matrices of one expert, and of what all tokens visit.
    table : [param]
        $N_t$, output table.
    dense_layers : [1]
        $L_d$, dense layers of the stage.
    moe_layers : [1]
        $L_x$, layers of the stage that have experts.
    output_tables : [1]
        $n_v$, 1 if the stage has the output table, else 0.
    tp_size : [1]
        $t$, devices that share each layer.

    Returns
    -------
    parameters : [param]
        $N_b$, parameters.

    References
    ----------
    NVIDIA, TransformerEngine, transformer_engine/pytorch/module/base.py, get_dummy_wgrad,
    https://github.com/NVIDIA/TransformerEngine
    """
    blocks = minimum(1, dense_layers) * mlp + minimum(1, moe_layers) * expert
    return (attention + blocks + output_tables * table) / tp_size


@formula
def gathered_weights_size(layer: Value, zero_stage: Value) -> Value:
    r"""Whole weights that a device holds for a while when weights are sharded.

    Those of the layer in use, and of the next, which are gathered meanwhile.

    $$ M_x = 2\,\max(0,\; z - 2)\,M_l $$

    Parameters
    ----------
    layer : [byte]
        $M_l$, weights of one layer.
    zero_stage : [1]
        $z$, what replicas share out: 3 if it is the weights too.

    Returns
    -------
    size : [byte]
        $M_x$, bytes.

    References
    ----------
    Zhao et al. (2023), PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel, section
    3.3 (prefetching), https://arxiv.org/abs/2304.11277
    """
    return 2 * maximum(0, zero_stage - 2) * layer


@formula
def recomputed_size(whole: Value, kept: Value) -> Value:
    r"""Activations of one layer that exist only while its backward pass runs.

    $$ M_r = M_1 - M_l $$

    Parameters
    ----------
    whole : [byte]
        $M_1$, activations that the layer's backward pass needs.
    kept : [byte]
        $M_l$, those of them that were kept.

    Returns
    -------
    size : [byte]
        $M_r$, bytes.

    References
    ----------
    Chen et al. (2016), Training Deep Nets with Sublinear Memory Cost, section 4,
    https://arxiv.org/abs/1604.06174
    """
    return whole - kept


@formula
def working_memory(
    buffers: Value, gathered: Value, recomputed: Value, layer: Value, head: Value
) -> Value:
    r"""Buffers that come and go within the backward pass, at the higher of its two peaks.

    The pass begins with the logits and then goes through the layers.

    $$ M_t = M_n + M_x + \max(M_v,\; M_b + M_r) $$

    Parameters
    ----------
    buffers : [byte]
        $M_n$, gradients of weights in the precision of arithmetic.
    gathered : [byte]
        $M_x$, whole weights of sharded layers.
    recomputed : [byte]
        $M_r$, activations of one layer that are computed again.
    layer : [byte]
        $M_b$, gradients of activations in a layer.
    head : [byte]
        $M_v$, logits and what surrounds them; 0 where the stage has no output table.

    Returns
    -------
    size : [byte]
        $M_t$, bytes.

    References
    ----------
    Counting.
    """
    return buffers + gathered + maximum(head, layer + recomputed)
