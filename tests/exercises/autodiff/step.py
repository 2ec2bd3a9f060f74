"""Answers to the exercise autodiff.step."""

import functools

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.autodiff.step import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("goes uphill")
def uphill(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)
    return jax.tree.map(lambda p, g: (p + rate * g).astype(p.dtype), params, slopes), value, extras


@answers.wrong("learning rate is missing")
def without_rate(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)
    return jax.tree.map(lambda p, g: (p - g).astype(p.dtype), params, slopes), value, extras


@answers.wrong("was run 2 times")
def twice(loss, params, batch, rate):
    value, extras = loss(params, batch)
    slopes = jax.grad(loss, has_aux=True)(params, batch)[0]
    return jax.tree.map(lambda p, g: (p - rate * g).astype(p.dtype), params, slopes), value, extras


@answers.wrong("came as bfloat16")
def promotes(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)
    return jax.tree.map(lambda p, g: p - jnp.float32(rate) * g, params, slopes), value, extras


@answers.wrong("that is an array (float32)")
def promotes_by_array(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)
    return jax.tree.map(lambda p, g: p - rate * g, params, slopes), value, extras


@answers.wrong("Gradient only defined for scalar-output")
def forgets_aux(loss, params, batch, rate):
    value, slopes = jax.value_and_grad(loss)(params, batch)
    return jax.tree.map(lambda p, g: p - rate * g, params, slopes), value, None


@answers.wrong("in the wrong order")
def swapped(loss, params, batch, rate):
    params, value, extras = solution(loss, params, batch, rate)
    return params, extras, value


@answers.wrong("are the old ones")
def old(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)
    jax.tree.map(lambda p, g: p - rate * g, params, slopes)
    return params, value, extras


@answers.wrong("Three things are asked for")
def pair(loss, params, batch, rate):
    return solution(loss, params, batch, rate)[:2]


@answers.wrong("unsupported operand")
def on_the_tree(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)
    return params - rate * slopes, value, extras


# Right ones of unusual style, and wrong ones that look right


@answers.right
def a_loss_with_arguments_swapped(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(lambda b, p: loss(p, b), argnums=1, has_aux=True)(
        batch, params
    )
    leaves, structure = jax.tree.flatten(params)
    new = [jnp.asarray(p - rate * g, p.dtype) for p, g in zip(leaves, jax.tree.leaves(slopes))]
    return jax.tree.unflatten(structure, new), value, extras


@answers.right
@functools.partial(jax.jit, static_argnums=0)
def by_vjp(loss, params, batch, rate):
    value, pullback, extras = jax.vjp(lambda p: loss(p, batch), params, has_aux=True)
    (slopes,) = pullback(jnp.ones_like(value))
    return [jax.tree.map(lambda p, g: p - jnp.asarray(rate, p.dtype) * g, params, slopes), value, extras]


@answers.wrong()
def clips(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)
    new = jax.tree.map(lambda p, g: (p - rate * jnp.clip(g, -10, 10)).astype(p.dtype), params, slopes)
    return new, value, extras


@answers.wrong()
def gradient_of_the_batch(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, argnums=0, has_aux=True)(params, batch)
    return jax.tree.map(lambda p, g: p - rate * jnp.sign(g), params, slopes), value, extras


@answers.wrong("missing 1 required positional argument: 'offset'")
def knows_plain_trees(loss, params, batch, rate):
    def moved(p, slope):
        if isinstance(p, dict):
            return {name: moved(p[name], slope[name]) for name in p}
        if isinstance(p, (list, tuple)):
            return type(p)([moved(a, b) for a, b in zip(p, slope)])
        return (p - rate * slope).astype(p.dtype)

    (value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)
    return moved(params, slopes), value, extras


@answers.wrong()
def only_one_level_deep(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)
    return {k: (params[k] - rate * slopes[k]).astype(params[k].dtype) for k in params}, value, extras


@answers.wrong("has left `loss` by a side effect")
def carries_the_extras_out(loss, params, batch, rate):
    kept = []

    def value_only(params):
        value, extras = loss(params, batch)
        kept.append(extras)
        return value

    value, slopes = jax.value_and_grad(value_only)(params)
    moved = jax.tree.map(lambda p, slope: (p - rate * slope).astype(p.dtype), params, slopes)
    return moved, value, kept[0]
