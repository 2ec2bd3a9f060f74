"""Answers to the exercise placement.reused."""

import collections
import functools

import jax

from mlax_tutorial.exercises.placement.reused import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def shards(tree):
    return [shard for leaf in jax.tree.leaves(tree) for shard in leaf.addressable_shards]


def place(shard):
    return shard.device, shard.data.unsafe_buffer_pointer()


@answers.wrong("it was not donated")
def without_donation(step, state, batch):
    before = {place(shard) for shard in shards(state)}
    new = jax.jit(step)(state, batch)
    return new, sum(shard.data.nbytes for shard in shards(new) if place(shard) in before)


@answers.wrong("Only the state may be")
def donates_both(step, state, batch):
    before = {place(shard) for shard in shards(state)}
    new = jax.jit(lambda s, b: (step(s, b), b + 0), donate_argnums=(0, 1))(state, batch)[0]
    return new, sum(shard.data.nbytes for shard in shards(new) if place(shard) in before)


@answers.wrong("gets memory of its own")
def believes_it(step, state, batch):
    new = jax.jit(step, donate_argnums=0)(state, batch)
    return new, sum(shard.data.nbytes for shard in shards(new))


@answers.wrong("add up the shards, not the arrays")
def whole_arrays(step, state, batch):
    before = {place(shard) for shard in shards(state)}
    new = jax.jit(step, donate_argnums=0)(state, batch)
    kept = [x for x in jax.tree.leaves(new) if all(place(shard) in before for shard in shards(x))]
    return new, sum(x.nbytes for x in kept)


@answers.wrong("deleted")
def looks_too_late(step, state, batch):
    new = jax.jit(step, donate_argnums=0)(state, batch)
    before = {place(shard) for shard in shards(state)}
    return new, sum(shard.data.nbytes for shard in shards(new) if place(shard) in before)


@answers.wrong("This is not the number of bytes")
def counts_shards(step, state, batch):
    before = {place(shard) for shard in shards(state)}
    new = jax.jit(step, donate_argnums=0)(state, batch)
    return new, sum(place(shard) in before for shard in shards(new))


@answers.wrong("Return two things")
def the_state_alone(step, state, batch):
    return jax.jit(step, donate_argnums=0)(state, batch)


# Right ones of unusual style


@answers.right
def by_device(step, state, batch):
    before = collections.defaultdict(set)
    for shard in shards(state):
        before[shard.device].add(shard.data.unsafe_buffer_pointer())

    @functools.partial(jax.jit, donate_argnames="old")
    def run(old, batch):
        return step(old, batch)

    new, total = run(state, batch), 0
    for shard in shards(new):
        if shard.data.unsafe_buffer_pointer() in before[shard.device]:
            total += shard.data.size * shard.data.dtype.itemsize
    return new, total


@answers.right
def compiled_ahead(step, state, batch):
    before = [place(shard) for shard in shards(state)]
    new = jax.jit(step, donate_argnums=(0,)).lower(state, batch).compile()(state, batch)
    return new, jax.numpy.array([s.data.nbytes for s in shards(new) if place(s) in before] or [0]).sum()
