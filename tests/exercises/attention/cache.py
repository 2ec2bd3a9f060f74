"""Answers to the exercise attention.cache."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.attention._chapter import attend
from mlax_tutorial.exercises.attention.cache import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def written(key, value, cache, at):
    return cache["key"].at[at].set(key[0]), cache["value"].at[at].set(value[0])


@answers.wrong("places that are not filled yet")
def without_a_mask(query, key, value, cache):
    place = cache["place"]
    keys, values = written(key, value, cache, place % len(cache["key"]))
    return attend(query, keys, values), {"key": keys, "value": values, "place": place + 1}


@answers.wrong("the last place is overwritten")
def clamped(query, key, value, cache):
    place, write = cache["place"], jax.lax.dynamic_update_slice_in_dim
    keys, values = write(cache["key"], key, place, 0), write(cache["value"], value, place, 0)
    allowed = jnp.arange(len(keys))[None] <= place
    return attend(query, keys, values, allowed), {"key": keys, "value": values, "place": place + 1}


@answers.wrong("one key too few")
def forgets_one(query, key, value, cache):
    place, size = cache["place"], len(cache["key"])
    keys, values = written(key, value, cache, place % size)
    allowed = (jnp.arange(size) <= place) & (jnp.arange(size) != (place + 1) % size)
    return attend(query, keys, values, allowed[None]), {"key": keys, "value": values, "place": place + 1}


@answers.wrong("should be 3")
def place_modulo(query, key, value, cache):
    y, new = exercise.answer(query, key, value, cache)
    return y, new | {"place": new["place"] % len(new["key"])}


@answers.wrong("should be 1")
def place_stands_still(query, key, value, cache):
    y, new = exercise.answer(query, key, value, cache)
    return y, new | {"place": cache["place"]}


@answers.wrong("in this order")
def swapped(query, key, value, cache):
    return exercise.answer(query, key, value, cache)[::-1]


@answers.wrong("The shape of the result of step 0")
def without_the_axis(query, key, value, cache):
    y, new = exercise.answer(query, key, value, cache)
    return y[0], new


@answers.wrong("The shape of the cache")
def grows(query, key, value, cache):
    keys, values = jnp.concatenate([cache["key"], key]), jnp.concatenate([cache["value"], value])
    y = attend(query, keys, values)
    return y, {"key": keys, "value": values, "place": cache["place"] + 1}


@answers.wrong("older keys, which are still within")
def only_the_modulo_is_allowed(query, key, value, cache):
    """After the first round it forgets the older keys."""
    place, size = cache["place"], len(cache["key"])
    keys, values = written(key, value, cache, place % size)
    allowed = jnp.arange(size)[None] <= place % size
    return attend(query, keys, values, allowed), {"key": keys, "value": values, "place": place + 1}


@answers.wrong("The cache that came in was changed")
def changes_what_it_got(query, key, value, cache):
    y, new = exercise.answer(query, key, value, cache)
    cache.update(new)
    return y, cache


@answers.wrong("Take the size from the cache")
def always_modulo_three(query, key, value, cache):
    place, size = cache["place"], len(cache["key"])
    keys, values = written(key, value, cache, place % 3)
    allowed = jnp.arange(size)[None] <= place
    return attend(query, keys, values, allowed), {"key": keys, "value": values, "place": place + 1}


@answers.wrong("with a cache of 4 places")
def always_allows_three(query, key, value, cache):
    place, size = cache["place"], len(cache["key"])
    keys, values = written(key, value, cache, place % size)
    allowed = jnp.arange(3)[None] <= place
    return attend(query, keys, values, allowed), {"key": keys, "value": values, "place": place + 1}


@answers.wrong()
def takes_zeros_for_empty(query, key, value, cache):
    y, new = exercise.answer(query, key, value, cache)
    return attend(query, new["key"], new["value"], (new["key"] != 0).any(axis=(1, 2))[None]), new


@answers.wrong()
def not_itself(query, key, value, cache):
    place, size = cache["place"], len(cache["key"])
    keys, values = written(key, value, cache, place % size)
    allowed = jnp.arange(size)[None] < place
    return attend(query, keys, values, allowed), {"key": keys, "value": values, "place": place + 1}


@answers.wrong()
def values_forgotten(query, key, value, cache):
    y, new = exercise.answer(query, key, value, cache)
    return y, new | {"value": cache["value"]}


@answers.right
def shifted(query, key, value, cache):
    """The oldest goes out in front, in place of the modulo."""
    keys = jnp.concatenate([cache["key"][1:], key])
    values = jnp.concatenate([cache["value"][1:], value])
    size, place = len(keys), cache["place"]
    allowed = jnp.arange(size)[None] >= size - 1 - place
    return attend(query, keys, values, allowed), {"key": keys, "value": values, "place": place + 1}


@answers.right
def by_update_slice(query, key, value, cache):
    size, place = cache["key"].shape[0], cache["place"]
    write = jax.lax.dynamic_update_slice_in_dim
    keys = write(cache["key"], key, place % size, axis=0)
    values = write(cache["value"], value, place % size, axis=0)
    allowed = (jnp.arange(size) < place + 1).reshape(1, size)
    return attend(query, keys, values, allowed), dict(key=keys, value=values, place=place + 1)


@answers.right
def by_softmax(query, key, value, cache):
    place, size = cache["place"], len(cache["key"])
    keys, values = written(key, value, cache, place % size)
    logits = jnp.einsum("hd,khd->hk", query[0], keys) / query.shape[-1] ** 0.5
    weights = jax.nn.softmax(jnp.where(jnp.arange(size) <= place, logits, -jnp.inf))
    return jnp.einsum("hk,khd->hd", weights, values)[None], {"key": keys, "value": values, "place": place + 1}


@answers.right
def newest_first(query, key, value, cache):
    keys = jnp.concatenate([key, cache["key"][:-1]])
    values = jnp.concatenate([value, cache["value"][:-1]])
    place = cache["place"]
    allowed = jnp.arange(len(keys))[None] <= place
    return attend(query, keys, values, allowed), {"key": keys, "value": values, "place": place + 1}


@answers.right
def from_the_end(query, key, value, cache):
    """Rows are filled from the last to the first."""
    place, size = cache["place"], len(cache["key"])
    keys, values = written(key, value, cache, size - 1 - place % size)
    allowed = jnp.arange(size)[None] >= size - 1 - place
    return attend(query, keys, values, allowed), {"key": keys, "value": values, "place": place + 1}


answers.equivalent(
    "key[0] -> key[-1]",
    "key[0] -> key[1]",
    "value[0] -> value[-1]",
    "value[0] -> value[1]",
    because="there is one key and one value, and JAX moves an index past the end to the last one",
)
