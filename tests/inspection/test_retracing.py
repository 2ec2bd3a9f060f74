"""`mlax_tutorial.inspection.retracing`: how often a function is traced, and why."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial.inspection import retracing

X = jnp.ones(3)


def area(width, height=1.0):
    return width * height


class Square:
    def area(self, side):
        return side * side

    def __call__(self, side):
        return side**2

    @functools.partial(jax.jit, static_argnums=0)
    def perimeter(self, side):
        return 4 * side


class Tile(Square):
    pass


WRAPPED = {
    "plain": area,
    "jit": jax.jit(area),
    "jit twice": jax.jit(jax.jit(area)),
    "grad": jax.grad(area),
    "vmap of jit": jax.vmap(jax.jit(area)),
    "partial": functools.partial(area, 2.0),
    "partial of jit": functools.partial(jax.jit(area), 2.0),
    "value_and_grad in jit": jax.jit(jax.value_and_grad(area)),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_underlying(name):
    assert retracing.underlying(WRAPPED[name]) is area


def test_underlying_of_objects():
    assert retracing.underlying(Square().area) is Square.area
    assert retracing.underlying(jax.jit(Square().area)) is Square.area
    assert retracing.underlying(Square()) is Square.__call__
    assert retracing.underlying(Tile()) is retracing.underlying(jax.jit(Tile())) is Square.__call__
    assert retracing.underlying(Square().perimeter).__name__ == "perimeter"
    assert retracing.underlying(np.add) is np.add


def test_counted():
    jitted = jax.jit(lambda x: x + 1)
    with retracing.counted(jitted) as count:
        assert count() == 0
        for x in (1.0, 2.0, X, 2 * X, jnp.ones(2)):
            jitted(x)
        assert count() == 3
    jitted(jnp.ones(7))
    assert count() == 3  # the block is over


def test_counted_in_one_another():
    inner, outer = jax.jit(lambda x: x + 1), jax.jit(lambda x: inner(x) * 2)
    with retracing.counted(inner) as one, retracing.counted(outer) as two, retracing.counted(inner) as three:
        outer(X), outer(2 * X)
    assert (one(), two(), three()) == (1, 1, 1)


def test_counted_refuses_what_has_no_body():
    with pytest.raises(TypeError, match="no body in Python"), retracing.counted(np.add):
        pass


def test_counting_ends_when_the_function_raises():
    def raises(x):
        raise RuntimeError("no")

    for _ in range(8):  # there are six places for monitoring tools
        with pytest.raises(RuntimeError), retracing.counted(raises):
            raises(1)


def test_compilations():
    jitted, y = jax.jit(lambda x: x * 3), jnp.ones(21)
    with retracing.compilations() as names:
        jitted(y), jitted(2 * y)
        inner_before = len(names)
        with retracing.compilations() as inner:
            jitted(jnp.float32(1.0))
    assert names.count("jit(<lambda>)") == 2 and inner == ["jit(<lambda>)"]
    assert inner_before < len(names)
    jitted(np.ones(22))
    assert names.count("jit(<lambda>)") == 2  # the block is over


def outcomes(watched):
    return [(call.outcome, *call.why) for call in watched.calls]


def watch(calls, function=None, **options):
    watched = retracing.watch(function or (lambda x, n=2: jax.tree.map(lambda leaf: leaf * 2, x)), **options)
    for args, kwargs in calls:
        watched(*args, **kwargs)
    return watched


REASONS = {
    "shape": ([X, jnp.ones(4)], "x: f32[3] -> f32[4], another shape"),
    "rank": ([X, jnp.ones((3, 1))], "x: f32[3] -> f32[3,1], another shape"),
    "dtype": ([X, X.astype(jnp.float16)], "x: f32[3] -> f16[3], another dtype"),
    "both": ([X, jnp.ones(4, int)], "x: f32[3] -> i32[4], another shape and another dtype"),
    "weak": ([1.0, jnp.float32(1)], "x: f32[] weak -> f32[], one of them is weakly typed"),
    "kind": ([1.0, 1], "x: f32[] weak -> i32[] weak, another dtype"),
    "a key": (
        [jax.random.key(0), jax.random.split(jax.random.key(0))],
        "x: key<fry>[] -> key<fry>[2], another shape",
    ),
    "structure": ([[X], (X,)], "x: [*] -> (*,), another structure"),
    "a key of a dict": ([{"a": X}, {"b": X}], "x: {'a': *} -> {'b': *}, another structure"),
    "none": ([{"a": X, "b": None}, {"a": X}], "x: {'a': *, 'b': None} -> {'a': *}, another structure"),
    "a leaf": ([{"a": X, "b": X}, {"a": X, "b": jnp.ones(5)}], "x['b']: f32[3] -> f32[5], another shape"),
    "the nearest": ([jnp.ones((2, 2), int), X, jnp.ones(4)], "x: f32[3] -> f32[4], another shape"),
}


@pytest.mark.parametrize("name", REASONS)
def test_reasons(name):
    values, why = REASONS[name]
    if name in ("a key",):
        watched = watch([((x,), {}) for x in values], lambda x: jax.random.key_data(x))
    else:
        watched = watch([((x,), {}) for x in values])
    assert outcomes(watched)[0] == ("traced", "the first call")
    assert outcomes(watched)[-1] == ("traced", why)
    assert watched.traces == len(values)


FINDS = {
    "other numbers": [X, 2 * X, np.ones(3, np.float32), np.ones(3)],
    "python numbers": [1.0, 2.0, -3.5],
    "dicts in another order": [{"a": X, "b": X}, {"b": X, "a": X}],
    "donated before": [X + 1, X + 2],
}


@pytest.mark.parametrize("name", FINDS)
def test_finds(name):
    watched = watch([((x,), {}) for x in FINDS[name]])
    assert [call.outcome for call in watched.calls] == ["traced"] + ["from the cache"] * (
        len(FINDS[name]) - 1
    )
    assert len(watched.programs) == 1 and not watched.calls[-1].why


def test_names_and_positions():
    calls = [((X,), {}), ((), {"x": X}), ((X, 2), {}), ((X,), {"n": 2}), ((X,), {"n": 3})]
    assert outcomes(watch(calls)) == [
        ("traced", "the first call"),
        ("traced", "x comes by name, and came by position"),
        ("traced", "n is given, and was left out"),
        ("traced", "n comes by name, and came by position"),
        ("from the cache",),
    ]


@pytest.mark.parametrize(
    "options", [{"static_argnames": "n"}, {"static_argnums": 1}, {"static_argnums": (-1,)}]
)
def test_static_arguments(options):
    watched = watch([((X, 1), {}), ((X, 2), {}), ((X, 1), {})], lambda x, n: n * x, **options)
    assert outcomes(watched) == [
        ("traced", "the first call"),
        ("traced", "n: 1 -> 2, another static value"),
        ("from the cache",),
    ]


def test_a_jitted_method():
    """The object that it is bound to is an argument like the others."""
    one, other = Square(), Square()
    watched = retracing.watch(one.perimeter)
    assert watched(2.0) == 8.0
    watched(3.0), watched(X)
    assert outcomes(watched) == [
        ("traced", "the first call"),
        ("from the cache",),
        ("traced", "side: f32[] weak -> f32[3], another shape"),
    ]
    assert str(watched.calls[0].key) == "self=Square, side f32[] weak"
    assert retracing.watch(other.perimeter).trace(2.0).jaxpr.eqns


def test_static_objects_that_are_always_new():
    calls = [((X,), {"by": lambda x: x}) for _ in range(3)]
    watched = watch(calls, lambda x, by: by(x), static_argnames="by")
    assert watched.traces == 3
    assert watched.calls[-1].why == ("by: another function object, equal to no other",)


def test_static_values_that_are_equal_and_of_other_types():
    """JAX 0.7 takes 1 and 1.0 for one, later ones do not: the account is that of the version that runs."""
    watched = watch([((X,), {"n": 1}), ((X,), {"n": 1.0})], lambda x, n: n * x, static_argnames="n")
    if watched.traces == 2:
        assert watched.calls[1].why == ("n: 1 -> 1.0, equal, but of another type",)
    else:
        assert watched.calls[1].outcome == "from the cache"


SETTINGS = {
    "jax_default_matmul_precision: None -> highest": lambda: jax.default_matmul_precision("highest"),
    "jax_debug_key_reuse: False -> True": lambda: jax.debug_key_reuse(True),
    "jax_threefry_partitionable: True -> False": lambda: jax.threefry_partitionable(False),
    "jax.set_mesh: None -> data=2 Auto": lambda: jax.set_mesh(
        jax.make_mesh((2,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings(name):
    watched = watch([((X,), {})])
    with SETTINGS[name]():
        watched(X)
    assert watched.calls[1].outcome == "traced" and watched.calls[1].why == (f"the setting {name}",)


def test_an_argument_whose_name_begins_like_another():
    watched = watch([(([X], X), {}), (((X,), jnp.ones(2)), {})], lambda x, x2: x2)
    assert watched.calls[1].why == (
        "x: [*] -> (*,), another structure",
        "x2: f32[3] -> f32[2], another shape",
    )


def test_an_array_that_is_spread_over_a_mesh():
    mesh = jax.make_mesh((2,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    spread = jax.device_put(jnp.ones(4), jax.NamedSharding(mesh, jax.P("data")))
    watched = watch([((jnp.ones(4),), {}), ((spread,), {})])
    assert watched.calls[1].outcome == "traced"
    assert watched.calls[1].why == ("x: f32[4] -> f32[4], another mesh",)


def test_an_array_whose_sharding_is_in_its_type():
    mesh = jax.make_mesh((2,), ("data",), axis_types=(jax.sharding.AxisType.Explicit,))
    whole, spread = (
        jax.device_put(jnp.ones(4), jax.NamedSharding(mesh, jax.P(axis))) for axis in (None, "data")
    )
    watched = watch([((whole,), {}), ((spread,), {})])
    assert watched.calls[1].why == ("x: f32[4] -> f32[4@data], another sharding",)


def test_devices_are_compiled_for_without_a_trace():
    watched = watch([((X,), {}), ((jax.device_put(X, jax.devices()[0]),), {})])
    assert [call.outcome for call in watched.calls] == ["traced", "compiled"]
    assert watched.calls[1].why == ("x is bound to cpu:0, and was to none",)
    assert [call.compiled for call in watched.calls] == [1, 1] and len(watched.programs) == 1


def test_errors_are_noted_and_passed_on():
    watched = retracing.watch(lambda x: x if x > 0 else -x)
    with pytest.raises(jax.errors.TracerBoolConversionError):
        watched(1.0)
    with pytest.raises(TypeError):
        watched("a text")
    assert [call.outcome for call in watched.calls] == [
        "raised TracerBoolConversionError",
        "raised TypeError",
    ]
    assert watched.programs == [] and watched.calls[1].program is None


def test_what_was_traced_before():
    jitted = jax.jit(lambda x: x + 1)
    jitted(X)
    watched = retracing.watch(jitted)
    watched(X), watched(jnp.ones(4))
    assert outcomes(watched)[0] == ("from the cache", "traced before it was watched")
    assert outcomes(watched)[1] == ("traced", "x: f32[3] -> f32[4], another shape")


def test_a_cleared_cache_is_noticed():
    watched = watch([((X,), {})])
    watched.function.clear_cache()
    watched(X)
    assert watched.traces == 2 and "was the cache cleared?" in watched.calls[1].why[0]


def test_tracing_alone():
    watched = retracing.watch(lambda x: x @ x)
    traced = watched.trace(jax.ShapeDtypeStruct((10**6, 10**6), jnp.float32))
    assert traced.jaxpr.eqns and watched.traces == 1 and watched.calls[0].compiled == 0


def test_donated_arguments():
    watched = retracing.watch(lambda x: x + 1, donate_argnums=0)
    given = X * 1
    watched(given), watched(X * 2)
    assert given.is_deleted() and watched.traces == 1


def test_options_and_functions_without_a_body():
    with pytest.raises(TypeError, match="jitted already"):
        retracing.watch(jax.jit(area), static_argnames="height")
    jax.clear_caches()
    watched = retracing.watch(jnp.add)
    watched(X, 1.0), watched(X, 2.0), watched(X, X)
    assert [call.outcome for call in watched.calls] == ["traced", "from the cache", "traced"]


def test_it_prints_as_a_table():
    watched = watch([((X,), {}), ((X, 3), {})], area)
    assert repr(watched).splitlines() == [
        "area: 2 calls, 2 traced",
        "  1  width f32[3]                     traced  the first call",
        "  2  width f32[3], height i32[] weak  traced  height is given, and was left out",
    ]


def test_inside_of_a_trace():
    watched = retracing.watch(lambda x: x * 2)
    assert jax.jit(lambda x: watched(x) + 1)(X).shape == (3,)
    assert jax.grad(lambda x: watched(x))(1.0) == 2.0
    assert len(watched.calls) == 2


def test_with_the_guards_on():
    with jax.debug_key_reuse(True):
        watched = watch([((jax.random.key(1),), {}), ((jax.random.key(2),), {})], jax.random.normal)
    assert watched.traces == 1
