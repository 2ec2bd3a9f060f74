"""Answers to the exercise errors.mean_log."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import checkify

from mlax_tutorial.exercises.errors.mean_log import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("TracerBoolConversionError")
@jax.jit
def broken(x):
    bad = jnp.sum(x <= 0)
    assert bad == 0, f"{bad} elements are not positive"
    return jnp.mean(jnp.log(x))


@answers.wrong("functionaliz")
@jax.jit
def not_functionalized(x):
    bad = jnp.sum(x <= 0)
    checkify.check(bad == 0, "{bad} elements are not positive", bad=bad)
    return jnp.mean(jnp.log(x))


@answers.wrong("not jitted")
def not_jitted(x):
    return solution.__wrapped__(x)


@answers.wrong("in the wrong order")
@jax.jit
def swapped(x):
    error, value = solution.__wrapped__(x)
    return value, error


@answers.wrong("A pair is asked for")
def throws(x):
    error, value = solution(x)
    error.throw()
    return value


@answers.wrong("A zero is not positive either")
@jax.jit
def below_zero(x):
    def checked(x):
        bad = jnp.sum(x < 0)
        checkify.check(bad == 0, "{bad} elements are not positive", bad=bad)
        return jnp.mean(jnp.log(x))

    return checkify.checkify(checked)(x)


@answers.wrong("an f-string is filled in while tracing")
@jax.jit
def f_string(x):
    def checked(x):
        bad = jnp.sum(x <= 0)
        checkify.check(bad == 0, f"{bad} elements are not positive")
        return jnp.mean(jnp.log(x))

    return checkify.checkify(checked)(x)


@answers.wrong("not with these words")
@jax.jit
def only_floats(x):
    return checkify.checkify(lambda x: jnp.mean(jnp.log(x)), errors=checkify.float_checks)(x)


@answers.wrong("The number in the note")
@jax.jit
def counts_all(x):
    def checked(x):
        checkify.check(jnp.all(x > 0), "{bad} elements are not positive", bad=jnp.int32(x.size))
        return jnp.mean(jnp.log(x))

    return checkify.checkify(checked)(x)


@answers.wrong("and yet there is a note")
@jax.jit
def wrong_way_round(x):
    def checked(x):
        bad = jnp.sum(x <= 0)
        checkify.check(bad > 0, "{bad} elements are not positive", bad=bad)
        return jnp.mean(jnp.log(x))

    return checkify.checkify(checked)(x)


@answers.wrong("Nothing is noted")
@jax.jit
def never(x):
    return checkify.checkify(lambda x: jnp.mean(jnp.log(x)))(x)


# Right ones of unusual style, and wrong ones that look right


@answers.right
@jax.jit
@functools.partial(checkify.checkify, errors=checkify.user_checks)
def decorated(x):
    bad = (x <= 0).sum()
    checkify.check(~jnp.any(x <= 0), "{n} elements are not positive", n=bad)
    return jnp.log(x).mean()


def _checked(x):
    count = jnp.count_nonzero(x <= 0)
    checkify.check(count < 1, "x is bad: {count} elements are not positive!", count=count)
    return jnp.log(x).sum() / x.size


answers.right(jax.jit(checkify.checkify(_checked)))


def _forever_one(x):
    checkify.check(jnp.all(x > 0), "2 elements are not positive")
    return jnp.log(x).mean()


answers.wrong()(jax.jit(checkify.checkify(_forever_one)))


def _harmless(x):
    checkify.check(jnp.all(x > 0), "{n} elements are not positive", n=(x <= 0).sum())
    return jnp.log(jnp.maximum(x, 2.0)).mean()


answers.wrong()(jax.jit(checkify.checkify(_harmless)))


def _by_columns(x):
    bad = jnp.max(jnp.sum(x <= 0, axis=0))
    checkify.check(bad == 0, "{n} elements are not positive", n=bad)
    return jnp.mean(jnp.log(x))


answers.wrong()(jax.jit(checkify.checkify(_by_columns)))


def _without_its_value(x):
    bad = jnp.sum(x <= 0)
    checkify.check(bad == 0, "{bad} elements are not positive")
    return jnp.mean(jnp.log(x))


answers.wrong("The note cannot be written")(jax.jit(checkify.checkify(_without_its_value)))
