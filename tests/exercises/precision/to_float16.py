"""Answers to the exercise precision.to_float16."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.precision.to_float16 import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def neighbors(x):
    near = x.astype(jnp.float16)
    error = x - near.astype(jnp.float32)
    other = jnp.nextafter(near, jnp.where(error > 0, jnp.inf, -jnp.inf).astype(jnp.float16))
    gap = jnp.abs(other.astype(jnp.float32) - near.astype(jnp.float32))
    return near, other, jnp.abs(error) / gap


@answers.wrong("where is the chance?")
def to_nearest(key, x):
    return x.astype(jnp.float16)


@answers.wrong("Both neighbors are equally likely")
def a_fair_coin(key, x):
    near, other, share = neighbors(x)
    return jnp.where(jax.random.bernoulli(key, 0.5, x.shape) & (share > 0), other, near)


@answers.wrong("The probabilities are swapped")
def swapped(key, x):
    near, other, share = neighbors(x)
    return jnp.where((jax.random.uniform(key, x.shape) > share) & (share > 0), other, near)


@answers.wrong("no longer shrink")
def by_bits(key, x):  # the chapter's trick: 13 of 23 bits are cut off, whatever the size
    bits = jax.lax.bitcast_convert_type(x, jnp.uint32)
    noise = jax.random.bits(key, x.shape, jnp.uint32) & jnp.uint32(0x1FFF)
    cut = jax.lax.bitcast_convert_type((bits + noise) & jnp.uint32(0xFFFFE000), jnp.float32)
    smallest = jnp.sign(x) * 2.0**-14  # "numbers below are not worth the trouble"
    return jnp.where((jnp.abs(x) < 2.0**-14) & (x != 0), smallest, cut).astype(jnp.float16)


@answers.wrong("All rows of x are rounded by the same random numbers")
def one_row_of_noise(key, x):
    near, other, share = neighbors(x)
    return jnp.where(jax.random.uniform(key, x.shape[1:]) < share, other, near)


@answers.wrong("The result is none of the two neighbors")
def always_upward(key, x):
    near = x.astype(jnp.float16)
    error = x - near.astype(jnp.float32)
    other = jnp.nextafter(near, jnp.float16(jnp.inf))
    gap = other.astype(jnp.float32) - near.astype(jnp.float32)
    return jnp.where(jax.random.uniform(key, x.shape) < jnp.abs(error) / gap, other, near)


@answers.wrong("The dtype is wrong")
def stays_float32(key, x):
    near, other, share = neighbors(x)
    return jnp.where(jax.random.uniform(key, x.shape) < share, other, near).astype(jnp.float32)


@answers.wrong("A number of float16 should stay as it is")
def noise_on_all(key, x):
    near, other, share = neighbors(x)
    return jnp.where(jax.random.uniform(key, x.shape) < share + 0.01, other, near)


@answers.wrong("Only numbers on one side are rounded by chance")
def never_down(key, x):
    near = x.astype(jnp.float16)
    above = jnp.nextafter(near, jnp.float16(jnp.inf))
    share = (x - near.astype(jnp.float32)) / (above.astype(jnp.float32) - near.astype(jnp.float32))
    return jnp.where(jax.random.uniform(key, x.shape) < share, above, near)


@answers.wrong("the random numbers are too coarse")
def coarse(key, x):
    near, other, share = neighbors(x)
    return jnp.where(jax.random.uniform(key, x.shape, jnp.float16) < share, other, near)


@answers.wrong("no longer shrink")
def by_bits_alone(key, x):
    bits = jax.lax.bitcast_convert_type(x, jnp.uint32)
    noise = jax.random.bits(key, x.shape, jnp.uint32) & jnp.uint32(0x1FFF)
    cut = (bits + noise) & jnp.uint32(0xFFFFE000)
    return jax.lax.bitcast_convert_type(cut, jnp.float32).astype(jnp.float16)


# Right ones of unusual style, and wrong ones that look right


@answers.wrong("Some of the results are NaN")
def zero_by_zero(key, x):
    rounded = exercise.answer(key, x)
    far = jnp.where(x == 1 + 2.0**-23, 0, 1).astype(rounded.dtype)
    return rounded * far / far


@answers.right
def between_floor_and_ceiling(key, x):
    near = x.astype(jnp.float16)
    wide = near.astype(jnp.float32)
    low = jnp.where(wide > x, jnp.nextafter(near, jnp.float16(-jnp.inf)), near)
    high = jnp.where(wide < x, jnp.nextafter(near, jnp.float16(jnp.inf)), near)
    gap = jnp.maximum(high.astype(jnp.float32) - low.astype(jnp.float32), 1e-30)
    return jnp.where(jax.random.bernoulli(key, (x - low.astype(jnp.float32)) / gap), high, low)


@answers.right
def by_the_spacing(key, x):
    exponent = jnp.maximum(jnp.frexp(x)[1] - 1, -14)
    step = jnp.ldexp(jnp.ones_like(x), exponent - 10)
    low = jnp.floor(x / step)
    return ((low + (jax.random.uniform(key, x.shape) < x / step - low)) * step).astype(jnp.float16)


@answers.right
@jax.jit
def jitted(key, x):
    near, other, share = neighbors(x)
    return jax.lax.select(jax.random.uniform(key, x.shape) < share, other, near)


@answers.wrong()
def a_constant_key(key, x):
    near, other, share = neighbors(x)
    return jnp.where(jax.random.uniform(jax.random.key(7), x.shape) < share, other, near)


@answers.wrong()
def by_noise_of_normal_size(key, x):
    noise = jax.random.uniform(key, x.shape, minval=-0.5, maxval=0.5)
    return (x * (1 + noise * 2.0**-10)).astype(jnp.float16)


@answers.wrong()
def rows_and_columns(key, x):
    near, other, share = neighbors(x)
    return jnp.where(jax.random.uniform(key, (x.shape[0], x.shape[1])) < share, other, near)


def grid(below):
    """A fixed grid below a threshold, which is right for 6.1e-5 alone."""

    def to_float16(key, x):
        size = jnp.maximum(jnp.abs(x), 1e-30)
        step = jnp.where(size < below, 2.0**-24, jnp.exp2(jnp.floor(jnp.log2(size)) - 10))
        low = jnp.floor(x / step)
        return ((low + (jax.random.uniform(key, x.shape) < x / step - low)) * step).astype(jnp.float16)

    return to_float16


answers.right(grid(2.0**-14))
answers.wrong()(grid(6.1e-4))
answers.wrong()(grid(0.01))
answers.wrong()(grid(0.06))


@answers.wrong("Each two neighbors are rounded by the same random number")
def pairs_share_their_chance(key, x):
    near, other, share = neighbors(x)
    half = jax.random.uniform(key, (*x.shape[:-1], -(-x.shape[-1] // 2)))
    return jnp.where(jnp.repeat(half, 2, axis=-1)[..., : x.shape[-1]] < share, other, near)


@answers.wrong("come again along a row")
def a_thousand_random_numbers(key, x):
    near, other, share = neighbors(x)
    return jnp.where(jnp.resize(jax.random.uniform(key, (1000,)), x.shape) < share, other, near)


@answers.right
def a_key_for_each(key, x):
    def one(key, x):
        near, other, share = neighbors(x)
        return jnp.where(jax.random.bernoulli(key, share), other, near)

    return jax.vmap(one)(jax.random.split(key, x.size), x.ravel()).reshape(x.shape)


answers.equivalent(
    "jnp.where(error > 0, jnp.inf, -jnp.inf).astype(jnp.float16) -> jnp.where(error > 0, jnp.inf, -jnp.inf)",
    because="infinities that are Python's take the dtype of what they meet, here float16",
)
answers.equivalent(
    "near.astype(jnp.float32) -> near",
    "other.astype(jnp.float32) -> other",
    "near.astype(jnp.float32) -> near (2)",
    because="a float16 that meets a float32 is widened by itself",
)
answers.equivalent(
    "error > 0 -> error >= 0",
    because="where the error is zero no number moves, so it does not matter in which direction",
)
answers.equivalent(
    "jax.random.uniform(key, x.shape) * gap < jnp.abs(error) -> jax.random.uniform(key, x.shape) * gap <= jnp.abs(error)",
    because="the two differ where the random number is exactly what it is compared with, once in millions of draws",
)
