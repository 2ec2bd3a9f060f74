"""Answers to the exercise errors.mean_of_positive."""

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.errors.mean_of_positive import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("NonConcreteBooleanIndexError")
def broken(x):
    return x[x > 0].mean()


@answers.wrong("the number of all elements")
def mean_of_positive_all(x):
    return jnp.where(x > 0, x, 0.0).mean()


@answers.wrong("A zero is not positive")
def zeros(x):
    return jnp.where(x > 0, x, 0.0).sum() / jnp.maximum((x >= 0).sum(), 1)


@answers.wrong("if the compiler is kind")
def product(x):
    positive = x > 0
    return (x * positive).sum() / jnp.maximum(positive.sum(), 1)


@answers.wrong("not beside an infinity")
def ones(x):
    ones = jnp.where(x > 0, 1.0, 0.0)
    return jnp.sum(x * ones) / jnp.maximum(jnp.sum(ones), 1)


@answers.wrong("not beside an infinity")
def relu(x):
    return jax.nn.relu(x).sum() / jnp.maximum((x > 0).sum(), 1)


@answers.wrong("infinity is positive, and counts")
def nan_to_num(x):
    return jnp.nan_to_num(jnp.mean(x, where=x > 0))


@answers.wrong("not where nothing is positive")
def of_none(x):
    positive = x > 0
    return jnp.where(positive, x, 0.0).sum() / positive.sum()


@answers.wrong("TracerBoolConversionError")
def python(x):
    positive = x > 0
    return jnp.where(positive, x, 0.0).sum() / max(positive.sum(), 1)


@answers.wrong("The gradient is wrong")
def stopped(x):
    return lax.stop_gradient(solution(x))


@answers.wrong("filled up with 0")
def sized(x):
    return x[jnp.nonzero(x > 0, size=x.size)[0]].mean()


answers.wrong("This is the sum")(lambda x: jnp.where(x > 0, x, 0.0).sum())


# Right ones of unusual style, and wrong ones that look right


@answers.right
def guarded_outside(x):
    count = jnp.count_nonzero(x > 0)
    total = jnp.sum(x, where=x > 0, initial=0.0)
    return jnp.where(count > 0, total / jnp.where(count > 0, count, 1), 0.0)


@answers.right
@jax.jit
def in_a_loop(x):
    def step(carry, value):
        total, count = carry
        return (total + jnp.where(value > 0, value, 0.0), count + (value > 0)), None

    (total, count), _ = lax.scan(step, (jnp.float32(0.0), jnp.int32(0)), jnp.ravel(x))
    return total / jnp.maximum(count, 1)


@answers.right
def with_where(x):
    return jnp.where(
        jnp.any(x > 0), jnp.mean(jnp.where(x > 0, x, 0.0)) * x.size / jnp.maximum((x > 0).sum(), 1), 0.0
    )


@answers.wrong()
def with_relu(x):
    return jax.nn.relu(x).sum() / jnp.maximum((x > 0).sum(), 1)


@answers.wrong()
def mean_where(x):
    return jnp.nan_to_num(jnp.mean(x, where=x >= 0))


@answers.wrong("not for a table")
def mean_of_means(x):
    return jnp.mean(jnp.sum(jnp.where(x > 0, x, 0), 0) / jnp.maximum(jnp.sum(x > 0, 0), 1))
