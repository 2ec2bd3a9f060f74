"""Answers to the exercise first_network.binary_cross_entropy."""

import jax
import jax.flatten_util
import jax.numpy as jnp

from mlax_tutorial.exercises.first_network.binary_cross_entropy import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("for large ones it is not finite")
def bce_naive(logits, labels):
    p = 1 / (1 + jnp.exp(-logits))
    return -labels * jnp.log(p) - (1 - labels) * jnp.log(1 - p)


@answers.wrong("stops growing")
def bce_clipped(logits, labels):
    p = jnp.clip(jax.nn.sigmoid(logits), 1e-7, 1 - 1e-7)
    return -labels * jnp.log(p) - (1 - labels) * jnp.log(1 - p)


@answers.wrong("stops growing")
def bce_small_number(logits, labels):
    p = jax.nn.sigmoid(logits)
    return -labels * jnp.log(p + 1e-12) - (1 - labels) * jnp.log(1 - p + 1e-12)


@answers.wrong("hides it and does not mend it")
def bce_nan_to_num(logits, labels):
    return jnp.nan_to_num(bce_naive(logits, labels))


@answers.wrong("Each example needs its own")
def bce_largest_of_all(logits, labels):
    m = jnp.maximum(jnp.max(logits), 0)
    return m + jnp.log(jnp.exp(-m) + jnp.exp(logits - m)) - logits * labels


@answers.wrong("axis 1 is out of bounds")
def bce_axis_1(logits, labels):
    both = jnp.stack([jnp.zeros_like(logits), logits], axis=1)
    return jax.nn.logsumexp(both, axis=1) - logits * labels


@answers.wrong("This is the probability")
def bce_probability(logits, labels):
    return jax.nn.sigmoid(logits)


@answers.wrong("Optax's loss")
def bce_ready_made(logits, labels):
    import optax

    return optax.losses.sigmoid_binary_cross_entropy(logits, labels)


@answers.wrong("for large ones it is not finite")
def bce_half_way(logits, labels):
    return jnp.log1p(jnp.exp(logits)) - logits * labels


@answers.wrong("0 times infinity is NaN")
def bce_where(logits, labels):
    softplus = jnp.where(logits > 0, logits + jnp.log1p(jnp.exp(-logits)), jnp.log1p(jnp.exp(logits)))
    return softplus - logits * labels


def linear_beyond(limit):
    def bce_linear_beyond(logits, labels):
        inside = bce_naive(jnp.clip(logits, -limit, limit), labels)
        return jnp.where(jnp.abs(logits) > limit, jnp.maximum(logits, 0) - logits * labels, inside)

    return bce_linear_beyond


answers.wrong("in between it is not")(linear_beyond(8.0))
answers.wrong("in between it is not")(linear_beyond(15.0))


@answers.right
def bce_chosen_by_label(logits, labels):
    return jnp.where(labels == 1, jax.nn.softplus(-logits), jax.nn.softplus(logits))


@answers.right
def bce_by_log_softmax(logits, labels):
    both = jax.nn.log_softmax(jnp.stack([jnp.zeros_like(logits), logits]), axis=0)
    return -jnp.where(labels > 0.5, both[1], both[0])


@answers.wrong("at the logit 0")
def bce_abs(logits, labels):
    return jnp.maximum(logits, 0) - logits * labels + jnp.log1p(jnp.exp(-jnp.abs(logits)))


@answers.wrong("at the logit 0")
def bce_relu(logits, labels):
    return (
        jax.nn.relu(logits)
        - logits * labels
        + jnp.log1p(jnp.exp(-jax.nn.relu(logits) - jax.nn.relu(-logits)))
    )


@answers.wrong("mean over the batch")
def bce_mean(logits, labels):
    return jnp.mean(solution(logits, labels))


@answers.wrong("opposite label")
def bce_swapped(logits, labels):
    return solution(logits, 1 - labels)


@answers.wrong("truth value of an array")
def bce_if(logits, labels):
    if logits > 0:
        return logits + jnp.log1p(jnp.exp(-logits)) - logits * labels
    return jnp.log1p(jnp.exp(logits)) - logits * labels


answers.equivalent(
    "jnp.maximum(logits, 0) -> jnp.maximum(logits, -1)",
    "jnp.maximum(logits, 0) -> jnp.maximum(logits, 1)",
    because="whatever is taken out of the logarithm is added again, and near the larger exponent nothing overflows",
)
