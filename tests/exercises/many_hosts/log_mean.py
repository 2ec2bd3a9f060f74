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


@answers.wrong("All processes write")
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


def write_first(mean, write):
    if jax.process_index() == 0:
        write(float(mean))


TABLE = "of which there are `losses.size`"


@answers.wrong(TABLE)
def sum_by_len(losses, write):
    write_first(jnp.sum(losses) / len(losses), write)


@answers.wrong(TABLE)
def sum_by_shape(losses, write):
    write_first(jnp.sum(losses) / losses.shape[0], write)


@answers.wrong(TABLE)
def sum_by_last_axis(losses, write):
    write_first(jnp.sum(losses) / losses.shape[-1], write)


@answers.wrong(TABLE)
def gathered_by_len(losses, write):
    everything = multihost_utils.process_allgather(losses, tiled=True)
    write_first(everything.sum() / len(everything), write)


@answers.wrong(TABLE)
def by_four_a_process(losses, write):
    write_first(jnp.sum(losses) / (4 * jax.process_count()), write)


@answers.wrong(TABLE)
def by_two_a_device(losses, write):
    write_first(jnp.sum(losses) / (2 * jax.device_count()), write)


@answers.wrong(TABLE)
def of_the_first_row(losses, write):
    write_first(jnp.mean(jnp.atleast_2d(losses)[0]), write)


@answers.wrong("raised TypeError")
def mean_of_one_axis(losses, write):
    write_first(jnp.mean(losses, axis=0), write)


@answers.wrong("not the mean of all losses")
def two_processes(losses, write):
    local = np.mean([shard.data for shard in losses.addressable_shards])
    write_first(multihost_utils.process_allgather(local).sum() / 2, write)


@answers.wrong("not the mean of all losses")
def first_and_second(losses, write):
    local = np.mean([shard.data for shard in losses.addressable_shards])
    copies = multihost_utils.process_allgather(local)
    write_first((copies[0] + copies[1]) / 2, write)


@answers.wrong("not the mean of all losses")
def first_device_of_each(losses, write):
    local = np.mean(losses.addressable_data(0))
    write_first(multihost_utils.process_allgather(local).mean(), write)


@answers.right
def sum_by_size(losses, write):
    write_first(jnp.sum(losses) / losses.size, write)


@answers.right
def mean_of_means(losses, write):
    local = np.mean([shard.data for shard in losses.addressable_shards])
    write_first(multihost_utils.process_allgather(local).mean(), write)


@answers.right
def jitted(losses, write):
    write_first(jax.jit(jnp.mean)(losses), write)


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
