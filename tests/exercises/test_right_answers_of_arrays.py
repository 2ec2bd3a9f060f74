"""Right answers of unusual style to the exercises of Arrays: each of them passes."""

import functools
import statistics

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.exercises import arrays

from .right_answers import PASSED, Answers

right = Answers(PASSED)


# dtypes

DTYPES = arrays.dtypes.answer

right(arrays.dtypes)({name: getattr(jnp, dtype) for name, dtype in DTYPES.items()})
right(arrays.dtypes)({name: jnp.dtype(dtype) for name, dtype in DTYPES.items()})
right(arrays.dtypes)({name: f" jnp.{dtype.title()} " for name, dtype in DTYPES.items()})
right(arrays.dtypes)(DTYPES | {"a": np.float32, "d": "f2", "e": "<f4", "f": "i2"})


# squared_error


@right(arrays.squared_error)
def flat_product(predictions, targets):
    if not (predictions.ndim == targets.ndim and predictions.shape == targets.shape):
        raise ValueError
    difference = (predictions - targets).ravel()
    return jnp.vdot(difference, difference) / difference.size


@right(arrays.squared_error)
def element_by_element(predictions, targets):
    class ShapeError(ValueError):
        pass

    if jnp.shape(predictions) != jnp.shape(targets):
        raise ShapeError
    return jax.vmap(lambda a, b: (a - b) ** 2)(predictions.ravel(), targets.ravel()).mean()


right(arrays.squared_error)(jax.jit(flat_product))


# heat_step


@right(arrays.heat_step)
def put_together(u, source):
    inner = u[1:-1] + 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
    inner = inner + (jnp.arange(1, len(u) - 1) == source)
    return jnp.concatenate([jnp.zeros(1), inner, jnp.zeros(1)])


@right(arrays.heat_step)
def chosen(u, source):
    i, v = jnp.arange(u.size), jnp.pad(u, 1)
    warmer = u + 0.25 * (v[:-2] - 2 * u + v[2:]) + jnp.where(i == source, 1.0, 0.0)
    return jnp.where((i == 0) | (i == u.size - 1), 0.0, warmer)


@right(arrays.heat_step)
def convolved(u, source):
    spread = jnp.convolve(u, jnp.array([0.25, 0.5, 0.25]), mode="same")
    return spread.at[source].add(1).at[np.array([0, -1])].multiply(0)


@right(arrays.heat_step)
def as_a_product(u, source):
    n = len(u)
    spread = 0.5 * jnp.eye(n) + 0.25 * (jnp.eye(n, k=1) + jnp.eye(n, k=-1))
    return (jnp.dot(spread, u) + jax.nn.one_hot(source, n)) * jnp.ones(n).at[0].set(0).at[-1].set(0)


# lookup


def known(table, ids):
    return (ids >= 0) & (ids < len(table))


@right(arrays.lookup)
def sent_beyond(table, ids):
    return table.at[jnp.where(ids < 0, len(table), ids)].get(mode="fill", fill_value=0)


@right(arrays.lookup)
def with_a_row_of_zeros(table, ids):
    padded = jnp.concatenate([table, jnp.zeros_like(table[:1])])
    return padded[jnp.where(known(table, ids), ids, len(table))]


@right(arrays.lookup)
def one_by_one(table, ids):
    rows = [jnp.where((0 <= i) & (i < len(table)), table[i], jnp.zeros_like(table[0])) for i in ids]
    return jnp.stack(rows)


@right(arrays.lookup)
def unsigned(table, ids):
    return table.at[ids.astype(jnp.uint32)].get(mode="fill", fill_value=0)


# benchmark


@right(arrays.benchmark)
def each_leaf(function, x, clock):
    times = []
    for _ in range(6):
        start = clock()
        jax.tree.map(lambda leaf: leaf.block_until_ready(), function(x))
        times.append(clock() - start)
    return sorted(times[1:])[2]


@right(arrays.benchmark)
def by_cases(function, x, clock):
    def once():
        start, result = clock(), function(x)
        for array in result.values() if isinstance(result, dict) else [result]:
            array.block_until_ready()
        return clock() - start

    once()
    return np.median([once() for _ in range(5)])


@right(arrays.benchmark)
def read_at_the_end_of_each(function, x, clock):
    jax.device_get(function(x))
    readings = [clock()]
    for _ in range(5):
        jax.block_until_ready(function(x))
        readings.append(clock())
    return jnp.median(jnp.diff(jnp.array(readings)))


@right(arrays.benchmark)
def negative_start(function, x, clock):
    jax.block_until_ready(function(x))
    times = np.empty(5)
    for i in range(5):
        times[i] = -clock()
        jax.block_until_ready(function(x))
        times[i] += clock()
    return statistics.median(times)


# moving_average


@right(arrays.moving_average)
def picked(x, width):
    return x[jnp.arange(len(x) - width + 1)[:, None] + jnp.arange(width)].mean(axis=1)


@right(arrays.moving_average)
def reduced(x, width):
    return lax.reduce_window(x, 0.0, lax.add, (width,), (1,), "valid") / width


@right(arrays.moving_average)
def sliced(x, width):
    starts = jnp.arange(len(x) - width + 1)
    return jax.vmap(lambda start: lax.dynamic_slice(x, (start,), (width,)).mean())(starts)


@right(arrays.moving_average)
def by_fourier(x, width):
    kernel = jnp.zeros(len(x)).at[:width].set(1 / width)
    return jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(kernel), len(x))[width - 1 :]


right(arrays.moving_average)(jax.jit(picked, static_argnums=1))


# push


@right(arrays.push)
@functools.partial(jax.jit, donate_argnames="buffer")
def update_slice(buffer, count, row):
    return lax.dynamic_update_slice(buffer, row[None], (count % len(buffer), 0))


@right(arrays.push)
@functools.partial(jax.jit, donate_argnums=(0,), inline=True)
def update_index(buffer, count, row):
    return lax.dynamic_update_index_in_dim(buffer, row, count % buffer.shape[0], 0)


@right(arrays.push)
@functools.partial(jax.jit, donate_argnums=0)
def with_a_print(buffer, count, row):
    print("traced with", count)
    return buffer.at[jnp.remainder(count, len(buffer)), :].set(row, mode="promise_in_bounds")


right(arrays.push)(jax.jit(lambda b, i, r: b.at[i % len(b)].set(r), donate_argnums=0))


test_right_answers_pass = right.test()
