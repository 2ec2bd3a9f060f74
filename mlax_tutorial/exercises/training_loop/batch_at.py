"""The batch and the key of any update, from its number alone."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import training
from mlax_tutorial.checking import Exercise, Failed, checks


def solution(key, number, size, batch_size):
    epoch, place = divmod(number, size // batch_size)
    order_key, steps_key = jax.random.split(key)
    order = training.batches(jax.random.fold_in(order_key, epoch), size, batch_size)
    return order[place], jax.random.fold_in(steps_key, number)


SIZE, BATCH, EPOCHS = 13, 3, 3  # four updates an epoch
LONG = 1500, (0, 10, 16, 64, 100, 128, 256, 512, 1000, 1024, 1500)  # updates an epoch, and numbers of updates
FAR = (99, 199, 300), (1000, 1001, 4097, 65_536)  # epochs, and numbers of updates


def check(batch_at):
    each = SIZE // BATCH
    numbers = range(EPOCHS * each)
    with checks.says(
        "A key is folded with a negative number: updates are counted from 0, and so are epochs.",
        about="OverflowError",
    ):
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
    batches = [{frozenset(found[e * each + i][0]) for i in range(each)} for e in range(EPOCHS)]
    if all(other == batches[0] for other in batches[1:]):
        raise Failed(
            "Each epoch has the same batches, but for their order or the order inside of them: shuffle all the examples, and cut then.",
            shown=[("orders", "\n".join(map(str, orders)))],
        )
    pairs = [set(zip(order, order[1:])) for order in orders]
    if any(len(pairs[0] & other) > 2 * len(other) / 3 for other in pairs[1:]):
        raise Failed(
            "The order of the second epoch is that of the first one, only shifted. Draw one from a key of its own.",
            shown=[("orders", "\n".join(map(str, orders)))],
        )
    _depends(batch_at, found)
    _another_size(batch_at)
    _keys(batch_at, [key for _, key in found], orders)
    _far(batch_at, orders, [key for _, key in found])
    _long(batch_at)


def _another_size(batch_at):
    """Two epochs of other sizes, with the key that was used before."""
    size, batch = 22, 5
    found = [_one(batch_at, jax.random.key(5), number, size, batch) for number in range(2 * (size // batch))]
    for epoch in (0, 1):
        order = sum((list(one[0]) for one in found[epoch * (size // batch) :][: size // batch]), [])
        if len(set(order)) < len(order):
            raise Failed(
                f"With size={size} and batch_size={batch} an epoch, which is {size // batch} updates, visits an example twice.",
                got=str(order),
            )
        if max(order) < 13:
            raise Failed(
                f"With size={size}, after another size, only examples of the other set are visited.",
                got=str(order),
            )


def _far(batch_at, orders, keys):
    """Epochs and updates far from the first: their orders and keys are new ones, and no order is made from such a key."""
    each, (epochs, numbers) = SIZE // BATCH, FAR
    far = [
        sum((list(_one(batch_at, jax.random.key(5), epoch * each + i)[0]) for i in range(each)), [])
        for epoch in epochs
    ]
    if len(set(map(tuple, far + orders))) < len(far + orders):
        raise Failed(
            f"Two of the epochs {', '.join(map(str, (*range(EPOCHS), *epochs)))} have the same order: a training may have many epochs."
        )
    late = [_one(batch_at, jax.random.key(5), number)[1] for number in (*numbers, 999)]
    if len(set(keys + late)) < len(keys + late):
        raise Failed("Above a thousand, updates have keys that others had: a training may have many updates.")
    for number, data in zip((*numbers, 999), late):
        sources = np.concatenate(
            [np.uint32([data]), np.asarray(_folded(np.resize(np.uint32(data), (FOLDS**2, 2))))[0]]
        )
        second = np.asarray(_folded(np.resize(sources, (FOLDS**2, 2))))[: len(sources), 1]
        drawn = np.argsort(np.asarray(_bits(second)), kind="stable").tolist()
        if any(one[: len(orders[0])] in orders for one in drawn):
            raise Failed(
                f"The key of update {number} is the key from which an order is drawn, or from which orders are derived: split the key in "
                "two first, one for orders and one for steps."
            )


def _long(batch_at):
    """An epoch of many updates: the key of none is that of an update of the next epoch."""
    size, numbers = LONG
    keys = [_one(batch_at, jax.random.key(5), number, size, 1)[1] for number in numbers]
    if len(set(keys)) < len(keys):
        raise Failed(
            f"Where an epoch has {size} updates, two of them, or one and the first of the next epoch, have the same key: an epoch may be of any length."
        )


def _one(batch_at, key, number, size=SIZE, batch=BATCH):
    result = batch_at(key, number, size, batch)
    shown = {"input": f"number={number}, size={size}, batch_size={batch}"}
    asked = "Two things are asked for: the indices and the step's key."
    indices, step_key = checks.returned(result, "indices", "key", lists=True, asked=asked, **shown)
    if (
        not hasattr(step_key, "dtype")
        or not jnp.issubdtype(step_key.dtype, jax.dtypes.prng_key)
        or step_key.shape
    ):
        raise Failed("The second thing should be one typed key.", got=step_key, **shown)
    indices = np.asarray(indices)
    if indices.ndim == 1 and indices.size < batch:
        raise Failed(
            f"A batch has {indices.size} indices instead of {batch}. An epoch is `size // batch_size` updates: the examples that do not "
            "fill a batch are left out.",
            got=indices,
            **shown,
        )
    if indices.shape != (batch,) or not np.issubdtype(indices.dtype, np.integer):
        raise Failed(f"The first thing should be {batch} indices.", got=indices, **shown)
    if indices.min() < 0 or indices.max() >= size:
        raise Failed(f"An index is outside of the {size} examples.", got=indices, **shown)
    return tuple(indices.tolist()), tuple(np.asarray(jax.random.key_data(step_key)).tolist())


def _keys(batch_at, keys, orders):
    if len(set(keys)) == 1:
        raise Failed("All updates have the same key, so dropout drops the same units at each step.")
    if len(set(keys)) < len(keys):
        raise Failed(
            "Keys come again: the step's key must depend on the number of the update, not only on its epoch, or its place in it."
        )
    if tuple(np.asarray(jax.random.key_data(jax.random.key(5))).tolist()) in keys:
        raise Failed(
            "A step's key is the key that came in, from which the others are derived. Each key is for one thing."
        )
    _families(keys, orders)


def _depends(batch_at, found):
    """Another key changes the order and the key of a step, each by itself."""
    others = [_one(batch_at, jax.random.key(6), number) for number in range(SIZE // BATCH)]
    same = [[one[i] == other[i] for one, other in zip(found, others)] for i in (0, 1)]
    if all(same[0]) and all(same[1]):
        raise Failed("Another key gives the same batches and the same keys: use the argument `key`.")
    if all(same[0]):
        raise Failed("Another key gives the same order of the first epoch: draw it from the argument `key`.")
    if any(same[1]):
        raise Failed("Another key gives the same step's key: make it from the argument `key`.")


FOLDS = 13  # more than there are updates


def _families(keys, orders):
    """No key has two uses: what an order is drawn from, and all above it, is no step's key and has no step's key below it.

    The keys are found again among those that `fold_in` makes of the first one, up to three times. (`split(k)[i]` is `fold_in(k, i)`.)
    """
    paths = [path for length in range(4) for path in itertools.product(range(FOLDS), repeat=length)]
    data, drawn = _family(jax.random.key(5))
    known = dict(zip(map(tuple, reversed(np.asarray(data).tolist())), reversed(paths)))
    drawn = {tuple(order[: len(orders[0])]): path for order, path in zip(np.asarray(drawn).tolist(), paths)}
    steps = {known[key]: number for number, key in enumerate(keys) if key in known}
    for epoch, order in enumerate(orders):
        source = drawn.get(tuple(order))
        if source is None:
            continue
        if source in steps:
            raise Failed(
                f"The key of update {steps[source]} is also the one from which an order is drawn. `fold_in(key, epoch)` and "
                "`fold_in(key, number)` are the same key where the two integers are equal, and JAX's check for reused keys does not "
                "see it: split the key in two first."
            )
        for step, number in steps.items():
            if step[: len(source)] == source:
                raise Failed(
                    f"The key of update {number} is made from the key from which the order of epoch {epoch} is drawn: {_said(source)}. "
                    "`permutation` splits its key, and `split` and `fold_in` make the same keys, so the two may meet: split the key in "
                    "two first, one for orders and one for steps."
                )
            if source[: len(step)] == step:
                raise Failed(
                    f"The key of update {number} is the key from which orders are derived: {_said(step)}. `split(key, n)[i]` and "
                    "`fold_in(key, i)` are one key, so do not do both with one key."
                )


def _family(key):
    """The data of all keys, and the orders that are drawn from those that are folded twice at most."""
    levels = [np.asarray(jax.random.key_data(key))[None]]
    for _ in range(3):
        above = np.resize(levels[-1], (FOLDS**2, 2))  # one shape, and so one program, for all three
        levels.append(np.asarray(_folded(above))[: len(levels[-1])].reshape(-1, 2))
    # `permutation(k)` sorts by the bits of the second key that comes of `split(k)`.
    second = np.concatenate(levels[1:]).reshape(-1, FOLDS, 2)[:, 1]
    return np.concatenate(levels), np.argsort(np.asarray(_bits(second)), kind="stable")


@jax.jit
@jax.vmap
def _folded(data):
    fold = jax.vmap(jax.random.fold_in, (None, 0))
    return jax.random.key_data(fold(jax.random.wrap_key_data(data), jnp.arange(FOLDS)))


@jax.jit
@jax.vmap
def _bits(data):
    return jax.random.bits(jax.random.wrap_key_data(data), (SIZE,))


def _said(path):
    text = "key"
    for i in path:
        text = f"fold_in({text}, {i})"
    return f"`{text}`"


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
