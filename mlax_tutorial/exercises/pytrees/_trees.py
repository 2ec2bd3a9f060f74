"""Containers and trees that several checks open."""

import collections
import dataclasses

import jax
import jax.numpy as jnp

Point = collections.namedtuple("Point", "x y")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Box:
    """A container that only the registry knows how to open."""

    inside: object


class Unnamed:
    """A container that is registered without keys: its paths number the children."""

    def __init__(self, *children):
        self.children = children


jax.tree_util.register_pytree_node(
    Unnamed, lambda item: (item.children, None), lambda _, children: Unnamed(*children)
)


def layers():
    return {
        "layers": [
            {"kernel": jnp.ones((2, 3)), "bias": jnp.zeros(3)},
            {"kernel": jnp.full((3, 1), 2.0), "bias": jnp.ones(1)},
        ],
        "scale": jnp.array(0.0),
    }


def boxed():
    box = Box({"kernel": jnp.ones(2), "bias": jnp.zeros(2)})
    return collections.OrderedDict(scale=jnp.ones(()), kernel=jnp.ones(1), box=box)
