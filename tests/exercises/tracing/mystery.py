"""Answers to the exercise tracing.mystery."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.exercises.tracing.mystery import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("square root is missing")(lambda x, y: y * x / jnp.sum(x * x))
answers.wrong("second input")(lambda x, y: x / jnp.sqrt(jnp.sum(x * x)))
answers.wrong("`reduce_sum` adds up")(lambda x, y: y * x / jnp.sqrt(jnp.mean(x * x)))
answers.wrong("not the second")(lambda x, y: y * x / jnp.sqrt(jnp.sum(y * y)))
answers.wrong("sum first, then the root")(lambda x, y: y * x / jnp.sum(jnp.sqrt(x * x)))
answers.wrong("not over the inputs")(lambda x, y: y * x / jnp.sqrt(jnp.sum(x)))
answers.wrong("still to be divided")(lambda x, y: y * x)
answers.wrong("the other way round")(lambda x, y: jnp.sqrt(jnp.sum(x * x)) / (y * x))
answers.wrong("element by element")(lambda x, y: jnp.dot(y, x) / jnp.sqrt(jnp.sum(x * x)))
answers.wrong("`reduce_sum` is missing")(lambda x, y: y * x / jnp.sqrt(x * x))
answers.wrong("not a square")(lambda x, y: x * x / jnp.linalg.norm(x))
answers.wrong("divide by the root")(lambda x, y: y * x * jnp.linalg.norm(x))
answers.wrong("there is one `reduce_sum`")(lambda x, y: y * x / (jnp.linalg.norm(x) * jnp.linalg.norm(y)))
answers.wrong("not for small ones")(lambda x, y: y * x / (jnp.linalg.norm(x) + 1e-8))
answers.wrong("not for small ones")(lambda x, y: y * x / jnp.sqrt(jnp.sum(x * x) + 1e-5))


@answers.wrong("divides 0 by 0")
def guarded(x, y):
    length = jnp.linalg.norm(x)
    return jnp.where(length > 0, y * x / length, 0.0)


@answers.wrong("right for three numbers")
def of_three(x, y):
    return y * x / jnp.sqrt(x[0] ** 2 + x[1] ** 2 + x[2] ** 2)


@answers.wrong("right for three numbers")
def broadcast_to_three(x, y):
    return y * x / jnp.broadcast_to(jnp.sqrt(jnp.sum(x * x)), (3,))


answers.wrong("returned a tuple")(lambda x, y: (solution(x, y),))
answers.wrong("given to NumPy")(lambda x, y: y * x / np.linalg.norm(x))


# Right ones of unusual style, and wrong ones that look right


@answers.right
def unit_vector(x, y):
    return y * (x / jnp.linalg.norm(x))


@answers.right
def reciprocal_root(x, y):
    return y * x * lax.rsqrt(jnp.vdot(x, x))


@answers.right
def element_by_element(x, y):
    return jnp.stack([b * a / jnp.sqrt(sum(x * x)) for a, b in zip(x, y, strict=True)])


@answers.right
def line_by_line(x, y):
    f = lax.sqrt(lax.reduce_sum(lax.mul(x, x), axes=(0,)))
    return lax.div(lax.mul(y, x), lax.broadcast_in_dim(f, x.shape, ()))
