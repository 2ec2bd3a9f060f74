"""Answers to the exercise compiling.any_length."""

import jax
import jax.numpy as jnp
from jax import export

from mlax_tutorial.exercises.compiling.any_length import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def types(x, y, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(x, dtype), jax.ShapeDtypeStruct(y, dtype)


@answers.wrong("is a `return` missing")
def nothing(function):
    export.symbolic_shape("rows, columns")


@answers.wrong("Return what `jax.export.export` gives")
def jitted_only(function):
    return jax.jit(function)


@answers.wrong("Return what `jax.export.export` gives")
def without_types(function):
    return export.export(jax.jit(function))


@answers.wrong("a fixed number")
def fixed(function):
    return export.export(jax.jit(function))(*types((2, 3), (3,)))


@answers.wrong("only square matrices fit")
def square(function):
    (n,) = export.symbolic_shape("n")
    return export.export(jax.jit(function))(*types((n, n), (n,)))


@answers.wrong("a letter of its own")
def three_letters(function):
    rows, columns, length = export.symbolic_shape("rows, columns, length")
    return export.export(jax.jit(function))(*types((rows, columns), (length,)))


@answers.wrong("not rows")
def as_long_as_rows(function):
    rows, columns = export.symbolic_shape("rows, columns")
    return export.export(jax.jit(function))(*types((rows, columns), (rows,)))


@answers.wrong("Both arguments are float32")
def integers(function):
    rows, columns = export.symbolic_shape("rows, columns")
    return export.export(jax.jit(function))(*types((rows, columns), (columns,), jnp.int32))


@answers.wrong("a matrix and a vector")
def two_matrices(function):
    rows, columns = export.symbolic_shape("rows, columns")
    return export.export(jax.jit(function))(*types((rows, columns), (1, columns)))


# Right ones of unusual style, and wrong ones that look right


@answers.right
def by_specs(function):
    args = types((2, 3), (3,))
    specs = export.symbolic_args_specs(args, ("a, b", "b"))
    return export.export(jax.jit(function))(*specs)


@answers.right
def in_a_scope(function):
    scope = export.SymbolicScope()
    shape = export.symbolic_shape("m, k", scope=scope)
    return export.export(jax.jit(lambda x, y: function(x, y)))(*types(shape, shape[1:]))


@answers.wrong("Letters of two calls")
def two_calls(function):
    (rows,) = export.symbolic_shape("rows")
    (columns,) = export.symbolic_shape("columns")
    x = jax.ShapeDtypeStruct((rows, columns), jnp.float32)
    return export.export(jax.jit(function))(x, jax.ShapeDtypeStruct((columns,), jnp.float32))


@answers.wrong()
def at_least_two_columns(function):
    rows, columns = export.symbolic_shape("rows, columns", constraints=["columns >= 2"])
    return export.export(jax.jit(function))(*types((rows, columns), (columns,)))


@answers.wrong("A matrix of shape (1000, 4) is refused")
def at_most_a_hundred_rows(function):
    rows, columns = export.symbolic_shape("rows, columns", constraints=["rows <= 100"])
    return export.export(jax.jit(function))(*types((rows, columns), (columns,)))


@answers.wrong()
def not_jitted(function):
    rows, columns = export.symbolic_shape("rows, columns")
    return export.export(function)(*types((rows, columns), (columns,)))
