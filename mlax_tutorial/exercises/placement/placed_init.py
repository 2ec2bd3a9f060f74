"""Weights that are born under the shardings that a rule names."""

from unittest import mock

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(init, key, mesh, rule):
    shapes = jax.eval_shape(init, key)

    def place(path, leaf):
        return NamedSharding(mesh, rule(jax.tree_util.keystr(path), leaf.shape))

    shardings = jax.tree_util.tree_map_with_path(place, shapes)
    return jax.jit(init, out_shardings=shardings)(key)


def check(placed_init):
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    eager = []

    def init(key):
        first, last = jax.random.split(key)
        if not isinstance(first, jax.core.Tracer):
            eager.append(True)
        hidden = {"kernel": jax.random.normal(first, (8, 4)), "bias": jnp.zeros(4)}
        return hidden, [jax.random.uniform(last, (4, 2), jnp.float16)]

    moved, passed_on, device_put, jit = [], [], jax.device_put, jax.jit

    def whole(tree):
        return [
            leaf
            for leaf in jax.tree.leaves(tree)
            if isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer)
            if leaf.shape == (8, 4) and leaf.sharding.shard_shape(leaf.shape) == (8, 4)
        ]

    def put(x, *args, **options):
        moved.extend(whole(x))
        return device_put(x, *args, **options)

    class Watched:
        """A jitted function; what it is given must not be whole on a device."""

        def __init__(self, jitted):
            self.jitted = jitted

        def __call__(self, *args, **options):
            passed_on.extend(whole((args, options)))
            return self.jitted(*args, **options)

        def __getattr__(self, name):
            return getattr(self.jitted, name)

    def watched(*args, **options):
        made = jit(*args, **options)
        return Watched(made) if args else made

    asked = []

    def rule(path, shape):
        asked.append((path, tuple(shape)))
        if path.endswith("['kernel']"):
            return P("data")
        return P(None, "model") if len(shape) == 2 else P()

    key = jax.random.key(3)
    expected = jax.jit(init)(key)
    eager.clear()
    with mock.patch.object(jax, "device_put", put), mock.patch.object(jax, "jit", watched):
        got = placed_init(init, key, mesh, rule)
    if eager:
        raise Failed(
            "`init` ran eagerly: then the whole tree is on one device first. Trace it, by `jax.eval_shape` and `jax.jit`."
        )
    if moved:
        raise Failed(
            "The leaves are moved by `jax.device_put` after they were made: until then the whole tree is on one device. Make them under their shardings, "
            "by `jax.jit(init, out_shardings=…)`."
        )
    if passed_on:
        raise Failed(
            "The whole tree goes into another jitted function, so it was made on one device first. Give `out_shardings` to the function that makes it."
        )
    checks.same(got, expected, rtol=1e-6, atol=1e-6)
    wanted = {"[0]['bias']": P(), "[0]['kernel']": P("data"), "[1][0]": P(None, "model")}
    if {path for path, _ in asked} != set(wanted):
        raise Failed(
            "`rule` is to be asked once for each leaf, with its path as `jax.tree_util.keystr(path)` makes it.",
            expected=sorted(wanted),
            got=sorted({str(path) for path, _ in asked}),
        )
    leaves = jax.tree_util.tree_flatten_with_path(got)[0]
    for path, leaf in leaves:
        name = jax.tree_util.keystr(path)
        sharding = NamedSharding(mesh, wanted[name])
        if not leaf.sharding.is_equivalent_to(sharding, leaf.ndim):
            raise Failed(
                "A leaf does not live where the rule says.",
                input=name,
                shown=[("expected", str(sharding.spec)), ("got", str(leaf.sharding))],
            )


exercise = Exercise(
    title="Weights born where a rule says",
    stars=3,
    minutes=20,
    why="No device ever holds more than its own part, so a model may be larger than any of them from its first moment on.",
    hints=(
        "`jax.eval_shape(init, key)` gives the tree with shapes and dtypes, and computes nothing.",
        "`jax.tree_util.tree_map_with_path(f, tree)` calls `f(path, leaf)`; make a `NamedSharding(mesh, …)` for each leaf.",
        "The tree of shardings goes into `jax.jit(init, out_shardings=…)`.",
    ),
    solution=solution,
    check=check,
    devices=8,
)
