"""The module class of the chapter, as its cells build it; a test compares the two."""

import jax
import jax.numpy as jnp
from jax.tree_util import GetAttrKey


class Box:
    def __init_subclass__(cls):
        jax.tree_util.register_pytree_with_keys(
            cls,
            lambda box: ([(GetAttrKey("value"), box.value)], None),
            lambda _, children: cls(*children),
        )

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"{type(self).__name__}{jnp.shape(self.value)}"


class Variable(Box):
    """An array of a module."""


class Parameter(Variable):
    """A variable that gradients flow to."""


def is_variable(item):
    return isinstance(item, Variable)


def is_part(item):
    return isinstance(item, (Variable, Module))


def has_parts(item):
    return any(map(is_part, jax.tree.leaves(item, is_leaf=is_part)))


class Module:
    def __init_subclass__(cls):
        jax.tree_util.register_pytree_with_keys(cls, cls.take_apart, cls.put_together)

    def take_apart(self):
        own = vars(self)
        names = tuple(name for name in own if has_parts(own[name]))
        static = tuple((n, v) for n, v in own.items() if n not in names)
        return [(GetAttrKey(n), own[n]) for n in names], (names, static)

    @classmethod
    def put_together(cls, data, children):
        module, (names, static) = object.__new__(cls), data
        vars(module).update(static)
        vars(module).update(zip(names, children))
        return module

    def __repr__(self):
        return f"{type(self).__name__}({variables(self)})"


def variables(tree, kind=Variable):
    """The boxes of a kind, by their paths."""
    found = jax.tree_util.tree_leaves_with_path(tree, is_leaf=is_variable)
    return {jax.tree_util.keystr(path): item for path, item in found if isinstance(item, kind)}


def with_state(function):
    """Return the result, and what the boxes hold afterwards."""

    def pure(module, *args):
        before = jax.tree.structure(module)
        y = function(module, *args)
        leaves, after = jax.tree.flatten(module)
        if before != after:
            raise ValueError("only values of boxes can be written")
        return y, leaves

    return pure


def update(module, leaves):
    """Put values into the boxes of a module, in order."""
    boxes = jax.tree.leaves(module, is_leaf=is_variable)
    for item, value in zip(boxes, leaves, strict=True):
        item.value = value


def jit(function):
    """Like jax.jit, but keep what is written to the first argument."""
    pure = jax.jit(with_state(function))

    def call(module, *args):
        y, leaves = pure(module, *args)
        update(module, leaves)
        return y

    return call
