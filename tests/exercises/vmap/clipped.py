"""Answers to the exercise vmap.clipped."""

import functools

import jax
import jax.numpy as jnp
import optax
from jax import lax

from mlax_tutorial.exercises.vmap._clipped_otherwise import (
    always,
    by,
    by_one_norm,
    dropping,
    elements,
    larger,
    leaf_by_leaf,
    mean,
    never,
    norms,
    norms_added,
    not_averaged,
    padded,
    safe,
    scaled,
    squared,
    summed,
    the_mean,
    upside_down,
)
from mlax_tutorial.exercises.vmap.clipped import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("The mean is clipped")(the_mean)
answers.wrong("one norm over all its leaves")(leaf_by_leaf)
answers.wrong("One norm is taken over all examples")(by_one_norm)
answers.wrong("The norms of the leaves are added up")(norms_added)
answers.wrong("not `jnp.maximum`")(larger)


small_dropped = by(
    lambda g, bound: mean(
        scaled(g, jnp.where(norms(g) < 1e-3, 0.0, jnp.minimum(1.0, bound / safe(norms(g)))))
    )
)


answers.wrong("gradients far below the bound")(small_dropped)


@answers.wrong("seventeen examples")
def first_five(loss, params, x, labels, bound):
    return solution(loss, params, x[:5], labels[:5], bound)


answers.wrong("scaled up to the bound")(always)
answers.wrong("keeps its direction")(elements)
answers.wrong("This is the sum over examples")(summed)
answers.wrong("square *root*")(squared)
answers.wrong("upside down")(upside_down)
answers.wrong("Nothing is clipped")(never)
answers.wrong("are dropped")(dropping)
answers.wrong("average them")(not_averaged)


nan = by(
    lambda g, bound: mean(
        scaled(g, jnp.where(norms(g) > bound, 1.0, 0.0) * bound / norms(g) + (norms(g) <= bound))
    )
)


answers.wrong("the result is nan")(nan)
answers.wrong("added to the norm")(padded)


@answers.wrong("grows with the batch")
def loop(loss, params, x, labels, bound):
    each = [solution(loss, params, x[i : i + 1], labels[i : i + 1], bound) for i in range(len(x))]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves).mean(axis=0), *each)


@answers.wrong("`return` missing")
def no_return(loss, params, x, labels, bound):
    solution(loss, params, x, labels, bound)


# Right ones of unusual style, and wrong ones that look right


@answers.right
def by_optax(loss, params, x, labels, bound):
    gradients = jax.vmap(jax.grad(loss), (None, 0, 0))(params, x, labels)
    norms = jax.vmap(optax.tree.norm)(gradients)
    scale = jnp.where(norms > bound, bound / jnp.where(norms > 0, norms, 1.0), 1.0)
    return jax.tree.map(lambda g: jnp.einsum("b,b...->...", scale, g) / len(x), gradients)


@answers.right
def without_care_for_zero(loss, params, x, labels, bound):  # 1 is less than infinity
    def one(x, label):
        gradient = jax.grad(loss)(params, x, label)
        norm = jnp.sqrt(sum(jnp.vdot(leaf, leaf) for leaf in jax.tree.leaves(gradient)))
        return jax.tree.map(lambda leaf: jnp.minimum(1.0, bound / norm) * leaf, gradient)

    return jax.tree.map(functools.partial(jnp.mean, axis=0), jax.vmap(one)(x, labels))


@answers.right
def scanned(loss, params, x, labels, bound):
    def one(example):
        return solution(loss, params, example[0][None], example[1][None], bound)

    return jax.tree.map(lambda leaf: leaf.mean(0), lax.map(one, (x, labels)))


@answers.right
def divided_by_the_larger(loss, params, x, labels, bound):
    def one(x, label):
        gradient = jax.grad(loss)(params, x, label)
        divisor = jnp.maximum(1.0, optax.tree.norm(gradient) / bound)
        return jax.tree.map(lambda leaf: leaf / divisor, gradient)

    return jax.tree.map(lambda leaf: jnp.average(leaf, axis=0), jax.vmap(one)(x, labels))


@answers.wrong()
def for_this_tree_only(loss, params, x, labels, bound):
    if not isinstance(params, dict):
        return params
    return solution(loss, params, x, labels, bound)


@answers.wrong("missing 1 required positional argument: 'offset'")
def knows_plain_trees(loss, params, x, labels, bound):
    def averaged(tree):
        if isinstance(tree, dict):
            return {name: averaged(part) for name, part in tree.items()}
        return type(tree)(map(averaged, tree)) if isinstance(tree, (list, tuple)) else tree.mean(axis=0)

    def one(x, label):
        return solution(loss, params, x[None], label[None], bound)

    return averaged(jax.vmap(one)(x, labels))


@answers.wrong()
def clipped_losses(loss, params, x, labels, bound):
    def total(params):
        losses = jax.vmap(loss, (None, 0, 0))(params, x, labels)
        return jnp.mean(jnp.minimum(losses, bound))

    return jax.grad(total)(params)


answers.equivalent(
    "jnp.maximum(norm, 1e-12) -> norm",
    "jnp.maximum(norm, 1e-12) -> jnp.maximum(norm, 0.0)",
    "jnp.maximum(norm, 1e-12) -> jnp.maximum(norm, 2e-12)",
    because="a gradient of zero stays zero with any factor from 0 to 1, and the smaller of 1 and infinity is 1",
)
