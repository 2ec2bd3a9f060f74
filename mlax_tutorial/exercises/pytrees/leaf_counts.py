"""How many leaves?"""

import jax
import jax.numpy as jnp

from mlax_tutorial.checking import Exercise, checks
from mlax_tutorial.exercises.pytrees._trees import Point

solution = {"a": 2, "b": 1, "c": 1, "d": 0, "e": 2, "f": 3, "g": 2, "h": 4}


def check(given):
    trees = {
        "a": [jnp.ones(3), jnp.ones((3, 3))],
        "b": {"x": None, "y": (1.0, None)},
        "c": jnp.ones((2, 3)),
        "d": {"a": {}, "b": [], "c": ()},
        "e": [{1, 2, 3}, "abc"],
        "f": Point(1.0, (2.0, 3.0)),
        "g": [range(3), {"r": range(3)}],
        "h": {"model": [{"w": 1.0}, {"w": 2.0, "b": 3.0}], "step": 0},
    }
    numbers = "An array is one leaf, however many numbers it holds."
    none = "None is a container with nothing in it: it is no leaf."
    why = {
        "a": {12: numbers, 4: numbers, 3: "The list is a container: only what is in it are leaves."},
        "b": {2: none, 3: none, 4: none},
        "c": {6: numbers, 2: numbers, 3: numbers, 0: "An array outside any container is a tree of one leaf."},
        "d": {
            3: "An empty container holds no leaf, and is none.",
            1: "An empty container holds no leaf, and is none.",
        },
        "e": {
            1: "The set and the text are one leaf each: neither is in the registry.",
            4: "A set is not in the registry, so it is not opened: it is a leaf as a whole.",
            6: "Neither sets nor texts are in the registry, so they are not opened.",
            0: "Whatever is no container is a leaf, a number or not.",
        },
        "f": {
            1: "Named tuples are containers, like other tuples.",
            2: "The second of the two is a tuple, and is opened, too.",
        },
        "g": {
            6: "A range is not in the registry, so it is not opened: it is a leaf as a whole.",
            0: "A range is not in the registry: it is no container, but a leaf.",
        },
        "h": {
            2: "The list and the dicts in it are opened, too.",
            3: "Look again: `step` is a leaf as well, and so are three weights.",
            5: "Count what is at the ends only: the containers themselves are no leaves.",
        },
    }
    checks.answers(given, {name: len(jax.tree.leaves(tree)) for name, tree in trees.items()}, why)


exercise = Exercise(
    title="How many leaves?",
    stars=1,
    minutes=5,
    why="What is a leaf decides what jax.tree.map calls you with, and what jit takes for an array.",
    hints=(
        "Open what is in the registry: lists, tuples, dicts, named tuples, None. Count what you cannot open.",
        "None and empty containers add nothing. A set and a range cannot be opened.",
    ),
    solution=solution,
    check=check,
)
