"""All rates times all keys, in one program."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.vmap._growth import does_not_grow, equations


def solution(train, keys, rates):
    over_keys = jax.vmap(train, in_axes=(0, None))
    return jax.vmap(over_keys, in_axes=(None, 0))(keys, rates)


def check(sweep):
    calls = []

    @jax.jit
    def plain(key, rate):
        weights = jax.random.uniform(key, (2,))
        return {"loss": rate * jnp.sum(weights**2), "weights": weights - rate}

    def train(key, rate):
        calls.append((jnp.shape(key), jnp.shape(rate)))
        if calls[-1] != ((), ()):
            return {"loss": jnp.zeros(()), "weights": jnp.zeros(2)}
        return plain(key, rate)

    keys, rates = jax.random.split(jax.random.key(0), 3), jax.device_put(np.float32([0.1, 0.5]))
    expected = solution(plain, keys, rates)
    shown = {"input": "3 keys, rates = [0.1, 0.5], and a `train` that returns a dict"}
    got = sweep(train, keys, rates)
    checks.returned(got, **shown)
    if not calls:
        raise Failed("Your function does not call `train`.")
    for key_shape, rate_shape in calls:
        if key_shape != ():
            raise Failed(f"`train` is called with {key_shape[0]} keys at once; it takes one.")
        if rate_shape != ():
            raise Failed(f"`train` is called with {rate_shape[0]} rates at once; it takes one.")
    if len(calls) > 1:
        raise Failed(
            f"`train` was run {len(calls)} times by Python for this table. Mapped over both arguments it is traced once."
        )
    known = (
        (
            lambda: jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), expected),
            "The axes are swapped: rates first, keys second. The axis of the outer map comes first.",
        ),
        (
            lambda: jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), expected),
            "The table has been flattened: the result has an axis for the rates and one for the keys.",
        ),
        (
            lambda: jax.vmap(jax.vmap(plain, (0, None)), (None, 0))(keys[jnp.array([0, 0, 0])], rates),
            "All runs of a rate are equal: the first key is used for all of them.",
        ),
        (
            lambda: jax.vmap(jax.vmap(plain, (0, None)), (None, 0))(keys, rates[jnp.array([0, 0])]),
            "The first rate is used in all runs.",
        ),
        (
            lambda: expected["loss"],
            "Only a part of what `train` returns is handed on; return all its leaves.",
        ),
    )
    checks.same(got, expected, recognise=known, **shown)
    pair = jax.random.wrap_key_data(np.asarray(jax.random.key_data(keys))[1:])
    more = pair, jax.device_put(np.float32([0.1, 0.2, 0.3, 0.4]))
    number = jax.jit(lambda key, rate: rate + jax.random.uniform(key))
    checks.same(
        sweep(number, *more),
        solution(number, *more),
        input="2 keys, 4 rates, a `train` that returns a number",
    )
    same = pair, jax.device_put(np.float32([0.1, 0.2]))
    checks.same(sweep(plain, *same), solution(plain, *same), input="2 keys and 2 rates")
    for what, tables in (("the number of rates", ((2, 2), (2, 9))), ("the number of keys", ((2, 2), (9, 2)))):
        sizes = [
            equations(
                lambda *both: sweep(plain, *both),
                jax.ShapeDtypeStruct((k,), keys.dtype),
                jax.ShapeDtypeStruct((r,), rates.dtype),
            )
            for k, r in tables
        ]
        does_not_grow(sizes, what)


exercise = Exercise(
    title="All rates times all keys, in one program",
    stars=2,
    minutes=10,
    why="A grid of experiments is two maps of one training function, and the function need not know.",
    hints=(
        "First one map: over the keys, with the rate shared. What are its `in_axes`?",
        "Map the result again, over the rates, with the keys shared. The outer map's axis comes first.",
    ),
    solution=solution,
    check=check,
)
