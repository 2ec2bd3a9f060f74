"""Right answers of unusual style to the exercises of Pytrees: each of them passes."""

import collections
import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises import pytrees

from .right_answers import PASSED, Answers

right = Answers(PASSED)


# leaf_counts and traced

right(pytrees.leaf_counts)({name: np.int64(number) for name, number in pytrees.leaf_counts.answer.items()})
right(pytrees.leaf_counts)(collections.OrderedDict(reversed(pytrees.leaf_counts.answer.items())))
right(pytrees.traced)({name: np.bool_(answer) for name, answer in pytrees.traced.answer.items()})


# count


@right(pytrees.count)
def with_sizes_of_a_map(tree, name):
    def numbers(path, leaf):
        named = [step.key for step in path if isinstance(step, jax.tree_util.DictKey)]
        return math.prod(leaf.shape) if name in named else 0

    return sum(jax.tree.leaves(jax.tree.map_with_path(numbers, tree)))


@right(pytrees.count)
def with_repr(tree, name):
    return sum(
        int(np.prod(leaf.shape))
        for path, leaf in jax.tree.leaves_with_path(tree)
        if f"[{name!r}]" in jax.tree_util.keystr(path)
    )


@right(pytrees.count)
def by_stopping(tree, name):
    is_named = lambda item: isinstance(item, dict) and name in item  # noqa: E731
    total = 0
    for item in jax.tree.leaves(tree, is_leaf=is_named):
        if is_named(item):
            total += sum(x.size for x in jax.tree.leaves(item[name]))
            total += sum(by_stopping(other, name) for key, other in item.items() if key != name)
    return total


@right(pytrees.count)
def numpy_integer(tree, name):
    return np.int64(pytrees.count.answer(tree, name))


# average


@right(pytrees.average)
@jax.jit
def jitted(old, params, decay):
    def one(a, b):
        if a.dtype.kind in "iub":
            return b
        return (a + (1 - decay) * (b.astype(a.dtype) - a)).astype(a.dtype)

    return jax.tree.map(one, old, params)


@right(pytrees.average)
def flat(old, params, decay):
    olds, structure = jax.tree.flatten(old)
    news = structure.flatten_up_to(params)
    leaves = []
    for a, b in zip(olds, news, strict=True):
        if jnp.issubdtype(a.dtype, jnp.inexact):
            b = jnp.asarray(decay, a.dtype) * a + jnp.asarray(1 - decay, a.dtype) * jnp.asarray(b, a.dtype)
        leaves.append(jnp.asarray(b, a.dtype))
    return structure.unflatten(leaves)


@right(pytrees.average)
def in_float32(old, params, decay):
    def one(path, a, b):
        if not jnp.isdtype(a.dtype, "real floating"):
            return b
        wide = jnp.float32
        return (decay * a.astype(wide) + (1 - decay) * b.astype(wide)).astype(a.dtype)

    return jax.tree.map_with_path(one, old, params)


# partition


@right(pytrees.partition)
def flat_partition(tree, chosen):
    pairs, structure = jax.tree.flatten_with_path(tree)
    marks = [chosen(jax.tree_util.keystr(path)) for path, _ in pairs]
    leaves = [leaf for _, leaf in pairs]
    first = [leaf if mark else None for leaf, mark in zip(leaves, marks, strict=True)]
    second = [None if mark else leaf for leaf, mark in zip(leaves, marks, strict=True)]
    return structure.unflatten(first), structure.unflatten(second)


@right(pytrees.partition)
def two_maps(tree, chosen):
    marks = jax.tree.map_with_path(lambda path, _: chosen(jax.tree_util.keystr(path)), tree)
    first = jax.tree.map(lambda leaf, mark: leaf if mark else None, tree, marks)
    second = jax.tree.map(lambda leaf, mark: None if mark else leaf, tree, marks)
    return first, second


Parts = collections.namedtuple("Parts", "chosen rest")


@right(pytrees.partition)
def transposed(tree, chosen):
    def pair(path, leaf):
        return [leaf, None] if chosen(jax.tree_util.keystr(path)) else [None, leaf]

    pairs = jax.tree.map_with_path(pair, tree)
    first, second = (
        jax.tree.map(lambda _, two, i=i: two[i], tree, pairs) for i in range(2)
    )  # the pairs lie below the leaves
    return Parts(first, second)


# combine


@right(pytrees.combine)
def the_other_way(first, second):
    return jax.tree.map(lambda a, b: a if b is None else b, first, second, is_leaf=lambda item: item is None)


@right(pytrees.combine)
def only_what_is_there(first, second):
    def choose(*found):
        return next((item for item in found if item is not None), None)

    return jax.tree_util.tree_map(choose, first, second, is_leaf=lambda item: item is None)


@right(pytrees.combine)
def with_structures(first, second):
    def is_none(item):
        return item is None

    structure = jax.tree.structure(first, is_leaf=is_none)
    ones, twos = jax.tree.leaves(first, is_leaf=is_none), jax.tree.leaves(second, is_leaf=is_none)
    return structure.unflatten([b if a is None else a for a, b in zip(ones, twos, strict=True)])


right(pytrees.combine)(jax.jit(the_other_way))


# node


@right(pytrees.node)
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


@right(pytrees.node)
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


@right(pytrees.node)
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


@right(pytrees.node)
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


right(pytrees.node)(functools.partial(lambda register, cls: register(cls), with_functions))


test_right_answers_pass = right.test()
