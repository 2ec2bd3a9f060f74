"""What the checks of normalizations share: inputs that are fixed, and results held against known mistakes."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Failed, laws
from mlax_tutorial.checking.describe import describe, is_array
from mlax_tutorial.checking.laws import LayerSubject

EPSILON = 1e-5
# Laws whose programs take long to compile, and that the chapter is not about.
COSTLY = {"scan and checkpoint", "finite in half precision", "init sharded", "shard_map", "gradients"}

# What may be float32 for half precision: the statistics, and what moves numbers about on the way to them.
WIDE = laws.STATISTICS | {"select_n", "split", "concatenate", "slice", "pad", "transpose"}


def drawn(*shape, seed=0):
    """Numbers with another mean and another scale in each place of the last axis."""
    random = np.random.default_rng(seed)
    size = shape[-1]
    x = random.normal(size=shape) * np.linspace(0.5, 2, size) + np.linspace(-1, 3, size)
    return x.astype(np.float32)


def standardized(x, axes):
    """In NumPy, so that nothing is compiled for what is expected."""
    x = np.asarray(x, np.float64)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + EPSILON)


def output(layer, x, trainables=(), **options):
    """What ``fwd`` gives for x, with the reader's errors shown as theirs."""
    laws.LAYER["signature"](guarded := LayerSubject(layer, x.shape[1:]))
    y, _ = guarded.fwd(jnp.asarray(x), jax.tree.map(jnp.asarray, trainables), (), **options)
    if not is_array(y):
        raise Failed(f"`fwd` should return an array and non_trainables, got {describe(y)}.", input={"x": x})
    if y.shape != x.shape:
        raise Failed(
            f"The output should have the shape of x, {x.shape}, but it has {y.shape}.", input={"x": x}
        )
    return y


def close(one, other, tolerance=2e-3):
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    return one.shape == other.shape and np.allclose(
        one, other, rtol=tolerance, atol=tolerance, equal_nan=True
    )


def compare(got, expected, shown, recognise=(), otherwise="The output is wrong."):
    """``got`` is what is expected; or the report says which known mistake gives it."""
    if close(got, expected):
        return
    said = next((text for wrong, text in recognise if close(got, wrong)), otherwise)
    raise Failed(said, input=shown, expected=np.asarray(expected, np.float32), got=got)


def no_overflow(layer, x):
    """Squares are formed in float32: 300 squared is infinite in float16."""
    x = jnp.asarray(x, jnp.float16)
    y = output(layer, x)
    if not np.all(np.isfinite(np.asarray(y, np.float32))) or np.all(np.asarray(y) == 0):
        raise Failed(
            "Numbers of a few hundred have squares that are infinite in float16: convert x to float32 before you square it, and "
            "the result back to the dtype of x.",
            input={"x": x},
            got=y,
        )
