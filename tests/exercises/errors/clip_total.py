"""Answers to the exercise errors.clip_total."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.exercises.errors.clip_total import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("if total > limit:")
def broken(x, limit):
    total = jnp.sum(x)
    if total > limit:
        return limit
    return total


@answers.wrong("return min(")
def by_python(x, limit):
    return min(jnp.sum(x), limit)


@answers.wrong("ConcretizationTypeError")
def clip_total_float(x, limit):
    total = float(jnp.sum(x))
    return jnp.where(total > limit, limit, total)


@answers.wrong("should not be static")
@functools.partial(jax.jit, static_argnums=1)
def static(x, limit):
    total = jnp.sum(x)
    return jnp.where(total > limit, limit, total)


@answers.wrong("NumPy's functions compute")
def numpy(x, limit):
    return np.minimum(np.sum(x), limit)


@answers.wrong("The gradient is wrong")
def stopped(x, limit):
    return lax.stop_gradient(jnp.minimum(jnp.sum(x), limit))


answers.wrong("the larger of the two")(lambda x, limit: jnp.maximum(jnp.sum(x), limit))
answers.wrong("Each element is clipped")(lambda x, limit: jnp.sum(jnp.minimum(x, limit)))


# Right ones of unusual style, and wrong ones that look right


@answers.right
@jax.jit
def chosen(x, limit):
    total = x.sum()
    return jnp.where(total > limit, limit, total)


@answers.right
def by_cond(x, limit):
    total = jnp.sum(x)
    return lax.cond(total > limit, lambda: limit, lambda: total)


answers.right(lambda x, limit: lax.select(x.sum() > limit, limit, x.sum()))
answers.right(lambda x, limit: jnp.clip(jnp.sum(x), max=limit))
answers.right(lambda x, limit: lax.min(jnp.sum(x), limit))


@answers.wrong()
def by_callback(x, limit):
    return jax.pure_callback(
        lambda x, limit: np.minimum(x.sum(), limit), jax.ShapeDtypeStruct((), jnp.float32), x, limit
    )


@answers.wrong()
def clips_softly(x, limit):
    return limit - jax.nn.relu(limit - jnp.sum(x) - 1e-3)


@answers.wrong()
def once_for_each_limit(x, limit):
    try:
        return jnp.float32(limit) if float(jnp.sum(x)) > float(limit) else jnp.sum(x)
    except jax.errors.ConcretizationTypeError:
        return jnp.sum(x)


@answers.wrong()
def of_rows_only(x, limit):
    return jnp.minimum(sum(x), limit)
