"""Answers to the exercise precision.total."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.precision.total import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def add(carry, one):
    return carry + one, None


@answers.wrong("has a float32 accumulator inside")
def by_sum(x):
    return jnp.sum(x)


@answers.wrong("there is float32 in your program")
def wide_carry(x):
    return lax.scan(add, jnp.float32(0), x.astype(jnp.float32))[0].astype(jnp.bfloat16)


@answers.wrong("The sum stops growing")
def one_after_the_other(x):
    return lax.scan(add, jnp.bfloat16(0), x)[0]


@answers.wrong("many times")
def blocks_of_a_hundred(x):
    x = jnp.pad(x, (0, -len(x) % 100)).reshape(-1, 100)
    rows = jax.vmap(lambda row: lax.scan(add, jnp.bfloat16(0), row)[0])(x)
    return lax.scan(add, jnp.bfloat16(0), rows)[0]


@answers.wrong("Only the first 512 numbers are in the sum")
def one_round_too_few(x):
    if len(x) < 4:
        return by_halves(x)
    for _ in range(int(math.log2(len(x)))):
        x = jnp.pad(x, (0, len(x) % 2))
        x = x[0::2] + x[1::2]
    return x[0]


@answers.wrong("Only the first 16384 numbers are in the sum")
def fourteen_rounds(x):
    for _ in range(14):
        x = jnp.pad(x, (0, len(x) % 2))
        x = x[0::2] + x[1::2]
    return x[0]


@answers.wrong("there is a `reduce_sum`")
def narrow_sum(x):
    return jnp.sum(x, dtype=jnp.bfloat16)


@answers.wrong("there is a `cumsum`")
def last_of_cumsum(x):
    return jnp.cumsum(x)[-1]


@answers.wrong("there is a `dot_general`")
def product_with_ones(x):
    return x @ jnp.ones_like(x)


@answers.wrong("Only the first 2 numbers are in the sum")
def drops_the_odd_one(x):
    while len(x) > 1:
        x = x[: len(x) // 2 * 2]
        x = x[0::2] + x[1::2]
    return x[0]


@answers.wrong("The shape is wrong: expected (), got (1,)")
def an_array_of_one(x):
    while len(x) > 1:
        x = jnp.pad(x, (0, len(x) % 2))
        x = x[0::2] + x[1::2]
    return x


@answers.wrong("incompatible shapes for broadcasting: (501,), (500,)")
def no_padding(x):
    while len(x) > 1:
        x = x[0::2] + x[1::2]
    return x[0]


@answers.wrong("`return` missing")
def no_return(x):
    while len(x) > 1:
        x = jnp.pad(x, (0, len(x) % 2))
        x = x[0::2] + x[1::2]


# Right ones of unusual style, and wrong ones that look right


@answers.right
def by_halves(x):
    if len(x) == 1:
        return x[0]
    middle = len(x) // 2
    return by_halves(x[:middle]) + by_halves(x[middle:]) if len(x) < 32 else _folded(x)


def _folded(x):
    half = -(-len(x) // 2)
    return by_halves(x[:half] + jnp.pad(x[half:], (0, 2 * half - len(x))))


@answers.wrong()
def carries_the_error(
    x,
):  # Kahan's sum, in bfloat16: the error stops growing, too, so of 100,000 ones it finds 65,536
    def step(carry, one):
        total, error = carry
        term = one - error
        new = lax.reduce_precision(total + term, exponent_bits=8, mantissa_bits=7)
        return (new, (new - total) - term), None

    return lax.scan(step, (jnp.bfloat16(0), jnp.bfloat16(0)), x)[0][0]


@answers.right
def by_reshaping(x):
    x = jnp.pad(x, (0, (1 << (len(x) - 1).bit_length()) - len(x)))
    while x.size > 1:
        x = jax.vmap(jnp.add)(*x.reshape(-1, 2).T)
    return x.reshape(())


@answers.wrong()
def mean_times_count(x):  # the mean is formed in float32
    return jnp.mean(x) * jnp.bfloat16(len(x))


@answers.wrong()
def sorted_first(x):
    return lax.scan(add, jnp.bfloat16(0), jnp.sort(x))[0]


def tree(x):
    """The solution."""
    return exercise.answer(x)


@answers.wrong("Only the first 65536 numbers")
def sixteen_rounds(x):
    for _ in range(16):
        x = jnp.pad(x, (0, len(x) % 2))
        x = x[0::2] + x[1::2]
    return x[0]


@answers.wrong()
def cut_at_32768(x):
    return tree(x[:32768])


@answers.wrong("there is a `scatter-add`")
def segments(x):
    count = -(-len(x) // 128)
    return tree(jax.ops.segment_sum(x, jnp.arange(len(x)) // 128, num_segments=count))


@answers.wrong()
def integers_by_tree(x):
    return (tree((x * 128).astype(jnp.int32)) // 128).astype(jnp.bfloat16)


@answers.wrong()
def absolute(x):
    return tree(jnp.abs(x))


@answers.wrong("has a float32 accumulator inside")
def short_ones_by_sum(x):
    return jnp.sum(x) if len(x) <= 1000 else tree(x)


@answers.wrong("there is a `cumsum`")
def long_ones_by_cumsum(x):
    return jnp.cumsum(x)[-1] if len(x) > 2000 else tree(x)


answers.equivalent(
    "x[0] -> x[-1]",
    "x[0] -> x[1]",
    because="one number is left, and JAX moves an index past the end to the last one",
)
