"""Answers to the exercise vmap.contrast."""

import jax
import jax.numpy as jnp
import optax
from jax import lax

from mlax_tutorial.exercises.vmap.contrast import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("All examples look at place 0")
def first(query, key):
    return -jax.nn.log_softmax(lax.all_gather(key, "batch") @ query)[0]


@answers.wrong("over all queries for one key")
def queries(query, key):
    return -jax.nn.log_softmax(lax.all_gather(query, "batch") @ key)[lax.axis_index("batch")]


@answers.wrong("with its *own* key")
def own_pairs(query, key):
    score = query @ key
    return jax.nn.logsumexp(lax.all_gather(score, "batch")) - score


@answers.wrong("The sign is wrong")
def positive(query, key):
    return -solution(query, key)


@answers.wrong("These are the probabilities")
def probability(query, key):
    return jax.nn.softmax(lax.all_gather(key, "batch") @ query)[lax.axis_index("batch")]


@answers.wrong("minus its *logarithm*")
def minus_probability(query, key):
    return -probability(query, key)


@answers.wrong("as in attention")
def as_attention(query, key):
    return solution(query / jnp.sqrt(len(query)), key)


@answers.wrong("leaves out the example's own")
def without_own(query, key):
    scores = lax.all_gather(key, "batch") @ query
    others = jnp.where(jnp.arange(len(scores)) == lax.axis_index("batch"), -jnp.inf, scores)
    return jax.nn.logsumexp(others) - query @ key


@answers.wrong("`exp` overflows")
def unstable(query, key):
    weights = jnp.exp(lax.all_gather(key, "batch") @ query)
    return -jnp.log(weights[lax.axis_index("batch")] / weights.sum())


@answers.wrong("This is the mean over the batch")
def mean(query, key):
    return lax.pmean(solution(query, key), "batch")


@answers.wrong("a row of numbers")
def row(query, key):
    return -jax.nn.log_softmax(lax.all_gather(key, "batch") @ query)


@answers.wrong("The other keys do not occur")
def alone(query, key):
    return -query @ key


@answers.wrong("unbound axis name")
def unnamed(query, key):
    return -jax.nn.log_softmax(lax.all_gather(key, "examples") @ query)[lax.axis_index("examples")]


@answers.wrong("diagonal")
def for_a_batch(query, key):
    return -jnp.diagonal(jax.nn.log_softmax(query @ key.T, axis=1))


@answers.wrong("grows with the batch")
def loop(query, key):
    size = lax.axis_size("batch")
    scores = jnp.stack([lax.all_gather(key, "batch")[i] @ query for i in range(size)])
    return -jax.nn.log_softmax(scores)[lax.axis_index("batch")]


@answers.wrong("`return` missing")
def no_return(query, key):
    solution(query, key)


# Right ones of unusual style, and wrong ones that look right


@answers.right
def by_logsumexp(query, key):
    scores = jax.vmap(jnp.dot, (0, None))(lax.all_gather(key, "batch"), query)
    return jax.nn.logsumexp(scores) - query @ key


@answers.right
@jax.jit
def by_optax_loss(query, key):
    scores = lax.all_gather(key, "batch") @ query
    return optax.softmax_cross_entropy_with_integer_labels(scores, lax.axis_index("batch"))


@answers.wrong()
def without_the_own_key(query, key):
    scores = lax.all_gather(key, "batch") @ query
    others = jnp.where(jnp.arange(len(scores)) == lax.axis_index("batch"), -jnp.inf, scores)
    return jax.nn.logsumexp(others) - query @ key


@answers.wrong()
def no_gradient_to_the_keys(query, key):
    return solution(query, lax.stop_gradient(key))


@answers.wrong("`exp` overflows")
def softmax_first(query, key):
    return -jnp.log(jax.nn.softmax(lax.all_gather(key, "batch") @ query)[lax.axis_index("batch")])
