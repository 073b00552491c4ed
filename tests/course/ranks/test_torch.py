"""The layer against PyTorch's operators and derivatives, where there is a PyTorch."""

from dataclasses import replace

import numpy as np
import pytest

from mlsysim import Models
from mlsysim_course.ranks import Group, SequenceSharded, TransformerLayer, random_weights

torch = pytest.importorskip("torch", reason="compares with PyTorch, which mlsysim does not need")


def torch_layer(model, x, w):
    from torch.nn import functional

    def heads(tensor):
        return tensor.unflatten(-1, (-1, model.head_dim)).permute(1, 2, 0, 3)

    def norm(tensor, block):
        return functional.layer_norm(
            tensor, tensor.shape[-1:], w[f"{block}_gain"], w[f"{block}_shift"]
        )

    queries, keys = model.heads * model.head_dim, model.kv_heads * model.head_dim
    qkv = norm(x, "attention") @ w["qkv"] + w["qkv_bias"]
    q, k, v = (heads(part) for part in qkv.split([queries, keys, keys], -1))
    read = functional.scaled_dot_product_attention(q, k, v, is_causal=model.causal, enable_gqa=True)
    x = x + read.permute(2, 0, 1, 3).flatten(2) @ w["output"] + w["output_bias"]
    inner = norm(x, "feed_forward") @ w["up"] + w["up_bias"]
    if model.gated_mlp:
        gate, up = inner.chunk(2, -1)
        inner = functional.silu(gate) * up
    else:
        inner = functional.gelu(inner, approximate="tanh")
    return x + inner @ w["down"] + w["down_bias"]


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_the_layer_is_that_of_pytorch(gated, causal):
    model = replace(
        Models.Llama3_8B,
        hidden_dim=16,
        heads=8,
        kv_heads=4,
        head_dim=4,
        ffn_dim=24,
        gated_mlp=gated,
        causal=causal,
        parameters=None,
    )
    weights = random_weights(model)
    random = np.random.default_rng(1)
    x, over = random.standard_normal((2, 8, 3, 16))
    whole = {name: torch.tensor(w, requires_grad=True) for name, w in weights.items()}
    stream = torch.tensor(x, requires_grad=True)
    expected = torch_layer(model, stream, whole)
    expected.backward(torch.tensor(over))

    layout = SequenceSharded(Group(4))
    layer = TransformerLayer(model, layout, weights)
    same = {"rtol": 1e-10, "atol": 1e-10}
    y = layout.whole(layer.forward(layout.place(x)))
    np.testing.assert_allclose(y, expected.detach().numpy(), **same)
    back = layout.whole(layer.backward(layout.place(over)))
    np.testing.assert_allclose(back, stream.grad.numpy(), **same)
    for name, gradient in layer.gradients().items():
        np.testing.assert_allclose(gradient, whole[name].grad.numpy(), **same, err_msg=name)
