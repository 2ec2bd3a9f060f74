"""Answers to the exercise precision.adjust."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.precision.adjust import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("TracerBoolConversionError")
def python_if(scale, count, finite, period=2000):
    if finite:
        return (2 * scale, 0) if count + 1 >= period else (scale, count + 1)
    return jnp.maximum(scale / 2, 1), jnp.int32(0)


@answers.wrong("fewer finite steps in a row than the period says")
def one_too_early(scale, count, finite, period=2000):
    grows = count + 2 >= period
    new = jnp.where(finite, jnp.where(grows, 2 * scale, scale), jnp.maximum(scale / 2, 1))
    return new, jnp.where(finite & ~grows, count + 1, 0)


@answers.wrong("now the scale should double")
def one_too_late(scale, count, finite, period=2000):
    grows = count >= period
    new = jnp.where(finite, jnp.where(grows, 2 * scale, scale), jnp.maximum(scale / 2, 1))
    return new, jnp.where(finite & ~grows, count + 1, 0)


@answers.wrong("else it doubles at each step from now on")
def goes_on_counting(scale, count, finite, period=2000):
    count = jnp.where(finite, count + 1, 0)
    return jnp.where(finite, jnp.where(count >= period, 2 * scale, scale), jnp.maximum(scale / 2, 1)), count


@answers.wrong("An overflow ends the row")
def forgets_to_reset(scale, count, finite, period=2000):
    grows = count + 1 >= period
    new = jnp.where(finite, jnp.where(grows, 2 * scale, scale), jnp.maximum(scale / 2, 1))
    return new, jnp.where(grows, 0, count + 1)


@answers.wrong("The scale fell below 1")
def without_a_floor(scale, count, finite, period=2000):
    grows = count + 1 >= period
    new = jnp.where(finite, jnp.where(grows, 2 * scale, scale), scale / 2)
    return new, jnp.where(finite & ~grows, count + 1, 0)


@answers.wrong("After an overflow the scale should halve")
def the_wrong_way_round(scale, count, finite, period=2000):
    grows = count + 1 >= period
    new = jnp.where(finite, jnp.where(grows, 2 * scale, scale), 2 * scale)
    return new, jnp.where(finite & ~grows, count + 1, 0)


@answers.wrong("a pair, the new scale and the new count")
def the_scale_alone(scale, count, finite, period=2000):
    return jnp.where(finite, scale, scale / 2)


# Right ones of unusual style, and wrong ones that look right


@answers.right
@jax.jit
def by_cond(scale, count, finite, period=2000):
    def good():
        full = count == period - 1
        return scale * (1 + full), (count + 1) * ~full

    def bad():
        return jnp.clip(scale * 0.5, 1.0), jnp.int32(0)

    return jax.lax.cond(finite, good, bad)


@answers.right
def by_select(scale, count, finite, period=2000):
    count = (count + 1) * finite
    full = count >= period
    scale = jnp.select([~finite, full], [jnp.maximum(1.0, scale / 2), scale * 2], scale)
    return scale, jnp.where(full, 0, count)


@answers.right
def by_powers(scale, count, finite, period=2000):
    up = finite & (count + 1 >= period)
    down = ~finite & (scale > 1)
    factor = jnp.exp2(up.astype(jnp.float32) - down.astype(jnp.float32))
    return scale * factor, jnp.where(finite & ~up, count + 1, jnp.zeros_like(count))


@answers.wrong()
def by_halves_of_the_period(scale, count, finite, period=2000):
    grows = count + 1 >= min(period, 1000)
    new = jnp.where(finite, jnp.where(grows, 2 * scale, scale), jnp.maximum(scale / 2, 1))
    return new, jnp.where(finite & ~grows, count + 1, 0)


@answers.wrong()
def an_integer_scale(scale, count, finite, period=2000):
    grows = count + 1 >= period
    new = jnp.where(finite, jnp.where(grows, 2 * scale, scale), jnp.maximum(scale / 2, 1))
    return new.astype(jnp.int32), jnp.where(finite & ~grows, count + 1, 0)
