"""Answers to the exercise jit.steady."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.jit.steady import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("make a float32 that is not weak")
def plain(step):
    return jax.jit(step)


@answers.wrong("make a float32 that is not weak")
def inside(step):
    return jax.jit(lambda weights, gradient, rate: step(weights, gradient, jnp.float32(rate)))


@answers.wrong("make a float32 that is not weak")
def asarray(step):
    jitted = jax.jit(step)
    return lambda weights, gradient, rate: jitted(weights, gradient, jnp.asarray(rate))


@answers.wrong("The rate is static")
def static(step):
    return jax.jit(step, static_argnums=2)


@answers.wrong("it is not jitted")
def not_jitted(step):
    return lambda weights, gradient, rate: step(weights, gradient, np.float32(rate))


@answers.wrong("call `jax.jit` once")
def each_time(step):
    return lambda weights, gradient, rate: jax.jit(lambda *a: step(*a))(weights, gradient, np.float32(rate))


@answers.wrong("the rate is a weak float32")
def weak(step):
    jitted = jax.jit(step)
    return lambda weights, gradient, rate: jitted(weights, gradient, float(rate))


@answers.wrong("The result is wrong")
def half(step):
    jitted = jax.jit(step)
    return lambda weights, gradient, rate: jitted(weights, gradient, jnp.bfloat16(rate))


@answers.wrong("The rate is static")
def frozen(step):
    jitted = {}

    def steadied(weights, gradient, rate):
        if "it" not in jitted:
            jitted["it"] = jax.jit(lambda weights, gradient: step(weights, gradient, np.float32(rate)))
        return jitted["it"](weights, gradient)

    return steadied


@answers.wrong("You donate an argument")
def donates(step):
    jitted = jax.jit(step, donate_argnums=0)
    return lambda weights, gradient, rate: jitted(weights, gradient, np.float32(rate))


# Right ones of unusual style, and wrong ones that look right


@answers.right
def by_asarray(step):
    jitted = jax.jit(step)
    return lambda weights, gradient, rate: jitted(weights, gradient, np.asarray(rate, np.float32))


@answers.right
def by_partial_and_keywords(step):
    jitted = jax.jit(functools.partial(step))

    @functools.wraps(step)
    def wrapped(*arguments):
        *others, rate = arguments
        return jitted(*others, jax.device_put(np.array(rate, dtype="float32")))

    return wrapped


@answers.right
def an_object(step):
    class Steady:
        def __init__(self):
            self.jitted = jax.jit(lambda *arguments: step(*arguments))

        def __call__(self, weights, gradient, rate):
            return self.jitted(weights, gradient, np.float32(float(rate)))

    return Steady()


@answers.right
def on_the_device(step):
    jitted = jax.jit(step)
    return lambda weights, gradient, rate: jitted(weights, gradient, jnp.asarray(rate, jnp.float32))


@answers.right
def cast_inside(step):
    jitted = jax.jit(lambda weights, gradient, rate: step(weights, gradient, jnp.float32(rate)))
    return lambda weights, gradient, rate: jitted(weights, gradient, float(rate))


@answers.wrong()
def full_array(step):
    jitted = jax.jit(step)
    return lambda weights, gradient, rate: jitted(weights, gradient, np.full(1, rate, np.float32))


@answers.wrong()
def cast_and_static(step):
    jitted = jax.jit(lambda w, g, rate: step(w, g, jnp.float32(rate)), static_argnums=2)
    return lambda weights, gradient, rate: jitted(weights, gradient, float(rate))


@answers.wrong()
def float64(step):
    jitted = jax.jit(lambda w, g, rate: step(w, g, rate * 1))
    return lambda weights, gradient, rate: jitted(weights, gradient, int(rate * 1000) / 1000)
