"""Are these the same numbers?"""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, checks

solution = {"a": True, "b": True, "c": True, "d": False, "e": True, "f": False}


def check(given):
    key = jax.random.key(3)

    def three(key):
        return jax.random.normal(key, (3,))

    def close(one, two):
        return bool(np.allclose(one, two, rtol=1e-5))

    @jax.jit
    def jitted(key):  # in one program, as each takes long to compile
        with_vmap = jax.vmap(jax.random.normal)(jax.random.split(key, 3))
        halves = jax.random.uniform(key, (3,), jnp.float16)
        return three(key), with_vmap, jax.random.uniform(key, (3,)), halves

    before = jax.random.key_data(key)
    drawn = three(key)
    under_jit, with_vmap, uniform, halves = jitted(key)
    wide = jax.random.key_data(jax.random.split(key, 3))
    pairs = {
        "a": (drawn, three(key)),
        "b": (drawn, under_jit),
        "c": (before, jax.random.key_data(key)),
        "d": (drawn, with_vmap),
        "e": (wide, jax.random.key_data(jax.random.split(key, 3))),
        "f": (uniform, halves),
    }
    expected = {name: close(*pair) for name, pair in pairs.items()}
    why = {
        "a": {False: "A random function has no memory: the same key and shape give the same numbers."},
        "b": {
            False: "`jit` changes how a function is run, not what it returns; its randomness is in the key."
        },
        "c": {False: "A key is an array, and arrays do not change. To draw from it leaves it as it is."},
        "d": {
            True: "Three numbers from one key, or one from each of three keys: there is no sequential equivalence."
        },
        "e": {False: "`split` is a plain function, too: the same key is split into the same keys."},
        "f": {
            True: "Each dtype is made of as many bits as it needs, so these are other numbers, not rounded ones."
        },
    }
    checks.answers(given, expected, why)


exercise = Exercise(
    title="Are these the same numbers?",
    stars=1,
    minutes=5,
    why="A random function is a plain function of its key, shape and dtype: what is equal and what is not follows from that.",
    hints=(
        "A random function has no memory: ask whether all its arguments are equal.",
        "Does anything in JAX ever change an array, or a key, in place?",
        "Two lines are False: one uses other keys, one another dtype.",
    ),
    solution=solution,
    check=check,
)
