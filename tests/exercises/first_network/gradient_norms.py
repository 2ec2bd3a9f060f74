"""Answers to the exercise first_network.gradient_norms."""

import jax
import jax.flatten_util
import jax.numpy as jnp

from mlax_tutorial.exercises.first_network.gradient_norms import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("*average* gradient")
def norms_of_average(loss_fn, params, batch):
    def mean_loss(params):
        return jnp.mean(jax.vmap(loss_fn, (None, 0))(params, batch))

    leaves = jax.tree.leaves(jax.grad(mean_loss)(params))
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in leaves))


@answers.wrong("Lengths do not add up")
def norms_added(loss_fn, params, batch):
    gradients = jax.vmap(jax.grad(loss_fn), in_axes=(None, 0))(params, batch)
    return sum(jnp.linalg.norm(leaf.reshape(len(leaf), -1), axis=1) for leaf in jax.tree.leaves(gradients))


@answers.wrong("root is missing")
def norms_squared(loss_fn, params, batch):
    return solution(loss_fn, params, batch) ** 2


@answers.wrong("grows with the batch")
def norms_loop(loss_fn, params, batch):
    norms = []
    for i in range(len(jax.tree.leaves(batch)[0])):
        gradient = jax.grad(loss_fn)(params, jax.tree.map(lambda array, i=i: array[i], batch))
        norms.append(jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradient))))
    return jnp.stack(norms)


@answers.wrong("Only one part")
def norms_one_leaf(loss_fn, params, batch):
    gradients = jax.vmap(jax.grad(loss_fn), in_axes=(None, 0))(params, batch)
    kernel = gradients[0]["kernel"]
    return jnp.linalg.norm(kernel.reshape(len(kernel), -1), axis=1)


@answers.wrong("Your code raised ValueError")
def norms_both_mapped(loss_fn, params, batch):
    gradients = jax.vmap(jax.grad(loss_fn))(params, batch)
    return jnp.sqrt(sum(jnp.sum(leaf**2, axis=-1) for leaf in jax.tree.leaves(gradients)))


@answers.wrong("For weights and a batch that are dicts")
def norms_of_pairs(loss_fn, params, batch):
    x, y = batch
    gradients = jax.vmap(lambda x, y: jax.grad(loss_fn)(params, (x, y)))(x, y)
    return jnp.sqrt(sum(jnp.sum(leaf.reshape(len(leaf), -1) ** 2, 1) for leaf in jax.tree.leaves(gradients)))


@answers.wrong("gradient by the example")
def norms_by_example(loss_fn, params, batch):
    gradients = jax.vmap(jax.grad(loss_fn, argnums=1), in_axes=(None, 0))(params, batch)
    return jnp.sqrt(sum(jnp.sum(leaf.reshape(len(leaf), -1) ** 2, 1) for leaf in jax.tree.leaves(gradients)))


@answers.wrong("the largest singular value")
def norms_spectral(loss_fn, params, batch):
    gradients = jax.vmap(jax.grad(loss_fn), in_axes=(None, 0))(params, batch)

    def squares(leaf):
        if leaf.ndim < 3:
            return jnp.sum(leaf.reshape(len(leaf), -1) ** 2, axis=1)
        return jnp.linalg.norm(leaf, ord=2, axis=(1, 2)) ** 2

    return jnp.sqrt(sum(squares(leaf) for leaf in jax.tree.leaves(gradients)))


@answers.right
def norms_by_jacobian(loss_fn, params, batch):
    jacobian = jax.jacrev(lambda params: jax.vmap(loss_fn, (None, 0))(params, batch))(params)
    flat = [leaf.reshape(len(leaf), -1) for leaf in jax.tree.leaves(jacobian)]
    return jnp.linalg.norm(jnp.concatenate(flat, axis=1), axis=1)


@answers.wrong("one follows the other")
def norms_one_by_one(loss_fn, params, batch):
    def one(example):
        leaves = jax.tree.leaves(jax.grad(loss_fn)(params, example))
        return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in leaves))

    return jax.lax.map(one, batch)


@answers.wrong("These are the losses")
def norms_losses(loss_fn, params, batch):
    return jax.vmap(loss_fn, in_axes=(None, 0))(params, batch)
