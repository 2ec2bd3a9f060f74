"""``Series``: work that does not grow with depth, keys, further inputs, indexing."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn
from mlax_tutorial.inspection import jaxprs
from mlax_tutorial.nn import composite


class Counting(nn.Layer):
    """Notes each call of init and fwd, with a name to tell the leaves apart."""

    name: str
    log: list = None

    calls = []

    def init(self, key, x):
        self.calls.append((self.name, "init"))
        return {"w": jax.random.normal(key, x.shape[-1:], x.dtype)}, {"seen": jnp.zeros((), x.dtype)}

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        self.calls.append((self.name, "fwd"))
        return x, {"seen": non_trainables["seen"] + 1}


class Masked(nn.Layer):
    def fwd(self, x, trainables, non_trainables, *, mask, key=None, inference_mode=False):
        return jnp.where(mask, x, jnp.zeros_like(x)), non_trainables


@pytest.mark.parametrize("depth", [0, 1, 8, 64])
def test_each_leaf_is_initialized_twice_and_run_once_at_any_depth(depth):
    model = nn.Series(Counting("a"), Counting("b"))
    for _ in range(depth):
        model = nn.Series(model)
    Counting.calls.clear()
    model.init(jax.random.key(0), jnp.ones(3))
    assert sorted(Counting.calls) == sorted([("a", "init"), ("b", "init")] * 2 + [("a", "fwd"), ("b", "fwd")])


def test_equal_layers_do_not_merge():
    layer = nn.Linear(4)
    model = nn.Series(layer, layer, nn.Series(layer))
    trainables, _ = model.init(jax.random.key(0), jnp.ones(4))
    kernels = [trainables[0]["kernel"], trainables[1]["kernel"], trainables[2][0]["kernel"]]
    assert not any(np.array_equal(kernels[i], kernels[j]) for i in range(3) for j in range(i))


def test_initial_variance_is_that_of_the_initializer():
    trainables, _ = nn.Series(nn.Linear(400), nn.Linear(300)).init(jax.random.key(0), jnp.ones(1000))
    np.testing.assert_allclose(jnp.var(trainables[0]["kernel"]) * 1000, 1, rtol=0.02)
    np.testing.assert_allclose(jnp.var(trainables[1]["kernel"]) * 400, 1, rtol=0.02)


def test_empty_children_make_an_empty_whole():
    model = nn.Series(nn.F(jnp.tanh), nn.Series(nn.Flatten(1), nn.F(jnp.sin)))
    assert model.init(jax.random.key(0), jnp.ones(3)) == ((), ())
    y, state = model.fwd(jnp.ones(3), (), ())
    assert state == () and y.shape == (3,)
    # Long-hand empties are accepted, too, and come back collapsed.
    assert model.fwd(jnp.ones(3), ((), ((), ())), ((), ()))[1] == ()


def test_non_trainables_are_threaded():
    model = nn.Series(nn.Linear(3), Counting("c"), nn.Series(Counting("d")))
    x = jnp.ones((2, 4))
    trainables, state = model.init(jax.random.key(0), x)
    for _ in range(3):
        _, state = jax.jit(model.fwd)(x, trainables, state)
    assert jax.tree.map(float, state) == ((), {"seen": 3.0}, ({"seen": 3.0},))


def test_key_paths_name_every_leaf():
    model = nn.Series(nn.Flatten(2), nn.Linear(3), nn.Bias(), nn.Series(nn.Linear(2)))
    trainables, _ = model.init(jax.random.key(0), jnp.ones((4, 4)))
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(trainables)]
    assert paths == ["[1]['kernel']", "[2]['bias']", "[3][0]['kernel']"]


def test_children_get_different_keys():
    model = nn.Series(nn.Dropout(0.5), nn.Dropout(0.5))
    y, _ = model.fwd(jnp.ones(4000), (), (), key=jax.random.key(0))
    # Two independent masks keep a quarter; one mask used twice would keep a half.
    assert 0.22 < float(jnp.mean(y != 0)) < 0.28


def test_the_bool_of_numpy_is_a_bool():
    model, x = nn.Series(nn.Dropout(0.5), nn.F(jnp.sin, jnp.cos)), jnp.zeros(8)
    np.testing.assert_array_equal(model.fwd(x, (), (), inference_mode=np.True_)[0], jnp.ones(8))


def test_keys_go_only_where_they_are_needed():
    class Watching(nn.Layer):
        needs_key: bool
        seen = []

        def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
            self.seen.append((self.needs_key, key is not None))
            return x, non_trainables

    model = nn.Series(Watching(True), nn.Series(Watching(False)), Watching(True))
    model.init(jax.random.key(0), jnp.ones(3))
    model.fwd(jnp.ones(3), (), (), key=jax.random.key(0))
    assert Watching.seen == [(True, True), (False, False), (True, True)] * 2


def test_no_key_is_split_where_none_is_needed():
    model = nn.Series(nn.F(jnp.tanh), nn.Series(nn.Dropout(0.0)))
    assert not model.needs_key
    jaxpr = jax.make_jaxpr(lambda x, key: model.fwd(x, (), (), key=key)[0])(jnp.ones(3), jax.random.key(0))
    assert [equation.primitive.name for equation in jaxpr.eqns] == ["tanh"]
    model = nn.Series(nn.Dropout(0.5))
    inference = jax.make_jaxpr(lambda x, key: model.fwd(x, (), (), key=key, inference_mode=True)[0])
    assert not inference(jnp.ones(3), jax.random.key(0)).eqns


def splits(model, x):
    """How often a training pass splits its key."""
    trainables, non_trainables = model.init(jax.random.key(0), x)
    counts = jaxprs.count(lambda key: model.fwd(x, trainables, non_trainables, key=key)[0], jax.random.key(1))
    return counts["random_split"]


def test_a_key_is_split_only_among_several_layers_that_need_one():
    x, drop = jnp.ones((2, 4)), nn.Dropout(0.5)
    body = nn.Series(nn.Linear(4), drop)
    assert splits(nn.Series(nn.Residual(body), nn.Bias()), x) == 0
    assert splits(nn.Parallel(body, nn.Linear(3)), x) == 0
    assert splits(nn.Series(body, nn.Residual(body)), x) == 1
    assert splits(nn.Series(nn.Residual(body, shortcut=drop), drop), x) == 2
    np.testing.assert_array_equal(
        nn.Series(drop).fwd(x, (), (), key=jax.random.key(2))[0],
        drop.fwd(x, (), (), key=jax.random.key(2))[0],
    )


def test_a_series_whose_own_forward_repeats_a_layer_gives_it_a_new_key():
    class Repeated(nn.Series):
        def forward(self, call, x, **inputs):
            return call[0](x), call[0](x)

    one, two = Repeated(nn.Dropout(0.5)).fwd(jnp.ones(64), (), (), key=jax.random.key(0))[0]
    assert not np.array_equal(one, two)


def test_further_inputs_reach_the_layers_that_take_them():
    model = nn.Series(nn.Linear(3), nn.Series(Masked(), nn.F(jnp.tanh)), Masked())
    assert model.inputs == {"mask"}
    x, mask = jnp.ones((2, 4)), jnp.array([[True, False, True]] * 2)
    trainables, state = model.init(jax.random.key(0), x, mask=mask)
    y, _ = jax.jit(model.fwd)(x, trainables, state, mask=mask)
    assert (y[:, 1] == 0).all() and (y[:, 0] != 0).all()
    with pytest.raises(TypeError, match="mask") as caught:
        model.fwd(x, trainables, state)
    assert "This was raised in model[1][0].Masked." in caught.value.__notes__


def test_any_name_will_do():
    names = "self", "layers", "names", "takes", "inference_mode", "forward"
    model = nn.Series(**{name: nn.Bias() for name in names})
    trainables, _ = model.init(jax.random.key(0), jnp.ones(3))
    assert tuple(trainables) == names
    model.fwd(jnp.ones(3), trainables, ())


def test_what_children_take_is_found_once(monkeypatch):
    """Signatures are slow to read: in a deep model that was a tenth of the time to trace it."""
    model, x = nn.Residual(nn.Series(nn.MultiHeadAttention(2))), jnp.ones((3, 4))
    trainables, _ = model.init(jax.random.key(0), x)
    monkeypatch.setattr(composite, "inspect", None)
    model.fwd(x, trainables, (), mask=jnp.ones((3, 3), bool))


def test_indexing_and_slicing():
    model = nn.Series(nn.Flatten(2), nn.Linear(3), nn.Bias())
    assert (
        model[1] == nn.Linear(3)
        and len(model) == 3
        and list(model) == [nn.Flatten(2), nn.Linear(3), nn.Bias()]
    )
    assert model[:2] == nn.Series(nn.Flatten(2), nn.Linear(3)) and model[-1] == nn.Bias()
    trainables, state = model.init(jax.random.key(0), jnp.ones((2, 4, 4)))
    hidden, _ = model[:2].fwd(jnp.ones((2, 4, 4)), trainables[:2], ())
    assert hidden.shape == (2, 3)
    assert repr(model) == "Series(Flatten(2), Linear(3), Bias())"


def test_inputs_that_a_class_names_hold_for_those_derived_from_it():
    class Names(nn.Layer):
        inputs = frozenset({"mask"})

        def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False, **inputs):
            return jnp.where(inputs["mask"], x, jnp.zeros_like(x)), non_trainables

    class Derived(Names):
        pass

    class Others(Masked):
        def fwd(self, x, trainables, non_trainables, *, scale, key=None, inference_mode=False):
            return scale * x, non_trainables

    assert Names.inputs == Derived.inputs == Masked.inputs == {"mask"} and Others.inputs == {"scale"}
    assert nn.Series(Derived()).fwd(jnp.ones(2), (), (), mask=jnp.zeros(2, bool))[0].tolist() == [0, 0]


def test_inputs_that_a_class_writes_hold_for_those_derived_from_it():
    """They used to be found anew where a derived class wrote fwd, and the mask was not passed."""

    class Masked(nn.Layer):
        inputs = frozenset({"mask"})

        def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False, **inputs):
            return x * inputs.get("mask", 1), non_trainables

    class Twice(Masked):
        def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False, **inputs):
            return 2 * x * inputs.get("mask", 1), non_trainables

    class Plain(nn.Layer):
        def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False, mask=None):
            return x, non_trainables

    class Scaled(Plain):
        def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False, scale=None):
            return x, non_trainables

    assert Twice.inputs == {"mask"} and Plain.inputs == {"mask"} and Scaled.inputs == {"scale"}
    assert not nn.Series(Twice(), Plain()).fwd(jnp.ones(2), (), (), mask=jnp.zeros(2))[0].any()


SEQUENCE = np.random.default_rng(0).normal(size=(2, 6, 4))
BARE = [
    nn.Linear(3),
    nn.Bias(),
    nn.Scale(),
    nn.Conv(3, (2,)),
    nn.ConvTranspose(3, (2,)),
    nn.MultiHeadAttention(2),
    nn.Recurrent(nn.LSTMCell(3)),
    nn.BatchNorm(affine=True),
    nn.Residual(nn.Linear(4)),
    nn.Bidirectional(nn.GRUCell(3)),
]


@pytest.mark.parametrize("layer", BARE, ids=lambda layer: type(layer).__name__)
def test_numpys_float64_is_float32(layer):
    """What np.random gives, to a layer alone, outside of jit."""
    assert SEQUENCE.dtype == np.float64
    variables = layer.init(jax.random.key(0), SEQUENCE)
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(variables)} == {"float32"}
    y, _ = layer.fwd(SEQUENCE, *variables, inference_mode=True)
    assert y.dtype == jnp.float32
    np.testing.assert_allclose(
        y, layer.fwd(jnp.asarray(SEQUENCE), *variables, inference_mode=True)[0], rtol=1e-5, atol=1e-6
    )


def test_numpys_float64_beside_arrays_of_jax():
    layer, context = nn.MultiHeadAttention(2), jnp.ones((2, 3, 4))
    variables = layer.init(jax.random.key(0), SEQUENCE, context=context)
    assert layer.fwd(SEQUENCE, *variables, context=context)[0].dtype == jnp.float32


def test_names_for_some_layers_only():
    with pytest.raises(ValueError, match="^Series: name all layers or none, got 1 without a name"):
        nn.Series(nn.Linear(3), head=nn.Linear(2))


@pytest.mark.parametrize("like", [{"shape": (2, 4)}, {"dtype": np.dtype("float32")}], ids=["shape", "dtype"])
def test_what_is_half_an_array(like):
    with pytest.raises(nn.LayerError, match=r"^Series: x expects an array, got SimpleNamespace namespace"):
        nn.Series(nn.Linear(3)).init(jax.random.key(0), types.SimpleNamespace(**like))
