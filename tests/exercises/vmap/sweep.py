"""Answers to the exercise vmap.sweep."""

import functools

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.vmap.sweep import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("The axes are swapped")
def swapped(train, keys, rates):
    return jax.vmap(jax.vmap(train, (None, 0)), (0, None))(keys, rates)


@answers.wrong("was run 6 times")
def loop(train, keys, rates):
    runs = [[train(key, rate) for key in keys] for rate in rates]
    rows = [jax.tree.map(lambda *leaves: jnp.stack(leaves), *row) for row in runs]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)


@answers.wrong("was run 2 times")
def half_loop(train, keys, rates):
    rows = [jax.vmap(train, (0, None))(keys, rate) for rate in rates]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)


@answers.wrong("grows with the number of rates")
def loop_of_jit(train, keys, rates):
    return loop(jax.jit(train), keys, rates)


@answers.wrong("grows with the number of rates")
def half_loop_of_jit(train, keys, rates):
    fast = jax.jit(jax.vmap(train, (0, None)))
    rows = [fast(keys, rate) for rate in rates]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)


@answers.wrong("inconsistent sizes")
def pairs(train, keys, rates):
    return jax.vmap(train)(keys, rates)


@answers.wrong("has been flattened")
def flat(train, keys, rates):
    return jax.vmap(train)(jnp.tile(keys, len(rates)), jnp.repeat(rates, len(keys)))


@answers.wrong("the first key is used for all")
def one_key(train, keys, rates):
    return solution(train, keys[jnp.zeros(len(keys), int)], rates)


@answers.wrong("The first rate is used")
def one_rate(train, keys, rates):
    return solution(train, keys, jnp.full_like(rates, rates[0]))


@answers.wrong("2 rates at once")
def keys_only(train, keys, rates):
    return jax.vmap(train, (0, None))(keys, rates)


@answers.wrong("3 keys at once")
def rates_only(train, keys, rates):
    return jax.vmap(train, (None, 0))(keys, rates)


@answers.wrong("Only a part of what")
def part(train, keys, rates):
    result = solution(train, keys, rates)
    return result["loss"] if isinstance(result, dict) else result


@answers.wrong("`return` missing")
def no_return(train, keys, rates):
    solution(train, keys, rates)


# Right ones of unusual style, and wrong ones that look right


@answers.right
def the_other_way_round(train, keys, rates):
    return jax.vmap(jax.vmap(train, (None, 0)), (0, None), out_axes=1)(keys, rates)


@answers.right
@functools.partial(jax.jit, static_argnums=0)
def jitted(train, keys, rates):
    return jax.vmap(lambda rate: jax.vmap(lambda key: train(key, rate))(keys))(rates)


@answers.right
def flat_and_reshaped(train, keys, rates):
    n, m = len(rates), len(keys)
    flat = jax.vmap(train)(jnp.tile(keys, n), jnp.repeat(rates, m))
    return jax.tree.map(lambda leaf: leaf.reshape(n, m, *leaf.shape[1:]), flat)


@answers.wrong()
def new_keys_for_each_rate(train, keys, rates):
    def run(i, rate):
        return jax.vmap(lambda key: train(jax.random.fold_in(key, i), rate))(keys)

    return jax.vmap(run)(jnp.arange(len(rates)), rates)


answers.equivalent(
    "(0, None) -> (-1, None)",
    "(None, 0) -> (None, -1)",
    because="keys and rates have one axis, so that the first is the last",
)
