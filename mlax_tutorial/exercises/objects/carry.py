"""Carry weights over, by name."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(weights, tree, name_of):
    used = set()

    def filled(path, leaf):
        text = jax.tree_util.keystr(path)
        name = name_of(text)
        if name not in weights:
            raise ValueError(f"{text}: there is no {name} in the file")
        if weights[name].shape != leaf.shape:
            raise ValueError(f"{text} has the shape {leaf.shape}, {name} has {weights[name].shape}")
        used.add(name)
        return jnp.asarray(weights[name], leaf.dtype)

    new = jax.tree_util.tree_map_with_path(filled, tree)
    if left := set(weights) - used:
        raise ValueError(f"nothing takes {sorted(left)}")
    return new


def name_of(text):
    """`['layers'][2]['kernel']` is `layer_2.kernel` in the file."""
    if not isinstance(text, str):
        raise Failed("`name_of` wants the path as text: `jax.tree_util.keystr(path)`.")
    return text.removeprefix("['layers'][").replace("]['", ".", 1).removesuffix("']").join(("layer_", ""))


def example(layers=12, dtype=jnp.float32):
    tree = {
        "layers": [{"kernel": jnp.zeros((2, 2), dtype), "bias": jnp.zeros(2, dtype)} for _ in range(layers)]
    }
    weights = {}
    for i in reversed(range(layers)):
        weights[f"layer_{i}.kernel"] = i + np.float32([[0.5, 0.25], [0.75, 0.0]])
        weights[f"layer_{i}.bias"] = i + np.float32([0.0, 0.5])
    return weights, tree


def check(carry):
    _right(carry, 12)
    small, tree = example(2)
    got = carry(small, example(2, jnp.bfloat16)[1], name_of)
    if {str(leaf.dtype) for leaf in jax.tree.leaves(got)} != {"bfloat16"}:
        raise Failed(
            "The leaves should have the dtypes of `tree`, here bfloat16.", got=jax.tree.leaves(got)[0]
        )
    mixed = {"layers": [{"kernel": jnp.zeros((2, 2), jnp.bfloat16), "bias": jnp.zeros(2)} for _ in range(2)]}
    for path, leaf in jax.tree_util.tree_leaves_with_path(carry(small, mixed, name_of)):
        wanted = mixed["layers"][0][path[-1].key].dtype
        if leaf.dtype != wanted:
            said = f"Each leaf keeps its own dtype: {jax.tree_util.keystr(path)} is {wanted} in `tree`."
            raise Failed(said, expected=wanted, got=leaf.dtype)
    _other_names(carry)
    missing = {name: value for name, value in small.items() if name != "layer_1.kernel"}
    _refuses(carry, missing, tree, "['layers'][1]['kernel']", "An array that is not in the file")
    shape = small | {"layer_0.kernel": np.ones((1, 2), np.float32)}
    _refuses(
        carry, shape, tree, "['layers'][0]['kernel']", "An array of another shape, even one that broadcasts,"
    )
    same = small | {"layer_0.kernel": np.ones(4, np.float32)}
    _refuses(
        carry, same, tree, "['layers'][0]['kernel']", "An array of another shape, even one of the same size,"
    )
    more = small | {"layer_2.bias": np.ones(2, np.float32)}
    _refuses(carry, more, tree, "layer_2.bias", "An array of the file that nothing takes")
    checks.pure(carry, small, tree, name_of)


def _right(carry, layers):
    weights, tree = example(layers)
    got = carry(given := dict(weights), tree, name_of)
    if given.keys() != weights.keys():
        raise Failed("The caller's dict of weights is changed: make a copy if you take arrays out of one.")
    checks.returned(got)
    if jax.tree.structure(got) != jax.tree.structure(tree):
        raise Failed("The result should be a tree of the same structure as `tree`.", got=got)
    for path, leaf in jax.tree_util.tree_leaves_with_path(got):
        text = jax.tree_util.keystr(path)
        expected = weights[name_of(text)]
        if np.shape(leaf) != expected.shape or not np.array_equal(leaf, expected):
            said = f"Another array than `{name_of(text)}` of the file is at `{text}`."
            values = [name for name, value in weights.items() if np.array_equal(value, leaf)]
            if values:
                said += f" It is `{values[0]}`: go by names, not by the order of leaves or of the file."
            raise Failed(said, expected=expected, got=leaf)
        if not isinstance(leaf, jax.Array):
            raise Failed(
                "The leaves should be arrays of JAX, not of NumPy: `jnp.asarray(array, leaf.dtype)`.",
                got=leaf,
            )


def _other_names(carry):
    """A tree of another kind, with a file that has the paths as names."""
    tree = {"b": (jnp.zeros(2), jnp.zeros(())), "a": jnp.zeros(2)}
    weights = {
        "['b'][0]": np.float32([1, 2]),
        "['a']": np.float32([3, 4]),
        "['b'][1]": np.array(5.0, np.float32),
    }
    try:
        got = carry(dict(weights), tree, lambda text: text)
    except Exception:
        said = "A file that names its arrays by their paths, with `name_of = lambda path: path`, is refused."
        raise Failed(f"{said} Go by `name_of`, for any tree.") from None
    expected = {"b": (weights["['b'][0]"], weights["['b'][1]"]), "a": weights["['a']"]}
    if jax.tree.structure(got) != jax.tree.structure(tree) or not all(
        map(np.array_equal, jax.tree.leaves(got), jax.tree.leaves(expected))
    ):
        raise Failed("This is wrong for a tree with a tuple in it.", expected=expected, got=got)


def _refuses(carry, weights, tree, says, what):
    try:
        got = carry(weights, tree, name_of)
    except Exception as error:
        error = getattr(error, "error", error)
        if not isinstance(error, ValueError):
            raise Failed(
                f"{what} should be refused with a ValueError, but your function raised {type(error).__name__}."
            ) from None
        if says not in str(error):
            raise Failed(
                f"{what} is refused, as it should be, but the message does not contain `{says}`."
            ) from None
        return
    raise Failed(f"{what} should be refused with a ValueError.", got=got)


exercise = Exercise(
    title="Carry weights over",
    stars=2,
    minutes=12,
    why="Shapes agree for many wrong orders; names do not. A missing, misshapen or left-over array is an error, never a guess.",
    hints=(
        "`jax.tree_util.tree_map_with_path(f, tree)` calls `f(path, leaf)` and puts what it returns in the leaf's place.",
        "Collect the names that were used in a set; at the end `set(weights) - used` is what is left over.",
    ),
    solution=solution,
    check=check,
)
