"""Answers to the exercise randomness.estimate_pi."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.randomness.estimate_pi import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def pi_with(points, error=None, factor=4.0):
    def estimate_pi(key, n):
        inside = points(key, n)
        mean = inside.mean()
        spread = jnp.sqrt(mean * (1 - mean))
        return factor * mean, (4 * spread / jnp.sqrt(n) if error is None else error(spread, n))

    return estimate_pi


def same_for_both(key, n):
    x, y = jax.random.uniform(key, (n,)), jax.random.uniform(key, (n,))
    return x**2 + y**2 < 1


answers.wrong("Both coordinates are the same number")(pi_with(same_for_both))


def on_diagonal(key, n):
    return 2 * jax.random.uniform(key, (n,)) ** 2 < 1


answers.wrong("Both coordinates are the same number")(pi_with(on_diagonal))


def normal_points(key, n):
    return (jax.random.normal(key, (n, 2)) ** 2).sum(-1) < 1


answers.wrong("The points are normal")(pi_with(normal_points))


def in_quarter(key, n):
    return (jax.random.uniform(key, (n, 2)) ** 2).sum(-1) < 1


answers.wrong("to be multiplied by 4")(pi_with(in_quarter, factor=1.0))


def pi_outside(key, n):
    return (jax.random.uniform(key, (n, 2)) ** 2).sum(-1) > 1


answers.wrong("outside of the circle")(pi_with(pi_outside))


def pi_unsquared(key, n):
    return jax.random.uniform(key, (n, 2)).sum(-1) < 1


answers.wrong("without being squared")(pi_with(pi_unsquared))


def fixed_points(key, n):
    return in_quarter(jax.random.key(0), n)


answers.wrong("does not depend on the key")(pi_with(fixed_points))


def split_and_used(key, n):
    other, _ = jax.random.split(key)
    x, y = jax.random.uniform(key, (n,)), jax.random.uniform(other, (n,))
    return x**2 + y**2 < 1


answers.wrong("A random key is used twice")(pi_with(split_and_used))


def few_points(key, n):
    return (jax.random.uniform(key, (n // 4, 2)) ** 2).sum(-1) < 1


answers.wrong("scatter otherwise than those of n")(pi_with(few_points))
answers.wrong("divide by the root of n")(pi_with(in_quarter, lambda s, n: 4 * s))
answers.wrong("and so is its error")(pi_with(in_quarter, lambda s, n: s / jnp.sqrt(n)))
answers.wrong("This is the variance: ")(pi_with(in_quarter, lambda s, n: 16 * s**2 / n))
answers.wrong("where it should by the root of n")(pi_with(in_quarter, lambda s, n: 4 * s / n))
answers.wrong("two standard errors")(pi_with(in_quarter, lambda s, n: 8 * s / jnp.sqrt(n)))
answers.wrong("1 over the root of n")(pi_with(in_quarter, lambda s, n: 1 / jnp.sqrt(n)))
answers.wrong("the same for each key")(pi_with(in_quarter, lambda s, n: 0.0519 + 0 * s))
answers.wrong("the same for each key")(pi_with(in_quarter, lambda s, n: jnp.sqrt(jnp.pi * (4 - jnp.pi) / n)))
answers.wrong("For n = 100")(pi_with(in_quarter, lambda s, n: 4 * s / jnp.sqrt(1000)))


@answers.wrong("the distance from pi itself")
def pi_distance(key, n):
    estimate = 4 * in_quarter(key, n).mean()
    return estimate, jnp.abs(estimate - jnp.pi)


@answers.wrong("does not belong to the estimate")
def other_throws(key, n):
    one, two = jax.random.split(key)
    return pi_with(in_quarter)(one, n)[0], pi_with(in_quarter)(two, n)[1]


@answers.wrong("Return two scalars")
def pi_only(key, n):
    return 4 * in_quarter(key, n).mean()


@answers.wrong("but a jax.Array is asked for")
def pi_on_the_host(key, n):
    return float(pi_only(key, n)), 0.05


# Right ones of unusual style, and wrong ones that look right


@answers.right
def whole_square(key, n):
    points = jax.random.uniform(key, (n, 2), minval=-1.0, maxval=1.0)
    throws = 4.0 * (jnp.linalg.norm(points, axis=-1) <= 1)
    return throws.mean(), throws.std(ddof=1) / n**0.5


@answers.right
def one_point_at_a_time(key, n):
    def throw(key):
        x, y = jax.random.uniform(key, (2,))
        return 4.0 * (x * x + y * y < 1)

    throws = jax.vmap(throw)(jax.random.split(key, n))
    return jnp.mean(throws), jnp.sqrt(jnp.var(throws) / n)


@answers.right
def returns_a_list(key, n):
    x, y = jax.random.uniform(key, (2, n))
    p = jnp.count_nonzero(x**2 + y**2 < 1) / n
    return [4 * p, 4 * jnp.sqrt(p * (1 - p)) / jnp.sqrt(n)]


@answers.wrong()
def pi_itself(key, n):
    return jnp.pi + 0.0519 * jax.random.normal(key) * jnp.sqrt(1000 / n), jnp.float32(0.0519)


@answers.wrong()
def bar_of_another_run(key, n):
    one, two = jax.random.split(key)
    estimate = whole_square(one, n)[0]
    return estimate, jnp.abs(estimate - whole_square(two, n)[0]) * 3


@answers.wrong("knows pi beforehand: draw the points")
def a_coin(key, n):
    p = jax.random.bernoulli(key, jnp.pi / 4, (n,)).mean()
    return 4 * p, 4 * jnp.sqrt(p * (1 - p) / n)


@answers.wrong("knows pi beforehand: draw the points")
def a_coin_at_a_time(key, n):
    throws = jax.lax.map(lambda key: jax.random.uniform(key) < jnp.pi / 4, jax.random.split(key, n))
    p = throws.mean()
    return 4 * p, 4 * jnp.sqrt(p * (1 - p) / n)


@answers.right
def in_a_loop_of_jax(key, n):
    throws = jax.lax.map(lambda key: (jax.random.uniform(key, (2,)) ** 2).sum() < 1, jax.random.split(key, n))
    p = throws.mean()
    return 4 * p, 4 * jnp.sqrt(p * (1 - p) / n)


@answers.right
def both_in_one_array(key, n):
    x, y = jax.random.uniform(key, (n, 2), minval=-1.0, maxval=1.0).T
    inside = jnp.hypot(x, y) < 1
    return 4 * inside.mean(), 4 * inside.std() / n**0.5


answers.equivalent(
    "x ** 2 + y ** 2 < 1 -> x ** 2 + y ** 2 <= 1",
    because="next to no point falls on the circle itself",
)
