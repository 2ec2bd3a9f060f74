"""Answers to the exercise recurrent.write."""

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.recurrent.write import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def scanned(one, state, first, key, size):
    return lax.scan(one, (state, jnp.asarray(first, jnp.int32)), jax.random.split(key, size))[1]


@answers.wrong("the wrong way round")
def multiplies(step, state, first, key, size, temperature):
    def one(carry, key):
        logits, state = step(*carry)
        index = jax.random.categorical(key, logits * temperature)
        return (state, index), index

    return scanned(one, state, first, key, size)


@answers.wrong("The temperature has no effect")
def ignores_it(step, state, first, key, size, temperature):
    def one(carry, key):
        logits, state = step(*carry)
        index = jax.random.categorical(key, logits)
        return (state, index), index

    return scanned(one, state, first, key, size)


@answers.wrong("The temperature has no effect")
def divides_the_normalized(step, state, first, key, size, temperature):
    def one(carry, key):
        logits, state = step(*carry)
        index = jax.random.categorical(key, jnp.log(jax.nn.softmax(logits) / temperature))
        return (state, index), index

    return scanned(one, state, first, key, size)


@answers.wrong("The same index is drawn each time")
def greedy(step, state, first, key, size, temperature):
    def one(carry, key):
        logits, state = step(*carry)
        index = jnp.argmax(logits / temperature).astype(jnp.int32)
        return (state, index), index

    return scanned(one, state, first, key, size)


@answers.wrong("The same index is drawn each time")
def one_key(step, state, first, key, size, temperature):
    def one(carry, _):
        logits, state = step(*carry)
        index = jax.random.categorical(key, logits / temperature)
        return (state, index), index

    return scanned(one, state, first, key, size)


@answers.wrong("is not fed back")
def never_fed_back(step, state, first, key, size, temperature):
    def one(carry, key):
        logits, state = step(carry[0], first)
        index = jax.random.categorical(key, logits / temperature)
        return (state, first), index

    return scanned(one, state, first, key, size)


@answers.wrong("The state is not handed on")
def forgets_the_state(step, state, first, key, size, temperature):
    def one(carry, key):
        logits, _ = step(state, carry[1])
        index = jax.random.categorical(key, logits / temperature)
        return (state, index), index

    return scanned(one, state, first, key, size)


@answers.wrong("call `step` once for each index")
def reads_twice(step, state, first, key, size, temperature):
    def one(carry, key):
        state, index = carry
        logits, _ = step(state, index)
        index = jax.random.categorical(key, logits / temperature)
        _, state = step(state, index)
        return (state, index), index

    return scanned(one, state, first, key, size)


@answers.wrong("The first index is returned, too")
def returns_the_first(step, state, first, key, size, temperature):
    def one(carry, key):
        logits, state = step(*carry)
        index = jax.random.categorical(key, logits / temperature)
        return (state, index), carry[1]

    return scanned(one, state, first, key, size)


@answers.wrong("Return the indices alone")
def the_pair(step, state, first, key, size, temperature):
    def one(carry, key):
        logits, state = step(*carry)
        index = jax.random.categorical(key, logits / temperature)
        return (state, index), index

    return lax.scan(one, (state, first), jax.random.split(key, size))


@answers.wrong()
def unrolls(step, state, first, key, size, temperature):
    indices, index = [], first
    for each in jax.random.split(key, size):
        logits, state = step(state, index)
        index = jax.random.categorical(each, logits / temperature)
        indices.append(index)
    return jnp.stack(indices)


@answers.wrong("without `unroll`")
def asks_to_unroll(step, state, first, key, size, temperature):
    def one(carry, key):
        logits, state = step(*carry)
        index = jax.random.categorical(key, logits / temperature)
        return (state, index), index

    return lax.scan(one, (state, first), jax.random.split(key, size), unroll=size)[1]


@answers.wrong("with a state that is a pytree")
def one_array_as_state(step, state, first, key, size, temperature):
    return exercise.answer(step, jnp.asarray(state), first, key, size, temperature)


@answers.wrong()
def state_of_int32(step, state, first, key, size, temperature):
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.int32), state)
    return exercise.answer(step, state, first, key, size, temperature)


@answers.wrong("a random key is used twice")
def the_parent_too(step, state, first, key, size, temperature):
    """The first step draws with the key that is then split."""
    logits, state = step(state, first)
    index = jax.random.categorical(key, logits / temperature).astype(jnp.int32)
    return jnp.append(index[None], exercise.answer(step, state, index, key, size - 1, temperature))


# Right ones of unusual style


@answers.right
def splits_on_the_way(step, state, first, key, size, temperature):
    def one(carry, _):
        state, index, key = carry
        key, now = jax.random.split(key)
        logits, state = step(state, index)
        index = jax.random.categorical(now, logits / temperature)
        return (state, index, key), index

    return lax.scan(one, (state, first, key), length=size)[1]


@answers.right
def by_choice(step, state, first, key, size, temperature):
    def one(carry, key):
        logits, state = step(*carry)
        p = jax.nn.softmax(logits / temperature)
        index = jax.random.choice(key, len(p), p=p)
        return (state, index), index

    return scanned(one, state, first, key, size)


@answers.right
def by_gumbel(step, state, first, key, size, temperature):
    def one(carry, key):
        logits, state = step(*carry)
        noise = jax.random.gumbel(key, logits.shape)
        index = jnp.argmax(logits / temperature + noise).astype(jnp.int32)
        return (state, index), index

    return scanned(one, state, first, key, size)


@answers.right
def by_number(step, state, first, key, size, temperature):
    """The scan runs over numbers, and the body picks the key."""
    keys = jax.random.split(key, size)

    def one(carry, i):
        logits, state = step(*carry)
        index = jax.random.categorical(keys[i], logits / temperature).astype(jnp.int32)
        return (state, index), index

    return lax.scan(one, (state, jnp.asarray(first, jnp.int32)), jnp.arange(size))[1]


@answers.right
def by_fori_loop(step, state, first, key, size, temperature):
    keys = jax.random.split(key, size)

    def one(i, carry):
        state, index, indices = carry
        logits, state = step(state, index)
        index = jax.random.categorical(keys[i], logits / temperature).astype(jnp.int32)
        return state, index, indices.at[i].set(index)

    start = state, jnp.asarray(first, jnp.int32), jnp.zeros(size, jnp.int32)
    return lax.fori_loop(0, size, one, start)[2]


@answers.wrong("carry it from step to step as it is")
def carries_half_precision(step, state, first, key, size, temperature):
    def one(carry, key):
        logits, state = step(*carry)
        index = jax.random.categorical(key, logits / temperature)
        return (jax.tree.map(rounded, state), index), index

    def rounded(leaf):
        return leaf.astype(jnp.float16).astype(leaf.dtype) if leaf.dtype == jnp.float32 else leaf

    return scanned(one, state, first, key, size)


answers.equivalent(
    "return ((state, index), index): without a gradient",
    because="what comes out are indices, through which no gradient goes",
)
answers.equivalent(
    "index.astype(jnp.int32) -> index",
    because="without x64, which is off in the checks, `categorical` gives an int32",
)
