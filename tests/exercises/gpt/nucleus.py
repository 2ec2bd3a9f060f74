"""Answers to the exercise gpt.nucleus."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.gpt.nucleus import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("One token too few stays")
def stops_early(logits, k, p):
    order = jnp.argsort(-logits)
    chances = jax.nn.softmax(jnp.where(jnp.arange(len(logits)) < k, logits[order], -jnp.inf))
    kept = (jnp.cumsum(chances) <= p + 1e-6) & (chances > 0)
    return logits.at[order].set(jnp.where(kept, logits[order], -jnp.inf))


@answers.wrong("is a share of the `k` that are left")
def of_all(logits, k, p):
    order = jnp.argsort(-logits)
    chances = jax.nn.softmax(logits[order])
    place = jnp.arange(len(logits))
    kept = ((jnp.cumsum(chances) - chances < p) | (place == 0)) & (place < k)
    return logits.at[order].set(jnp.where(kept, logits[order], -jnp.inf))


@answers.wrong("`k` has no influence")
def only_p(logits, k, p):
    return solution(logits, len(logits), p)


@answers.wrong("`p` has no influence")
def only_k(logits, k, p):
    return solution(logits, k, 1.0)


@answers.wrong("The most probable one always stays")
def none_left(logits, k, p):
    got = solution(logits, k, p)
    return jnp.where(p == 0, jnp.full_like(got, -jnp.inf), got)


@answers.wrong("a traced array was given to NumPy")
def by_shape(logits, k, p):
    order = np.argsort(-np.asarray(logits))[:k]
    chances = np.asarray(jax.nn.softmax(logits[order]))
    count = max(1, int((np.cumsum(chances) - chances < p).sum()))
    return jnp.full_like(logits, -jnp.inf).at[order[:count]].set(logits[order[:count]])


@answers.wrong("not only their probabilities")
def normalized(logits, k, p):
    return jax.nn.log_softmax(solution(logits, k, p))


@answers.wrong("is infinite")
def overflows(logits, k, p):
    order = jnp.argsort(-logits)
    place = jnp.arange(len(logits))
    chances = jnp.where(place < k, jnp.exp(logits[order]), 0)
    chances = chances / chances.sum()
    kept = (place < k) & ((jnp.cumsum(chances) - chances < p) | (place == 0))
    return logits.at[order].set(jnp.where(kept, logits[order], -jnp.inf))


@answers.wrong("Three are left")
def exceeds(logits, k, p):
    order, place = jnp.argsort(-logits), jnp.arange(len(logits))
    chances = jax.nn.softmax(jnp.where(place < k, logits[order], -jnp.inf))
    kept = (place <= jnp.searchsorted(jnp.cumsum(chances), p, side="right")) & (place < k)
    return logits.at[order].set(jnp.where(kept, logits[order], -jnp.inf))


@answers.wrong("not places or a mask")
def mask(logits, k, p):
    return jnp.isfinite(solution(logits, k, p))


@answers.wrong("`return` missing")
def nothing(logits, k, p):
    solution(logits, k, p)


@answers.right
def by_threshold(logits, k, p):
    top, _ = jax.lax.top_k(logits, k)
    chances = jax.nn.softmax(top)
    stays = jnp.cumsum(chances) - chances < p
    lowest = jnp.min(jnp.where(stays, top, jnp.inf))
    return jnp.where(logits >= jnp.minimum(lowest, top[0]), logits, -jnp.inf)


@answers.right
def by_comparison(logits, k, p):
    rank = (logits[None] > logits[:, None]).sum(axis=1)
    chances = jax.nn.softmax(jnp.where(rank < k, logits, -jnp.inf))
    before = jnp.where(logits[None] > logits[:, None], chances[None], 0).sum(axis=1)
    return jnp.where((rank < k) & ((before < p) | (rank == 0)), logits, -jnp.inf)


@answers.right
def from_log_softmax(logits, k, p):
    order, place = jnp.argsort(logits, descending=True), jnp.arange(len(logits))
    chances = jnp.exp(jax.nn.log_softmax(jnp.where(place < k, logits[order], -jnp.inf)))
    kept = (place == 0) | (place < k) & (jnp.append(0, jnp.cumsum(chances)[:-1]) < p)
    return jnp.full_like(logits, -jnp.inf).at[order].set(jnp.where(kept, logits[order], -jnp.inf))
