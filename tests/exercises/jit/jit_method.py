"""Answers to the exercise jit.jit_method."""

import functools
import types

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.jit.jit_method import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("it is not jitted")
def method_plain(method):
    return method


@answers.wrong("it is no array and no pytree")
def method_jitted(method):
    return jax.jit(method)


@answers.wrong("runs the `__init__`")
def method_begins(method):
    @functools.partial(jax.jit, static_argnums=0)
    def pure(kind, attributes, arguments):
        return method(kind(attributes["slope"], attributes["offset"]), *arguments)

    return lambda self, *arguments: pure(type(self), vars(self), arguments)


@answers.wrong("dexer must have integer")
def method_floats(method):
    inner = solution(method)

    def jitted(self, *arguments):
        copy = object.__new__(type(self))
        vars(copy).update({name: jnp.asarray(value, jnp.float32) for name, value in vars(self).items()})
        return inner(copy, *arguments)

    return jitted


@answers.wrong("the old one still counts")
def method_static(method):
    return jax.jit(method, static_argnums=0)


@answers.wrong("the old one still counts")
def method_kept(method):
    programs = {}

    def jitted(self, *arguments):
        if id(self) not in programs:
            programs[id(self)] = jax.jit(functools.partial(method, self))
        return programs[id(self)](*arguments)

    return jitted


@answers.wrong("over four calls with the same types")
def method_partial(method):
    def jitted(self, *arguments):
        return jax.jit(functools.partial(method, self))(*arguments)

    return jitted


@answers.wrong("outlived")
def method_writes(method):
    def jitted(self, *arguments):
        @jax.jit
        def pure(attributes, arguments):
            vars(self).update(attributes)
            return method(self, *arguments)

        return pure(vars(self), arguments)

    return jitted


@answers.wrong("has to be of that class")
def method_one_class(method):
    kinds = []

    @jax.jit
    def pure(attributes, arguments):
        copy = object.__new__(kinds[0])
        vars(copy).update(attributes)
        return method(copy, *arguments)

    def jitted(self, *arguments):
        kinds.append(type(self))
        return pure(vars(self), arguments)

    return jitted


@answers.wrong("the object that it is given has none")
def method_namespace(method):
    import types

    @jax.jit
    def pure(attributes, arguments):
        return method(types.SimpleNamespace(**attributes), *arguments)

    return lambda self, *arguments: pure(vars(self), arguments)


@answers.wrong("over four calls with the same types")
def method_static_values(method):
    @functools.partial(jax.jit, static_argnums=(0, 1))
    def pure(kind, attributes, arguments):
        copy = object.__new__(kind)
        vars(copy).update(attributes)
        return method(copy, *arguments)

    return lambda self, *arguments: pure(
        type(self), tuple((name, float(value)) for name, value in vars(self).items()), arguments
    )


@answers.wrong("'NoneType' object has no attribute")
def method_called(method):
    return jax.jit(method)(None, 1.0)


# Right ones of unusual style, and wrong ones that look right


@answers.right
def by_copy(method):
    import copy

    @functools.partial(jax.jit, static_argnames="kind")
    def pure(attributes, arguments, *, kind):
        twin = kind.__new__(kind)
        twin.__dict__ = copy.copy(attributes)
        return method(twin, *arguments)

    @functools.wraps(method)
    def jitted(self, *arguments):
        return pure(self.__dict__, arguments, kind=self.__class__)

    return jitted


@answers.right
def one_program_for_each_class(method):
    programs = {}

    def make(kind):
        def pure(attributes, *arguments):
            twin = object.__new__(kind)
            for name, value in attributes.items():
                setattr(twin, name, value)
            return method(twin, *arguments)

        return jax.jit(pure)

    def jitted(self, *arguments):
        kind = type(self)
        if kind not in programs:
            programs[kind] = make(kind)
        return programs[kind](vars(self), *arguments)

    return jitted


@answers.right
def with_eval_of_keywords(method):
    def pure(kind, attributes, arguments, keywords):
        twin = object.__new__(kind)
        vars(twin).update(attributes)
        return method(twin, *arguments, **keywords)

    pure = jax.jit(pure, static_argnums=(0,))
    return lambda self, *arguments, **keywords: pure(type(self), dict(vars(self)), arguments, keywords)


@answers.wrong()
def attributes_by_hash(method):
    programs = {}

    def jitted(self, *arguments):
        key = type(self), tuple(map(float, vars(self).values()))
        if key not in programs:
            programs[key] = jax.jit(functools.partial(method, self))
        return programs[key](*arguments)

    return jitted


@answers.wrong()
def borrowed(method):
    """Puts tracers into the object itself, and takes them out again; the class is not in the key."""
    objects = []

    @jax.jit
    def pure(attributes, arguments):
        return method(types.SimpleNamespace(**attributes, extra=lambda: 0.0), *arguments)

    def jitted(self, *arguments):
        objects.append(self)
        return pure(vars(self), arguments)

    return jitted


@answers.wrong("large numbers")
def in_half_precision(method):
    def half(self, *arguments):
        return method(self, *arguments).astype(jnp.float16).astype(jnp.float32)

    return solution(half)
