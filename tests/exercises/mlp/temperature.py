"""Answers to the exercise mlp.temperature."""

import jax
import jax.numpy as jnp
import optax

from mlax_tutorial import optim
from mlax_tutorial.exercises.mlp.temperature import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


def nll(logits, labels):
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


@answers.wrong("logits are *divided* by it")
def inverse(logits, labels):
    return 1 / solution(logits, labels)


@answers.wrong("The accuracy has no slope")
def by_accuracy(logits, labels):
    def error(log_t):
        return -jnp.mean((logits / jnp.exp(log_t)).argmax(-1) == labels)

    log_t = jnp.float32(0)
    for _ in range(5):
        log_t = log_t - 0.1 * jax.grad(error)(log_t)
    return jnp.exp(log_t)


@answers.wrong("and return the other one")
def logarithm(logits, labels):
    return jnp.log(solution(logits, labels))


@answers.wrong("Does the search end before")
def three_steps(logits, labels):
    log_t = jnp.float32(0)
    for _ in range(3):
        log_t = log_t - 0.1 * jax.grad(lambda v: nll(logits / jnp.exp(v), labels))(log_t)
    return jnp.exp(log_t)


@answers.wrong("30 times too large the search does not arrive")
def narrow(logits, labels):
    grid = jnp.linspace(0.05, 5, 500)
    return grid[jnp.argmin(jax.vmap(lambda t: nll(logits / t, labels))(grid))]


@answers.wrong("80 times too small the search does not arrive")
@jax.jit
def from_a_fiftieth(logits, labels):
    def halve(_, bounds):
        low, high = bounds
        middle = (low + high) / 2
        cold = jax.grad(lambda v: nll(logits / jnp.exp(v), labels))(middle) < 0
        return jnp.where(cold, middle, low), jnp.where(cold, high, middle)

    low, high = jax.lax.fori_loop(0, 30, halve, (jnp.log(0.02), jnp.log(100.0)))
    return jnp.exp((low + high) / 2)


@answers.wrong("One temperature is asked for")
def of_each(logits, labels):
    return solution(logits, labels) * jnp.ones(len(labels))


@answers.wrong("`return` missing")
def nothing(logits, labels):
    solution(logits, labels)


@answers.wrong("Under `jax.jit`")
def in_python(logits, labels):
    low, high = -5.0, 5.0
    slope = jax.jit(jax.grad(lambda v: nll(logits / jnp.exp(v), labels)))
    for _ in range(25):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return jnp.exp(jnp.float32(low))


# Right ones of unusual style


@answers.right
def by_grid(logits, labels):
    grid = jnp.geomspace(0.01, 100, 1500)
    return grid[jnp.argmin(jax.lax.map(lambda t: nll(logits / t, labels), grid))]


@answers.right
@jax.jit
def by_newton(logits, labels):
    loss = lambda inverse: nll(logits * inverse, labels)  # noqa: E731

    def step(_, inverse):
        new = inverse - jax.grad(loss)(inverse) / jnp.maximum(jax.hessian(loss)(inverse), 1e-6)
        return jnp.clip(new, inverse / 3, inverse * 3)

    return 1 / jax.lax.fori_loop(0, 30, step, jnp.float32(1))


@answers.right
def by_adam(logits, labels):
    adam = optim.Adam(0.1)

    def step(carry, rate):
        log_t, moments = carry
        gradient = jax.grad(lambda v: nll(logits / jnp.exp(v), labels))(log_t)
        update, moments = adam.step(gradient, moments, log_t)
        return (log_t + rate * update, moments), None

    start = jnp.float32(0), adam.init(jnp.float32(0))
    return jnp.exp(jax.lax.scan(step, start, jnp.linspace(1, 0.02, 300))[0][0])


LOOP = "jax.lax.fori_loop({}, halve, (jnp.log(0.01), jnp.log(100.0)))"
answers.equivalent(
    "return jax.grad(lambda log_t: _loss(logits / jnp.exp(log_t), labels))(log_t): without a gradient",
    because="the slope is only compared with 0",
)
answers.equivalent(
    *(f"{LOOP.format('0, 30')} -> {LOOP.format(rounds)}" for rounds in ("-1, 30", "1, 30", "0, 29", "0, 31")),
    because="once more or less, the interval is far smaller than three digits ask for",
)
answers.equivalent(
    "slope(middle) < 0 -> slope(middle) <= 0",
    because="where the slope is 0 the middle is the best temperature, and both bounds approach it from then on",
)
answers.equivalent(
    "jnp.log(100.0) -> 100.0",
    "jnp.log(100.0) -> jnp.log(200.0)",
    because="the minimum lies in a wider interval as well, and is found in it",
)
