"""Answers to the exercise many_hosts.rows_at."""

import functools
import random

import jax
import numpy as np

from mlax_tutorial.exercises.many_hosts.rows_at import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)

generator = np.random.default_rng(0)


def part(rows, index, count):
    return np.split(rows, count)[index]


@answers.wrong("The same step gives other rows at the second call")
def a_generator(step, size, batch_size, process_index, process_count):
    return part(generator.permutation(size)[:batch_size], process_index, process_count)


@answers.wrong("Within an epoch some rows come twice")
def seed_of_the_step(step, size, batch_size, process_index, process_count):
    rows = np.random.RandomState(step).permutation(size)[:batch_size]
    return part(rows, process_index, process_count)


@answers.wrong("The second epoch repeats the order of the first")
def one_order(step, size, batch_size, process_index, process_count):
    batch = step % (size // batch_size)
    order = np.random.RandomState(0).permutation(size)
    return part(order[batch * batch_size :][:batch_size], process_index, process_count)


@answers.wrong("has the order of an earlier one")
def two_orders(step, size, batch_size, process_index, process_count):
    epoch, batch = divmod(step, size // batch_size)
    order = np.random.RandomState(epoch % 2).permutation(size)
    return part(order[batch * batch_size : (batch + 1) * batch_size], process_index, process_count)


@answers.wrong("has the order of an earlier one")
def back_and_forth(step, size, batch_size, process_index, process_count):
    epoch, batch = divmod(step, size // batch_size)
    order = np.random.RandomState(0).permutation(size)[:: -1 if epoch % 2 else 1]
    return part(order[batch * batch_size : (batch + 1) * batch_size], process_index, process_count)


@answers.wrong("two read the same rows at step")
def forgot_the_process(step, size, batch_size, process_index, process_count):
    epoch, batch = divmod(step, size // batch_size)
    order = np.random.RandomState([0, epoch]).permutation(size)
    return order[batch * batch_size :][: batch_size // process_count]


@answers.wrong("read other rows at step 0 than a single one")
def own_shards(step, size, batch_size, process_index, process_count):
    steps, mine = size // batch_size, batch_size // process_count
    epoch, batch = divmod(step, steps)
    order = np.random.RandomState([process_index, epoch]).permutation(size // process_count)
    return process_index * (size // process_count) + order[batch * mine :][:mine]


@answers.wrong("shuffle them")
def in_order(step, size, batch_size, process_index, process_count):
    batch = step % (size // batch_size)
    return part(np.arange(size)[batch * batch_size :][:batch_size], process_index, process_count)


@answers.wrong("a part in one piece")
def every_other(step, size, batch_size, process_index, process_count):
    epoch, batch = divmod(step, size // batch_size)
    order = np.random.RandomState([0, epoch]).permutation(size)
    return order[batch * batch_size :][:batch_size][process_index::process_count]


@answers.wrong("of the 12 rows of a batch: give their numbers")
def the_whole_batch(step, size, batch_size, process_index, process_count):
    epoch, batch = divmod(step, size // batch_size)
    order = np.random.RandomState([0, epoch]).permutation(size)
    return order[batch * batch_size :]


@answers.wrong("as a NumPy array")
def an_array_of_jax(step, size, batch_size, process_index, process_count):
    epoch, batch = divmod(step, size // batch_size)
    order = jax.random.permutation(jax.random.fold_in(jax.random.key(0), epoch), size)
    return order[batch * batch_size :][:batch_size].reshape(process_count, -1)[process_index]


def cut(order, step, size, batch_size, process_index, process_count):
    batch = step % (size // batch_size)
    return part(order[batch * batch_size :][:batch_size], process_index, process_count)


orders = {}


@answers.wrong("belongs to its epoch and its `size`")
def kept_by_epoch(step, size, batch_size, process_index, process_count):
    epoch = step // (size // batch_size)
    if epoch not in orders:
        orders[epoch] = np.random.RandomState([0, epoch]).permutation(size)
    return cut(orders[epoch], step, size, batch_size, process_index, process_count)


@answers.wrong("belongs to its epoch and its `size`")
def kept_as_default(step, size, batch_size, process_index, process_count, kept={}):  # noqa: B006
    epoch = step // (size // batch_size)
    order = kept.setdefault(epoch, np.random.RandomState([0, epoch]).permutation(size))
    return cut(order, step, size, batch_size, process_index, process_count)


largest = []


@answers.wrong("belongs to its epoch and its `size`")
def kept_for_the_first_size(step, size, batch_size, process_index, process_count):
    largest.append(size)
    order = np.random.RandomState([0, step // (size // batch_size)]).permutation(largest[0])
    return cut(order, step, size, batch_size, process_index, process_count)


@answers.wrong("belongs to its epoch and its `size`")
def fifty_rows(step, size, batch_size, process_index, process_count):
    order = np.random.RandomState([0, step // (size // batch_size)]).permutation(50)
    return cut(order, step, size, batch_size, process_index, process_count)


@answers.wrong("It is `size // batch_size` steps long")
def four_steps(step, size, batch_size, process_index, process_count):
    epoch, batch = divmod(step, 4)
    order = np.random.RandomState([0, epoch]).permutation(size)
    return part(order[batch * batch_size :][:batch_size], process_index, process_count)


lengths = {}


@answers.wrong("It is `size // batch_size` steps long")
def steps_kept(step, size, batch_size, process_index, process_count):
    epoch, batch = divmod(step, lengths.setdefault("steps", size // batch_size))
    order = np.random.RandomState([0, epoch]).permutation(size)
    return part(order[batch * batch_size :][:batch_size], process_index, process_count)


@answers.wrong("have other lengths than 6")
def batches_of_twelve(step, size, batch_size, process_index, process_count):
    epoch, batch = divmod(step, size // 12)
    order = np.random.RandomState([0, epoch]).permutation(size)
    return part(order[batch * 12 :][:12], process_index, process_count)


@answers.wrong("not those of each batch")
def shuffled_within_the_batches(step, size, batch_size, process_index, process_count):
    epoch, batch = divmod(step, size // batch_size)
    rows = batch * batch_size + np.random.RandomState([step, epoch]).permutation(batch_size)
    return part(rows, process_index, process_count)


@answers.wrong("not those of each batch")
def batches_of_one_order(step, size, batch_size, process_index, process_count):
    epoch, batch = divmod(step, size // batch_size)
    rows = np.random.RandomState(0).permutation(size)[batch * batch_size :][:batch_size]
    return part(np.random.RandomState(step).permutation(rows), process_index, process_count)


@answers.wrong("some rows never come")
def shuffles_whole_batches_only(step, size, batch_size, process_index, process_count):
    steps = size // batch_size
    order = np.random.RandomState([0, step // steps]).permutation(steps * batch_size)
    return cut(order, step, size, batch_size, process_index, process_count)


last = {}


@answers.wrong()
def kept_until_the_epoch_ends(step, size, batch_size, process_index, process_count):
    epoch = step // (size // batch_size)
    if last.get("epoch") != epoch:
        last.update(epoch=epoch, order=np.random.RandomState([0, epoch]).permutation(size))
    return cut(last["order"], step, size, batch_size, process_index, process_count)


kept_orders = {}


@answers.right
def kept_by_epoch_and_size(step, size, batch_size, process_index, process_count):
    key = epoch, _ = step // (size // batch_size), size
    if key not in kept_orders:
        kept_orders[key] = np.random.RandomState([0, epoch]).permutation(size)
    return cut(kept_orders[key], step, size, batch_size, process_index, process_count)


@functools.cache
def order_of(epoch, size):
    return np.random.default_rng([3, epoch]).permutation(size)


@answers.right
def kept_by_functools(step, size, batch_size, process_index, process_count):
    order = order_of(step // (size // batch_size), size)
    return cut(order, step, size, batch_size, process_index, process_count)


@answers.right
def sorted_numbers(step, size, batch_size, process_index, process_count):
    order = np.argsort(np.random.RandomState(step // (size // batch_size)).rand(size))
    return cut(order, step, size, batch_size, process_index, process_count)


@answers.right
def by_python(step, size, batch_size, process_index, process_count):
    order = list(range(size))
    random.Random(step // (size // batch_size)).shuffle(order)
    return cut(np.array(order), step, size, batch_size, process_index, process_count)


@answers.right
def by_jax(step, size, batch_size, process_index, process_count):
    epoch, batch = divmod(step, size // batch_size)
    key = jax.random.fold_in(jax.random.key(0), epoch)
    order = np.asarray(jax.random.permutation(key, size))
    return order.reshape(-1)[batch * batch_size :][:batch_size].reshape(process_count, -1)[process_index]


@answers.right
def by_numpy(step, size, batch_size, process_index, process_count):
    epoch, batch = step // (size // batch_size), step % (size // batch_size)
    order = np.random.default_rng((7, epoch)).permutation(size)
    mine = batch_size // process_count
    start = batch * batch_size + process_index * mine
    return order[start : start + mine]


answers.equivalent("[0, epoch] -> [1, epoch]", because="any seed of the epoch's gives an order of its own")
answers.equivalent(
    "batch + 1 -> batch + 2",
    because="the parts of the processes are cut from the beginning, and end with the batch",
)
