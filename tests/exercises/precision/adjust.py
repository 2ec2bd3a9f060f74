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
    factor = jnp.exp2(up.astype(jnp.float32) - (~finite).astype(jnp.float32))
    return jnp.maximum(scale * factor, 1), jnp.where(finite & ~up, count + 1, jnp.zeros_like(count))


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


def by_rule(scale, count, finite, period):
    """The solution."""
    return exercise.answer(scale, count, finite, period)


@answers.wrong()
def count_stays_at_the_floor(scale, count, finite, period=2000):
    grows = count + 1 >= period
    new = jnp.where(finite, jnp.where(grows, 2 * scale, scale), jnp.maximum(scale / 2, 1))
    return new, jnp.where(finite, jnp.where(grows, 0, count + 1), jnp.where(new < scale, 0, count))


@answers.wrong()
def floor_division(scale, count, finite, period=2000):
    new, count = by_rule(scale, count, finite, period)
    return jnp.where(finite, new, jnp.maximum(scale // 2, 1)), count


@answers.wrong("counts one on")
def count_in_bfloat16(scale, count, finite, period=2000):
    new, count = by_rule(scale, count.astype(jnp.bfloat16), finite, period)
    return new, count.astype(jnp.int32)


@answers.wrong("counts one on")
def count_in_int16(scale, count, finite, period=2000):
    return by_rule(scale, count, finite, period)[0], by_rule(scale, count, finite, period)[1].astype(
        jnp.int16
    ).astype(jnp.int32)


@answers.wrong()
def stays_at_one(scale, count, finite, period=2000):
    new, count = by_rule(scale, count, finite, period)
    return jnp.where(scale == 1, 1.0, new), count


@answers.wrong("counts one on")
def period_is_cut(scale, count, finite, period=2000):
    return by_rule(scale, count, finite, min(period, 2000))


@answers.wrong()
def one_period_early(scale, count, finite, period=1999):
    return by_rule(scale, count, finite, period)


@answers.wrong()
def a_largest_scale(scale, count, finite, period=2000):
    new, count = by_rule(scale, count, finite, period)
    return jnp.minimum(new, 2.0**16), count


@answers.wrong()
def without_a_floor_by_powers(scale, count, finite, period=2000):
    """Right for powers of two; 1.5 becomes 0.75."""
    up, down = finite & (count + 1 >= period), ~finite & (scale > 1)
    factor = jnp.exp2(up.astype(jnp.float32) - down.astype(jnp.float32))
    return scale * factor, jnp.where(finite & ~up, count + 1, 0)


@answers.right
def a_list(scale, count, finite, period=2000):
    return list(by_rule(scale, count, finite, period))


@answers.wrong()
def as_large_as_an_integer(scale, count, finite, period=2000):
    new, count = by_rule(scale, count, finite, period)
    return jnp.minimum(new, 2.0**31), count


@answers.right
def by_remainder(scale, count, finite, period=2000):
    count = jnp.where(finite, (count + 1) % period, 0)
    good = jnp.where(count == 0, 2 * scale, scale)
    return jnp.where(finite, good, jnp.maximum(1.0, 0.5 * scale)), count
