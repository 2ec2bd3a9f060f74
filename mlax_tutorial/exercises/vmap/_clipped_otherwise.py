"""Gradients that are clipped in another way than example by example."""

import jax
import jax.numpy as jnp


def each_gradient(loss, params, x, labels):
    return jax.vmap(jax.grad(loss), (None, 0, 0))(params, x, labels)


def norms(gradients):
    """The norm of each example's gradient."""
    leaves = jax.tree.leaves(gradients)
    return jnp.sqrt(sum(jnp.sum(leaf.reshape(len(leaf), -1) ** 2, axis=1) for leaf in leaves))


def scaled(gradients, scale):
    return jax.tree.map(lambda leaf: scale.reshape(-1, *[1] * (leaf.ndim - 1)) * leaf, gradients)


def mean(gradients):
    return jax.tree.map(lambda leaf: leaf.mean(axis=0), gradients)


def the_mean(loss, params, x, labels, bound):
    gradient = mean(each_gradient(loss, params, x, labels))
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradient)))
    return jax.tree.map(lambda leaf: leaf * jnp.minimum(1.0, bound / jnp.maximum(norm, 1e-12)), gradient)


def by(rule):
    """A wrong answer, made of what happens to the gradients of all examples."""

    def clipped(loss, params, x, labels, bound):
        return rule(each_gradient(loss, params, x, labels), bound)

    return clipped


def safe(norm):
    return jnp.maximum(norm, 1e-12)


leaf_by_leaf = by(
    lambda g, bound: mean(
        jax.tree.map(lambda leaf: scaled(leaf, jnp.minimum(1.0, bound / safe(norms(leaf)))), g)
    )
)
by_one_norm = by(
    lambda g, bound: mean(
        jax.tree.map(
            lambda leaf: (
                leaf
                * jnp.minimum(1.0, bound / safe(jnp.sqrt(sum(jnp.sum(x**2) for x in jax.tree.leaves(g)))))
            ),
            g,
        )
    )
)
norms_added = by(
    lambda g, bound: mean(
        scaled(g, jnp.minimum(1.0, bound / safe(sum(norms(leaf) for leaf in jax.tree.leaves(g)))))
    )
)
larger = by(lambda g, bound: mean(scaled(g, jnp.maximum(1.0, bound / safe(norms(g))))))
always = by(lambda g, bound: mean(scaled(g, bound / safe(norms(g)))))
elements = by(lambda g, bound: mean(jax.tree.map(lambda leaf: jnp.clip(leaf, -bound, bound), g)))
summed = by(
    lambda g, bound: jax.tree.map(
        lambda leaf: leaf.sum(axis=0), scaled(g, jnp.minimum(1.0, bound / safe(norms(g))))
    )
)
squared = by(lambda g, bound: mean(scaled(g, jnp.minimum(1.0, bound / safe(norms(g)) ** 2))))
upside_down = by(lambda g, bound: mean(scaled(g, jnp.minimum(1.0, norms(g) / bound))))
never = by(lambda g, bound: mean(g))
dropping = by(lambda g, bound: mean(scaled(g, (norms(g) <= bound) * 1.0)))
not_averaged = by(lambda g, bound: scaled(g, jnp.minimum(1.0, bound / safe(norms(g)))))


def padded(loss, params, x, labels, bound):
    gradients = each_gradient(loss, params, x, labels)
    return mean(scaled(gradients, jnp.minimum(1.0, bound / (norms(gradients) + 1.0))))
