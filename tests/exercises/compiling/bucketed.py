"""Answers to the exercise compiling.bucketed."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.compiling.bucketed import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("eleven are enough")
def jit(function):
    return jax.jit(lambda x, initial: function(x, initial=initial))


@answers.wrong("eleven are enough")
def static_length(function):
    @functools.partial(jax.jit, static_argnames="length")
    def padded(x, length, initial):
        return function(x, where=jnp.arange(len(x)) < length, initial=initial)

    def call(x, initial):
        size = 1 << (len(x) - 1).bit_length()
        return padded(np.pad(x, (0, size - len(x))), length=len(x), initial=np.float32(initial))

    return call


@answers.wrong("eleven are enough")
def by_tens(function):
    @jax.jit
    def padded(x, length, initial):
        return function(x, where=jnp.arange(len(x)) < length, initial=initial)

    return lambda x, initial: padded(np.pad(x, (0, -len(x) % 32)), np.int32(len(x)), np.float32(initial))


@answers.wrong("What was padded takes part")
def no_mask(function):
    padded = jax.jit(lambda x, initial: function(x, initial=initial))

    def call(x, initial):
        size = 1 << (len(x) - 1).bit_length()
        return padded(np.pad(x, (0, size - len(x))), np.float32(initial))

    return call


@answers.wrong("Nothing takes part")
def mask_by_value(function):
    padded = jax.jit(lambda x, initial: function(x, where=x < 0, initial=initial))

    def call(x, initial):
        return padded(np.pad(x, (0, (1 << (len(x) - 1).bit_length()) - len(x))), np.float32(initial))

    return call


@answers.wrong("For a new length something is still compiled")
def by_jnp(function):
    @jax.jit
    def padded(x, length, initial):
        return function(x, where=jnp.arange(len(x)) < length, initial=initial)

    def call(x, initial):
        size = 1 << (len(x) - 1).bit_length()
        return padded(jnp.pad(x, (0, size - len(x))), len(x), np.float32(initial))

    return call


@answers.wrong("A vector of 1 is padded to")
def to_the_longest(function):
    @jax.jit
    def padded(x, length, initial):
        return function(x, where=jnp.arange(len(x)) < length, initial=initial)

    return lambda x, initial: padded(np.pad(x, (0, 1000 - len(x))), np.int32(len(x)), np.float32(initial))


@answers.wrong("is taken for padding")
def without_zeros(function):
    padded = jax.jit(lambda x, initial: function(x, where=x != 0, initial=initial))

    def call(x, initial):
        return padded(np.pad(x, (0, (1 << (len(x) - 1).bit_length()) - len(x))), np.float32(initial))

    return call


@answers.wrong("is taken for padding")
def without_nans(function):
    padded = jax.jit(lambda x, initial: function(x, where=~jnp.isnan(x), initial=initial))

    def call(x, initial):
        size = 1 << (len(x) - 1).bit_length()
        return padded(np.pad(x, (0, size - len(x)), constant_values=np.nan), np.float32(initial))

    return call


@answers.wrong("For `initial=3`")
def initial_as_it_is(function):
    padded = jax.jit(lambda x, n, initial: function(x, where=jnp.arange(len(x)) < n, initial=initial))

    def call(x, initial):
        return padded(np.pad(x, (0, (1 << (len(x) - 1).bit_length()) - len(x))), np.int32(len(x)), initial)

    return call


@answers.wrong("For another `initial`")
def initial_static(function):
    @functools.partial(jax.jit, static_argnames="initial")
    def padded(x, length, initial):
        return function(x, where=jnp.arange(len(x)) < length, initial=initial)

    def call(x, initial):
        size = 1 << (len(x) - 1).bit_length()
        return padded(np.pad(x, (0, size - len(x))), np.int32(len(x)), initial=float(initial))

    return call


@answers.wrong("Nearly")
def half(function):
    inner = solution(function)
    return lambda x, initial: inner(x, np.float16(initial))


@answers.wrong("it is not jitted")
def not_jitted(function):
    return lambda x, initial: function(x, initial=initial)


@answers.wrong("Not all numbers take part")
def cuts(function):
    @jax.jit
    def padded(x, initial):
        return function(x, initial=initial)

    return lambda x, initial: padded(x[: 1 << (len(x).bit_length() - 1)], np.float32(initial))


@answers.wrong("`initial` does not count")
def forgets_initial(function):
    @jax.jit
    def padded(x, length):
        return function(x, where=jnp.arange(len(x)) < length, initial=0.0)

    def call(x, initial):
        return padded(np.pad(x, (0, (1 << (len(x) - 1).bit_length()) - len(x))), np.int32(len(x)))

    return call


@answers.wrong("A vector of 65 is padded to 1000")
def two_sizes(function):
    @jax.jit
    def padded(x, length, initial):
        return function(x, where=jnp.arange(len(x)) < length, initial=initial)

    def call(x, initial):
        size = 64 if len(x) <= 64 else 1000
        return padded(np.pad(x, (0, size - len(x))), np.int32(len(x)), np.float32(initial))

    return call


# Right ones of unusual style, and wrong ones that look right


@answers.right
def by_numpy_pad(function):
    jitted = jax.jit(lambda x, mask, initial: function(x, where=mask, initial=initial))

    def call(x, initial):
        size = int(2 ** np.ceil(np.log2(max(len(x), 32))))
        mask = np.arange(size) < len(x)
        return jitted(np.pad(x, (0, size - len(x))), mask, np.asarray(initial, x.dtype))

    return call


@answers.right
def three_sizes(function):
    @jax.jit
    def jitted(x, length, initial):
        return function(x, initial=initial, where=jnp.arange(x.size) < length)

    def call(x, initial):
        size = next(size for size in (64, 256, 1024) if size >= len(x))
        return jitted(np.resize(x, size), np.int32(len(x)), np.float32(initial))

    return call


@answers.right
def compiled_beforehand(function):
    jitted = jax.jit(lambda x, n, initial: function(x, where=jnp.arange(len(x)) < n, initial=initial))
    number, whole = (jax.ShapeDtypeStruct((), kind) for kind in (jnp.float32, jnp.int32))
    sizes = [16, 64, 256, 1024]
    ready = {
        size: jitted.lower(jax.ShapeDtypeStruct((size,), jnp.float32), whole, number).compile()
        for size in sizes
    }

    def call(x, initial):
        size = min(size for size in sizes if size >= len(x))
        padded = np.concatenate([x, np.zeros(size - len(x), x.dtype)])
        return ready[size](padded, np.int32(len(x)), np.float32(initial))

    return call


@answers.wrong()
def padded_with_the_neutral_element_of_sums(function):
    jitted = jax.jit(lambda x, initial: function(x, initial=initial))

    def call(x, initial):
        size = 1 << (len(x) - 1).bit_length()
        return jitted(np.pad(x, (0, size - len(x))), np.float32(initial))

    return call


@answers.wrong()
def the_initial_as_it_is(function):
    jitted = jax.jit(lambda x, n, initial: function(x, where=jnp.arange(len(x)) < n, initial=initial))

    def call(x, initial):
        return jitted(np.pad(x, (0, (1 << (len(x) - 1).bit_length()) - len(x))), np.int32(len(x)), initial)

    return call


@answers.wrong()
def written_into_the_input(function):
    inner = solution(function)

    def call(x, initial):
        result = inner(x, initial)
        x[-1] = 0
        return result

    return call


answers.equivalent(
    "1 << (len(x) - 1).bit_length() -> 2 << (len(x) - 1).bit_length()",
    "len(x) - 1 -> len(x) + 1",
    "len(x) - 1 -> len(x) - 0",
    because="these are powers of two that are large enough, eleven of them at most, and the smallest is far below 64",
)
