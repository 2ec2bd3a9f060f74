"""Answers to the exercise many_hosts.global_batch."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.many_hosts.global_batch import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("has 16 rows: each process handed in a whole batch")
def whole_batches(read, size, sharding):
    return jax.make_array_from_process_local_data(sharding, read(np.arange(size)))


@answers.wrong("Both processes read the same rows")
def same_rows(read, size, sharding):
    return jax.make_array_from_process_local_data(sharding, read(np.arange(size // jax.process_count())))


@answers.wrong("reads 8 rows for it, and 4 are its own")
def device_put(read, size, sharding):
    return jax.device_put(read(np.arange(size)), sharding)


@answers.wrong("in another order")
def every_other(read, size, sharding):
    rows = np.arange(jax.process_index(), size, jax.process_count())
    return jax.make_array_from_process_local_data(sharding, read(rows))


@answers.wrong("must have the shape (8, 2)")
def local_only(read, size, sharding):
    mine = size // jax.process_count()
    return jnp.asarray(read(jax.process_index() * mine + np.arange(mine)))


@answers.wrong("got ndarray")
def numpy_rows(read, size, sharding):
    mine = size // jax.process_count()
    return read(jax.process_index() * mine + np.arange(mine))


@answers.wrong()
def fixed_size(read, size, sharding):
    return jax.make_array_from_process_local_data(sharding, read(4 * jax.process_index() + np.arange(4)))


@answers.right
def from_callback(read, size, sharding):
    shape = (size, *read(np.arange(0)).shape[1:])
    return jax.make_array_from_callback(shape, sharding, lambda index: read(np.arange(size)[index[0]]))


@answers.right
def a_row_twice_for_its_shape(read, size, sharding):
    first = jax.process_index() * (size // jax.process_count())
    shape = (size, *read(np.array([first])).shape[1:])
    return jax.make_array_from_callback(shape, sharding, lambda index: read(np.arange(size)[index[0]]))


@answers.right
def with_global_shape(read, size, sharding):
    rows = np.split(np.arange(size), jax.process_count())[jax.process_index()]
    return jax.make_array_from_process_local_data(sharding, read(rows), (size, 2))
