"""Answers to the exercise names_and_text.convolution."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.names_and_text.convolution import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def kernel(a, b, c, time, first=0):
    return (c * b) @ a[:, None] ** jnp.arange(first, first + time)


def convolve(x, k):
    n = 2 * len(x)
    return jnp.fft.irfft(jnp.fft.rfft(x, n) * jnp.fft.rfft(k, n), n)[: len(x)]


@answers.wrong("wraps around to the beginning")
def circular(x, a, b, c):
    return jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(kernel(a, b, c, len(x))), len(x))


@answers.wrong("starts with the power 0")
def late(x, a, b, c):
    return convolve(x, kernel(a, b, c, len(x), first=1))


@answers.wrong("`c` is missing")
def without_c(x, a, b, c):
    return convolve(x, kernel(a, b, jnp.ones_like(c), len(x)))


@answers.wrong("looks into the future: step t")
def correlates(x, a, b, c):
    return convolve(x[::-1], kernel(a, b, c, len(x)))[::-1]


@answers.wrong("cut the result to the length")
def uncut(x, a, b, c):
    n = 2 * len(x)
    return jnp.fft.irfft(jnp.fft.rfft(x, n) * jnp.fft.rfft(kernel(a, b, c, len(x)), n), n)


@answers.wrong("The result is complex")
def complex_numbers(x, a, b, c):
    n = 2 * len(x)
    return jnp.fft.ifft(jnp.fft.fft(x, n) * jnp.fft.fft(kernel(a, b, c, len(x)), n))[: len(x)]


@answers.wrong("holds no `fft`")
def by_products(x, a, b, c):
    return jnp.convolve(x, kernel(a, b, c, len(x)))[: len(x)]


@answers.wrong()
def by_scan(x, a, b, c):
    def step(h, x_t):
        h = a * h + b * x_t
        return h, jnp.dot(c, h)

    return jax.lax.scan(step, jnp.zeros_like(a), x)[1]


@answers.wrong()
def even_only(x, a, b, c):
    n = 2 * len(x) - 1
    return jnp.fft.irfft(jnp.fft.rfft(x, n) * jnp.fft.rfft(kernel(a, b, c, len(x)), n))[: len(x)]


@answers.wrong("one number for each step")
def not_summed(x, a, b, c):
    kernels = (c * b)[:, None] * a[:, None] ** jnp.arange(len(x))
    return jax.vmap(lambda k: convolve(x, k))(kernels)


# Right ones of unusual style


@answers.right
def each_state_alone(x, a, b, c):
    kernels = a[:, None] ** jnp.arange(len(x))
    states = jax.vmap(lambda k: convolve(x, k))(kernels)
    return (b * c) @ states


@answers.right
def by_complex_transform(x, a, b, c):
    n = 1 << (2 * len(x) - 1).bit_length()
    k = kernel(a, b, c, len(x))
    return jnp.fft.ifft(jnp.fft.fft(x, n) * jnp.fft.fft(k, n)).real[: len(x)]


@answers.right
def by_fftconvolve(x, a, b, c):
    return jax.scipy.signal.fftconvolve(x, kernel(a, b, c, len(x)))[: len(x)]


answers.equivalent("x.shape[0] -> x.shape[-1]", because="x has one axis")
