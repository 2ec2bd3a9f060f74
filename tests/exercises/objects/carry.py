"""Answers to the exercise objects.carry."""

import jax
import jax.numpy as jnp
from jax.tree_util import keystr, tree_leaves_with_path, tree_map_with_path

from mlax_tutorial.exercises.objects.carry import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def refuse(weights, tree, name_of, shapes=True, missing=True, left=True):
    names = {keystr(path): name_of(keystr(path)) for path, _ in tree_leaves_with_path(tree)}
    for path, leaf in tree_leaves_with_path(tree):
        name = names[keystr(path)]
        if missing and name not in weights:
            raise ValueError(f"{keystr(path)} is missing")
        if shapes and weights[name].shape != leaf.shape:
            raise ValueError(f"{keystr(path)} has another shape")
    if left and (over := weights.keys() - set(names.values())):
        raise ValueError(f"left over: {over}")


def fill(weights, tree, name_of):
    def filled(path, leaf):
        return jnp.asarray(weights[name_of(keystr(path))], leaf.dtype)

    return tree_map_with_path(filled, tree)


@answers.wrong("not by the order of leaves")
def zips_sorted(weights, tree, name_of):
    leaves = [jnp.asarray(weights[name]) for name in sorted(weights)]
    return jax.tree.unflatten(jax.tree.structure(tree), leaves)


@answers.wrong("not by the order of leaves")
def in_the_files_order(weights, tree, name_of):
    leaves = [jnp.asarray(value) for value in weights.values()]
    return jax.tree.unflatten(jax.tree.structure(tree), leaves)


@answers.wrong("the dtypes of `tree`, here bfloat16")
def keeps_the_files_dtype(weights, tree, name_of):
    refuse(weights, tree, name_of)
    return tree_map_with_path(lambda path, leaf: jnp.asarray(weights[name_of(keystr(path))]), tree)


@answers.wrong("your function raised KeyError")
def key_error(weights, tree, name_of):
    refuse(weights, tree, name_of, missing=False)
    return fill(weights, tree, name_of)


@answers.wrong()
def transposes(weights, tree, name_of):
    """As for a kernel of Equinox."""
    refuse(weights, tree, name_of)
    return tree_map_with_path(
        lambda path, leaf: jnp.asarray(weights[name_of(keystr(path))].T, leaf.dtype), tree
    )


@answers.wrong("one that broadcasts, should be refused with")
def any_shape(weights, tree, name_of):
    refuse(weights, tree, name_of, shapes=False)
    return fill(weights, tree, name_of)


@answers.wrong("that nothing takes should be refused")
def leaves_some(weights, tree, name_of):
    refuse(weights, tree, name_of, left=False)
    return fill(weights, tree, name_of)


@answers.wrong("of the same size, should be refused")
def compares_sizes(weights, tree, name_of):
    for path, leaf in tree_leaves_with_path(tree):
        name = name_of(keystr(path))
        if name not in weights or weights[name].size != leaf.size:
            raise ValueError(keystr(path))
    return tree_map_with_path(
        lambda path, leaf: jnp.asarray(weights[name_of(keystr(path))], leaf.dtype).reshape(leaf.shape), tree
    )


@answers.wrong("wants the path as text")
def gives_the_path(weights, tree, name_of):
    return tree_map_with_path(lambda path, leaf: weights[name_of(path)], tree)


@answers.wrong("not of NumPy")
def keeps_numpy(weights, tree, name_of):
    refuse(weights, tree, name_of)
    return tree_map_with_path(lambda path, leaf: weights[name_of(keystr(path))], tree)


@answers.wrong("Each leaf keeps its own dtype")
def one_dtype_for_all(weights, tree, name_of):
    refuse(weights, tree, name_of)
    dtype = jax.tree.leaves(tree)[0].dtype
    return jax.tree.map(lambda leaf: leaf.astype(dtype), fill(weights, tree, name_of))


@answers.wrong("Go by `name_of`, for any tree")
def names_by_itself(weights, tree, name_of):
    def name(text):
        return text.removeprefix("['layers'][").replace("]['", ".", 1).removesuffix("']").join(("layer_", ""))

    refuse(weights, tree, name)
    return fill(weights, tree, name)


@answers.wrong("with a tuple in it")
def tuples_become_lists(weights, tree, name_of):
    refuse(weights, tree, name_of)
    new = fill(weights, tree, name_of)
    return {name: list(item) if isinstance(item, tuple) else item for name, item in new.items()}


@answers.wrong("not of NumPy")
def casts_with_numpy(weights, tree, name_of):
    refuse(weights, tree, name_of)
    return tree_map_with_path(lambda path, leaf: weights[name_of(keystr(path))].astype(leaf.dtype), tree)


@answers.wrong()
def empties_the_file(weights, tree, name_of):
    refuse(weights, tree, name_of)
    new = fill(weights, tree, name_of)
    weights.clear()
    return new


@answers.right
def checks_first(weights, tree, name_of):
    refuse(weights, tree, name_of)
    return fill(weights, tree, name_of)


@answers.right
def on_the_device(weights, tree, name_of):
    refuse(weights, tree, name_of)
    return tree_map_with_path(
        lambda path, leaf: jax.device_put(weights[name_of(keystr(path))].astype(leaf.dtype)), tree
    )


@answers.right
def sets_the_leaf(weights, tree, name_of):
    refuse(weights, tree, name_of)
    return tree_map_with_path(
        lambda path, leaf: leaf.at[...].set(weights[name_of(keystr(path))].astype(leaf.dtype)), tree
    )


@answers.right
def with_a_copy(weights, tree, name_of):
    rest, leaves = dict(weights), []
    for path, leaf in tree_leaves_with_path(tree):
        array = rest.pop(name_of(keystr(path)), None)
        if array is None or array.shape != leaf.shape:
            raise ValueError(f"no array, or one of another shape, for {keystr(path)}")
        leaves.append(jnp.array(array).astype(leaf.dtype))
    if rest:
        raise ValueError(f"too many: {', '.join(rest)}")
    return jax.tree.unflatten(jax.tree.structure(tree), leaves)


@answers.right
def by_a_table(weights, tree, name_of):
    paths, structure = jax.tree_util.tree_flatten_with_path(tree)
    table = {name_of(keystr(path)): (keystr(path), leaf) for path, leaf in paths}
    for name in table.keys() ^ weights.keys():
        raise ValueError(f"{name} at {table[name][0]}" if name in table else name)
    for name, (path, leaf) in table.items():
        if weights[name].shape != leaf.shape:
            raise ValueError(path)
    return jax.tree.unflatten(
        structure, [jnp.asarray(weights[n], leaf.dtype) for n, (_, leaf) in table.items()]
    )
