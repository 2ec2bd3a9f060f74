"""Answers to the exercise randomness.draws."""

import functools

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.randomness.draws import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("It does not depend on `start`")
def one_shape(key, start, count):
    return jax.random.normal(key, (count,))


@answers.wrong("It does not depend on `start`")
def no_start(key, start, count):
    return jax.vmap(lambda step: jax.random.normal(jax.random.fold_in(key, step)))(jnp.arange(count))


@answers.wrong("depends on where one starts")
def fold_start(key, start, count):
    return jax.random.normal(jax.random.fold_in(key, start), (count,))


@answers.wrong("does not depend on the key")
def seeds(key, start, count):
    return jax.vmap(lambda step: jax.random.normal(jax.random.key(step)))(start + jnp.arange(count))


@answers.wrong("a traced number stands where a plain one is needed")
def cut(key, start, count):
    return jax.vmap(jax.random.normal)(jax.random.split(key, start + count)[start:])


@answers.wrong("where Python needs a whole number")
def chain(key, start, count):
    for _ in range(start):
        key, _ = jax.random.split(key)
    numbers = []
    for _ in range(count):
        key, new = jax.random.split(key)
        numbers.append(jax.random.normal(new))
    return jnp.stack(numbers)


@answers.wrong("grows with `count`")
def loop(key, start, count):
    return jnp.stack([jax.random.normal(jax.random.fold_in(key, start + i)) for i in range(count)])


@answers.wrong("mean 0 and standard deviation 1")
def uniform(key, start, count):
    return jax.vmap(lambda step: jax.random.uniform(jax.random.fold_in(key, step)))(start + jnp.arange(count))


@answers.wrong("mean 0 and standard deviation 1")
def scaled(key, start, count):
    return jax.random.normal(key) * (1.0 + start + jnp.arange(count))


@answers.wrong("All steps get the same number")
def same_key(key, start, count):
    return jax.vmap(lambda step: jax.random.normal(key))(start + jnp.arange(count))


@answers.wrong("two get the same number")
def periodic(key, start, count):
    return jnp.take(jax.random.normal(key, (8,)), start + jnp.arange(count), mode="wrap")


@answers.wrong("a table comes to its end")
def table(key, start, count):
    keys = jax.random.split(key, 10_000)
    return jax.vmap(jax.random.normal)(jax.lax.dynamic_slice(keys, (start,), (count,)))


def of(dtype):
    def draws(key, start, count):
        steps = (start + jnp.arange(count)).astype(dtype)
        return jax.vmap(lambda step: jax.random.normal(jax.random.fold_in(key, step)))(steps)

    return draws


answers.wrong("a table comes to its end")(of(jnp.uint8))
answers.wrong("a table comes to its end")(of(jnp.uint16))


@answers.wrong("a table comes to its end")
def clamped(key, start, count):
    return jax.lax.dynamic_slice(jax.random.normal(key, (1000,)), (start,), (count,))


def words(step):
    def draws(key, start, count):
        data = jax.random.key_data(key)

        def one(i):
            return jax.random.normal(jax.random.wrap_key_data(step(data, i.astype(jnp.uint32))))

        return jax.vmap(one)(start + jnp.arange(count))

    return draws


answers.wrong("taken apart into its words")(words(lambda data, i: data + i))
answers.wrong("taken apart into its words")(words(lambda data, i: data + jnp.array([0, 1], jnp.uint32) * i))
answers.wrong("taken apart into its words")(words(lambda data, i: data ^ (i * jnp.uint32(2654435761))))


@answers.wrong("The shape is wrong")
def column(key, start, count):
    return solution(key, start, count)[:, None]


answers.wrong("returned a list")(lambda key, start, count: list(solution(key, start, count)))


# Right ones of unusual style, and wrong ones that look right


@answers.right
def keys_first(key, start, count):
    keys = jax.vmap(functools.partial(jax.random.fold_in, key))(jnp.arange(count) + start)
    return jax.vmap(jax.random.normal)(keys)


@answers.right
def in_a_scan(key, start, count):
    def step(i, _):
        return i + 1, jax.random.normal(jax.random.fold_in(key, i))

    return jax.lax.scan(step, jnp.int32(start), None, length=count)[1]


@answers.right
def in_a_map(key, start, count):
    return jax.lax.map(lambda i: jax.random.normal(jax.random.fold_in(key, i)), start + jnp.arange(count))


@answers.wrong()
def in_pairs(key, start, count):
    def draw(i):
        return jax.random.normal(jax.random.fold_in(key, i // 2)) * (1 - 2 * (i % 2))

    return jax.vmap(draw)(start + jnp.arange(count))


@answers.wrong()
def only_eight(key, start, count):
    return jnp.take(jax.random.normal(key, (8,)), start + jnp.arange(count), mode="wrap")
