"""How large is it?"""

import math

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, guarding


def solution(tree):
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(tree))


def check(function):
    trees = [
        {"kernel": jnp.zeros((3, 5)), "bias": jnp.zeros(5)},
        (
            (),
            {"kernel": jnp.zeros((4, 6))},
            {"bias": jnp.zeros(6)},
            (),
            [jnp.zeros((2, 3, 4)), {"scale": jnp.ones(())}],
        ),
        [{"kernel": jnp.zeros((3, 4)), "bias": jnp.zeros(4)} for _ in range(2)],  # the same shapes twice
        (),
    ]
    for tree in trees:
        shapes = jax.tree.map(lambda leaf: leaf.shape, tree)
        _right_count(
            function, tree, f"a tree of arrays with the shapes {shapes}" if tree else "an empty tree, ()"
        )
    _any_tree(function)
    half = {"kernel": jnp.zeros((3, 5), jnp.bfloat16)}
    _right_count(function, half, "a tree with one array, a (3, 5) kernel in bfloat16")
    # More than any memory holds: shapes alone must do.
    abstract = {
        "kernel": jax.ShapeDtypeStruct((1_200_000, 1_000_003), jnp.float32),
        "bias": jax.ShapeDtypeStruct((1_000_003,), jnp.float32),
    }
    try:
        got = function(abstract)
    except guarding.Raised as raised:
        raise Failed(
            "For a tree of `jax.ShapeDtypeStruct`, shapes without arrays as `jax.eval_shape` gives them, your code raised "
            f"{guarding.describe_error(raised.error)}\nThe shape of a leaf is all that is needed.",
            shown=guarding.lines_of(raised.error),
        ) from None
    _compare_count(got, abstract, "only shapes, no arrays: kernel (1200000, 1000003), bias (1000003,)")


def _any_tree(function):
    """JAX knows more trees than dicts, lists and tuples: None, which holds nothing, and classes of one's own."""
    without, partial = (
        {"kernel": jnp.zeros((3, 5)), "bias": None},
        jax.tree_util.Partial(jnp.dot, jnp.zeros((3, 4))),
    )
    for tree, described in [
        (without, 'a dict with a (3, 5) "kernel" and None for its "bias"'),
        (partial, "`jax.tree_util.Partial(jnp.dot, array)`, a tree with one array, of shape (3, 4)"),
    ]:
        with checks.says(
            f"For JAX this is a tree, too: {described}. `jax.tree.leaves` finds the arrays in any."
        ):
            got = function(tree)
        _compare_count(got, tree, described)


def _right_count(function, tree, described):
    _compare_count(function(tree), tree, described)


def _compare_count(got, tree, described):
    leaves, expected = jax.tree.leaves(tree), solution(tree)
    shown = {"input": described, "expected": expected, "got": got}
    checks.returned(got, **shown)
    if np.ndim(got) or not np.issubdtype(np.asarray(got).dtype, np.integer):
        raise Failed(
            "One whole number is asked for, an integer. (`np.prod(())` is the float 1.0; `math.prod(())` is the integer 1.)",
            **shown,
        )
    if int(got) == expected:
        return
    if expected > 10**12 and abs(int(got) / expected - 1) < 1e-5:
        raise Failed(
            "Almost: the last digits are lost. A float32 holds about seven of them; Python's integers hold all.",
            **shown,
        )
    recognise = [
        (len(leaves), "This is the number of arrays, not of the numbers in them."),
        (
            sum(leaf.size * leaf.dtype.itemsize for leaf in leaves),
            "These are bytes: count numbers, whatever their size.",
        ),
        (
            sum(sum(leaf.shape) for leaf in leaves),
            "An array has the *product* of its axes' sizes in numbers, not the sum.",
        ),
        (
            sum(leaf.shape[0] for leaf in leaves if leaf.shape),
            "`len` of an array is the size of its first axis only.",
        ),
        (
            sum(math.prod(leaf.shape) for leaf in leaves if len(leaf.shape) > 1),
            "Only arrays with two axes or more are counted: a bias is a parameter, too.",
        ),
        (
            sum(math.prod(leaf.shape) for leaf in leaves if leaf.shape),
            "An array of shape () holds one number, not none.",
        ),
        (
            sum(math.prod(shape) for shape in {leaf.shape for leaf in leaves}),
            "Each shape is counted once, however many arrays have it.",
        ),
    ]
    said = [text for wrong, text in recognise if wrong == int(got)]
    lead = f"{said[0]}\n" if len(said) == 1 else ""
    raise Failed(f"{lead}The count is wrong.", **shown)


exercise = Exercise(
    title="How large is it?",
    stars=1,
    minutes=5,
    why="Shapes are known before there is any memory for the arrays: so you can count the weights of a network that is too large for any memory.",
    hints=(
        "`jax.tree.leaves(tree)` is a list of all arrays in a tree, however deep they are.",
        "An array of shape (3, 5) holds 3 times 5 numbers: `math.prod(shape)`. Of shape (), it holds one.",
    ),
    solution=solution,
    check=check,
)
