"""A normalization that keeps the dtype of its input."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks, laws
from mlax_tutorial.exercises.precision._dtypes import program, rounded_on_the_way, squares_in_half


class RMSNorm(nn.Layer):
    def init(self, key, x):
        return {"scale": jnp.ones(x.shape[-1], x.dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        wide = jnp.promote_types(x.dtype, jnp.float32)
        mean = jnp.mean(jnp.square(x.astype(wide)), axis=-1, keepdims=True)
        y = x * jax.lax.rsqrt(mean + 1e-6).astype(x.dtype)
        return y * trainables["scale"].astype(x.dtype), non_trainables


ACCUMULATES = laws.STATISTICS | {"select_n"}  # which `jnp.var` and derivatives of `jnp.maximum` hold


def check(RMSNorm):
    made = checks.make(RMSNorm)
    for width in (4, 6):
        layer, x = _ordinary(made, width)
    layer, x = laws.LayerSubject(made, (4,), accumulates=ACCUMULATES), x[:, :4]
    _small(layer, x.shape)
    checks.obeys_laws(made, x, accumulates=ACCUMULATES)
    _large(layer, x.shape)
    _half(layer, x.shape)


def _ordinary(made, width):
    layer = laws.LayerSubject(made, (width,), accumulates=ACCUMULATES)
    draw = np.random.default_rng(0)
    x = jax.device_put(draw.normal(size=(2, width)).astype(np.float32))
    trainables, non_trainables = layer.init(jax.random.key(0), x)
    if not isinstance(trainables, dict) or set(trainables) != {"scale"}:
        raise Failed(
            '`init` should make one trainable, `{"scale": …}`, and no non_trainables.', got=trainables
        )
    if not np.array_equal(np.asarray(trainables["scale"], np.float32), np.ones(width)):
        raise Failed("The scale should begin as ones, one for each feature.", got=trainables["scale"])
    scale = jax.device_put(np.array([1.0, 2.0, -1.0, 0.5, 3.0, -0.2][:width], np.float32))
    y, _ = layer.fwd(x, {"scale": scale}, non_trainables)
    wide = np.asarray(x, np.float64)
    expected = wide / np.sqrt(np.mean(wide**2, axis=-1, keepdims=True) + 1e-6) * np.asarray(scale)
    shown = {"input": {"x": x, "scale": scale}}
    checks.same(jnp.asarray(y, jnp.float32), jax.device_put(expected.astype(np.float32)), **shown)
    return layer, x


def _half(layer, shape):
    """What a row of half precision goes through: nothing is squared in it, and nothing is rounded to it on the way."""
    for dtype in (jnp.bfloat16, jnp.float16):
        x = jax.ShapeDtypeStruct(shape, dtype)
        scale = jax.ShapeDtypeStruct(shape[-1:], dtype)
        jaxpr = program(lambda x, scale: layer.fwd(x, {"scale": scale}, ())[0], x, scale)
        if squares_in_half(jaxpr):
            raise Failed(
                f"The squares of a row of {dtype.__name__} are computed in {dtype.__name__}: convert x to float32 before you square it."
            )
        if rounded_on_the_way(jaxpr):
            raise Failed(
                f"For a row of {dtype.__name__}, something on the way to the root is rounded to {dtype.__name__} and then widened again: "
                "the mean of the squares should stay in float32 until the inverse root is there."
            )


def _small(layer, shape):
    """Where the epsilon matters: a row of zeros, and one whose mean square is 1e-6 as well."""
    small, ones = np.zeros(shape, np.float32), np.ones(shape[-1], np.float32)
    small[1] = 1e-3
    x, trainables = jax.device_put((small, {"scale": ones}))
    got = np.asarray(layer.fwd(x, trainables, ())[0], np.float32)
    expected = np.zeros(shape, np.float32)
    expected[1] = 0.5**0.5
    shown = {"input": {"x": x}, "expected": expected, "got": got}
    if np.isnan(got[0]).any():
        raise Failed("A row of zeros gives NaN. Add the 1e-6 to the mean, under the root.", **shown)
    if not np.allclose(got, expected, rtol=0.01):
        raise Failed("A small row comes out wrong. The 1e-6 is added to the mean, under the root.", **shown)


def _large(layer, shape):
    ones = np.ones(shape, np.float16)
    x, scale = jax.device_put((300 * ones, ones[0]))
    y, _ = layer.fwd(x, {"scale": scale}, ())
    if not np.allclose(np.asarray(y, np.float32), 1, atol=0.01):
        raise Failed(
            "The square of 300 is infinite in float16, and so is the mean of such squares: this row comes out wrong. Convert x before "
            "you square it, and only the inverse root back. (The accumulator of `jnp.mean` comes too late.)",
            input={"x": x},
            expected=ones,
            got=y,
        )


exercise = Exercise(
    title="A normalization that keeps the dtype",
    stars=2,
    minutes=15,
    why="This layer can stand in a network of any dtype: it widens where a sum needs it, and nowhere else.",
    hints=(
        "Where does a float32 enter? There are three places: what `init` makes, the constant, and the weights that `fwd` gets, "
        "which may be wider than x.",
        "`jnp.ones(shape, x.dtype)` in init, `.astype(x.dtype)` for the scale in fwd, and a Python number for the constant.",
        "Convert x to `jnp.promote_types(x.dtype, jnp.float32)` before you square it, and convert the inverse root back to "
        "`x.dtype` before it meets x.",
    ),
    solution=RMSNorm,
    check=check,
)
