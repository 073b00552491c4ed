"""Parameters of one device of a pipeline stage: layers, experts and embedding tables."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum

__all__ = [
    "layer_stack_parameters",
    "parameters_held",
    "stage_parameters",
    "table_parameters",
]


@formula
def layer_stack_parameters(
    layers: Value,
    moe_layers: Value,
    attention: Value,
    dense: Value,
    shared: Value,
    experts: Value,
) -> Value:
    r"""Parameters of all layers, from the shapes of their matrices.

    $$ N_l = L\,N_a + (L - L_x)\,N_f + L_x\,N_s + N_x $$

    Parameters
    ----------
    layers : [1]
        $L$, layers.
    moe_layers : [1]
        $L_x$, layers that have experts.
    attention : [param]
        $N_a$, matrices of attention.
    dense : [param]
        $N_f$, matrices of a dense feed-forward block.
    shared : [param]
        $N_s$, what every token visits beside its experts.
    experts : [param]
        $N_x$, all experts.

    Returns
    -------
    parameters : [param]
        $N_l$, parameters.

    References
    ----------
    Counting.
    """
    return layers * attention + (layers - moe_layers) * dense + moe_layers * shared + experts


@formula
def table_parameters(parameters: Value, stack: Value, embedding_tables: Value) -> Value:
    r"""Parameters outside the layers, per embedding table.

    $$ N_t = \frac{\max(0,\; N - N_l)}{n_e} $$

    Parameters
    ----------
    parameters : [param]
        $N$, parameters of the model.
    stack : [param]
        $N_l$, those of its layers.
    embedding_tables : [1]
        $n_e$, tables: 1 if input and output share one, else 2.

    Returns
    -------
    parameters : [param]
        $N_t$, parameters that the first stage holds beside its layers, and the last one too.

    References
    ----------
    Shoeybi et al. (2019), Megatron-LM, section 3 (embedding on input and output),
    https://arxiv.org/abs/1909.08053
    """
    return maximum(0 * parameters, parameters - stack) / embedding_tables


@formula
def stage_parameters(
    parameters: Value,
    expert_parameters: Value,
    table: Value,
    embedding_tables: Value,
    held_tables: Value,
    pp_size: Value,
    tp_size: Value,
    imbalance: Value,
) -> Value:
    r"""Parameters that one device of a stage holds, experts apart.

    $$ N_s = \frac{1}{t}\left(\frac{\iota\,(N - N_x - n_e\,N_t)}{p} + n_1\,N_t\right) $$

    Parameters
    ----------
    parameters : [param]
        $N$, parameters of the model.
    expert_parameters : [param]
        $N_x$, those of its experts.
    table : [param]
        $N_t$, those of one embedding table.
    embedding_tables : [1]
        $n_e$, tables of the model.
    held_tables : [1]
        $n_1$, tables of the stage.
    pp_size : [1]
        $p$, pipeline stages.
    tp_size : [1]
        $t$, devices that share each layer.
    imbalance : [1]
        $\iota$, layers of the longest stage over the mean.

    Returns
    -------
    parameters : [param]
        $N_s$, parameters on one device.

    References
    ----------
    Narayanan et al. (2021), Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM, section 3.2, https://arxiv.org/abs/2104.04473
    """
    layers = parameters - expert_parameters - embedding_tables * table
    return (imbalance * layers / pp_size + held_tables * table) / tp_size


@formula
def parameters_held(dense: Value, expert: Value) -> Value:
    r"""Parameters of which a device holds something, with its experts.

    $$ N_d = N_s + N_x $$

    Parameters
    ----------
    dense : [param]
        $N_s$, parameters apart from experts.
    expert : [param]
        $N_x$, parameters of experts.

    Returns
    -------
    parameters : [param]
        $N_d$, parameters.

    References
    ----------
    Counting.
    """
    return dense + expert
