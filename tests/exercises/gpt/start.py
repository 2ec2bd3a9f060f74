"""Answers to the exercise gpt.start."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.gpt.start import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("behind the padding")
def one_place(model, trainables, prompts, lengths, size):
    logits, cache = model.decode(prompts, trainables, (), model.init_cache(prompts[:, :1], length=size))
    return logits[jnp.arange(len(prompts)), lengths - 1], cache


@answers.wrong("the logits after the padding")
def last_column(model, trainables, prompts, lengths, size):
    logits, cache = model.decode(prompts, trainables, (), model.init_cache(prompts[:, :1], length=size))
    return logits[:, -1], nn.with_place(cache, lengths)


@answers.wrong("one place too late")
def off_by_one(model, trainables, prompts, lengths, size):
    logits, cache = model.decode(prompts, trainables, (), model.init_cache(prompts[:, :1], length=size))
    return logits[jnp.arange(len(prompts)), lengths % prompts.shape[1]], nn.with_place(cache, lengths)


@answers.wrong("at wrong places")
def one_before(model, trainables, prompts, lengths, size):
    logits, cache = solution(model, trainables, prompts, lengths, size)
    return logits, nn.with_place(cache, lengths - 1)


@answers.wrong("The cache has room for 5")
def too_small(model, trainables, prompts, lengths, size):
    return solution(model, trainables, prompts, lengths, prompts.shape[1])


@answers.wrong("A pair is asked for")
def logits_alone(model, trainables, prompts, lengths, size):
    return solution(model, trainables, prompts, lengths, size)[0]


@answers.wrong("`return` missing")
def nothing(model, trainables, prompts, lengths, size):
    solution(model, trainables, prompts, lengths, size)


@answers.wrong("goes on differently")
def flipped(model, trainables, prompts, lengths, size):
    logits, _ = solution(model, trainables, prompts, lengths, size)
    _, cache = solution(model, trainables, prompts[:, ::-1], lengths, size)
    return logits, cache


@answers.wrong("logits, an array")
def the_cache_first(model, trainables, prompts, lengths, size):
    return solution(model, trainables, prompts, lengths, size)[::-1]


@answers.right
def by_indexing(model, trainables, prompts, lengths, size):
    cache = model.init_cache(prompts[:, :1], length=size)
    logits, cache = model.decode(prompts, trainables, (), cache)
    return logits[jnp.arange(len(prompts)), lengths - 1], nn.with_place(cache, lengths)


@answers.right
def step_by_step(model, trainables, prompts, lengths, size):
    def step(cache, ids):
        logits, cache = model.decode(ids[:, None], trainables, (), cache)
        return cache, logits[:, 0]

    cache, logits = jax.lax.scan(step, model.init_cache(prompts[:, :1], length=size), prompts.T)
    one_hot = jax.nn.one_hot(lengths - 1, prompts.shape[1])
    return jnp.einsum("bt,tbv->bv", one_hot, logits), nn.with_place(cache, lengths)


@answers.right
def by_list(model, trainables, prompts, lengths, size):
    logits, cache = model.decode(prompts, trainables, (), model.init_cache(prompts[:, :1], length=size))
    last = jnp.stack([row[n - 1 : n][0] for row, n in zip(logits, lengths.tolist())])
    return last, nn.with_place(cache, lengths)


answers.equivalent(
    "(:, 0) -> (:, -1)",
    "(:, 0) -> (:, 1)",
    because="one step is left, and JAX takes the last for an index outside",
)
answers.equivalent(
    ":1 -> :0",
    ":1 -> :2",
    because="of the ids `init_cache` needs the number of rows only: the length is given",
)
