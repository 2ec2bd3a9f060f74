"""Answers to the exercise placement.by_rules."""

import math

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.exercises.placement.by_rules import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def named(entry):
    return () if entry is None else (entry,) if isinstance(entry, str) else entry


def even(leaf, spec, mesh, parts=None):
    parts = parts or (lambda entry: math.prod(mesh.shape[name] for name in named(entry)))
    return P(*(entry if n % parts(entry) == 0 else None for n, entry in zip(leaf.shape, spec)))


def mapped(shapes, mesh, choose):
    def place(path, leaf):
        return NamedSharding(mesh, choose(jax.tree_util.keystr(path), leaf))

    return jax.tree_util.tree_map_with_path(place, shapes)


def first(rules, name):
    for text, spec in rules:
        if text in name:
            return spec
    return P()


@answers.wrong("the first of them counts")
def last_rule(shapes, mesh, rules):
    return mapped(shapes, mesh, lambda name, leaf: even(leaf, first(rules[::-1], name), mesh))


@answers.wrong("StopIteration")
def no_default(shapes, mesh, rules):
    def choose(name, leaf):
        return even(leaf, next(spec for text, spec in rules if text in name), mesh)

    return mapped(shapes, mesh, choose)


@answers.wrong("4 numbers cannot be divided by 16")
def uneven(shapes, mesh, rules):
    return mapped(shapes, mesh, lambda name, leaf: first(rules, name))


@answers.wrong("the columns can be, and they still are")
def all_or_nothing(shapes, mesh, rules):
    def choose(name, leaf):
        spec = first(rules, name)
        return spec if even(leaf, spec, mesh) == spec else P()

    return mapped(shapes, mesh, choose)


@answers.wrong("an entry of two names needs their product")
def largest_name(shapes, mesh, rules):
    def parts(entry):
        return max((mesh.shape[name] for name in named(entry)), default=1)

    return mapped(shapes, mesh, lambda name, leaf: even(leaf, first(rules, name), mesh, parts))


@answers.wrong("stands anywhere in the path")
def whole_path(shapes, mesh, rules):
    return mapped(shapes, mesh, lambda name, leaf: even(leaf, dict(rules).get(name, P()), mesh))


@answers.wrong("Each leaf becomes a `NamedSharding`")
def specs_alone(shapes, mesh, rules):
    def place(path, leaf):
        return even(leaf, first(rules, jax.tree_util.keystr(path)), mesh)

    return jax.tree_util.tree_map_with_path(place, shapes)


@answers.wrong("a tree like `shapes`")
def a_dict_of_paths(shapes, mesh, rules):
    leaves = jax.tree_util.tree_flatten_with_path(mapped(shapes, mesh, lambda name, leaf: P()))[0]
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


@answers.wrong("the sizes of its axes stand in `mesh.shape`")
def sizes_written_down(shapes, mesh, rules):
    def parts(entry):
        return math.prod({"data": 32, "model": 16}[name] for name in named(entry))

    return mapped(shapes, mesh, lambda name, leaf: even(leaf, first(rules, name), mesh, parts))


# Right ones of unusual style


@answers.right
def by_a_loop(shapes, mesh, rules):
    leaves, structure = jax.tree_util.tree_flatten_with_path(shapes)
    found = []
    for path, leaf in leaves:
        spec = list(first(rules, jax.tree_util.keystr(path))) + [None] * leaf.ndim
        spec = spec[: leaf.ndim]
        for axis, entry in enumerate(spec):
            if entry is not None and leaf.shape[axis] % math.prod(mesh.shape[n] for n in named(entry)):
                spec[axis] = None
        found.append(NamedSharding(mesh, P(*spec)))
    return structure.unflatten(found)


@answers.right
def by_asking_jax(shapes, mesh, rules):
    def choose(name, leaf):
        entries = []
        for axis, entry in enumerate(first(rules, name)):
            try:
                NamedSharding(mesh, P(*[None] * axis, entry)).shard_shape(leaf.shape)
                entries.append(entry)
            except ValueError:
                entries.append(None)
        return P(*entries)

    return mapped(shapes, mesh, choose)


@answers.right
def tuples_of_names(shapes, mesh, rules):
    def choose(name, leaf):
        return P(*(named(entry) for entry in even(leaf, first(rules, name), mesh)))

    return mapped(shapes, mesh, choose)
