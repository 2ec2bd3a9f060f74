"""What the checks of normalizations share: inputs that are fixed, and results held against known mistakes."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Failed, checks, laws
from mlax_tutorial.checking.describe import describe, is_array
from mlax_tutorial.checking.laws import LayerSubject

EPSILON = 1e-5
# Laws whose programs take long to compile, and that the chapter is not about.
COSTLY = {
    "batch equals loop",
    "finite in half precision",
    "gradients",
    "init sharded",
    "scan and checkpoint",
    "shard_map",
}

# What may be float32 for half precision: the statistics, and what moves numbers about on the way to them.
WIDE = laws.STATISTICS | {"select_n", "split", "concatenate", "slice", "pad", "transpose"}


def drawn(*shape, seed=0):
    """Numbers with another mean and another scale in each place of the last axis."""
    random = np.random.default_rng(seed)
    size = shape[-1]
    x = random.normal(size=shape) * np.linspace(0.5, 2, size) + np.linspace(-1, 3, size)
    return x.astype(np.float32)


def standardized(x, axes, epsilon=EPSILON):
    """In NumPy, so that nothing is compiled for what is expected."""
    x = np.asarray(x, np.float64)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def output(layer, x, trainables=(), **options):
    """What ``fwd`` gives for x, with the reader's errors shown as theirs."""
    laws.LAYER["signature"](guarded := LayerSubject(layer, x.shape[1:]))
    y, _ = guarded.fwd(*jax.device_put((x, trainables, ())), **options)
    if not is_array(y):
        raise Failed(f"`fwd` should return an array and non_trainables, got {describe(y)}.", input={"x": x})
    if y.shape != x.shape:
        raise Failed(
            f"The output should have the shape of x, {x.shape}, but it has {y.shape}.", input={"x": x}
        )
    return y


def close(one, other, tolerance=2e-3):
    return checks.agrees(one, np.asarray(other, np.float64), tolerance, tolerance)


def compare(got, expected, shown, recognise=(), otherwise="The output is wrong."):
    """``got`` is what is expected; or the report says which known mistake gives it."""
    if close(got, expected):
        return
    said = next((text for wrong, text in recognise if close(got, wrong)), otherwise)
    raise Failed(said, input=shown, expected=np.asarray(expected, np.float32), got=got)


def slope_of_standardized(x, cotangent, axes, centered=True):
    """The gradient by x of the sum of ``cotangent * y``, where y is x in units of its deviation (or of its root mean square)."""
    x, cotangent = np.asarray(x, np.float64), np.asarray(cotangent, np.float64)
    if centered:
        x = x - x.mean(axes, keepdims=True)
        cotangent = cotangent - cotangent.mean(axes, keepdims=True)
    deviation = np.sqrt(np.mean(x**2, axes, keepdims=True) + EPSILON)
    y = x / deviation
    return (cotangent - y * np.mean(cotangent * y, axes, keepdims=True)) / deviation


def gradient(layer, x, expected):
    """The gradient by x of the sum of ``sin(y)``, with the statistics as part of it."""
    found = jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(layer.fwd(x, (), ())[0]))))(x)
    if not close(found, expected, 1e-2):
        raise Failed(
            "The numbers are right, but not the gradient by x: the statistics depend on x, too, so no `stop_gradient` belongs here.",
            input={"x": x},
            expected=np.asarray(expected, np.float32),
            got=found,
        )


def the_same_in_inference(layer, x, y):
    """Nothing here depends on other examples, so inference is no other program."""
    found = output(layer, x, inference_mode=True)
    if not close(found, y):
        raise Failed(
            "With `inference_mode=True` the output is another one: this layer needs no other examples, so it does the same in "
            "training and in inference.",
            input={"x": x},
            expected=np.asarray(y, np.float32),
            got=found,
        )


ONE_PASS = (
    "For numbers far from zero the output is wrong: the mean of the squares less the square of the mean loses its digits. "
    "Subtract the mean first, and square what is left."
)


def rounded_once(layer, expected):
    """In bfloat16 the result is that of float32, rounded at the end: who rounds on the way differs in one element of four."""
    x = drawn(64, 2, 4, 6).astype(jnp.bfloat16)
    wanted = expected(np.asarray(x, np.float32)).astype(jnp.bfloat16)
    y = output(layer, x)
    if y.dtype != x.dtype:
        return  # as the laws will say
    differ = np.mean(np.asarray(y, np.float32) != np.asarray(wanted, np.float32))
    if differ > 0.05:
        raise Failed(
            f"In bfloat16 {differ:.0%} of the elements differ from those computed in float32: something is rounded on the way. Convert "
            "x to float32 before anything else, and the result back to the dtype of x at the end.",
            input={"x": x},
            expected=wanted,
            got=y,
        )


def no_overflow(layer, x):
    """Squares are formed in float32: 300 squared is infinite in float16."""
    x = np.asarray(x, np.float16)
    y = output(layer, x)
    if not np.all(np.isfinite(np.asarray(y, np.float32))) or np.all(np.asarray(y) == 0):
        raise Failed(
            "Numbers of a few hundred have squares that are infinite in float16: convert x to float32 before you square it, and "
            "the result back to the dtype of x.",
            input={"x": x},
            got=y,
        )
