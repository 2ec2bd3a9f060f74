"""A model whose dropout masks are all alike."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, reader
from mlax_tutorial.inspection import jaxprs

WIDE, DEEP, MANY = 24, 3, 4


def solution(x, kernels, key=None):
    keys = [None] * len(kernels) if key is None else jax.random.split(key, len(kernels))
    for kernel, layer_key in zip(kernels, keys):
        x = jax.nn.relu(x @ kernel)
        if layer_key is not None:
            mask = jax.random.bernoulli(layer_key, 0.5, x.shape)
            x = jnp.where(mask, x / 0.5, 0.0)
    return x


def _kernels(depth):
    """Kernels that pass on each unit by itself, so that what comes out shows which units were dropped where."""
    return [jnp.eye(WIDE)] * depth


def check(noisy):
    x = jnp.asarray(np.random.default_rng(0).uniform(0.5, 1.0, (MANY, WIDE)), jnp.float32)
    kernels = _kernels(DEEP)
    dropped_nothing = noisy(x, kernels)
    checks.same(dropped_nothing, x, where="without a key, and with kernels that change nothing")
    checks.same(noisy(x, kernels, None), x, where="with the key None")
    one, two = noisy(x, kernels[:1], jax.random.key(1)), noisy(x, kernels, jax.random.key(2))
    _is_dropout(one, x)
    _differs_between_examples(one)
    _differs_between_layers(two, x)
    _reuse(noisy, x, kernels)


def _is_dropout(y, x):
    if getattr(y, "shape", None) != x.shape:
        raise Failed(f"The output should have the shape of the input, {x.shape}.", got=y)
    ratio = np.asarray(y / x)
    if not np.all(np.isclose(ratio, 0, atol=1e-3) | np.isclose(ratio, 2, rtol=1e-3)):
        raise Failed(
            "One layer of dropout at a rate of 0.5 sets a value to 0 or doubles it; here other factors come out. Leave the "
            "rule as it was, and change where the masks come from.",
            got=ratio,
        )
    if not 0.25 < np.mean(ratio > 1) < 0.75:
        raise Failed("With a rate of 0.5 about half of the values should remain.", got=ratio)


def _differs_between_examples(y):
    kept = np.asarray(y) > 0
    if all(np.array_equal(kept[0], row) for row in kept):
        raise Failed(
            "Within a layer all examples of the batch have the same mask: draw one number for each value of `x`, not one "
            "for each of its columns.",
            got=kept,
        )


def _differs_between_layers(y, x):
    """With one mask for all layers, half of the values survive all of them, multiplied by 8."""
    survived = float(np.mean(np.asarray(y) > 0))
    if survived > 0.34:
        raise Failed(
            f"After {DEEP} layers {survived:.0%} of the values are still there. With masks drawn apart it would be about "
            f"{0.5**DEEP:.0%}: what one layer keeps, the next one keeps as well. Each layer needs a key of its own."
        )
    ratio = np.asarray(y / x)
    if not np.all(np.isclose(ratio, 0, atol=1e-2) | np.isclose(ratio, 2**DEEP, rtol=1e-2)):
        raise Failed(f"What survives {DEEP} layers should be doubled {DEEP} times.", got=ratio)


def _reuse(noisy, x, kernels):
    checks.keys(lambda key: reader.original(noisy)(x, kernels, key), jax.random.key(3))
    program = jax.make_jaxpr(lambda key: noisy(x, kernels, key))(jax.random.key(0))
    if any(equation.primitive.name == "random_fold_in" for _, equation in jaxprs.walk(program)):
        raise Failed(
            "You derive the keys with `fold_in`. The masks are right, but JAX does not count it as a use of the key: if a "
            "caller passed the same key at every step, nobody would notice. Use `jax.random.split`."
        )


exercise = Exercise(
    title="Masks that are all alike",
    stars=2,
    minutes=10,
    why="A network trains with such masks all the same, which is why it is found in the check for reused keys or not at all.",
    hints=(
        "There are two mistakes: one in the key, one in the shape of the mask.",
        "Split the key into one for each kernel, before the loop, and only if there is a key.",
        "`jax.random.bernoulli(layer_key, 0.5, x.shape)` draws one number for each value.",
    ),
    solution=solution,
    check=check,
)
