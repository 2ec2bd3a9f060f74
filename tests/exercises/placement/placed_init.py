"""Answers to the exercise placement.placed_init."""

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.exercises.placement.placed_init import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def shardings(tree, mesh, rule, name=jax.tree_util.keystr):
    def place(path, leaf):
        return NamedSharding(mesh, rule(name(path), leaf.shape))

    return jax.tree_util.tree_map_with_path(place, tree)


@answers.wrong("`init` ran eagerly")
def moved_afterwards(init, key, mesh, rule):
    tree = init(key)
    return jax.device_put(tree, shardings(tree, mesh, rule))


@answers.wrong("`init` ran eagerly")
def shapes_from_a_run(init, key, mesh, rule):
    return jax.jit(init, out_shardings=shardings(init(key), mesh, rule))(key)


@answers.wrong("moved by `jax.device_put` after they were made")
def moved_after_jit(init, key, mesh, rule):
    tree = jax.jit(init)(key)
    return jax.device_put(tree, shardings(tree, mesh, rule))


@answers.wrong("goes into another jitted function")
def moved_by_an_identity(init, key, mesh, rule):
    tree = jax.jit(init)(key)
    places = shardings(jax.eval_shape(init, key), mesh, rule)
    return jax.jit(lambda tree: tree, out_shardings=places)(tree)


@answers.wrong("does not live where the rule says")
def copied_everywhere(init, key, mesh, rule):
    shardings(jax.eval_shape(init, key), mesh, rule)
    return jax.jit(init, out_shardings=NamedSharding(mesh, P()))(key)


@answers.wrong("asked once for each leaf, with its path")
def plain_path(init, key, mesh, rule):
    tree = jax.eval_shape(init, key)
    return jax.jit(init, out_shardings=shardings(tree, mesh, rule, name=str))(key)


@answers.wrong("`return` missing")
def nothing(init, key, mesh, rule):
    jax.jit(init, out_shardings=shardings(jax.eval_shape(init, key), mesh, rule))(key)


@answers.wrong("another structure")
def only_the_shapes(init, key, mesh, rule):
    return shardings(jax.eval_shape(init, key), mesh, rule)[0]


# Right ones of unusual style


@answers.right
def by_constraint(init, key, mesh, rule):
    @jax.jit
    def placed(key):
        tree = init(key)
        return jax.lax.with_sharding_constraint(tree, shardings(tree, mesh, rule))

    return placed(key)


@answers.right
def by_leaves(init, key, mesh, rule):
    leaves, structure = jax.tree_util.tree_flatten_with_path(jax.eval_shape(init, key))
    specs = [rule(jax.tree_util.keystr(path), leaf.shape) for path, leaf in leaves]
    out = structure.unflatten([NamedSharding(mesh, spec) for spec in specs])
    return jax.jit(init, out_shardings=out).lower(key).compile()(key)


@answers.right
def key_of_the_closure(init, key, mesh, rule):
    places = shardings(jax.eval_shape(lambda: init(key)), mesh, rule)
    return jax.jit(lambda: init(key), out_shardings=places)()
