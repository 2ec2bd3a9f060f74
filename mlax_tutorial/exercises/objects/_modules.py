"""The module class of the chapter, as its cells build it; a test compares the two."""

import jax
import jax.numpy as jnp
from jax.tree_util import GetAttrKey


def box(cls):
    """Register a class of boxes: one child, the value."""
    jax.tree_util.register_pytree_with_keys(
        cls,
        lambda box: ([(GetAttrKey("value"), box.value)], None),
        lambda _, children: cls(*children),
    )
    return cls


@box
class Variable:
    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"{type(self).__name__}{jnp.shape(self.value)}"


@box
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


def update(module, new):
    """Put the values of one module into the boxes of another."""
    new = variables(new)
    for path, item in variables(module).items():
        item.value = new[path].value


def jit(function):
    """Like jax.jit, but keep what is written to the first argument."""

    @jax.jit
    def pure(module, *args):
        y = function(module, *args)
        return y, module

    def call(module, *args):
        y, new = pure(module, *args)
        update(module, new)
        return y

    return call
