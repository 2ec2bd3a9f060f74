"""A kernel as lengths times directions."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.layers._layers import compare, drawn, outlines, subject, variables
from mlax_tutorial.exercises.normalization._compare import COSTLY, WIDE, close


def _length(direction):
    wide = direction.astype(jnp.promote_types(direction.dtype, jnp.float32))
    return jnp.sqrt(jnp.sum(wide**2, axis=0))


class WeightNormLinear(nn.Layer):
    out_features: int

    def init(self, key, x):
        shape = (x.shape[-1], self.out_features)
        direction = jax.nn.initializers.lecun_normal()(key, shape, x.dtype)
        return {"direction": direction, "length": _length(direction).astype(x.dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        direction, length = trainables["direction"], trainables["length"]
        factor = length.astype(jnp.promote_types(length.dtype, jnp.float32)) / _length(direction)
        kernel = (direction * factor).astype(x.dtype)
        return x @ kernel, non_trainables


X = np.array([[1.0, -2.0, 0.5, 0.0], [-0.25, 3.0, -1.0, 2.0]], np.float32)


def check(WeightNormLinear):
    layer = checks.make(WeightNormLinear, 3)
    variables(layer, X, {"direction": (4, 3), "length": (3,)}, made=outlines(layer, X))
    wide, many = checks.make(WeightNormLinear, 50), np.zeros((1, 64), np.float32)
    trainables, _ = variables(wide, many, {"direction": (64, 50), "length": (50,)})
    v = np.asarray(trainables["direction"], np.float64)
    columns = np.sqrt(np.sum(v**2, 0))
    if np.all(v == 0):
        raise Failed("The directions are zero, and zero has no direction: draw them.", got=v)
    if not close(trainables["length"], columns):
        ones = np.all(np.asarray(trainables["length"]) == 1)
        raise Failed(
            ("The lengths begin as ones: they" if ones else "The lengths")
            + " should begin as those of the columns of `direction`, so that at first the kernel is `direction` itself.",
            expected=columns.astype(np.float32),
            got=trainables["length"],
        )
    v = np.sin(np.arange(12.0)).reshape(4, 3) * 3
    g = np.array([2.0, 0.5, -1.0])
    rows, columns = (np.sqrt(np.sum(v**2, axis, keepdims=True)) for axis in (1, 0))
    recognise = [
        (X @ (g * v), "The directions are not divided by their lengths."),
        (X @ v, "The kernel is `direction` as it is: divide each column by its length, and multiply by `length`."),
        (X @ (v / columns), "The lengths that are learned are missing: multiply each column by its own."),
        (X @ (g * v / rows), "Each row is divided by its length. The weights that flow into one output are a column: sum over axis 0."),
        (X @ (g * v / np.sqrt(np.sum(v**2))), "The kernel is divided by the length of all of it: each column has a length of its own."),
        (X @ (g * v / columns**2), "The directions are divided by the square of their lengths: take the square root."),
    ]  # fmt: skip
    compare(layer, X, {"direction": v, "length": g}, (), X @ (g * v / columns), recognise)
    v, g = v.astype(np.float32), g.astype(np.float32)
    _directions(subject(layer), v, g)
    drawn(trainables["direction"], 'trainables["direction"]', 1 / 8, "draw it with lecun_normal")
    checks.obeys_laws(wide, many, accumulates=WIDE, but=COSTLY | {"keys used once", "a reused key is caught"})


def _directions(layer, v, g):
    """The output does not depend on the length of a direction, in any dtype, so its gradient stands at right angles to it."""
    for dtype, scale, said in [
        (jnp.float32, 1e-3, "With directions a thousand times as short the output is another one: only their direction counts, so add nothing to their length."),
        (jnp.float16, 1e2, "In float16 the squares of a few hundred are infinite: compute the lengths in float32 at least."),
    ]:  # fmt: skip
        given = X.astype(dtype), {"direction": (v * scale).astype(dtype), "length": g.astype(dtype)}
        x, trainables = jax.device_put(given)
        y, _ = layer.fwd(x, trainables, ())
        expected = X @ (g * v / np.sqrt(np.sum(v**2, 0)))
        if not np.allclose(np.asarray(y, np.float32), expected, rtol=2e-2, atol=2e-2):
            raise Failed(said, input={"x": X, "trainables": trainables}, expected=expected, got=y)

    @jax.jit
    def back(v, g, x):
        def loss(v, g, x):
            return jnp.sum(layer.fwd(x, {"direction": v, "length": g}, ())[0] ** 2)

        return jax.grad(loss, argnums=(0, 1, 2))(v, g, x)

    gradient, *others = map(np.asarray, back(*jax.device_put((v, g, X))))
    along, whole = np.sum(gradient * v, 0), np.sqrt(np.sum(gradient**2, 0) * np.sum(v**2, 0))
    if not np.all(np.abs(along) < 2e-2 * whole):
        raise Failed(
            "The numbers are right, but not the gradient by `direction`: a longer direction gives the same output, so each column of the "
            "gradient stands at right angles to its direction. Is there a `stop_gradient`?",
            got=gradient,
        )
    units = v / np.sqrt(np.sum(v**2, 0))
    y = X @ (g * units)
    wanted = np.sum(2 * y * (X @ units), 0), 2 * y @ (g * units).T
    for name, found, expected in zip(("length", "x"), others, wanted):
        if not np.allclose(found, expected, rtol=1e-2, atol=1e-2):
            raise Failed(
                f"The numbers are right, but not the gradient by `{name}`: is there a `stop_gradient`?",
                expected=expected,
                got=found,
            )


exercise = Exercise(
    title="Lengths and directions",
    stars=2,
    minutes=12,
    why="Another name for the same function gives other gradients: those of the direction stand at right angles to it.",
    hints=(
        "A column is what flows into one output, so its length is a sum over axis 0. init draws the kernel as Linear does, and "
        "measures its columns.",
        "In fwd: `v * (g / jnp.linalg.norm(v, axis=0))`, with v and g in float32 at least, then `.astype(x.dtype)` and the product. In init "
        "the lengths go back to `x.dtype`.",
    ),
    solution=WeightNormLinear,
    check=check,
)
