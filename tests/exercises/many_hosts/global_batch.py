"""Answers to the exercise many_hosts.global_batch."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding, PartitionSpec

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


THREE = "`jax.process_count()` is 3"


@answers.wrong(THREE)
def fixed_size(read, size, sharding):
    return jax.make_array_from_process_local_data(sharding, read(4 * jax.process_index() + np.arange(4)))


def joined(read, first, stop, sharding):
    return jax.make_array_from_process_local_data(sharding, read(np.arange(first, stop)))


@answers.wrong(THREE)
def two_processes(read, size, sharding):
    mine = size // 2
    return joined(read, jax.process_index() * mine, (jax.process_index() + 1) * mine, sharding)


@answers.wrong(THREE)
def first_or_second_half(read, size, sharding):
    half = size // 2
    rows = np.arange(half) if jax.process_index() == 0 else np.arange(half, size)
    return jax.make_array_from_process_local_data(sharding, read(rows))


@answers.wrong(THREE)
def four_devices(read, size, sharding):
    mine = size // 4 * jax.local_device_count()
    return joined(read, jax.process_index() * mine, (jax.process_index() + 1) * mine, sharding)


@answers.wrong("in another order")
def ends_of_a_linspace(read, size, sharding):
    me, count = jax.process_index(), jax.process_count()
    ends = jnp.linspace(0, size, count + 1)
    rows = jnp.linspace(ends[me], ends[me + 1], size // count, endpoint=False).astype(int)
    return jax.make_array_from_process_local_data(sharding, read(rows))


@answers.wrong("takes an array of integers")
def numbers_of_a_linspace(read, size, sharding):
    mine = size // jax.process_count()
    first = jax.process_index() * mine
    return jax.make_array_from_process_local_data(sharding, read(np.linspace(first, first + mine - 1, mine)))


@answers.wrong("takes an array of integers")
def numbers_of_a_division(read, size, sharding):
    first = size / jax.process_count() * jax.process_index()
    return joined(read, first, first + size / jax.process_count(), sharding)


@answers.wrong("takes an array of integers")
def a_list(read, size, sharding):
    mine = size // jax.process_count()
    first = jax.process_index() * mine
    return jax.make_array_from_process_local_data(sharding, read(list(range(first, first + mine))))


@answers.wrong("takes an array of integers")
def row_by_row(read, size, sharding):
    mine = size // jax.process_count()
    rows = [read(np.asarray(jax.process_index() * mine + i)) for i in range(mine)]
    return jax.make_array_from_process_local_data(sharding, np.concatenate(rows))


@answers.wrong("leave the examples as they are")
def in_float32(read, size, sharding):
    mine = size // jax.process_count()
    rows = read(jax.process_index() * mine + np.arange(mine)).astype(np.float32)
    return jax.make_array_from_process_local_data(sharding, rows)


@answers.wrong("leave the examples as they are")
def callback_in_float32(read, size, sharding):
    shape = (size, *read(np.arange(0)).shape[1:])
    return jax.make_array_from_callback(
        shape, sharding, lambda index: np.asarray(read(np.arange(size)[index[0]]), "float32")
    )


@answers.wrong("leave the examples as they are")
def into_zeros(read, size, sharding):
    mine = size // jax.process_count()
    rows = read(jax.process_index() * mine + np.arange(mine))
    buffer = np.zeros(rows.shape, np.float32)
    buffer[:] = rows
    return jax.make_array_from_process_local_data(sharding, buffer)


@answers.wrong()
def two_numbers_each(read, size, sharding):
    rows = np.split(np.arange(size), jax.process_count())[jax.process_index()]
    return jax.make_array_from_process_local_data(sharding, read(rows), (size, 2))


@answers.wrong()
def name_of_the_axis(read, size, sharding):
    mine = size // jax.process_count()
    rows = read(jax.process_index() * mine + np.arange(mine))
    return jax.make_array_from_process_local_data(NamedSharding(sharding.mesh, PartitionSpec("data")), rows)


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
    rows = read(np.split(np.arange(size), jax.process_count())[jax.process_index()])
    return jax.make_array_from_process_local_data(sharding, rows, (size, *rows.shape[1:]))


@answers.right
def host_local(read, size, sharding):
    rows = read(np.split(np.arange(size), jax.process_count())[jax.process_index()])
    return multihost_utils.host_local_array_to_global_array(rows, sharding.mesh, sharding.spec)


@answers.right
def rows_of_jax(read, size, sharding):
    rows = jnp.arange(size).reshape(jax.process_count(), -1)[jax.process_index()]
    return jax.make_array_from_process_local_data(sharding, jnp.asarray(read(rows)))


@answers.right
def from_single_devices(read, size, sharding):
    places = sharding.addressable_devices_indices_map((size,))
    parts = [jax.device_put(read(np.arange(size)[place]), device) for device, (place,) in places.items()]
    return jax.make_array_from_single_device_arrays((size, *parts[0].shape[1:]), sharding, parts)
