"""Answers to the exercise randomness.drop_batch."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.randomness.drop_batch import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("got 1 different mask")
def drop_one_key(drop, key, batch):
    return jax.vmap(drop, in_axes=(None, 0))(key, batch)


@answers.wrong("got 1 different mask")
def drop_first_key(drop, key, batch):
    return jax.vmap(drop, in_axes=(None, 0))(jax.random.split(key, len(batch))[0], batch)


@answers.wrong("got 2 different masks")
def drop_two_keys(drop, key, batch):
    keys = jnp.concatenate([jax.random.split(key)] * len(batch))[: len(batch)]
    return jax.vmap(drop)(keys, batch)


@answers.wrong("got 1 different mask")
def drop_by_content(drop, key, batch):
    def one(x):
        return drop(jax.random.fold_in(key, x.sum().astype(jnp.uint32)), x)

    return jax.vmap(one)(batch)


@answers.wrong("some of the same keys")
def drop_counted(drop, key, batch):
    steps = jnp.arange(len(batch), dtype=jnp.uint32)
    data = jax.random.key_data(key) + jnp.stack([jnp.zeros_like(steps), steps], axis=-1)
    return jax.vmap(drop)(jax.random.wrap_key_data(data), batch)


@answers.wrong("taken apart into its words")
def drop_mixed(drop, key, batch):
    numbers = jnp.arange(1, len(batch) + 1, dtype=jnp.uint32) * jnp.uint32(2654435761)
    data = jax.random.key_data(key) ^ numbers[:, None]
    return jax.vmap(drop)(jax.random.wrap_key_data(data), batch)


@answers.wrong("with the whole batch")
def drop_whole(drop, key, batch):
    return drop(key, batch)


@answers.wrong("grows with the batch")
def drop_loop(drop, key, batch):
    return jnp.stack([drop(k, x) for k, x in zip(jax.random.split(key, len(batch)), batch, strict=True)])


@answers.wrong("does not depend on the key")
def drop_seeds(drop, key, batch):
    return jax.vmap(drop)(jax.vmap(jax.random.key)(jnp.arange(len(batch))), batch)


@answers.wrong("keys at once")
def drop_all_keys(drop, key, batch):
    return jax.vmap(drop, in_axes=(None, 0))(jax.random.split(key, len(batch)), batch)


@answers.wrong("no key: it takes the key first")
def drop_swapped(drop, key, batch):
    return jax.vmap(drop)(batch, jax.random.split(key, len(batch)))


@answers.wrong("one example has the shape")
def drop_columns(drop, key, batch):
    return jax.vmap(drop, in_axes=(0, 1), out_axes=1)(jax.random.split(key, batch.shape[1]), batch)


@answers.wrong("does not call `drop`")
def drop_own_mask(drop, key, batch):
    return jnp.where(jax.random.bernoulli(key, 0.5, batch.shape), batch, 0.0)


@answers.wrong("JAX's own check does not see it")
def drop_and_fold(drop, key, batch):
    first, *_ = jax.random.split(key)
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(len(batch)))
    return jax.vmap(drop)(keys, batch) + 0 * jax.random.normal(first)


@answers.wrong("`return` missing")
def drop_no_return(drop, key, batch):
    jax.vmap(drop)(jax.random.split(key, len(batch)), batch)


# Right ones of unusual style, and wrong ones that look right


@answers.right
def by_place(drop, key, batch):
    def one(i, x):
        return drop(jax.random.fold_in(key, i), x)

    return jax.vmap(one)(jnp.arange(batch.shape[0]), batch)


@answers.right
def in_a_loop_of_jax(drop, key, batch):
    keys = jax.random.split(key, batch.shape[0])
    return jax.lax.map(lambda pair: drop(*pair), (keys, batch))


@answers.right
def with_a_spare_key(drop, key, batch):
    keys = jax.random.split(key, len(batch) + 1)
    return jax.vmap(drop, in_axes=(0, 0), out_axes=0)(keys[1:], batch)


@answers.wrong()
def shuffled_keys_of_two(drop, key, batch):
    keys = jax.random.split(key, 8)
    return jax.vmap(drop)(keys[jnp.arange(len(batch)) % 8], batch)


@answers.wrong("A seed has only 32 bits")
def random_seeds(drop, key, batch):
    return jax.vmap(drop)(jax.vmap(jax.random.key)(jax.random.bits(key, (len(batch),))), batch)
