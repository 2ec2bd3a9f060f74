"""The batch and the key of any update, from its number alone."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import training
from mlax_tutorial.checking import Exercise, Failed


def solution(key, number, size, batch_size):
    epoch, place = divmod(number, size // batch_size)
    order_key, steps_key = jax.random.split(key)
    order = training.batches(jax.random.fold_in(order_key, epoch), size, batch_size)
    return order[place], jax.random.fold_in(steps_key, number)


SIZE, BATCH, EPOCHS = 11, 3, 3


def check(batch_at):
    each = SIZE // BATCH
    numbers = range(EPOCHS * each)
    found = [_one(batch_at, jax.random.key(5), number) for number in numbers]
    for number in reversed(numbers):
        if _one(batch_at, jax.random.key(5), number) != found[number]:
            raise Failed(
                f"Update {number} is not the same when it is asked for again, in another order: the answer must depend on the "
                "arguments alone, or a resumed training takes another way."
            )
    orders = [sum((list(found[e * each + i][0]) for i in range(each)), []) for e in range(EPOCHS)]
    for epoch, order in enumerate(orders):
        if len(set(order)) < len(order):
            raise Failed(
                f"Epoch {epoch} visits an example twice: all its batches must be cut from one permutation.",
                shown=[("its batches", "\n".join(str(found[epoch * each + i][0]) for i in range(each)))],
            )
    if len(set(map(tuple, orders))) < EPOCHS:
        raise Failed(
            "Two epochs have the same order: it must depend on the number of the epoch.", got=str(orders[0])
        )
    if orders[0] == sorted(orders[0]):
        raise Failed("The first epoch is not shuffled.", got=str(orders[0]))
    _keys(batch_at, [key for _, key in found], orders)


def _one(batch_at, key, number):
    result = batch_at(key, number, SIZE, BATCH)
    shown = {"input": f"number={number}, size={SIZE}, batch_size={BATCH}"}
    if result is None:
        raise Failed("Your function returned None: is a `return` missing?", **shown)
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise Failed("Two things are asked for: the indices and the step's key.", got=result, **shown)
    indices, step_key = result
    if (
        not hasattr(step_key, "dtype")
        or not jnp.issubdtype(step_key.dtype, jax.dtypes.prng_key)
        or step_key.shape
    ):
        raise Failed("The second thing should be one typed key.", got=step_key, **shown)
    indices = np.asarray(indices)
    if indices.shape != (BATCH,) or not np.issubdtype(indices.dtype, np.integer):
        raise Failed(f"The first thing should be {BATCH} indices.", got=indices, **shown)
    if indices.min() < 0 or indices.max() >= SIZE:
        raise Failed(f"An index is outside of the {SIZE} examples.", got=indices, **shown)
    return tuple(indices.tolist()), tuple(np.asarray(jax.random.key_data(step_key)).tolist())


def _keys(batch_at, keys, orders):
    if len(set(keys)) == 1:
        raise Failed("All updates have the same key, so dropout drops the same units at each step.")
    if len(set(keys)) < len(keys):
        raise Failed(
            "Keys come again: the step's key must depend on the number of the update, not only on its place in the epoch."
        )
    if tuple(np.asarray(jax.random.key_data(jax.random.key(5))).tolist()) in keys:
        raise Failed(
            "A step's key is the key that came in, from which the others are derived. Each key is for one thing."
        )
    for number, data in enumerate(keys):
        key = jax.random.wrap_key_data(jnp.uint32(data))
        drawn = np.asarray(jax.random.permutation(key, SIZE)).tolist()[: len(orders[0])]
        if drawn in orders:
            raise Failed(
                f"The key of update {number} is also the one from which an order is drawn. `fold_in(key, epoch)` and "
                "`fold_in(key, number)` are the same key where the two integers are equal, and JAX's check for reused keys does not "
                "see it: split the key in two first."
            )
    if _one(batch_at, jax.random.key(6), 0) == _one(batch_at, jax.random.key(5), 0):
        raise Failed("Another key gives the same batch and the same step's key: use the argument `key`.")


exercise = Exercise(
    title="Any update, from its number",
    stars=2,
    minutes=15,
    why="What follows from a number need not be saved: such a training resumes at any update, and can be looked into at any.",
    hints=(
        "`divmod(number, size // batch_size)` gives the epoch and the place in it.",
        "The order of an epoch needs a key for that epoch, the step a key for that number: two families of keys.",
        "`order_key, steps_key = jax.random.split(key)`, then `fold_in(order_key, epoch)` and `fold_in(steps_key, number)`.",
    ),
    solution=solution,
    check=check,
)
