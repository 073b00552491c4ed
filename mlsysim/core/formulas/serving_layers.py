"""Sums of operators: a layer of a serving pass, and all layers."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value

__all__ = [
    "layer_products_time",
    "layers_pass_time",
    "repeated_time",
    "serving_layer_time",
]


@formula
def layer_products_time(qkv: Value, projection: Value, feed_forward: Value) -> Value:
    r"""Time of a layer's matrix products in a forward pass.

    $$ t_w = t_q + t_o + t_f $$

    Parameters
    ----------
    qkv : [s]
        $t_q$, queries, keys and values.
    projection : [s]
        $t_o$, projection of the attention's output.
    feed_forward : [s]
        $t_f$, the feed-forward block.

    Returns
    -------
    time : [s]
        $t_w$, time of the products.

    References
    ----------
    Sum of parts that do not overlap.
    """
    return qkv + projection + feed_forward


@formula
def serving_layer_time(
    products: Value, attention: Value, elementwise: Value, all_reduces: Value, overhead: Value
) -> Value:
    r"""Time of one layer in an inference pass.

    $$ t_l = t_w + t_a + t_e + t_t + t_0 $$

    Parameters
    ----------
    products : [s]
        $t_w$, matrix products.
    attention : [s]
        $t_a$, attention: arithmetic in a prefill, keys and values read in a decode step.
    elementwise : [s]
        $t_e$, norms, residuals, rotations and activation functions.
    all_reduces : [s]
        $t_t$, tensor-parallel communication.
    overhead : [s]
        $t_0$, fixed time.

    Returns
    -------
    time : [s]
        $t_l$, time of the layer.

    References
    ----------
    Sum of parts that do not overlap.
    """
    return products + attention + elementwise + all_reduces + overhead


@formula
def layers_pass_time(layer: Value, layers: Value, head: Value) -> Value:
    r"""Time of a pass through all layers and the output projection.

    $$ t = L\,t_l + t_v $$

    Parameters
    ----------
    layer : [s]
        $t_l$, time of one layer.
    layers : [1]
        $L$, layers.
    head : [s]
        $t_v$, output projection.

    Returns
    -------
    time : [s]
        $t$, time of the pass.

    References
    ----------
    Sum of parts that do not overlap.
    """
    return layers * layer + head


@formula
def repeated_time(count: Value, time: Value) -> Value:
    r"""Time of equal pieces of work, one after the other.

    $$ t = n\,t_1 $$

    Parameters
    ----------
    count : [1]
        $n$, pieces.
    time : [s]
        $t_1$, time of one.

    Returns
    -------
    time : [s]
        $t$, time of all.

    References
    ----------
    Sum of parts that do not overlap.
    """
    return count * time
