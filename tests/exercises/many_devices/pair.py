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


DTYPE = "it has the dtype of what comes in"


@answers.wrong(DTYPE)
def always_float32(x, up, down, bias, axis_name):
    return (jax.lax.psum(jnp.tanh(x @ up) @ down, axis_name) + bias).astype(jnp.float32)


@answers.wrong(DTYPE)
def parts_in_float32(x, up, down, bias, axis_name):
    part = (jnp.tanh(x @ up) @ down).astype(jnp.float32)
    return jax.lax.psum(part, axis_name) + bias


@answers.wrong(DTYPE)
def product_in_float32(x, up, down, bias, axis_name):
    part = jnp.matmul(jnp.tanh(x @ up), down, preferred_element_type=jnp.float32)
    return jax.lax.psum(part, axis_name) + bias


@answers.wrong(DTYPE)
def hidden_in_float32(x, up, down, bias, axis_name):
    hidden = jnp.tanh(jnp.dot(x, up, preferred_element_type=jnp.float32))
    return jax.lax.psum(hidden @ down, axis_name) + bias


@answers.wrong(DTYPE)
def bias_in_float32(x, up, down, bias, axis_name):
    return jax.lax.psum(jnp.tanh(x @ up) @ down, axis_name) + jnp.asarray(bias, jnp.float32)


@answers.wrong(DTYPE)
def added_up_in_zeros(x, up, down, bias, axis_name):
    hidden, total = jnp.tanh(x @ up), jnp.zeros((len(x), down.shape[1]))
    for i in range(len(down)):
        total = total + hidden[:, i, None] * down[i]
    return jax.lax.psum(total, axis_name) + bias


@answers.wrong(DTYPE)
def zeros_on_the_others(x, up, down, bias, axis_name):
    zeros = jnp.zeros(bias.shape)
    mine = jnp.where(jax.lax.axis_index(axis_name) == 0, bias, zeros)
    return jax.lax.psum(jnp.tanh(x @ up) @ down + mine, axis_name)


@answers.wrong(DTYPE)
def divided_by_a_float32(x, up, down, bias, axis_name):
    size = jnp.float32(jax.lax.axis_size(axis_name))
    return jax.lax.psum(jnp.tanh(x @ up) @ down + bias / size, axis_name)


@answers.wrong(DTYPE)
def bfloat16_only(x, up, down, bias, axis_name):
    part = jnp.dot(jnp.tanh(x @ up), down, preferred_element_type=jnp.float32)
    total = jax.lax.psum(part, axis_name) + bias
    return total.astype(jnp.bfloat16) if x.dtype == jnp.bfloat16 else total


@answers.wrong("as many columns as `x`")
def added_up_in_zeros_like_x(x, up, down, bias, axis_name):
    part = jnp.zeros_like(x).at[:, : down.shape[1]].set(jnp.tanh(x @ up) @ down)
    return jax.lax.psum(part, axis_name).at[:, : len(bias)].add(bias)


@answers.right
def added_up_in_float32(x, up, down, bias, axis_name):
    part = jnp.dot(jnp.tanh(x @ up), down, preferred_element_type=jnp.float32)
    return (jax.lax.psum(part, axis_name) + bias).astype(x.dtype)


@answers.right
def zeros_of_the_dtype(x, up, down, bias, axis_name):
    mine = jnp.where(jax.lax.axis_index(axis_name) == 0, bias, jnp.zeros_like(bias))
    return jax.lax.psum(jnp.tanh(x @ up) @ down + mine, axis_name)


@answers.right
def an_equal_part_of_the_bias(x, up, down, bias, axis_name):
    part = jnp.tanh(jnp.dot(x, up)).dot(down)
    return jax.lax.psum(part + bias / jax.lax.axis_size(axis_name), axis_name)


@answers.right
def bias_on_the_first(x, up, down, bias, axis_name):
    part = jnp.tanh(x @ up) @ down
    return jax.lax.psum(jnp.where(jax.lax.axis_index(axis_name) == 0, part + bias, part), axis_name)


@answers.right
def with_einsum(x, up, down, bias, axis_name):
    part = jnp.einsum("bh,hd->bd", jnp.tanh(jnp.einsum("bd,dh->bh", x, up)), down)
    return jax.lax.pmean(jax.lax.axis_size(axis_name) * part, axis_name) + bias
