"""What a forward may do: draw numbers, call children inside transformations, have children from hyperparameters, be captured."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn, trees
from mlax_tutorial.precision import Policy

QUICK_TO_COMPILE = True
X = jax.random.normal(jax.random.key(0), (3, 5, 4))


def composite(forward, **attributes):
    """A Composite of one child, ``call.layer``, with this ``forward``."""
    body = {"__annotations__": {"layer": nn.Layer}, "forward": forward, **attributes}
    return type("Own", (nn.Composite,), body)


def run(model, x=X, **options):
    return model.fwd(x, *model.init(jax.random.key(1), x), **options)


def close(got, wanted):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), got, wanted)


INSIDE = {
    "vmap": lambda call, x: jax.vmap(call.layer)(x),
    "checkpoint": lambda call, x: jax.checkpoint(call.layer)(x),
    "jit": lambda call, x: jax.jit(call.layer)(x),
    "scan": lambda call, x: jax.lax.scan(lambda c, x: (c, call.layer(x)), None, x)[1],
    "cond": lambda call, x: jax.lax.cond(x.sum() > -1e9, call.layer, lambda x: x, x),
    "twice": lambda call, x: jax.vmap(call.layer)(call.layer(x)) - call.layer(call.layer(x)) + call.layer(x),
}


@pytest.mark.parametrize("name", INSIDE)
def test_a_call_inside_a_transformation_means_the_same(name):
    layer = nn.Series(nn.Linear(4), nn.F(jnp.tanh))
    model = composite(lambda self, call, x: INSIDE[name](call, x))(layer)
    trainables, _ = model.init(jax.random.key(1), X)

    def loss(fwd):
        return lambda t: jnp.sum(jnp.sin(fwd(t)))

    def plain(t):
        return layer.fwd(X, t["layer"], ())[0]

    def inside(t):
        return model.fwd(X, t, ())[0]

    close(inside(trainables), plain(trainables))
    close(jax.jit(jax.grad(loss(inside)))(trainables), jax.grad(loss(plain))(trainables))


def test_the_gradient_of_a_child_by_its_input():
    """As for a force field: the output is a derivative, and training differentiates once more."""

    def forward(self, call, x):
        return jax.grad(lambda x: jnp.sum(jnp.square(call.layer(x))))(x)

    model = composite(forward)(nn.Linear(3))
    (trainables, _), y = model.init(jax.random.key(1), X), run(model)[0]
    kernel = trainables["layer"]["kernel"]
    close(y, 2 * X @ kernel @ kernel.T)
    assert jax.grad(lambda t: jnp.sum(model.fwd(X, t, ())[0]))(trainables)["layer"]["kernel"].any()


REFUSED = {
    "draws": (
        nn.Series(nn.Linear(4), nn.Dropout(0.5)),
        r"call\.layer was used inside .* but it draws random numbers",
    ),
    "updates": (
        nn.Series(nn.BatchNorm()),
        r"call\.layer was used inside .* but it updates its non_trainables",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_lost_inside_a_transformation_is_refused(name):
    layer, message = REFUSED[name]
    model = composite(lambda self, call, x: jax.vmap(call.layer)(x))(layer)
    with pytest.raises(nn.LayerError, match=message):
        model.init(jax.random.key(1), X)
    outside = composite(lambda self, call, x: call.layer(x))(layer)
    trainables, non_trainables = outside.init(jax.random.key(1), X)
    with pytest.raises(nn.LayerError, match=message):
        model.fwd(X, trainables, non_trainables, key=jax.random.key(2))


def test_a_child_that_keeps_a_cache_does_not_decode_inside_a_transformation():
    model = composite(lambda self, call, x: jax.vmap(call.layer)(x), decodes=True)(
        nn.Recurrent(nn.GRUCell(4))
    )
    variables = model.init(jax.random.key(1), X)
    with pytest.raises(nn.LayerError, match="but it updates its cache"):
        model.decode(X[:, :1], *variables, model.init_cache(X[:, :1], 5))


class Sample(nn.Composite):
    """A latent with noise, as in a VAE."""

    mean: nn.Layer
    draws = True

    def forward(self, call, x):
        mean = call.mean(x)
        if call.inference_mode:
            return mean
        return mean + jax.random.normal(call.key(), mean.shape) + jax.random.normal(call.key(), mean.shape)


class Always(nn.Composite):
    mean: nn.Layer
    draws = "always"

    def forward(self, call, x):
        mean = call.mean(x)
        return mean + jax.random.normal(call.key(), mean.shape)


@pytest.mark.parametrize(
    "wrap",
    [lambda m: m, lambda m: nn.Series(nn.Dropout(0.5), m), nn.Remat, lambda m: nn.Stack(m, 2), Policy("float32").apply],
    ids=["alone", "Series", "Remat", "Stack", "Policy"],
)  # fmt: skip
def test_a_forward_draws_numbers_of_its_own(wrap):
    model, always = wrap(Sample(nn.Linear(4))), wrap(Always(nn.Linear(4)))
    assert model.needs_key is True and always.needs_key == "always" and not nn.Series(nn.Linear(3)).needs_key
    variables = model.init(jax.random.key(1), X)
    first, again, other = (model.fwd(X, *variables, key=jax.random.key(seed))[0] for seed in (1, 1, 2))
    close(first, again)
    assert not np.allclose(first, other)
    model.fwd(X, *variables, inference_mode=True)  # needs no key
    first, other = (always.fwd(X, *variables, key=jax.random.key(s), inference_mode=True)[0] for s in (1, 2))
    assert not np.allclose(first, other)
    key = jax.random.key(5)
    jax.jit(model.fwd)(X, *variables, key=key)
    with pytest.raises(jax.errors.KeyReuseError):
        jax.jit(lambda key: [model.fwd(X, *variables, key=key)[0] for _ in range(2)])(key)


@pytest.mark.parametrize("wrap", [lambda m: m, nn.Series, nn.Remat], ids=["alone", "Series", "Remat"])
def test_what_draws_in_inference_does_not_decode(wrap):
    """A decode has no key, and says so before anything is computed."""

    class Declared(Always):
        decodes = True

        def forward(self, call, x):
            return super().forward(call, x)

    message = r"Declared: does not decode: it draws random numbers in inference, and decode has no key"
    with pytest.raises(nn.LayerError, match=message):
        wrap(Declared(nn.Linear(4))).init_cache(X, 3)


WRONG_DRAWS = {
    "undeclared": (
        False,
        {"key": jax.random.key(1)},
        "^Own: draws random numbers, which its class does not declare: say draws",
    ),
    "in inference": (True, {"inference_mode": True}, '^Own: draws in inference, .* say draws = "always"'),
    "no key": (True, {}, "^Own: needs a key"),
    "no key in inference": ("always", {"inference_mode": True}, "^Own: needs a key"),
}


@pytest.mark.parametrize("name", WRONG_DRAWS)
def test_wrong_draws(name):
    draws, options, message = WRONG_DRAWS[name]
    model = composite(
        lambda self, call, x: x + jax.random.normal(call.key(), x.shape) + call.layer(x), draws=draws
    )(nn.F(jnp.sin))
    with pytest.raises(nn.LayerError, match=message):
        model.fwd(X, (), (), **options)


def test_a_key_is_drawn_outside_of_a_transformation():
    def forward(self, call, x):
        return jax.vmap(lambda x: x + jax.random.normal(call.key(), x.shape))(call.layer(x))

    with pytest.raises(nn.LayerError, match=r"^Own: call\.key\(\) was used inside another transformation"):
        composite(forward, draws=True)(nn.F(jnp.sin)).fwd(X, (), (), key=jax.random.key(1))


NORMALIZED = nn.Residual(nn.Series(nn.Linear(4), nn.BatchNorm(), nn.Dropout(0.5)))


@pytest.mark.parametrize("around", [lambda layer: layer, nn.Remat, nn.Inference, Policy("float32").apply, lambda layer: nn.Stack(layer, 2)], ids=["alone", "Remat", "Inference", "Policy", "Stack"])  # fmt: skip
@pytest.mark.parametrize("true", [True, np.True_])
def test_in_inference_a_child_with_statistics_may_be_called_inside_of_a_transformation(around, true):
    def forward(self, call, x):
        return jax.vmap(lambda x: call.layer(x, inference_mode=true))(x)

    model, layer = composite(forward)(around(NORMALIZED)), around(NORMALIZED)
    for outer in (lambda model: model, nn.Remat):
        variables = outer(model).init(jax.random.key(1), X)
        y, updated = jax.jit(outer(model).fwd)(X, *variables)
        wanted, _ = layer.fwd(X, *(role["layer"] for role in variables), inference_mode=True)
        np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-6)
        assert jax.tree.leaves(updated) and not trees.differences(variables[1], updated)
    plain = composite(lambda self, call, x: jax.vmap(call.layer)(x))(around(NORMALIZED))
    np.testing.assert_allclose(plain.fwd(X, *variables, inference_mode=True)[0], wanted, rtol=1e-5, atol=1e-6)
    with pytest.raises(nn.LayerError, match="call.layer was used inside another transformation .*, but it "):
        plain.fwd(X, *variables, key=jax.random.key(2))


def test_a_child_may_be_called_key():
    class Pair(nn.Composite):
        query: nn.Layer
        key: nn.Layer

        def forward(self, call, x):
            return call.query(x) @ call.key(x).mT

    assert run(Pair(nn.Linear(2), nn.Linear(2)))[0].shape == (3, 5, 5)


class Perceptron(nn.Composite):
    sizes: tuple[int, ...]
    last: nn.Layer = nn.Linear(1)

    def children(self):
        return {"hidden": tuple(nn.Linear(size) for size in self.sizes), "bias": nn.Bias()}

    def forward(self, call, x):
        for layer in call.hidden:
            x = jnp.tanh(layer(x))
        return call.bias(call.last(x))


def test_children_may_follow_from_hyperparameters():
    model = Perceptron((8, 3))
    assert model == Perceptron((8, 3)) != Perceptron((8, 2))
    trainables, _ = model.init(jax.random.key(1), X)
    assert jax.tree.map(jnp.shape, trainables) == {
        "last": {"kernel": (3, 1)},
        "hidden": ({"kernel": (4, 8)}, {"kernel": (8, 3)}),
        "bias": {"bias": (1,)},
    }
    assert dataclasses.replace(model, sizes=(2,)).fwd(
        X, *dataclasses.replace(model, sizes=(2,)).init(jax.random.key(1), X)
    )
    mixed = Policy("bfloat16").apply(model)
    trainables, _ = mixed.init(jax.random.key(1), X)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(trainables)} == {"float32"}
    kernel = trainables["hidden"][0]["kernel"]
    assert (kernel != kernel.astype("bfloat16").astype("float32")).any()  # drawn in float32


@pytest.mark.parametrize(
    ("children", "message"),
    [
        (lambda self: {"linear": 3}, r"linear must be a layer, got int 3"),
        (
            lambda self: {"linear": (nn.Linear(3), jnp.sin)},
            r"linear\[1\] must be a layer, got .*wrap a function in nn\.F",
        ),
        (lambda self: {"layer": nn.Linear(3)}, r"children returns 'layer', which is a field: rename it"),
    ],
)
def test_wrong_children(children, message):
    with pytest.raises(ValueError, match=f"^Own: {message}"):
        composite(lambda self, call, x: call.layer(x), children=children)(nn.Linear(3))


class Token(nn.Composite):
    """A class token in front; ``call.token()`` has the dtype of the weights."""

    token: nn.Layer

    def forward(self, call, x):
        assert call.token().dtype == call.token(x).dtype == x.dtype
        token = call.token(x)
        return jnp.concatenate([jnp.broadcast_to(token, (*x.shape[:-2], *token.shape)), x], axis=-2)


def test_weights():
    model = Token(nn.Weights((1, 4)))
    trainables, _ = model.init(jax.random.key(1), X)
    y, _ = model.fwd(X, trainables, ())
    token = trainables["token"]["weights"]
    assert y.shape == (3, 6, 4) and token.shape == (1, 4) and 0 < jnp.std(token) < 0.1
    close(y, jnp.concatenate([jnp.broadcast_to(token, (3, 1, 4)), X], 1))
    gradient = jax.grad(lambda t: jnp.sum(model.fwd(X, t, ())[0]))(trainables)
    close(gradient, {"token": {"weights": jnp.full((1, 4), 3.0)}})
    layer = nn.Weights(3, jax.nn.initializers.ones)
    assert layer == nn.Weights((3,), jax.nn.initializers.ones) and layer.init(jax.random.key(0))[0][
        "weights"
    ].tolist() == [1, 1, 1]
    assert layer.fwd(jnp.arange(2), {"weights": jnp.ones(3)}, ())[0].dtype == "float32"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Weights(0), r"^Weights: shape must be an integer of at least 1, got 0"),
        (lambda: nn.Weights((3,), 0.02), r"^Weights: initializer must be a function"),
        (
            lambda: nn.Weights(3).fwd(X, {"weights": jnp.ones(4)}, ()),
            r"^Weights: weights expects shape \(3,\)",
        ),
    ],
)
def test_wrong_weights(make, message):
    with pytest.raises(ValueError, match=message):
        make()


class Twice(nn.Composite):
    layers: tuple
    norm: nn.Layer

    def forward(self, call, x):
        for layer in (*call.layers, call.layers[0]):
            x = call.norm(layer(x))
        return x


def test_what_is_captured_has_the_paths_of_errors():
    block = nn.Residual(nn.Series(nn.Linear(4), nn.F(jnp.tanh)))
    model = nn.Series(
        body=Twice((nn.Linear(4), nn.Remat(block)), nn.BatchNorm()),
        stack=nn.Stack(block, 2),
        low=Policy("bfloat16").apply(nn.Series(nn.Linear(2), nn.BatchNorm())),
    )
    variables = model.init(jax.random.key(1), X)
    (y, updated), captured = jax.jit(nn.capture(model))(X, *variables)
    wanted = model.fwd(X, *variables)
    close((y, updated), wanted)
    assert jax.tree.structure(updated) == jax.tree.structure(wanted[1])
    assert set(captured) == {
        ".body", ".body.layers[0]", ".body.layers[1]", ".body.layers[1].layer", ".body.layers[1].layer[0]",
        ".body.layers[1].layer[1]", ".body.layers[0]#2", ".body.norm", ".body.norm#2", ".body.norm#3",
        ".stack", ".stack[…]", ".stack[…].layer", ".stack[…].layer[0]", ".stack[…].layer[1]", ".low", ".low[0]", ".low[1]",
    }  # fmt: skip
    assert captured[".stack[…].layer[0]"].shape == (2, *X.shape) and captured[".low[0]"].dtype == "bfloat16"
    close(captured[".low"], y)
    close(captured[".stack"], captured[".stack[…]"][-1])
    close(captured[".body.layers[0]"], X @ variables[0]["body"]["layers"][0]["kernel"])


def test_what_is_captured_has_gradients():
    model = nn.Series(nn.Linear(3), nn.F(jnp.tanh))
    trainables, _ = model.init(jax.random.key(1), X)

    def loss(t):
        (_, _), captured = nn.capture(model)(X, t, ())
        return jnp.sum(captured["[0]"])

    close(jax.grad(loss)(trainables)[0]["kernel"], jnp.broadcast_to(X.sum((0, 1))[:, None], (4, 3)))
    (y, _), captured = nn.capture(nn.Linear(3))(X, trainables[0], ())
    assert captured == {} and y.shape == (3, 5, 3)


def test_a_call_inside_a_transformation_is_not_captured():
    model = composite(lambda self, call, x: jax.vmap(call.layer)(x))(nn.Series(nn.Linear(3)))
    _, captured = nn.capture(model)(X, *model.init(jax.random.key(1), X))
    assert captured == {}


def test_a_series_may_be_replaced():
    model, named = nn.Series(nn.Linear(3), nn.Bias()), nn.Series(body=nn.Linear(3), head=nn.Linear(2))
    assert dataclasses.replace(model) == model and dataclasses.replace(named) == named
    assert dataclasses.replace(model, layers=(nn.Bias(),)) == nn.Series(nn.Bias())
    assert dataclasses.replace(named, names=("a", "b")) == nn.Series(a=nn.Linear(3), b=nn.Linear(2))
    assert nn.Series(layers=nn.Linear(3)).names == ("layers",)


def test_a_seq2seq_encodes_the_whole_and_decodes_steps():
    class Seq2Seq(nn.Composite):
        encoder: nn.Layer
        decoder: nn.Layer
        decodes = ("decoder",)

        def forward(self, call, x, *, source):
            return call.decoder(x) + call.encoder(source).mean(-2, keepdims=True)

    model, source = Seq2Seq(nn.Bidirectional(nn.GRUCell(2)), nn.Recurrent(nn.GRUCell(4))), X + 1
    variables = model.init(jax.random.key(1), X, source=source)
    cache, parts = model.init_cache(X[:, :1], 5, source=source), []
    for i in range(5):
        y, cache = model.decode(X[:, i : i + 1], *variables, cache, source=source)
        parts.append(y)
    close(jnp.concatenate(parts, 1), model.fwd(X, *variables, source=source)[0])
