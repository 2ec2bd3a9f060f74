"""Which trees are traced again?"""

import collections

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, checks

solution = {
    "a": False, "b": True, "c": True, "d": True, "e": False, "f": True, "g": True, "h": True, "i": False,
}  # fmt: skip


def check(given):
    before = {"w": jnp.ones((2, 3)), "b": 0.5, "n": None}
    trees = {
        "a": {"n": None, "b": -7.0, "w": jnp.zeros((2, 3))},
        "b": {"w": jnp.ones((3, 2)), "b": 0.5, "n": None},
        "c": {"w": jnp.ones((2, 3)), "b": 0.5},
        "d": {"w": jnp.ones((2, 3)), "b": 1, "n": None},
        "e": {"w": np.zeros((2, 3), np.float32), "b": 0.5, "n": None},
        "f": {"w": jnp.ones((2, 3)), "b": 0.5, "n": 0.0},
        "g": {"w": [jnp.ones(3), jnp.ones(3)], "b": 0.5, "n": None},
        "h": collections.OrderedDict(b=0.5, n=None, w=jnp.ones((2, 3))),
        "i": {"w": jnp.nan * jnp.ones((2, 3)), "b": float("inf"), "n": None},
    }

    def is_traced(tree):
        runs = []
        jitted = jax.jit(lambda tree: runs.append(1) or 0.0)
        jitted(before)
        jitted(tree)
        return len(runs) == 2

    why = {
        "a": {True: "Dicts are sorted by key, so their order does not matter, and values never do."},
        "b": {False: "The shape of a leaf is in the key, even where the number of elements is the same."},
        "c": {False: "None has no leaves, but its key is a part of the structure."},
        "d": {False: "An int becomes int32 and a float becomes float32: another dtype."},
        "e": {True: "What counts is the type of the leaf, float32[2,3], not who made it."},
        "f": {False: "None was an empty container, and now there is a leaf."},
        "g": {False: "As many numbers, but a list of two leaves instead of one leaf: another structure."},
        "h": {False: "An OrderedDict is another container than a dict, even with the same keys."},
        "i": {True: "Values are never in the key, not even nan and infinity."},
    }
    checks.answers(given, {name: is_traced(tree) for name, tree in trees.items()}, why)


exercise = Exercise(
    title="Which trees are traced again?",
    stars=2,
    minutes=5,
    why="A structure that changes from call to call costs a compilation each time, and nothing but the clock tells.",
    hints=(
        "Compare the structure first, with all containers and keys, then each leaf's shape and dtype.",
        "A float of Python's is a weakly typed float32; an int is a weakly typed int32.",
    ),
    solution=solution,
    check=check,
)
