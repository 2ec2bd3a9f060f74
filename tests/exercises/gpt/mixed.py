"""Answers to the exercise gpt.mixed."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.gpt.mixed import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("wrong where numbers are extreme")
def by_probabilities(log_p, log_q, gate):
    share = jax.nn.sigmoid(gate)
    return jnp.log(share * jnp.exp(log_p) + (1 - share) * jnp.exp(log_q))


@answers.wrong("The gate is the wrong way round")
def other_way(log_p, log_q, gate):
    return solution(log_p, log_q, -gate)


@answers.wrong("This mixes the logarithms")
def mean_of_logarithms(log_p, log_q, gate):
    share = jax.nn.sigmoid(gate)
    return share * log_p + (1 - share) * log_q


@answers.wrong("its logarithm is asked for")
def probability(log_p, log_q, gate):
    return jnp.exp(solution(log_p, log_q, gate))


@answers.wrong("The sign is wrong")
def loss(log_p, log_q, gate):
    return -solution(log_p, log_q, gate)


@answers.wrong("its gradient is not")
def no_gradient(log_p, log_q, gate):
    return solution(log_p, log_q, jax.lax.stop_gradient(gate))


@answers.wrong("right alone, but not in one array")
def one_maximum(log_p, log_q, gate):
    a, b = jax.nn.log_sigmoid(gate) + log_p, jax.nn.log_sigmoid(-gate) + log_q
    largest = jnp.maximum(a, b).max()
    return largest + jnp.log(jnp.exp(a - largest) + jnp.exp(b - largest))


@answers.wrong("`return` missing")
def nothing(log_p, log_q, gate):
    solution(log_p, log_q, gate)


@answers.right
def by_logsumexp(log_p, log_q, gate):
    shares = jax.nn.log_softmax(jnp.stack([gate, jnp.zeros_like(gate)]), axis=0)
    return jax.nn.logsumexp(jnp.stack([log_p, log_q]) + shares, axis=0)


@answers.right
def by_softplus(log_p, log_q, gate):
    return jnp.logaddexp(log_p - jax.nn.softplus(-gate), log_q - jax.nn.softplus(gate))
