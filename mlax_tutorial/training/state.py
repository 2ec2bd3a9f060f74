"""What a training carries from step to step."""

import functools
from typing import Any

import jax

from mlax_tutorial import meshes
from mlax_tutorial.nn.paths import flatten


class State:
    """What a training carries from step to step: ``(trainables, non_trainables, optimizer_state)``, with its leaves laid flat.

    A pytree, so it may be donated, mapped over and saved. It unpacks as the triple that it was made of, and the three trees are
    its attributes, too; they are put together when they are asked for. In between there is one flat tuple of leaves:
    ``jax.jit`` takes nested containers apart, compares them and builds them anew at each call, which for a hundred small
    layers takes as long as their arithmetic. (With JAX alone: ``leaves, structure = jax.tree.flatten(trees)`` outside,
    ``jax.tree.unflatten(structure, leaves)`` inside the jitted function.)

    Args:
      trainables, non_trainables: from ``model.init``.
      optimizer_state: from ``optimizer.init(trainables)``.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> state = State({"kernel": jnp.ones(2), "bias": jnp.zeros(2)}, (), ())
      >>> state = jax.jit(lambda state: jax.tree.map(lambda leaf: leaf + 1, state))(state)
      >>> trainables, non_trainables, optimizer_state = state
      >>> trainables["kernel"], state.trainables["bias"]
      (Array([2., 2.], dtype=float32), Array([1., 1.], dtype=float32))
    """

    _NAMES = "trainables", "non_trainables", "optimizer_state"

    def __init__(self, trainables: Any, non_trainables: Any, optimizer_state: Any):
        leaves, structure = jax.tree.flatten(meshes.accept((trainables, non_trainables, optimizer_state)))
        self._leaves, self._structure = tuple(leaves), _Structure.of(structure)

    trainables = property(lambda self: tuple(self)[0])
    non_trainables = property(lambda self: tuple(self)[1])
    optimizer_state = property(lambda self: tuple(self)[2])

    def __iter__(self):
        return iter(jax.tree.unflatten(self._structure.tree, self._leaves))

    def __repr__(self):
        return f"State({', '.join(f'{name}={tree!r}' for name, tree in zip(self._NAMES, self))})"

    def __reduce__(self):
        return State, tuple(self)

    def _with_paths(self):
        paths = [name + path for name, tree in zip(self._NAMES, self) for path in flatten(tree)[0]]
        return list(zip(map(jax.tree_util.GetAttrKey, paths), self._leaves)), self._structure

    @classmethod
    def _again(cls, structure, leaves):
        self = object.__new__(cls)
        self._leaves, self._structure = leaves, structure
        return self


class _Structure:
    """The structure of a State. One object for one structure: ``jax.jit`` compares them at each call."""

    def __init__(self, tree):
        self.tree, self._hash = tree, hash(tree)

    of = functools.lru_cache(lambda tree: _Structure(tree))

    def __eq__(self, other):
        return self is other or (isinstance(other, _Structure) and self.tree == other.tree)

    def __hash__(self):
        return self._hash


jax.tree_util.register_pytree_with_keys(
    State, State._with_paths, State._again, lambda state: (state._leaves, state._structure)
)
