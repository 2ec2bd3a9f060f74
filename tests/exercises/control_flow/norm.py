"""Answers to the exercise control_flow.norm."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.exercises.control_flow.norm import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("comes too late")
def naive(x):
    return jnp.sqrt(jnp.sum(x * x))


@answers.wrong("comes too late")
def where_behind(x):
    squares = jnp.sum(x * x)
    return jnp.where(squares > 0, jnp.sqrt(squares), 0.0)


@answers.wrong("comes too late")
def nan_to_num(x):
    return jnp.nan_to_num(jnp.sqrt(jnp.sum(x * x)))


@answers.wrong("a zero vector is 0, exactly")
def epsilon(x):
    return jnp.sqrt(jnp.sum(x * x) + 1e-8)


@answers.wrong("a zero vector is 0, exactly")
def smallest(x):
    return jnp.sqrt(jnp.sum(x * x) + jnp.finfo(x.dtype).tiny)


@answers.wrong("a zero vector is 0, exactly")
def at_least_smallest(x):
    return jnp.sqrt(jnp.maximum(jnp.sum(x * x), jnp.finfo(x.dtype).tiny))


@answers.wrong("The length of a zero vector is 0.\n")
def one_at_zero(x):
    squares = jnp.sum(x * x)
    return jnp.sqrt(jnp.where(squares > 0, squares, 1.0))


@answers.wrong("may add up to 0")
def zero_by_the_sum(x):
    is_zero = jnp.sum(x) == 0
    return jnp.where(is_zero, 0.0, jnp.linalg.norm(jnp.where(is_zero, 1.0, x)))


@answers.wrong("may add up to 0")
def zero_by_the_first(x):
    is_zero = x[0] == 0
    return jnp.where(is_zero, 0.0, jnp.linalg.norm(jnp.where(is_zero, 1.0, x)))


@answers.wrong("may add up to 0")
def zero_by_the_largest(x):
    is_zero = jnp.max(x) == 0
    return jnp.where(is_zero, 0.0, jnp.linalg.norm(jnp.where(is_zero, 1.0, x)))


@answers.wrong("may add up to 0")
def zero_where_any(x):
    is_zero = jnp.any(x == 0)
    return jnp.where(is_zero, 0.0, jnp.linalg.norm(jnp.where(is_zero, 1.0, x)))


@answers.wrong("wrong for short vectors")
def epsilon_mended(x):
    squares = jnp.sum(x * x)
    return jnp.where(squares > 0, jnp.sqrt(squares + 1e-12), 0.0)


@answers.wrong("wrong for short vectors")
def bound(x):
    squares = jnp.sum(x * x)
    return jnp.where(squares > 0, jnp.sqrt(jnp.maximum(squares, 1e-12)), 0.0)


@answers.wrong("wrong for short vectors")
def threshold(x):
    squares = jnp.sum(x * x)
    safe = jnp.where(squares > 1e-12, squares, 1.0)
    return jnp.where(squares > 1e-12, jnp.sqrt(safe), 0.0)


@answers.wrong("wrong for short vectors")
def low_threshold(x):
    squares = jnp.sum(x * x)
    return jnp.sqrt(jnp.where(squares > 1e-20, squares, 1.0)) * (squares > 1e-20)


@answers.wrong("wrong for short vectors")
def lowest_threshold(x):
    squares = jnp.sum(x * x)
    return jnp.where(squares > 1e-29, jnp.sqrt(jnp.where(squares > 1e-29, squares, 1.0)), 0.0)


@answers.wrong("TracerBoolConversionError")
def python(x):
    if jnp.sum(x * x) == 0:
        return 0.0 * jnp.sum(x)
    return jnp.sqrt(jnp.sum(x * x))


@answers.wrong("the root is missing")
def square(x):
    return jnp.sum(x * x)


@answers.wrong("You average the squares")
def mean(x):
    return jnp.sqrt(jnp.mean(x * x))


@answers.wrong("another length")
def sizes(x):
    return jnp.abs(x).sum()


@answers.wrong("The gradient is wrong")
def stopped(x):
    squares = jnp.sum(x * x)
    return jnp.where(squares > 0, jnp.sqrt(lax.stop_gradient(squares)), 0.0)


@answers.wrong("NumPy's functions")
def numpy(x):
    return np.linalg.norm(x)


# Right ones of unusual style, and wrong ones that look right


@answers.right
def by_cond_of_any(x):
    return lax.cond(jnp.any(x != 0), lambda x: jnp.sqrt(jnp.sum(x * x)), lambda x: 0.0 * jnp.sum(x), x)


@answers.right
def harmless_vector(x):
    zero = jnp.all(x == 0)
    return jnp.where(zero, 0.0, jnp.linalg.norm(jnp.where(zero, jnp.ones_like(x), x)))


@jax.custom_jvp
def with_its_own_rule(x):
    return jnp.sqrt(jnp.sum(x * x))


@with_its_own_rule.defjvp
def _rule(primals, tangents):
    (x,), (t,) = primals, tangents
    length = with_its_own_rule(x)
    return length, jnp.vdot(jnp.where(length > 0, x / jnp.where(length > 0, length, 1.0), 0.0), t)


answers.right(lambda x: with_its_own_rule(x))


@answers.wrong()
def gradient_of_one_at_zero(x):
    squares = jnp.sum(x * x)
    return jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1.0)), jnp.sum(x))


answers.equivalent(
    "jnp.where(squares > 0, squares, 1.0) -> jnp.where(squares > 0, squares, 0.0)",
    "jnp.where(squares > 0, squares, 1.0) -> jnp.where(squares > 0, squares, 2.0)",
    because="both `where`s leave out what comes of that number, the outer one its root and the inner one its derivative",
)
