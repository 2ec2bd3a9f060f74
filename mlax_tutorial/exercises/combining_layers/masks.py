"""A model whose dropout masks are all alike."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, guarding
from mlax_tutorial.exercises.combining_layers._watched import hides_reuse

WIDE, DEEP, MANY = 24, 6, 8


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
    return [jax.device_put(np.eye(WIDE, dtype=np.float32))] * depth


def check(noisy):
    x = jax.device_put(np.random.default_rng(0).uniform(0.5, 1.0, (MANY, WIDE)).astype(np.float32))
    kernels = _kernels(DEEP)
    with checks.says("Called without a key, which means that nothing is dropped:"):
        dropped_nothing = noisy(x, kernels)
    checks.same(dropped_nothing, x, where="without a key, and with kernels that change nothing")
    checks.same(noisy(x, kernels, None), x, where="with the key None")
    # A kernel that mixes neighbors shows whether the values are dropped behind the product, as they should be.
    mixing = np.eye(WIDE, dtype=np.float32)
    mixing = jax.device_put(mixing + 0.5 * np.roll(mixing, 1, axis=1))
    one, two = noisy(x, [mixing], jax.random.key(1)), noisy(x, kernels, jax.random.key(2))
    _is_dropout(one, np.asarray(x) @ np.asarray(mixing), x, mixing)
    _differs_between_examples(one)
    _differs_between_layers(two, x)
    _in_every_layer(noisy)
    _of_more_layers(noisy)
    _reuse(noisy, x, kernels)


def _is_dropout(y, whole, x, mixing):
    if getattr(y, "shape", None) != x.shape:
        raise Failed(f"The output should have the shape of the input, {x.shape}.", got=y)

    def zero_or_double(ratio):
        return np.all(np.isclose(ratio, 0, atol=1e-3) | np.isclose(ratio, 2, rtol=1e-3))

    ratio = np.asarray(y) / whole
    if not zero_or_double(ratio):
        if zero_or_double(np.asarray(y) @ np.linalg.inv(np.asarray(mixing)) / np.asarray(x)):
            raise Failed(
                "The values are dropped in front of the product, so that the pictures themselves lose pixels. In the code of the task "
                "they are dropped behind the ReLU.",
                got=ratio,
            )
        raise Failed(
            "One layer of dropout at a rate of 0.5 sets a value to 0 or doubles it; here other factors come out. Leave the "
            "rule as it was, and change where the masks come from.",
            got=ratio,
        )
    kept = ratio > 1
    if not kept.all() and np.array_equal(kept, np.broadcast_to(kept[:, :1], kept.shape)):
        raise Failed(
            "Within a layer an example is dropped as a whole or not at all: draw one number for each value of `x`, not one for each "
            "of its rows.",
            got=kept,
        )
    if not 0.25 < np.mean(kept) < 0.75:
        raise Failed("With a rate of 0.5 about half of the values should remain.", got=ratio)


def _differs_between_examples(y):
    kept = np.asarray(y) > 0
    if all(np.array_equal(kept[0], row) for row in kept):
        raise Failed(
            "Within a layer all examples of the batch have the same mask: draw one number for each value of `x`, not one "
            "for each of its columns.",
            got=kept,
        )


def _in_every_layer(noisy):
    """Among so many examples each unit survives somewhere, unless a layer drops it in all; and few examples vanish in two layers."""
    many = jax.device_put(np.ones((2048, WIDE), np.float32))
    kept = np.asarray(noisy(many, _kernels(DEEP), jax.random.key(6))) > 0
    if not kept.any(axis=0).all():
        raise Failed(
            "In the first layer each example has a mask of its own, but in a later one all examples have the same: there, too, draw one "
            "number for each value of `x`."
        )
    kept = np.asarray(noisy(many, _kernels(2), jax.random.key(7))) > 0
    if np.mean(kept.any(axis=1)) < 0.9:
        raise Failed(
            "In the second layer an example is dropped as a whole or not at all: there, too, draw one number for each value of `x`."
        )


def _of_more_layers(noisy):
    """More kernels than before, each of which doubles what comes in."""
    kernels = [2 * kernel for kernel in _kernels(DEEP + 2)]
    many = jax.device_put(np.ones((2048, WIDE), np.float32))
    scaled = np.unique(noisy(many, kernels, jax.random.key(8)))
    if not (
        np.all(np.asarray(noisy(many[:1], kernels)) == 2 ** len(kernels))
        and np.array_equal(scaled, [0, 4 ** len(kernels)])
    ):
        raise Failed(
            f"Right for {DEEP} layers, wrong for {len(kernels)}: does `zip` stop early, since there are fewer keys than kernels?"
        )


def _differs_between_layers(y, x):
    """With one mask for all layers, half of the values survive all of them."""
    survived = float(np.mean(np.asarray(y) > 0))
    ratio = np.asarray(y) / np.asarray(x)
    if not np.all(np.isclose(ratio, 0, atol=1e-2) | np.isclose(ratio, 2**DEEP, rtol=1e-2)):
        said = f"What survives {DEEP} layers should be doubled {DEEP} times."
        if np.all(np.isclose(ratio, 0, atol=1e-2) | np.isclose(ratio, 2, rtol=1e-2)):
            said = f"With {DEEP} layers the values are dropped only once: in the code of the task it is done behind each layer."
        raise Failed(said, got=ratio)
    if survived > 4 * 0.5**DEEP:
        raise Failed(
            f"After {DEEP} layers {survived:.0%} of the values are still there. With masks drawn apart it would be about "
            f"{0.5**DEEP:.0%}: what one layer keeps, another one keeps as well. Each layer needs a key of its own, however many "
            "layers there are."
        )


def _reuse(noisy, x, kernels):
    run, key = guarding.original(noisy), jax.random.key(5)
    # JAX 0.7 does not look into programs that were compiled without the check: another shape, other programs.
    x = x[:5]
    checks.keys(lambda key: run(x, kernels, key), jax.random.key(3))
    with jax.debug_key_reuse(True):
        run(x, kernels, key)
        try:
            run(x, kernels, key)
        except jax.errors.KeyReuseError:
            return
    because = hides_reuse(lambda x, key: run(x, kernels, key), x, jax.random.key(5))
    raise Failed(
        f"If a caller passed the same key twice, JAX's check for reused keys would notice nothing{because and f': {because}'}. "
        "Derive the keys with `jax.random.split`, straight from the key that comes in."
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
