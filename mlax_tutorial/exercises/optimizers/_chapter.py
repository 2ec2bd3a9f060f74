"""What the chapter has written before its exercises: the base class, and helpers over trees."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp


class Tunable:
    """A frozen dataclass whose numbers are float32 leaves."""

    def __init_subclass__(cls):
        def flatten(self):
            return tuple(vars(self).values()), tuple(vars(self))

        def unflatten(names, leaves):
            self = object.__new__(cls)
            vars(self).update(zip(names, leaves))
            return self

        dataclass(frozen=True)(cls)
        jax.tree_util.register_pytree_node(cls, flatten, unflatten)

    def __post_init__(self):
        strict = lambda leaf: jnp.asarray(leaf, jnp.float32)  # noqa: E731
        vars(self).update(jax.tree.map(strict, vars(self)))


def wide(tree):
    def one(leaf):
        return leaf.astype(jnp.promote_types(leaf.dtype, jnp.float32))

    return jax.tree.map(one, tree)


def zeros(weights):
    return jax.tree.map(jnp.zeros_like, wide(weights))


def squared(gradients):
    return jax.tree.map(jnp.square, wide(gradients))


def average(decay, old, new):
    return jax.tree.map(lambda a, x: decay * a + (1 - decay) * x, old, new)


def orthogonal(v, rounds=5):
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = v.shape[0] > v.shape[1]
    x = v.T if tall else v
    x = x / (jnp.linalg.norm(x) + 1e-7)
    for _ in range(rounds):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if tall else x
