"""What a policy leaves alone: layers with a policy of their own, and inputs by name. And a part of a model under a policy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn
from mlax_tutorial.precision import Policy

QUICK_TO_COMPILE = True
X = jax.random.normal(jax.random.key(0), (3, 5, 4))
FULL, HALF = Policy("float32"), Policy("bfloat16")


class Seen(nn.Layer):
    """Gives back what it was given: the weights that it sees, as they are."""

    def init(self, key, x):
        return {"kernel": jax.random.normal(key, x.shape[-1:], "float32")}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        assert trainables["kernel"].dtype == x.dtype
        return jnp.broadcast_to(trainables["kernel"], x.shape), non_trainables


PLACES = {
    "Series": (lambda head: nn.Series(nn.Linear(4), head), lambda t: t[1]),
    "named": (lambda head: nn.Series(body=nn.Linear(4), head=head), lambda t: t["head"]),
    "deep": (lambda head: nn.Series(nn.Series(nn.Flatten(1), nn.Parallel(head))), lambda t: t[0][1][0]),
    "Remat": (lambda head: nn.Series(nn.Remat(nn.Series(nn.Linear(4), head))), lambda t: t[0][1]),
    "Stack": (lambda head: nn.Stack(nn.Residual(head), 2), lambda t: t["layer"]),
    "two policies": (lambda head: Policy("float16").apply(nn.Series(nn.Linear(4), head)), lambda t: t[1]),
}


@pytest.mark.parametrize("name", PLACES)
def test_an_exempt_layer_sees_its_weights_bit_for_bit(name):
    place, pick = PLACES[name]
    seen = []

    class Watched(Seen):
        def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
            jax.debug.callback(lambda kernel: seen.append(np.asarray(kernel)), trainables["kernel"])
            return super().fwd(x, trainables, non_trainables)

    model = HALF.apply(place(FULL.apply(Watched())))
    trainables, _ = model.init(jax.random.key(1), X)
    kernel = pick(trainables)["kernel"]
    assert kernel.dtype == "float32" and (kernel != kernel.astype("bfloat16").astype("float32")).any()
    model.fwd(X, trainables, ())
    jax.effects_barrier()
    assert all(kernel.dtype == "float32" for kernel in seen)
    np.testing.assert_array_equal(np.stack(seen[-2:]) if name == "Stack" else seen[-1], kernel)


def test_an_exempt_layer_computes_in_float32_and_gives_back_what_follows_expects():
    found = {}

    def note(name):
        return nn.F(lambda x: found.setdefault(name, x.dtype.name) and x)

    model = HALF.apply(
        nn.Series(note("before"), FULL.apply(nn.Series(note("inside"), nn.Linear(4))), note("after"))
    )
    trainables, _ = model.init(jax.random.key(1), X)
    y, _ = model.fwd(X, trainables, ())
    assert found == {"before": "bfloat16", "inside": "float32", "after": "bfloat16"} and y.dtype == "float32"
    gradients = jax.grad(lambda t: jnp.sum(model.fwd(X, t, ())[0]))(trainables)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(gradients)} == {"float32"}


def test_a_head_may_keep_its_float32_output():
    head = Policy("float32", output_dtype="float32").apply(nn.Linear(6))
    model = HALF.apply(nn.Series(nn.Linear(4), head))
    trainables, _ = model.init(jax.random.key(1), X)
    y, _ = model.fwd(X, trainables, ())
    assert (y != y.astype("bfloat16").astype("float32")).any()


class Timed(nn.Composite):
    layer: nn.Layer

    def forward(self, call, x, *, times, scale=None):
        assert (times.dtype, x.dtype) == ("float32", "bfloat16") and (
            scale is None or scale.dtype == "bfloat16"
        )
        return call.layer(x) + jnp.sin(times[..., None]).astype(x.dtype)


def test_an_exempt_input_stays_as_it_is():
    times = jnp.array([500.0, 501.0])
    assert times[0].astype("bfloat16") == times[1].astype("bfloat16")
    policy = Policy("bfloat16", exempt=("times",))
    model, x = policy.apply(nn.Series(Timed(nn.Linear(4)))), X[:2, 0]
    variables = model.init(jax.random.key(1), x, times=times)
    y, _ = model.fwd(x, *variables, times=times, scale=times)
    assert y.dtype == "float32" and not np.allclose(jnp.sin(times)[0], jnp.sin(times)[1])
    assert policy == Policy("bfloat16", exempt="times") != HALF and hash(policy) == hash(
        Policy("bfloat16", exempt=["times"])
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Policy("bfloat16", exempt=(1,)),
            r"^Policy: exempt must be names of inputs, a tuple of strings, got \(1,\)",
        ),
        (lambda: Policy("bfloat16", exempt=nn.Linear(3)), r"^Policy: exempt must be names of inputs"),
        (
            lambda: Policy("bfloat16", exempt="time").apply(Timed(nn.Linear(3))),
            r"^MixedPrecision: exempt names 'time', which the layer does not take",
        ),
    ],
)
def test_wrong_exemptions(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_part_of_a_model_under_a_policy():
    model = HALF.apply(nn.Series(nn.Linear(8), nn.F(jnp.tanh), nn.Linear(3)))
    trainables, _ = model.init(jax.random.key(1), X)
    hidden, _ = model[:2].fwd(X, trainables[:2], ())
    y, _ = model[2].fwd(hidden, trainables[2], ())
    np.testing.assert_array_equal(y, model.fwd(X, trainables, ())[0])
    assert model[2] == HALF.apply(nn.Linear(3))
    named = Policy("bfloat16", exempt="times").apply(nn.Series(body=Timed(nn.Linear(3)), head=nn.Linear(2)))
    assert named["head"] == HALF.apply(nn.Linear(2)) and named["body"].policy.exempt == ("times",)
    with pytest.raises(KeyError, match="has no layer 'tail'"):
        named["tail"]
