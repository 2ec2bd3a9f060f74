"""Answers to the exercise arrays.moving_average."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.exercises.arrays.moving_average import (
    centred,
    clamped,
    exercise,
    half,
    no_first,
    repeats,
    running_sum,
    solution,
)
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("grows with the array")
def loop(x, width):
    return jnp.stack([x[i : i + width].mean() for i in range(len(x) - width + 1)])


@answers.wrong("grows with the window")
def window_loop(x, width):
    return sum(x[i : len(x) - width + 1 + i] for i in range(width)) / width


@answers.wrong("JAX's own loops")
def fori(x, width):
    def body(i, means):
        return means.at[i].set(jax.lax.dynamic_slice(x, (i,), (width,)).mean())

    count = len(x) - width + 1
    return jax.lax.fori_loop(0, count, body, jnp.zeros(count))


@answers.wrong("the sum of each window")
def moving_average_sum(x, width):
    return jnp.convolve(x, jnp.ones(width), "valid")


@answers.wrong("a result for every element")
def same(x, width):
    return jnp.convolve(x, jnp.ones(width) / width, "same")


answers.wrong("they are repeats")(clamped)
answers.wrong("The first window is missing")(no_first)
answers.wrong("no digit left")(running_sum)
answers.wrong("no digit left")(centred)
answers.wrong("Half precision")(half)


@answers.wrong("the square of the series")
def matrix(x, width):
    start, place = jnp.arange(len(x) - width + 1)[:, None], jnp.arange(len(x))
    return ((start <= place) & (place < start + width)).astype(x.dtype) @ x / width


answers.wrong("clamped to the last element")(repeats)


@answers.wrong("The last whole window is missing")
def short(x, width):
    return x[jnp.arange(len(x) - width)[:, None] + jnp.arange(width)].mean(axis=1)


@answers.wrong("too wide by one")
def wide(x, width):
    return solution(x, width + 1)


@answers.wrong("The windows stand side by side")
def blocks(x, width):
    count = len(x) // width
    return x[: count * width].reshape(count, width).mean(axis=1)


@answers.wrong("You divide by `width - 1`")
def one_less(x, width):
    return jnp.convolve(x, jnp.ones(width) / (width - 1), mode="valid")


@answers.wrong("grows with the array")
def scan(x, width):
    sums = jax.lax.associative_scan(jnp.add, jnp.pad(x, (1, 0)))
    return (sums[width:] - sums[:-width]) / width


@answers.wrong("NumPy's functions compute on the host")
def numpy(x, width):
    return np.convolve(x, np.ones(width) / width, mode="valid")


@answers.wrong("JAX's own loops")
def shifts(x, width):
    def shift(i, sums):
        return sums + jax.lax.dynamic_slice(x, (i,), sums.shape)

    return jax.lax.fori_loop(0, width, shift, jnp.zeros(len(x) - width + 1)) / width


# Right ones of unusual style, and wrong ones that look right


@answers.right
def picked(x, width):
    return x[jnp.arange(len(x) - width + 1)[:, None] + jnp.arange(width)].mean(axis=1)


@answers.right
def reduced(x, width):
    return lax.reduce_window(x, 0.0, lax.add, (width,), (1,), "valid") / width


@answers.right
def sliced(x, width):
    starts = jnp.arange(len(x) - width + 1)
    return jax.vmap(lambda start: lax.dynamic_slice(x, (start,), (width,)).mean())(starts)


@answers.right
def by_fourier(x, width):
    kernel = jnp.zeros(len(x)).at[:width].set(1 / width)
    return jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(kernel), len(x))[width - 1 :]


answers.right(jax.jit(picked, static_argnums=1))
