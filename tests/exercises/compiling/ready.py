"""Answers to the exercise compiling.ready."""

import bisect

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.compiling.ready import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


def types(size):
    return jax.ShapeDtypeStruct((size,), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32)


def padded(x, size):
    return np.pad(x, (0, size - len(x))), np.int32(len(x))


def smallest(sizes, x):
    if len(x) > sizes[-1]:
        raise ValueError("too long")
    return sizes[bisect.bisect_left(sizes, len(x))]


@answers.wrong("is a `return` missing")
def nothing(function, sizes):
    solution(function, sizes)


@answers.wrong("Traced: nothing")
def jits_only(function, sizes):
    jitted = jax.jit(function)
    return lambda x: jitted(*padded(x, smallest(sizes, x)))


@answers.wrong("nothing is compiled yet")
def lowers_only(function, sizes):
    lowered = {size: jax.jit(function).lower(*types(size)) for size in sizes}
    return lambda x: lowered[smallest(sizes, x)].compile()(*padded(x, smallest(sizes, x)))


@answers.wrong("Traced: (32,)")
def one_size(function, sizes):
    program = jax.jit(function).lower(*types(sizes[-1])).compile()
    return lambda x: program(*padded(x, sizes[-1]))


@answers.wrong("the smallest size that is enough is 4")
def largest(function, sizes):
    programs = {size: jax.jit(function).lower(*types(size)).compile() for size in sizes}
    return lambda x: programs[sizes[-1]](*padded(x, sizes[-1]))


@answers.wrong("the smallest size that is enough is 4")
def strictly(function, sizes):
    serve = solution(function, sizes)
    programs = {size: jax.jit(function).lower(*types(size)).compile() for size in sizes}

    def call(x):
        for size in sizes:
            if len(x) < size:
                return programs[size](*padded(x, size))
        return serve(x)

    return call


@answers.wrong("another length than that of the vector")
def length_of_the_padded(function, sizes):
    programs = {size: jax.jit(function).lower(*types(size)).compile() for size in sizes}

    def call(x):
        size = smallest(sizes, x)
        return programs[size](padded(x, size)[0], np.int32(size))

    return call


@answers.wrong("the zeros behind it")
def zeros_first(function, sizes):
    programs = {size: jax.jit(function).lower(*types(size)).compile() for size in sizes}

    def call(x):
        size = smallest(sizes, x)
        return programs[size](np.pad(x, (size - len(x), 0)), np.int32(len(x)))

    return call


@answers.wrong("should hold `x`, and zeros")
def repeats_the_last(function, sizes):
    programs = {size: jax.jit(function).lower(*types(size)).compile() for size in sizes}

    def call(x):
        size = smallest(sizes, x)
        return programs[size](np.pad(x, (0, size - len(x)), mode="edge"), np.int32(len(x)))

    return call


@answers.wrong("something is still compiled")
def pads_with_jax(function, sizes):
    programs = {size: jax.jit(function).lower(*types(size)).compile() for size in sizes}

    def call(x):
        size = smallest(sizes, x)
        return programs[size](jnp.pad(x, (0, size - len(x))), jnp.int32(len(x)))

    return call


@answers.wrong("should be an int32")
def length_as_float(function, sizes):
    spec = jax.ShapeDtypeStruct((), jnp.float32)
    programs = {size: jax.jit(function).lower(types(size)[0], spec).compile() for size in sizes}
    return lambda x: programs[smallest(sizes, x)](padded(x, smallest(sizes, x))[0], np.float32(len(x)))


# Right ones of unusual style, and wrong ones that look right


@answers.right
def by_bisection(function, sizes):
    jitted = jax.jit(function)
    programs = [jitted.lower(np.zeros(size, np.float32), np.int32(0)).compile() for size in sizes]

    def call(x):
        place = bisect.bisect_left(sizes, len(x))
        if place == len(sizes):
            raise ValueError("too long")
        return programs[place](*padded(x, sizes[place]))

    return call


@answers.wrong("has run before the first call")
def warmed_up(function, sizes):
    jitted = jax.jit(function)
    for size in sizes:
        jitted(np.zeros(size, np.float32), np.int32(1))
    return lambda x: jitted(*padded(x, smallest(sizes, x)))


@answers.wrong("The sizes are an argument")
def for_three_sizes(function, sizes):
    return solution(function, [4, 8, 32])


@answers.wrong()
def cuts_what_is_too_long(function, sizes):
    serve = solution(function, sizes)
    return lambda x: serve(x[: sizes[-1]])


@answers.wrong()
def refuses_with_a_type_error(function, sizes):
    programs = {size: jax.jit(function).lower(*types(size)).compile() for size in sizes}

    def call(x):
        size = next((size for size in sizes if len(x) <= size), sizes[-1])
        return programs[size](
            np.concatenate([x, np.zeros(max(0, size - len(x)), np.float32)]), np.int32(len(x))
        )

    return call
