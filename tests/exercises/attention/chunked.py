"""Answers to the exercise attention.chunked."""

import math

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.attention.chunked import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def pieces_of(key, value, size):
    return key.reshape(-1, size, key.shape[-1]), value.reshape(-1, size, value.shape[-1])


def softmaxes(query, key, value, size):
    def body(carry, piece):
        return carry, jax.nn.softmax(query @ piece[0].T / math.sqrt(query.shape[-1])) @ piece[1]

    return jax.lax.scan(body, None, pieces_of(key, value, size))[1]


@answers.wrong("their means are averaged")
def averages(query, key, value, size):
    return softmaxes(query, key, value, size).mean(axis=0)


@answers.wrong("divide once")
def adds(query, key, value, size):
    return softmaxes(query, key, value, size).sum(axis=0)


@answers.wrong("Only the last piece")
def last(query, key, value, size):
    return softmaxes(query, key, value, size)[-1]


def online(query, key, value, size, begin=-jnp.inf, scale=True, rescale=True, subtract=True, again=True):
    if scale:
        query = query / math.sqrt(query.shape[-1])

    def body(carry, piece):
        total, normalizer, largest = carry
        logits = query @ piece[0].T
        here = logits.max(axis=-1, keepdims=True)
        now = jnp.maximum(largest, here) if rescale else here
        weights = jnp.exp(logits - now if subtract else logits)
        factor = jnp.exp(largest - now) if rescale and subtract else 1.0
        total = total * factor + weights @ piece[1]
        return (total, normalizer * factor + weights.sum(axis=-1, keepdims=True), now), None

    rows = jnp.zeros((len(query), 1))
    carry = jnp.zeros((len(query), value.shape[-1])), rows, rows + begin
    body = jax.checkpoint(body) if again else body
    (total, normalizer, _), _ = jax.lax.scan(body, carry, pieces_of(key, value, size))
    return total / normalizer


@answers.wrong("the square root of d is missing")
def unscaled(query, key, value, size):
    return online(query, key, value, size, scale=False)


@answers.wrong("not scaled to the new one")
def without_rescaling(query, key, value, size):
    return online(query, key, value, size, rescale=False)


@answers.wrong("exponentials overflow")
def without_maximum(query, key, value, size):
    return online(query, key, value, size, subtract=False)


@answers.wrong("begins at 0 is never reached")
def begins_at_zero(query, key, value, size):
    return online(query, key, value, size, begin=0.0)


@answers.wrong("There is no `scan`")
def plain(query, key, value, size):
    return jax.nn.softmax(query @ key.T / math.sqrt(query.shape[-1])) @ value


@answers.wrong("as large as all weights together")
def logits_outside(query, key, value, size):
    logits = query @ key.T / math.sqrt(query.shape[-1])
    largest = logits.max(axis=-1, keepdims=True)
    pieces = jnp.moveaxis(logits.reshape(len(query), -1, size), 1, 0), pieces_of(key, value, size)[1]

    def body(carry, piece):
        weights = jnp.exp(piece[0] - largest)
        return (carry[0] + weights @ piece[1], carry[1] + weights.sum(axis=-1, keepdims=True)), None

    zeros = jnp.zeros((len(query), value.shape[-1])), jnp.zeros((len(query), 1))
    (total, normalizer), _ = jax.lax.scan(body, zeros, pieces)
    return total / normalizer


@answers.wrong()
def unrolled(query, key, value, size):
    """A Python loop: no piece is too large, but the program grows."""
    pieces = zip(*pieces_of(key, value, size))
    logits = [query @ k.T / math.sqrt(query.shape[-1]) for k, _ in pieces]
    return jax.nn.softmax(jnp.concatenate(logits, axis=-1)) @ value


@answers.wrong("should make 8 steps")
def other_pieces(query, key, value, size):
    return online(query, key, value, 1)


@answers.wrong("should make 8 steps")
def scans_over_queries(query, key, value, size):
    def one(carry, row):
        return carry, jax.nn.softmax(row @ key.T / math.sqrt(len(row))) @ value

    return jax.lax.scan(one, None, query)[1]


@answers.wrong("No gradient reaches `q`")
def without_gradient(query, key, value, size):
    return jax.lax.stop_gradient(exercise.answer(query, key, value, size))


@answers.wrong("divide by their sum at the end")
def not_divided(query, key, value, size):
    logits = query @ key.T / math.sqrt(query.shape[-1])
    largest = logits.max(axis=-1, keepdims=True)

    def body(total, piece):
        return total + jnp.exp(query @ piece[0].T / math.sqrt(query.shape[-1]) - largest) @ piece[1], None

    start = jnp.zeros((len(query), value.shape[-1]))
    return jax.lax.scan(body, start, pieces_of(key, value, size))[0]


@answers.wrong("Put `jax.checkpoint` around the function that you scan")
def stores_the_weights(query, key, value, size):
    return online(query, key, value, size, again=False)


@answers.wrong("Put `jax.checkpoint` around the function that you scan")
def checkpoints_the_loop(query, key, value, size):
    """The backward pass runs the whole loop again, and stores as much as without."""
    return jax.checkpoint(lambda *arrays: online(*arrays, size, again=False))(query, key, value)


@answers.right
def lowest_finite(query, key, value, size):
    return online(query, key, value, size, begin=jnp.finfo(jnp.float32).min)


@answers.right
def by_indices(query, key, value, size):
    """Slices in place of a reshape, and the scale at the logits."""

    def body(carry, start):
        total, normalizer, largest = carry
        k = jax.lax.dynamic_slice_in_dim(key, start, size)
        v = jax.lax.dynamic_slice_in_dim(value, start, size)
        logits = query @ k.T * query.shape[-1] ** -0.5
        now = jnp.maximum(largest, logits.max(axis=-1))
        weights, old = jnp.exp(logits - now[:, None]), jnp.exp(largest - now)
        return (total * old[:, None] + weights @ v, normalizer * old + weights.sum(-1), now), ()

    n = len(query)
    carry = jnp.zeros((n, value.shape[1])), jnp.zeros(n), jnp.full(n, -jnp.inf)
    carry, _ = jax.lax.scan(jax.remat(body), carry, jnp.arange(0, len(key), size))
    return carry[0] / carry[1][:, None]


@answers.right
def by_logsumexp(query, key, value, size):
    """Means of pieces, weighted by the sums of their exponentials."""

    def body(carry, piece):
        mean, log_sum = carry
        logits = query @ piece[0].T / math.sqrt(query.shape[-1])
        here = jax.nn.logsumexp(logits, axis=-1, keepdims=True)
        both = jnp.logaddexp(log_sum, here)
        new = jax.nn.softmax(logits) @ piece[1]
        return (mean * jnp.exp(log_sum - both) + new * jnp.exp(here - both), both), None

    carry = jnp.zeros((len(query), value.shape[-1])), jnp.full((len(query), 1), -jnp.inf)
    return jax.lax.scan(jax.checkpoint(body), carry, pieces_of(key, value, size))[0][0]


@answers.right
def in_two_passes(query, key, value, size):
    """First the largest logits, then the sums."""
    pieces = pieces_of(key / math.sqrt(query.shape[-1]), value, size)

    @jax.checkpoint
    def find(largest, piece):
        return jnp.maximum(largest, (query @ piece[0].T).max(axis=-1, keepdims=True)), None

    largest, _ = jax.lax.scan(find, jnp.full((len(query), 1), -jnp.inf), pieces)

    @jax.checkpoint
    def add(carry, piece):
        weights = jnp.exp(query @ piece[0].T - largest)
        return (carry[0] + weights @ piece[1], carry[1] + weights.sum(axis=-1, keepdims=True)), None

    zeros = jnp.zeros((len(query), value.shape[-1])), jnp.zeros((len(query), 1))
    (total, normalizer), _ = jax.lax.scan(add, zeros, pieces)
    return total / normalizer


def of_sizes(queries, keys, values):
    """The solution, with numbers of features that are written down where they are not None."""

    def chunked(query, key, value, size):
        d, features = keys or key.shape[-1], values or value.shape[-1]
        pieces = key.reshape(-1, size, d), value.reshape(-1, size, features)

        @jax.checkpoint
        def body(carry, piece):
            total, normalizer, largest = carry
            logits = query @ piece[0].T / math.sqrt(queries or query.shape[-1])
            now = jnp.maximum(largest, logits.max(axis=-1, keepdims=True))
            weights, rescale = jnp.exp(logits - now), jnp.exp(largest - now)
            total = total * rescale + weights @ piece[1]
            return (total, normalizer * rescale + weights.sum(axis=-1, keepdims=True), now), None

        rows = jnp.zeros((len(query), 1))
        carry = jnp.zeros((len(query), features)), rows, rows - jnp.inf
        (total, normalizer, _), _ = jax.lax.scan(body, carry, pieces)
        return total / normalizer

    return chunked


answers.right(of_sizes(None, None, None))
answers.wrong("With other numbers of features the result is wrong")(of_sizes(4, None, None))
answers.wrong("keys of shape (4, 6), values of shape (4, 5)")(of_sizes(None, 4, None))
answers.wrong("keys of shape (4, 6), values of shape (4, 5)")(of_sizes(None, None, 3))


answers.equivalent(
    "jax.lax.stop_gradient(jnp.maximum(largest, logits.max(axis=-1, keepdims=True))) -> "
    "jnp.maximum(largest, logits.max(axis=-1, keepdims=True))",
    because="the result does not depend on what is subtracted, so its gradient by that is zero",
)
answers.equivalent(
    "jax.checkpoint(body, prevent_cse=False) -> jax.checkpoint(body)",
    because="the argument changes how the program is compiled, and no number; the default is only slower in a scan",
)
answers.equivalent(
    *(f"-1 -> 1 ({number})" for number in range(3, 9)),
    because="these arrays have two axes, so that the last axis is the axis 1",
)
