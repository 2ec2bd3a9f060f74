"""*jit*: the cache that its reader writes finds and misses as JAX's own does, and what the chapter says of several devices."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from tests.chapters import assembled


@pytest.fixture(scope="module")
def code():
    return assembled.definitions(
        "book/jit.ipynb", "our_jit", "smooth", "square_root", "line_at", "PureLine", "TreeLine"
    )


def test_the_readers_cache(code):
    runs = []

    def scaled(tree, factor):
        runs.append(1)
        return jax.tree.map(lambda leaf: factor * leaf, tree)

    ours = code["our_jit"](scaled)
    for tree, factor, programs in [
        ({"a": jnp.ones(3)}, 2.0, 1),
        ({"a": np.ones(3, np.float32)}, 5.0, 1),
        ({"a": jnp.ones(4)}, 2.0, 2),
        ([jnp.ones(3)], 2.0, 3),
        ({"a": jnp.ones(3)}, 2, 4),
    ]:
        assert jnp.array_equal(jax.tree.leaves(ours(tree, factor))[0], factor * jax.tree.leaves(tree)[0])
        assert len(ours.programs) == len(runs) == programs


def test_the_server_answers_alike(code):
    times, values = np.random.default_rng(1).random((2, 40), dtype=np.float32)
    with jax.default_matmul_precision("highest"):
        fast = jax.jit(code["smooth"])(times, values, 0.1)
    np.testing.assert_allclose(fast, code["smooth"](times, values, 0.1), atol=1e-4)
    np.testing.assert_allclose(code["smooth"](times, 0 * values + 3, 0.1), 3.0, rtol=1e-4)


def test_a_root_and_a_line(code):
    assert abs(code["square_root"](7.0) - 7**0.5) < 1e-3
    assert code["PureLine"](2.0, 1.0).at(5.0) == code["TreeLine"](2.0, 1.0).at(5.0) == 11.0


def test_options_of_a_decorator():
    def powers(x, count):
        return sum(x**i for i in range(count))

    both = [functools.partial(jax.jit, static_argnames="count")(powers)]
    if jax.__version_info__ >= (0, 8, 1):
        both.append(jax.jit(static_argnames="count")(powers))
    else:
        with pytest.raises(TypeError):
            jax.jit(static_argnames="count")
    assert all(decorated(2.0, 3) == 7.0 for decorated in both)


def mesh(kind, name="i"):
    return jax.make_mesh((2,), (name,), axis_types=(kind,))


@pytest.mark.parametrize(
    "one, other, traces",
    [
        (lambda: SingleDeviceSharding(jax.devices()[0]), lambda: SingleDeviceSharding(jax.devices()[1]), 1),
        (
            lambda: SingleDeviceSharding(jax.devices()[0]),
            lambda: NamedSharding(mesh(AxisType.Auto), P("i")),
            2,
        ),
        (
            lambda: NamedSharding(mesh(AxisType.Auto), P("i")),
            lambda: NamedSharding(mesh(AxisType.Auto), P()),
            1,
        ),
        (
            lambda: NamedSharding(mesh(AxisType.Auto), P("i")),
            lambda: NamedSharding(mesh(AxisType.Auto, "j"), P("j")),
            2,
        ),
        (
            lambda: NamedSharding(mesh(AxisType.Explicit), P("i")),
            lambda: NamedSharding(mesh(AxisType.Explicit), P()),
            2,
        ),
    ],
    ids=["device", "mesh or none", "layout, Auto", "another mesh", "layout, Explicit"],
)
def test_what_of_the_placement_is_in_the_type(one, other, traces):
    runs = []
    fast = jax.jit(lambda x: (runs.append(1), 2 * x)[1])
    for sharding in (one(), other()):
        fast(jax.device_put(jnp.ones((4, 4)), sharding))
    assert len(runs) == traces
