"""Answers to the exercise pytrees.node."""

import contextlib
import dataclasses
import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Failed
from mlax_tutorial.exercises.pytrees.node import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("returned None: below")
def not_returned(cls):
    solution(cls)


@answers.wrong("still a leaf")
def not_registered(cls):
    return cls


@answers.wrong("not the two children")
def static(cls):
    return jax.tree_util.register_static(cls)


@answers.wrong("calls `__init__`")
def dataclass(cls):
    attributes = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    attributes = [field.name for field in attributes] or list(inspect.signature(cls.__init__).parameters)[1:]
    static = [name for name in attributes if name not in cls.children]
    jax.tree_util.register_dataclass(cls, data_fields=list(cls.children), meta_fields=static)
    return cls


def by(flatten, unflatten, with_keys=True):
    """A wrong `node`: ``flatten(cls, item)`` and ``unflatten(cls, static, children)``."""

    def node(cls):
        register = (
            jax.tree_util.register_pytree_with_keys if with_keys else jax.tree_util.register_pytree_node
        )
        register(cls, functools.partial(flatten, cls), functools.partial(unflatten, cls))
        return cls

    return node


def apart(cls, item, names=None):
    names = cls.children if names is None else names
    children = [(jax.tree_util.GetAttrKey(name), vars(item)[name]) for name in names]
    static = ((n, v) for n, v in vars(item).items() if n not in cls.children)
    return children, tuple(sorted(static, key=lambda pair: pair[0]))


def init(cls, static, children):
    return cls(**dict(static), **dict(zip(cls.children, children, strict=True)))


answers.wrong("calls `__init__`")(by(apart, init))


def together(cls, static, children):
    item = object.__new__(cls)
    vars(item).update(static)
    vars(item).update(zip(cls.children, children, strict=True))
    return item


def without_keys_flatten(cls, item):
    children, static = apart(cls, item)
    return [child for _, child in children], static


answers.wrong("do not name the children")(by(without_keys_flatten, together, with_keys=False))


def all_leaves(cls, item):
    return [(jax.tree_util.GetAttrKey(name), value) for name, value in vars(item).items()], ()


def all_together(cls, static, children):
    return together(cls, zip(("kernel", "bias", "name"), children, strict=True), ())


answers.wrong("The name is a leaf here")(by(all_leaves, all_together))


def alphabet(cls, item):
    return apart(cls, item, sorted(cls.children))


answers.wrong("in another order than")(by(alphabet, together))


def drops(cls, item):
    return apart(cls, item)[0], ()


answers.wrong("has lost `name`")(by(drops, together))


def node_reversed(cls, static, children):
    return together(cls, static, tuple(children)[::-1])


answers.wrong("the attributes that they belong to")(by(apart, node_reversed))


def item_as_static(cls, item):
    return apart(cls, item)[0], item


def from_item(cls, static, children):
    return together(cls, vars(static), children)


answers.wrong("Compare auxiliary data by value")(by(item_as_static, from_item))


def old_object(cls, static, children):
    vars(static).update(zip(cls.children, children, strict=True))
    return static


answers.wrong("returns the old object")(by(item_as_static, old_object))


def bare(cls, static, children):
    return dict(static) | dict(zip(cls.children, children, strict=True))


answers.wrong("as something else than it was")(by(apart, bare))


def unsorted(cls, item):
    return apart(cls, item)[0], tuple((n, v) for n, v in vars(item).items() if n not in cls.children)


answers.wrong("sort the names")(by(unsorted, together))


def sorts_values(cls, item):
    static = sorted(((n, v) for n, v in vars(item).items() if n not in cls.children), key=lambda p: p[1])
    return apart(cls, item)[0], tuple(static)


answers.wrong("sort by the names alone")(by(sorts_values, together))


def node_dict(cls, item):
    return apart(cls, item)[0], {n: v for n, v in vars(item).items() if n not in cls.children}


answers.wrong("make a tuple of pairs")(by(node_dict, together))


@answers.wrong("run the program of the one")
def on_class(cls):
    names = {}

    def flatten(item):
        children, static = apart(cls, item)
        names.update(static)
        return children, ()

    return_to = functools.partial(together, cls)
    jax.tree_util.register_pytree_with_keys(cls, flatten, lambda _, children: return_to(names, children))
    return cls


def node_setattr(cls, static, children):
    item = object.__new__(cls)
    for name, value in (*static, *zip(cls.children, children, strict=True)):
        setattr(item, name, value)
    return item


answers.wrong("A frozen dataclass does not let")(by(apart, node_setattr))


@answers.wrong("one object again and again")
def one_object(cls):
    one = object.__new__(cls)

    def unflatten(static, children):
        vars(one).clear()
        vars(one).update(vars(together(cls, static, children)))
        return one

    jax.tree_util.register_pytree_with_keys(cls, functools.partial(apart, cls), unflatten)
    return cls


def converts(cls, static, children):
    return together(cls, static, [jnp.asarray(child) for child in children])


answers.wrong("do not convert or")(by(apart, converts))


def without_none(cls, static, children):
    item = together(cls, static, children)
    for name in cls.children:
        if vars(item)[name] is None:
            del vars(item)[name]
    return item


answers.wrong("do not convert or")(by(apart, without_none))


@answers.wrong("leave them as they are")
def swallows(cls):
    init = cls.__init__

    def careless(self, *arguments, **named):
        with contextlib.suppress(Exception, Failed):
            init(self, *arguments, **named)

    cls.__init__ = careless
    return solution(cls)


def text(cls, item):
    children, static = apart(cls, item)
    return children, repr(static)


def from_text(cls, static, children):
    return together(cls, eval(static, {}), children)


answers.wrong("keep the values themselves")(by(text, from_text))


class ByText(tuple):
    """Auxiliary data that is compared by its text."""

    def __eq__(self, other):
        return isinstance(other, ByText) and repr(self) == repr(other)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(repr(self))


class ByHash(tuple):
    """Auxiliary data that is compared by its hash."""

    def __eq__(self, other):
        return isinstance(other, ByHash) and hash(self) == hash(other)

    def __ne__(self, other):
        return not self == other

    __hash__ = tuple.__hash__


def wrapped(kind):
    def flatten(cls, item):
        children, static = apart(cls, item)
        return children, kind(static)

    return by(flatten, together)


answers.wrong("do not compare the text")(wrapped(ByText))
answers.wrong("do not compare the text")(wrapped(ByHash))


def chosen(keep):
    def flatten(cls, item):
        children, static = apart(cls, item)
        return children, tuple(pair for pair in static if keep(cls, *pair))

    return by(flatten, together)


answers.wrong("has lost `_private`")(chosen(lambda cls, name, value: name[0] != "_"))
answers.wrong("has lost `unit`")(chosen(lambda cls, name, value: value is not None))
answers.wrong("has lost `_private`")(chosen(lambda cls, name, value: isinstance(value, str)))


seen_classes = []


@answers.wrong("come back as objects of the second")
def last_class(cls):
    seen_classes[:] = [cls]
    jax.tree_util.register_pytree_with_keys(
        cls,
        functools.partial(apart, cls),
        lambda static, children: together(seen_classes[-1], static, children),
    )
    return cls


# Right ones of unusual style, and wrong ones that look right


@answers.right
def with_functions(cls):
    Key = jax.tree_util.GetAttrKey

    def static(item):
        return tuple(
            (name, item.__dict__[name]) for name in sorted(item.__dict__) if name not in cls.children
        )

    def flatten_with_keys(item):
        return tuple((Key(name), getattr(item, name)) for name in cls.children), static(item)

    def flatten(item):
        return tuple(getattr(item, name) for name in cls.children), static(item)

    def unflatten(aux, children):
        new = cls.__new__(cls)
        for name, value in zip(cls.children, children, strict=True):
            object.__setattr__(new, name, value)
        for name, value in aux:
            object.__setattr__(new, name, value)
        return new

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return cls


@answers.right
def with_methods(cls):
    def tree_flatten_with_keys(self):
        names = sorted(set(vars(self)) - set(cls.children))
        values = tuple(vars(self)[name] for name in names)
        keys = map(jax.tree_util.GetAttrKey, cls.children)
        return list(zip(keys, (vars(self)[n] for n in cls.children), strict=True)), (tuple(names), values)

    def tree_unflatten(_, aux, children):
        new = object.__new__(cls)
        vars(new).update(zip((*aux[0], *cls.children), (*aux[1], *children), strict=True))
        return new

    cls.tree_flatten_with_keys = tree_flatten_with_keys
    cls.tree_unflatten = classmethod(tree_unflatten)
    return jax.tree_util.register_pytree_with_keys_class(cls)


@answers.right
def with_a_frozenset(cls):
    def flatten(item):
        static = frozenset((name, value) for name, value in vars(item).items() if name not in cls.children)
        return [(jax.tree_util.GetAttrKey(name), vars(item)[name]) for name in cls.children], static

    def unflatten(static, children):
        item = object.__new__(cls)
        item.__dict__.update(static, **dict(zip(cls.children, children, strict=True)))
        return item

    jax.tree_util.register_pytree_with_keys(cls, flatten, unflatten)
    return cls


@dataclasses.dataclass(frozen=True)
class Static:
    pairs: tuple


@answers.right
def with_a_class_for_the_rest(cls):
    def flatten(item):
        pairs = sorted(
            (pair for pair in vars(item).items() if pair[0] not in cls.children), key=lambda p: p[0]
        )
        return [(jax.tree_util.GetAttrKey(name), vars(item)[name]) for name in cls.children], Static(
            tuple(pairs)
        )

    def unflatten(static, children):
        item = object.__new__(cls)
        vars(item).update(static.pairs)
        vars(item).update(zip(cls.children, children, strict=True))
        return item

    jax.tree_util.register_pytree_with_keys(cls, flatten, unflatten)
    return cls


answers.right(functools.partial(lambda register, cls: register(cls), with_functions))


def stops(cls, item):
    children, static = apart(cls, item)
    traced = [isinstance(child, jax.core.Tracer) for _, child in children]
    stop = jax.lax.stop_gradient
    return [
        (key, stop(child) if t else child) for (key, child), t in zip(children, traced, strict=True)
    ], static


answers.wrong("not with the right numbers")(by(stops, together))

answers.equivalent(
    "zip(cls.children, children, strict=True) -> zip(cls.children, children)",
    because="JAX hands in as many children as it was given",
)


def as_assigned(cls, item):
    return apart(cls, item, [name for name in vars(item) if name in cls.children])


answers.wrong("in which the attributes were set")(by(as_assigned, together))


def with_types(cls, item):
    children, static = apart(cls, item)
    return children, tuple((name, value, type(value)) for name, value in static)


def from_types(cls, static, children):
    return together(cls, [pair[:2] for pair in static], children)


answers.right(by(with_types, from_types))  # so 2 and 2.0 are told apart


@answers.wrong("`__init__` of a dataclass is called, too")
def dataclasses_by_their_own_way(cls):
    if not dataclasses.is_dataclass(cls):
        return solution(cls)
    names = [field.name for field in dataclasses.fields(cls)]
    static = [name for name in names if name not in cls.children]
    return jax.tree_util.register_dataclass(cls, data_fields=list(cls.children), meta_fields=static)


def names_and_values(cls, item):
    children, static = apart(cls, item)
    names, values = zip(*static)
    return children, (names, values)


def from_both(cls, static, children):
    return together(cls, zip(*static), children)


answers.wrong("An object with no static attributes failed")(by(names_and_values, from_both))


def keys_and_children(cls, item):
    children, static = apart(cls, item)
    keys, values = zip(*children)
    return list(zip(keys, values)), static


answers.wrong("An object with no children failed")(by(keys_and_children, together))


@answers.wrong("the names belong in the auxiliary data")
def names_beside(cls):
    names = []

    def flatten(item):
        children, static = apart(cls, item)
        names[:] = [name for name, _ in static]
        return children, tuple(value for _, value in static)

    jax.tree_util.register_pytree_with_keys(
        cls, flatten, lambda static, children: together(cls, zip(names, static), children)
    )
    return cls


def arrays(cls, item):
    children, static = apart(cls, item)
    numbers = int, float, np.ndarray
    return [
        (key, jnp.asarray(child) if isinstance(child, numbers) else child) for key, child in children
    ], static


answers.wrong("as many as the class lists")(by(arrays, together))


def first_two(cls, item):
    children, static = apart(cls, item)
    return children[:2], static


answers.wrong("as many as the class lists")(
    by(first_two, lambda cls, static, two: together(cls, static, [*two]))
)
