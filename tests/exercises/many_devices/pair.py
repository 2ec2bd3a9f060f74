"""Answers to the exercise many_devices.pair."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.many_devices.pair import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("its own part of the sum")
def no_sum(x, up, down, bias, axis_name):
    return jnp.tanh(x @ up) @ down + bias


@answers.wrong("add it after the sum")
def bias_everywhere(x, up, down, bias, axis_name):
    return jax.lax.psum(jnp.tanh(x @ up) @ down + bias, axis_name)


@answers.wrong("the mean over the devices")
def mean(x, up, down, bias, axis_name):
    return jax.lax.pmean(jnp.tanh(x @ up) @ down, axis_name) + bias


@answers.wrong("one sum at the end is enough")
def gathered(x, up, down, bias, axis_name):
    up = jax.lax.all_gather(up, axis_name, axis=1, tiled=True)
    down = jax.lax.all_gather(down, axis_name, axis=0, tiled=True)
    return jnp.tanh(x @ up) @ down + bias


@answers.wrong("has the shape of `x`")
def hidden_only(x, up, down, bias, axis_name):
    return jax.lax.all_gather(jnp.tanh(x @ up), axis_name, axis=1, tiled=True)


@answers.wrong()
def sum_inside(x, up, down, bias, axis_name):
    return jax.lax.psum(jnp.tanh(jax.lax.psum(x @ up, axis_name)) @ down, axis_name) + bias


@answers.wrong("no axis of the name")
def another_name(x, up, down, bias, axis_name):
    return jax.lax.psum(jnp.tanh(x @ up) @ down, "model") + bias


@answers.wrong("no axis of the name")
def name_of_another_exercise(x, up, down, bias, axis_name):
    return jax.lax.psum(jnp.tanh(x @ up) @ down, "devices") + bias


@answers.wrong("not on four")
def an_eighth_of_the_bias(x, up, down, bias, axis_name):
    return jax.lax.psum(jnp.tanh(x @ up) @ down + bias / 8, axis_name)


@answers.wrong("one `psum` is enough")
def sum_of_the_bias(x, up, down, bias, axis_name):
    part = jax.lax.psum(jnp.tanh(x @ up) @ down, axis_name)
    return part + jax.lax.psum(bias, axis_name) / jax.lax.axis_size(axis_name)


@answers.wrong("one `psum` is enough")
def half_and_half(x, up, down, bias, axis_name):
    hidden = jnp.tanh(x @ up)
    one = jax.lax.psum(hidden[:, :1] @ down[:1], axis_name)
    return one + jax.lax.psum(hidden[:, 1:] @ down[1:], axis_name) + bias


@answers.right
def bias_on_the_first(x, up, down, bias, axis_name):
    part = jnp.tanh(x @ up) @ down
    return jax.lax.psum(jnp.where(jax.lax.axis_index(axis_name) == 0, part + bias, part), axis_name)


@answers.right
def with_einsum(x, up, down, bias, axis_name):
    part = jnp.einsum("bh,hd->bd", jnp.tanh(jnp.einsum("bd,dh->bh", x, up)), down)
    return jax.lax.pmean(jax.lax.axis_size(axis_name) * part, axis_name) + bias
