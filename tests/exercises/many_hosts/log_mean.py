"""Answers to the exercise many_hosts.log_mean."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from mlax_tutorial.exercises.many_hosts.log_mean import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("Process 0 still waited")
def inside_of_the_if(losses, write):
    if jax.process_index() == 0:
        write(float(jnp.mean(losses)))


@answers.wrong("Both processes write")
def all_write(losses, write):
    write(float(jnp.mean(losses)))


@answers.wrong("the part that process 0 holds")
def local_mean(losses, write):
    if jax.process_index() == 0:
        write(float(np.mean([shard.data for shard in losses.addressable_shards])))


@answers.wrong("raised RuntimeError: Fetching value")
def fetched(losses, write):
    if jax.process_index() == 0:
        write(float(np.mean(np.asarray(losses))))


@answers.wrong("Process 1 writes, and process 0 does not")
def the_other(losses, write):
    mean = jnp.mean(losses)
    if jax.process_index():
        write(float(mean))


@answers.wrong("got ArrayImpl")
def an_array(losses, write):
    mean = jnp.mean(losses)
    if jax.process_index() == 0:
        write(mean)


@answers.wrong("got float32")
def a_number_of_numpy(losses, write):
    everything = multihost_utils.process_allgather(losses, tiled=True)
    if jax.process_index() == 0:
        write(np.mean(everything))


@answers.wrong("Nobody has called `write`")
def returned(losses, write):
    return float(jnp.mean(losses))


@answers.wrong()
def a_sum(losses, write):
    total = jnp.sum(losses)
    if jax.process_index() == 0:
        write(float(total))


@answers.wrong("not the mean of all losses")
def rounded(losses, write):
    mean = round(float(losses.mean()), 2)
    if jax.process_index() == 0:
        write(mean)


@answers.right
def float_first(losses, write):
    mean = float(losses.mean())
    if not jax.process_index():
        write(mean)


@answers.right
def gathered(losses, write):
    everything = multihost_utils.process_allgather(losses, tiled=True)
    if jax.process_index() == 0:
        write(float(np.mean(everything)))
