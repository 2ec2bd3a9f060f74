"""The shardings that rules give to a tree of shapes, on a mesh without devices."""

import math

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed


def names_of(entry):
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def solution(shapes, mesh, rules):
    def place(path, leaf):
        name = jax.tree_util.keystr(path)
        spec = next((spec for text, spec in rules if text in name), P())
        entries = []
        for length, entry in zip(leaf.shape, spec):
            parts = math.prod(mesh.shape[axis] for axis in names_of(entry))
            entries.append(None if length % parts else entry)
        return NamedSharding(mesh, P(*entries))

    return jax.tree_util.tree_map_with_path(place, shapes)


def short(spec):
    """A spec whose different spellings are equal: ``P("data")``, ``P(("data",), None)``."""
    entries = [names_of(entry) for entry in spec]
    while entries and not entries[-1]:
        entries.pop()
    return entries


def leaf(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16)


RULES = [
    ("['embed']", P("model", "data")),
    ("['up']", P(None, "data", "model")),
    ("['kernel']", P("data", "model")),
    ("['bias']", P("model")),
    ("['table']", P(("data", "model"))),
    ("['head']", P("model")),
]
WHY = {
    "['head']['kernel']": "Two rules fit, and the first of them counts.",
    "['scale']": "No rule fits, so it is copied to all devices.",
    "['blocks'][0]['bias']": "4 numbers cannot be divided by 16, so they are copied.",
    "['embed']": "50,257 rows cannot be divided by 16, so they are copied; the columns can be, and they still are.",
    "['table']": "64 rows cannot be divided by 32 times 16, so they are copied: an entry of two names needs their product.",
    "['blocks'][0]['kernel']": "A rule fits where its text stands anywhere in the path.",
}


SHAPES = {
    "head": {"kernel": leaf(64, 32)},
    "scale": leaf(64),
    "embed": leaf(50257, 64),
    "table": leaf(64, 3),
    "blocks": [{"kernel": leaf(64, 48), "bias": leaf(4)}, {"up": leaf(2, 64, 32), "bias": leaf(48)}],
}


def _compare(by_rules, sizes, why):
    mesh = AbstractMesh(sizes, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    got, expected = by_rules(SHAPES, mesh, list(RULES)), solution(SHAPES, mesh, RULES)
    if jax.tree.structure(got) != jax.tree.structure(expected):
        raise Failed("Return a tree like `shapes`, with a sharding in place of each leaf.", got=got)
    for (path, sharding), wanted in zip(
        jax.tree_util.tree_flatten_with_path(got)[0], jax.tree.leaves(expected)
    ):
        name = jax.tree_util.keystr(path)
        if not isinstance(sharding, NamedSharding) or sharding.mesh != mesh:
            raise Failed(
                "Each leaf becomes a `NamedSharding` of the mesh that was given.", input=name, got=sharding
            )
        if short(sharding.spec) != short(wanted.spec):
            raise Failed(why(name), input=name, expected=str(wanted.spec), got=str(sharding.spec))


def check(by_rules):
    _compare(by_rules, (32, 16), lambda name: WHY.get(name, "This leaf has another spec."))
    other = (
        "On a mesh of 6 times 4 devices a leaf has another spec: the sizes of its axes stand in `mesh.shape`."
    )
    _compare(by_rules, (6, 4), lambda name: other)


exercise = Exercise(
    title="Rules to shardings, without a device",
    stars=2,
    minutes=15,
    why="Which part of a model lies where is decided by a few rules, and a laptop can tell what they do on 512 devices.",
    hints=(
        "`jax.tree_util.tree_map_with_path(place, shapes)` calls `place(path, leaf)`; `next((spec for text, spec in rules if text in name), P())` is the first that fits.",
        "Go through `zip(leaf.shape, spec)`. The number of parts of an entry is the product of `mesh.shape[name]` over its names.",
    ),
    solution=solution,
    check=check,
)
