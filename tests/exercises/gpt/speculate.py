"""Answers to the exercise gpt.speculate."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.gpt.speculate import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("For three drafts four tokens")
def always_two(key, drafts, q, p):
    return solution(key, drafts[:2], q[:2], p[:3])


def by_rest(rest_of, ratio_of=lambda p, q: p / q, keys=jax.random.split):
    def answer(key, drafts, q, p):
        accept_key, draw_key = keys(key)
        rows = jnp.arange(len(drafts))
        ratio = ratio_of(p[rows, drafts], q[rows, drafts])
        count = jnp.sum(jnp.cumprod(jax.random.uniform(accept_key, drafts.shape) < ratio))
        rest = jnp.concatenate([rest_of(p[:-1], q), p[-1:]])[count]
        last = jax.random.categorical(draw_key, jnp.log(rest))
        return jnp.append(drafts, 0).at[count].set(last), count + 1

    return answer


@answers.wrong("draw from what is missing")
def draws_from_p(key, drafts, q, p):
    return by_rest(lambda p, q: p)(key, drafts, q, p)


@answers.wrong("stands in its place")
def turned_round(key, drafts, q, p):
    return by_rest(lambda p, q: jnp.maximum(q - p, 0))(key, drafts, q, p)


@answers.wrong("stands in its place")
def appended(key, drafts, q, p):
    tokens, count = solution(key, drafts, q, p)
    return jnp.append(drafts, tokens[count - 1]), count


@answers.wrong("more probability than the small one")
def accepts_by_q_over_p(key, drafts, q, p):
    return by_rest(lambda p, q: jnp.maximum(p - q, 0), lambda p, q: q / p)(key, drafts, q, p)


@answers.wrong("Drafts are never refused")
def accepts_all(key, drafts, q, p):
    return by_rest(lambda p, q: p, lambda p, q: jnp.ones_like(p))(key, drafts, q, p)


@answers.wrong("too few or too many drafts")
def draws_from_p_at_once(key, drafts, q, p):
    return by_rest(lambda p, q: p, lambda p, q: jnp.zeros_like(p))(key, drafts, q, p)


@answers.wrong("The token that is drawn last counts")
def counts_drafts(key, drafts, q, p):
    tokens, count = by_rest(lambda p, q: jnp.maximum(p - q, 0))(key, drafts, q, p)
    return tokens, count - 1


@answers.wrong("random key is used twice")
def one_key(key, drafts, q, p):
    return by_rest(lambda p, q: jnp.maximum(p - q, 0), keys=lambda key: (key, key))(key, drafts, q, p)


@answers.wrong()
def counts_all_accepted(key, drafts, q, p):
    accept_key, draw_key = jax.random.split(key)
    rows = jnp.arange(len(drafts))
    accepted = jax.random.uniform(accept_key, drafts.shape) < p[rows, drafts] / q[rows, drafts]
    count = jnp.sum(accepted)
    rest = jnp.concatenate([jnp.maximum(p[:-1] - q, 0), p[-1:]])[count]
    return jnp.append(drafts, 0).at[count].set(jax.random.categorical(draw_key, jnp.log(rest))), count + 1


@answers.wrong("asks for the value of a traced array")
def by_loop(key, drafts, q, p):
    accept_key, draw_key = jax.random.split(key)
    numbers, count = jax.random.uniform(accept_key, drafts.shape), 0
    while count < len(drafts) and numbers[count] * q[count, drafts[count]] < p[count, drafts[count]]:
        count += 1
    rest = p[-1] if count == len(drafts) else jnp.maximum(p[count] - q[count], 0)
    last = jax.random.categorical(draw_key, jnp.log(rest))
    return jnp.append(drafts, 0).at[count].set(last), jnp.int32(count + 1)


@answers.wrong("`return` missing")
def nothing(key, drafts, q, p):
    by_rest(lambda p, q: p)(key, drafts, q, p)


@answers.right
def padded(key, drafts, q, p):
    accept_key, draw_key = jax.random.split(key)
    q = jnp.pad(q, ((0, 1), (0, 0)))
    rows = jnp.arange(len(drafts))
    refused = jax.random.uniform(accept_key, drafts.shape) * q[rows, drafts] >= p[rows, drafts]
    first = jnp.argmax(jnp.append(refused, True))
    last = jax.random.choice(
        draw_key,
        p.shape[1],
        p=jnp.maximum(p - q, 0)[first] / jnp.maximum(p - q, 0)[first].sum(),
    )
    return jnp.where(jnp.arange(len(p)) == first, last, jnp.append(drafts, 0)), first + 1


@answers.right
def by_scan(key, drafts, q, p):
    accept_key, draw_key = jax.random.split(key)
    keys = jax.random.split(accept_key, len(drafts))

    def step(alive, each):
        key, draft, q, p = each
        alive = alive & (jax.random.uniform(key) < p[draft] / q[draft])
        return alive, alive

    _, alive = jax.lax.scan(step, jnp.array(True), (keys, drafts, q, p[:-1]))
    count = alive.sum()
    rest = jnp.vstack([jnp.clip(p[:-1] - q, 0), p[-1:]])
    last = jax.random.categorical(draw_key, jnp.log(rest)[count])
    return jnp.append(drafts, 0).at[count].set(last), count + 1


answers.equivalent(
    "jax.random.uniform(accept_key, drafts.shape) < ratio -> jax.random.uniform(accept_key, drafts.shape) <= ratio",
    because="a number drawn equals the ratio once in millions of times",
)
answers.equivalent(
    "jnp.append(drafts, 0) -> jnp.append(drafts, -1)",
    "jnp.append(drafts, 0) -> jnp.append(drafts, 1)",
    because="the place that is appended is either set, or does not count",
)
