"""A mask for each example."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.describe import is_key
from mlax_tutorial.checking.guarding import bare
from mlax_tutorial.exercises.randomness._growth import does_not_grow, equations
from mlax_tutorial.exercises.randomness._keys import correlation, from_whole_keys, uses_keys_once


def solution(drop, key, batch):
    return jax.vmap(drop)(jax.random.split(key, len(batch)), batch)


def check(drop_batch):
    own, key = bare(drop_batch), jax.random.key(0)
    seen = []

    def drop(key, x):
        seen.append((is_key(key), jnp.shape(key), jnp.shape(x)))
        if seen[-1][:2] != (True, ()):
            return x
        return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0.0)

    batch = jax.device_put(np.ones((6, 20), np.float32))
    got = drop_batch(drop, key, batch)
    if not seen:
        raise Failed("Your function does not call `drop`.")
    if (bad := [each for each in seen if not each[0]]) and bad:
        raise Failed(
            "`drop` is called with something that is no key: it takes the key first, then the example."
        )
    for _, key_shape, x_shape in seen:
        if x_shape == batch.shape:
            raise Failed(
                "`drop` is called with the whole batch. It is a function for one example: map it with `jax.vmap`."
            )
        if key_shape != ():
            raise Failed(f"`drop` is called with {key_shape[0]} keys at once: one example, one key.")
        if x_shape != (20,):
            raise Failed(
                f"`drop` is called with an array of shape {x_shape}; one example has the shape (20,)."
            )
    checks.returns(drop_batch, drop, key, batch, shape=(6, 20), dtype=jnp.float32)
    rows = np.asarray(got)
    different = len(np.unique(rows, axis=0))
    if different < 6:
        raise Failed(
            f"Six equal examples got {different} different mask{'s' if different > 1 else ''}: each needs a key of its "
            "own, so map over keys, too.",
            got=got,
        )
    sizes = []
    for n in (2, 9):
        values, zeros = jax.device_put(
            (np.arange(n * 3, dtype=np.float32).reshape(n, 3), np.zeros((n, 3), np.float32))
        )
        unchanged = drop_batch(lambda key, x: x, key, values)
        checks.same(unchanged, values, input={"drop": "lambda key, x: x", "batch": values})
        sizes.append(equations(lambda key, values: own(drop, key, values), key, values))
        given = drop_batch(lambda key, x: jax.random.key_data(key), key, values)
        if len(np.unique(np.asarray(given), axis=0)) < n:
            raise Failed(
                f"In a batch of {n} two examples get the same key: make as many keys as there are examples."
            )
        other = drop_batch(lambda key, x: jax.random.key_data(key), jax.random.key(1), values)
        if n < len(np.unique(np.concatenate([given, other]), axis=0)) < 2 * n:
            raise Failed(
                "For another key some of the same keys are made: split it, and compute nothing with it."
            )
        same = np.unique(np.asarray(drop_batch(lambda key, x: jax.random.key_data(key), key, zeros)), axis=0)
        if len(same) < n:
            raise Failed(
                "Equal examples get equal keys: a key should come from its place in the batch, not from numbers."
            )
    does_not_grow(sizes, "the batch")
    uses_keys_once(lambda key, batch: own(drop, key, batch), batch)
    from_whole_keys(lambda key, batch: own(drop, key, batch), batch)
    if len(got) == 6 and correlation(rows[0], rows[1]) > 0.95:
        raise Failed("The masks of two examples are the same.")
    checks.works_under_jit(lambda key, batch: drop_batch(drop, key, batch), key, batch)


exercise = Exercise(
    title="A mask for each example",
    stars=2,
    minutes=10,
    why="Code for one example plus an axis of keys is code for a batch, and each example keeps its own randomness.",
    hints=(
        "`jax.vmap` maps over all arguments that have a leading axis. Which of the two has none yet?",
        "Split the key into as many keys as there are examples: `jax.random.split(key, len(batch))`.",
    ),
    solution=solution,
    check=check,
)
