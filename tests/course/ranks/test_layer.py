"""A layer spread over ranks equals the layer of one device, and sends what the solver says."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsysim import (
    Q_,
    ConfigError,
    DistributedSolver,
    Fleet,
    Models,
    ParallelismError,
    Systems,
)
from mlsysim.core import formulas as f
from mlsysim_course.ranks import (
    Group,
    Replicated,
    SequenceSharded,
    TransformerLayer,
    random_weights,
)
from tests.course.ranks import reference
from tests.networks import NETWORKS

LAYOUTS = [
    pytest.param(Replicated, id="replicated"),
    pytest.param(SequenceSharded, id="sequence"),
    pytest.param(lambda group: SequenceSharded(group, regather=True), id="regather"),
]


def small_model(ranks=4, *, width=2, heads=1, shared=1, ffn=3, gated=False, causal=True):
    """A transformer whose every dimension the ranks divide."""
    return replace(
        Models.Llama3_8B,
        name="small",
        hidden_dim=5,
        heads=ranks * heads * shared,
        kv_heads=ranks * heads,
        head_dim=width,
        ffn_dim=ranks * ffn,
        gated_mlp=gated,
        causal=causal,
        parameters=None,
    )


def numbers(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


@pytest.mark.parametrize("make", LAYOUTS)
@settings(max_examples=25)
@given(
    st.sampled_from([1, 2, 3, 4]),
    st.integers(1, 3),
    st.integers(1, 2),
    st.builds(
        dict,
        width=st.integers(1, 3),
        heads=st.integers(1, 2),
        shared=st.integers(1, 3),
        ffn=st.integers(1, 3),
        gated=st.booleans(),
        causal=st.booleans(),
    ),
    st.booleans(),
)
def test_output_and_every_gradient(make, ranks, tokens, sequences, shape, biases):
    model = small_model(ranks, **shape)
    weights = random_weights(model, biases=biases)
    x = numbers(tokens * ranks, sequences, model.hidden_dim)
    over = numbers(*x.shape, seed=1)
    layout = make(Group(ranks))
    layer = TransformerLayer(model, layout, weights)

    found = layout.whole(layer.forward(layout.place(x)))
    np.testing.assert_allclose(found, reference.layer(model, x, weights), rtol=1e-10, atol=1e-10)

    # The loss is the sum of outputs times numbers, so that these numbers are its gradient.
    def loss(x=x, **changed):
        return (over * reference.layer(model, x, weights | changed)).sum()

    along = numbers(*x.shape, seed=2)
    back = layout.whole(layer.backward(layout.place(over)))
    slope = reference.slope(loss, x, along)
    assert (back * along).sum() == pytest.approx(slope, rel=1e-9, abs=1e-9)
    gradients = layer.gradients()
    assert set(gradients) == set(weights)
    for name, gradient in gradients.items():
        assert gradient.shape == weights[name].shape
        along = numbers(*gradient.shape, seed=2)
        slope = reference.slope(lambda w, name=name: loss(**{name: w}), weights[name], along)
        assert (gradient * along).sum() == pytest.approx(slope, rel=1e-9, abs=1e-9), name


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (Replicated, {"all_reduce": 4}),
        (SequenceSharded, {"all_gather": 4, "reduce_scatter": 4}),
        (
            lambda group: SequenceSharded(group, regather=True),
            {"all_gather": 6, "reduce_scatter": 4},
        ),
    ],
)
def test_collectives_of_a_layer(make, expected):
    model, group = small_model(), Group(4)
    layout = make(group)
    layer = TransformerLayer(model, layout, random_weights(model))
    layer.backward(layer.forward(layout.place(numbers(8, 2, 5))))
    names = {call.collective for call in group.calls}
    assert {name: group.count(name) for name in names} == expected
    assert {call.message_size for call in group.calls} == {8 * 2 * 5 * 8}
    gathers = expected.get("all_gather", 4) + expected.get("reduce_scatter", 4)
    assert group.sent() == gathers * 3 / 4 * 8 * 2 * 5 * 8


def test_what_a_step_adds_for_parameters_that_all_ranks_hold():
    model = small_model()
    for make, calls in ((Replicated, 0), (SequenceSharded, 6)):
        group = Group(4)
        layout = make(group)
        layer = TransformerLayer(model, layout, random_weights(model))
        layer.backward(layer.forward(layout.place(numbers(8, 2, 5))))
        group.calls.clear()
        layer.gradients()
        # Gain and shift of two norms, and the biases after two sums.
        assert group.count("all_reduce") == len(group.calls) == calls
        assert {call.message_size for call in group.calls} <= {model.hidden_dim * 8}


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
@pytest.mark.parametrize("sequence_parallel", [False, True])
def test_a_layer_sends_what_the_solver_charges(ranks, sequence_parallel):
    """Bytes and steps of the simulation, at the links' speed, are the solver's time."""
    model = small_model(8, gated=True)
    node = Systems.Nodes.DGX_H100
    r = DistributedSolver.solve(
        model=model,
        fleet=Fleet(
            name="one",
            node=node,
            count=1,
            fabric=Systems.Fabrics.InfiniBand_NDR,
            source=node.source,
        ),
        batch_size=2 * 8 // ranks,
        seq_len=16,
        tp_size=ranks,
        precision="fp32",
        efficiency=0.5,
        sequence_parallel=sequence_parallel,
    )
    group = Group(ranks)
    layout = SequenceSharded(group) if sequence_parallel else Replicated(group)
    weights = {name: w.astype("f4") for name, w in random_weights(model).items()}
    layer = TransformerLayer(model, layout, weights)
    x = numbers(16, 2, model.hidden_dim).astype("f4")
    assert layer.backward(layer.forward(layout.place(x)))[0].dtype == x.dtype
    links = node.scale_up
    counted = Q_(group.sent(), "byte") / links.bandwidth + group.steps() * links.latency
    expected = model.layers * counted.to("s").magnitude
    assert r.tp_communication_latency.to("s").magnitude == pytest.approx(expected)
    assert (expected > 0) == (ranks > 1)


def test_the_message_is_the_residual_stream():
    model, group = small_model(), Group(2)
    layer = TransformerLayer(model, Replicated(group), random_weights(model))
    layer.forward([numbers(6, 3, 5)] * 2)
    assert group.calls[0].message_size == f.hidden_state_size(6, 3, model.hidden_dim, 8)


def test_errors_name_the_limit_and_the_way_out():
    layout = Replicated(Group(4))
    model = small_model(4, shared=2)
    weights = random_weights(model)
    odd, few = (
        replace(model, heads=heads, kv_heads=2, parameters=None) for heads in (6, model.heads)
    )
    with pytest.raises(ParallelismError, match="4 ranks do not divide heads = 6 of small"):
        TransformerLayer(odd, layout, random_weights(odd))
    with pytest.raises(ParallelismError, match=r"do not divide kv_heads = 2 .* use a group size"):
        TransformerLayer(few, layout, random_weights(few))
    del weights["output"]
    weights["gate"] = weights["up"] = weights["down"]
    with pytest.raises(ConfigError, match="weights: gate, output, up missing, unknown or of"):
        TransformerLayer(model, layout, weights)


def test_one_layer_on_ranks_is_not_a_stack():
    with pytest.raises(ConfigError) as caught:
        random_weights(NETWORKS["gpt-oss-20b"])
    assert caught.value.argument == "model"
