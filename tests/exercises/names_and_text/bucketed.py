"""Answers to the exercise names_and_text.bucketed."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.names_and_text.bucketed import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


def of_bucket(lengths, bounds, number):
    return np.flatnonzero(np.searchsorted(bounds, lengths) == number)


def cut(rows, size):
    return [rows[i : i + size] for i in range(0, len(rows) - size + 1, size)]


@answers.wrong("in the same order for every key")
def short_ones_first(key, lengths, bounds, batch_size):
    batches = []
    for number, each in enumerate(jax.random.split(key, len(bounds))):
        rows = of_bucket(lengths, bounds, number)
        rows = rows[np.asarray(jax.random.permutation(each, len(rows)))]
        batches += [(part, bounds[number]) for part in cut(rows, batch_size)]
    return batches


@answers.wrong("each holds the same examples in every epoch")
def only_the_batches(key, lengths, bounds, batch_size):
    batches = [
        (part, bound)
        for number, bound in enumerate(bounds)
        for part in cut(of_bucket(lengths, bounds, number), batch_size)
    ]
    return [batches[i] for i in jax.random.permutation(key, len(batches))]


@answers.wrong("nothing is shuffled by it")
def in_order(key, lengths, bounds, batch_size):
    return [
        (part, bound)
        for number, bound in enumerate(bounds)
        for part in cut(of_bucket(lengths, bounds, number), batch_size)
    ]


@answers.wrong("all randomness should come from the key")
def by_numpy(key, lengths, bounds, batch_size):
    random, batches = np.random.default_rng(), []
    for number, bound in enumerate(bounds):
        rows = random.permutation(of_bucket(lengths, bounds, number))
        batches += [(part, bound) for part in cut(rows, batch_size)]
    random.shuffle(batches)
    return batches


@answers.wrong("has one shape; this one has the shape")
def keeps_the_rest(key, lengths, bounds, batch_size):
    order_key, *keys = jax.random.split(key, len(bounds) + 1)
    batches = []
    for number, each in enumerate(keys):
        rows = of_bucket(lengths, bounds, number)
        rows = rows[np.asarray(jax.random.permutation(each, len(rows)))]
        batches += [(rows[i : i + batch_size], bounds[number]) for i in range(0, len(rows), batch_size)]
    return [batches[i] for i in jax.random.permutation(order_key, len(batches))]


@answers.wrong("it would be cut")
def one_too_small(key, lengths, bounds, batch_size):
    order_key, *keys = jax.random.split(key, len(bounds) + 1)
    bucket, batches = np.searchsorted(bounds, lengths, side="right"), []
    for number, each in enumerate(keys, start=1):
        rows = np.flatnonzero(bucket == number)
        rows = rows[np.asarray(jax.random.permutation(each, len(rows)))]
        batches += [(part, bounds[number - 1]) for part in cut(rows, batch_size)]
    return [batches[i] for i in jax.random.permutation(order_key, len(batches))]


@answers.wrong("fits into a smaller bound")
def side_right(key, lengths, bounds, batch_size):
    order_key, *keys = jax.random.split(key, len(bounds) + 1)
    bucket, batches = np.searchsorted(bounds, lengths, side="right"), []
    for number, each in enumerate(keys):
        rows = np.flatnonzero(np.minimum(bucket, len(bounds) - 1) == number)
        rows = rows[np.asarray(jax.random.permutation(each, len(rows)))]
        batches += [(part, bounds[number]) for part in cut(rows, batch_size)]
    return [batches[i] for i in jax.random.permutation(order_key, len(batches))]


@answers.wrong("is none of the bounds")
def to_their_longest(key, lengths, bounds, batch_size):
    return [(rows, lengths[rows].max() + 1) for rows, _ in solution(key, lengths, bounds, batch_size)]


@answers.wrong("comes twice in one epoch")
def with_replacement(key, lengths, bounds, batch_size):
    order_key, *keys = jax.random.split(key, len(bounds) + 1)
    batches = []
    for number, each in enumerate(keys):
        rows = of_bucket(lengths, bounds, number)
        if len(rows):
            rows = rows[np.asarray(jax.random.randint(each, (len(rows),), 0, len(rows)))]
        batches += [(part, bounds[number]) for part in cut(rows, batch_size)]
    return [batches[i] for i in jax.random.permutation(order_key, len(batches))]


@answers.wrong("all buckets are shuffled alike")
def one_key_for_all(key, lengths, bounds, batch_size):
    batches = []
    for number, bound in enumerate(bounds):
        rows = of_bucket(lengths, bounds, number)
        rows = rows[np.asarray(jax.random.permutation(key, len(rows)))]
        batches += [(part, bound) for part in cut(rows, batch_size)]
    return [batches[i] for i in jax.random.permutation(key, len(batches))]


@answers.wrong("`return` missing")
def nothing(key, lengths, bounds, batch_size):
    solution(key, lengths, bounds, batch_size)


# Right ones of unusual style


@answers.right
def shuffles_first(key, lengths, bounds, batch_size):
    first, second = jax.random.split(key)
    rows = np.asarray(jax.random.permutation(first, len(lengths)))
    bucket = np.searchsorted(bounds, np.asarray(lengths)[rows])
    batches = [
        (jnp.asarray(part), bound)
        for number, bound in enumerate(bounds)
        for part in cut(rows[bucket == number], batch_size)
    ]
    return [batches[int(i)] for i in jax.random.permutation(second, len(batches))]


@answers.right
def by_comparison(key, lengths, bounds, batch_size):
    batches, low = [], 0
    for number, high in enumerate(bounds):
        rows = np.flatnonzero((lengths > low) & (lengths <= high))
        order = jax.random.permutation(jax.random.fold_in(key, number), len(rows))
        batches += [(part, high) for part in cut(rows[np.asarray(order)], batch_size)]
        low = high
    order = jax.random.permutation(jax.random.fold_in(key, len(bounds)), len(batches))
    return [batches[i] for i in np.asarray(order)]


@answers.wrong("A key that was split is used up")
def the_first_key_again(key, lengths, bounds, batch_size):
    batches = []
    for number, each in enumerate(jax.random.split(key, len(bounds))):
        rows = of_bucket(lengths, bounds, number)
        rows = rows[np.asarray(jax.random.permutation(each, len(rows)))]
        batches += [(part, bounds[number]) for part in cut(rows, batch_size)]
    return [batches[i] for i in np.asarray(jax.random.permutation(key, len(batches)))]


@answers.wrong("in the same order for every key")
def one_order_for_ever(key, lengths, bounds, batch_size):
    batches = []
    for number, each in enumerate(jax.random.split(key, len(bounds))):
        rows = of_bucket(lengths, bounds, number)
        rows = rows[np.asarray(jax.random.permutation(each, len(rows)))]
        batches += [(part, bounds[number]) for part in cut(rows, batch_size)]
    np.random.default_rng(0).shuffle(batches)
    return batches


@answers.wrong("come in a row")
def whole_buckets(key, lengths, bounds, batch_size):
    order_key, *keys = jax.random.split(key, len(bounds) + 1)
    batches = []
    for number in np.asarray(jax.random.permutation(order_key, len(bounds))):
        rows = of_bucket(lengths, bounds, number)
        rows = rows[np.asarray(jax.random.permutation(keys[number], len(rows)))]
        batches += [(part, bounds[number]) for part in cut(rows, batch_size)]
    return batches


@answers.wrong("come in a row")
def whole_buckets_of_fixed_batches(key, lengths, bounds, batch_size):
    return [
        (part, bounds[number])
        for number in np.asarray(jax.random.permutation(key, len(bounds)))
        for part in cut(of_bucket(lengths, bounds, number), batch_size)
    ]


answers.equivalent("len(bounds) + 1 -> len(bounds) + 2", because="the last key is left over")
answers.equivalent("-1 -> -2", because="NumPy takes any negative length for the one that it is to find")
