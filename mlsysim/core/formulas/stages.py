"""Stages: layers and tables of the first and the last stage of a pipeline.

Models that mix dense layers with layers of experts have the dense ones first, as DeepSeek-V3 has.
"""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum, minimum

__all__ = [
    "dense_layers",
    "first_stage_moe_layers",
    "first_stage_output_tables",
    "first_stage_tables",
    "last_stage_in_flight",
    "last_stage_moe_layers",
]


@formula
def first_stage_moe_layers(stage_layers: Value, layers: Value, moe_layers: Value) -> Value:
    r"""Layers with experts in the first stage, when dense layers come first.

    $$ L_1 = \max(0,\; L_p - (L - L_x)) $$

    Parameters
    ----------
    stage_layers : [1]
        $L_p$, layers of the stage.
    layers : [1]
        $L$, layers of the model.
    moe_layers : [1]
        $L_x$, those that have experts.

    Returns
    -------
    layers : [1]
        $L_1$, layers with experts.

    References
    ----------
    Counting; DeepSeek-AI (2024), DeepSeek-V3 Technical Report, section 4.2 (the first three
    layers are dense), https://arxiv.org/abs/2412.19437
    """
    return maximum(0, stage_layers - (layers - moe_layers))


@formula
def first_stage_output_tables(pp_size: Value) -> Value:
    r"""Output tables of the first stage, which is the last one too where there is no pipeline.

    $$ n_v = \max(0,\; 2 - p) $$

    Parameters
    ----------
    pp_size : [1]
        $p$, pipeline stages.

    Returns
    -------
    tables : [1]
        $n_v$, 1 without a pipeline, else 0.

    References
    ----------
    Counting.
    """
    return maximum(0, 2 - pp_size)


@formula
def first_stage_tables(embedding_tables: Value, output_tables: Value) -> Value:
    r"""Embedding tables of the first stage.

    $$ n_1 = 1 + n_v\,(n_e - 1) $$

    Parameters
    ----------
    embedding_tables : [1]
        $n_e$, tables of the model: 1 if input and output share one, else 2.
    output_tables : [1]
        $n_v$, 1 if the stage has the output too, else 0.

    Returns
    -------
    tables : [1]
        $n_1$, tables of the stage.

    References
    ----------
    Counting.
    """
    return 1 + output_tables * (embedding_tables - 1)


@formula
def last_stage_moe_layers(stage_layers: Value, moe_layers: Value) -> Value:
    r"""Layers with experts in the last stage, when dense layers come first.

    $$ L_1 = \min(L_p,\; L_x) $$

    Parameters
    ----------
    stage_layers : [1]
        $L_p$, layers of the stage.
    moe_layers : [1]
        $L_x$, layers of the model that have experts.

    Returns
    -------
    layers : [1]
        $L_1$, layers with experts.

    References
    ----------
    Counting; DeepSeek-AI (2024), DeepSeek-V3 Technical Report, section 4.2 (the first three
    layers are dense), https://arxiv.org/abs/2412.19437
    """
    return minimum(stage_layers, moe_layers)


@formula
def dense_layers(stage_layers: Value, moe_layers: Value) -> Value:
    r"""Layers without experts.

    $$ L_d = L_p - L_1 $$

    Parameters
    ----------
    stage_layers : [1]
        $L_p$, layers of the stage.
    moe_layers : [1]
        $L_1$, those that have experts.

    Returns
    -------
    layers : [1]
        $L_d$, dense layers.

    References
    ----------
    Counting.
    """
    return stage_layers - moe_layers


@formula
def last_stage_in_flight(pp_size: Value, virtual_stages: Value, microbatch_count: Value) -> Value:
    r"""Microbatches whose activations the last stage holds at once, in parts of its layers.

    The last stage runs each microbatch back as soon as it has come. When schedules are
    interleaved it holds all chunks but its last for a whole round.

    $$ k = \min\left(m,\; \frac{(v - 1)\,p + 1}{v}\right) $$

    Parameters
    ----------
    pp_size : [1]
        $p$, pipeline stages.
    virtual_stages : [1]
        $v$, model chunks per stage.
    microbatch_count : [1]
        $m$, microbatches per step.

    Returns
    -------
    microbatches : [1]
        $k$, microbatches in flight.

    References
    ----------
    Narayanan et al. (2021), Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM, section 2.2 and Figure 4, https://arxiv.org/abs/2104.04473
    """
    return minimum(microbatch_count, ((virtual_stages - 1) * pp_size + 1) / virtual_stages)
