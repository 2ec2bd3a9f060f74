"""Answers to the exercise many_devices.accumulate."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from mlax_tutorial.exercises.many_devices.accumulate import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


SPECS = P(), P("devices"), P("devices")


def on_each(local, mesh, **options):
    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P(), **options)


def summed(loss, w, x, y, parts):
    x, y = (each.reshape(parts, -1, *each.shape[1:]) for each in (x, y))
    gradients = jax.lax.map(lambda part: jax.grad(loss)(w, *part), (x, y))
    return jax.tree.map(lambda leaf: leaf.sum(axis=0), gradients)


@answers.wrong("exchanged 4 times")
def each_part(loss, mesh, parts):
    def mean(w, x, y):
        return jax.lax.pmean(loss(w, x, y), "devices")

    def local(w, x, y):
        return jax.tree.map(lambda leaf: leaf / parts, summed(mean, w, x, y, parts))

    return on_each(local, mesh)


@answers.wrong("have 2 rows each")
def in_one_piece(loss, mesh, parts):
    def local(w, x, y):
        return jax.lax.pmean(jax.grad(loss)(w, x, y), "devices")

    return on_each(local, mesh, check_vma=False)


@answers.wrong("Take the mean over the parts, not the sum")
def sum_over_parts(loss, mesh, parts):
    def local(w, x, y):
        return jax.lax.pmean(summed(loss, w, x, y, parts), "devices")

    return on_each(local, mesh, check_vma=False)


@answers.wrong("Take the mean over the devices, not the sum")
def sum_over_devices(loss, mesh, parts):
    def local(w, x, y):
        return jax.lax.psum(jax.tree.map(lambda leaf: leaf / parts, summed(loss, w, x, y, parts)), "devices")

    return on_each(local, mesh, check_vma=False)


@answers.wrong("those of the others are not in it")
def alone(loss, mesh, parts):
    def local(w, x, y):
        return jax.tree.map(lambda leaf: leaf / parts, summed(loss, w, x, y, parts))

    return on_each(local, mesh, check_vma=False)


@answers.wrong("have 2 rows each")
def parts_under_vmap(loss, mesh, parts):
    def local(w, x, y):
        x, y = (each.reshape(parts, -1, *each.shape[1:]) for each in (x, y))
        gradients = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, x, y)
        return jax.lax.pmean(jax.tree.map(lambda leaf: leaf.mean(axis=0), gradients), "devices")

    return on_each(local, mesh, check_vma=False)


@answers.wrong("exchanged 4 times")
def each_part_in_a_loop(loss, mesh, parts):
    def mean(w, x, y):
        return jax.lax.pmean(loss(w, x, y), "devices")

    def local(w, x, y):
        each = [jax.grad(mean)(w, *rows) for rows in zip(jnp.split(x, parts), jnp.split(y, parts))]
        return jax.tree.map(lambda *leaves: sum(leaves) / parts, *each)

    return on_each(local, mesh)


@answers.wrong("not on 4 devices in 2")
def always_four(loss, mesh, parts):
    def local(w, x, y):
        total = jax.lax.pmean(summed(loss, w, x, y, 4), "devices")
        return jax.tree.map(lambda leaf: leaf / parts, total)

    return on_each(local, mesh, check_vma=False)


@answers.wrong("and `parts` are handed in")
def four_parts(loss, mesh, parts):
    return on_each(
        lambda w, x, y: jax.lax.pmean(
            jax.tree.map(lambda leaf: leaf / 4, summed(loss, w, x, y, 4)), "devices"
        ),
        mesh,
        check_vma=False,
    )


@answers.wrong()
def the_last_part(loss, mesh, parts):
    def local(w, x, y):
        rows = len(x) // parts
        return jax.lax.pmean(jax.grad(loss)(w, x[-rows:], y[-rows:]), "devices")

    return on_each(local, mesh, check_vma=False)


@answers.right
def with_map(loss, mesh, parts):
    def local(w, x, y):
        total = jax.lax.psum(summed(loss, w, x, y, parts), "devices")
        return jax.tree.map(lambda leaf: leaf / (mesh.size * parts), total)

    return jax.jit(on_each(local, mesh, check_vma=False))


@answers.right
def a_loop_of_python(loss, mesh, parts):
    @functools.partial(on_each, mesh=mesh, check_vma=False)
    def gradient(w, x, y):
        total = None
        for rows in zip(jnp.split(x, parts), jnp.split(y, parts)):
            part = jax.grad(loss)(w, *rows)
            total = part if total is None else jax.tree.map(jnp.add, total, part)
        return jax.tree.map(lambda leaf: jax.lax.pmean(leaf / parts, "devices"), total)

    return gradient
