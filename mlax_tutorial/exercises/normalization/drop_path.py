"""Drop whole examples of a residual branch."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.normalization._compare import COSTLY, drawn, output


class DropPath(nn.Layer):
    rate: float
    axes: int = 1
    needs_key = True

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if inference_mode:
            return x, non_trainables
        shape = x.shape[: x.ndim - self.axes] + (1,) * self.axes
        kept = jax.random.bernoulli(key, 1 - self.rate, shape)
        return jnp.where(kept, x / (1 - self.rate), 0), non_trainables


def check(DropPath):
    x = np.ones((6000, 3), np.float32)  # so many that a rate of 0.3 shows
    layer = checks.make(DropPath, 0.25)
    y = np.asarray(output(layer, x, key=jax.random.key(0)))
    shown = {"x": x, "rate": 0.25}
    zero = y == 0
    if not zero.any():
        raise Failed("Nothing is dropped in training.", input=shown, got=y)
    if zero.all() or np.all(zero.all(0) | ~zero.any(0)):
        if zero.all() or (zero.any(0).all() and zero.all(1).any()):
            raise Failed("All examples are dropped together.", input=shown, got=y)
        raise Failed(
            "Whole features are dropped, the same for all examples. It is the examples that are dropped: the mask has the "
            "shape of the axes in front, with an axis of size 1 for each of the last `axes` axes.",
            input=shown,
            got=y,
        )
    if np.any(zero.any(1) != zero.all(1)):
        raise Failed(
            "Each number is dropped by itself, as in Dropout: draw one outcome for each example, and let it broadcast.",
            input=shown,
            got=y,
        )
    share = zero.all(1).mean()
    if not 0.225 < share < 0.275:
        raise Failed(
            f"A share of {share:.2f} of the examples is dropped, and the rate is 0.25"
            + (": the probability of `bernoulli` is that of True." if 0.67 < share < 0.83 else "."),
            input=shown,
        )
    kept = y[~zero.any(1)]
    if not np.allclose(kept, 4 / 3, rtol=1e-3):
        said = "What is kept should be divided by 1 - rate, so that the mean stays what it was."
        if np.allclose(kept, 4):
            said = "What is kept is divided by the rate: divide by 1 - rate, the probability to be kept."
        raise Failed(said, input=shown, expected=np.full_like(kept, 4 / 3), got=kept)

    pictures = np.ones((200, 2, 3), np.float32)
    zero = np.asarray(output(checks.make(DropPath, 0.5, 2), pictures, key=jax.random.key(1))) == 0
    dropped_pictures = zero.all((1, 2))
    if np.any(zero.any((1, 2)) != dropped_pictures):
        raise Failed(
            "With `axes=2` an example is the last two axes, and it is dropped as a whole: here parts of one are.",
            input={"x": pictures, "rate": 0.5, "axes": 2},
        )
    zero = np.asarray(output(checks.make(DropPath, 0.5), pictures, key=jax.random.key(2))) == 0
    if np.all(zero.any((1, 2)) == zero.all((1, 2))):
        raise Failed(
            "With `axes=1` and two batch axes in front, each of the 200 x 2 examples has a draw of its own: here two neighbors always "
            "share one.",
            input={"x": pictures, "rate": 0.5, "axes": 1},
        )
    _independent(share * 6000, np.sum(zero.all(2)), np.sum(dropped_pictures))
    key = jax.random.key(0)
    slope = jax.jit(jax.grad(lambda x: jnp.sum(output(layer, x, key=key))))(x)
    if not np.allclose(slope, y, rtol=1e-3):
        raise Failed(
            "The output is right, but not its gradient by x: what is kept should get 1 / (1 - rate), what is dropped 0.",
            expected=y,
            got=slope,
        )
    checks.obeys_laws(layer, x[:2], draws=True, but=COSTLY | {"dtype inside"})
    given = drawn(2, 3)
    y = output(layer, given, inference_mode=True)
    if not np.allclose(y, given, rtol=1e-2):
        raise Failed(
            "In inference the layer should return x as it is: training divides by 1 - rate already, so the mean is the same.",
            input={"x": given, "rate": 0.25},
            expected=given,
            got=y,
        )
    third = x / 3
    for inference_mode, factor in [(True, 1), (False, 4 / 3)]:
        y = np.asarray(output(layer, third, key=key, inference_mode=inference_mode))
        if not np.allclose(y[y != 0], factor / 3, rtol=1e-5):
            raise Failed(
                "The output has lost digits on the way: compute in the dtype of x.",
                input={"x": third, "rate": 0.25, "inference_mode": inference_mode},
                got=y,
            )


def _independent(*counts):
    """By chance, all three counts are the expected ones less than once in ten thousand times."""
    if tuple(map(round, counts)) == (1500, 200, 100):
        raise Failed(
            "In each batch the share that is dropped is exactly the rate, so the examples depend on each other: draw for each of them."
        )


exercise = Exercise(
    title="Drop whole branches",
    stars=2,
    minutes=12,
    why="The shape of the mask says what is dropped together: numbers, features, or examples. Broadcasting does the rest.",
    hints=(
        "Copy Dropout. Only the shape of the mask is another one: the batch axes of x as they are, and 1 for each of the last ones.",
        "`shape = x.shape[: x.ndim - self.axes] + (1,) * self.axes`.",
    ),
    solution=DropPath,
    check=check,
)
