"""Answers to the exercise training_loop.batch_at."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import training
from mlax_tutorial.exercises.training_loop.batch_at import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("are the same key where the two integers are equal")
def one_family(key, number, size, batch_size):
    epoch, place = divmod(number, size // batch_size)
    order = training.batches(jax.random.fold_in(key, epoch), size, batch_size)
    return order[place], jax.random.fold_in(key, number)


@answers.wrong("Two epochs have the same order")
def one_order(key, number, size, batch_size):
    order_key, steps_key = jax.random.split(key)
    order = training.batches(order_key, size, batch_size)
    return order[number % len(order)], jax.random.fold_in(steps_key, number)


@answers.wrong("visits an example twice")
def an_order_for_each(key, number, size, batch_size):
    order_key, step_key = jax.random.split(jax.random.fold_in(key, number))
    return jax.random.permutation(order_key, size)[:batch_size], step_key


@answers.wrong("Keys come again")
def by_place(key, number, size, batch_size):
    epoch, place = divmod(number, size // batch_size)
    order_key, steps_key = jax.random.split(key)
    order = training.batches(jax.random.fold_in(order_key, epoch), size, batch_size)
    return order[place], jax.random.fold_in(steps_key, place)


@answers.wrong("Keys come again")
def by_epoch(key, number, size, batch_size):
    epoch, place = divmod(number, size // batch_size)
    order_key, steps_key = jax.random.split(key)
    order = training.batches(jax.random.fold_in(order_key, epoch), size, batch_size)
    return order[place], jax.random.fold_in(steps_key, epoch)


@answers.wrong("All updates have the same key")
def one_key(key, number, size, batch_size):
    indices, _ = exercise.answer(key, number, size, batch_size)
    return indices, jax.random.split(key, 3)[2]


@answers.wrong("not shuffled")
def in_order(key, number, size, batch_size):
    epoch, place = divmod(number, size // batch_size)
    start = place * batch_size
    return (jnp.arange(start, start + batch_size) + epoch) % size, jax.random.fold_in(key, 100 + number)


@answers.wrong("use the argument `key`")
def own_seed(key, number, size, batch_size):
    return exercise.answer(jax.random.key(0), number, size, batch_size)


COUNTER = iter(range(1_000_000))


@answers.wrong("must depend on the arguments alone")
def counts_its_calls(key, number, size, batch_size):
    indices, _ = exercise.answer(key, number, size, batch_size)
    return indices, jax.random.fold_in(jax.random.split(key)[1], next(COUNTER))


@answers.wrong("3 indices")
def whole_epoch(key, number, size, batch_size):
    order_key, steps_key = jax.random.split(key)
    return training.batches(order_key, size, batch_size), jax.random.fold_in(steps_key, number)


@answers.wrong("Two things are asked for")
def indices_alone(key, number, size, batch_size):
    return exercise.answer(key, number, size, batch_size)[0]


@answers.wrong("one typed key")
def key_data(key, number, size, batch_size):
    indices, step_key = exercise.answer(key, number, size, batch_size)
    return indices, jax.random.key_data(step_key)


def folded(order_of, step_of):
    """The order is drawn from ``order_of(key, epoch)``, the step's key is ``step_of(key, number, epoch, place)``."""

    def batch_at(key, number, size, batch_size):
        epoch, place = divmod(number, size // batch_size)
        order = training.batches(order_of(key, epoch), size, batch_size)
        return order[place], step_of(key, number, epoch, place)

    return batch_at


def fold(key, *numbers):
    for number in numbers:
        key = jax.random.fold_in(key, number)
    return key


answers.wrong("is made from the key from which the order of epoch 1")(
    folded(fold, lambda key, number, *_: fold(jax.random.split(key)[1], number))
)
answers.wrong("is the key from which orders are derived")(
    folded(
        lambda key, epoch: fold(jax.random.split(key)[0], epoch), lambda key, number, *_: fold(key, number)
    )
)
answers.wrong("is made from the key from which the order of epoch 0")(
    folded(fold, lambda key, number, epoch, place: fold(key, epoch, place))
)
answers.wrong("is made from the key from which the order of epoch 0")(
    folded(fold, lambda key, number, epoch, place: jax.random.split(fold(key, epoch), 4)[place])
)
answers.wrong("is made from the key from which the order of epoch 0")(
    folded(
        lambda key, epoch: fold(jax.random.split(key)[0], epoch),
        lambda key, number, epoch, place: fold(jax.random.split(key)[0], epoch, place),
    )
)
answers.wrong("the same order of the first epoch")(
    folded(lambda key, epoch: jax.random.key(epoch), lambda key, number, *_: fold(key, number))
)
answers.wrong("the same step's key")(
    folded(
        lambda key, epoch: fold(jax.random.split(key)[0], epoch),
        lambda key, number, *_: jax.random.key(number),
    )
)


@answers.wrong("only shifted")
def shifted(key, number, size, batch_size):
    order_key, steps_key = jax.random.split(key)
    order = np.asarray(jax.random.permutation(order_key, size))
    epoch, place = divmod(number, size // batch_size)
    rows = (number * batch_size + np.arange(batch_size)) % size
    return order[rows], jax.random.fold_in(steps_key, number)


@answers.wrong("the examples that do not fill a batch are left out")
def ragged(key, number, size, batch_size):
    epoch, place = divmod(number, -(-size // batch_size))
    order_key, steps_key = jax.random.split(key)
    order = jax.random.permutation(jax.random.fold_in(order_key, epoch), size)
    return order[place * batch_size : (place + 1) * batch_size], jax.random.fold_in(steps_key, number)


@answers.wrong("folded with a negative number")
def from_one(key, number, size, batch_size):
    return exercise.answer(key, number, size, batch_size)[0], jax.random.fold_in(key, number - 1)


@answers.wrong("Each epoch has the same batches")
def batches_in_another_order(key, number, size, batch_size):
    epoch, place = divmod(number, size // batch_size)
    order_key, steps_key = jax.random.split(key)
    order = jax.random.permutation(jax.random.fold_in(order_key, epoch), size // batch_size)
    rows = order[place] * batch_size + jnp.arange(batch_size)
    return rows, jax.random.fold_in(steps_key, number)


@answers.wrong("Each epoch has the same batches")
def shuffled_in_the_batch(key, number, size, batch_size):
    order_key, steps_key = jax.random.split(key)
    rows = number % (size // batch_size) * batch_size + jnp.arange(batch_size)
    rows = jax.random.permutation(jax.random.fold_in(order_key, number), rows)
    return rows, jax.random.fold_in(steps_key, number)


# Wrong ones that look right


@answers.wrong()
def epoch_of_examples(key, number, size, batch_size):
    """The number of examples seen, divided by the size: an epoch ends in the middle of a batch."""
    order_key, steps_key = jax.random.split(key)
    seen = number * batch_size + np.arange(batch_size)
    orders = [
        jax.random.permutation(jax.random.fold_in(order_key, int(epoch)), size) for epoch in seen // size
    ]
    return jnp.stack([order[i] for order, i in zip(orders, seen % size)]), jax.random.fold_in(
        steps_key, number
    )


@answers.wrong()
def the_key_itself(key, number, size, batch_size):
    """The first update is given the key from which everything else is derived."""
    indices, step_key = exercise.answer(key, number, size, batch_size)
    return indices, step_key if number else key


# Right ones of unusual style


@answers.right
def chain(key, number, size, batch_size):
    """All epochs before are walked through: slow, but right."""
    each = size // batch_size
    for _ in range(number // each + 1):
        key, order_key, steps_key = jax.random.split(key, 3)
    order = jax.random.permutation(order_key, size)
    place = number % each
    return order[place * batch_size :][:batch_size], jax.random.split(steps_key, each)[place]


@answers.right
def with_numpy(key, number, size, batch_size):
    epoch, place = number // (size // batch_size), number % (size // batch_size)
    words = np.asarray(jax.random.key_data(key)).tolist()
    order = np.random.default_rng([*words, epoch]).permutation(size)
    return order[place * batch_size : (place + 1) * batch_size], jax.random.fold_in(key, number + 2**20)


@answers.right
@jax.tree_util.Partial
def folded_twice(key, number, size, batch_size):
    epoch, place = divmod(number, size // batch_size)
    epoch_key = jax.random.fold_in(key, epoch)
    order_key, steps_key = jax.random.split(epoch_key)
    order = training.batches(order_key, size, batch_size)
    return order[place], jax.random.fold_in(steps_key, place)


def by_solution(key, number, size, batch_size):
    return exercise.answer(key, number, size, batch_size)


@answers.wrong()
def epoch_of_batch_size_updates(key, number, size, batch_size):
    epoch, place = divmod(number, batch_size)
    order_key, steps_key = jax.random.split(key)
    order = training.batches(jax.random.fold_in(order_key, epoch), size, batch_size)
    return order[place], jax.random.fold_in(steps_key, number)


answers.wrong("a training may have many epochs")(
    folded(
        lambda key, epoch: jax.random.split(jax.random.split(key)[0], 100)[epoch],
        lambda key, number, *_: fold(jax.random.split(key)[1], number),
    )
)
answers.wrong("an epoch may be of any length")(
    folded(fold, lambda key, number, epoch, place: fold(key, 1000 * (epoch + 1) + place))
)
answers.wrong("of update 999 is the key from which an order is drawn")(
    folded(lambda key, epoch: fold(key, 999, epoch), lambda key, number, *_: fold(key, number))
)


@answers.wrong("a training may have many updates")
def a_thousand_keys(key, number, size, batch_size):
    indices, _ = by_solution(key, number, size, batch_size)
    return indices, jax.random.split(jax.random.split(key)[1], 1000)[number]


@answers.wrong()
def three_slices(key, number, size, batch_size):
    epoch, place = divmod(number, size // batch_size)
    order_key, steps_key = jax.random.split(key)
    order = jax.random.permutation(jax.random.fold_in(order_key, epoch), size)
    return order[place :: size // batch_size][:3], jax.random.fold_in(steps_key, number)


CACHE = {}


@answers.wrong()
def caches_by_key(key, number, size, batch_size):
    epoch, place = divmod(number, size // batch_size)
    name = epoch, int(jax.random.key_data(key)[1])
    if name not in CACHE:
        order_key = jax.random.split(key)[0]
        CACHE[name] = np.asarray(training.batches(jax.random.fold_in(order_key, epoch), size, batch_size))
    return CACHE[name][place], jax.random.fold_in(jax.random.split(key)[1], number)


@answers.wrong("a training may have many updates")
def keys_of_sixteen_bits(key, number, size, batch_size):
    indices, _ = by_solution(key, number, size, batch_size)
    return indices, jax.random.fold_in(jax.random.split(key)[1], number % 2**16)


@answers.right
def by_sorting(key, number, size, batch_size):
    order_key, steps_key = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)
    epoch, place = divmod(number, size // batch_size)
    order = jnp.argsort(jax.random.uniform(jax.random.fold_in(order_key, epoch), size))
    step_key = jax.random.fold_in(jax.random.fold_in(steps_key, epoch), place)
    return jax.lax.dynamic_slice_in_dim(order, place * batch_size, batch_size), step_key
