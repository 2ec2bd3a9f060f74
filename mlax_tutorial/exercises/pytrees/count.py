"""Count parameters by name."""

import operator

import jax
import jax.numpy as jnp

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.pytrees._trees import Box, Point, Unnamed


def solution(tree, name):
    total = 0
    for path, leaf in jax.tree.leaves_with_path(tree):
        if any(isinstance(step, jax.tree_util.DictKey) and step.key == name for step in path):
            total += leaf.size
    return total


def check(count):
    def linear(*shape, dtype=jnp.float32):
        return {"kernel": jnp.ones(shape, dtype), "bias": jnp.zeros(shape[-1], dtype)}

    flat = linear(4, 3)
    deep = {"encoder": [linear(2, 5), {"mlp": (linear(5, 7), linear(7, 2))}], "head": linear(2, 3)}
    names = {
        "bias": jnp.ones(2),
        "bias_scale": jnp.ones(5),
        "unbias": {"w": jnp.ones(3)},
        "scale": jnp.ones(4),
    }
    scalars = {"scale": jnp.ones(()), "shift": None, "layer": {"scale": jnp.ones(())}}
    again = {"block": {"block": {"w": jnp.ones(4)}, "b": jnp.ones(1)}}
    numbered = {"heads": {0: {"w": jnp.ones(2)}, 1: {"w": jnp.ones(3)}}, "w": (jnp.ones(4), jnp.ones(5))}
    mixed = {"table": jnp.ones((3, 2), jnp.bfloat16), "ids": jnp.ones(7, jnp.int32)}
    fields = {"x": jnp.ones(2), "point": Point(jnp.ones(3), {"y": jnp.ones(4)}), "list": [jnp.ones(5)]}
    field = "Only the key of a dict is a name here: a field of a named tuple, or a place in a list, is none."
    boxed = {"box": Box({"bias": jnp.ones(2), "kernel": jnp.ones((3, 2))}), "bias": jnp.ones(3)}
    places = {"heads": {1: jnp.ones(2)}, "list": [jnp.ones(3), (jnp.ones(4), jnp.ones(5))]}
    place = (
        "Place 1 of a list is not the key 1, though the text of a path shows both as `[1]`: look at the steps, "
        "not at their text."
    )
    unnamed = {"heads": {1: jnp.ones(2)}, "object": Unnamed(jnp.ones(3), jnp.ones(4))}
    child = (
        "Child 1 of an object is not the key 1 of a dict. Where a class was registered without keys, the steps to its children "
        "have a `key`, too: it is their number. Only a `jax.tree_util.DictKey` is a step through a dict."
    )
    opened = (
        "Registered classes are containers, too: `jax.tree.leaves_with_path` opens whatever is registered."
    )
    everywhere = (
        "A name may stand anywhere on the path, first, last or between: all that lies below it counts."
    )
    cases = [
        (flat, "kernel", "a dict with two arrays", "", flat),
        (deep, "bias", "a tree of dicts, lists and tuples", everywhere, None),
        (deep, "encoder", "a tree of dicts, lists and tuples", everywhere, None),
        (deep, "mlp", "a tree of dicts, lists and tuples", everywhere, None),
        (deep, "decoder", "a tree without this name", "No leaf lies below such a name: 0.", None),
        (names, "bias", "names that hold others", "Only the whole name counts, not a part of another name.", names),
        (scalars, "scale", "arrays without axes", "An array without axes holds one number.", scalars),
        (again, "block", "a name below the same name", "A leaf counts once, however often the name is on its path.", again),
        (numbered, "w", "dicts with numbers as keys", "Keys may be numbers, and a tuple may lie below the name.", numbered),
        (mixed, "table", "an array of bfloat16", "Numbers are counted, not bytes.", mixed),
        (fields, "x", "a dict with a named tuple and a list in it", field, None),
        (fields, "0", "a dict with a named tuple and a list in it", field, None),
        (numbered, "1", "dicts with numbers as keys", 'The key 1 is another key than "1": compare the keys, not their text.', numbered),
        (numbered["heads"], 1, "a dict with numbers as keys", "The name may be a number, too: compare it with the key itself.", numbered["heads"]),
        (places, 1, "a dict with the key 1, and a list", place, places),
        (unnamed, 1, "a dict with the key 1, and an object of a class that was registered without keys", child, None),
        (boxed, "bias", "a dict with an object of a registered class in it", opened, None),
    ]  # fmt: skip
    for number, (tree, name, text, advice, shown) in enumerate(cases):
        _right_count(count, tree, name, text, advice, shown)
        if not number:  # the trees of later cases are used more than once
            checks.pure(count, linear(4, 3), "kernel")
    huge = {"table": jax.ShapeDtypeStruct((10**6, 10**6), jnp.float32)}
    text = "a placeholder for an array of a million rows and columns"
    advice = (
        "A placeholder has a shape and no numbers, and NumPy takes it for a single object: count by `leaf.shape`, and "
        "compute nothing."
    )
    _right_count(count, huge, "table", text, advice, huge)


def _right_count(count, tree, name, text, advice, tree_shown):
    shown = {"input": f"{text}, and name = {name!r}"}
    if tree_shown is not None:
        shown["input"] = {"tree": tree_shown, "name": name}
    expected = solution(tree, name)
    with checks.says(advice):
        got = count(tree, name)
    checks.returned(got, expected=expected, **shown)
    try:
        number = None if isinstance(got, (bool, jax.Array)) else operator.index(got)
    except TypeError:
        number = None
    if number == expected:
        return
    shown |= {"expected": expected, "got": got}
    if number is None:
        raise Failed(
            "Return an `int`, by multiplying the sizes of the axes: `leaf.size`, or `math.prod(leaf.shape)`.",
            **shown,
        )
    leaves = jax.tree.leaves(tree)
    below = [
        leaf
        for path, leaf in jax.tree.leaves_with_path(tree)
        if any(isinstance(step, jax.tree_util.DictKey) and step.key == name for step in path)
    ]
    if number == sum(leaf.size for leaf in leaves):
        advice = "You count all numbers, whatever the paths of their leaves."
    elif number == len(below) and all(isinstance(leaf, jax.Array) for leaf in below):
        advice = "This is how many leaves there are; asked for is how many numbers they hold."
    elif number == sum(leaf.nbytes if hasattr(leaf, "nbytes") else -1 for leaf in below):
        advice = "Numbers are counted, not bytes."
    elif number == sum(leaf.shape[0] if leaf.ndim else 1 for leaf in below):
        advice = "This counts rows: `len` of an array is the size of its first axis."
    raise Failed(advice or "This is not how many there are.", **shown)


exercise = Exercise(
    title="Count parameters by name",
    stars=2,
    minutes=10,
    why="To freeze, decay or report a part of a model you choose leaves by their paths, as you did here.",
    hints=(
        "`jax.tree.leaves_with_path(tree)` gives pairs of a path and a leaf. A path is a tuple of steps.",
        "The step through a dict is a `jax.tree_util.DictKey`, and has the key as `step.key`; steps through other containers are of other classes.",
        "A leaf counts if any of its steps has the name. It holds `leaf.size` numbers.",
    ),
    solution=solution,
    check=check,
)  # fmt: skip
