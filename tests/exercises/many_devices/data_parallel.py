"""Answers to the exercise many_devices.data_parallel."""

import functools

import jax
from jax.sharding import PartitionSpec as P

from mlax_tutorial.exercises.many_devices.data_parallel import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


SPECS = P(), P("devices"), P("devices")


@answers.wrong("8 times too large")
def recipe_of_pmap(loss, mesh):
    def local(w, x, y):
        value, gradient = jax.value_and_grad(loss)(w, x, y)
        return jax.lax.pmean(value, "devices"), jax.lax.pmean(gradient, "devices")

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P())


@answers.wrong("divided by the number of devices twice")
def divided_again(loss, mesh):
    def local(w, x, y):
        value, gradient = jax.value_and_grad(lambda w: jax.lax.pmean(loss(w, x, y), "devices"))(w)
        return value, jax.tree.map(lambda leaf: leaf / 8, gradient)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P())


@answers.wrong("those of the others are not in it")
def alone(loss, mesh):
    local = jax.value_and_grad(loss)
    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P(), check_vma=False)


@answers.wrong("the loss is not")
def sum_of_losses(loss, mesh):
    def local(w, x, y):
        value, gradient = jax.value_and_grad(lambda w: jax.lax.pmean(loss(w, x, y), "devices"))(w)
        return jax.lax.psum(value, "devices"), gradient

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P())


@answers.wrong("those of the others are not in it")
def averaged_without_tracking(loss, mesh):
    def local(w, x, y):
        return jax.value_and_grad(lambda w: jax.lax.pmean(loss(w, x, y), "devices"))(w)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P(), check_vma=False)


@answers.wrong("on 32 rows at once")
def everything_everywhere(loss, mesh):
    return jax.shard_map(jax.value_and_grad(loss), mesh=mesh, in_specs=P(), out_specs=P())


@answers.wrong("on 32 rows at once")
def everything_everywhere_averaged(loss, mesh):
    def local(w, x, y):
        return jax.value_and_grad(lambda w: jax.lax.pmean(loss(w, x, y), "devices"))(w)

    return jax.shard_map(local, mesh=mesh, in_specs=P(), out_specs=P())


@answers.wrong("not on one of four")
def always_eight(loss, mesh):
    def local(w, x, y):
        return jax.value_and_grad(lambda w: jax.lax.psum(loss(w, x, y), "devices") / 8)(w)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P())


@answers.wrong("that is handed in")
def own_mesh(loss, mesh):
    mesh = jax.make_mesh((8,), ("devices",), axis_types=(jax.sharding.AxisType.Auto,))

    def local(w, x, y):
        return jax.lax.pmean(loss(w, x, y), "devices")

    return jax.shard_map(jax.value_and_grad(local), mesh=mesh, in_specs=SPECS, out_specs=P())


@answers.wrong("must return a pair")
def gradient_only(loss, mesh):
    def local(w, x, y):
        return jax.grad(lambda w: jax.lax.pmean(loss(w, x, y), "devices"))(w)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P())


@answers.wrong("raised ValueError")
def no_mean(loss, mesh):
    return jax.shard_map(jax.value_and_grad(loss), mesh=mesh, in_specs=SPECS, out_specs=P())


@answers.wrong()
def no_function(loss, mesh):
    return loss


@answers.right
def unchecked(loss, mesh):
    def local(w, x, y):
        return jax.lax.pmean(jax.value_and_grad(loss)(w, x, y), "devices")

    return jax.jit(jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P(), check_vma=False))


@answers.right
def divided_first(loss, mesh):
    @functools.partial(jax.shard_map, mesh=mesh, in_specs=SPECS, out_specs=(P(), P()))
    def step(w, x, y):
        value, gradient = jax.value_and_grad(lambda w: loss(w, x, y) / mesh.size)(w)
        return jax.lax.psum(value, "devices"), gradient

    return step
