"""Shapes for nothing."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(function, *specs):
    return jax.tree.map(lambda leaf: leaf.shape, jax.eval_shape(function, *specs))


def check(shapes):
    traced = []

    def layer(x, w):
        traced.append(isinstance(x, jax.core.Tracer))
        return {"out": jnp.tanh(x @ w), "norm": jnp.sum(x * x)}

    def nested(x, w):
        return {"layers": [(x @ w, x)], "state": None}

    def lookup(table, rows):
        return table[rows]

    def spec(*shape, dtype=jnp.float32):
        return jax.ShapeDtypeStruct(shape, dtype)

    small = spec(2, 3), spec(3, 5)
    symptoms = {
        "missing 1 required positional": "Each spec stands for one argument: hand on `*specs`, all of them.",
        "'ShapeDtypeStruct' and": "A spec is the type of an array, and cannot be computed with: let `jax.eval_shape` call the function.",
        "has no attribute 'shape'": "What the function returns is a tree, here a dict: `jax.tree.map` visits the arrays in it.",
    }

    def known(failure):
        return next((advice for symptom, advice in symptoms.items() if symptom in failure.message), "")

    with checks.says(known):
        _right_shapes(shapes, layer, small, "a layer that returns a dict, of x:(2, 3) and w:(3, 5)")
    if not all(traced):
        raise Failed(
            "You call the function with real arrays, so it computes. Let `jax.eval_shape` call it: it hands in tracers."
        )
    advice = "The function may return anything, a bare array or trees in trees: `jax.tree.map` goes through all leaves."
    _right_shapes(shapes, lambda x: x.T, small[:1], "a transposition of x:(2, 3)", advice)
    advice = "Containers in containers stay what they are, a tuple a tuple, None None: `jax.tree.map` sees to that."
    _right_shapes(
        shapes, nested, small, "a function that returns {'layers': [(x @ w, x)], 'state': None}", advice
    )
    advice = "A spec has a dtype, too, and here it matters: hand on the specs as they are."
    rows = spec(10, 4), spec(7, dtype=jnp.int32)
    text = "table[rows], of table:(10, 4) and rows:(7,), which are int32"
    _right_shapes(shapes, lookup, rows, text, advice)
    # Too large for any memory, even where the system promises more than it has.
    side = 10**9
    advice = "This should work for arrays that fit into no memory, so make none: the types are all that tracing needs."
    _right_shapes(shapes, lambda x: x @ x, [spec(side, side)], "x @ x, of a billion rows and columns", advice)


def _right_shapes(shapes, function, specs, text, advice=""):
    with checks.says(advice):
        got = shapes(function, *specs)
    results = jax.eval_shape(function, *specs)
    expected = jax.tree.map(lambda leaf: leaf.shape, results)
    if _equal_trees(got, expected):
        return
    reason = advice or "The shapes are not right."
    if got is None:
        reason = "Your function returned None: is a `return` missing?"
    for instead, diagnosis in (
        (
            lambda leaf: leaf,
            "You return whole results; only their shapes are asked for: `leaf.shape` for each leaf.",
        ),
        (
            lambda leaf: list(leaf.shape),
            "A shape is a tuple, here it is a list: `leaf.shape` is one already.",
        ),
        (
            lambda leaf: str(leaf.shape),
            "A shape is a tuple of numbers, here it is a string: leave `leaf.shape` as it is.",
        ),
        (lambda leaf: leaf.size, "This is how many elements there are, not the shape: `leaf.shape`."),
        (lambda leaf: leaf.ndim, "This is how many axes there are, not how long each is: `leaf.shape`."),
        (lambda leaf: (leaf.shape, leaf.dtype), "Only the shape is asked for, without the dtype."),
        (jax.typeof, "These are types, a shape and a dtype; only the shape is asked for, `leaf.shape`."),
    ):
        if _equal_trees(got, jax.tree.map(instead, results)):
            reason = diagnosis
    flat = [leaf.shape for leaf in jax.tree.leaves(results)]
    if isinstance(got, (list, tuple)) and _equal_trees(list(got), flat):
        reason = "These are the right shapes, but the tree is gone. Put each where its array stood, with `jax.tree.map`."
    elif isinstance(got, (list, tuple)) and _equal_trees(list(got), [spec.shape for spec in specs]):
        reason = "These are the shapes of what goes in. Asked for are those of what the function returns."
    elif any(isinstance(leaf, (jax.Array, np.ndarray)) for leaf in jax.tree.leaves(got)):
        reason = "A shape is a tuple of numbers, not an array: `leaf.shape` is one already."
    raise Failed(reason, input=text, expected=expected, got=got)


def _equal_trees(one, two):
    if any(isinstance(leaf, (jax.Array, np.ndarray)) for leaf in jax.tree.leaves(one)):
        return False  # arrays and tuples do not like to be compared
    return type(one) is type(two) and bool(one == two)


exercise = Exercise(
    title="Shapes for nothing",
    stars=1,
    minutes=5,
    why="Libraries size their weights this way: run the model on abstract inputs, and allocate nothing.",
    hints=(
        "`jax.eval_shape(function, *specs)` traces the function and returns a tree of `ShapeDtypeStruct`.",
        "A tree of results becomes a tree of shapes by `jax.tree.map`.",
    ),
    solution=solution,
    check=check,
)
