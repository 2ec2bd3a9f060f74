"""Answers to the exercise tracing.shapes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.tracing.shapes import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("only their shapes are asked for")
def whole(function, *specs):
    return jax.eval_shape(function, *specs)


@answers.wrong("what goes in")
def of_inputs(function, *specs):
    return [spec.shape for spec in specs]


@answers.wrong("The shapes are not right")
def one_array(function, *specs):
    return jax.eval_shape(function, *specs)["out"].shape


@answers.wrong("real arrays")
def computed(function, *specs):
    return jax.tree.map(
        lambda leaf: leaf.shape, function(*[jnp.zeros(spec.shape, spec.dtype) for spec in specs])
    )


@answers.wrong("fit into no memory")
def of_zeros(function, *specs):
    zeros = jax.tree.map(lambda spec: jnp.zeros(spec.shape, spec.dtype), specs)
    return jax.tree.map(jnp.shape, jax.jit(function)(*zeros))


@answers.wrong("A spec has a dtype, too")
def all_float(function, *specs):
    return solution(function, *[jax.ShapeDtypeStruct(spec.shape, jnp.float32) for spec in specs])


@answers.wrong("Each spec stands for one argument")
def specs_in_one(function, *specs):
    return solution(function, specs)


@answers.wrong("cannot be computed with")
def called(function, *specs):
    return jax.tree.map(lambda leaf: leaf.shape, function(*specs))


@answers.wrong("is a tree, here a dict")
def without_tree(function, *specs):
    return jax.eval_shape(function, *specs).shape


def mapped(what, function, *specs):
    return jax.tree.map(what, jax.eval_shape(function, *specs))


answers.wrong("These are types")(functools.partial(mapped, jax.typeof))


@answers.wrong("the tree is gone")
def flat(function, *specs):
    return [variable.aval.shape for variable in jax.make_jaxpr(function)(*specs).jaxpr.outvars]


@answers.wrong("trees in trees")
def one_level(function, *specs):
    result = jax.eval_shape(function, *specs)
    return (
        {name: leaf.shape for name, leaf in result.items()} if isinstance(result, dict) else result[0].shape
    )


@answers.wrong("stay what they are")
def all_lists(function, *specs):
    def shapes_of(tree):
        if isinstance(tree, dict):
            return {name: shapes_of(item) for name, item in tree.items()}
        return (
            [shapes_of(item) for item in tree]
            if isinstance(tree, (list, tuple))
            else getattr(tree, "shape", None)
        )

    return shapes_of(jax.eval_shape(function, *specs))


answers.wrong("here it is a list")(functools.partial(mapped, lambda leaf: list(leaf.shape)))
answers.wrong("here it is a string")(functools.partial(mapped, lambda leaf: str(leaf.shape)))
answers.wrong("not an array")(functools.partial(mapped, lambda leaf: np.array(leaf.shape)))
answers.wrong("not an array")(functools.partial(mapped, lambda leaf: jnp.array(leaf.shape)))
answers.wrong("how many elements")(functools.partial(mapped, lambda leaf: leaf.size))
answers.wrong("how many axes")(functools.partial(mapped, lambda leaf: leaf.ndim))
answers.wrong("without the dtype")(functools.partial(mapped, lambda leaf: (leaf.shape, leaf.dtype)))


# Right ones of unusual style, and wrong ones that look right


@answers.right
def flattened_and_built_again(function, *specs):
    leaves, tree = jax.tree.flatten(jax.eval_shape(function, *specs))
    return jax.tree.unflatten(tree, [leaf.shape for leaf in leaves])


@answers.right
def returned_with_the_jaxpr(function, *specs):
    _, results = jax.make_jaxpr(function, return_shape=True)(*specs)
    return jax.tree.map(jnp.shape, results)


@answers.right
def asked_of_the_lowered(function, *specs):
    return jax.tree.map(lambda leaf: leaf.shape, jax.jit(function).lower(*specs).out_info)


@answers.right
def taken_down_while_tracing(function, *specs):
    found = []
    jax.eval_shape(lambda *inputs: found.append(jax.tree.map(jnp.shape, function(*inputs))), *specs)
    return found[0]
