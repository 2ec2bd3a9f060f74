"""TimeEmbedding, FiLM, AdaptiveNorm and Upsample: values, precision, what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn
from mlax_tutorial.inspection import dtypes
from tests.settings import configured

X, TIME = (jax.random.normal(jax.random.key(seed), shape) for seed, shape in ((0, (2, 3, 5, 4)), (1, (2, 6))))


@pytest.mark.parametrize("times", [np.arange(1000), np.linspace(0, 1, 7, dtype="float32"), np.int32(3)])
def test_a_time_embedding_against_numpy(times):
    y, _ = nn.TimeEmbedding(8, max_period=1e4).fwd(times, (), ())
    angles = np.float64(times)[..., None] * 1e4 ** -(np.arange(4) / 4)
    wanted = np.concatenate([np.sin(angles), np.cos(angles)], -1)
    np.testing.assert_allclose(y, wanted, atol=2e-4)
    assert y.dtype == "float32"


def test_integers_are_told_apart_whatever_the_dtype_of_the_result():
    y, _ = nn.TimeEmbedding(8, dtype=jnp.bfloat16).fwd(jnp.array([999, 1000]), (), ())
    wanted, _ = nn.TimeEmbedding(8).fwd(jnp.array([999, 1000]), (), ())
    np.testing.assert_array_equal(y, wanted.astype(jnp.bfloat16))


@pytest.mark.parametrize("condition", [TIME, TIME[0], TIME[:, None], TIME[:, None, None]])
def test_film_against_numpy(condition):
    """All places get what the leading axes of the condition say."""
    layer = nn.FiLM(kernel_initializer=jax.nn.initializers.normal(1.0))
    trainables, _ = layer.init(jax.random.key(2), X, condition=condition)
    trainables["bias"] = jnp.arange(8.0)
    y, _ = layer.fwd(X, trainables, (), condition=condition)
    wanted = []
    for number, x in enumerate(np.asarray(X, "float64")):
        one = np.asarray(condition if condition.ndim == 1 else condition[number].reshape(-1), "float64")
        shift, scale = np.split(one @ np.asarray(trainables["kernel"], "float64") + np.arange(8), 2)
        wanted.append(x * (1 + scale) + shift)
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("norm", [nn.LayerNorm(), nn.GroupNorm(2, axes=3), nn.BatchNorm()], ids=repr)
def test_an_adaptive_norm_begins_as_the_norm(norm):
    model = nn.AdaptiveNorm(norm)
    variables = model.init(jax.random.key(0), X, condition=TIME)
    y, after = model.fwd(X, *variables, condition=TIME)
    wanted, running = norm.fwd(X, *norm.init(jax.random.key(0), X))
    np.testing.assert_array_equal(y, wanted)
    jax.tree.map(np.testing.assert_array_equal, jax.tree.leaves(after), jax.tree.leaves(running))


def test_a_small_scale_counts_in_bfloat16():
    """1 + 0.0035 would be 1 in bfloat16."""
    x = jnp.full((1, 2), 300, jnp.bfloat16)
    trainables = {"kernel": jnp.zeros((1, 4)), "bias": jnp.array([0.0, 0.0, 0.0035, 0.0035])}
    y, _ = nn.FiLM().fwd(x, trainables, (), condition=jnp.ones((1, 1), jnp.bfloat16))
    assert y.dtype == jnp.bfloat16 and (y == 302).all()


@pytest.mark.parametrize("method", ["nearest", "linear", "cubic"])
def test_upsample_is_a_resize(method):
    y, _ = nn.Upsample((2, 3), method).fwd(X, (), ())
    np.testing.assert_allclose(y, jax.image.resize(X, (2, 6, 15, 4), method), rtol=1e-5, atol=1e-6)
    half, _ = nn.Upsample((2, 3), method).fwd(X.astype(jnp.bfloat16), (), ())
    assert half.dtype == jnp.bfloat16


@pytest.mark.parametrize("method", ["nearest", "linear", "cubic"])
def test_upsample_of_float32_is_float32_throughout_under_x64(method):
    with configured(jax_enable_x64=True):
        x = jnp.ones((3, 4, 2), jnp.float32)
        program = jax.make_jaxpr(lambda x: nn.Upsample((2, 3), method).fwd(x, (), ())[0])(x)
    assert program.out_avals[0].dtype == jnp.float32 and not dtypes.strays(program, "float32")


C = jnp.ones((3, 6))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: nn.TimeEmbedding(5), r"^TimeEmbedding: features must be even, half sines and half cosines, got 5"),
        (lambda: nn.TimeEmbedding(4).fwd(jnp.array(True), (), ()), r"^TimeEmbedding: x expects real numbers, got bool\[\]"),
        (lambda: nn.FiLM().init(jax.random.key(0), X, condition=C), r"^FiLM: condition expects leading axes \(2,\), got float32\[3,6\]: "),
        (lambda: nn.FiLM().init(jax.random.key(0), X, condition=jnp.ones(6, int)), r"^FiLM: condition expects floating-point numbers of at "),
        (
            lambda: nn.Series(nn.AdaptiveNorm(nn.LayerNorm())).init(jax.random.key(0), X[0, 0], condition=X),
            r"^model\[0\]\.film\.FiLM: condition expects floating-point numbers of at most 2 axes, as x has, got float32\[2,3,5,4\]",
        ),
        (lambda: nn.Upsample(2), r"^Upsample: factors must be a tuple with a size for each axis"),
        (lambda: nn.Upsample((2, 2)).fwd(X[0, 0], (), ()), r"^Upsample: x expects at least 3 axes, got float32\[5,4\]"),
        (lambda: nn.Upsample((2,), "area"), r"^Upsample: method must be one of 'nearest', 'linear', 'cubic', got 'area'"),
    ],
)  # fmt: skip
def test_what_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
