"""Answers to the exercise errors.entropy."""

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.errors.entropy import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("hides a bad value and not a bad derivative")
def broken(p):
    return -jnp.sum(jnp.where(p > 0, p * jnp.log(p), 0.0))


@answers.wrong("hides a bad value and not a bad derivative")
def scipy(p):
    return jnp.sum(jax.scipy.special.entr(p))


@answers.wrong("hides a bad value and not a bad derivative")
def nan_to_num(p):
    return -jnp.sum(jnp.nan_to_num(p * jnp.log(p)))


@answers.wrong("nothing is to be added")
def added(p):
    return -jnp.sum(p * jnp.log(p + 1e-7))


@answers.wrong("nothing is to be added")
def bounded(p):
    return -jnp.sum(p * jnp.log(jnp.maximum(p, 1e-20)))


@answers.wrong("nothing is to be added")
def bounded_inside(p):
    return -jnp.sum(jnp.where(p > 0, p * jnp.log(jnp.maximum(p, 1e-25)), 0.0))


@answers.wrong("finite, but wrong")
def half_mended(p):
    return -jnp.sum(p * jnp.log(jnp.where(p > 0, p, 1e-37)))


@answers.wrong("0 everywhere")
def stopped(p):
    return lax.stop_gradient(solution(p))


@answers.wrong("in bits")
def bits(p):
    return solution(p) / jnp.log(2.0)


@answers.wrong("TracerBoolConversionError")
def python(p):
    return -sum(value * jnp.log(value) for value in p if value > 0) + jnp.float32(0.0)


answers.wrong("The sign is wrong")(lambda p: -solution(p))


# Right ones of unusual style, and wrong ones that look right


@answers.right
def twice_where(p):
    safe = jnp.where(p > 0, p, 0.5)
    return -jnp.sum(jnp.where(p > 0, p * jnp.log(safe), 0.0))


@jax.custom_jvp
def with_its_own_rule(p):
    return -jnp.sum(jnp.where(p > 0, p * jnp.log(p), 0.0))


@with_its_own_rule.defjvp
def _rule(primals, tangents):
    (p,), (t,) = primals, tangents
    slope = jnp.where(p > 0, -jnp.log(jnp.where(p > 0, p, 1.0)) - 1.0, 0.0)
    return with_its_own_rule(p), jnp.vdot(slope, t)


answers.right(lambda p: with_its_own_rule(p))


@answers.right
@jax.jit
def by_vmap(p):
    def term(p):
        return lax.cond(p > 0, lambda p: -p * jnp.log(p), lambda p: 0.0 * p, p)

    return jax.vmap(term)(p).sum()


@answers.wrong()
def clips_at_the_least(p):
    return -jnp.sum(p * jnp.log(jnp.maximum(p, jnp.finfo(p.dtype).tiny)))


@answers.wrong()
def xlogy(p):
    return -jnp.sum(jax.scipy.special.xlogy(p, p))


@answers.wrong()
def straight_through(p):
    value = -jnp.sum(jnp.where(p > 0, p * jnp.log(p), 0.0))
    return lax.stop_gradient(value) + jnp.sum(p - lax.stop_gradient(p))
