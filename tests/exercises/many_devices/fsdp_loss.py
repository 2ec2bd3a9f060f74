"""Answers to the exercise many_devices.fsdp_loss."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.many_devices.fsdp_loss import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def through(kernels, x, y):
    for kernel in kernels:
        x = jnp.tanh(x @ kernel)
    return jnp.mean((x - y) ** 2)


@answers.wrong("Gather a layer where it is used")
def all_at_once(kernels, x, y):
    whole = jax.lax.all_gather(kernels, "devices", axis=1, tiled=True)
    return jax.lax.pmean(through(whole, x, y), "devices")


@answers.wrong("of its own share of the batch")
def no_mean(kernels, x, y):
    return through([jax.lax.all_gather(k, "devices", axis=0, tiled=True) for k in kernels], x, y)


@answers.wrong("go through all-reduce")
def by_psum(kernels, x, y):
    me = jax.lax.axis_index("devices")
    for shard in kernels:
        place = jnp.zeros((8, *shard.shape)).at[me].set(shard)
        x = jnp.tanh(x @ jax.lax.psum(place, "devices").reshape(32, 32))
    return jax.lax.pmean(jnp.mean((x - y) ** 2), "devices")


@answers.wrong("The loss is wrong")
def without_the_last(kernels, x, y):
    whole = [jax.lax.all_gather(k, "devices", axis=0, tiled=True) for k in kernels[:-1]]
    return jax.lax.pmean(through(whole, x, y), "devices")


@answers.wrong("its gradient by the shares is not")
def stopped(kernels, x, y):
    whole = [jax.lax.all_gather(k, "devices", axis=0, tiled=True) for k in jax.lax.stop_gradient(kernels)]
    return jax.lax.pmean(through(whole, x, y), "devices")


@answers.wrong("raised TypeError")
def along_the_columns(kernels, x, y):
    whole = [jax.lax.all_gather(k, "devices", axis=1, tiled=True) for k in kernels]
    return jax.lax.pmean(through(whole, x, y), "devices")


@answers.wrong("one number")
def of_each_row(kernels, x, y):
    for shard in kernels:
        x = jnp.tanh(x @ jax.lax.all_gather(shard, "devices", axis=0, tiled=True))
    return jax.lax.pmean(jnp.mean((x - y) ** 2, axis=-1), "devices")


@answers.wrong("the batch is gathered")
def on_all_rows(kernels, x, y):
    x, y = (jax.lax.all_gather(each, "devices", axis=0, tiled=True) for each in (x, y))
    for shard in kernels:
        x = jnp.tanh(x @ jax.lax.all_gather(shard, "devices", axis=0, tiled=True))
    return jax.lax.pmean(jnp.mean((x - y) ** 2), "devices")


@answers.wrong("the batch is gathered")
def activations_travel(kernels, x, y):
    for shard in kernels:
        columns = jax.lax.all_to_all(x, "devices", 1, 0, tiled=True)
        x = jnp.tanh(jax.lax.psum_scatter(columns @ shard, "devices", scatter_dimension=0, tiled=True))
    return jax.lax.pmean(jnp.mean((x - y) ** 2), "devices")


@answers.right
def gathered_again(kernels, x, y):
    @jax.checkpoint
    def layer(x, shard):
        return jnp.tanh(x @ jax.lax.all_gather(shard, "devices", axis=0, tiled=True))

    for shard in kernels:
        x = layer(x, shard)
    return jax.lax.pmean(jnp.mean((x - y) ** 2), "devices")


@answers.right
def as_a_scan(kernels, x, y):
    def layer(x, shard):
        return jnp.tanh(x @ jax.lax.all_gather(shard, "devices").reshape(32, 32)), None

    x, _ = jax.lax.scan(layer, x, kernels)
    return jax.lax.psum(jnp.sum((x - y) ** 2), "devices") / (16 * 32)


answers.equivalent(
    "jax.lax.all_gather(shard, 'devices', axis=0, tiled=True) -> jax.lax.all_gather(shard, 'devices', tiled=True)",
    because="0 is the axis where none is named",
)
